"""Sentences of the generated corpus: clauses and how they nest, built to a wanted length."""

import random
from dataclasses import dataclass
from itertools import product

from data.grammar_nouns import (
    ANY_NUMBER,
    DETERMINERS,
    NUMBER_CHOICES,
    Item,
    Nouns,
    determiner_index,
    number_words,
)
from data.grammar_verbs import (
    ADVERB,
    AFFIRMATIVE,
    FUTURE,
    MID_ADVERBS,
    NEVER,
    NO_LONGER,
    NOBODY,
    NOT,
    NOTHING,
    PAST,
    PAST_PROGRESSIVE,
    PERFECT,
    PLUPERFECT,
    PRESENT,
    PROGRESSIVE,
    WHEN_FUTURE,
    infinitive,
    verb,
    verb_words,
    with_subject,
)
from data.grammar_words import Fragment, Verb, annotated, fragment, phrase, read_table

PAST_TIME, PRESENT_TIME, FUTURE_TIME = range(3)
TENSES = {  # time -> English tenses of events, oftener first
    PAST_TIME: (PAST, PAST, PAST, PAST, PAST, PAST, PERFECT, PAST_PROGRESSIVE),
    PRESENT_TIME: (PRESENT, PRESENT, PRESENT, PROGRESSIVE, PROGRESSIVE),
    FUTURE_TIME: (FUTURE,),
}
STATES = {PAST_TIME: PAST, PRESENT_TIME: PRESENT, FUTURE_TIME: FUTURE}
ADVERB_TIMES = {
    PRESENT: "present",
    PAST: "past",
    PERFECT: "perfect",
    FUTURE: "future",
    PROGRESSIVE: "progressive",
    PAST_PROGRESSIVE: "none",
    PLUPERFECT: "perfect",
    WHEN_FUTURE: "none",
}


@dataclass
class Frame:
    """What a verb takes: a row of verbs.tsv."""

    kind: str
    verb: Verb
    key: int  # the same for frames whose verb phrases are the same
    state: bool
    passive: bool
    flags: str  # of t, p, m, c
    subjects: list[Item]
    objects: list[Item]
    preposition: list[list[Fragment]]
    french_preposition: str


COMMA = Fragment(", ", ", ", (0,), (1 << 8) + 1, 0, 0, 0)
SIZES = (2, 2, 2, 3, 3, 3, 3, 4, 4, 5)  # wanted words of a noun phrase
SIMPLE_KINDS = "ITPDLMAVW"
HUMAN = frozenset(("leader", "person", "kin", "name", "pronoun"))
TIMES = (0, 0, 0, 0, 0, 1, 1, 1, 2, 2)
MANY_THINGS = ("some", "many", "several", "number", "number")
PASSIVE_TENSES = {
    PAST_TIME: (PAST, PAST, PERFECT),
    PRESENT_TIME: (PRESENT, PERFECT),
    FUTURE_TIME: (FUTURE,),
}
SUBJECT_PRONOUNS = {
    (True, 0): "he",
    (True, 1): "she",
    (False, 0): "it",
    (False, 1): "it (f)",
    (True, 2): "they",
    (True, 3): "they (f)",
    (False, 2): "they",
    (False, 3): "they (f)",
}
OBJECT_PRONOUNS = {
    (True, 0): "him",
    (True, 1): "her",
    (False, 0): "it",
    (False, 1): "it (f)",
    (True, 2): "them",
    (True, 3): "them (f)",
    (False, 2): "them",
    (False, 3): "them (f)",
}


def _forms(english: str, french: str) -> tuple[Fragment, Fragment, Fragment]:
    """A conjunction before a consonant, a vowel, and il or ils."""
    words = annotated(french)
    made = []
    for following in ("C", "a", "il"):
        last, places = words[-1]
        if last == "que" and following != "C":
            last = "qu'"
        if last == "si" and following == "il":
            last = "s'"
        made.append(fragment(english.split(), [*words[:-1], (last, places)]))
    return tuple(made)


@dataclass(frozen=True)
class Conjunction:
    """What joins a clause to the one before."""

    forms: tuple[Fragment, Fragment, Fragment]
    words: int
    tense: int = -1  # of the clause that follows, where it is fixed
    coordinates: bool = True  # a pronoun after it may mean something before it
    joins_verbs: bool = False  # the clause after it may go without a subject


def _conjunction(english: str, french: str, **rest: object) -> Conjunction:
    forms = _forms(english, french)
    return Conjunction(forms, forms[0].words, **rest)


