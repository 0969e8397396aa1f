"""Passages: consecutive pairs of a split joined into longer ones (`data.join`)."""

import random
from collections.abc import Iterable, Iterator
from itertools import islice

from data.pair import WORD, Pair

MAX_JOIN = 100  # pairs of a passage


def joined(pairs: Iterable[Pair], most: int, split: str) -> Iterator[Pair]:
    """Passages of 1 to `most` pairs, each number as often; every pair is in one, in order.

    In training each pair also stands by itself: out of passages alone, single sentences are hardly
    learnt, and then nothing is left to lose over length. How many pairs a passage has is drawn from
    the split's name alone: it is the same on every machine, for every corpus, under every limit and
    in both directions.
    """
    draw = random.Random(f"join {split}").random  # of which Python promises the same numbers
    pairs = iter(pairs)
    while passage := list(islice(pairs, 1 + int(draw() * most))):
        if split == "train":
            yield from passage
        if split != "train" or len(passage) > 1:
            yield join(passage)


def join(passage: list[Pair]) -> Pair:
    """The pairs as one, with single spaces between them; links and further references as well."""
    first = passage[0]
    return first._replace(
        src=" ".join(pair.src for pair in passage),
        tgt=" ".join(pair.tgt for pair in passage),
        link=None if first.link is None else " ".join(_moved_links(passage)),
        extra_references=tuple(
            map(" ".join, zip(*(pair.extra_references for pair in passage), strict=True))
        ),
    )


def _moved_links(passage: list[Pair]) -> Iterator[str]:
    """The links of all pairs, counted from the beginning of the passage: "0-0", then "3-4"."""
    src_before = tgt_before = 0
    for pair in passage:
        for link in (pair.link or "").split():
            mark = "p" if "p" in link else "-"
            i, j = link.split(mark)
            yield f"{int(i) + src_before}{mark}{int(j) + tgt_before}"
        src_before += len(WORD.findall(pair.src))
        tgt_before += len(WORD.findall(pair.tgt))
