"""Whether one system is better than another, or only luckier on these sentences."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from evaluation.bleu import SEED, bleu_of, buckets
from evaluation.tables import span, text_table

MAX_DRAWS = 20_000_000  # sentences exchanged at once: bounds the memory


class Difference(NamedTuple):
    """How much better one system's BLEU is than another's, and how likely chance alone does it."""

    bleu: float
    p: float


def paired_difference(
    first: np.ndarray, second: np.ndarray, *, trials: int = 10_000, seed: int = SEED
) -> Difference:
    """BLEU of the first system less the second's, with its two-sided p-value.

    Paired approximate randomisation (Riezler & Maxwell 2005): how often do systems whose
    translations are exchanged at random, sentence by sentence, differ at least as much? Unlike
    sacreBLEU, which asks for a greater difference, two equal systems so get p = 1.
    first, second: (sentences, 10), statistics of the same sentences.
    """
    if first.shape != second.shape:
        raise ValueError(f"{len(first)} and {len(second)} sentences cannot be compared in pairs")
    observed = float(bleu_of(first.sum(0)) - bleu_of(second.sum(0)))
    generator, extreme = np.random.default_rng(seed), 0
    at_once = min(1000, max(1, MAX_DRAWS // max(1, len(first))))
    for start in range(0, trials, at_once):
        swapped = generator.integers(2, size=(min(at_once, trials - start), len(first)), dtype=bool)
        exchange = swapped.astype(np.float64) @ (second - first)  # (trials, 10)
        differences = bleu_of(first.sum(0) + exchange) - bleu_of(second.sum(0) - exchange)
        extreme += int((np.abs(differences) >= abs(observed) - 1e-9).sum())
    return Difference(observed, (extreme + 1) / (trials + 1))


def compare(
    systems: Mapping[str, np.ndarray],
    sources: Sequence[str],
    *,
    edges: Sequence[int],
    minimum: int,
    trials: int = 10_000,
) -> list[dict]:
    """Differences of all pairs of systems, over all sentences and over each bucket of length.

    systems: for each name its sentence_statistics, (sentences, 10). The records are
    {run, against, from, to, sentences, bleu, p}, bleu being run's less that of `against`; all
    sentences come first, from 1 to None, and buckets under `minimum` sentences are left out.
    """
    parts = [part for part in buckets(sources, edges) if len(part[2]) >= max(minimum, 1)]
    parts = [(1, None, np.arange(len(sources))), *parts]
    return [
        {"run": later, "against": earlier, "from": low, "to": high, "sentences": len(rows)}
        | paired_difference(systems[later][rows], systems[earlier][rows], trials=trials)._asdict()
        for earlier, later in combinations(systems, 2)
        for low, high, rows in parts
    ]


def significance_table(records: Sequence[Mapping]) -> str:
    """The records of `compare`, a row for each pair."""
    pairs: dict[str, list[str]] = {}
    for record in records:
        p = "p<0.001" if record["p"] < 0.001 else f"p={record['p']:.3f}"
        cells = pairs.setdefault(f"{record['run']} − {record['against']}", [])
        cells.append(f"{record['bleu']:+.1f} ({p})")
    buckets_of_one_pair = records[1 : len(records) // len(pairs)]
    header = ["difference in BLEU", "all", *(f"{span(b)} words" for b in buckets_of_one_pair)]
    return text_table(header, [[pair, *cells] for pair, cells in pairs.items()])
