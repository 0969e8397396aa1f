"""Attention over subword pieces becomes attention over words."""

import re
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

SPACE = "▁"  # how SentencePiece writes the space before a word
END = "</s>"
UNKNOWN = "<unk>"
UNKNOWN_CHARACTER = "⁇"  # what SentencePiece decodes UNKNOWN to

# A word is: an English possessive ('s); letters and digits, hyphens inside, with the apostrophe of
# an elision (l', n', qu') kept at their end; or one mark of punctuation by itself.
_WORD = re.compile(r"'s\b|[^\W_]+(?:-[^\W_]+)*(?:'(?=\w)(?!s\b))?|[^\w\s]|_")


def words(sentence: str) -> list[str]:
    """The words of a sentence, the one definition for gold links, alignments and figures.

    Nothing but white space is lost: the words put together are the sentence without its spaces.
    "L'accord n'a pas." has the words L' accord n' a pas . and "the doctor's" has the doctor 's.
    """
    return _WORD.findall(sentence)


class WordAlignment(NamedTuple):
    """Attention from target words to source words; matrix: (target words, source words)."""

    src_words: list[str]
    tgt_words: list[str]
    matrix: np.ndarray


def word_alignment(
    weights: np.ndarray,
    src_pieces: Sequence[str],
    tgt_pieces: Sequence[str],
    *,
    src_words: Sequence[str] | None = None,
    tgt_words: Sequence[str] | None = None,
    keep_end: bool = False,
    shift: bool = False,
) -> WordAlignment:
    """Attention between words: summed over the pieces of a source word, averaged over a target's.

    weights: (target pieces, source pieces), rows sum to 1. Words are words() of what the pieces
    spell, or the given ones, which must be spelt alike save for spaces and unknown pieces. A piece
    that spans several words is divided among them by its characters. "</s>" at the end of the
    target has no row; what goes to the source's is one more column where keep_end, and otherwise
    left out, the rows being scaled to sum to 1 again.
    shift: a piece takes the attention of the step after it, at which it is the decoder's input
    (Shift-Att: Chen et al. 2020).
    """
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (len(tgt_pieces), len(src_pieces)):
        raise ValueError(
            f"attention of shape {weights.shape} does not fit {len(tgt_pieces)} target and "
            f"{len(src_pieces)} source pieces"
        )
    if shift and list(tgt_pieces[-1:]) != [END]:
        raise ValueError(f"shifted attention needs a target that ends with {END}")
    src_pieces, tgt_pieces = _without_end(src_pieces), _without_end(tgt_pieces)
    src_words, src_shares = _shares(src_pieces, src_words)
    tgt_words, tgt_shares = _shares(tgt_pieces, tgt_words)
    rows = weights[int(shift) : int(shift) + len(tgt_pieces)]
    averaged = (tgt_shares / tgt_shares.sum(0)).T @ rows  # (target words, source pieces)
    matrix = averaged[:, : len(src_pieces)] @ src_shares
    if keep_end:
        end = averaged[:, len(src_pieces) :].sum(1, keepdims=True)
        return WordAlignment([*src_words, END], tgt_words, np.hstack([matrix, end]))
    mass = matrix.sum(1, keepdims=True)
    return WordAlignment(src_words, tgt_words, matrix / np.where(mass > 0, mass, 1))


def _without_end(pieces: Sequence[str]) -> list[str]:
    return list(pieces[:-1]) if list(pieces[-1:]) == [END] else list(pieces)


def _shares(pieces: Sequence[str], given: Sequence[str] | None) -> tuple[list[str], np.ndarray]:
    """The words, and what share of each piece belongs to which: (pieces, words), rows sum to 1.

    A piece without characters of its own (a lone "▁") belongs to the word that follows it.
    """
    if given is None:
        spelt = "".join(UNKNOWN_CHARACTER if piece == UNKNOWN else piece for piece in pieces)
        given = words(spelt.replace(SPACE, " "))
    owner = [index for index, word in enumerate(given) for _ in "".join(word.split())]
    sizes = _sizes(pieces, "".join("".join(given).split()))
    shares = np.zeros((len(pieces), len(given)))
    position = 0
    for row, size in zip(shares, sizes, strict=True):
        if size:
            np.add.at(row, owner[position : position + size], 1 / size)
        elif owner:
            row[owner[min(position, len(owner) - 1)]] = 1
        position += size
    return list(given), shares


def _sizes(pieces: Sequence[str], text: str) -> list[int]:
    """How many characters of a text without spaces each piece spells.

    Unknown pieces spell what lies between their neighbours, at least a character each.
    """
    runs = [(key, list(run)) for key, run in groupby(pieces, lambda piece: piece == UNKNOWN)]
    sizes: list[int] = []
    position = unknown = 0
    for number, (is_unknown, run) in enumerate([*runs, (False, [])]):
        if is_unknown:
            unknown = len(run)
            continue
        letters = ["".join(piece.replace(SPACE, " ").split()) for piece in run]
        spelt, first = "".join(letters), position + unknown
        last = number >= len(runs) - 1  # nothing may be left after it
        start = max(len(text) - len(spelt), first) if last else text.find(spelt, first)
        if not text.startswith(spelt, start) or (unknown == 0 and start != position):
            raise ValueError(f"the pieces {' '.join(pieces)!r} do not spell {text!r}")
        sizes += [*_divided(start - position, unknown), *map(len, letters)]
        position, unknown = start + len(spelt), 0
    return sizes


def _divided(characters: int, pieces: int) -> list[int]:
    """As even a division as there is, in whole characters."""
    ends = [characters * (i + 1) // pieces for i in range(pieces)]
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]
