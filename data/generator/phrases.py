"""Phrases appended to a sentence: noun phrases, verb phrases, predicate adjectives."""

import random

from data.generator.determiners import (
    ANY_NUMBER,
    DETERMINERS,
    LONG_NUMBERS,
    SHORT_NUMBERS,
    Preposition,
    determiner_index,
)
from data.generator.fragments import Forms, Fragment, fragment, merge, possessed
from data.generator.frames import HUMAN, Frame, Frames
from data.generator.inflection import AGREEMENT
from data.generator.nouns import Item, Nouns
from data.generator.verbs import passive_words, verb_words, with_subject

SIZES = (2, 2, 2, 3, 3, 3, 3, 4, 4, 5)  # wanted words of a noun phrase, in the proportions wanted
_OWNED = "text object spot clothes instrument vehicle home animal thought kin"
OWNED = frozenset(_OWNED.split())
GENDERLESS = (0, 0, 2, 2, 4, 5, 6)  # feature -> a masculine one with the same verb forms
THE, ZERO = determiner_index("the"), determiner_index("zero")
UNIVERSAL = (determiner_index("every"), determiner_index("all"))
NEGATED = {"a": "a_not", "some": "any", "every": "the", "several": "the", "many": "the"}
NEGATED["all"] = "the"
DEFINITE = NEGATED | {"a": "a", "some": "the"}


def pronoun_for(item: Item, subject: bool) -> str:
    """The English pronoun for an item, marked "(f)" where English hides a French feminine."""
    feminine = " (f)" if item.feature & 1 else ""
    if item.feature & 2:
        return ("they" if subject else "them") + feminine
    if item.noun_class in HUMAN:
        return (("he", "him"), ("she", "her"))[item.feature & 1][0 if subject else 1]
    return "it" + feminine


