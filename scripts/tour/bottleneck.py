"""Step 1: the encoder's last state is all that the decoder knows of a sentence."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from decoding.evaluated import read_scores
from decoding.run import Run
from evaluation.figures import PUBLISHED, bleu_by_length_figure
from evaluation.tables import comparison_table, number, span, text_table
from models.bahdanau import Bahdanau
from models.rnn import RNN
from scripts.tour.page import Drawing, Part, Step, prose, text

HIDDEN = 128
LENGTHS = (5, 10, 20, 50)
SPLIT = "test"

log = logging.getLogger(__name__)


def numbers_kept(words: int) -> tuple[int, int]:
    """How many numbers the decoders of RNN and of Bahdanau are given of a source of `words`."""
    sizes = {"embedding": HIDDEN, "hidden": HIDDEN, "cell": "gru", "dropout": 0.0}
    rnn = RNN(words, words, **sizes, layers=1, reverse_source=False)
    bahdanau = Bahdanau(words, words, **sizes)
    src = torch.arange(words).unsqueeze(0)  # (1, words)
    mask = torch.ones_like(src, dtype=torch.bool)
    with torch.inference_mode():
        return (
            rnn.encode(src, mask).context.numel(),
            bahdanau.encode(src, mask).annotations.numel(),
        )


def step(runs: Sequence[Run]) -> Step:
    return Step("One vector for a whole sentence", [_problem(), _measured(runs)], [RNN, Bahdanau])


def _problem() -> Part:
    kept = {words: numbers_kept(words) for words in LENGTHS}
    header = ["words of the source", "one vector", "per word", "a vector for each", "per word"]
    rows = [
        [str(n), f"{one:,}", number(one / n), f"{many:,}", number(many / n)]
        for n, (one, many) in kept.items()
    ]
    curves = PUBLISHED["bahdanau2015"]
    published = [
        [f"{kind} ({name})", *(number(bleu) for bleu in curves[name].values())]
        for kind, name in (("one vector", "RNNencdec-50"), ("attention", "RNNsearch-50"))
    ]
    lengths = ["words of the source", *map(str, curves["RNNencdec-50"])]
    return Part(
        text(
            prose(
                f"""The first encoder-decoders read a sentence word by word and hand over one
                vector, the encoder's last state. It is all that the decoder ever sees of the
                source, and it is as large for {LENGTHS[0]} words as for {LENGTHS[-1]}: the longer
                the sentence, the less room for each of its words. So many numbers is the decoder
                given of a source, by an encoder of {HIDDEN} hidden units:"""
            ),
            text_table(header, rows),
            prose(
                """The right half is the way out: keep a vector for each word, reading both ways,
                and let the decoder choose among them. Bahdanau, Cho and Bengio (2015) compared the
                two on English to French. Their BLEU, read off figure 2:"""
            ),
            text_table(lengths, published),
            prose(
                """From 20 to 50 words, one vector loses more than half of its BLEU, and attention
                next to nothing."""
            ),
        )
    )


def _measured(runs: Sequence[Run]) -> Part:
    """BLEU by source length of the runs that have been evaluated."""
    scores = scores_of(runs)
    if not scores:
        return Part(
            prose(
                f"""(No evaluated run was given, so nothing is measured here. `make demo` trains and
                evaluates three; any other run: `python evaluate.py run=RUN split={SPLIT}`.)"""
            ),
            from_runs=True,
        )
    curves = {name: one["by_length"] for name, one in scores.items()}
    return Part(
        text(
            prose(f"The same measured here, on the {SPLIT} sentences of the runs shown:"),
            text_table(*comparison_table(scores)),
            prose(from_short_to_long(curves)),
        ),
        Drawing(
            "bleu_by_length",
            bleu_by_length_figure(curves),
            "BLEU by the length of the source sentence.",
        ),
        from_runs=True,
    )


def scores_of(runs: Sequence[Run]) -> dict[str, Any]:
    """What evaluate.py wrote of each run, by the run's name; runs without are left out, and said.

    Raises ValueError for a file that is not evaluate.py's.
    """
    scores = {}
    for run in runs:
        try:
            found = read_scores(run, SPLIT)
        except FileNotFoundError as error:
            log.warning("not in step 1: %s", error)
            continue
        scores[run.name if run.name not in scores else str(run.folder)] = found
    return scores


def from_short_to_long(curves: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Says what becomes of each curve from the shortest sentences to the longest."""
    places = zip(*curves.values(), strict=True)  # at each the buckets of all curves
    known = [place for place in places if None not in [bucket["bleu"] for bucket in place]]
    if len(known) < 2:
        return ""
    (first, *_), (last, *_) = known[0], known[-1]
    changes = [
        f"{name} from {short['bleu']:.1f} to {long['bleu']:.1f}"
        for name, short, long in zip(curves, known[0], known[-1], strict=True)
    ]
    return (
        f"From sentences of {span(first)} words to those of {span(last)}, BLEU goes: "
        f"{', '.join(changes)}."
    )
