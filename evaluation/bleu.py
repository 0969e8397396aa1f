"""How good translations are: BLEU, chrF and TER by sacreBLEU, BLEU by source length, intervals.

BLEU is corpus BLEU as the sacrebleu command computes it by default: cased, tokenised by 13a,
on plain text. Everything else about it (buckets, bootstrap intervals) works on the
sentences' sufficient statistics, an array of shape (sentences, 10): words of the hypothesis, words
of the reference, 1- to 4-grams that match, 1- to 4-grams of the hypothesis. BLEU of any set of
sentences is a function of the sum of their rows.
"""

import logging
import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from sacrebleu.metrics import BLEU, CHRF, TER
from tqdm import tqdm

DEFAULT_EDGES = (10, 20, 30, 40, 50)  # buckets of 1-10, 11-20, ..., 41-50, 51+ source words
DEFAULT_MINIMUM = 20  # BLEU of fewer sentences says too little
SEED = 12345  # sacreBLEU's own, so that intervals agree with its command
MAX_TER_WORDS = 500  # two unlike lines of so many take a minute, twice as many ten times that
_FEW = 300  # sentences whose TER is not worth starting processes for

log = logging.getLogger(__name__)


def scores(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    sources: Sequence[str],
    *,
    edges: Sequence[int] = DEFAULT_EDGES,
    minimum: int = DEFAULT_MINIMUM,
    resamples: int = 1000,
    ter: bool = True,
) -> dict:
    """All that scores.json says of quality.

    references: one list per reference, each as long as hypotheses (as for sacreBLEU).
    Intervals ("ci95") are [low, high]; TER is slow on long bad translations and may be left out,
    as it is where a line has over MAX_TER_WORDS words.
    """
    if ter and _longest(hypotheses, *references) > MAX_TER_WORDS:
        log.warning("TER is left out: a line of over %d words would take hours", MAX_TER_WORDS)
        ter = False
    statistics = sentence_statistics(hypotheses, references)
    bleu, chrf = BLEU(), CHRF()
    return {
        "bleu": {
            "score": bleu.corpus_score(hypotheses, references).score,
            "signature": str(bleu.get_signature()),
            "ci95": confidence_interval(statistics, resamples=resamples),
        },
        "chrf": {
            "score": chrf.corpus_score(hypotheses, references).score,
            "signature": str(chrf.get_signature()),
        },
        "ter": _ter(hypotheses, references) if ter else None,
        "sentences": len(hypotheses),
        "by_length": by_length(
            statistics, sources, edges=edges, minimum=minimum, resamples=resamples
        ),
    }


def _longest(*texts: Sequence[str]) -> int:
    """The number of words of the longest line."""
    return max((len(line.split()) for text in texts for line in text), default=0)


def bleu_by_length(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    sources: Sequence[str],
    *,
    edges: Sequence[int] = DEFAULT_EDGES,
    minimum: int = DEFAULT_MINIMUM,
) -> list[dict]:
    """BLEU per bucket of source length without intervals: [{from, to, sentences, bleu}], fast."""
    statistics = sentence_statistics(hypotheses, references)
    rows = by_length(statistics, sources, edges=edges, minimum=minimum, resamples=0)
    return [{key: row[key] for key in ("from", "to", "sentences", "bleu")} for row in rows]


# effective_order silences a warning; the counts do not depend on it. Made once, since a cache of
# sacreBLEU's keeps every line under every metric that has read it.
_PER_SENTENCE = BLEU(effective_order=True)


def sentence_statistics(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]]
) -> np.ndarray:
    """Sufficient statistics of BLEU, (sentences, 10); a ValueError where the numbers do not fit."""
    if not hypotheses:
        raise ValueError("there are no translations to score")
    if not references:
        raise ValueError("there are no references to score against")
    for number, reference in enumerate(references, 1):
        if len(reference) != len(hypotheses):
            raise ValueError(
                f"{len(hypotheses)} translations cannot be scored against {len(reference)} lines "
                f"of reference {number}: the numbers must be equal"
            )
    parts = (
        _PER_SENTENCE.sentence_score(h, r) for h, *r in zip(hypotheses, *references, strict=True)
    )
    rows = [(part.sys_len, part.ref_len, *part.counts, *part.totals) for part in parts]
    return np.array(rows, dtype=np.float64)


