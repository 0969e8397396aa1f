"""Words of the generated corpus: the lexicon's tables, the inflection of both languages, fragments.

A fragment is a piece of a sentence in both languages with its alignment; sentences are fragments
one after another. Features number who a phrase is about: 0 to 3 are masculine, feminine, masculine
plural, feminine plural; 4 is "I", 5 "we", 6 "you" (one person, addressed politely); the last three
are masculine where French has to choose.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

LEXICON = Path(__file__).parent / "lexicon"
# What counts as a word in the alignments: the same rule as evaluation.alignment.words.
WORD = re.compile(r"'s\b|[^\W_]+(?:-[^\W_]+)*(?:'(?=\w)(?!s\b))?|[^\w\s]|_")

AGREEMENT = (0, 1, 2, 3, 0, 2, 0)  # feature -> gender and number of participles and adjectives
PERSON = ("il", "il", "ils", "ils", "je", "nous", "vous")  # feature -> French person
ASPIRATED = frozenset(("haut", "haute", "hauts", "hautes", "huit", "Hongrie"))
NOT_ELIDED = frozenset(("onze", "un-"))
ELIDED = {"le": "l'", "la": "l'", "de": "d'", "ne": "n'", "que": "qu'", "je": "j'"} | {
    "me": "m'",
    "se": "s'",
}
CONSONANT, VOWEL, HE = 0, 1, 2  # how a French fragment starts; HE: "il" or "ils" (si -> s')
VOICED_CONSONANT = ("eu", "uni", "use", "one", "once")  # English letters that sound a consonant
SILENT_H = ("hon", "hour", "heir")
DOUBLED = frozenset("stop cut plan swim run begin forget sit win travel cancel".split())


class Fragment(NamedTuple):
    """A piece of a sentence; both texts end in a space unless elided."""

    en: str
    fr: str
    links: tuple[int, ...]  # 256 * English word + French word, from the fragment's start
    size: int  # 256 * number of English words + number of French words
    words: int  # English words between spaces, what lengths are counted in
    initial: int  # CONSONANT, VOWEL or HE: how the French starts
    shape: int  # of noun phrases: what their determiner agrees with (see `shape_of`)


def read_table(name: str) -> list[list[str]]:
    """The rows of a lexicon file, without comments; missing last columns are empty."""
    rows = []
    for number, line in enumerate((LEXICON / name).read_text("utf-8").splitlines(), start=1):
        if line and not line.startswith("#"):
            row = line.split("\t")
            if len(row) < 2:
                raise ValueError(f"{LEXICON / name}, line {number}: columns are parted by TAB")
            rows.append(row + [""] * (8 - len(row)))
    return rows


def starts_with_vowel(french: str) -> bool:
    """Whether "le", "de", "que" ... lose their vowel before this word."""
    if french in ASPIRATED or french in NOT_ELIDED:
        return False
    return french[0].lower() in "aeiouyhâàéèêëîïôöûùœæ"


def article_a(english: str) -> str:
    """ "a" or "an", by how the next English word sounds."""
    word = english.lower()
    if word.startswith(SILENT_H):
        return "an"
    return "an" if word[0] in "aeiou" and not word.startswith(VOICED_CONSONANT) else "a"


def fragment(en: Sequence[str], fr: Sequence[tuple[str, tuple[int, ...]]], shape: int = 0):
    """The fragment of English words and of French words with the positions they translate.

    French words lose their vowel before the next one where they must.
    """
    words = [word for word, _ in fr]
    for place, word in enumerate(words[:-1]):
        if word in ELIDED and starts_with_vowel(words[place + 1]):
            words[place] = ELIDED[word]
    text = "".join(word if word.endswith("'") else word + " " for word in words)
    links = sorted((i << 8) + j for j, (_, positions) in enumerate(fr) for i in positions)
    initial = CONSONANT
    if words:
        initial = HE if words[0] in ("il", "ils") else int(starts_with_vowel(words[0]))
    english = " ".join(en)
    counted = len(WORD.findall(english))
    assert all(len(WORD.findall(word.rstrip("'"))) == 1 for word in words), words
    size = (counted << 8) + len(words)
    return Fragment(
        english + " " * bool(en), text, tuple(links), size, len(english.split()), initial, shape
    )


def annotated(french: str) -> list[tuple[str, tuple[int, ...]]]:
    """French words with positions, from "zone/2 économique/1 européenne/0"."""
    parsed = []
    for token in french.split():
        word, _, positions = token.partition("/")
        parsed.append((word, tuple(map(int, positions.split(",")))))
    return parsed


def phrase(english: str, french: str) -> Fragment:
    """The fragment of an annotated phrase of the lexicon; plain French words align in order."""
    if "/" not in french:
        return fragment([english], [(word, (0,)) for word in french.split()])
    return fragment(english.split(), annotated(french))


# --- inflection -------------------------------------------------------------------------------


def english_plural(noun: str) -> str:
    """The regular plural."""
    if noun.endswith(("s", "x", "ch", "sh", "tomato", "potato")):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in "aeou":
        return noun[:-1] + "ies"
    return noun + "s"


def french_plural(word: str) -> str:
    """The regular plural of a noun or masculine adjective."""
    if word.endswith(("s", "x", "z")):
        return word
    return word + ("x" if word.endswith(("eau", "eu")) and word != "bleu" else "s")


def french_feminine(adjective: str) -> str:
    """The regular feminine of an adjective."""
    for ending, feminine in (
        ("e", "e"),
        ("eux", "euse"),
        ("er", "ère"),
        ("el", "elle"),
        ("en", "enne"),
        ("if", "ive"),
        ("on", "onne"),
    ):
        if adjective.endswith(ending):
            return adjective[: -len(ending)] + feminine
    return adjective + "e"


def adjective_forms(row: Sequence[str]) -> tuple[str, str, str, str, str]:
    """Masculine, feminine, their plurals, and the masculine before a vowel."""
    french, feminine, plural, before_vowel = row[1], row[5], row[6], row[7]
    feminine = feminine if feminine not in ("", "-") else french_feminine(french)
    plural = plural if plural not in ("", "-") else french_plural(french)
    return french, feminine, plural, feminine + "s", before_vowel or french


@dataclass(frozen=True, eq=False)  # one object a verb: hashed by identity
class Verb:
    """A verb in both languages, inflected."""

    en: str
    en_third: str
    en_past: str
    en_participle: str
    en_progressive: str
    infinitive: str
    present: dict[str, str]  # by French person
    imperfect: dict[str, str]
    future: dict[str, str]
    conditional: dict[str, str]
    participle: tuple[str, str, str, str]
    auxiliary: str
    pronominal: bool
    noun: str  # fixed noun after the verb: "besoin" of "avoir besoin"
    particle: str  # English preposition after the verb that French lacks


def english_forms(base: str, irregular: str) -> tuple[str, str, str, str]:
    """Third person, past, participle, progressive."""
    stem = base + base[-1] if base in DOUBLED else base
    if base == "be":
        third = "is"
    elif base in ("can", "must"):
        third = base
    elif base.endswith(("s", "x", "z", "ch", "sh", "o")):
        third = base + "es"
    elif base.endswith("y") and base[-2] not in "aeou":
        third = base[:-1] + "ies"
    else:
        third = base + "s"
    past = participle = ""
    if irregular not in ("", "-"):
        past, participle = irregular.split()
    elif base.endswith("e"):
        past = participle = base + "d"
    elif base.endswith("y") and base[-2] not in "aeou":
        past = participle = base[:-1] + "ied"
    else:
        past = participle = stem + "ed"
    if base.endswith("ie"):
        progressive = base[:-2] + "ying"
    elif base.endswith("e") and base != "be" and not base.endswith("ee"):
        progressive = base[:-1] + "ing"
    else:
        progressive = stem + "ing"
    return third, past, participle, progressive


def principal_parts(infinitive: str, irregular: dict[str, list[str]]) -> list[str]:
    """je, il, nous, vous, ils, future stem, participle, auxiliary of a French verb."""
    if infinitive in irregular:
        return irregular[infinitive]
    stem = infinitive[:-2]
    if infinitive.endswith("er"):
        soft = {"g": stem + "e", "c": stem[:-1] + "ç"}.get(stem[-1], stem)
        endings = [stem + "e", stem + "e", soft + "ons", stem + "ez", stem + "ent"]
        return [*endings, infinitive, stem + "é", "avoir"]
    if infinitive.endswith("ir"):
        long = stem + "iss"
        endings = [stem + "is", stem + "it", long + "ons", long + "ez", long + "ent"]
        return [*endings, infinitive, stem + "i", "avoir"]
    endings = [stem + "s", stem, stem + "ons", stem + "ez", stem + "ent"]
    return [*endings, infinitive[:-1], stem + "u", "avoir"]


def conjugate(
    english: str, past: str, french: str, particle: str, irregular: dict[str, list[str]]
) -> Verb:
    """The verb of a row of verbs.tsv."""
    pronominal = french.startswith(("se ", "s'"))
    core = french.removeprefix("se ").removeprefix("s'")
    infinitive, _, noun = core.partition(" ")
    je, il, nous, vous, ils, future, participle, auxiliary = principal_parts(infinitive, irregular)
    stem = "ét" if infinitive == "être" else nous.removesuffix("ons")
    soft = stem[:-1] if stem.endswith("ge") else stem[:-1] + "c" if stem.endswith("ç") else stem
    feminine = {"dû": "due", "mort": "morte"}.get(participle, participle + "e")
    masculine_plural = participle if participle.endswith("s") else participle + "s"
    masculine_plural = "dus" if participle == "dû" else masculine_plural
    simple = dict(zip(("je", "il", "nous", "vous", "ils"), (je, il, nous, vous, ils), strict=True))
    endings = {"je": "ais", "il": "ait", "nous": "ions", "vous": "iez", "ils": "aient"}
    tails = {"je": "ai", "il": "a", "nous": "ons", "vous": "ez", "ils": "ont"}
    return Verb(
        english,
        *english_forms(english, past),
        infinitive,
        simple,
        {p: (soft if p in ("nous", "vous") else stem) + e for p, e in endings.items()},
        {p: future + e for p, e in tails.items()},
        {p: future + e for p, e in endings.items()},
        (participle, feminine, masculine_plural, feminine + "s"),
        "être" if pronominal else auxiliary,
        pronominal,
        noun,
        particle,
    )
