"""Attention over subword pieces becomes attention over words."""

import re
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

SPACE = "▁"  # how SentencePiece writes the space before a word
BEGIN, END = "<s>", "</s>"
UNKNOWN = "<unk>"
UNKNOWN_CHARACTER = "⁇"  # what SentencePiece decodes UNKNOWN to
MEAN = "mean"  # instead of a number: the mean over all layers or heads

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

    weights: (..., target pieces, source pieces), rows sum to 1; the matrix has the same first
    dimensions. Words are words() of what the pieces spell, or the given ones, which must be spelt
    alike save for spaces and unknown pieces. A piece that spans several words is divided among them
    by its characters. "</s>" at the end of the target has no row; what goes to the source's is one
    more column where keep_end, and otherwise left out, the rows being scaled to sum to 1 again.
    shift: a piece takes the attention of the step after it, at which it is the decoder's input
    (Shift-Att: Chen et al. 2020).
    """
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape[-2:] != (len(tgt_pieces), len(src_pieces)):
        raise ValueError(
            f"attention of shape {weights.shape} does not fit {len(tgt_pieces)} target and "
            f"{len(src_pieces)} source pieces"
        )
    if shift and list(tgt_pieces[-1:]) != [END]:
        raise ValueError(f"shifted attention needs a target that ends with {END}")
    src_pieces, tgt_pieces = _without_end(src_pieces), _without_end(tgt_pieces)
    src_words, src_shares = _shares(src_pieces, src_words)
    tgt_words, tgt_shares = _shares(tgt_pieces, tgt_words)
    rows = weights[..., int(shift) : int(shift) + len(tgt_pieces), :]
    spelt = tgt_shares.sum(0)  # a blank word has no piece, and so no attention
    averaged = (tgt_shares / np.where(spelt > 0, spelt, 1)).T @ rows  # (..., tgt words, src pieces)
    matrix = averaged[..., : len(src_pieces)] @ src_shares
    if keep_end:
        end = averaged[..., len(src_pieces) :].sum(-1, keepdims=True)
        return WordAlignment([*src_words, END], tgt_words, np.concatenate([matrix, end], -1))
    mass = matrix.sum(-1, keepdims=True)
    return WordAlignment(src_words, tgt_words, matrix / np.where(mass > 0, mass, 1))


def select(weights: np.ndarray, layer: int | str, head: int | str) -> np.ndarray:
    """The attention of a layer's head; each is a number from 1 or, for all together, "mean".

    weights: (layers, heads, queries, keys).
    """
    for name, number, there in zip(("layer", "head"), (layer, head), weights.shape, strict=False):
        if number != MEAN and not 1 <= number <= there:
            many = name if there == 1 else f"{name}s"
            raise ValueError(f"no {name} {number}: this model attends with {there} {many}")
    chosen = weights.mean(0) if layer == MEAN else weights[layer - 1]
    return chosen.mean(0) if head == MEAN else chosen[head - 1]


def selection(there: tuple[int, int], layer: int | str, head: int | str) -> str:
    """What `select` takes, of so many layers and heads, in words."""
    layers, heads = there
    if layers == heads == 1:
        return "the decoder's attention"
    part = f"mean of {heads} heads" if head == MEAN else f"head {head} of {heads}"
    if layer == MEAN:
        return f"mean of {layers} decoder layers, {part}"
    return f"decoder layer {layer} of {layers}, {part}"


def word_shares(
    pieces: Sequence[str], given: Sequence[str] | None = None
) -> tuple[list[str], np.ndarray]:
    """The words of pieces, and what share of each piece belongs to which: (pieces, words).

    Words are found as in word_alignment, save that "<s>" at the beginning and "</s>" at the end are
    words of their own. Rows sum to 1.
    """
    first = int(list(pieces[:1]) == [BEGIN])
    inner = _without_end(pieces)[first:]
    found, inner_shares = _shares(inner, given)
    framed = [*pieces[:first], *found, *pieces[first + len(inner) :]]
    shares = np.zeros((len(pieces), len(framed)))
    shares[first : first + len(inner), first : first + len(found)] = inner_shares
    if first:
        shares[0, 0] = 1
    if first + len(inner) < len(pieces):
        shares[-1, -1] = 1
    return framed, shares


def merge_words(
    weights: np.ndarray, query_shares: np.ndarray, key_shares: np.ndarray
) -> np.ndarray:
    """Attention between words: averaged over the pieces of a query word, summed over a key word's.

    weights: (..., query pieces, key pieces); shares: (pieces, words), as of word_shares.
    """
    return (query_shares / query_shares.sum(0)).T @ weights @ key_shares


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
