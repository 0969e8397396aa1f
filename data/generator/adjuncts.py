"""Adjuncts: when, where, how and with whom, to a wanted number of words."""

from functools import cache
from itertools import product

from data.generator.determiners import number_words
from data.generator.fragments import Fragment, phrase
from data.generator.frames import Frame
from data.generator.inflection import read_table
from data.generator.items import Item
from data.generator.phrases import Phrases
from data.generator.verbs import (
    FUTURE,
    PAST,
    PAST_PROGRESSIVE,
    PERFECT,
    PLUPERFECT,
    PRESENT,
    PROGRESSIVE,
    WHEN_FUTURE,
)

MONTHS = (
    ("January", "janvier"),
    ("February", "février"),
    ("March", "mars"),
    ("April", "avril"),
    ("May", "mai"),
    ("June", "juin"),
    ("July", "juillet"),
    ("August", "août"),
    ("September", "septembre"),
    ("October", "octobre"),
    ("November", "novembre"),
    ("December", "décembre"),
)
DAYS = (
    ("Monday", "lundi"),
    ("Tuesday", "mardi"),
    ("Wednesday", "mercredi"),
    ("Thursday", "jeudi"),
    ("Friday", "vendredi"),
    ("Saturday", "samedi"),
    ("Sunday", "dimanche"),
)
HOURS = (*range(2, 12),)
YEARS = [("past", year) for year in range(1985, 2020)]
YEARS += [("future", year) for year in range(2030, 2036)]
SPANS = (("years", "ans"), ("months", "mois"), ("days", "jours"))
SPAN_NUMBERS = (*range(2, 13), 15, 20, 21, 30, 50, 80, 91)
MOST = 15  # words of adjuncts after one verb
AROUND = (
    ("near", "près de"),
    ("behind", "derrière"),
    ("in front of", "devant"),
    ("opposite", "en face de"),
    ("next to", "à côté de"),
)
STATE_TIMES = {
    PRESENT: "state_present",
    PAST: "state_past",
    FUTURE: "state_future",
    WHEN_FUTURE: "state_future",
}

# parts: a bank of manners (a list) or of times (a tuple), words of a place, or -words of company
Plan = tuple[list[Fragment] | tuple[Fragment, ...] | int, ...]


def dates() -> list[tuple[str, Fragment]]:
    """Dates and hours, with the name of the times that they go with (see adverbs.tsv)."""
    made = []
    for when, year in YEARS:
        made += [(when, phrase(f"in {year}", f"en/0 {year}/1"))] * 3
        for place, (en, fr) in enumerate(MONTHS):
            made.append((when, phrase(f"in {en} {year}", f"en/0 {fr}/1 {year}/2")))
            day = (place * 7 + year * 3) % 28 + 1
            written = "1er" if day == 1 else str(day)
            french = f"le/0 {written}/1 {fr}/2 {year}/3"
            made.append((when, phrase(f"on {day} {en} {year}", french)))
    for when in ("past", "future"):
        for en, fr in MONTHS:
            made += [(when, phrase(f"in {en}", f"en/0 {fr}/1"))] * 4
        for en, fr in DAYS:
            made += [(when, phrase(f"on {en}", f"{fr}/0,1"))] * 4
            made.append((when, phrase(f"on {en} morning", f"{fr}/0,1 matin/2")))
            made.append((when, phrase(f"on {en} evening", f"{fr}/0,1 soir/2")))
        for hour in HOURS:
            [en], [(fr, _)] = number_words(hour, True)
            made.append((when, phrase(f"at {en} o'clock", f"à/0 {fr}/1 heures/2,3")))
    for number in SPAN_NUMBERS:
        [en], words = number_words(number, False)
        count = " ".join(f"{word}/0" for word, _ in words)
        later = count.replace("/0", "/1")
        for unit, french in SPANS:
            made.append(("past", phrase(f"{en} {unit} ago", f"il/2 y/2 a/2 {count} {french}/1")))
            made.append(("future", phrase(f"in {en} {unit}", f"dans/0 {later} {french}/2")))
    return made


