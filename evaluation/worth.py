"""What each source word is worth to each target word: the prediction difference, beside attention.

Li et al. 2019, "On the Word Alignment from Neural Machine Translation", section 3; here of
log-probabilities, and of sentences that lack a word where theirs have a zero vector.
"""

from collections.abc import Sequence

import numpy as np

ATTENTION, DIFFERENCE, MEAN, PRODUCT = EVIDENCE = ("attention", "difference", "mean", "product")
LEAST_WORTH = 1e-6  # of a source word to a target word, so that attention decides where all are 0


def without_each(sentence: str, words: Sequence[str]) -> list[str]:
    """The sentence without its first word, without its second, ...

    The words put together are the sentence, save for spaces; else ValueError.
    """
    letters = ["".join(word.split()) for word in words]
    places = [i for i, character in enumerate(sentence) if not character.isspace()]
    if "".join(letters) != "".join(sentence.split()):
        raise ValueError(f"the words {' '.join(words)!r} do not spell {sentence!r}")
    ends = np.cumsum([len(word) for word in letters])
    return [
        _joined(sentence[: places[end - len(word)]], sentence[places[end - 1] + 1 :])
        if word
        else sentence
        for word, end in zip(letters, ends, strict=True)
    ]


def _joined(before: str, after: str) -> str:
    """Two parts of a sentence: the space before the word goes, but two words stay two."""
    before = before.rstrip()
    between = " " if before[-1:].isalnum() and after[:1].isalnum() else ""
    return f"{before}{between}{after}".strip()


def difference(
    whole: np.ndarray, without: Sequence[np.ndarray], tgt_shares: np.ndarray
) -> np.ndarray:
    """By how much the log-probability of each target word falls without each source word.

    whole: (target pieces,), log-probabilities given the whole source, and likewise without each of
    its words; tgt_shares: (target pieces, target words), what share of a piece belongs to which
    word. (target words, source words); a rise counts as 0.
    """
    falls = np.maximum(whole - np.reshape(without, (-1, len(whole))), 0)
    return (falls @ tgt_shares).T


def weighed(weights: np.ndarray, worth: np.ndarray, evidence: str) -> np.ndarray:
    """What speaks for a link, one of EVIDENCE: attention, prediction difference, or both.

    weights: (target words, source words), rows sum to 1; worth: the same shape, at least 0, scaled
    here so that its rows sum to 1, as those of the result do.
    """
    worth = _scaled(worth + LEAST_WORTH)
    if evidence == PRODUCT:
        return _scaled(weights * worth)
    return {ATTENTION: weights, DIFFERENCE: worth, MEAN: (weights + worth) / 2}[evidence]


def _scaled(rows: np.ndarray) -> np.ndarray:
    mass = rows.sum(-1, keepdims=True)
    return rows / np.where(mass > 0, mass, 1)
