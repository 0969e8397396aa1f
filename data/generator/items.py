"""Nouns, names and adjectives as the generator holds them, and what is worked out for each once."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from data.generator.determiners import Preposition
from data.generator.fragments import Fragment, Places, Words, fragment, same, starts_with_vowel
from data.generator.inflection import article_a

# A way to make a noun phrase: determiner, number of modifiers, place among the item's complements
# (-1: none), words left for that.
Way = tuple[int, int, int, int]
# Adjectives, which of the item's bases they modify, and their words once made, by agreement.
Recipe = tuple[tuple[int, ...], int, list]


@dataclass(frozen=True)
class Adjective:
    """An adjective in both languages."""

    en: str
    forms: tuple[str, ...]  # m, f, mp, fp, m before a vowel
    place: str  # pre, post, attr or pred: see adjectives.tsv
    layer: int  # order among English adjectives
    selects: Callable[["Item"], bool]

    @property
    def before_noun(self) -> bool:
        """Whether it stands before the noun in French."""
        return self.place in ("pre", "attr")


class Base(NamedTuple):
    """A noun, or a compound of one, that adjectives are put around."""

    plain: Fragment
    links: list[Places]  # by 4 * adjectives before it in French + adjectives after it


@dataclass(eq=False, slots=True)
class Item:
    """A noun in one number, a name, or a pronoun: all that phrases about it are made of."""

    lemma: str
    noun_class: str
    feature: int  # see inflection.py
    en: str = ""
    fr: list[str] = field(default_factory=list)
    determiners: list[int] = field(default_factory=list)  # places in DETERMINERS
    doubles: list[int] = field(default_factory=list)  # those of two English words
    place: dict[str, str] = field(default_factory=dict)  # English preposition -> French one
    complement_specs: list[tuple[str, str, str]] = field(default_factory=list)
    fixed: Fragment | None = None  # the name, if it is one
    bases: list[Base] = field(default_factory=list)  # the noun, then compounds of it
    cores: list[list[Recipe]] = field(default_factory=list)  # by number of modifiers
    complements: list[tuple[Preposition, list["Item"]]] = field(default_factory=list)
    predicates: list[int] = field(default_factory=list)  # adjectives that it may be said to be
    frames: list = field(default_factory=list)  # what it may do (frames.py)
    tables: list = field(default_factory=list)  # these by mode and number of words
    actions: list = field(default_factory=list)  # what it may want, decide, learn ... to do
    objects_of: list = field(default_factory=list)  # verbs that it may be the direct object of
    ways: list[list[Way]] = field(default_factory=list)  # of noun phrases, by number of words


def base(item: Item, compound: tuple[str, str] | None) -> Base:
    """The noun alone, or with a compound's English modifier and French complement."""
    english = [*([compound[0]] if compound else []), item.en]
    words: Words = [(word, (len(english) - 1,)) for word in item.fr]
    if compound:
        words += [(word, (0,)) for word in compound[1].replace("d'", "de ").split()]
    shape = shape_of(item.feature, item.fr[0], english[0])
    plain = fragment(english, words, shape)
    return Base(plain, [_links(plain, first, last) for first in range(4) for last in range(4)])


def _links(plain: Fragment, first: int, last: int) -> Places:
    """The links of a noun with so many adjectives before it and after it in French."""
    count = first + last
    links = [(k << 8) + k for k in range(first)]
    end = first + (plain.size & 255) + last
    links += [((first + k) << 8) + end - 1 - k for k in range(last)]
    links += [link + (count << 8) + first for link in plain.links]
    return same(tuple(sorted(links)))


def shape_of(feature: int, french: str, english: str) -> int:
    """What determiners agree with before a noun, as one number (see determiners.py)."""
    return feature + 4 * starts_with_vowel(french) + 16 * (article_a(english) == "an")
