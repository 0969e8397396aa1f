"""Clauses appended to a sentence: who does what, to a wanted number of words."""

from itertools import product

from data.generator.determiners import ANY_NUMBER, SHORT_NUMBERS, determiner_index
from data.generator.fragments import Fragment, forms_before, fragment, phrase
from data.generator.frames import (
    ANIMATE,
    EVENTS,
    HUMAN,
    LATER,
    LONGEST,
    NOW,
    ONCE,
    PASSIVES,
    RELATIVE,
    STATES,
    THEN,
    TIMELESS,
    WHEN,
    WHILE,
    Frame,
)
from data.generator.nouns import Item
from data.generator.phrases import Phrases
from data.generator.verbs import (
    ADVERB,
    AFFIRMATIVE,
    FUTURE,
    NOBODY,
    NOT,
    NOTHING,
    PAST,
    PAST_PROGRESSIVE,
    PERFECT,
    PRESENT,
    PROGRESSIVE,
    gerund,
    infinitive,
)

WHO, WHICH = phrase("who", "qui/0"), phrase("that", "qui/0")
THAT, WHOM = forms_before("that", "que/0"), forms_before("whom", "que/0")
IN_ORDER = phrase("in order", "afin/0,1")
UNNAMED = Item("", "", 0)  # the subject of an infinitive, where it does not matter
# "I" does not see "me".
FREE_OBJECTS = {lemma: ("him", "her", "you") for lemma in ("I", "we")}
FREE_OBJECTS["you"] = ("him", "her", "me", "us")
EVERYBODY = ("me", "us", "you", "him", "her")


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