class Adjuncts:
    """Banks of adjuncts, and the ways in which they add up to each number of words."""

    def __init__(self, phrases: Phrases) -> None:
        self.phrases = phrases
        times: dict[str, list[Fragment]] = {}
        self.manners: dict[str, list[Fragment]] = {}
        for en, fr, kind, names, *_ in read_table("adverbs.tsv"):
            bank = self.manners if kind == "manner" else times
            for name in names.split(",") if kind != "mid" else ():
                bank.setdefault(name, []).append(phrase(en, fr))
        for name, made in dates():
            times.setdefault(name, []).append(made)
        past = times["past"]
        self.times: dict[int, list[Fragment]] = {  # by English tense
            PAST: past,
            PRESENT: times["present"],
            FUTURE: times["future"],
            WHEN_FUTURE: [f for f in times["future"] if f.words <= 2 and f.en != "afterwards "],
            PERFECT: [],
            PROGRESSIVE: times["progressive"],
            PAST_PROGRESSIVE: [f for f in past if f.en != "afterwards "],
            PLUPERFECT: [f for f in past if f.en.startswith(("before", "during", "in 1", "on 1"))],
        }
        self.states = {
            tense: [f for f in times[name] if f.words > 1] for tense, name in STATE_TIMES.items()
        }
        self.by_words = cache(self._by_words)
        select, preposition = phrases.nouns.select, phrases.nouns.preposition
        self.scenes = []
        for item in select("site"):
            own = next(iter(item.place.items()))
            near = AROUND if item.noun_class in ("building", "home") else AROUND[:1]
            self.scenes += [(item, preposition(*pair)) for pair in [own] * 6 + list(near)]
        self.cities = [(i, preposition("in", i.place["in"])) for i in select("city country")]
        self.people = select("human")
        self.with_ = preposition("with", "avec")

    def plan(self, flags: str, tense: int, state: bool, manner: bool) -> list[list[Plan]]:
        """Ways to fill each number of words with manner, company, place and time.

        Where there is none, those of the next smaller number.
        """
        lasting = "t" not in flags and (state or "d" in flags)
        times = self.by_words(tense, lasting) if lasting or "t" in flags else [()] * 8
        names = flags if manner else ""
        ways = [f for name in "mwqe" if name in names for f in self.manners[name]]
        if tense in (PRESENT, PROGRESSIVE):  # not "for the first time every day"
            ways = [f for f in ways if not f.en.startswith("for ")]
        manners = [[f for f in ways if f.words == n] for n in range(5)]
        plans: list[list[Plan]] = [[] for _ in range(MOST + 1)]
        choices = product(
            [n for n in range(5) if manners[n] or not n],
            (0, 2, 3, 4) if "c" in flags else (0,),
            (0, 2, 3, 4, 5, 6) if "p" in flags else (0,),
            [n for n in range(8) if times[n] or not n],
        )
        for m, c, p, t in choices:
            if m + c + p + t <= MOST and not (m and c and p and t):
                parts = (manners[m] if m else 0, -c, p, times[t] if t else 0)
                plans[m + c + p + t].append(tuple([part for part in parts if part]))
        plans[0] = []
        for words in range(1, MOST + 1):
            plans[words] = plans[words] or plans[words - 1]
        return plans

    def _by_words(self, tense: int, lasting: bool) -> list[tuple[Fragment, ...]]:
        """The times that go with events or states in a tense, by number of words."""
        bank = self.states.get(tense, []) if lasting else self.times[tense]
        return [tuple(f for f in bank if f.words == n) for n in range(8)]

    def fill(
        self, out: list[Fragment], left: int, frame: Frame, tense: int, manner: bool = True
    ) -> int:
        """Adds adjuncts of `left` words, or as near below as can be."""
        plans = frame.plans.get((tense, manner))
        if plans is None:
            plans = frame.plans[tense, manner] = self.plan(
                frame.adjuncts, tense, frame.state, manner
            )
        choices = plans[max(0, min(left, MOST))]
        if not choices:
            return 0
        rnd = self.phrases.rnd
        used = 0
        for part in choices[int(rnd() * len(choices))]:
            if part.__class__ is list or part.__class__ is tuple:
                made = part[int(rnd() * len(part))]
                if part.__class__ is tuple:  # a time
                    self.phrases.dated = True
                out.append(made)
                used += made.words
            elif part > 0:
                used += self.place(out, part)
            else:
                person = self.phrases.pick(self.people)
                used += self.phrases.noun(out, self.with_, person, -part - 1)
        return used

    def place(self, out: list[Fragment], want: int) -> int:
        """Adds where something happens."""
        places = self.cities if want == 2 else self.scenes
        item, prep = places[int(self.phrases.rnd() * len(places))]
        return self.phrases.noun(out, prep, item, want - 1)

    def stay(self, out: list[Fragment], items: list[Item], want: int, english: str) -> int:
        """Adds the place that a verb takes: "in" some place, or "to" it."""
        item = self.phrases.pick(items)
        while english == "to" and "to" not in item.place:
            item = self.phrases.pick(items)
        if english not in item.place:
            english = next(iter(item.place))
        prep = self.phrases.nouns.preposition(english, item.place[english])
        return self.phrases.noun(out, prep, item, max(2, want - 1))
