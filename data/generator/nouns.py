"""Nouns and names with what may modify them: adjectives, compounds, complements."""

import zlib
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import product

from data.generator.determiners import determiner_index, preposition
from data.generator.fragments import Fragment, annotated, fragment, starts_with_vowel
from data.generator.inflection import (
    adjective_forms,
    article_a,
    english_plural,
    first_of_each,
    french_plural,
    read_table,
)
from data.generator.items import Adjective, Item, Recipe, base, shape_of

SIZES = [(count << 8) + count for count in range(4)]  # of so many adjectives
HELD_OUT_SHARE = 20  # one adjective-noun combination in so many occurs in test_compose only


def held_out(adjective: str, noun: str) -> bool:
    """Whether this combination is kept for test_compose, by a stable hash of the lemmas."""
    return zlib.crc32(f"{adjective} {noun}".encode()) % HELD_OUT_SHARE == 0


class Nouns:
    """All nouns and names.

    With `compose`, modifiers are the combinations held out for test_compose wherever a noun has
    some; without, they are all the others. `share`: how much of the lexicon is used.
    """

    def __init__(self, compose: bool, share: float) -> None:
        self.compose, self.share = compose, share
        self.members: dict[str, list[str]] = {}
        self.class_determiners: dict[str, list[str]] = {}
        for name, content, *_ in read_table("classes.tsv"):
            words = content.split()
            known = (
                words[0].partition("=")[0] in self.members.keys() | self.class_determiners.keys()
            )
            (self.members if known else self.class_determiners)[name] = words
        self.adjectives = [
            Adjective(
                row[0],
                adjective_forms(row),
                row[2],
                int(row[3]),
                self.selector(row[4]),
            )
            for row in first_of_each(read_table("adjectives.tsv"), share, 2, 3)
        ]
        self.predicative = [  # adjectives after "be", by gender and number
            [fragment([adjective.en], [(form, (0,))]) for form in adjective.forms[:4]]
            for adjective in self.adjectives
        ]
        self.compounds: dict[str, list[tuple[str, str]]] = {}
        for modifier, french, heads, *_ in read_table("compounds.tsv"):
            for head in heads.split():
                self.compounds.setdefault(head, []).append((modifier, french))
        self.stacks = cache(self._stacks)
        self.preposition = cache(preposition)
        self.items = [*self._nouns(), *self._names()]
        for item in self.items:
            self._modifiers(item)
            item.complements = [
                (self.preposition(en, fr), self.select(classes))
                for en, fr, classes in item.complement_specs
            ]

    def selector(self, text: str) -> Callable[[Item], bool]:
        """Whether an item is meant by classes, shorthands and "class=noun" in a lexicon column."""
        classes, lemmas, excluded = set(), set(), set()
        todo = text.split()
        while todo:
            word = todo.pop()
            if word.startswith("-"):
                excluded.add(word[1:])
            elif "=" in word:
                lemmas.add(word.partition("=")[2])
            elif word in self.members:
                todo += self.members[word]
            elif word in self.class_determiners:
                classes.add(word)
            else:
                raise ValueError(f"{word!r} in the lexicon is no class of classes.tsv")
        return lambda item: (
            (item.noun_class in classes and item.lemma not in excluded) or item.lemma in lemmas
        )

    def select(self, text: str) -> list[Item]:
        """The items meant, singulars twice, so that they are chosen oftener than plurals."""
        meant = self.selector(text)
        return [i for i in self.items if meant(i) for _ in range(1 if i.feature & 2 else 2)]

    def _nouns(self) -> Iterable[Item]:
        for row in first_of_each(read_table("nouns.tsv"), self.share, 3):
            en, fr, gender, kind, en_plural, fr_plural, place, complement, *_ = row
            places = dict(part.split(":") for part in place.strip("-").split(",") if part)
            specs = []
            for part in complement.strip("-").split(";") if complement.strip("-") else []:
                en_prep, fr_prep, classes = part.split(":")
                specs.append((en_prep, fr_prep, classes.replace(",", " ")))
            words = fr.split()
            forms = [(0, en, words)]
            if en_plural != "0":
                many = [french_plural(words[0]), *words[1:]]
                many = fr_plural.split() if fr_plural not in ("", "-") else many
                forms.append((2, en_plural.strip("-") or english_plural(en), many))
            for number, english, french in forms:
                kinds = self.class_determiners[kind]
                kinds = [k.strip("+-") for k in kinds if not k.startswith("-" if number else "+")]
                doubles = ["other", "same"] if len(forms) == 2 and kind != "kin" else []
                if doubles:
                    doubles += ["all", "all"] if number else ["first", "last", "second", "third"]
                indices = [[determiner_index(k) for k in names] for names in (kinds, doubles)]
                feature = number + (gender == "f")
                yield Item(en, kind, feature, english, french, *indices, places, specs)

    def _names(self) -> Iterable[Item]:
        for en, fr, gender, kind, place, *_ in first_of_each(
            read_table("names.tsv"), self.share, 3
        ):
            feature = ("m", "f", "mp", "fp").index(gender)
            words = annotated(fr if "/" in fr else fr + "/0")
            fixed = fragment(en.split(), words, shape_of(feature, words[0][0], en))
            where = "en" if place else "à"
            places = {"in": where, "to": where} if kind in ("city", "country") else {}
            kinds = ["the"] if kind in ("inst", "zone") else self.class_determiners[kind]
            dets = [determiner_index(kinds[0])]
            yield Item(en, kind, feature, en, [fr], dets, [], places, [], fixed)

    def _modifiers(self, item: Item) -> None:
        """Fills the item's predicates and the recipes of its cores, by number of modifiers."""
        meant = [i for i, adjective in enumerate(self.adjectives) if adjective.selects(item)]
        held = {i for i in meant if held_out(self.adjectives[i].en, item.lemma)}
        item.predicates = [
            i
            for i in meant
            if i not in held and self.adjectives[i].place != "attr" and self.adjectives[i].layer < 5
        ]
        if item.fixed is not None:
            return
        compounds = self.compounds.get(item.lemma, [])
        item.bases = [base(item, compound) for compound in [None, *compounds]]
        before = tuple(i for i in meant if self.adjectives[i].place != "pred")
        singles, pairs, triples, outer = self.stacks(before)
        recipes: list[list[Recipe]] = [
            singles + [((), k, []) for k in range(1, len(item.bases))],
            pairs
            # Not "good chocolate cake" where "good chocolate" is held out.
            + [
                ((i,), k, [None] * 5)
                for i, (k, (modifier, _)) in product(outer, enumerate(compounds, start=1))
                if not held_out(self.adjectives[i].en, modifier)
            ],
            triples,
        ]
        item.cores = [[((), 0, [])]]
        for some in recipes:  # where none has so many modifiers, those with fewer
            item.cores.append(self._allowed(some, held) or item.cores[-1])

    def _stacks(self, before: Sequence[int]) -> tuple[list, list, list, list[int]]:
        """One, two, three adjectives that go together, in English order; those over a compound."""
        pairs = [(i, j) for i, j in product(before, before) if self._stack(i, j)]
        inner: dict[int, list[int]] = {}
        for i, j in pairs:
            inner.setdefault(i, []).append(j)
        first = [(i, j) for i, j in pairs if self.adjectives[i].before_noun]
        triples = [
            (i, j, k)
            for i, j in first
            if not self.adjectives[j].before_noun
            for k in inner.get(j, [])
        ]
        outer = [i for i in before if self.adjectives[i].before_noun]
        outer += [i for i in before if self.adjectives[i].layer == 5]
        alone = [(i,) for i in before]
        return *(
            [(stack, 0, [None] * 5) for stack in stacks] for stacks in (alone, pairs, triples)
        ), outer

    def _stack(self, outer: int, inner: int) -> bool:
        first, second = self.adjectives[outer], self.adjectives[inner]
        if first.layer >= second.layer:
            return False
        if second.before_noun:
            return first.en == "beautiful" and second.en in ("small", "old")
        return second.layer >= 4 or (first.before_noun and first.layer == 1)

    def _allowed(self, recipes: list[Recipe], held: set[int]) -> list[Recipe]:
        """The recipes of this split; the held-out ones where `compose` finds some."""
        out, free = [], []
        for recipe in recipes:
            (free if held.isdisjoint(recipe[0]) else out).append(recipe)
        return out if self.compose and out else free

    def core(self, item: Item, recipe: Recipe) -> Fragment:
        """The noun with its modifiers."""
        adjectives, which, known = recipe
        plain, links = item.bases[which]
        if not adjectives:
            return plain
        vowel = plain.initial
        agreement = item.feature or 4 * vowel
        made = known[agreement]
        if made is None:
            made = known[agreement] = self._around(adjectives, agreement)
        en, before, after, order, count, opening, shape = made
        if before:
            vowel = opening
        return Fragment(
            en + plain.en,
            before + plain.fr + after,
            links[order],
            plain.size + SIZES[count],
            plain.words + count,
            vowel,
            shape + 4 * vowel,
        )

    def _around(self, adjectives: Sequence[int], agreement: int) -> tuple:
        """What adjectives add to a noun: English, French before and after, and what `core` needs.

        `agreement` is a feature, or 4 for a masculine noun with a vowel. French adjectives after
        the noun come in the other order.
        """
        en, before, after, vowel, first = "", "", "", agreement == 4, 0
        feature = agreement & 3
        for number in reversed(adjectives):
            adjective = self.adjectives[number]
            en = f"{adjective.en} {en}"
            if adjective.before_noun:
                form = adjective.forms[4 if feature == 0 and vowel else feature]
                before = f"{form} {before}"
                vowel = starts_with_vowel(form)
                first += 1
            else:
                after += adjective.forms[feature] + " "
        shape = feature + 8 * (first > 0) + 16 * (article_a(en) == "an")
        count = len(adjectives)
        return en, before, after, 4 * first + count - first, count, int(vowel), shape


def held_out_pairs(nouns: Nouns) -> set[tuple[str, str]]:
    """English adjective and noun, as they stand in a sentence, of the held-out combinations."""
    return {
        (adjective.en, item.en)
        for adjective, item in product(nouns.adjectives, nouns.items)
        if adjective.selects(item) and held_out(adjective.en, item.lemma)
    }