class Clauses(Phrases):
    """Clauses; methods return the English words added, `n` wherever that can be hit.

    `subject` and `object` are what a pronoun in the next clause may mean; `lasting` is whether
    the last main verb was a state, negated or habitual: nothing happens "as soon as" that;
    `perfect` whether it was "has signed", after which only "because" is said.
    `timed` is whether a time has been said in front, so that the clause needs no other.
    """

    def __init__(self, compose: bool) -> None:
        super().__init__(compose)
        self.subject: Item | None = None
        self.object: Item | None = None
        self.lasting = False
        self.perfect = False
        self.timed = False
        self.by = self.nouns.preposition("by", "par")
        self.to = self.nouns.preposition("to", "à")
        select = self.nouns.select
        human, inst = select("leader person kin"), select("inst")
        pools = [human] * 8 + [select("leader")] * 2 + [inst] * 3 + [select("name")] * 2
        pools += map(select, ["country", "animal", "vehicle", "matter", "paper", "thing", "event"])
        self.pools = [[item for item in pool if item.frames] for pool in pools]
        self.passives = [
            (item, frames)
            for item in self.nouns.items
            if (frames := [f for f in item.objects_of if f.has_passive])
            for _ in range(4 if item.noun_class in ("legal", "zone") else 1)  # laws are passed
        ]
        self.things = [i for i in select("goods animal person vehicle text") if not i.fixed]

    # --- predicates ------------------------------------------------------------------------

    def tense(self, frame: Frame, mode: int, feature: int = 0) -> int:
        """An English tense for the verb in this mode."""
        if "s" in frame.flags:
            return STATES[mode]
        tenses = EVENTS[mode]
        tense = tenses[int(self.rnd() * len(tenses))]
        if tense == PROGRESSIVE and "n" in frame.flags:
            tense = PRESENT
        elif tense == PAST_PROGRESSIVE and ("n" in frame.flags or feature > 3):
            tense = PAST
        if tense == PRESENT and mode == NOW and "o" in frame.flags:
            tense = PERFECT
        return tense

    def predicate(
        self, out: list[Fragment], item: Item, n: int, mode: int, pronoun: str = ""
    ) -> int:
        """Adds what the item does: verb, objects and adjuncts, with its pronoun if it is one."""
        rnd = self.rnd
        room = n - 1 if pronoun else n
        table = item.tables[mode]
        choices = table[room if room < LONGEST else LONGEST] or table[LONGEST] or item.frames
        frame = choices[int(rnd() * len(choices))]
        if room > 7 and frame.kind in "IA":  # little follows them: rather not in long clauses
            frame = choices[int(rnd() * len(choices))]
        kind = frame.kind
        tense = self.tense(frame, mode, item.feature)
        state = "s" in frame.flags
        polarity = AFFIRMATIVE
        changed = None
        after = tense  # the tense that adjuncts go by
        if room > frame.least + 1 and mode != WHEN and mode != ONCE:
            polarities = self.frames.polarities[tense][state]
            polarity = polarities[int(rnd() * len(polarities))]
            if 0 < polarity < ADVERB:
                if self.universal:  # "every man did not ...": who did not?
                    polarity = AFFIRMATIVE
                else:
                    changed = self.negated if kind == "T" else self.definite
            if polarity in TIMELESS:
                after = PERFECT
        if self.timed or (tense == PRESENT and item.noun_class not in ANIMATE and not state):
            after = PERFECT
        self.perfect = tense == PERFECT
        self.lasting = state or (polarity and polarity in TIMELESS) or changed is not None
        if kind == "T" and polarity == AFFIRMATIVE and (roll := rnd()) < 0.07:
            return self.short_object(out, item, n, frame, tense, pronoun, roll)
        made = self.verb(frame, tense, polarity, item.feature, pronoun)
        out.append(made)
        used = made.words
        if kind == "V" or kind == "W":
            return used + self.to_do(out, item, n - used, frame, mode, tense, changed)
        return used + self.complement(out, item, n - used, frame, mode, after, changed)

    def short_object(
        self,
        out: list[Fragment],
        item: Item,
        n: int,
        frame: Frame,
        tense: int,
        pronoun: str,
        roll: float,
    ) -> int:
        """Adds a verb with "nothing", "nobody", or a pronoun for a person not named before."""
        human = frame.objects[0].noun_class in HUMAN
        polarity, clitic = AFFIRMATIVE, ""
        if (roll < 0.025 and not self.universal) or not human:
            polarity = NOBODY if human else NOTHING
        else:
            free = FREE_OBJECTS.get(item.lemma, EVERYBODY)
            clitic = free[int(roll * 1000) % len(free)]
        made = self.verb(frame, tense, polarity, item.feature, pronoun, clitic)
        out.append(made)
        self.object = None
        after = PERFECT if self.timed else tense
        return made.words + self.adjuncts.fill(out, n - made.words, frame, after, not polarity)

    def to_do(
        self,
        out: list[Fragment],
        item: Item,
        n: int,
        frame: Frame,
        mode: int,
        tense: int,
        changed: list[int] | None,
    ) -> int:
        """Adds the infinitive that a verb takes, with its own complement."""
        choices = item.actions
        skill = "k" in frame.flags
        action = choices[int(self.rnd() * len(choices))]
        while (skill and "k" not in action.flags) or action.least > max(n, 3):
            action = choices[int(self.rnd() * len(choices))]
        bare = frame.kind == "W"
        made = infinitive(action.verb, frame.french_preposition, item.feature, bare)
        out.append(made)
        if tense == PRESENT and bare and not self.timed:
            tense = FUTURE  # "he must leave tomorrow"
        elif self.timed or skill or tense != PAST:
            tense = PERFECT  # no time: "he wants to leave in summer" says when he wants it
        under = None if changed is None else self.definite
        return made.words + self.complement(out, item, n - made.words, action, mode, tense, under)

    def complement(
        self,
        out: list[Fragment],
        item: Item,
        n: int,
        frame: Frame,
        mode: int,
        tense: int,
        changed: list[int] | None,
    ) -> int:
        """Adds the objects, place or adjective that a verb takes, then adjuncts, to `n` words.

        `changed` are the determiners under a negation; None if there is none.
        """
        rnd = self.rnd
        kind = frame.kind
        used = 0
        followed = None  # the noun that a relative clause may follow
        if kind == "T" or kind == "P":
            thing = frame.objects[int(rnd() * len(frame.objects))]
            want = self.size(n)
            if n - want < 2 or not frame.adjuncts:
                want = n if n < 7 else 6
            used = self.noun(out, frame.preposition, thing, want, changed)
            followed = self.last
            self.object = thing if kind == "T" and changed is None else None
        elif kind == "D":
            used = self.noun(out, self.plain, self.pick(frame.objects), self.size(n - 3), changed)
            used += self.noun(out, self.to, self.pick(self.people), max(2, min(4, n - used - 1)))
            self.object = None
        elif kind == "L" or kind == "M":
            english = "in" if kind == "L" else "to"
            used = self.adjuncts.stay(out, frame.objects, min(n, 5), english)
        elif kind == "A":
            used = 1
            out.append(self.adjective(item, out[-2].en if len(out) > 1 else ""))
        left = n - used
        if left <= 0:
            return used
        if left > 4 and (left > 6 or rnd() < 0.4):
            if followed is not None and followed.frames and not followed.fixed:
                return used + self.relative(out, followed, left, RELATIVE[mode])
            if item.noun_class in HUMAN and changed is None and item.actions and kind != "A":
                return used + self.purpose(out, item, left, mode)
        return used + self.adjuncts.fill(out, left, frame, tense, changed is None)

    def purpose(self, out: list[Fragment], item: Item, n: int, mode: int) -> int:
        """Adds "in order to sign", "before", "without" or "instead of signing" and an object."""
        rnd = self.rnd
        action = item.actions[int(rnd() * len(item.actions))]
        while action.least + 2 > n:
            action = item.actions[int(rnd() * len(item.actions))]
        roll = rnd()
        used = 0
        if roll < 0.4:
            out.append(IN_ORDER)
            used = 2
            made = infinitive(action.verb, "de", item.feature)
        elif roll < 0.7:
            made = gerund(action.verb, "before", "avant de", item.feature)
        elif roll < 0.85:
            made = gerund(action.verb, "without", "sans", item.feature)
        else:
            made = gerund(action.verb, "instead of", "au lieu de", item.feature)
        out.append(made)
        used += made.words
        changed = self.definite if 0.7 <= roll < 0.85 else None
        keep = self.object
        used += self.complement(out, UNNAMED, n - used, action, mode, PERFECT, changed)
        self.object = keep
        return used

    def relative(self, out: list[Fragment], item: Item, n: int, mode: int) -> int:
        """Adds a relative clause about the item: "who", "whom" or "that" and what follows."""
        human = item.noun_class in HUMAN
        keep = self.object, self.lasting, self.perfect, self.timed
        self.universal = self.timed = False
        if n >= 4 and item.objects_of and self.rnd() < 0.4:
            frame = item.objects_of[int(self.rnd() * len(item.objects_of))]
            subject = self.pick(frame.subjects)
            tense = self.tense(frame, mode)
            self.join(out, WHOM if human else THAT)
            used = 1 + self.noun(out, self.plain, subject, self.size(n - 3))
            made = self.verb(frame, tense, AFFIRMATIVE, subject.feature, agreement=item.feature)
            out.append(made)
            used += made.words
            if n > used:
                used += self.adjuncts.fill(out, n - used, frame, tense)
        else:
            out.append(WHO if human else WHICH)
            used = 1 + self.predicate(out, item, n - 1, mode)
        self.object, self.lasting, self.perfect, self.timed = keep
        return used

    # --- clauses ---------------------------------------------------------------------------

    def clause(self, out: list[Fragment], n: int, mode: int) -> int:
        """Adds a whole clause."""
        rnd = self.rnd
        self.object = None
        self.universal = False
        roll = rnd()
        if roll < 0.12 or n <= 3:
            count = 3 if mode in (WHILE, WHEN) else 6
            item = self.frames.pronouns[int(rnd() * count)]
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
        self.subject = item
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
        self.lasting = tense == PRESENT or polarity == NOT
        self.perfect = tense == PERFECT
        after = PERFECT if self.timed else tense
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
        self.lasting, self.perfect = True, False
        if left > 6 and not none and item.frames:
            return n - left + self.relative(out, item, left, RELATIVE[mode])
        return n - left + (self.adjuncts.place(out, min(left, 6)) if left >= 2 else 0)
