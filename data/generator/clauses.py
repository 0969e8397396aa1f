"""Clauses appended to a sentence: active, passive, and "there is"."""

from itertools import product

from data.generator.adjuncts import Adjuncts
from data.generator.determiners import ANY_NUMBER, SHORT_NUMBERS, determiner_index
from data.generator.fragments import Fragment, fragment
from data.generator.frames import LATER, LONGEST, NOW, ONCE, PASSIVES, RELATIVE, THEN, WHEN, WHILE
from data.generator.items import Item
from data.generator.predicates import ONCE_AFTER, Predicates
from data.generator.verbs import AFFIRMATIVE, NOT, PERFECT, PRESENT


def _there(mode: int, many: bool, none: bool) -> Fragment:
    verbs = {THEN: ["were" if many else "was"], NOW: ["are" if many else "is"]}
    english = ["there", *verbs.get(mode, ["will", "be"])]
    verb = {THEN: "avait", NOW: "a", LATER: "aura"}[mode]
    be, no = tuple(range(1, len(english))), (len(english),)  # "no" is the next word
    if none:
        return fragment(english, [("il", (0,)), ("n'", no), ("y", (0,)), (verb, be), ("pas", no)])
    return fragment(english, [("il", (0,)), ("y", (0,)), (verb, be)])


THERE = {key: _there(*key) for key in product((NOW, THEN, LATER), (False, True), (False, True))}
ONE_THERE = (determiner_index("a"),)
NONE_THERE = (determiner_index("no"),)
MANY_THERE = tuple(map(determiner_index, ("some", "many", "several", "number", "number")))


class Clauses(Predicates):
    """Clauses; `subject` is what "he", "she", "it" or "they" in the next clause may mean."""

    def __init__(self, compose: bool, share: float) -> None:
        super().__init__(compose, share)
        self.adjuncts = Adjuncts(self)
        self.subject: Item | None = None
        self.by = self.nouns.preposition("by", "par")
        select = self.nouns.select
        human, inst = select("leader person kin"), select("inst")
        pools = [human] * 8 + [select("leader")] * 2 + [inst] * 3 + [select("name")] * 2
        pools += map(select, ["country", "animal", "vehicle", "matter", "paper", "thing", "event"])
        self.pools = [[item for item in pool if item.frames] for pool in pools]
        self.passives = [
            (item, frames)
            for item in self.nouns.items
            if (frames := [f for f in item.objects_of if f.has_passive])
            for _ in range(10 if item.noun_class in ("legal", "zone") else 1)  # laws are passed
        ]
        self.things = [i for i in select("goods animal person vehicle text") if not i.fixed]

    def clause(self, out: list[Fragment], n: int, mode: int) -> int:
        """Adds a whole clause."""
        rnd = self.rnd
        self.object = None
        self.universal = False
        roll = rnd()
        if roll < 0.12 or n <= 3:
            count = 3 if mode in (WHILE, WHEN) else 6
            item = self.frames.pronouns[int(rnd() * count)]
            if item.lemma == "they" and out:  # it would mean somebody named before
                item = self.frames.pronouns[0]
            self.subject = None
            return self.predicate(out, item, n, mode, item.lemma)
        if roll < 0.24 and n >= 6 and PASSIVES[mode]:
            return self.passive(out, n, mode)
        if roll < 0.29 and n >= 7 and mode <= LATER:
            return self.there(out, n, mode)
        pool = self.pools[int(rnd() * len(self.pools))]
        item = pool[int(rnd() * len(pool))]
        while not item.tables[mode][LONGEST]:  # coats do nothing "as soon as"
            item = self.pick(self.people)
        used = self.noun(out, self.plain, item, self.size(n - 3))
        left = n - used
        followed = self.last
        if left >= 9 and rnd() < 0.4 and followed.frames and not followed.fixed:
            universal = self.universal
            used += self.relative(out, followed, 3 + int(rnd() * (left - 6)), RELATIVE[mode])
            self.universal = universal
        used += self.predicate(out, item, n - used, mode)
        self.subject = None if self.gone else item  # he does nothing more
        return used

    def passive(self, out: list[Fragment], n: int, mode: int) -> int:
        """Adds a passive clause, with its agent where there is room."""
        rnd = self.rnd
        item, frames = self.passives[int(rnd() * len(self.passives))]
        frame = frames[int(rnd() * len(frames))]
        tenses = PASSIVES[mode]
        tense = tenses[int(rnd() * len(tenses))]
        if tense == PRESENT and "o" in frame.flags:
            tense = PERFECT
        used = self.noun(out, self.plain, item, self.size(n - 4))
        polarity = NOT if rnd() < 0.1 and not self.universal and mode != ONCE else AFFIRMATIVE
        made = self.verb(frame, tense, polarity, item.feature, passive=True)
        out.append(made)
        used += made.words
        left = n - used
        self.subject = item if item.frames else None
        self.lasting, self.dated = tense == PRESENT or polarity == NOT, False
        self.perfect = tense == PERFECT
        after = PERFECT if self.timed else tense if mode != ONCE else ONCE_AFTER
        agent = left >= 3 and rnd() < 0.75
        if agent:
            person = self.pick(frame.subjects)
            used += self.noun(out, self.by, person, self.size(left - 1))
            left = n - used
            followed = self.last
            if left > 6 and followed.frames and not followed.fixed:
                return used + self.relative(out, followed, left, RELATIVE[mode])
        if left > 0:
            used += self.adjuncts.fill(out, left, frame, after, not agent and polarity != NOT)
        return used

    def there(self, out: list[Fragment], n: int, mode: int) -> int:
        """Adds "there is" with an indefinite noun phrase and a place or a relative clause."""
        rnd = self.rnd
        item = self.pick(self.things)
        many, none = bool(item.feature & 2), rnd() < 0.15
        kinds = NONE_THERE if none else MANY_THERE if many else ONE_THERE
        kind = kinds[int(rnd() * len(kinds))]
        if kind == ANY_NUMBER:
            kind = SHORT_NUMBERS[int(rnd() * len(SHORT_NUMBERS))]
        made = self.core(item, int(rnd() * 3))
        verb, article = THERE[mode, many, none], self.plain[kind][made.shape]
        out += (verb, article, made)
        left = n - verb.words - article.words - made.words
        self.subject = None
        self.lasting, self.perfect, self.dated = True, False, False
        if left > 6 and not none and item.frames:
            return n - left + self.relative(out, item, left, RELATIVE[mode])
        return n - left + (self.adjuncts.place(out, min(left, 6)) if left >= 2 else 0)
