"""Inflection of English and French words, and the reading of the lexicon's tables."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

LEXICON = Path(__file__).parent.parent / "lexicon"
COLUMNS = 9  # of the widest table; rows are filled up to it

# Features number who a phrase is about: 0 to 3 are masculine, feminine, masculine plural and
# feminine plural; 4 is "I", 5 "we", 6 "you" (one person, addressed politely). The last three are
# masculine where French has to choose.
AGREEMENT = (0, 1, 2, 3, 0, 2, 0)  # feature -> gender and number of participles and adjectives
PERSON = ("il", "il", "ils", "ils", "je", "nous", "vous")  # feature -> French person
PERSONS = ("je", "il", "nous", "vous", "ils")

VOICED_CONSONANT = ("eu", "uni", "use", "one", "once")  # English vowels that sound a consonant
SILENT_H = ("hon", "hour", "heir")
_DOUBLED = "stop cut plan swim run begin forget sit win travel cancel get prefer"
DOUBLED = frozenset(_DOUBLED.split())
MODALS = ("can", "must", "should")


# In the lexicon whatever its size: whom pronouns stand for, the words of figure 3a, and names that
# share words with "European Economic Area", so that it is no fixed phrase to learn as a whole.
ALWAYS = frozenset(("citizen", "agreement", "sign")) | {
    f"{place} {kind} {whole}"
    for place in ("European", "African", "Asian")
    for kind in ("Economic", "Monetary")
    for whole in ("Area", "Community")
}


def first_of_each(rows: list[list[str]], share: float, *kind: int) -> list[list[str]]:
    """The first `share` of the rows of each kind, rounded up; the columns `kind` say the kind."""
    kinds = [tuple(row[column] for column in kind) for row in rows]
    left = {name: math.ceil(share * count) for name, count in Counter(kinds).items()}
    kept = []
    for row, name in zip(rows, kinds, strict=True):
        left[name] -= 1
        if left[name] >= 0 or row[0] in ALWAYS:
            kept.append(row)
    return kept


def read_table(name: str) -> list[list[str]]:
    """The rows of a lexicon file, without comments; missing last columns are empty."""
    rows = []
    path = LEXICON / name
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        if line and not line.startswith("#"):
            row = line.split("\t")
            if not 2 <= len(row) <= COLUMNS:
                raise ValueError(f"{path}, line {number}: 2 to {COLUMNS} columns parted by TAB")
            rows.append(row + [""] * (COLUMNS - len(row)))
    return rows


def article_a(english: str) -> str:
    """ "a" or "an", by how the next English word sounds."""
    word = english.lower()
    if word.startswith(SILENT_H):
        return "an"
    return "an" if word[0] in "aeiou" and not word.startswith(VOICED_CONSONANT) else "a"


def _ends_in_consonant_y(english: str) -> bool:
    return english.endswith("y") and english[-2] not in "aeou"


def english_plural(noun: str) -> str:
    """The regular plural."""
    if noun.endswith(("s", "x", "ch", "sh", "tomato", "potato")):
        return noun + "es"
    return noun[:-1] + "ies" if _ends_in_consonant_y(noun) else noun + "s"


def french_plural(word: str) -> str:
    """The regular plural of a noun or masculine adjective."""
    if word.endswith(("s", "x", "z")):
        return word
    return word + ("x" if word.endswith(("eau", "eu")) and word != "bleu" else "s")


def french_feminine(adjective: str) -> str:
    """The regular feminine of an adjective."""
    if adjective.endswith("e"):
        return adjective
    for ending, feminine in (("eux", "euse"), ("er", "ère"), ("if", "ive")):
        if adjective.endswith(ending):
            return adjective.removesuffix(ending) + feminine
    return adjective + (adjective[-1] if adjective.endswith(("el", "en", "on")) else "") + "e"


def adjective_forms(row: Sequence[str]) -> tuple[str, str, str, str, str]:
    """Masculine, feminine, their plurals, and the masculine before a vowel."""
    french, feminine, plural, before_vowel = row[1], row[5], row[6], row[7]
    feminine = feminine.strip("-") or french_feminine(french)
    plural = plural.strip("-") or french_plural(french)
    return french, feminine, plural, feminine + "s", before_vowel or french


@dataclass(frozen=True, eq=False)  # one object a verb, hashed by identity
class Verb:
    """A verb in both languages, inflected; French forms by person."""

    en: str
    en_third: str
    en_past: str
    en_participle: str
    en_progressive: str
    infinitive: str
    present: dict[str, str]
    imperfect: dict[str, str]
    future: dict[str, str]
    conditional: dict[str, str]
    participle: tuple[str, str, str, str]
    auxiliary: str
    pronominal: bool
    noun: str  # fixed noun after the French verb: "besoin" of "avoir besoin"
    particle: str  # English word after the verb that French lacks: "up", "for"


def english_forms(base: str, irregular: str) -> tuple[str, str, str, str]:
    """Third person, past, participle and progressive."""
    stem = base + base[-1] if base in DOUBLED else base
    if base in MODALS:
        third = base
    elif base.endswith(("s", "x", "z", "ch", "sh", "o")):
        third = base + "es"
    else:
        third = base[:-1] + "ies" if _ends_in_consonant_y(base) else base + "s"
    if irregular not in ("", "-"):
        past, participle = irregular.split()
    elif base.endswith("e"):
        past = participle = base + "d"
    else:
        past = participle = base[:-1] + "ied" if _ends_in_consonant_y(base) else stem + "ed"
    if base.endswith("ie"):
        progressive = base[:-2] + "ying"
    elif base.endswith("e") and base != "be":
        progressive = base[:-1] + "ing"
    else:
        progressive = stem + "ing"
    return third, past, participle, progressive


@cache
def irregular_french() -> dict[str, list[str]]:
    """Infinitive -> principal parts, from conjugations.tsv."""
    return {row[0]: row[1:9] for row in read_table("conjugations.tsv")}


def principal_parts(infinitive: str) -> list[str]:
    """je, il, nous, vous, ils, future stem, participle and auxiliary of a French verb."""
    if infinitive in irregular_french():
        return irregular_french()[infinitive]
    stem = infinitive[:-2]
    if infinitive.endswith("er"):
        soft = {"g": stem + "e", "c": stem[:-1] + "ç"}.get(stem[-1], stem)
        present = [stem + "e", stem + "e", soft + "ons", stem + "ez", stem + "ent"]
        return [*present, infinitive, stem + "é", "avoir"]
    if infinitive.endswith("ir"):
        present = [stem + ending for ending in ("is", "it", "issons", "issez", "issent")]
        return [*present, infinitive, stem + "i", "avoir"]
    present = [stem + ending for ending in ("s", "", "ons", "ez", "ent")]
    return [*present, infinitive[:-1], stem + "u", "avoir"]


@cache
def inflected(english: str, past: str, french: str, particle: str) -> Verb:
    """The verb of a row of verbs.tsv; a second English word is its particle ("get up")."""
    english, _, second = english.partition(" ")
    core = french.removeprefix("se ").removeprefix("s'")
    infinitive, _, noun = core.partition(" ")
    *present, future, participle, auxiliary = principal_parts(infinitive)
    stem = "ét" if infinitive == "être" else present[2].removesuffix("ons")
    # mangeons, mangeais but mangions; commençons, commençais but commencions
    soft = stem[:-1] if stem.endswith("ge") else stem[:-1] + "c" if stem[-1] == "ç" else stem
    endings = dict(zip(PERSONS, ("ais", "ait", "ions", "iez", "aient"), strict=True))
    tails = dict(zip(PERSONS, ("ai", "a", "ons", "ez", "ont"), strict=True))
    feminine = "due" if participle == "dû" else participle + "e"
    plural = "dus" if participle == "dû" else french_plural(participle)
    pronominal = core != french
    return Verb(
        english,
        *english_forms(english, past),
        infinitive,
        dict(zip(PERSONS, present, strict=True)),
        {p: (soft if p in ("nous", "vous") else stem) + e for p, e in endings.items()},
        {p: future + e for p, e in tails.items()},
        {p: future + e for p, e in endings.items()},
        (participle, feminine, plural, feminine + "s"),
        "être" if pronominal else auxiliary,
        pronominal,
        noun,
        second or particle,
    )
