"""Questions: whether, who, what, which, how many, where, when and why."""

from dataclasses import replace

from data.generator.clauses import Clauses
from data.generator.fragments import Fragment, around_subject, forms_before, fragment, merge, phrase
from data.generator.frames import NOW, PERSONAL, STATES, THEN, Frame
from data.generator.items import Item
from data.generator.predicates import UNNAMED
from data.generator.verbs import FUTURE, PAST, PERFECT, PRESENT, inverted, question_words

ASKING = (phrase("where", "où/0"), phrase("when", "quand/0"), phrase("why", "pourquoi/0"))
WHAT = forms_before("what", "qu'/0 est-ce/0 que/0")
WHO_ASKED = phrase("who", "qui/0")
WHICH_ASKED = [phrase("which", f"{fr}/0") for fr in ("quel", "quelle", "quels", "quelles")]
HOW_MANY = [phrase("how many", f"combien/0,1 {de}/0,1") for de in ("de", "d'")]


class Questions(Clauses):
    """Questions; as in clauses, methods return the English words that they added.

    Yes/no questions invert a compound tense ("a-t-il signé") and forms of être; simple tenses take
    "est-ce que", which keeps the French vocabulary small.
    """

    def __init__(self, compose: bool, share: float) -> None:
        super().__init__(compose, share)
        frames = [f for f in self.frames.all if f.kind in "TPIDLM" and "n" not in f.flags]
        frames += [f for f in self.frames.all if f.verb.en == "be"]
        self.citizen = next(i for i in self.nouns.items if i.lemma == "citizen")
        objects = [f for f in frames if f.kind == "T" and not f.verb.particle]
        self.askable = {
            "whether": frames,
            "whether I": [f for f in frames if f.verb.en in PERSONAL],
            "whether he": [f for f in frames if self.citizen in f.subjects],
            "what": [f for f in objects if f.objects[0].noun_class not in ("leader", "person")],
            "where": [f for f in frames if f.kind in "TI" and "p" in f.adjuncts and not f.state],
        }

    def question(self, out: list[Fragment], n: int, mode: int) -> int:
        """Adds a question of at most about eleven words."""
        self.lasting = self.perfect = self.dated = False
        kinds = (self.whether, self.whether, self.whether_pronoun, self.who, self.what)
        if n < 12:  # a longer one goes on with "because" or "when"
            kinds += (self.which, self.how_many, self.where)
        kind = kinds[int(self.rnd() * len(kinds))] if n > 5 else self.who
        return kind(out, min(n, 5 + int(self.rnd() * 7)), mode)

    def asked(
        self, n: int, mode: int, frames: list[Frame], compound: bool = False
    ) -> tuple[Frame, int]:
        """A verb that may be asked about in so many words, and its tense."""
        rnd = self.rnd
        frame = frames[int(rnd() * len(frames))]
        while frame.least + 3 > max(n, 6) or (compound and frame.state):
            frame = frames[int(rnd() * len(frames))]
        tense = STATES[mode]
        self.lasting = frame.state or tense == PRESENT
        if frame.state:
            return frame, tense
        once = "o" in frame.flags and mode == NOW
        if (mode == NOW and rnd() < 0.5) or once:
            tense = PERFECT
        if compound and tense not in (PAST, PERFECT):
            tense = PAST if rnd() < 0.5 else PERFECT
        self.perfect = tense == PERFECT
        return frame, tense

    def inquire(
        self,
        out: list[Fragment],
        item: Item,
        frame: Frame,
        tense: int,
        want: int,
        agreement: int | None = None,
        invert: bool = True,
    ) -> int:
        """Adds auxiliary, subject and verb: "did the doctor sign" / "le médecin a-t-il signé"."""
        parts: list[Fragment] = []
        self.noun(parts, self.plain, item, want)
        en, fr = question_words(frame.verb, frame.state, tense, item.feature, agreement)
        if invert:
            fr = inverted(frame.verb, item.feature, fr)
        out.append(around_subject(merge(parts), en, fr))
        return out[-1].words

    def whether(self, out: list[Fragment], n: int, mode: int) -> int:
        """Adds "did the doctor sign the treaty" / "le médecin a-t-il signé le traité"."""
        frame, tense = self.asked(n, mode, self.askable["whether"])
        item = self.pick(frame.subjects)
        while frame.kind == "A" and not item.predicates:
            item = self.pick(frame.subjects)
        inverts = (tense in (PAST, PERFECT) and not frame.state) or frame.kind == "A"
        if inverts and tense != FUTURE:
            used = self.inquire(out, item, frame, tense, self.size(3))
        else:
            used = self.is_it_that(out, item, frame, tense)
        subject = item if frame.kind == "A" else UNNAMED
        left = n - used
        return used + self.complement(out, subject, left, frame, mode, tense, self.definite)

    def is_it_that(self, out: list[Fragment], item: Item, frame: Frame, tense: int) -> int:
        """Adds "does the doctor sign" / "est-ce que le médecin signe"."""
        parts: list[Fragment] = []
        self.noun(parts, self.plain, item, self.size(3))
        subject = merge(parts)
        en, fr = question_words(frame.verb, frame.state, tense, item.feature)
        made = around_subject(subject, en, fr)
        ask = "est-ce qu'" if made.initial else "est-ce que "
        links = (0, 1, *(link + 2 for link in made.links))
        out.append(replace(made, fr=ask + made.fr, links=links, size=made.size + 2, initial=1))
        return made.words

    def whether_pronoun(self, out: list[Fragment], n: int, mode: int) -> int:
        """Adds "did she sign the treaty" / "a-t-elle signé le traité"."""
        pronouns = self.frames.pronouns
        item = pronouns[(0, 1, 2, 4, 5)[int(self.rnd() * 5)]]
        frames = self.askable["whether I" if item.feature > 3 and mode != THEN else "whether he"]
        frame, tense = self.asked(n + 1, mode, frames)
        en, fr = question_words(frame.verb, frame.state, tense, item.feature)
        ask = []
        if (tense in (PAST, PERFECT) and not frame.state) or (
            frame.kind == "A" and tense != FUTURE
        ):
            place = int(frame.verb.pronominal)
            fr = inverted(frame.verb, item.feature, fr)
            word, places = fr[place]
            fr[place] = (word, (*places, -1))  # the pronoun is part of it
        else:
            french = ("il", "elle", "ils", "", "je", "nous", "vous")[item.feature]
            ask = [("est-ce", (0,)), ("que", (0,))]
            fr = [(french, (-1,)), *fr]
        shifted = [
            (word, tuple(1 if i < 0 else i + (i > 0) for i in places)) for word, places in fr
        ]
        made = fragment([en[0], item.lemma, *en[1:]], [*ask, *shifted])
        out.append(made)
        subject = item if frame.kind == "A" else UNNAMED
        left = n - made.words
        return made.words + self.complement(out, subject, left, frame, mode, tense, self.definite)

    def who(self, out: list[Fragment], n: int, mode: int) -> int:
        """Adds "who signed the treaty" / "qui a signé le traité"."""
        out.append(WHO_ASKED)
        return 1 + self.predicate(out, self.citizen, n - 1, mode)

    def what(self, out: list[Fragment], n: int, mode: int) -> int:
        """Adds "what did the doctor sign" / "qu'est-ce que le médecin a signé"."""
        frame, tense = self.asked(n, mode, self.askable["what"])
        self.join(out, WHAT)
        item = self.pick(frame.subjects)
        used = 1 + self.inquire(out, item, frame, tense, self.size(3), invert=False)
        return used + self.adjuncts.fill(out, n - used, frame, tense)

    def where(self, out: list[Fragment], n: int, mode: int) -> int:
        """Adds "where did the doctor sign the treaty" / "où le médecin a-t-il signé le traité"."""
        which = int(self.rnd() * 3)
        frame, tense = self.asked(n, mode, self.askable["where"], compound=True)
        if which == 1:
            tense = PAST  # not "when has he signed"
        out.append(ASKING[which])
        used = 1 + self.inquire(out, self.pick(frame.subjects), frame, tense, self.size(3))
        if frame.kind == "T":
            thing = self.pick(frame.objects)
            used += self.noun(out, self.plain, thing, max(2, n - used), self.definite)
        return used

    def which(self, out: list[Fragment], n: int, mode: int) -> int:
        """Adds "which treaty did the doctor sign" / "quel traité le médecin a-t-il signé"."""
        return self.asked_object(out, n, mode, many=False)

    def how_many(self, out: list[Fragment], n: int, mode: int) -> int:
        """Adds "how many treaties did he sign" / "combien de traités a-t-il signés"."""
        return self.asked_object(out, n, mode, many=True)

    def asked_object(self, out: list[Fragment], n: int, mode: int, many: bool) -> int:
        """Adds a question about the object, which the participle agrees with."""
        frame, tense = self.asked(n, mode, self.askable["what"], compound=True)
        item = self.pick(frame.objects)
        while item.fixed or item.noun_class == "topic" or (many and not item.feature & 2):
            frame, tense = self.asked(n, mode, self.askable["what"], compound=True)
            item = self.pick(frame.objects)
        thing = self.core(item, 1 if n > 7 else 0)
        article = HOW_MANY[bool(thing.shape & 4)] if many else WHICH_ASKED[item.feature]
        out += (article, thing)
        used = article.words + thing.words
        subject = self.pick(frame.subjects)
        used += self.inquire(out, subject, frame, tense, 2, agreement=item.feature)
        return used + self.adjuncts.fill(out, n - used, frame, tense)
