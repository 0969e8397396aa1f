"""Links between words: drawn from attention, symmetrised, and scored against gold alignments.

A link is a pair (source word, target word), both counted from 0.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

Link = tuple[int, int]

_LINK = re.compile(r"(\d+)([-p])(\d+)", re.ASCII)


def argmax_links(matrix: np.ndarray) -> set[Link]:
    """Each target word's link to the source word that it attends to most (the first of equals).

    matrix: (target words, source words). A row of zeros has no link.
    """
    if not matrix.size:
        return set()
    rows = np.flatnonzero(matrix.max(1) > 0)
    return {(int(matrix[j].argmax()), int(j)) for j in rows}


def threshold_links(matrix: np.ndarray, threshold: float) -> set[Link]:
    """All links whose weight is at least the threshold, which is above 0 and at most 1."""
    if not 0 < threshold <= 1:
        raise ValueError(f"a threshold of weights is above 0 and at most 1, not {threshold}")
    return {(int(i), int(j)) for j, i in np.argwhere(matrix >= threshold)}


def diagonal_links(src_length: int, tgt_length: int) -> set[Link]:
    """The straight line: target word j to source word j (I - 1) / (J - 1), halves rounded up."""
    if src_length == 0:
        return set()
    steps = max(tgt_length - 1, 1)
    return {((2 * j * (src_length - 1) + steps) // (2 * steps), j) for j in range(tgt_length)}


def symmetrise(forward: set[Link], backward: set[Link], method: str) -> set[Link]:
    """One alignment out of two directions' (Koehn et al. 2003), both given as (source, target).

    method: "intersection", "union" or "grow-diag-final-and". Links are visited in sorted order, as
    the result can depend on it.
    """
    both, either = forward & backward, forward | backward
    if method == "intersection":
        return both
    if method == "union":
        return either
    if method != "grow-diag-final-and":
        raise ValueError(
            f"no symmetrisation is called {method!r}: use intersection, union or "
            "grow-diag-final-and"
        )
    links = set(both)
    sources, targets = {i for i, _ in links}, {j for _, j in links}

    def add(i: int, j: int) -> None:
        links.add((i, j))
        sources.add(i)
        targets.add(j)

    grown = True
    while grown:
        before = len(links)
        for i, j in sorted(links):
            for di, dj in ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)):
                new = (i + di, j + dj)
                if new in either and (new[0] not in sources or new[1] not in targets):
                    add(*new)
        grown = len(links) > before
    for direction in (forward, backward):
        for i, j in sorted(direction):
            if i not in sources and j not in targets:
                add(i, j)
    return links


class Gold(NamedTuple):
    """A sentence's gold links; the sure ones are among the possible ones."""

    sure: frozenset[Link]
    possible: frozenset[Link]


class AlignmentScores(NamedTuple):
    """Och & Ney 2003, as shares of 1, over all sentences; None where nothing is there to score.

    aer_crossing and aer_diagonal divide the target words in two: those with a sure link that
    crosses another sure link of the sentence, and the rest. Gold and found links go with their
    target word, so that the two parts together are the whole. A diagonal wins the easy part.
    """

    aer: float | None
    precision: float | None
    recall: float | None
    aer_crossing: float | None
    aer_diagonal: float | None
    sentences: int


def read_gold(
    lines: Iterable[str],
    *,
    one_based: bool = False,
    lengths: Sequence[tuple[int, int]] | None = None,
    name: str = "gold links",
) -> list[Gold]:
    """Gold alignments from Pharaoh lines: "i-j" is a sure link, "ipj" only a possible one.

    lengths: (source words, target words) of each sentence, to check the links against.
    """
    lines = list(lines)
    if lengths is not None and len(lengths) != len(lines):
        raise ValueError(f"{name}: {len(lines)} lines for {len(lengths)} sentences")
    gold = []
    for number, line in enumerate(lines, 1):
        try:
            gold.append(_gold(line, int(one_based), lengths[number - 1] if lengths else None))
        except ValueError as error:
            raise ValueError(f"{name}, line {number}: {error}") from None
    return gold


def _gold(line: str, base: int, lengths: tuple[int, int] | None) -> Gold:
    sure, possible = set(), set()
    for item in line.split():
        match = _LINK.fullmatch(item)
        if not match:
            raise ValueError(f"{item!r} is not a link such as 0-0 (sure) or 0p0 (possible)")
        link = (int(match[1]) - base, int(match[3]) - base)
        if min(link) < 0:
            raise ValueError(f"link {item} counts from 0, where links were said to count from 1")
        for index, length, side in zip(link, lengths or (), ("source", "target"), strict=False):
            if index >= length:
                hint = "" if base else "; do the links count from 1?"
                raise ValueError(f"link {item} is beyond the {length} {side} words{hint}")
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return Gold(frozenset(sure), frozenset(possible))


def crossing_links(links: Iterable[Link]) -> set[Link]:
    """The links that cross another: one's source word comes first, the other's target word."""
    links = set(links)
    return {(i, j) for i, j in links if any((i - k) * (j - m) < 0 for k, m in links)}


def score_links(found: Sequence[set[Link]], gold: Sequence[Gold]) -> AlignmentScores:
    """Alignment error rate, precision and recall of the links found in all sentences."""
    if len(found) != len(gold):
        raise ValueError(f"{len(found)} alignments cannot be scored against {len(gold)}")
    counts = np.zeros((2, 4), dtype=int)  # (crossing and the rest; |A|, |S|, |A and S|, |A and P|)
    for links, (sure, possible) in zip(found, gold, strict=True):
        crossing = {j for _, j in crossing_links(sure)}  # target words
        for part in (0, 1):
            a, s, p = (
                {link for link in kind if (link[1] in crossing) == (part == 0)}
                for kind in (links, sure, possible)
            )
            counts[part] += (len(a), len(s), len(a & s), len(a & p))
    size, sure_size, sure_found, possible_found = counts.sum(0).tolist()
    return AlignmentScores(
        aer=_error_rate(counts.sum(0)),
        precision=possible_found / size if size else None,
        recall=sure_found / sure_size if sure_size else None,
        aer_crossing=_error_rate(counts[0]),
        aer_diagonal=_error_rate(counts[1]),
        sentences=len(gold),
    )


def _error_rate(counts: np.ndarray) -> float | None:
    """AER = 1 - (|A and S| + |A and P|) / (|A| + |S|)."""
    size, sure_size, sure_found, possible_found = counts.tolist()
    total = size + sure_size
    return 1 - (sure_found + possible_found) / total if total else None