_COMMON = [
    _conjunction("and", "et/0", joins_verbs=True),
    _conjunction(", but", ",/0 mais/1"),
    _conjunction("because", "parce/0 que/0"),
]
CONJUNCTIONS = {
    PAST_TIME: [
        *_COMMON,
        _conjunction("while", "pendant/0 que/0", tense=PAST_PROGRESSIVE),
        _conjunction("when", "quand/0", tense=PAST),
        _conjunction("even though", "même/0 si/1", coordinates=False),
        _conjunction(", so", ",/0 donc/1"),
        _conjunction("before", "avant/0 que/0") if False else _conjunction(", and", ",/0 et/1"),
    ],
    PRESENT_TIME: [
        *_COMMON,
        _conjunction("if", "si/0"),
        _conjunction("when", "quand/0"),
        _conjunction("even if", "même/0 si/1"),
    ],
    FUTURE_TIME: [
        *_COMMON,
        _conjunction("when", "quand/0", tense=WHEN_FUTURE),
        _conjunction("as soon as", "dès/0,1 que/2", tense=WHEN_FUTURE),
        _conjunction("if", "si/0", tense=PRESENT),
    ],
}
WHO = fragment(["who"], [("qui", (0,))])
WHICH = fragment(["that"], [("qui", (0,))])
THAT = _forms("that", "que/0")
WHOM = _forms("whom", "que/0")
QUESTION_WORDS = [phrase("why", "pourquoi/0"), phrase("how", "comment/0")]


def _there(time: int, many: bool, none: bool) -> Fragment:
    english = {
        PAST_TIME: ["there", "were" if many else "was"],
        PRESENT_TIME: ["there", "are" if many else "is"],
        FUTURE_TIME: ["there", "will", "be"],
    }[time]
    verb = {PAST_TIME: "avait", PRESENT_TIME: "a", FUTURE_TIME: "aura"}[time]
    be = tuple(range(1, len(english)))
    no = (len(english),)
    if none:
        return fragment(
            english, [("il", (0,)), ("n'", no), ("y", (0,)), (verb, be), ("pas", no)]
        )
    return fragment(english, [("il", (0,)), ("y", (0,)), (verb, be)])


THERE = {
    key: _there(*key)
    for key in product((PAST_TIME, PRESENT_TIME, FUTURE_TIME), (False, True), (False, True))
}
MONTHS = {
    "January": "janvier",
    "February": "février",
    "March": "mars",
    "April": "avril",
    "May": "mai",
    "June": "juin",
    "July": "juillet",
    "August": "août",
    "September": "septembre",
    "October": "octobre",
    "November": "novembre",
    "December": "décembre",
}
DAYS = {
    "Monday": "lundi",
    "Tuesday": "mardi",
    "Wednesday": "mercredi",
    "Thursday": "jeudi",
    "Friday": "vendredi",
    "Saturday": "samedi",
    "Sunday": "dimanche",
}
SEASONS = {"spring": "au/0 printemps/1", "summer": "en/0 été/1", "winter": "en/0 hiver/1"}


def dates() -> list[tuple[str, Fragment]]:
    """Dates with the name of the tenses they go with (see adverbs.tsv)."""
    made = []
    for year in range(1950, 2030):
        when = "past" if year < 2020 else "future"
        made.append((when, phrase(f"in {year}", f"en/0 {year}/1")))
    for place, (en, fr) in enumerate(MONTHS.items()):
        for year in range(1950 + place % 3, 2030, 3):
            when = "past" if year < 2020 else "future"
            made.append((when, phrase(f"in {en} {year}", f"en/0 {fr}/1 {year}/2")))
            day = (place * 7 + year * 3) % 30 + 1 if en != "February" else year % 28 + 1
            ordinal = "1er" if day == 1 else str(day)
            made.append(
                (when, phrase(f"on {day} {en} {year}", f"le/0 {ordinal}/1 {fr}/2 {year}/3"))
            )
        made += [(when, phrase(f"in {en}", f"en/0 {fr}/1")) for when in ("past", "future")]
    for en, fr in DAYS.items():
        for when in ("past", "future"):
            made.append((when, phrase(f"on {en}", f"{fr}/0,1")))
            made.append((when, phrase(f"on {en} morning", f"{fr}/0,1 matin/2")))
            made.append((when, phrase(f"on {en} evening", f"{fr}/0,1 soir/2")))
    for number in range(2, 21):
        en, fr = number_words(number, False)
        count = " ".join(f"{word}/1" for word, _ in fr)
        made.append(("future", phrase(f"in {en[0]} years", f"dans/0 {count} ans/2")))
        count = count.replace("/1", "/0")
        for unit, french in (("years", "ans"), ("days", "jours"), ("months", "mois")):
            made.append(
                ("past", phrase(f"{en[0]} {unit} ago", f"il/2 y/2 a/2 {count} {french}/1"))
            )
    return made


