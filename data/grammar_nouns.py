"""Noun phrases of the generated corpus: determiners, nouns with their adjectives, and names."""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product

from data.grammar_determiners import (
    ANY_NUMBER,
    DETERMINERS,
    NUMBER_CHOICES,
    SHAPES,
    determiner_index,
    number_words,
    prepositional,
    determiner,
)
from data.grammar_words import (
    Fragment,
    adjective_forms,
    annotated,
    article_a,
    english_plural,
    fragment,
    french_plural,
    read_table,
    starts_with_vowel,
)

HELD_OUT_SHARE = 20  # one adjective-noun combination in so many never occurs but in test_compose

def held_out(adjective: str, noun: str) -> bool:
    """Whether this combination is kept for test_compose, by a stable hash of the lemmas."""
    return zlib.crc32(f"{adjective} {noun}".encode()) % HELD_OUT_SHARE == 0


@dataclass
class Item:
    """A noun in one number, or a name: all that phrases with it are made of."""

    lemma: str
    noun_class: str
    feature: int
    en: str
    fr: list[str]
    determiners: list[int]  # indices into DETERMINERS
    doubles: list[int]  # the like of two English words
    place: dict[str, str]  # English preposition -> French one
    complement_specs: list[tuple[str, str, list[str]]]
    fixed: Fragment | None = None  # the core of a name
    cores: list[list] = field(
        default_factory=list
    )  # by number of modifiers: Fragment or its recipe
    complements: list[tuple[list, list]] = field(default_factory=list)  # (preposition, items)
    predicates: list[int] = field(default_factory=list)  # adjectives it may be said to be
    frames: dict[str, list] = field(default_factory=dict)  # what it may do, by kind of frame
    objects_of: list = field(default_factory=list)  # transitive frames it may be the object of


@dataclass(frozen=True)
class Adjective:
    """An adjective in both languages."""

    en: str
    forms: tuple[str, str, str, str, str]
    before_noun: bool
    predicate_only: bool
    layer: int
    selects: Callable[[Item], bool]


