"""Parallel text: what a corpus is, how text is read and cleaned, how splits are drawn.

The rules that everything downstream relies on:

- one sentence a line, lines end at "\\n" and nowhere else (no other Unicode line separator);
- a pair blank on either side is dropped whole, so that pairing is never disturbed;
- `normalise` is the one text rule, the same in training, translation and scoring;
- automatic splits hash the source (`split_of`), so that all pairs of one source share a split.
"""

import hashlib
import logging
import re
import unicodedata
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import ClassVar

from tqdm import tqdm

from data.joining import MAX_JOIN, joined
from data.pair import Pair
from data.text import SPACE, count_lines, read_lines

logger = logging.getLogger(__name__)

# ’ ‘ ‛ ʼ ＇ ´: all stand for an apostrophe in running text.
APOSTROPHES = "\u2019\u2018\u201b\u02bc\uff07\u00b4"

MAX_MARKS = 30  # combining marks in a row, as in Unicode's stream-safe format (UAX 15, section 13)

# No combining mark comes before U+0300. Written as one and more: so it is searched faster.
_MAY_BE_MARKS = re.compile(rf"[\u0300-\U0010ffff][\u0300-\U0010ffff]{{{MAX_MARKS}}}")


@dataclass(frozen=True)
class ParallelCorpus:
    """Sentences and their translations, normalised, in the same order."""

    src: list[str]
    tgt: list[str]
    links: list[str] | None = None  # gold alignments, one Pharaoh line a pair: "0-0 1-2"
    extra_references: tuple[list[str], ...] = ()  # further translations of src, for scoring only

    def __post_init__(self) -> None:
        for side in (self.tgt, self.links, *self.extra_references):
            if side is not None and len(side) != len(self.src):
                raise ValueError(f"{len(self.src)} source sentences but {len(side)} beside them")

    def __len__(self) -> int:
        return len(self.src)


