"""Verb phrases of the generated corpus: tense, negation, adverbs, clitic pronouns, passive."""

from dataclasses import dataclass
from functools import cache

from data.grammar_words import (
    AGREEMENT,
    PERSON,
    Fragment,
    Verb,
    conjugate,
    fragment,
    read_table,
)

# English tenses. The French ones: présent, passé composé (imparfait of states), passé composé,
# futur, présent, imparfait, plus-que-parfait, and the futur of "when he comes, I will go".
PRESENT, PAST, PERFECT, FUTURE, PROGRESSIVE, PAST_PROGRESSIVE, PLUPERFECT, WHEN_FUTURE = range(8)
# What stands where "not" does: a negation, or (from ADVERB on) an adverb.
AFFIRMATIVE, NOT, NEVER, NO_LONGER, NOTHING, NOBODY, ADVERB = range(7)
NEGATIONS = {NOT: "pas", NEVER: "jamais", NO_LONGER: "plus", NOTHING: "rien", NOBODY: "personne"}

SUBJECTS = {  # feature -> English and French subject pronoun; "they" and "it" agree with a noun
    "he": ("il", 0),
    "she": ("elle", 1),
    "I": ("je", 4),
    "we": ("nous", 5),
    "you": ("vous", 6),
    "they": ("ils", 2),
    "they (f)": ("elles", 3),
    "it": ("il", 0),
    "it (f)": ("elle", 1),
}
CLITICS = {  # English object pronoun -> French clitic, agreement of the participle, before the noun
    "him": ("le", 0),
    "her": ("la", 1),
    "it": ("le", 0),
    "it (f)": ("la", 1),
    "them": ("les", 2),
    "them (f)": ("les", 3),
    "me": ("me", 0),
    "us": ("nous", 2),
    "you": ("vous", 0),
    "to him": ("lui", None),
    "to her": ("lui", None),
    "to me": ("me", None),
    "to us": ("nous", None),
    "to you": ("vous", None),
    "to them": ("leur", None),
}
REFLEXIVE = ("se", "se", "se", "se", "me", "nous", "vous")

Words = list[tuple[str, tuple[int, ...]]]


@dataclass(frozen=True)
class Adverb:
    """A mid-sentence adverb: beside the verb in English, after the finite verb in French."""

    en: str
    fr: str
    tenses: frozenset[str]


MID_ADVERBS = [
    Adverb(en, fr.partition("/")[0], frozenset(when.split(",")))
    for en, fr, kind, when, *_ in read_table("adverbs.tsv")
    if kind == "mid"
]


@cache
def verb(english: str, past: str, french: str, particle: str) -> Verb:
    """The inflected verb of a row of verbs.tsv."""
    return conjugate(english, past, french, particle, irregular_verbs())


@cache
def irregular_verbs() -> dict[str, list[str]]:
    """Infinitive -> principal parts, from conjugations.tsv."""
    return {row[0]: [*row[1:8], row[8]] for row in read_table("conjugations.tsv")}


def _be(past: bool, feature: int) -> str:
    if past:
        return "was" if feature in (0, 1, 4) else "were"
    return "am" if feature == 4 else "is" if feature < 2 else "are"


def english_words(
    verb: Verb, tense: int, polarity: int, feature: int, passive: bool
) -> tuple[list[str], list[str], list[str]]:
    """Auxiliaries, what stands between (not, never, often), and the main verb with its particle."""
    third = feature < 2
    past = tense in (PAST, PAST_PROGRESSIVE)
    be, modal = verb.en == "be", verb.en in ("can", "must")
    copula = be or passive
    before: list[str] = []
    if tense == FUTURE:
        before, main = ["will"], "be" if copula else verb.en
    elif tense in (PERFECT, PLUPERFECT):
        before = ["had" if tense == PLUPERFECT else "has" if third else "have"]
        main = "been" if copula else verb.en_participle
    elif copula:
        before, main = [_be(past, feature)], ""
    elif modal:
        before, main = [verb.en_past if past else verb.en], ""
    elif tense in (PROGRESSIVE, PAST_PROGRESSIVE):
        before, main = [_be(past, feature)], verb.en_progressive
    elif polarity == NOT:
        before, main = ["did" if past else "does" if third else "do"], verb.en
    else:
        main = verb.en_past if past else verb.en_third if third else verb.en
    after = [main] if main else []
    if passive:
        after.append(verb.en_participle)
    if verb.particle:
        after.append(verb.particle)
    middle = {NOT: ["not"], NEVER: ["never"], NO_LONGER: ["no", "longer"]}.get(polarity, [])
    if polarity >= ADVERB:
        middle = [MID_ADVERBS[polarity - ADVERB].en]
    if modal and polarity == NOT and not past and verb.en == "can":
        return ["cannot"], [], after
    return before, middle, after


