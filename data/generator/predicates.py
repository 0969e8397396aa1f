"""Predicates: what somebody does or is, to a wanted number of words, with relative clauses."""

from data.generator.fragments import Fragment, forms_before, phrase
from data.generator.frames import (
    ANIMATE,
    HUMAN,
    IF,
    LONGEST,
    ONCE,
    RELATIVE,
    TIMELESS,
    WHEN,
    WHILE,
    Frame,
)
from data.generator.items import Item
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
    SUBJECT_FORMS,
    gerund,
    infinitive,
)
from data.generator.ways import MOST_WORDS

WHO, WHICH = phrase("who", "qui/0"), phrase("that", "qui/0")
THAT, WHOM = forms_before("that", "que/0"), forms_before("whom", "que/0")
IN_ORDER = phrase("in order", "afin/0,1")
ONCE_AFTER = PAST_PROGRESSIVE  # its adjuncts: no "as soon as he came afterwards"
SINGLE = frozenset((WHEN, ONCE, WHILE))  # modes of what happens once, and does happen
UNNAMED = Item("", "", 0)  # the subject of an infinitive, where it does not matter
# "I" does not see "me".
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
        tenses = frame.tenses[mode]
        tense = tenses[int(self.rnd() * len(tenses))]
        if feature > 3 and tense == PAST_PROGRESSIVE:  # few forms of the first and second persons
            return PAST
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
        single = mode == IF and frame.once  # not "if he dies every Sunday"
        polarity = AFFIRMATIVE
        changed = None
        lasting = state or tense == PAST_PROGRESSIVE  # "was eating as soon as"
        after = tense if mode != ONCE else ONCE_AFTER  # the tense that adjuncts go by
        if room > frame.least + 1 and mode not in SINGLE:
            polarities = frame.polarities[tense]
            polarity = polarities[int(rnd() * len(polarities))]
            if polarity:
                if polarity < ADVERB:
                    if self.universal:  # "every man did not ...": who did not?
                        polarity = AFFIRMATIVE
                    else:
                        changed = self.negated if kind in "TD" else self.definite
                        changed = self.liked if frame.liking else changed
                        lasting = True
                if polarity in TIMELESS:
                    after = PERFECT
                    lasting = True
        if (
            self.timed
            or single
            or (tense == PRESENT and not state and item.noun_class not in ANIMATE)
        ):
            after = PERFECT
        self.perfect = tense == PERFECT
        self.lasting = lasting
        self.dated, self.gone = single, frame.fatal
        if pronoun:
            self.join(out, SUBJECT_FORMS[pronoun])
        if kind == "T" and polarity == AFFIRMATIVE and (roll := rnd()) < 0.07:
            if frame.human:
                # nobody done once is no event: "as soon as he saw nobody"
                roll = max(roll, 0.025) if mode in SINGLE else roll
                return self.short_object(out, item, room, frame, tense, after, roll) + n - room
            if not self.universal and mode not in SINGLE:
                return self.short_object(out, item, room, frame, tense, after, roll) + n - room
        made = self.verb(frame, tense, polarity, item.feature)
        out.append(made)
        used = made.words + n - room
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
        after: int,
        roll: float,
    ) -> int:
        """Adds a verb with "nothing", "nobody", or a pronoun for a person not named before.

        `after` is the tense that adjuncts go by.
        """
        polarity, clitic = AFFIRMATIVE, ""
        if (roll < 0.025 and not self.universal) or not frame.human:
            polarity = NOBODY if frame.human else NOTHING
        else:
            free = FREE_OBJECTS.get(item.lemma, EVERYBODY)
            clitic = free[int(roll * 1000) % len(free)]
        made = self.verb(frame, tense, polarity, item.feature, clitic)
        out.append(made)
        self.object = None
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
        elif mode == ONCE:
            tense = ONCE_AFTER
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
                want = min(max(n, 2), MOST_WORDS)
            some = self.definite if frame.liking else None  # on aime LE fromage
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
            out.append(self.adjective(item, out[-min(2, len(out))].en))
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