def _plans(flags: str, manner: list[list], time: list[list]) -> list[list[tuple]]:
    """Ways to fill each number of words with manner, company (-), place (+) and time."""
    plans: list[list[tuple]] = [[] for _ in range(16)]
    for m, c, p, t in product(range(5), (0, 2, 3, 4), (0, 2, 3, 4, 5, 6), range(8)):
        wanted = {"m": m, "c": c, "p": p, "t": t}
        if any(n and flag not in flags for flag, n in wanted.items()):
            continue
        if m and not manner[m] or t and not time[t]:
            continue
        parts = tuple(([manner[m]] if m else []) + ([-c] if c else []) + ([p] if p else []) + ([time[t]] if t else []))
        if len(parts) < 4 and m + c + p + t < len(plans):
            plans[m + c + p + t].append(parts)
    return plans


def finish(out: list[Fragment], mark: str = ".") -> tuple[str, str, str]:
    """The sentence in both languages and its links, in Pharaoh format."""
    offset = 0
    links: list[int] = []
    for made in out:
        links += [link + offset for link in made[2]]
        offset += made[3]
    links.append(offset)
    links.sort()
    en = "".join([made[0] for made in out]).replace(" ,", ",")
    fr = "".join([made[1] for made in out]).replace(" ,", ",")
    en = en[0].upper() + en[1:-1] + mark
    fr = fr[0].upper() + fr[1:-1] + (" ?" if mark == "?" else mark)
    return en, fr, " ".join([PHARAOH[link] for link in links])


PHARAOH = [f"{code >> 8}-{code & 255}" for code in range(1 << 16)]