class _CharacterRule(dict[int, str]):
    """What becomes of each character, worked out at its first appearance (for str.translate)."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if char in APOSTROPHES:
            kept = "'"
        elif char == "\r":
            kept = ""
        elif char.isspace() or char == SPACE:
            kept = " "
        elif unicodedata.category(char) in ("Cc", "Cf", "Cs"):  # control, format, lone surrogate
            kept = ""
        else:
            kept = char
        self[code] = kept
        return kept


_CHARACTER_RULE = _CharacterRule()


def normalise(text: str) -> str:
    """The text under the project's one rule; applying it twice changes nothing.

    Composed accents (NFC); every Unicode space, tabulator, line separator or "▁" is a plain space;
    typographic apostrophes are "'"; byte-order marks, carriage returns, control, zero-width and
    other format characters (soft hyphen) are dropped; runs of spaces are one, none at the ends;
    of combining marks in a row, those after the 30th are dropped.
    """
    # Again: some accents decompose to a character of the rule, dropping may join an accent, and
    # composing may set marks free, so that there are too many once more.
    text = unicodedata.normalize("NFC", _few_marks(text)).translate(_CHARACTER_RULE)
    text, before = " ".join(text.split()), None
    while text != before:
        text, before = unicodedata.normalize("NFC", _few_marks(text)), text
    return text


def _few_marks(text: str) -> str:
    """The text with at most MAX_MARKS combining marks in a row: to sort n takes n^2 steps."""
    if text.isascii() or not _MAY_BE_MARKS.search(text):
        return text
    kept, marks = [], 0
    for char in text:
        marks = marks + 1 if unicodedata.combining(char) else 0
        if marks <= MAX_MARKS:
            kept.append(char)
    return "".join(kept)


def source_key(text: str) -> str:
    """The sentence as compared between splits: case, punctuation and spacing do not count."""
    text = normalise(text).casefold()
    words = "".join(char if char.isalnum() else " " for char in text).split()
    return " ".join(words) or text  # a sentence of punctuation alone stands for itself


def split_of(key: str, *, dev: float, test: float) -> str:
    """The split ("train", "dev" or "test") of a key: a stable hash, the same on every machine.

    `dev` and `test` are the shares of all keys.
    """
    digest = hashlib.sha256(key.encode("utf-8")).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    if place < test:
        return "test"
    return "dev" if place < test + dev else "train"


def reversed_pair(pair: Pair) -> Pair:
    """The pair with its sides exchanged, links as well; further references have no counterpart."""
    link = pair.link and re.sub(r"(\d+)([-p])(\d+)", r"\3\2\1", pair.link)
    return Pair(pair.tgt, pair.src, link)


def overlap(first: Iterable[str], second: Iterable[str]) -> int:
    """How many sentences of `second` also stand in `first`, compared by `source_key`."""
    keys = {source_key(sentence) for sentence in first}
    return sum(source_key(sentence) in keys for sentence in second)


def read_parallel(src: Path, tgt: Path) -> Iterator[Pair]:
    """The pairs of two files of the same number of lines, in bounded memory."""
    src_count, tgt_count = count_lines(src), count_lines(tgt)
    if src_count != tgt_count:
        raise ValueError(
            f"unequal line counts: {src} has {src_count}, {tgt} has {tgt_count};"
            " line N of one must translate line N of the other"
        )
    yield from map(Pair, read_lines(src), read_lines(tgt))


def read_tsv(path: Path) -> Iterator[Pair]:
    """The pairs of a file of source TAB target lines; further columns are not text.

    Rows without a TAB are left out and reported by number; blank rows are let through as
    blank pairs (`clean` counts and drops them).
    """
    malformed, first = 0, []
    try:
        for number, line in enumerate(read_lines(path), start=1):
            columns = line.split("\t")
            if len(columns) >= 2:
                yield Pair(columns[0], columns[1])
            elif line.strip():
                malformed += 1
                first += [number] if malformed <= 5 else []
            else:
                yield Pair("", "")
    finally:  # also where no more are asked for
        if malformed:
            shown = ", ".join(map(str, first)) + (", ..." if malformed > 5 else "")
            logger.warning("%s: %d rows without a TAB left out: %s", path, malformed, shown)


def clean(pairs: Iterable[Pair], max_words: int | None, dropped: Counter[str]) -> Iterator[Pair]:
    """The pairs normalised, without blank ones and those over `max_words` on either side."""
    for pair in pairs:
        src, tgt = normalise(pair.src), normalise(pair.tgt)
        if not src or not tgt:
            dropped["blank on a side"] += 1
        elif max_words is not None and max(len(src.split()), len(tgt.split())) > max_words:
            dropped[f"over {max_words} words"] += 1
        else:
            # A missing further reference is replaced by the first: it then changes no score.
            extra = tuple(normalise(reference) or tgt for reference in pair.extra_references)
            yield Pair(src, tgt, pair.link, extra)


@dataclass(frozen=True, kw_only=True)
class Corpus(ABC):
    """A corpus with its splits; its settings are those of configs/data/NAME.yaml."""

    source: str | None  # URL, archive or folder instead of the published place
    max_pairs: int | None  # the first N training pairs only
    max_train_words: int | None  # training pairs with more words on either side are left out
    reverse: bool = False  # French to English; runs older than the key have none
    join: int = 1  # up to so many consecutive pairs are joined to one; likewise

    splits: ClassVar[tuple[str, ...]] = ("train", "dev", "test")
    normal: ClassVar[bool] = False  # whether `read` gives text that `clean` would not change

    @property
    def languages(self) -> tuple[str, str]:
        """The codes of the source and the target language."""
        return ("fr", "en") if self.reverse else ("en", "fr")

    def __post_init__(self) -> None:
        if type(self.reverse) is not bool:
            raise ValueError(f"data.reverse is true or false, not {self.reverse!r}")
        for key in ("max_pairs", "max_train_words"):
            value = getattr(self, key)
            if value is not None and (type(value) is not int or value < 1):
                raise ValueError(f"data.{key} is a positive whole number or null, not {value!r}")
        if type(self.join) is not int or not 1 <= self.join <= MAX_JOIN:
            raise ValueError(f"data.join is a number from 1 to {MAX_JOIN}, not {self.join!r}")

    @abstractmethod
    def read(self, split: str) -> Iterable[Pair]:
        """The pairs of a split as they stand in the source; `stream` cleans them."""

    def origins(self) -> Iterable[Path]:
        """The files that are read for the splits; none where the pairs are generated."""
        return ()

    def stream(self, split: str) -> Iterator[Pair]:
        """The pairs of a split one by one, cleaned and normalised, in bounded memory.

        Limits apply to training pairs only. What was dropped is logged at the end.
        """
        name = type(self).__name__.lower()
        if split not in self.splits:
            raise ValueError(f"{name} has no split {split!r}; it has {', '.join(self.splits)}")
        train = split == "train"
        dropped: Counter[str] = Counter()
        raw = tqdm(self.read(split), f"{name} {split}", unit=" pairs", leave=False, disable=None)
        max_words = self.max_train_words if train else None
        limit = max_words if self.join == 1 else None
        cleaned = raw if self.normal and limit is None else clean(raw, limit, dropped)
        if self.reverse:
            cleaned = self._reversed(cleaned, split, dropped)
        if self.join > 1:
            cleaned = clean(joined(cleaned, self.join, split), max_words, dropped)
        count = 0
        for pair in islice(cleaned, self.max_pairs if train else None):
            count += 1
            yield pair
        reasons = "".join(f", {count} {reason}" for reason, count in dropped.items())
        if not count:
            raise ValueError(f"{name} {split}: no pair left to use (dropped{reasons or ': none'})")
        logger.info("%s %s: %d pairs (dropped%s)", name, split, count, reasons or ": none")

    def load(self, split: str) -> ParallelCorpus:
        """The pairs of a split, in memory."""
        src, tgt, links, extras = map(list, zip(*self.stream(split), strict=True))
        return ParallelCorpus(
            src,
            tgt,
            links if links[0] is not None else None,
            tuple(map(list, zip(*extras, strict=True))),
        )

    def _reversed(self, pairs: Iterable[Pair], split: str, dropped: Counter[str]) -> Iterator[Pair]:
        """The pairs from French to English, in the splits of the other direction.

        English sources are in one split each, but several may have the same French: what stands in
        dev or test is left out of train, and what stands in test out of dev.
        """
        later = {"train": ("dev", "test"), "dev": ("test",)}.get(split, ())
        held_out = {source_key(pair.tgt) for other in later for pair in self.read(other)}
        for pair in pairs:
            if held_out and source_key(pair.tgt) in held_out:
                dropped[f"with a source of {' or '.join(later)}"] += 1
            else:
                yield reversed_pair(pair)
