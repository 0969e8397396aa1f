"""Links between words: drawn from attention, symmetrised, and scored against gold alignments.

A link is a pair (source word, target word), both counted from 0.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

Link = tuple[int, int]

METHODS = ("argmax", "threshold", "bidirectional", "balanced")
GROW = "grow-diag-final-and"
SYMMETRISATIONS = ("intersection", "union", GROW)
ROUNDS = 3  # of scaling columns and rows to the same sums; more change the links hardly at all


def draw_links(matrix: np.ndarray, method: str, threshold: float = 0.3) -> set[Link]:
    """Links out of attention, (target words, source words), rows summing to 1, by a METHOD.

    argmax: each target word's strongest source word. threshold: every weight from it on.
    bidirectional: each target word's strongest source word and each source word's strongest target
    word, two directions out of one matrix (Jalili Sabet et al. 2020), symmetrised by growing.
    balanced: the same once every source word gets as much attention as any other.
    """
    if method == "argmax":
        return argmax_links(matrix)
    if method == "threshold":
        return threshold_links(matrix, threshold)
    if method not in METHODS:
        raise ValueError(f"no way to draw links is called {method!r}: use {', '.join(METHODS)}")
    if method == "balanced":
        matrix = balanced(matrix)
    return symmetrise(argmax_links(matrix), transposed(argmax_links(matrix.T)), GROW)


def balanced(matrix: np.ndarray) -> np.ndarray:
    """The matrix with its columns and rows scaled to equal sums (Sinkhorn & Knopp 1967), nearly.

    Commas and full stops draw attention that is not theirs; here every source word ends up with the
    same share, as when links are found by optimal transport (Dou & Neubig 2021, Chi et al. 2021).
    """
    for _ in range(ROUNDS):
        for axis in (0, 1):
            mass = matrix.sum(axis, keepdims=True)
            matrix = matrix / np.where(mass > 0, mass, 1)
    return matrix


def transposed(links: Iterable[Link]) -> set[Link]:
    """The links of the other direction of translation."""
    return {(j, i) for i, j in links}


def argmax_links(matrix: np.ndarray) -> set[Link]:
    """Each target word's link to the source word that it attends to most (the first of equals).

    matrix: (target words, source words). A row of zeros has no link.
    """
    if not matrix.size:
        return set()
    rows = np.flatnonzero(matrix.max(1) > 0)
    return {(int(matrix[j].argmax()), int(j)) for j in rows}


def threshold_links(matrix: np.ndarray, threshold: float) -> set[Link]:
    """All links whose weight is at least the threshold, which is above 0 and at most 1."""
    if not 0 < threshold <= 1:
        raise ValueError(f"a threshold of weights is above 0 and at most 1, not {threshold}")
    return {(int(i), int(j)) for j, i in np.argwhere(matrix >= threshold)}


def diagonal_links(src_length: int, tgt_length: int) -> set[Link]:
    """The straight line: target word j to source word j (I - 1) / (J - 1), halves rounded up."""
    if src_length == 0:
        return set()
    steps = max(tgt_length - 1, 1)
    return {((2 * j * (src_length - 1) + steps) // (2 * steps), j) for j in range(tgt_length)}


def symmetrise(forward: set[Link], backward: set[Link], method: str) -> set[Link]:
    """One alignment out of two directions' (Koehn et al. 2003), both given as (source, target).

    method: one of SYMMETRISATIONS. Links are visited in sorted order, as the result can depend on
    it.
    """
    both, either = forward & backward, forward | backward
    if method == "intersection":
        return both
    if method == "union":
        return either
    if method != GROW:
        raise ValueError(
            f"no symmetrisation is called {method!r}: use {', '.join(SYMMETRISATIONS)}"
        )
    links = set(both)
    sources, targets = {i for i, _ in links}, {j for _, j in links}

    def add(i: int, j: int) -> None:
        links.add((i, j))
        sources.add(i)
        targets.add(j)

    grown = True
    while grown:
        before = len(links)
        for i, j in sorted(links):
            for di, dj in ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)):
                new = (i + di, j + dj)
                if new in either and (new[0] not in sources or new[1] not in targets):
                    add(*new)
        grown = len(links) > before
    for direction in (forward, backward):
        for i, j in sorted(direction):
            if i not in sources and j not in targets:
                add(i, j)
    return links


@dataclass(frozen=True)
class Gold:
    """A sentence's gold links; the sure ones are among the possible ones."""

    sure: frozenset[Link]
    possible: frozenset[Link]

    @cached_property
    def crossing(self) -> frozenset[int]:
        """The target words with a sure link that crosses another."""
        return frozenset(j for _, j in crossing_links(self.sure))


class AlignmentScores(NamedTuple):
    """Och & Ney 2003, as shares of 1, over all sentences; None where nothing is there to score.

    aer_crossing and aer_diagonal divide the target words in two: those with a sure link that
    crosses another sure link of the sentence, and the rest. Gold and found links go with their
    target word, so that the two parts together are the whole. A diagonal wins the easy part.
    """

    aer: float | None
    precision: float | None
    recall: float | None
    aer_crossing: float | None
    aer_diagonal: float | None
    sentences: int
    links: int  # found


def crossing_links(links: Iterable[Link]) -> set[Link]:
    """The links that cross another: one's source word comes first, the other's target word."""
    links, crossing = set(links), set()
    # forward: some earlier source word has a later target word; then the same from the end
    for side, order in ((1, sorted(links)), (-1, sorted(links, reverse=True))):
        row, furthest, furthest_before = None, -math.inf, -math.inf
        for i, j in order:
            if i != row:
                row, furthest_before = i, furthest
            if side * j < furthest_before:
                crossing.add((i, j))
            furthest = max(furthest, side * j)
    return crossing


class Tally:
    """What is counted of the links found, one sentence after the other."""

    def __init__(self) -> None:
        self.sentences = 0
        # of crossing target words and of the rest: |A|, |S|, |A and S|, |A and P|
        self.counts = np.zeros((2, 4), dtype=int)

    def add(self, links: Iterable[Link], gold: Gold) -> None:
        self.sentences += 1
        for part in (0, 1):
            a, s, p = (
                {link for link in kind if (link[1] in gold.crossing) == (part == 0)}
                for kind in (links, gold.sure, gold.possible)
            )
            self.counts[part] += (len(a), len(s), len(a & s), len(a & p))

    def scores(self) -> AlignmentScores:
        size, sure_size, sure_found, possible_found = self.counts.sum(0).tolist()
        return AlignmentScores(
            aer=_error_rate(self.counts.sum(0)),
            precision=possible_found / size if size else None,
            recall=sure_found / sure_size if sure_size else None,
            aer_crossing=_error_rate(self.counts[0]),
            aer_diagonal=_error_rate(self.counts[1]),
            sentences=self.sentences,
            links=size,
        )


def score_links(found: Sequence[set[Link]], gold: Sequence[Gold]) -> AlignmentScores:
    """Alignment error rate, precision and recall of the links found in all sentences."""
    if len(found) != len(gold):
        raise ValueError(f"{len(found)} alignments cannot be scored against {len(gold)}")
    tally = Tally()
    for links, sentence in zip(found, gold, strict=True):
        tally.add(links, sentence)
    return tally.scores()


def _error_rate(counts: np.ndarray) -> float | None:
    """AER = 1 - (|A and S| + |A and P|) / (|A| + |S|)."""
    size, sure_size, sure_found, possible_found = counts.tolist()
    total = size + sure_size
    return 1 - (sure_found + possible_found) / total if total else None
