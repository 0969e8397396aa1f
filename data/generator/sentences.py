"""Sentences: how clauses join, nest and follow one another."""

from dataclasses import dataclass

from data.generator.fragments import COMMA, Forms, Fragment, forms_before, phrase
from data.generator.frames import (
    EARLIER,
    HUMAN,
    IF,
    LATER,
    LONGEST,
    NOW,
    ONCE,
    PERSONAL,
    STATES,
    THEN,
    WHEN,
    WHILE,
)
from data.generator.items import Item
from data.generator.phrases import pronoun_for
from data.generator.predicates import THAT
from data.generator.questions import Questions
from data.generator.verbs import AFFIRMATIVE, NOT, PAST, PERFECT, PRESENT, SUBJECT_FORMS

MODES = (THEN, THEN, THEN, THEN, NOW, NOW, NOW, LATER, LATER)  # of main clauses


@dataclass(frozen=True)
class Conjunction:
    """What joins a clause to another, and the mode of the clause that it opens."""

    forms: Forms
    mode: int
    joins_verbs: bool = False  # what follows may go without a subject
    pronouns: bool = False  # pronouns after it may mean something before it
    temporal: bool = False  # it says when, which a clause with a date has said


def _joins(english: str, french: str, mode: int = NOW, **rest: bool) -> Conjunction:
    rest["temporal"] = english.startswith(("when", "while", "as soon", "every time"))
    return Conjunction(forms_before(english, french), mode, **rest)


SO = _joins(", so", ",/0 donc/1", pronouns=True)
COORDINATE = (
    _joins("and", "et/0", joins_verbs=True, pronouns=True),
    _joins(", but", ",/0 mais/1", pronouns=True),
    _joins(", and", ",/0 et/1", pronouns=True),
)
SUBORDINATE = {  # mode of the main clause -> what may hang from it; "because" first
    NOW: (
        _joins("because", "parce/0 que/0", NOW, pronouns=True),
        _joins("because", "parce/0 que/0", THEN),
        _joins("when", "quand/0", IF),
        _joins("if", "si/0", IF),
        _joins("even if", "même/0 si/1", NOW),
        _joins("every time that", "chaque/0 fois/1 que/2", IF),
    ),
    THEN: (
        _joins("because", "parce/0 que/0", THEN, pronouns=True),
        _joins("because", "parce/0 que/0", EARLIER, pronouns=True),
        _joins("while", "pendant/0 que/0", WHILE),
        _joins("when", "quand/0", ONCE),
        _joins("as soon as", "dès/0,1 que/2", ONCE),
        _joins("even though", "même/0 si/1", THEN),
        _joins("whereas", "alors/0 que/0", THEN),
    ),
    LATER: (
        _joins("because", "parce/0 que/0", THEN, pronouns=True),
        _joins("when", "quand/0", WHEN),
        _joins("as soon as", "dès/0,1 que/2", WHEN),
        _joins("if", "si/0", IF),
        _joins("even if", "même/0 si/1", IF),
    ),
    EARLIER: (
        _joins("because", "parce/0 que/0", EARLIER),
        _joins("even though", "même/0 si/1", EARLIER),
    ),
}
HANGING = {ONCE: THEN, IF: NOW}  # mode of a main clause -> that of what hangs from it, if another
FRONTED = {  # what may open a sentence, before its main clause
    NOW: SUBORDINATE[NOW][2:5],
    THEN: SUBORDINATE[THEN][2:6],
    LATER: SUBORDINATE[LATER][1:],
}
START = _joins(",", ",/0")  # after something in front of the sentence
WHY = phrase("why", "pourquoi/0")


