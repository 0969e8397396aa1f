"""Verb phrases: tense, negation, adverbs, clitic pronouns, passive, infinitives, questions."""

from dataclasses import dataclass
from functools import cache

from data.generator.fragments import Fragment, Places, Words, forms_before, fragment
from data.generator.inflection import AGREEMENT, MODALS, PERSON, Verb, inflected, read_table

# English tenses. The French ones: présent, passé composé (imparfait of states), passé composé,
# futur, présent, imparfait, plus-que-parfait, and the futur of "when he comes, I will go".
PRESENT, PAST, PERFECT, FUTURE, PROGRESSIVE, PAST_PROGRESSIVE, PLUPERFECT, WHEN_FUTURE = range(8)
# What stands where "not" does: a negation, or (from ADVERB on) an adverb.
AFFIRMATIVE, NOT, NEVER, NO_LONGER, NOTHING, NOBODY, ADVERB = range(7)
MIDDLE = [[], ["not"], ["never"], ["no", "longer"], [], []]  # their English beside the verb
NEGATIONS = {NOT: "pas", NEVER: "jamais", NO_LONGER: "plus", NOTHING: "rien", NOBODY: "personne"}

SUBJECTS = {  # English subject pronoun -> French; "(f)": English hides that it is feminine
    "he": "il",
    "she": "elle",
    "I": "je",
    "we": "nous",
    "you": "vous",
    "they": "ils",
    "they (f)": "elles",
    "it": "il",
    "it (f)": "elle",
}
CLITICS = {  # English object pronoun -> French clitic, gender and number for the participle
    "him": ("le", 0),
    "her": ("la", 1),
    "it": ("le", 0),
    "it (f)": ("la", 1),
    "them": ("les", 2),
    "them (f)": ("les", 3),
    "me": ("me", 0),
    "us": ("nous", 2),
    "you": ("vous", 0),
}
SEPARABLE = ("away", "up")  # particles that come after a pronoun
REFLEXIVE = ("se", "se", "se", "se", "me", "nous", "vous")
INVERTED = ("il", "elle", "ils", "elles", "je", "nous", "vous")


@dataclass(frozen=True)
class Adverb:
    """A mid-sentence adverb: beside the verb in English, after the finite verb in French."""

    en: str
    fr: str
    times: frozenset[str]


MID_ADVERBS = [
    Adverb(en, fr.partition("/")[0], frozenset(times.split(",")))
    for en, fr, kind, times, *_ in read_table("adverbs.tsv")
    if kind == "mid"
]
ETRE = inflected("be", "was been", "être", "")
AVOIR = inflected("have", "had had", "avoir", "")


def plain_english(english: str) -> str:
    """The pronoun as English writes it."""
    return english.removesuffix(" (f)")


# As they are before a consonant, a vowel, and il or ils: je, j', j'.
SUBJECT_FORMS = {
    english: forms_before(plain_english(english), f"{french}/0")
    for english, french in SUBJECTS.items()
}


def _be(past: bool, feature: int) -> str:
    if past:
        return "was" if feature in (0, 1, 4) else "were"
    return "am" if feature == 4 else "is" if feature < 2 else "are"


def _english_main(
    verb: Verb, tense: int, polarity: int, feature: int, copula: bool
) -> tuple[list[str], str]:
    """Auxiliaries and the main verb; with `copula` it is "be" (of adjectives and passives)."""
    third = feature < 2
    past = tense in (PAST, PAST_PROGRESSIVE)
    if tense == FUTURE:
        return ["will"], "be" if copula else verb.en
    if tense in (PERFECT, PLUPERFECT):
        have = "had" if tense == PLUPERFECT else "has" if third else "have"
        return [have], "been" if copula else verb.en_participle
    if copula:
        return [_be(past, feature)], ""
    if verb.en in MODALS:
        return [verb.en_past if past else verb.en], ""
    if tense in (PROGRESSIVE, PAST_PROGRESSIVE):
        return [_be(past, feature)], verb.en_progressive
    if polarity == NOT:
        return ["did" if past else "does" if third else "do"], verb.en
    return [], verb.en_past if past else verb.en_third if third else verb.en


def english_words(
    verb: Verb, tense: int, polarity: int, feature: int, passive: bool
) -> tuple[list[str], list[str], list[str]]:
    """Auxiliaries; not, never or an adverb; the main verb with its particle."""
    before, main = _english_main(verb, tense, polarity, feature, passive or verb.en == "be")
    after = [main] if main else []
    after += [verb.en_participle] if passive else []
    after += [verb.particle] if verb.particle else []
    middle = [MID_ADVERBS[polarity - ADVERB].en] if polarity >= ADVERB else MIDDLE[polarity]
    if before == ["can"] and polarity == NOT:
        return ["cannot"], [], after
    return before, middle, after


def french_finite(verb: Verb, tense: int, feature: int, state: bool) -> tuple[str, bool]:
    """The finite form, and whether it is an auxiliary before the participle."""
    person = PERSON[feature]
    if verb.en == "should":
        return verb.conditional[person], False
    if tense in (PRESENT, PROGRESSIVE):
        return verb.present[person], False
    if tense in (FUTURE, WHEN_FUTURE):
        return verb.future[person], False
    if tense == PAST_PROGRESSIVE or (tense == PAST and state):
        return verb.imperfect[person], False
    auxiliary = ETRE if verb.auxiliary == "être" else AVOIR
    return (auxiliary.imperfect if tense == PLUPERFECT else auxiliary.present)[person], True


