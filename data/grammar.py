"""A generated English-French corpus with gold word alignments: no download, any size and length.

The sentences come from data/generator/ and the lexicon in data/lexicon/. Alignments are sure links
over the words of evaluation.alignment.words, by these rules:

- every French word is linked, content and function words and punctuation alike;
- a word that translates several is linked to all: "will eat" to "mangera", "not" to "ne" and "pas",
  "of the" to "du", "signed" to "a signé", "is eating" to "mange", "was signed": was to "a été";
- a French word without an English counterpart (an article, "de" in a compound, "se" of a verb) is
  linked to the content word that calls for it: "peace treaty": peace to "de paix", "Italy": to
  "l'Italie", "the doctor's house": house to "la maison", 's and the to "du";
- an English word without a French counterpart is linked to the French word that does its work
  ("to eat" to "manger", "does" to the verb), or to none (the "and" of "two hundred and fifty").
"""

import gc
import hashlib
import random
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import ClassVar

from data.corpus import Corpus
from data.generator.adjuncts import MONTHS
from data.generator.determiners import determiner_index
from data.generator.fragments import english, finish, french, phrase
from data.generator.nouns import held_out_pairs
from data.generator.sentences import Sentences
from data.generator.verbs import AFFIRMATIVE, PAST
from data.pair import Pair

FIGURE_3A = "The agreement on the European Economic Area was signed in August 1992."
SHARE = 20  # of so many sources one belongs to dev and one to test, by a stable hash
BATCH = 250  # sentences made in one go
PATIENCE = 20_000  # sentences made without a new one for the split, before it is given up


@contextmanager
def uncollected() -> Iterator[None]:
    """The garbage collector waits: nothing made here refers to itself, and looking is slow."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


@cache
def generator(compose: bool, share: float = 1.0) -> Sentences:
    """The generator, made once; what it remembers between sentences changes none of them."""
    with uncollected():
        return Sentences(compose, share)


def source_key(source: str) -> str:
    """A sentence without case and punctuation: sources alike in it are the same sentence.

    Each ends with its mark, and has no other but commas and apostrophes.
    """
    return source[:-1].replace(",", "").replace("'", "").lower()


def side(key: str) -> str:
    """The split ("train", "dev" or "test") of the sources of a key, by a stable hash."""
    digest = zlib.crc32(key.encode("utf-8"))
    return ("dev", "test")[digest % SHARE] if digest % SHARE < 2 else "train"


def fingerprint(key: str) -> bytes:
    """What is remembered of a key, so that sources are distinct: 8 bytes, alike by chance alone.

    Of ten million keys two are alike with a probability of 3 in a million; one is then left out.
    """
    return hashlib.blake2b(key.encode("utf-8"), digest_size=8).digest()


@dataclass(frozen=True, kw_only=True)
class Grammar(Corpus):
    """Generated sentences; see configs/data/grammar.yaml for the keys."""

    seed: int
    sizes: Mapping[str, int]  # pairs of each split
    min_words: int  # source words (between spaces): every length to max_words is as frequent
    max_words: int
    long_min_words: int  # the same of test_long
    long_max_words: int
    lexicon: float  # share of the nouns, names, adjectives and verbs that are used

    splits: ClassVar[tuple[str, ...]] = ("train", "dev", "test", "test_long", "test_compose")
    normal: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.source is not None:
            raise ValueError("data.source must be null: the grammar corpus is generated, not read")
        if set(self.sizes) != set(self.splits):
            raise ValueError(f"data.sizes needs one number for each of {', '.join(self.splits)}")
        for split, size in self.sizes.items():
            if type(size) is not int or size < 1:
                raise ValueError(f"data.sizes.{split} is a positive whole number, not {size!r}")
        if not isinstance(self.lexicon, int | float) or not 0.15 <= self.lexicon <= 1:
            raise ValueError(f"data.lexicon is a share from 0.15 to 1, not {self.lexicon!r}")
        lengths = self.min_words, self.max_words, self.long_min_words, self.long_max_words
        if not 3 <= lengths[0] <= lengths[1] < lengths[2] <= lengths[3] <= 80:
            raise ValueError(
                "data: 3 <= min_words <= max_words < long_min_words <= long_max_words <= 80 must"
                f" hold, not {', '.join(map(str, lengths))}"
            )

    def read(self, split: str) -> Iterator[Pair]:
        """The pairs of a split with their links, made afresh from the seed.

        Distinct sources. None of dev or test is in train, by `side`; those of test_long are
        longer, those of test_compose have a combination that train has not.
        """
        sentences = generator(split == "test_compose", self.lexicon)
        rnd = random.Random(f"{self.seed} {split}").random
        low, high = self.min_words, self.max_words
        if split == "test_long":
            low, high = self.long_min_words, self.long_max_words
        belongs = self._filter(split, sentences)
        seen = {fingerprint(source_key(FIGURE_3A))}
        missing = self.sizes[split]
        tries = 0
        while missing > 0:
            found = _batch(sentences, rnd, low, high, seen, belongs)
            tries = 0 if found else tries + BATCH
            if tries > PATIENCE:
                raise ValueError(
                    f"data.sizes.{split}: {self.sizes[split]} distinct sentences of {low} to {high}"
                    " words cannot be found; ask for fewer or longer ones"
                )
            yield from found[:missing]
            missing -= len(found)

    def _filter(self, split: str, sentences: Sentences) -> Callable[[str, str], bool]:
        """Which sources, with their keys, may be in the split."""
        if split == "test_long":
            return lambda src, key: True
        if split == "test_compose":
            novel = held_out_pairs(sentences.nouns)
            marks = str.maketrans("", "", ",.?")
            return lambda src, key: not novel.isdisjoint(pairwise(src.translate(marks).split()))
        return lambda src, key: side(key) == split


def _batch(
    sentences: Sentences,
    rnd: Callable[[], float],
    low: int,
    high: int,
    seen: set[bytes],
    belongs: Callable[[str, str], bool],
) -> list[Pair]:
    """New pairs of `low` to `high` words that belong to the split: of a batch, those that do.

    The French and the links are made for these alone.
    """
    sentences.rnd = rnd
    pairs = []
    with uncollected():
        for _ in range(BATCH):
            parts, mark, words = sentences.sentence(low + int(rnd() * (high - low + 1)))
            if low <= words <= high:
                src = english(parts, mark)
                key = source_key(src)
                if belongs(src, key) and (known := fingerprint(key)) not in seen:
                    seen.add(known)
                    pairs.append(Pair(src, *french(parts, mark)))
    return pairs


def figure_3a() -> Pair:
    """The sentence of figure 3a in Bahdanau et al. (2015), which no split contains.

    It is put together from the parts that other sentences are made of, so that it shows what the
    model has learnt of them.
    """
    parts = generator(compose=False)
    items = {item.en: item for item in reversed(parts.nouns.items)}
    agreement, area = items["agreement"], items["European Economic Area"]
    the = determiner_index("the")
    noun = agreement.bases[0].plain
    sign = next(frame for frame in parts.frames.all if frame.verb.en == "sign")
    month, mois = MONTHS[7]
    out = [
        parts.plain[the][noun.shape],
        noun,
        parts.nouns.preposition("on", "sur")[the][area.fixed.shape],
        area.fixed,
        parts.verb(sign, PAST, AFFIRMATIVE, agreement.feature, passive=True),
        phrase(f"in {month} 1992", f"en/0 {mois}/1 1992/2"),
    ]
    return Pair(*finish(out, "."))