class Sentences(Questions):
    """Whole sentences of a wanted number of words."""

    def __init__(self, compose: bool, share: float) -> None:
        super().__init__(compose, share)
        self.fronted: Conjunction | None = None  # what the sentence opens with
        self.earlier = False  # whether the last clause was about what had happened
        spoken = [f for f in self.frames.all if f.kind in "SQ"]
        foretold = ("say", "think", "believe", "know", "hope", "promise", "announce")
        sayings = [f for f in spoken if "f" not in f.flags]
        self.sayings = [sayings] * 8  # by mode
        self.sayings[LATER] = [f for f in spoken if f.kind == "S" and f.verb.en in foretold]

    def sentence(self, n: int) -> tuple[list[Fragment], str, int]:
        """Fragments, final mark and English words of a sentence of about `n` words."""
        rnd = self.rnd
        out: list[Fragment] = []
        self.subject = self.object = None
        self.universal = self.timed = self.earlier = False
        self.fronted = None
        self.joints = []
        mode = MODES[int(rnd() * 9)]
        mark = "."
        if n <= 22 and rnd() < 0.25:
            mark = "?"
            used = self.question(out, n, mode)
            if n - used > 4:
                used += self.under(out, n - used, mode)
        else:
            used = self.statement(out, n, mode)
        for place, forms in self.joints:
            out[place] = forms[out[place + 1].initial]
        return out, mark, used

    def statement(self, out: list[Fragment], n: int, mode: int) -> int:
        """Adds main clauses, each with what hangs from it, joined by "and", "but" or "so"."""
        rnd = self.rnd
        used, first = self.opening(out, n, mode) if n >= 9 else (0, mode)
        joined = START if used else None
        choices = (*COORDINATE, SO) if mode == THEN else COORDINATE
        while True:
            left = n - used
            room = left
            if left > 17:
                room = 9 + int(rnd() * 12)
                if left - room < 8:
                    room = left if left < 24 else left // 2
            used += self.block(out, room, first, joined)
            first = mode
            left = n - used
            if left < 5:
                return used
            last = joined
            while joined is last:
                joined = choices[int(rnd() * len(choices))]
            if joined is SO:
                choices = COORDINATE
            self.join(out, joined.forms)
            used += joined.forms[0].words

    def opening(self, out: list[Fragment], n: int, mode: int) -> tuple[int, int]:
        """Adds, in front of some sentences, "when he arrived," or "in August 1992,".

        Returns its words, and the mode of the clause that follows.
        """
        rnd = self.rnd
        roll = rnd()
        if roll < 0.1 and mode != NOW:
            times = self.adjuncts.times[STATES[mode]]
            made = times[int(rnd() * len(times))]
            out += (made, COMMA)
            self.timed = True
            return made.words, mode
        if roll < 0.25 and n >= 13:
            choices = FRONTED[mode]
            conjunction = choices[int(rnd() * len(choices))]
            self.join(out, conjunction.forms)
            used = conjunction.forms[0].words
            used += self.clause(out, 4 + int(rnd() * 5), conjunction.mode)
            out.append(COMMA)
            self.subject = self.object = None
            self.timed, self.fronted = True, conjunction
            if conjunction.mode == ONCE:
                return used, ONCE
            return used, IF if mode == NOW else mode
        return 0, mode

    def block(self, out: list[Fragment], n: int, mode: int, joined: Conjunction | None) -> int:
        """Adds a main clause with a subordinate clause, or "he says that" before it."""
        rnd = self.rnd
        used = 0
        if n >= 9 and joined is not START and rnd() < 0.25:
            used, mode = self.saying(out, mode)
            joined = None
        left = n - used
        if left < 10 or (left < 14 and rnd() < 0.5):
            used += self.joined_clause(out, left, mode, joined)
            self.timed = False
            return used
        room = 4 + int(rnd() * (left - 9 if left < 16 else 7))
        used += self.joined_clause(out, room, mode, joined)
        used += self.under(out, n - used, HANGING.get(mode, mode))
        self.timed = False
        return used

    def under(self, out: list[Fragment], n: int, mode: int) -> int:
        """Adds a subordinate clause to the main one before it."""
        choices = SUBORDINATE[mode]
        conjunction = choices[int(self.rnd() * len(choices))]
        if (
            conjunction is self.fronted
            or self.perfect
            or (self.lasting and conjunction.mode in (ONCE, WHEN))
            or (self.dated and conjunction.temporal)
        ):
            conjunction = choices[0]
        self.join(out, conjunction.forms)
        used = conjunction.forms[0].words
        return used + self.joined_clause(out, n - used, conjunction.mode, conjunction)

    def joined_clause(
        self, out: list[Fragment], n: int, mode: int, joined: Conjunction | None
    ) -> int:
        """Adds a clause after a conjunction, perhaps with a pronoun for something before it."""
        earlier, self.earlier = self.earlier, mode == EARLIER
        if joined is None or not joined.pronouns or self.rnd() < 0.5:
            return self.clause(out, n, mode)
        self.universal = False
        item = self.object
        if item is not None and item.objects_of and (self.subject is None or self.rnd() < 0.5):
            return self.object_pronoun(out, n, mode, item)
        item = self.subject
        if item is None or not item.tables[mode][LONGEST]:
            return self.clause(out, n, mode)
        self.object = None
        # "had disappeared and resigned" would be another "had"
        bare = joined.joins_verbs and not earlier and self.rnd() < 0.5
        return self.predicate(out, item, n, mode, "" if bare else pronoun_for(item, True))

    def object_pronoun(self, out: list[Fragment], n: int, mode: int, item: Item) -> int:
        """Adds a clause with "it" or "them" for the object of the clause before."""
        frame = item.objects_of[int(self.rnd() * len(item.objects_of))]
        subject = self.pick(frame.subjects)
        tense = self.tense(frame, mode)
        used = self.noun(out, self.plain, subject, self.size(n - 3))
        polarity = NOT if self.rnd() < 0.2 and not self.universal else AFFIRMATIVE
        clitic = pronoun_for(item, False)
        made = self.verb(frame, tense, polarity, subject.feature, clitic=clitic)
        out.append(made)
        used += made.words
        self.subject = subject if subject.frames else None
        self.object = None
        self.lasting = frame.state or polarity == NOT
        self.perfect = tense == PERFECT
        self.dated = False
        return used + self.adjuncts.fill(out, n - used, frame, tense, polarity != NOT)

    def saying(self, out: list[Fragment], mode: int) -> tuple[int, int]:
        """Adds "the minister says that"; returns its words and the mode of what is said."""
        rnd = self.rnd
        frames = self.sayings[mode]
        frame = frames[int(rnd() * len(frames))]
        subject = self.pick(frame.subjects)
        past = mode == THEN and rnd() < 0.6
        tense = PAST if past else PRESENT
        polarity = NOT if frame.verb.en == "know" and frame.kind == "Q" else AFFIRMATIVE
        used = 0
        if subject.noun_class in HUMAN and rnd() < 0.25:
            count = 6 if past or frame.verb.en in PERSONAL else 3
            subject = self.frames.pronouns[int(rnd() * count)]
            if subject.lemma == "they" and out:
                subject = self.frames.pronouns[0]
            self.join(out, SUBJECT_FORMS[subject.lemma])
            used = 1
        else:
            used = self.noun(out, self.plain, subject, 2 + int(rnd() * 2))
            polarity = AFFIRMATIVE if self.universal else polarity
        made = self.verb(frame, tense, polarity, subject.feature)
        out.append(made)
        used += made.words
        if frame.kind == "Q":
            out.append(WHY)
        else:
            self.join(out, THAT)
        return used + 1, EARLIER if past else mode
