"""A generated English-French corpus with gold word alignments: no download, any size and length."""

import random
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from data.corpus import Corpus, Pair
from data.grammar_nouns import held_out_pairs
from data.grammar_sentences import Clauses

FIGURE_3A = "The agreement on the European Economic Area was signed in August 1992."
SIDES = 16  # one in so many sources belongs to dev, one to test, by a stable hash


def source_side(source: str) -> str:
    """The split ("train", "dev" or "test") that a sentence belongs to, wherever it is made.

    A stable hash of its letters: case and punctuation do not count.
    """
    key = "".join(char for char in source.lower() if char not in ",.?'")
    return {0: "dev", 1: "test"}.get(zlib.crc32(key.encode()) % SIDES, "train")


@dataclass(frozen=True, kw_only=True)
class Grammar(Corpus):
    """Generated sentences; see configs/data/grammar.yaml for the keys."""

    seed: int
    sizes: dict[str, int]  # pairs of each split
    min_words: int  # source words between spaces; every length is about equally frequent
    max_words: int
    long_min_words: int  # the same of test_long
    long_max_words: int

    splits: ClassVar[tuple[str, ...]] = ("train", "dev", "test", "test_long", "test_compose")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.source is not None:
            raise ValueError("data.source must be null: the grammar corpus is generated, not read")
        if set(self.sizes) != set(self.splits):
            raise ValueError(f"data.sizes has one number for each of {', '.join(self.splits)}")
        if not 3 <= self.min_words <= self.max_words < self.long_min_words <= self.long_max_words:
            raise ValueError(
                "data: 3 <= min_words <= max_words < long_min_words <= long_max_words must hold, not"
                f" {self.min_words}, {self.max_words}, {self.long_min_words}, {self.long_max_words}"
            )

    def read(self, split: str) -> Iterator[Pair]:
        """The pairs of a split with their links, made afresh from the seed."""
        rng = random.Random(f"{self.seed} {split}")
        clauses = Clauses(compose=split == "test_compose")
        clauses.rnd = rnd = rng.random
        low, high = self.min_words, self.max_words
        if split == "test_long":
            low, high = self.long_min_words, self.long_max_words
        belongs = self._filter(split, clauses)
        seen = {FIGURE_3A.lower()}
        missing = self.sizes[split]
        while missing:
            wanted = low + int(rnd() * (high - low + 1))
            src, tgt, links, words = clauses.sentence(wanted)
            if abs(words - wanted) > 2 or not low <= words <= high or not belongs(src):
                continue
            key = src.lower()
            if key in seen:
                continue
            seen.add(key)
            missing -= 1
            yield Pair(src, tgt, links)

    def _filter(self, split: str, clauses: Clauses) -> Callable[[str], bool]:
        """Which sources may be in the split; longer ones are never in training."""
        if split == "test_long":
            return lambda src: True
        if split == "test_compose":
            novel = held_out_pairs(clauses.nouns)
            return lambda src: any(pair in novel for pair in _bigrams(src))
        return lambda src: source_side(src) == split


def _bigrams(sentence: str) -> list[tuple[str, str]]:
    words = sentence.replace(",", "").rstrip(".?").split()
    return list(zip(words, words[1:], strict=False))
