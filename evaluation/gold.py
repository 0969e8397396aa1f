"""Gold alignments: sentences, their words and the links that people or a grammar gave them.

Two formats are read. Pharaoh lines ("0-0 1p2", a file of text beside them) and JSON lines, one
object a sentence, which hold words and links: {"src_words": [...], "tgt_words": [...],
"alignment": [[0, 0], ...]}.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from evaluation.links import Gold, transposed

# The 447 sentences of the Canadian Hansards that Och & Ney (2000) aligned, as they were published
# for the shared task of Mihalcea & Pedersen (2003): sentences, sure links, links only possible.
HANSARDS = (447, 4_038, 13_400)
# Alignment error rates on them in per cent.
PUBLISHED = {
    "fast_align": 10.5,
    "eflomal": 8.2,
    "GIZA++": 5.9,
    "awesome-align, as pretrained": 5.6,
    "awesome-align, fine-tuned": 4.1,
}
PUBLISHED_BY = (
    "published: Dou & Neubig 2021, of both directions combined; the first three learnt from 1.1 "
    "million pairs of the same debates"
)

_LINK = re.compile(r"(\d+)([-p])(\d+)", re.ASCII)

Words = list[tuple[list[str], list[str]]]  # of source and target of each sentence


class AlignedText(NamedTuple):
    """Sentences in both languages with their words and gold links."""

    sources: list[str]
    targets: list[str]
    words: Words
    gold: list[Gold]

    @classmethod
    def of_words(cls, words: Words, gold: list[Gold]) -> "AlignedText":
        """Text that is known as words alone: sentences have spaces between them."""
        sources, targets = ([" ".join(pair[side]) for pair in words] for side in (0, 1))
        return cls(sources, targets, words, gold)

    def reversed(self) -> "AlignedText":
        """The same for the other direction of translation."""
        words = [(tgt, src) for src, tgt in self.words]
        gold = [
            Gold(frozenset(transposed(g.sure)), frozenset(transposed(g.possible)))
            for g in self.gold
        ]
        return AlignedText(self.targets, self.sources, words, gold)

    def size(self) -> tuple[int, int, int]:
        """How many sentences, sure links, and links that are only possible."""
        sure = sum(len(g.sure) for g in self.gold)
        return len(self.gold), sure, sum(len(g.possible) for g in self.gold) - sure


def published(text: AlignedText) -> dict[str, float]:
    """Error rates of others in per cent, where the text is one that others have been scored on."""
    return PUBLISHED if text.size() == HANSARDS else {}


def read(
    lines: Sequence[str],
    text: Iterable[str] | None,
    normalise: Callable[[str], str],
    *,
    one_based: bool = False,
    names: tuple[str, str] = ("gold", "text"),
) -> AlignedText:
    """Gold links and their words in either format, which is told by the content.

    text: the words beside Pharaoh lines; names: of lines and text, for messages.
    """
    kind = {"one_based": one_based, "name": names[0]}
    if is_json_lines(lines):
        if text is not None:
            raise ValueError(f"{names[0]} holds words as well as links: leave out --text")
        words, gold = read_json_lines(lines, **kind)
        words = [([*map(normalise, src)], [*map(normalise, tgt)]) for src, tgt in words]
    else:
        if text is None:
            raise ValueError(f"{names[0]} holds links alone: give their words as --text FILE")
        words = read_words(map(normalise, text), name=names[1])
        gold = read_gold(lines, lengths=lengths(words), **kind)
    if not words:
        raise ValueError(f"{names[0]} holds no sentence")
    return AlignedText.of_words(words, gold)


def read_words(lines: Iterable[str], name: str = "text") -> Words:
    """The words between spaces of lines "source words ||| target words"."""
    words: Words = []
    for number, line in enumerate(lines, 1):
        sides = line.split("|||")
        if len(sides) != 2:
            raise ValueError(f"{name}, line {number}: expected source ||| target")
        words.append((sides[0].split(), sides[1].split()))
    return words


def lengths(words: Words) -> list[tuple[int, int]]:
    """How many words each sentence has on either side."""
    return [(len(src), len(tgt)) for src, tgt in words]


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
            items = [_pharaoh(item) for item in line.split()]
            gold.append(_gold(items, int(one_based), lengths[number - 1] if lengths else None))
        except ValueError as error:
            raise ValueError(f"{name}, line {number}: {error}") from None
    return gold


def is_json_lines(lines: Sequence[str]) -> bool:
    """Whether the first line with anything in it begins a JSON object."""
    return next((line for line in lines if line.strip()), "").lstrip().startswith("{")


def read_json_lines(
    lines: Iterable[str], *, one_based: bool = False, name: str = "gold"
) -> tuple[Words, list[Gold]]:
    """Words and sure links from JSON lines; blank lines are nothing."""
    words, gold = [], []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            src, tgt, links = _sentence(line)
            items = [(i, "-", j) for i, j in links]
            gold.append(_gold(items, int(one_based), (len(src), len(tgt))))
        except ValueError as error:
            raise ValueError(f"{name}, line {number}: {error}") from None
        words.append((src, tgt))
    return words, gold


def _sentence(line: str) -> tuple[list[str], list[str], list[tuple[int, int]]]:
    """What a line of JSON says: source words, target words, links."""
    try:
        found: Any = json.loads(line)
        src, tgt, links = (found[key] for key in ("src_words", "tgt_words", "alignment"))
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON ({error.msg})") from None
    except RecursionError:
        raise ValueError("JSON that is nested too deeply") from None
    except (KeyError, TypeError):
        raise ValueError("expected an object with src_words, tgt_words and alignment") from None
    for words in (src, tgt):
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise ValueError("src_words and tgt_words are lists of strings")
    pairs = isinstance(links, list) and all(
        isinstance(link, list) and len(link) == 2 and all(type(i) is int for i in link)
        for link in links
    )
    if not pairs:
        raise ValueError("alignment is a list of pairs of whole numbers")
    return src, tgt, [(i, j) for i, j in links]


def _pharaoh(item: str) -> tuple[int, str, int]:
    match = _LINK.fullmatch(item)
    if not match:
        raise ValueError(f"{item!r} is not a link such as 0-0 (sure) or 0p0 (possible)")
    return int(match[1]), match[2], int(match[3])


def _gold(
    items: Iterable[tuple[int, str, int]], base: int, lengths: tuple[int, int] | None
) -> Gold:
    """Links that count from `base`: (source, "-" or "p", target)."""
    sure, possible = set(), set()
    for i, kind, j in items:
        link, shown = (i - base, j - base), f"link {i}{kind}{j}"
        if min(link) < 0:
            if base and min(i, j) == 0:
                raise ValueError(f"{shown} counts from 0, where links were said to count from 1")
            raise ValueError(f"{shown} has a negative number")
        for index, length, side in zip(link, lengths or (), ("source", "target"), strict=False):
            if index >= length:
                hint = "" if base else "; do the links count from 1?"
                raise ValueError(f"{shown} is beyond the {length} {side} words{hint}")
        possible.add(link)
        if kind == "-":
            sure.add(link)
    return Gold(frozenset(sure), frozenset(possible))
