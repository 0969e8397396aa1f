"""Scores a model's attention as word alignment against gold links.

python -m scripts.score_alignments RUN ... [--split test] [--method argmax|threshold] [--shift]
python -m scripts.score_alignments RUN ... --gold FILE --text FILE [--one-based]

The model is made to produce the gold targets (forced decoding). Gold links come from the run's
corpus (data=grammar has them), or from a file of Pharaoh lines ("0-0 1p2") with a file of
tokenised text beside it ("source words ||| target words").
"""

import argparse
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cli import command
from data.corpus import normalise, read_lines
from decoding.run import Run
from decoding.translator import Alignment, Translator
from evaluation import links
from evaluation.alignment import WordAlignment, word_alignment, words
from evaluation.tables import number, text_table

log = logging.getLogger(__name__)

Tokenised = list[tuple[list[str], list[str]]]  # source and target words of each sentence


class GoldText(NamedTuple):
    """Sentences in both languages with their words and gold links."""

    sources: list[str]
    targets: list[str]
    words: Tokenised
    gold: list[links.Gold]


@command
def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_intermixed_args(arguments)
    if (options.gold is None) != (options.text is None):
        raise ValueError("--gold and --text are given together or not at all")
    from_files = read_files(options.gold, options.text, options.one_based) if options.gold else None
    records: list[dict[str, Any]] = []
    for folder in options.runs:
        run = Run(folder)
        translator = Translator.from_run(run, options.device, options.checkpoint)
        if not translator.has_attention:
            raise ValueError(f"{run.name} has no attention, so there is no alignment to score")
        text = from_files or read_corpus(run, options.split)
        alignments = translator.align(text.sources, text.targets)
        for record in score(run.name, text, alignments, options):
            if record not in records:  # the diagonal is the same for runs on the same text
                records.append(record)
    print(table(records))
    if options.json:
        options.json.write_text(json.dumps(records, indent=2, ensure_ascii=False) + "\n", "utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.score_alignments", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run folders")
    parser.add_argument("--split", default="test", help="of the run's corpus (default: test)")
    parser.add_argument("--gold", type=Path, metavar="FILE", help="gold links instead, Pharaoh")
    parser.add_argument("--text", type=Path, metavar="FILE", help="words: source ||| target")
    parser.add_argument("--one-based", action="store_true", help="links in --gold count from 1")
    parser.add_argument("--method", choices=("argmax", "threshold"), default="argmax")
    parser.add_argument("--threshold", type=float, default=0.3, help="least weight of a link")
    parser.add_argument(
        "--shift", action="store_true", help="word i has the attention of the next step (Shift-Att)"
    )
    parser.add_argument("--checkpoint", default="best", help="best, last or a file")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="writes a list of records; rates are shares of 1"
    )
    return parser


def read_corpus(run: Run, split: str) -> GoldText:
    """A split of the run's corpus with its gold links, over the words of `words`."""
    corpus = run.corpus().load(split)
    if corpus.links is None:
        raise ValueError(
            f"the corpus of {run.name} has no gold alignments; "
            "train on data=grammar, or give --gold FILE --text FILE"
        )
    tokenised = [(words(s), words(t)) for s, t in zip(corpus.src, corpus.tgt, strict=True)]
    gold = links.read_gold(corpus.links, lengths=_lengths(tokenised), name=f"links of {split}")
    return GoldText(corpus.src, corpus.tgt, tokenised, gold)


def read_files(gold: Path, text: Path, one_based: bool) -> GoldText:
    """Tokenised text, "source ||| target" a line, and its links."""
    tokenised = []
    for line_number, line in enumerate(read_lines(text), 1):
        sides = line.split("|||")
        if len(sides) != 2:
            raise ValueError(f"{text}, line {line_number}: expected source ||| target")
        src, tgt = (normalise(side).split() for side in sides)
        tokenised.append((src, tgt))
    found = links.read_gold(
        read_lines(gold), one_based=one_based, lengths=_lengths(tokenised), name=str(gold)
    )
    sources, targets = ([" ".join(pair[side]) for pair in tokenised] for side in (0, 1))
    return GoldText(sources, targets, tokenised, found)


def _lengths(tokenised: Tokenised) -> list[tuple[int, int]]:
    return [(len(src), len(tgt)) for src, tgt in tokenised]


def score(
    name: str, text: GoldText, alignments: Sequence[Alignment], options: argparse.Namespace
) -> list[dict[str, Any]]:
    """The records of a run and of the plain diagonal beside it."""
    found, diagonal, gold, left_out = [], [], [], []
    for aligned, (src, tgt), sentence_gold in zip(alignments, text.words, text.gold, strict=True):
        try:
            attention = word_alignment(
                aligned.weights,
                aligned.src_pieces,
                aligned.tgt_pieces,
                src_words=src,
                tgt_words=tgt,
                shift=options.shift,
            )
        except ValueError as error:  # a source longer than the model reads
            left_out.append(error)
            continue
        found.append(draw_links(attention, options))
        diagonal.append(links.diagonal_links(len(src), len(tgt)))
        gold.append(sentence_gold)
    if left_out:
        log.warning("%d sentences left out; the first: %s", len(left_out), left_out[0])
    setting = "argmax" if options.method == "argmax" else f"threshold {options.threshold:g}"
    setting += " shifted" if options.shift else ""
    return [
        {"run": name, "setting": setting} | links.score_links(found, gold)._asdict(),
        {"run": "(none)", "setting": "diagonal"} | links.score_links(diagonal, gold)._asdict(),
    ]


def draw_links(attention: WordAlignment, options: argparse.Namespace) -> set[links.Link]:
    if options.method == "argmax":
        return links.argmax_links(attention.matrix)
    return links.threshold_links(attention.matrix, options.threshold)


def table(records: Sequence[dict[str, Any]]) -> str:
    """The records with rates in per cent."""
    rates = ("aer", "precision", "recall", "aer_crossing", "aer_diagonal")
    header = ["run", "setting", "AER %", "precision %", "recall %"]
    header += ["AER % crossing", "AER % the rest", "sentences"]
    rows = [
        [record["run"], record["setting"]]
        + [number(None if record[rate] is None else 100 * record[rate]) for rate in rates]
        + [str(record["sentences"])]
        for record in records
    ]
    return text_table(header, rows)


if __name__ == "__main__":
    main()
