"""Fragments: pieces of a sentence in both languages, with their word alignment.

A sentence is fragments one after another in both languages; where the order differs (a clitic, an
adjective, a question), it differs inside a fragment.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate
from typing import Any

from data.pair import WORD

Places = tuple[int, ...]  # positions of English words
Words = list[tuple[str, Places]]  # French words with the English ones that they translate

# No elision before these, though they start with a vowel or an h.
NOT_ELIDED = frozenset(("haut", "haute", "hauts", "hautes", "huit", "onze", "Hongrie"))
ELIDED = {"le": "l'", "la": "l'", "de": "d'", "ne": "n'", "que": "qu'", "je": "j'"}
ELIDED |= {"me": "m'", "se": "s'"}
CONSONANT, VOWEL, HE = 0, 1, 2  # how the French starts; HE: with "il" or "ils" (si -> s')
PHARAOH = [f"{code >> 8}-{code & 255}" for code in range(1 << 16)]


@dataclass(slots=True, eq=False)  # read the fastest of all kinds of records
class Fragment:
    """A piece of a sentence; both texts end in a space, the French not after an elision."""

    en: str
    fr: str
    links: Places  # 256 * English word + French word, from the fragment's start; sorted
    size: int  # 256 * number of English words + number of French words
    words: int  # English words between spaces, what lengths are counted in
    initial: int  # CONSONANT, VOWEL or HE
    shape: int  # of noun phrases: what determiners agree with (determiners.SHAPES)


COMMA = Fragment(", ", ", ", (0,), (1 << 8) + 1, 0, CONSONANT, 0)


@cache
def same(value: Any) -> Any:
    """The value, one object wherever it is the same: few objects stay in the processor's cache."""
    return value


def starts_with_vowel(french: str) -> bool:
    """Whether "le", "de", "que" ... lose their vowel before this word."""
    return french[0].lower() in "aeiouyhâàéèêëîïôöûùœæ" and french not in NOT_ELIDED


def fragment(en: Sequence[str], fr: Words, shape: int = 0) -> Fragment:
    """The fragment of these words; French ones lose their vowel before the next where they must."""
    words = [word for word, _ in fr]
    if not ELIDED.keys().isdisjoint(words):
        for place, word in enumerate(words[:-1]):
            if word in ELIDED and starts_with_vowel(words[place + 1]):
                words[place] = ELIDED[word]
    text = " ".join([*words, ""]).replace("' ", "'")
    links = sorted([(i << 8) + j for j, (_, places) in enumerate(fr) for i in places])
    initial = CONSONANT
    if words:
        initial = HE if words[0] in ("il", "ils") else int(starts_with_vowel(words[0]))
    english = " ".join([*en, ""])
    spaced = english.count(" ") - english.count(",")
    size = len(WORD.findall(english)) if "'" in english else english.count(" ")
    size = same((size << 8) + len(words))
    return Fragment(english, text, same(tuple(links)), size, spaced, initial, shape)


def annotated(french: str) -> Words:
    """French words with places, from "zone/2 économique/1 européenne/0"."""
    parts = (token.partition("/") for token in french.split())
    return [(word, tuple(map(int, places.split(",")))) for word, _, places in parts]


def phrase(english: str, french: str) -> Fragment:
    """The fragment of an annotated phrase of the lexicon."""
    return fragment(english.split(), annotated(french))


Forms = tuple[Fragment, Fragment, Fragment]


def forms_before(english: str, french: str) -> Forms:
    """What depends on the next word: before a consonant, a vowel, il or ils: que, qu', qu'."""
    plain = phrase(english, french)
    vowel = he = plain
    if plain.fr.endswith(("que ", "je ")):
        vowel = he = replace(plain, fr=plain.fr.removesuffix("e ") + "'")
    elif plain.fr.endswith("si "):
        he = replace(plain, fr=plain.fr.removesuffix("i ") + "'")
    return plain, vowel, he


def merge(parts: Sequence[Fragment]) -> Fragment:
    """Several fragments as one."""
    starts = accumulate((part.size for part in parts), initial=0)
    links = [
        link + start for part, start in zip(parts, starts, strict=False) for link in part.links
    ]
    en, fr = "".join(part.en for part in parts), "".join(part.fr for part in parts)
    size, words = sum(part.size for part in parts), sum(part.words for part in parts)
    return Fragment(en, fr, tuple(links), size, words, parts[0].initial, 0)


def possessed(article: Fragment, owner: Fragment, thing: Fragment, plural: bool) -> Fragment:
    """English: preposition, owner, 's, thing. French: preposition and article, thing, de, owner.

    `article` has an article that English lacks, aligned with the thing; `owner` starts with "de",
    aligned with "'s" (English place -1). `plural`: whether the owner is.
    """
    before = article.size >> 8
    mark = before + (owner.size >> 8)  # the place of "'s" in English
    noun = mark + (thing.size >> 8)
    article_size, thing_size = article.size & 255, thing.size & 255
    links = []
    for link in article.links:
        english, french = link >> 8, link & 255
        links.append(((noun if english == before else english) << 8) + french)
    links += [link + ((mark + 1) << 8) + article_size for link in thing.links]
    for link in owner.links:
        english, french = link >> 8, link & 255
        english = mark if english < 0 else before + english
        links.append((english << 8) + article_size + thing_size + french)
    name = owner.en.rstrip()
    apostrophe = "'" if plural and name.endswith("s") else "'s"
    return Fragment(
        f"{article.en}{name}{apostrophe} {thing.en}",
        article.fr + thing.fr + owner.fr,
        tuple(sorted(links)),
        article.size + owner.size + thing.size + (1 << 8),
        article.words + owner.words + thing.words,
        article.initial if article.fr else thing.initial,
        0,
    )


def around_subject(subject: Fragment, en: Sequence[str], fr: Words) -> Fragment:
    """A question: the subject after the first English word and before all the French ones."""
    verb = fragment(en, fr)
    width, shift = subject.size >> 8, subject.size & 255
    links = [link + (1 << 8) for link in subject.links]
    for link in verb.links:
        english, french = link >> 8, link & 255
        links.append(((english + width if english else 0) << 8) + french + shift)
    rest = " ".join([*en[1:], ""])
    return Fragment(
        f"{en[0]} {subject.en}{rest}",
        subject.fr + verb.fr,
        tuple(sorted(links)),
        subject.size + verb.size,
        subject.words + verb.words,
        subject.initial,
        0,
    )


def english(out: Sequence[Fragment], mark: str) -> str:
    """The English of a sentence; `mark` is "." or "?"."""
    text = "".join([part.en for part in out]).replace(" ,", ",")
    return text[0].upper() + text[1:-1] + mark


def french(out: Sequence[Fragment], mark: str) -> tuple[str, str]:
    """The French of a sentence, and its links in Pharaoh format.

    The links come out sorted, for those of a fragment are, and none is with an English word before
    the last one of the fragment before.
    """
    starts = accumulate([part.size for part in out], initial=0)
    named = [
        PHARAOH[at + link] for part, at in zip(out, starts, strict=False) for link in part.links
    ]
    named.append(PHARAOH[next(starts)])  # the mark itself
    text = "".join([part.fr for part in out]).replace(" ,", ",")
    return text[0].upper() + text[1:-1] + (" ?" if mark == "?" else mark), " ".join(named)


def finish(out: Sequence[Fragment], mark: str) -> tuple[str, str, str]:
    """The sentence in both languages and its links; `mark` is "." or "?"."""
    return english(out, mark), *french(out, mark)
