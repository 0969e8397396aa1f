"""Frames: what each verb takes, and who may do what in which mode (time and kind of clause)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from data.generator.determiners import Preposition
from data.generator.fragments import Fragment
from data.generator.inflection import MODALS, Verb, first_of_each, inflected, read_table
from data.generator.items import Item
from data.generator.nouns import Nouns
from data.generator.verbs import (
    ADVERB,
    AFFIRMATIVE,
    FUTURE,
    MID_ADVERBS,
    NEVER,
    NO_LONGER,
    NOT,
    PAST,
    PAST_PROGRESSIVE,
    PERFECT,
    PLUPERFECT,
    PRESENT,
    PROGRESSIVE,
    WHEN_FUTURE,
)

# Modes: the times that clauses are about. WHEN is "when he comes, I will go", IF a simple present
# after "if" and "every time that", WHILE "while he was sleeping", EARLIER what somebody in the past
# said had happened, ONCE a single event after "as soon as".
NOW, THEN, LATER, WHEN, IF, WHILE, EARLIER, ONCE = range(8)
EVENTS = (  # mode -> English tenses of events, in the proportions wanted
    (PRESENT, PRESENT, PRESENT, PRESENT, PROGRESSIVE, PROGRESSIVE, PROGRESSIVE, PERFECT, PERFECT),
    (PAST, PAST, PAST, PAST, PAST, PAST_PROGRESSIVE),
    (FUTURE,),
    (WHEN_FUTURE,),
    (PRESENT,),
    (PAST_PROGRESSIVE,),
    (PLUPERFECT,),
    (PAST,),
)
STATES = (PRESENT, PAST, FUTURE, WHEN_FUTURE, PRESENT, PAST, PAST, PAST)
PASSIVES = ((PRESENT, PERFECT), (PAST,), (FUTURE,), (), (), (), (PLUPERFECT,), (PAST,))
# In a relative clause: "when the man who lives here comes" has a present in French as well.
RELATIVE = (NOW, THEN, NOW, NOW, NOW, THEN, EARLIER, THEN)

HUMAN = frozenset(("leader", "person", "kin", "name", "pronoun"))
ANIMATE = HUMAN | {"animal", "inst", "country"}
WORDS_OF = {"I": 1, "T": 3, "P": 3, "D": 6, "L": 4, "M": 4, "A": 2, "V": 5, "W": 4}
ACTIONS = "ITPDLM"  # kinds of frames that one may want or learn to do
LONGEST = 9  # words from which on every frame has room
# The first and second persons of few verbs, to keep the French vocabulary small.
_PERSONAL = "be want know hope think believe can must should love need"
PERSONAL = frozenset(_PERSONAL.split())
LIKING = ("love", "hate", "prefer")
ADJUNCT_FLAGS = "tpcmwqed"


@dataclass(eq=False, slots=True)
class Frame:
    """What a verb takes: a row of verbs.tsv."""

    kind: str
    verb: Verb
    key: int
    flags: str
    adjuncts: str  # the flags of adjuncts among them
    least: int  # English words of verb and complement, at least
    subjects: list[Item]
    objects: list[Item]
    preposition: Preposition  # before the object
    french_preposition: str  # before an infinitive
    # Verb phrases and plans of adjuncts, made at first use and shared by frames that are alike.
    made: dict[int | tuple, Fragment] = field(default_factory=dict)
    plans: dict[tuple[int, bool], list] = field(default_factory=dict)
    state: bool = field(init=False)  # imparfait for the English past, no progressive
    once: bool = field(init=False)  # happens once: no habitual present
    fatal: bool = field(init=False)  # its subject does nothing more
    agrees: bool = field(init=False)  # with its subject, in compound tenses
    human: bool = field(init=False)  # its object
    liking: bool = field(init=False)  # of its objects French says "le" where they are any
    tenses: list[list[int]] = field(init=False)  # by mode, in the proportions wanted
    polarities: list[list[int]] = field(init=False)  # by tense, likewise

    def __post_init__(self) -> None:
        self.state = "s" in self.flags
        self.once = "o" in self.flags
        self.fatal = self.verb.en == "die"
        self.agrees = self.verb.auxiliary == "être"
        self.human = bool(self.objects) and self.objects[0].noun_class in HUMAN
        self.liking = self.verb.en in LIKING
        self.tenses = [self._tenses(mode) for mode in range(8)]
        self.polarities = [_polarity(tense, self) for tense in range(8)]

    def _tenses(self, mode: int) -> list[int]:
        """English tenses in this mode."""
        if self.state:
            return [STATES[mode]]
        instead = {}
        if "n" in self.flags:
            instead = {PROGRESSIVE: PRESENT, PAST_PROGRESSIVE: PAST}
        tenses = [instead.get(tense, tense) for tense in EVENTS[mode]]
        if self.once and mode == NOW:
            tenses = [PERFECT if tense == PRESENT else tense for tense in tenses]
        if self.verb.en == self.verb.en_past and mode == NOW:  # "they read": lisent, or ont lu?
            tenses = [PROGRESSIVE if tense == PRESENT else tense for tense in tenses]
        return tenses

    @property
    def has_passive(self) -> bool:
        """Whether its object may be the subject of a passive."""
        return self.kind == "T" and not set("sx") & set(self.flags) and not self.verb.particle

    def fits(self, mode: int) -> bool:
        """Whether the verb is said in a mode."""
        if self.verb.en in MODALS:
            return mode == NOW or (self.verb.en == "can" and mode in (THEN, EARLIER, IF))
        if mode in (WHEN, ONCE):
            return not self.state and self.verb.en != "remain"
        if mode == WHILE:
            return not self.state and "n" not in self.flags
        return mode != NOW or "o" not in self.flags


class Frames:
    """All frames, and for each item what it may do; fills the items' lists."""

    def __init__(self, nouns: Nouns) -> None:
        verbs = first_of_each(read_table("verbs.tsv"), nouns.share, 3)
        self.nouns = nouns
        voices: dict[tuple[Verb, bool], dict] = {}
        plans: dict[tuple[str, bool], dict] = {}
        self.all = [self._frame(number, row) for number, row in enumerate(verbs)]
        for frame in self.all:
            frame.made = voices.setdefault((frame.verb, frame.state), frame.made)
            frame.plans = plans.setdefault((frame.adjuncts, frame.state), frame.plans)
            self._attach(frame)
        known: dict[tuple[int, ...], list] = {}
        for item in nouns.items:
            key = tuple(frame.key for frame in item.frames)
            if key not in known:
                known[key] = tables(item.frames)
            item.tables = known[key]
        self.pronouns = self._pronouns()

    def _frame(self, number: int, row: Sequence[str]) -> Frame:
        en, past, fr, kind, subjects, objects, flags, *_ = row
        kind, *preps = kind.split(":")
        particle, table, french = "", self.nouns.preposition("", ""), "-"
        if kind == "P" and preps[1] == "-":
            kind, particle = "T", preps[0]  # "listen to": a direct object in French
        elif kind == "P":
            table = self.nouns.preposition(*preps)
        elif kind == "V":
            french = preps[0]
        verb = inflected(en, past, fr, particle)
        return Frame(
            kind,
            verb,
            number,
            flags,
            "".join(f for f in flags if f in ADJUNCT_FLAGS),
            WORDS_OF.get(kind, 0) + bool(verb.particle),
            self.nouns.select(subjects),
            [
                item
                for item in self.nouns.select(objects)
                if not ("i" in flags and item.feature & 2)
            ],
            table,
            french,
        )

    def _attach(self, frame: Frame) -> None:
        """Adds the frame to its subjects and its direct objects."""
        for item in {id(item): item for item in frame.subjects}.values():
            if frame.kind in WORDS_OF and (frame.kind != "A" or item.predicates):
                item.frames.append(frame)
            if frame.kind in ACTIONS and not set("su") & set(frame.flags):
                item.actions.append(frame)
        if frame.kind == "T":
            for item in {id(item): item for item in frame.objects}.values():
                item.objects_of.append(frame)

    def _pronouns(self) -> list[Item]:
        """he, she, they, I, we, you as items that do what citizens do."""
        citizen = next(item for item in self.nouns.items if item.lemma == "citizen")
        personal = [frame for frame in citizen.frames if frame.verb.en in PERSONAL]
        made = []
        for lemma, feature in (("he", 0), ("she", 1), ("they", 2), ("I", 4), ("we", 5), ("you", 6)):
            item = Item(lemma, "pronoun", feature, predicates=citizen.predicates)
            item.frames = personal if feature > 3 else citizen.frames
            item.actions = citizen.actions
            item.tables = tables(item.frames)
            if feature > 3:  # compound tenses need only "have" and "be"
                item.tables[THEN : ONCE + 1] = [
                    citizen.tables[mode] if mode in (THEN, EARLIER, ONCE) else item.tables[mode]
                    for mode in range(THEN, ONCE + 1)
                ]
            made.append(item)
        return made