class Clauses:
    """Clauses of a wanted length, appended to a list of fragments.

    Each method returns how many English words it added, at most as many as it was given where
    that is possible at all. `subject` and `object` are what a pronoun in the next clause means.
    """

    def __init__(self, compose: bool) -> None:
        self.nouns = Nouns(compose)
        self.rnd = random.Random(0).random
        self.subject: Item | None = None
        self.object: Item | None = None
        self.plain = self.nouns.articles
        self.by = self.nouns.preposition("by", "par")
        self.to = self.nouns.preposition("to", "à")
        self.with_ = self.nouns.preposition("with", "avec")
        self.verbs: dict[tuple, Fragment] = {}
        self.adjectives: dict[tuple[int, int], Fragment] = {}
        self.frames = [self._frame(*row) for row in enumerate(read_table("verbs.tsv"))]
        self.infinitives: list[str] = []
        self._attach_frames()
        self._pools()
        self._adjuncts()
        self._negated = self._negated_determiners()
        self._polarities = {
            (tense, state): self._polarity(tense, state)
            for tense, state in product(range(8), (False, True))
        }

    # --- tables ----------------------------------------------------------------------------

    def _frame(self, number: int, row: list[str]) -> Frame:
        en, past, fr, kind, subjects, objects, flags, _ = row
        kind, *preps = kind.split(":")
        particle, table, french = "", self.plain, "-"
        if kind == "P":
            if preps[1] == "-":
                particle = preps[0]
            else:
                table = self.nouns.preposition(*preps)
        elif kind == "V":
            french = preps[0]
        inflected = verb(en, past, fr, particle)
        state = "s" in flags
        passive = kind == "T" and not state and "n" not in flags
        select = self.nouns.select
        return Frame(
            kind,
            inflected,
            number,
            state,
            passive,
            "".join(f for f in "tpmc" if f in flags),
            select(subjects),
            select(objects),
            table,
            french,
        )

    def _attach_frames(self) -> None:
        for frame in self.frames:
            for item in {id(i): i for i in frame.subjects}.values():
                item.frames.setdefault(frame.kind, []).append(frame)
                if frame.kind in SIMPLE_KINDS and (frame.kind != "A" or item.predicates):
                    item.frames.setdefault("simple", []).append(frame)
                if frame.kind in "ITPDLM" and not frame.state:
                    item.frames.setdefault("action", []).append(frame)
            if frame.kind == "T":
                for item in {id(i): i for i in frame.objects}.values():
                    item.objects_of.append(frame)

    def _pools(self) -> None:
        """Who sentences are about, and the pronouns as items with the frames of persons."""
        select = self.nouns.select
        human, inst = select("human"), select("inst")
        self.pools = [human] * 8 + [select("leader")] * 2 + [inst] * 3 + [select("name")] * 2
        self.pools += [select("country"), select("animal"), select("vehicle"), select("matter")]
        self.pools += [select("paper"), select("thing"), select("event")]
        citizen = next(i for i in human if i.lemma == "citizen")
        self.pronouns = [
            Item(p, "pronoun", feature, p, [], [], [], {}, [], None, [], [], citizen.predicates)
            for p, feature in (("he", 0), ("she", 1), ("I", 4), ("we", 5), ("you", 6), ("they", 2))
        ]
        for item in self.pronouns:
            item.frames = citizen.frames
        self.passives = [
            i for i in self.nouns.items if any(f.passive for f in i.objects_of) and not i.fixed
        ]
        self.things = select("goods animal person vehicle food text")
        sites = [i for i in select("site") if i.place]
        self.scenes = []
        for item in sites:
            own = next(iter(item.place.items()))
            around = [("near", "près de"), ("behind", "derrière"), ("in front of", "devant")]
            around += [("opposite", "en face de"), ("next to", "à côté de")]
            near = around if item.noun_class in ("building", "home") else around[:1]
            pairs = [own] * 6 + near
            self.scenes += [(item, self.nouns.preposition(*pair)) for pair in pairs]
        self.cities = [
            (i, self.nouns.preposition("in", i.place["in"])) for i in select("city country")
        ]
        self.people = select("human name")
        self.sayings = [f for f in self.frames if f.kind in "SQ" and "f" not in f.flags]
        self.foretellings = [
            f for f in self.sayings if f.verb.en in ("say", "know", "think", "believe", "hope", "announce", "promise")
        ]

    def _adjuncts(self) -> None:
        """Banks of adjuncts by length, and how they add up to each length."""
        times: dict[str, list[Fragment]] = {}
        manner: list[Fragment] = []
        for en, fr, kind, when, *_ in read_table("adverbs.tsv"):
            if kind == "manner":
                manner.append(phrase(en, fr))
            elif kind == "time":
                for name in when.split(","):
                    times.setdefault(name, []).append(phrase(en, fr))
        for name, made in dates():
            times.setdefault(name, []).append(made)
        banks = {
            PAST: times["past"],
            PRESENT: times["present"],
            FUTURE: times["future"],
            WHEN_FUTURE: [],
            PERFECT: [],
            PROGRESSIVE: times["progressive"],
            PAST_PROGRESSIVE: [
                f for f in times["past"] if "ago" not in f.en and "for " not in f.en
            ],
            PLUPERFECT: [
                f for f in times["past"] if "19" in f.en or "20" in f.en or "before" in f.en
            ],
        }
        self.time_phrases = banks
        by_length = [[f for f in manner if f.words == n] for n in range(8)]
        self.plans: dict[tuple[str, int], list[list[tuple]]] = {}
        flags = {frame.flags for frame in self.frames} | {"t", ""}
        for flag, tense in product(flags, range(8)):
            time = [[f for f in banks[tense] if f.words == n] for n in range(8)]
            self.plans[flag, tense] = _plans(flag, by_length, time)

    def _negated_determiners(self) -> list[int]:
        """Determiner -> what it becomes in a negated object ("a house", "pas de maison")."""
        changed = {"a": "a_not", "some": "any", "every": "the", "several": "the"}
        changed |= {"many": "the", "all": "the"}
        return [determiner_index(changed.get(kind, kind)) for kind in DETERMINERS]

    def _polarity(self, tense: int, state: bool) -> list[int]:
        """Negations and adverbs that may go with the tense, in the proportions wanted."""
        name = ADVERB_TIMES[tense]
        adverbs = [ADVERB + i for i, adverb in enumerate(MID_ADVERBS) if name in adverb.tenses]
        negations = [NOT, NOT, NOT, NOT]
        if tense not in (PROGRESSIVE, PAST_PROGRESSIVE, WHEN_FUTURE):
            negations += [NEVER, NEVER]
        if tense in (PRESENT, FUTURE) or state and tense == PAST:
            negations.append(NO_LONGER)
        if state:
            adverbs = []
        return [AFFIRMATIVE] * 36 + negations + adverbs[:6]

    # --- phrases ---------------------------------------------------------------------------

    def noun(
        self, out: list[Fragment], prep: list, item: Item, want: int, negated: bool = False
    ) -> int:
        """Adds a noun phrase of at most `want` words after the preposition's fragments."""
        rnd = self.rnd
        if item.fixed is not None:
            made = item.fixed
            article = prep[item.determiners[0]][made.shape]
            if article.size:
                out.append(article)
            out.append(made)
            return article.words + made.words
        room = want - 1
        complement = None
        if room >= 3 and item.complements and rnd() < 0.6:
            complement = item.complements[int(rnd() * len(item.complements))]
            own = 1 if room < 5 or rnd() < 0.6 else 2
            room, rest = own, room - own - 1
        if room >= 2 and item.doubles and rnd() < 0.15:
            kinds = item.doubles
            room -= 1
        else:
            kinds = item.determiners
        kind = kinds[int(rnd() * len(kinds))]
        if kind == ANY_NUMBER:
            kind = NUMBER_CHOICES[int(rnd() * len(NUMBER_CHOICES))]
        if negated:
            kind = self._negated[kind]
        modifiers = room - 1 if room < 5 else 3
        if modifiers < 0:
            modifiers = 0
        while not (choices := item.cores[modifiers]):
            modifiers -= 1
        pick = int(rnd() * len(choices))
        made = choices[pick]
        if made.__class__ is not Fragment:
            made = self.nouns.core(item, modifiers, pick)
        article = prep[kind][made.shape]
        if article.size:
            out.append(article)
        out.append(made)
        used = article.words + made.words
        if complement is not None:
            after, items = complement
            return used + self.noun(out, after, items[int(rnd() * len(items))], rest + 1)
        return used

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
        key = (frame.key, tense, polarity, feature, pronoun, clitic, agreement, passive)
        made = self.verbs.get(key)
        if made is None:
            words = verb_words(
                frame.verb, frame.state, tense, polarity, feature, clitic, agreement, passive
            )
            made = with_subject(pronoun, words) if pronoun else fragment(*words)
            self.verbs[key] = made
        return made

    def adjective(self, number: int, feature: int) -> Fragment:
        """A predicate adjective agreeing with its subject."""
        gender = (0, 1, 2, 3, 0, 2, 0)[feature]
        made = self.adjectives.get((number, gender))
        if made is None:
            adjective = self.nouns.adjectives[number]
            made = fragment([adjective.en], [(adjective.forms[gender], (0,))])
            self.adjectives[number, gender] = made
        return made

    def fill(self, out: list[Fragment], left: int, frame: Frame, tense: int) -> int:
        """Adds adjuncts of `left` words, or as near below as can be; returns the words added."""
        plans = self.plans[frame.flags, tense]
        if left >= len(plans):
            left = len(plans) - 1
        while left and not plans[left]:
            left -= 1
        if not left:
            return 0
        rnd = self.rnd
        choices = plans[left]
        used = 0
        for part in choices[int(rnd() * len(choices))]:
            if part.__class__ is int:  # place or company, of |part| words
                used += self.place(out, part) if part > 0 else self.company(out, -part)
            else:
                made = part[int(rnd() * len(part))]
                out.append(made)
                used += made.words
        return used

    def place(self, out: list[Fragment], want: int) -> int:
        """Adds where something happens."""
        rnd = self.rnd
        items = self.cities if want == 2 else self.scenes
        item, prep = items[int(rnd() * len(items))]
        return 1 + self.noun(out, prep, item, want - 1)

    def company(self, out: list[Fragment], want: int) -> int:
        """Adds with whom."""
        items = self.people
        return 1 + self.noun(out, self.with_, items[int(self.rnd() * len(items))], want - 1)

    # --- clauses ---------------------------------------------------------------------------

    def predicate(
        self, out: list[Fragment], item: Item, n: int, time: int, pronoun: str = "", tense: int = -1
    ) -> int:
        """Adds what the item does: verb, objects and adjuncts, with its pronoun if it is one."""
        rnd = self.rnd
        frames = item.frames
        if n <= 3 and "I" in frames:
            choices = frames["I"]
        else:
            choices = frames["simple"]
        frame = choices[int(rnd() * len(choices))]
        if frame.kind in "VD" and n < 7 or frame.kind in "LM" and n < 5:
            frame = choices[int(rnd() * len(choices))]
        if frame.kind == "I" and n > 9:
            frame = choices[int(rnd() * len(choices))]
        if tense < 0 or frame.state:
            if frame.state:
                tense = WHEN_FUTURE if tense == WHEN_FUTURE else STATES[time]
            else:
                tenses = TENSES[time]
                tense = tenses[int(rnd() * len(tenses))]
        polarities = self._polarities[tense, frame.state]
        polarity = polarities[int(rnd() * len(polarities))]
        if polarity and n < 7:
            polarity = AFFIRMATIVE
        made = self.verb(frame, tense, polarity, item.feature, pronoun)
        out.append(made)
        negated = 0 < polarity < ADVERB
        used = made.words
        if frame.kind == "V" or frame.kind == "W":
            return used + self.to_do(out, item, n - used, frame, tense, negated)
        return used + self.complement(out, item, n - used, frame, time, tense, negated)

    def to_do(
        self, out: list[Fragment], item: Item, n: int, frame: Frame, tense: int, negated: bool
    ) -> int:
        """Adds the infinitive that a verb takes, with its own complement."""
        choices = item.frames["action"]
        action = choices[int(self.rnd() * len(choices))]
        made = infinitive(
            action.verb, frame.french_preposition, item.feature, bare=frame.kind == "W"
        )
        out.append(made)
        after = FUTURE if tense in (PRESENT, PROGRESSIVE) and frame.kind != "V" else tense
        time = PAST_TIME if tense in (PAST, PERFECT, PAST_PROGRESSIVE) else PRESENT_TIME
        return made.words + self.complement(
            out, item, n - made.words, action, time, after, negated and action.kind == "T"
        )

    def complement(
        self,
        out: list[Fragment],
        item: Item,
        n: int,
        frame: Frame,
        time: int,
        tense: int,
        negated: bool,
    ) -> int:
        """Adds the objects, place or adjective that a verb takes, then adjuncts, to `n` words."""
        rnd = self.rnd
        kind = frame.kind
        used = 0
        thing = None
        if kind == "T" or kind == "P" or kind == "D":
            thing = frame.objects[int(rnd() * len(frame.objects))]
            want = SIZES[int(rnd() * 10)]
            if kind == "D":
                want = max(2, min(want, n - 3))
            elif n - want < 2 or not frame.flags:
                want = n if n < 8 else 6
            used = self.noun(out, frame.preposition, thing, want, negated and kind == "T")
            self.object = None if negated or kind != "T" else thing
            if kind == "D":
                people = self.people
                person = people[int(rnd() * len(people))]
                used += 1 + self.noun(out, self.to, person, min(4, n - used - 1))
                thing = person
        elif kind == "L":
            used = self.stay(out, frame, min(n, 5), "in")
        elif kind == "M":
            used = self.stay(out, frame, min(n, 5), "to")
        elif kind == "A":
            out.append(self.adjective(item.predicates[int(rnd() * len(item.predicates))], item.feature))
            used = 1
        left = n - used
        if thing is not None and left >= 4 and (left > 7 or rnd() < 0.3) and "simple" in thing.frames:
            return used + self.relative(out, thing, left, time)
        if left > 0:
            used += self.fill(out, left, frame, tense)
        return used

    def stay(self, out: list[Fragment], frame: Frame, want: int, english: str) -> int:
        """Adds the place that a verb takes: "in" some place, or "to" it."""
        rnd = self.rnd
        objects = frame.objects
        item = objects[int(rnd() * len(objects))]
        while english == "to" and "to" not in item.place:
            item = objects[int(rnd() * len(objects))]
        if english == "in" and "in" not in item.place:
            english = next(iter(item.place))
        prep = self.nouns.preposition(english, item.place[english])
        return len(english.split()) + self.noun(out, prep, item, max(2, want - 1))

    def relative(self, out: list[Fragment], item: Item, n: int, time: int) -> int:
        """Adds a relative clause of `n` words about the item: "who", "that" with its verb."""
        rnd = self.rnd
        human = item.noun_class in HUMAN
        if n >= 4 and rnd() < 0.4 and item.objects_of and not item.fixed:
            frame = item.objects_of[int(rnd() * len(item.objects_of))]
            subject = frame.subjects[int(rnd() * len(frame.subjects))]
            self.join(out, WHOM if human else THAT)
            tenses = TENSES[time]
            tense = STATES[time] if frame.state else tenses[int(rnd() * len(tenses))]
            used = 1 + self.noun(out, self.plain, subject, min(SIZES[int(rnd() * 10)], n - 2))
            made = self.verb(
                frame, tense, AFFIRMATIVE, subject.feature, agreement=item.feature
            )
            out.append(made)
            used += made.words
            if n > used:
                used += self.fill(out, n - used, frame, tense)
            return used
        out.append(WHO if human else WHICH)
        keep = self.object
        used = 1 + self.predicate(out, item, n - 1, time)
        self.object = keep
        return used

    def clause(self, out: list[Fragment], n: int, time: int, tense: int = -1) -> int:
        """Adds a whole clause of `n` words."""
        rnd = self.rnd
        self.object = None
        roll = rnd()
        if roll < 0.12 or n == 3:
            item = self.pronouns[int(rnd() * len(self.pronouns))]
            self.subject = None
            return self.predicate(out, item, n, time, item.lemma, tense)
        if roll < 0.24 and n >= 6 and tense < 0:
            return self.passive(out, n, time)
        if roll < 0.29 and n >= 7 and tense < 0:
            return self.there(out, n, time)
        pool = self.pools[int(rnd() * len(self.pools))]
        item = pool[int(rnd() * len(pool))]
        while "simple" not in item.frames:
            item = pool[int(rnd() * len(pool))]
        want = SIZES[int(rnd() * 10)]
        if want > n - 3:
            want = 2
        used = self.noun(out, self.plain, item, want)
        if n - used >= 8 and rnd() < 0.35 and not item.fixed:
            used += self.relative(out, item, 3 + int(rnd() * (n - used - 6)), time)
            self.object = None
        used += self.predicate(out, item, n - used, time, "", tense)
        self.subject = item if "simple" in item.frames else None
        return used

    def passive(self, out: list[Fragment], n: int, time: int) -> int:
        """Adds a passive clause, with its agent where there is room."""
        rnd = self.rnd
        item = self.passives[int(rnd() * len(self.passives))]
        choices = item.objects_of
        frame = choices[int(rnd() * len(choices))]
        while not frame.passive:
            frame = choices[int(rnd() * len(choices))]
        want = SIZES[int(rnd() * 10)]
        used = self.noun(out, self.plain, item, min(want, n - 3))
        tenses = PASSIVE_TENSES[time]
        tense = tenses[int(rnd() * len(tenses))]
        polarity = NOT if rnd() < 0.1 else AFFIRMATIVE
        made = self.verb(frame, tense, polarity, item.feature, passive=True)
        out.append(made)
        used += made.words
        left = n - used
        if left >= 3 and rnd() < 0.7:
            agent = frame.subjects[int(rnd() * len(frame.subjects))]
            want = min(left - 1, SIZES[int(rnd() * 10)])
            used += 1 + self.noun(out, self.by, agent, want)
            left = n - used
            if left > 7 and "simple" in agent.frames:
                self.subject = item if "simple" in item.frames else None
                return used + self.relative(out, agent, left, time)
        if left > 0:
            used += self.fill(out, left, frame, tense)
        self.subject = item if "simple" in item.frames else None
        return used

    def there(self, out: list[Fragment], n: int, time: int) -> int:
        """Adds "there is" with an indefinite noun phrase and a place."""
        rnd = self.rnd
        item = self.things[int(rnd() * len(self.things))]
        many = bool(item.feature & 2)
        none = rnd() < 0.15
        kinds = ("no",) if none else MANY_THINGS if many else ("a",)
        kind = determiner_index(kinds[int(rnd() * len(kinds))])
        if kind == ANY_NUMBER:
            kind = NUMBER_CHOICES[int(rnd() * len(NUMBER_CHOICES))]
        verb = THERE[time, many, none]
        modifiers = int(rnd() * 3)
        while not item.cores[modifiers]:
            modifiers -= 1
        made = self.nouns.core(item, modifiers, int(rnd() * len(item.cores[modifiers])))
        out += (verb, self.plain[kind][made.shape], made)
        used = verb.words + out[-2].words + made.words
        left = n - used
        self.subject = None
        if left > 5 and not none and "simple" in item.frames:
            return used + self.relative(out, item, left, time)
        return used + (self.place(out, min(left, 6)) if left >= 2 else 0)

    def join(self, out: list[Fragment], forms: tuple[Fragment, Fragment, Fragment]) -> None:
        """Adds a conjunction or pronoun whose French form depends on the next word."""
        self.joints.append((len(out), forms))
        out.append(forms[0])

    # --- sentences -------------------------------------------------------------------------

    def chain(self, out: list[Fragment], n: int, time: int) -> int:
        """Adds clauses joined by conjunctions, `n` words together."""
        rnd = self.rnd
        used = 0
        last = None
        if n >= 9 and rnd() < 0.22:
            used, time = self.saying(out, time)
        tense = -1
        while True:
            left = n - used
            if left > 10 + int(rnd() * 5):
                room = 5 + int(rnd() * 7)
                if left - room < 7:
                    room = left // 2
            else:
                room = left
            start = used
            if last is not None and last.coordinates and (self.subject or self.object) and rnd() < 0.5:
                used += self.anaphoric(out, room, time, last)
            else:
                used += self.clause(out, room, time, tense)
            left = n - used
            if left < 5:
                return used
            choices = CONJUNCTIONS[time]
            last = choices[int(rnd() * len(choices))]
            self.join(out, last.forms)
            used += last.words
            tense = last.tense
            if last.coordinates is False and n - used > 12 and rnd() < 0.25 and tense < 0:
                more, time = self.saying(out, time)
                used += more

    def anaphoric(self, out: list[Fragment], n: int, time: int, conjunction: "Conjunction") -> int:
        """Adds a clause with a pronoun for the subject or the object of the one before."""
        rnd = self.rnd
        item = self.object
        if item is not None and item.objects_of and (self.subject is None or rnd() < 0.5):
            frame = item.objects_of[int(rnd() * len(item.objects_of))]
            tenses = TENSES[time]
            tense = STATES[time] if frame.state else tenses[int(rnd() * len(tenses))]
            subject = frame.subjects[int(rnd() * len(frame.subjects))]
            used = self.noun(out, self.plain, subject, 2 if n < 7 else 3)
            polarity = NOT if rnd() < 0.2 else AFFIRMATIVE
            clitic = OBJECT_PRONOUNS[item.noun_class in HUMAN, item.feature]
            made = self.verb(frame, tense, polarity, subject.feature, clitic=clitic)
            out.append(made)
            used += made.words
            self.subject = subject if "simple" in subject.frames else None
            self.object = None
            return used + (self.fill(out, n - used, frame, tense) if n > used else 0)
        item = self.subject
        if item is None:
            return self.clause(out, n, time)
        self.object = None
        pronoun = SUBJECT_PRONOUNS[item.noun_class in HUMAN, item.feature]
        if conjunction.joins_verbs and rnd() < 0.5:
            pronoun = ""
        return self.predicate(out, item, n, time, pronoun)

    def saying(self, out: list[Fragment], time: int) -> tuple[int, int]:
        """Adds "the minister says that"; returns its words and the time of what is said."""
        rnd = self.rnd
        frame = self.sayings[int(rnd() * len(self.sayings))]
        subject = frame.subjects[int(rnd() * len(frame.subjects))]
        if time == FUTURE_TIME:
            frame = self.foretellings[int(rnd() * len(self.foretellings))]
            subject = frame.subjects[int(rnd() * len(frame.subjects))]
            tense = PRESENT
        else:
            tense = PAST if time == PAST_TIME and rnd() < 0.5 else PRESENT
        roll = rnd()
        if roll < 0.25 and subject.noun_class in HUMAN:
            item = self.pronouns[int(roll * 24)]
            made = self.verb(frame, tense, AFFIRMATIVE, item.feature, item.lemma)
            out.append(made)
            used = made.words
        else:
            used = self.noun(out, self.plain, subject, 2 + int(rnd() * 2))
            made = self.verb(frame, tense, AFFIRMATIVE, subject.feature)
            out.append(made)
            used += made.words
        if frame.kind == "Q":
            out.append(QUESTION_WORDS[int(rnd() * 2)])
        else:
            self.join(out, THAT)
        return used + 1, time

    def sentence(self, n: int) -> tuple[str, str, str, int]:
        """English, French, links and English words of a sentence of about `n` words."""
        rnd = self.rnd
        out: list[Fragment] = []
        self.subject = self.object = None
        self.joints: list[tuple[int, tuple[Fragment, Fragment, Fragment]]] = []
        time = TIMES[int(rnd() * 10)]
        used = self.chain(out, n, time)
        for place, forms in self.joints:
            out[place] = forms[out[place + 1].initial]
        return *finish(out), used