def verb_words(
    verb: Verb,
    state: bool,
    tense: int,
    polarity: int,
    feature: int,
    clitic: str = "",
    agreement: int | None = None,
) -> tuple[list[str], Words]:
    """English and French words of an active verb phrase.

    `agreement`: gender and number of a direct object that comes before the verb (que, clitics).
    """
    before, middle, after = english_words(verb, tense, polarity, feature, False)
    en = before + middle + after
    first = tuple(range(len(before)))
    main = tuple(range(len(before) + len(middle), len(en)))
    pronouns: Words = []
    if clitic:
        form, agreement = CLITICS[clitic]
        place = len(en)
        if verb.particle in SEPARABLE:  # "threw it away", but "listened to it"
            place -= 1
            main = (*main[:-1], place + 1)
        pronouns = [(form, (place,))]
        en = [*en[:place], plain_english(clitic), *en[place:]]
    if verb.pronominal:
        pronouns.insert(0, (REFLEXIVE[feature], main))
    finite, compound = french_finite(verb, tense, feature, state)
    links = (first or main) if compound else first + main
    mid = (0,) if en[0] == "cannot" else tuple(range(len(before), len(before) + len(middle)))
    if polarity in (NOTHING, NOBODY):
        mid = (len(en),)
        en = [*en, "nothing" if polarity == NOTHING else "nobody"]
    fr = _around_finite(pronouns, (finite, links), polarity, mid)
    if compound:
        if verb.auxiliary == "être":
            agreement = AGREEMENT[feature]
        fr.append((verb.participle[agreement or 0], main))
    if verb.noun:
        fr.append((verb.noun, main))
    if polarity == NOBODY:
        fr.append(("personne", mid))
    return en, fr


def _around_finite(
    pronouns: Words, finite: tuple[str, Places], polarity: int, mid: Places
) -> Words:
    """ne, clitics, the finite verb, and pas or an adverb ("personne" comes later)."""
    if polarity in NEGATIONS:
        pas = [] if polarity == NOBODY else [(NEGATIONS[polarity], mid)]
        return [("ne", mid), *pronouns, finite, *pas]
    adverb = [(MID_ADVERBS[polarity - ADVERB].fr, mid)] if polarity >= ADVERB else []
    return [*pronouns, finite, *adverb]


def passive_words(verb: Verb, tense: int, polarity: int, feature: int) -> tuple[list[str], Words]:
    """English and French words of a passive: "was not signed", "n'a pas été signé"."""
    before, middle, after = english_words(verb, tense, polarity, feature, True)
    en = before + middle + after
    last = (len(en) - 1,)
    been = tuple(range(len(before) + len(middle), len(en) - 1))
    mid = tuple(range(len(before), len(before) + len(middle)))
    if tense in (PAST, PERFECT, PLUPERFECT):  # "was" is "a été", "has been" word for word
        auxiliary = AVOIR.imperfect if tense == PLUPERFECT else AVOIR.present
        fr = _around_finite([], (auxiliary[PERSON[feature]], (0,)), polarity, mid)
        fr.append(("été", been or (0,)))
    else:
        finite, _ = french_finite(ETRE, tense, feature, True)
        fr = _around_finite([], (finite, (0, *been)), polarity, mid)
    fr.append((verb.participle[AGREEMENT[feature]], last))
    return en, fr


@cache
def infinitive(verb: Verb, preposition: str, feature: int, bare: bool = False) -> Fragment:
    """ "to sign" with the French preposition that the verb before it asks for; bare: "sign"."""
    en = [*([] if bare else ["to"]), verb.en, *([verb.particle] if verb.particle else [])]
    main = tuple(range(0 if preposition == "-" else 1, len(en)))
    fr: Words = [] if preposition == "-" else [(preposition, (0,))]
    return fragment(en, fr + _infinitive_words(verb, feature, main))


@cache
def gerund(verb: Verb, english: str, french: str, feature: int) -> Fragment:
    """ "without signing" / "sans signer", "before signing" / "avant de signer"."""
    heads = english.split()
    en = [*heads, verb.en_progressive, *([verb.particle] if verb.particle else [])]
    fr: Words = [(word, tuple(range(len(heads)))) for word in french.split()]
    main = tuple(range(len(heads), len(en)))
    return fragment(en, fr + _infinitive_words(verb, feature, main))


def _infinitive_words(verb: Verb, feature: int, main: Places) -> Words:
    fr: Words = [(REFLEXIVE[feature], main)] if verb.pronominal else []
    fr.append((verb.infinitive, main))
    return fr + ([(verb.noun, main)] if verb.noun else [])


def question_words(
    verb: Verb, state: bool, tense: int, feature: int, agreement: int | None = None
) -> tuple[list[str], Words]:
    """Words of a question, the English auxiliary first: "did", "sign" / "a", "signé".

    Made from the negative, which has the auxiliary, by leaving out "not" and "ne ... pas".
    """
    en, fr = verb_words(verb, state, tense, NOT, feature, "", agreement)
    gone = len(en)
    if en[0] == "cannot":
        en[0] = "can"
    else:
        gone = en.index("not")
        en.pop(gone)
    return en, [
        (word, tuple(i - (i > gone) for i in places))
        for word, places in fr
        if word not in ("ne", "pas")
    ]


def inverted(verb: Verb, feature: int, fr: Words) -> Words:
    """The French words with the subject pronoun after the finite verb: "a-t-il signé"."""
    place = int(verb.pronominal)
    form, places = fr[place]
    pronoun = INVERTED[feature]
    link = "-t-" if form[-1] in "ae" and pronoun[0] in "ie" else "-"
    return [*fr[:place], (form + link + pronoun, places), *fr[place + 1 :]]