def tables(frames: list[Frame]) -> list[list[list[Frame]]]:
    """Frames by mode and by the number of words that there is room for."""
    return [
        [[f for f in fitting if f.least + (mode == LATER) <= words] for words in range(LONGEST + 1)]
        for mode in range(8)
        if (fitting := [f for f in frames if f.fits(mode)]) is not None
    ]


def _polarity(tense: int, frame: Frame) -> list[int]:
    """Negations and adverbs that may go with the verb in the tense, in the proportions wanted."""
    state = frame.state
    names = {PAST: "past", PERFECT: "perfect", PLUPERFECT: "perfect", FUTURE: "future"}
    names |= {PRESENT: "present", PROGRESSIVE: "progressive"}
    name = "none" if state else names.get(tense, "none")
    adverbs = [ADVERB + i for i, adverb in enumerate(MID_ADVERBS) if name in adverb.times]
    negations = [NOT] * 4
    if tense not in (PROGRESSIVE, PAST_PROGRESSIVE, WHEN_FUTURE) and not state:
        negations += [NEVER] * 2
    if tense in (PRESENT, FUTURE) or (state and tense == PAST):
        negations.append(NO_LONGER)
    if frame.once:  # not "he always signs it"; nobody "never dies"
        adverbs = [AFFIRMATIVE if adverb in TIMELESS else adverb for adverb in adverbs]
        negations = [NOT] * len(negations) if frame.kind == "I" else negations
    return [AFFIRMATIVE] * 38 + negations + adverbs[:8]


# With these no time is said: not "he never comes every day".
TIMELESS = {NEVER, NO_LONGER} | {
    ADVERB + place
    for place, adverb in enumerate(MID_ADVERBS)
    if adverb.en not in ("probably", "finally", "certainly", "also")
}
