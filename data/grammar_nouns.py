"""Noun phrases of the generated corpus: determiners, nouns with their adjectives, and names."""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product

from data.grammar_words import (
    CONSONANT,
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

SHAPES = 32  # gender and number 0..3, +4 French vowel, +8 French adjective first, +16 English vowel
HELD_OUT_SHARE = 20  # one adjective-noun combination in so many never occurs but in test_compose

UNITS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
UNITS = [*UNITS.split(), *"fifteen sixteen seventeen eighteen nineteen".split()]
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
UNITÉS = "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze"
UNITÉS = [*UNITÉS.split(), "seize", "dix-sept", "dix-huit", "dix-neuf"]
DIZAINES = "vingt trente quarante cinquante soixante".split()

POSSESSIVES = {
    "my": ("mon", "ma", "mes"),
    "his": ("son", "sa", "ses"),
    "her": ("son", "sa", "ses"),
    "our": ("notre", "notre", "nos"),
    "their": ("leur", "leur", "leurs"),
}
CONTRACTED = {("de", "le"): "du", ("de", "les"): "des", ("à", "le"): "au", ("à", "les"): "aux"}
ORDINALS = {
    "first": ("premier", "première"),
    "last": ("dernier", "dernière"),
    "second": ("deuxième", "deuxième"),
    "third": ("troisième", "troisième"),
}


def held_out(adjective: str, noun: str) -> bool:
    """Whether this combination is kept for test_compose, by a stable hash of the lemmas."""
    return zlib.crc32(f"{adjective} {noun}".encode()) % HELD_OUT_SHARE == 0


def number_words(
    number: int, feminine: bool
) -> tuple[list[str], list[tuple[str, tuple[int, ...]]]]:
    """English and annotated French words of 2 to 9,999, as they stand before a noun."""
    if number >= 100:
        scale, en_scale, fr_scale = (
            (1000, "thousand", "mille") if number >= 1000 else (100, "hundred", "cent")
        )
        count, rest = divmod(number, scale)
        if scale == 100 and count > 1 and not rest:
            fr_scale = "cents"  # "deux cents" but "deux cent trois"
        head = [] if count == 1 else [(UNITÉS[count], (0,))]
        head.append((fr_scale, (0, 1) if count == 1 else (1,)))
        en = ["one" if count == 1 else UNITS[count], en_scale]
        if not rest:
            return en, head
        en_rest, fr_rest = number_words(rest, feminine)
        joint = ["and"] if rest < 100 else []
        shift = len(en) + len(joint)
        return en + joint + en_rest, head + [
            (word, tuple(i + shift for i in places)) for word, places in fr_rest
        ]
    if number < 20:
        return [UNITS[number]], [("une" if number == 1 and feminine else UNITÉS[number], (0,))]
    ten, unit = divmod(number, 10)
    english = TENS[ten - 2] + (f"-{UNITS[unit]}" if unit else "")
    if ten < 7:
        base, rest = DIZAINES[ten - 2], unit
    else:
        base, rest = ("soixante", number - 60) if ten == 7 else ("quatre-vingt", number - 80)
    one = "une" if feminine and rest == 1 else UNITÉS[rest]
    if not rest:
        words = ["quatre-vingts" if number == 80 else base]
    elif rest in (1, 11) and number < 80:
        words = [base, "et", one]
    else:
        words = [f"{base}-{one}"]
    return [english], [(word, (0,)) for word in words]


def determiner(kind: str, shape: int) -> tuple[list[str], list[tuple[str, tuple[int, ...]]]]:
    """English and annotated French words of a determiner before a noun phrase of this shape.

    Positions are from the determiner's start; a French article without an English counterpart
    is aligned with the noun that follows.
    """
    plural, feminine, adjective_first = shape & 2, shape & 1, shape & 8
    vowel = shape & 4
    the = "les" if plural else "l'" if vowel else "la" if feminine else "le"
    one = "une" if feminine else "un"
    de = "d'" if vowel else "de"
    if kind == "none":
        return [], []
    if kind == "zero":
        return [], [(the, (0,))]
    if kind == "the":
        return ["the"], [(the, (0,))]
    if kind == "a":
        return ["an" if shape & 16 else "a"], [(one, (0,))]
    if kind == "this":
        singular = "cette" if feminine else "cet" if vowel else "ce"
        return ["these" if plural else "this"], [("ces" if plural else singular, (0,))]
    if kind in POSSESSIVES:
        masculine, feminine_form, many = POSSESSIVES[kind]
        singular = feminine_form if feminine and not vowel else masculine
        return [kind], [(many if plural else singular, (0,))]
    if kind == "every":
        return ["every"], [("chaque", (0,))]
    if kind == "some":
        if plural:
            return ["some"], [(de if adjective_first else "des", (0,))]
        partitive = [("de", (0,)), (the, (0,))] if vowel or feminine else [("du", (0,))]
        return ["some"], partitive
    if kind == "several":
        return ["several"], [("plusieurs", (0,))]
    if kind == "many":
        return ["many"], [("beaucoup", (0,)), (de, (0,))]
    if kind == "all":
        return ["all", "the"], [("toutes" if feminine else "tous", (0,)), ("les", (1,))]
    if kind in ("a_not", "any"):
        return ["any" if kind == "any" else "an" if shape & 16 else "a"], [(de, (0,))]
    if kind == "no":
        return ["no"], [(de, (0,))]
    if kind in ORDINALS:
        form = ORDINALS[kind][feminine] + ("s" if plural else "")
        article = "les" if plural else "la" if feminine else "le"
        return ["the", kind], [(article, (0,)), (form, (1,))]
    if kind == "other":
        return ["the", kind], [
            ("les" if plural else "l'", (0,)),
            ("autres" if plural else "autre", (1,)),
        ]
    if kind == "same":
        article = "les" if plural else "la" if feminine else "le"
        return ["the", kind], [(article, (0,)), ("mêmes" if plural else "même", (1,))]
    return number_words(int(kind), bool(feminine))


SINGLE_DETERMINERS = (
    "none zero the a this my his her our their every some several many a_not any no"
)
DOUBLE_DETERMINERS = ("first", "last", "second", "third", "other", "same", "all")
NUMBERS = tuple(str(n) for n in (*range(2, 100), *range(100, 1000, 50), *range(1000, 10000, 1000)))
DETERMINERS = (*SINGLE_DETERMINERS.split(), *DOUBLE_DETERMINERS, *NUMBERS)
ANY_NUMBER = -1  # in place of an index into DETERMINERS: one of NUMBER_CHOICES
NUMBER_CHOICES = [  # one-word numbers, small ones oftener
    DETERMINERS.index(str(n)) for n in [*range(2, 13)] * 6 + [*range(13, 100)]
]


def determiner_index(name: str) -> int:
    """The place in DETERMINERS of a name in classes.tsv."""
    return ANY_NUMBER if name == "number" else DETERMINERS.index(name)


def prepositional(en_prep: str, fr_prep: str, kind: str, shape: int) -> Fragment:
    """The fragment of a preposition and a determiner, contracted where French contracts.

    A French preposition that English lacks ("-") is aligned with the English word before. "de0"
    and "en" take no article before the name of a feminine country.
    """
    en, fr = determiner(kind, shape)
    no_article = fr_prep == "de0" and (kind != "zero" or shape & 1)
    no_article |= fr_prep == "en" and shape & 1
    if no_article:
        en, fr = [], []
    elif fr_prep == "en":
        fr_prep = "à"
    fr_prep = fr_prep.removesuffix("0")
    preps = [] if en_prep == "-" else en_prep.split()
    shift = len(preps)
    own = tuple(range(shift)) or (-1,)
    rest = [(word, tuple(i + shift for i in places)) for word, places in fr]
    if fr_prep == "-":
        # An English preposition that French lacks is aligned with the verb's translation before.
        whole = fragment(preps + en, rest)
        return whole
    heads = fr_prep.split()
    last = heads[-1]
    vowel = rest and starts_with_vowel(rest[0][0]) or not rest and shape & 4
    if rest and rest[0][0] in ("des", "du", "de", "d'") and last == "de":
        if rest[0][0] in ("des", "du"):  # de + des, de + du: "de" alone
            rest = [("d'" if shape & 4 else "de", own + rest[0][1])]
        elif kind == "some":  # de + de la, de + de l', de + de (before an adjective)
            rest = [("d'" if shape & 4 else "de", own + rest[0][1])]
    elif rest and (last, rest[0][0]) in CONTRACTED:
        rest[0] = (CONTRACTED[last, rest[0][0]], own + rest[0][1])
    else:
        rest.insert(0, ("d'" if last == "de" and vowel else last, own))
    rest = [(word, own) for word in heads[:-1]] + rest
    return fragment(preps + en, rest)


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
