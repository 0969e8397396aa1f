"""Phrases appended to a sentence: noun phrases, verb phrases, predicate adjectives."""

import random
from collections.abc import Sequence
from typing import Any

from data.generator.determiners import (
    ANY_NUMBER,
    DETERMINERS,
    LARGE_NUMBER,
    LONG_NUMBERS,
    SHORT_NUMBERS,
    Preposition,
    determiner_index,
)
from data.generator.fragments import Forms, Fragment, fragment, merge, possessed
from data.generator.frames import HUMAN, Frame, Frames
from data.generator.inflection import AGREEMENT
from data.generator.items import Item
from data.generator.nouns import Nouns
from data.generator.verbs import passive_words, verb_words
from data.generator.ways import MOST_WORDS, POSSESSIVE, THE, ZERO, ways

SIZES = (2, 2, 2, 3, 3, 3, 3, 4, 4, 5)  # wanted words of a noun phrase, in the proportions wanted
GENDERLESS = (0, 0, 2, 2, 4, 5, 6)  # feature -> a masculine one with the same verb forms
NUMBERS = {ANY_NUMBER: SHORT_NUMBERS, LARGE_NUMBER: LONG_NUMBERS, POSSESSIVE: [THE]}
UNIVERSAL = (determiner_index("every"), determiner_index("all"))
NEGATED = {"a": "a_not", "some": "any", "every": "the", "several": "the", "many": "the"}
NEGATED["all"] = "the"
DEFINITE = NEGATED | {"a": "a", "some": "the"}
LIKED = DEFINITE | {"a": "the"}  # on n'aime pas LA poésie


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
        for item in self.nouns.items:
            item.ways = ways(item)
        self.frames = Frames(self.nouns)
        self.plain = self.nouns.preposition("", "")
        self.owner = self.nouns.preposition("-", "de")
        self.people = self.nouns.select("human")
        self.universal = False  # whether the last noun phrase had "every" or "all the"
        self.last: Item | None = None  # its last noun, which a relative clause is about
        # What determiners become in an object that is negated, under a negated verb, or not liked.
        self.negated = [determiner_index(NEGATED.get(kind, kind)) for kind in DETERMINERS]
        self.definite = [determiner_index(DEFINITE.get(kind, kind)) for kind in DETERMINERS]
        self.liked = [determiner_index(LIKED.get(kind, kind)) for kind in DETERMINERS]

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
        ways = item.ways[want if want < MOST_WORDS else MOST_WORDS]
        kind, modifiers, complement, rest = ways[int(rnd() * len(ways))]
        if kind < 0:
            if kind == POSSESSIVE and prep is not self.owner:
                return self.possessive(out, prep, item, want)
            numbers = NUMBERS[kind]
            kind = numbers[int(rnd() * len(numbers))]
        if changed is not None:
            kind = changed[kind]
        recipes = item.cores[modifiers]
        made = self.nouns.core(item, recipes[int(rnd() * len(recipes))])
        article = prep[kind][made.shape]
        if article.size:
            out.append(article)
        out.append(made)
        used = article.words + made.words
        self.last = item
        if complement >= 0:
            after, items = item.complements[complement]
            used += self.noun(out, after, items[int(rnd() * len(items))], rest)
        self.universal = kind in UNIVERSAL
        return used

    def core(self, item: Item, modifiers: int) -> Fragment:
        """The noun with at most so many modifiers, without determiner."""
        return self.nouns.core(item, self.pick(item.cores[modifiers]))

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
        clitic: str = "",
        agreement: int | None = None,
        passive: bool = False,
    ) -> Fragment:
        """The verb phrase, made at first use."""
        if not frame.agrees and not passive:
            feature = GENDERLESS[feature]  # fewer to make
        key: int | tuple = (tense << 8) + (polarity << 3) + feature
        if clitic or passive or agreement is not None:
            key = key, clitic, agreement, passive
        made = frame.made.get(key)
        if made is None:
            if passive:
                words = passive_words(frame.verb, tense, polarity, feature)
            else:
                words = verb_words(
                    frame.verb, frame.state, tense, polarity, feature, clitic, agreement
                )
            made = frame.made[key] = fragment(*words)
        return made

    def adjective(self, item: Item, subject: str) -> Fragment:
        """A predicate adjective agreeing with its subject, given in English as well."""
        choices = item.predicates
        number = choices[int(self.rnd() * len(choices))]
        if self.nouns.adjectives[number].en in subject:  # not "the old house was old"
            number = choices[int(self.rnd() * len(choices))]
        return self.nouns.predicative[number][AGREEMENT[item.feature]]

    def join(self, out: list[Fragment], forms: Forms) -> None:
        """Adds a conjunction or pronoun whose French form depends on the next word."""
        self.joints.append((len(out), forms))
        out.append(forms[0])

    def pick(self, items: Sequence[Any]) -> Any:
        """One of the items."""
        return items[int(self.rnd() * len(items))]

    def size(self, room: int) -> int:
        """The wanted words of a noun phrase, two if more would not leave anything else."""
        want = SIZES[int(self.rnd() * 10)]
        return want if want <= room else 2