def bleu_of(sums: np.ndarray) -> np.ndarray:
    """BLEU of summed statistics, (..., 10) -> (...), smoothed as sacreBLEU does by default ("exp").

    The k-th order without any match counts as half, a quarter, ... of one match.
    """
    hypothesis_length, reference_length = sums[..., 0], sums[..., 1]
    matches, totals = sums[..., 2:6], sums[..., 6:10]
    smoothed = np.where(matches > 0, matches, 0.5 ** np.cumsum(matches == 0, axis=-1))
    defined = (totals > 0).all(-1) & (matches > 0).any(-1)
    log_precision = np.log(smoothed / np.maximum(totals, 1)).mean(-1)
    brevity = np.minimum(0, 1 - reference_length / np.maximum(hypothesis_length, 1))
    return np.where(defined, 100 * np.exp(log_precision + brevity), 0.0)


def confidence_interval(
    statistics: np.ndarray, *, resamples: int = 1000, seed: int = SEED
) -> list[float]:
    """The bootstrap 95 % interval of BLEU, [low, high] (Koehn 2004): sacreBLEU's own resamples."""
    generator, count = np.random.default_rng(seed), len(statistics)
    draws = (generator.choice(count, size=count) for _ in range(resamples))
    sums = [np.bincount(rows, minlength=count) @ statistics for rows in draws]
    values = np.sort(bleu_of(np.array(sums)))
    outside = resamples // 40
    return [float(values[outside]), float(values[resamples - 1 - outside])]


def buckets(
    sources: Sequence[str], edges: Sequence[int]
) -> list[tuple[int, int | None, np.ndarray]]:
    """Sentences by number of source words: (from, to, their indices), the last with `to` None.

    An edge belongs to the bucket that it closes. Words are what white space separates; a blank
    source counts in the first bucket, so that every sentence is in exactly one.
    """
    edges = list(edges)
    if edges != sorted(set(edges)) or not edges or edges[0] < 1:
        raise ValueError(f"length_edges must be positive and increasing, not {edges}")
    lengths = [len(source.split()) for source in sources]
    bucket = np.searchsorted(edges, lengths, side="left")
    spans = zip([1, *(edge + 1 for edge in edges)], [*edges, None], strict=True)
    return [(low, high, np.flatnonzero(bucket == i)) for i, (low, high) in enumerate(spans)]


def by_length(
    statistics: np.ndarray,
    sources: Sequence[str],
    *,
    edges: Sequence[int],
    minimum: int,
    resamples: int = 1000,
) -> list[dict]:
    """Per bucket {from, to, sentences, bleu, ci95}; bleu is None below `minimum` sentences."""
    if len(sources) != len(statistics):
        raise ValueError(f"{len(statistics)} translations do not fit {len(sources)} sources")
    result = []
    for low, high, rows in buckets(sources, edges):
        chosen, enough = statistics[rows], len(rows) >= max(minimum, 1)
        bleu = float(bleu_of(chosen.sum(0))) if enough else None
        interval = (
            confidence_interval(chosen, resamples=resamples) if enough and resamples else None
        )
        result.append(
            {"from": low, "to": high, "sentences": len(rows), "bleu": bleu, "ci95": interval}
        )
    return result


def long_to_short(
    statistics: np.ndarray, sources: Sequence[str], *, edges: Sequence[int], minimum: int
) -> float | None:
    """BLEU of sentences of 41 words and more divided by BLEU of those of 11 to 20.

    How much quality is left on long sentences, in one number. None where the edges do not bound
    both, or either has fewer than `minimum` sentences, or the short ones have no BLEU.
    """
    if not {10, 20, 40} <= set(edges):
        return None
    _, (*_, short), _, (*_, long) = buckets(sources, (10, 20, 40))
    if min(len(short), len(long)) < max(minimum, 1):
        return None
    below, above = (float(bleu_of(statistics[rows].sum(0))) for rows in (short, long))
    return above / below if below else None


def _ter(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> dict:
    """TER over all sentences, as sacreBLEU's corpus score, on all cores where there are many."""
    signature = str(TER(references=references).get_signature())
    pairs = list(zip(hypotheses, zip(*references, strict=True), strict=True))
    progress = {"total": len(pairs), "desc": "TER", "unit": "sentence", "disable": None}
    if len(pairs) < _FEW:
        parts = [_edits(pair) for pair in pairs]
    else:  # spawned, for forking a process that has started threads is not safe
        context, workers = multiprocessing.get_context("spawn"), min(8, os.cpu_count() or 1)
        with ProcessPoolExecutor(workers, mp_context=context) as pool:
            parts = list(tqdm(pool.map(_edits, pairs, chunksize=20), **progress, leave=False))
    edits, length = (sum(column) for column in zip(*parts, strict=True))
    score = edits / length if length > 0 else float(edits > 0)
    return {"score": 100 * score, "signature": signature}


def _edits(pair: tuple[str, Sequence[str]]) -> tuple[int, float]:
    """Number of edits and mean reference length of one (hypothesis, its references)."""
    score = TER().sentence_score(pair[0], pair[1])
    return score.num_edits, score.ref_length