class Nouns:
    """All nouns and names with the modifiers that may stand with each.

    With `compose`, modifiers are the combinations held out for test_compose wherever a noun has
    some; without, they are all the others.
    """

    def __init__(self, compose: bool) -> None:
        self.compose = compose
        self.members: dict[str, list[str]] = {}
        self.class_determiners: dict[str, list[str]] = {}
        for name, content, *_ in read_table("classes.tsv"):
            words = content.split()
            if words[0] in self.members or words[0] in self.class_determiners:
                self.members[name] = words
            else:
                self.class_determiners[name] = words
        self.adjectives = [self._adjective(row) for row in read_table("adjectives.tsv")]
        self.compounds: dict[str, list[tuple[str, str]]] = {}
        for modifier, french, heads, *_ in read_table("compounds.tsv"):
            for head in heads.split():
                self.compounds.setdefault(head, []).append((modifier, french))
        self.items = self._nouns() + self._names()
        self.articles = self.preposition("", "")
        for item in self.items:
            self._modifiers(item)
            item.complements = [
                (self.preposition(en, fr), self.select(" ".join(classes)))
                for en, fr, classes in item.complement_specs
            ]

    def selector(self, text: str) -> Callable[[Item], bool]:
        """Whether an item is meant by classes, shorthands and "class=noun" in a lexicon column."""
        classes, lemmas = set(), set()
        todo = text.split()
        while todo:
            word = todo.pop()
            name, _, lemma = word.partition("=")
            if lemma:
                lemmas.add(lemma)
            elif word in self.members:
                todo += self.members[word]
            elif word in self.class_determiners:
                classes.add(word)
            else:
                raise ValueError(f"{word!r} in the lexicon is no class of classes.tsv")
        return lambda item: item.noun_class in classes or item.lemma in lemmas

    def select(self, text: str) -> list[Item]:
        """The items meant, singulars twice as often as plurals."""
        meant = self.selector(text)
        return [i for i in self.items if meant(i) for _ in range(1 if i.feature & 2 else 2)]

    _prepositions: dict[tuple[str, str], list[list[Fragment]]] = {}

    def preposition(self, en: str, fr: str) -> list[list[Fragment]]:
        """Fragments of a preposition with each determiner and shape; no preposition for ""."""
        key = (en, fr)
        if key not in self._prepositions:
            rows = product(DETERMINERS, range(SHAPES))
            if en:
                made = [prepositional(en, fr, kind, shape) for kind, shape in rows]
            else:
                made = [fragment(*determiner(kind, shape)) for kind, shape in rows]
            self._prepositions[key] = [
                made[start : start + SHAPES] for start in range(0, len(made), SHAPES)
            ]
        return self._prepositions[key]

    def _adjective(self, row: Sequence[str]) -> Adjective:
        selects = self.selector(row[4])
        return Adjective(
            row[0], adjective_forms(row), row[2] == "pre", row[2] == "pred", int(row[3]), selects
        )

    def _nouns(self) -> list[Item]:
        items = []
        for en, fr, gender, kind, en_plural, fr_plural, place, complement in read_table(
            "nouns.tsv"
        ):
            kinds = self.class_determiners[kind]
            places = dict(p.split(":") for p in place.split(",")) if place not in ("", "-") else {}
            specs = []
            for part in complement.split(";") if complement not in ("", "-") else []:
                en_prep, fr_prep, classes = part.split(":")
                specs.append((en_prep, fr_prep, classes.split(",")))
            words = fr.split()
            forms = [(0, en, words)]
            if en_plural != "0":
                many = en_plural if en_plural not in ("", "-") else english_plural(en)
                regular = [french_plural(words[0]), *words[1:]]
                forms.append(
                    (2, many, fr_plural.split() if fr_plural not in ("", "-") else regular)
                )
            for number, english, french in forms:
                skip = "-" if number else "+"
                names = [k.strip("+-") for k in kinds if not k.startswith(skip)]
                doubles = [] if kind in ("topic", "kin", "foodmass", "drink") else ["other", "same"]
                if doubles:
                    doubles += ["all", "all"] if number else ["first", "last", "second", "third"]
                items.append(
                    Item(
                        en,
                        kind,
                        number + (gender == "f"),
                        english,
                        french,
                        [determiner_index(name) for name in names],
                        [determiner_index(name) for name in doubles],
                        places,
                        specs,
                    )
                )
        return items

    def _names(self) -> list[Item]:
        items = []
        for en, fr, gender, kind, place, *_ in read_table("names.tsv"):
            feature = ("m", "f", "mp", "fp").index(gender)
            words = annotated(fr) if "/" in fr else [(fr, (0,))]
            shape = shape_of(feature, words[0][0], False, en)
            fixed = fragment(en.split(), words, shape)
            kinds = ["the"] if kind in ("inst", "zone") else self.class_determiners[kind]
            where = {"in": "en" if place else "à", "to": "en" if place else "à"}
            places = where if kind in ("city", "country") else {}
            dets = [determiner_index(kinds[0])]
            items.append(Item(en, kind, feature, en, [fr], dets, [], places, [], fixed))
        return items

    def _modifiers(self, item: Item) -> None:
        """Fills the item's predicates and its recipes of unmodified and singly modified cores."""
        meant = [i for i, a in enumerate(self.adjectives) if a.selects(item)]
        kept = [i for i in meant if not held_out(self.adjectives[i].en, item.lemma)]
        item.predicates = [i for i in kept if self.adjectives[i].layer < 5]
        if item.fixed is not None:
            item.cores = [[item.fixed], [], [], []]
            return
        before = [i for i in meant if not self.adjectives[i].predicate_only]
        held = {i for i in before if held_out(self.adjectives[i].en, item.lemma)}
        compounds = self.compounds.get(item.lemma, [])
        singles = [((i,), None) for i in before] + [((), c) for c in compounds]
        stacks = [(i, j) for i, j in product(before, before) if self._stack(i, j)]
        pairs = [(pair, None) for pair in stacks]
        pairs += [
            ((i,), c)
            for i, c in product(before, compounds)
            if self.adjectives[i].before_noun or self.adjectives[i].layer == 5
        ]
        inner = {i: [k for j, k in stacks if j == i] for i in before}
        triples = [
            ((i, j, k), None)
            for i, j in stacks
            if self.adjectives[i].before_noun and not self.adjectives[j].before_noun
            for k in inner[j]
        ]
        item.cores = [[((), None)], *(self._allowed(r, held) for r in (singles, pairs, triples))]

    def _stack(self, outer: int, inner: int) -> bool:
        """Whether two adjectives may stand together, in this English order."""
        first, second = self.adjectives[outer], self.adjectives[inner]
        if first.layer >= second.layer:
            return False
        if second.before_noun:
            return first.en == "beautiful" and second.en in ("small", "old")
        if first.before_noun:
            return second.layer >= 4 or first.layer == 1
        return second.layer >= 4

    def _allowed(self, recipes: list, held: set[int]) -> list:
        """The recipes of this split; held-out ones where `compose` finds some."""
        out, free = [], []
        for recipe in recipes:
            (free if held.isdisjoint(recipe[0]) else out).append(recipe)
        return out if self.compose and out else free

    def core(self, item: Item, modifiers: int, pick: int) -> Fragment:
        """The noun with its modifiers, made from its recipe at first use."""
        choices = item.cores[modifiers]
        made = choices[pick]
        if made.__class__ is not Fragment:
            made = choices[pick] = self._build(item, *made)
        return made

    def _build(
        self, item: Item, adjectives: tuple[int, ...], compound: tuple[str, str] | None
    ) -> Fragment:
        chosen = [self.adjectives[i] for i in adjectives]
        english = [a.en for a in chosen] + ([compound[0]] if compound else []) + [item.en]
        noun_place = len(english) - 1
        words = [(word, (noun_place,)) for word in item.fr]
        if compound:
            parts = compound[1].replace("d'", "d' ").split()
            words += [(word, (noun_place - 1,)) for word in parts]
        for place, adjective in reversed(list(enumerate(chosen))):
            if adjective.before_noun:
                form = adjective.forms[item.feature]
                if item.feature == 0 and starts_with_vowel(words[0][0]):
                    form = adjective.forms[4]
                words.insert(0, (form, (place,)))
            else:
                words.append((adjective.forms[item.feature], (place,)))
        first = any(a.before_noun for a in chosen)
        shape = shape_of(item.feature, words[0][0], first, english[0])
        return fragment(english, words, shape)


def shape_of(feature: int, french: str, adjective_first: bool, english: str) -> int:
    """What determiners agree with, as one number (see SHAPES)."""
    vowel = 4 if starts_with_vowel(french) else 0
    return feature + vowel + 8 * adjective_first + 16 * (article_a(english) == "an")


def held_out_pairs(nouns: Nouns) -> set[tuple[str, str]]:
    """English adjective and noun, as they stand in a sentence, of the held-out combinations."""
    return {
        (adjective.en, item.en)
        for item in nouns.items
        for adjective in nouns.adjectives
        if adjective.selects(item) and held_out(adjective.en, item.lemma)
    }