def french_finite(verb: Verb, tense: int, feature: int, stative: bool) -> tuple[str, bool]:
    """The finite form, and whether it is an auxiliary before the participle."""
    person = PERSON[feature]
    if tense in (PRESENT, PROGRESSIVE):
        return verb.present[person], False
    if tense in (FUTURE, WHEN_FUTURE):
        return verb.future[person], False
    if tense == PAST_PROGRESSIVE or (tense == PAST and stative):
        return verb.imperfect[person], False
    auxiliary = _auxiliary(verb.auxiliary)
    forms = auxiliary.imperfect if tense == PLUPERFECT else auxiliary.present
    return forms[person], True


@cache
def _auxiliary(infinitive: str) -> Verb:
    return verb("be", "was been", infinitive, "")


def verb_words(
    verb: Verb,
    stative: bool,
    tense: int,
    polarity: int,
    feature: int,
    clitic: str = "",
    agreement: int | None = None,
    passive: bool = False,
) -> tuple[list[str], Words]:
    """English words of a verb phrase and the French ones with the positions that they translate.

    `agreement`: gender and number of a direct object that comes before in French (que, clitics).
    """
    before, middle, after = english_words(verb, tense, polarity, feature, passive)
    en = before + middle + after
    first, start = tuple(range(len(before))), len(before) + len(middle)
    main = tuple(range(start, len(en)))
    mid = tuple(range(len(before), start))
    carrier = _auxiliary("être") if passive else verb
    finite, compound = french_finite(carrier, tense, feature, stative and not passive)
    if passive and tense == PAST:  # "was signed": "a été signé"
        finite, compound = _auxiliary("avoir").present[PERSON[feature]], True
    last = main[-1:] if passive else main  # the English of the main participle
    helper = first + main[:-1] if passive else first
    if compound:
        links = first if first else main
        participle_links = main
    else:
        links = helper if passive else first + main
        participle_links = main
    if en[0] == "cannot":
        mid = (0,)
    reflexive = [(REFLEXIVE[feature], last)] if verb.pronominal else []
    fr: Words = [(finite, links)]
    pronouns: Words = list(reflexive)
    if clitic:
        english = clitic.removeprefix("to ").removesuffix(" (f)")
        form, gender = CLITICS[clitic]
        pronouns.append((form, (len(en),)))
        en = [*en, english]
        agreement = gender
    if polarity in (NOTHING, NOBODY):
        mid = (len(en),)
        en = [*en, "nothing" if polarity == NOTHING else "nobody"]
    if polarity in NEGATIONS:
        fr = [("ne", mid), *pronouns, *fr]
        if polarity != NOBODY:
            fr.append((NEGATIONS[polarity], mid))
    else:
        fr = pronouns + fr
        if polarity >= ADVERB:
            fr.append((MID_ADVERBS[polarity - ADVERB].fr, mid))
    if compound:
        fr += _participles(verb, feature, agreement, passive, main, participle_links, tense)
    elif passive:
        fr.append((verb.participle[AGREEMENT[feature]], last))
    if verb.noun:
        fr.append((verb.noun, participle_links or links))
    if polarity == NOBODY:
        fr.append(("personne", mid))
    return en, fr


def _participles(
    verb: Verb,
    feature: int,
    agreement: int | None,
    passive: bool,
    main: tuple[int, ...],
    links: tuple[int, ...],
    tense: int,
) -> Words:
    """The participles of a compound tense: "signé", "partie", "été signés"."""
    if passive:
        been = main[:-1] if tense != PAST else (0,)  # "was" is "a été"
        return [("été", been), (verb.participle[AGREEMENT[feature]], main[-1:])]
    if verb.auxiliary == "être":
        agreement = AGREEMENT[feature]
    return [(verb.participle[agreement or 0], links)]


def with_subject(pronoun: str, words: tuple[list[str], Words]) -> Fragment:
    """The fragment of a verb phrase after its pronoun subject."""
    en, fr = words
    english = pronoun.removesuffix(" (f)")
    shifted = [(word, tuple(i + 1 for i in places)) for word, places in fr]
    return fragment([english, *en], [(SUBJECTS[pronoun][0], (0,)), *shifted])


@cache
def infinitive(
    verb: Verb, preposition: str, feature: int, clitic: str = "", bare: bool = False
) -> Fragment:
    """ "to sign" with the French preposition that the verb before it asks for; bare: "sign"."""
    en = ([] if bare else ["to"]) + [verb.en] + ([verb.particle] if verb.particle else [])
    main = tuple(range(0 if preposition == "-" else 1, len(en)))
    fr: Words = [] if preposition == "-" else [(preposition, (0,))]
    if verb.pronominal:
        fr.append((REFLEXIVE[feature], main))
    if clitic:
        fr.append((CLITICS[clitic][0], (len(en),)))
        en = [*en, clitic.removeprefix("to ").removesuffix(" (f)")]
    fr.append((verb.infinitive, main))
    if verb.noun:
        fr.append((verb.noun, main))
    return fragment(en, fr)


@cache
def passive_infinitive(verb: Verb, feature: int) -> Fragment:
    """ "be signed" after a modal: "être signée"."""
    return fragment(
        ["be", verb.en_participle],
        [("être", (0,)), (verb.participle[AGREEMENT[feature]], (1,))],
    )