class Phrases:
    """Phrases appended to a list of fragments; methods return the English words that they added.

    `rnd` gives the random numbers; everything is chosen by it, in the order of the sentence.
    """

    def __init__(self, compose: bool, share: float) -> None:
        self.rnd = random.Random(0).random
        self.joints: list[tuple[int, Forms]] = []  # fragments that depend on the next one
        self.nouns = Nouns(compose, share)
        self.frames = Frames(self.nouns)
        self.plain = self.nouns.preposition("", "")
        self.owner = self.nouns.preposition("-", "de")
        self.people = self.nouns.select("human")
        self.universal = False  # whether the last noun phrase had "every" or "all the"
        self.last: Item | None = None  # its last noun, which a relative clause is about
        # What determiners become in a negated object, and in one under a negated verb.
        self.negated = [determiner_index(NEGATED.get(kind, kind)) for kind in DETERMINERS]
        self.definite = [determiner_index(DEFINITE.get(kind, kind)) for kind in DETERMINERS]
        self._verbs: dict[tuple, Fragment] = {}
        self._adjectives: dict[tuple[int, int], Fragment] = {}

    def noun(
        self,
        out: list[Fragment],
        prep: Preposition,
        item: Item,
        want: int,
        changed: list[int] | None = None,
    ) -> int:
        """Adds a noun phrase of about `want` words after a preposition (`plain` for none).

        `changed` replaces determiners, under a negation.
        """
        rnd = self.rnd
        if item.fixed is not None:
            made = item.fixed
            article = prep[item.determiners[0]][made.shape]
            if article.size:
                out.append(article)
            out.append(made)
            self.universal = False
            self.last = item
            return article.words + made.words
        room = want - 1
        kinds = item.determiners
        complement = None
        if room >= 2:
            roll = rnd()
            if room >= 3 and item.complements and roll < 0.6:
                complement = item.complements[int(rnd() * len(item.complements))]
                own = 1 if room < 5 or rnd() < 0.6 else 2
                rest = room - own
                room = own
                kinds = (THE,)
            elif roll > 0.94 and item.noun_class in OWNED and prep is not self.owner:
                return self.possessive(out, prep, item, want)
            elif roll > 0.82 and item.doubles:
                kinds = item.doubles
                room -= 1
        kind = kinds[int(rnd() * len(kinds))]
        if kind == ANY_NUMBER:
            numbers = LONG_NUMBERS if room >= 3 and rnd() < 0.3 else SHORT_NUMBERS
            kind = numbers[int(rnd() * len(numbers))]
            if numbers is LONG_NUMBERS:
                room -= 1
        if changed is not None:
            kind = changed[kind]
        modifiers = room - 1 if 1 <= room < 5 else 0 if room < 1 else 3
        choices = item.cores[modifiers]
        pick = int(rnd() * len(choices))
        made = choices[pick]
        if made.__class__ is not Fragment:
            made = self.nouns.core(item, modifiers, pick)
        article = prep[kind][made.shape]
        if article.size:
            out.append(article)
        out.append(made)
        used = article.words + made.words
        self.last = item
        if complement is not None:
            after, items = complement
            used += self.noun(out, after, items[int(rnd() * len(items))], rest)
        self.universal = kind in UNIVERSAL
        return used

    def core(self, item: Item, modifiers: int) -> Fragment:
        """The noun with at most so many modifiers, without determiner."""
        return self.nouns.core(item, modifiers, int(self.rnd() * len(item.cores[modifiers])))

    def possessive(self, out: list[Fragment], prep: Preposition, item: Item, want: int) -> int:
        """Adds "the doctor's old house" / "la vieille maison du médecin"."""
        person = self.pick(self.people)
        parts: list[Fragment] = []
        self.noun(parts, self.owner, person, 2)
        owner = merge(parts)
        thing = self.core(item, min(3, max(0, want - 1 - owner.words)))
        made = possessed(prep[ZERO][thing.shape], owner, thing, bool(person.feature & 2))
        out.append(made)
        self.universal = False
        self.last = item
        return made.words

    def verb(
        self,
        frame: Frame,
        tense: int,
        polarity: int,
        feature: int,
        pronoun: str = "",
        clitic: str = "",
        agreement: int | None = None,
        passive: bool = False,
    ) -> Fragment:
        """The verb phrase, with its subject pronoun if any, made at first use."""
        if not frame.agrees and not passive:
            feature = GENDERLESS[feature]  # fewer to make
        key = (frame.voice, tense, polarity, feature, pronoun, clitic, agreement, passive)
        made = self._verbs.get(key)
        if made is None:
            if passive:
                words = passive_words(frame.verb, tense, polarity, feature)
            else:
                words = verb_words(
                    frame.verb, frame.state, tense, polarity, feature, clitic, agreement
                )
            made = with_subject(pronoun, *words) if pronoun else fragment(*words)
            self._verbs[key] = made
        return made

    def adjective(self, item: Item, before: str) -> Fragment:
        """A predicate adjective agreeing with its subject; `before` is the English before it."""
        choices = item.predicates
        number = choices[int(self.rnd() * len(choices))]
        if self.nouns.adjectives[number].en in before:  # not "the old house was old"
            number = choices[int(self.rnd() * len(choices))]
        gender = AGREEMENT[item.feature]
        made = self._adjectives.get((number, gender))
        if made is None:
            adjective = self.nouns.adjectives[number]
            made = fragment([adjective.en], [(adjective.forms[gender], (0,))])
            self._adjectives[number, gender] = made
        return made

    def join(self, out: list[Fragment], forms: Forms) -> None:
        """Adds a conjunction or pronoun whose French form depends on the next word."""
        self.joints.append((len(out), forms))
        out.append(forms[0])

    def pick(self, items: list[Item]) -> Item:
        """One of the items."""
        return items[int(self.rnd() * len(items))]

    def size(self, room: int) -> int:
        """The wanted words of a noun phrase, two if more would not leave anything else."""
        want = SIZES[int(self.rnd() * 10)]
        return want if want <= room else 2
