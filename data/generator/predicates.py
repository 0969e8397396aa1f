"""Predicates: what somebody does or is, to a wanted number of words, with relative clauses."""

from data.generator.fragments import Fragment, forms_before, phrase
from data.generator.frames import (
    ANIMATE,
    EVENTS,
    HUMAN,
    LONGEST,
    NOW,
    ONCE,
    RELATIVE,
    STATES,
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
SINGLE = frozenset((WHEN, ONCE, WHILE))  # modes of what happens once, and does happen
UNNAMED = Item("", "", 0)  # the subject of an infinitive, where it does not matter
# "I" does not see "me".
LIKING = ("love", "hate", "prefer")  # of these French says "le" of things in general
FREE_OBJECTS = {lemma: ("him", "her", "you") for lemma in ("I", "we")}
FREE_OBJECTS["you"] = ("him", "her", "me", "us")
EVERYBODY = ("me", "us", "you", "him", "her")


class Predicates(Phrases):
    """Predicates; methods return the English words added, `n` wherever that can be hit.

    `object` is what "it" in the next clause may mean. `lasting` is whether the last main verb was
    a state, negated or habitual: nothing happens "as soon as" that; `perfect` whether it was "has
    signed", after which only "because" is said. `timed` is whether a time has been said in front,
    so that the clause needs no other; `dated` whether the last main clause ended with one, so that
    no "when" follows; `gone` whether its subject died, and does nothing more.
    """

    def __init__(self, compose: bool, share: float) -> None:
        super().__init__(compose, share)
        self.object: Item | None = None
        self.lasting = False
        self.perfect = False
        self.timed = self.dated = self.gone = False
        self.to = self.nouns.preposition("to", "à")

    def tense(self, frame: Frame, mode: int, feature: int = 0) -> int:
        """An English tense for the verb in this mode."""
        if frame.state:
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
        state = frame.state
        polarity = AFFIRMATIVE
        changed = None
        after = tense  # the tense that adjuncts go by
        if room > frame.least + 1 and mode not in SINGLE:
            polarities = self.frames.polarities[tense][state]
            polarity = polarities[int(rnd() * len(polarities))]
            if 0 < polarity < ADVERB:
                if self.universal:  # "every man did not ...": who did not?
                    polarity = AFFIRMATIVE
                else:
                    changed = self.negated if kind == "T" else self.definite
            if polarity in TIMELESS:
                after = PERFECT
                if polarity >= ADVERB and "o" in frame.flags:  # "he always dies"
                    polarity = AFFIRMATIVE
        if self.timed or (tense == PRESENT and item.noun_class not in ANIMATE and not state):
            after = PERFECT
        self.perfect = tense == PERFECT
        self.lasting = state or (polarity and polarity in TIMELESS) or changed is not None
        self.lasting = self.lasting or tense == PAST_PROGRESSIVE  # "was eating as soon as"
        self.dated, self.gone = False, frame.verb.en == "die"
        if kind == "T" and polarity == AFFIRMATIVE and (roll := rnd()) < 0.07:
            if frame.objects[0].noun_class in HUMAN:
                # nobody done once is no event: "as soon as he saw nobody"
                roll = max(roll, 0.025) if mode in SINGLE else roll
                return self.short_object(out, item, n, frame, tense, pronoun, roll)
            if not self.universal and mode not in SINGLE:
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
            some = self.definite if frame.verb.en in LIKING else None  # on aime LE fromage
            determiners = some if changed is None else changed
            used = self.noun(out, frame.preposition, thing, want, determiners)
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
            before = "".join([made.en for made in out[-3:-1]])
            out.append(self.adjective(item, before))
        left = n - used
        if left <= 0:
            return used
        if left > 4 and (left > 6 or rnd() < 0.4):
            if followed is not None and followed.frames and not followed.fixed:
                return used + self.relative(out, followed, left, RELATIVE[mode])
            if item.noun_class in HUMAN and changed is None and item.actions and not frame.state:
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
        keep = self.object, self.lasting, self.perfect, self.timed, self.dated, self.gone
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
        self.object, self.lasting, self.perfect, self.timed, self.dated, self.gone = keep
        return used
