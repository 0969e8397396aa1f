"""Compares evaluated runs: BLEU by source length in one figure, and paired significance.

python -m scripts.plot_bleu_by_length RUN RUN ... [--split test] [--output FILE] [--json FILE]

Each run must have been evaluated (python evaluate.py run=RUN split=SPLIT) on the same sentences.
"""

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cli import command
from data.text import write_whole
from decoding.evaluated import (
    Evaluated,
    distinct_labels,
    read_evaluation,
    require_same_texts,
)
from decoding.results import write_results
from decoding.run import Run
from evaluation import bleu
from evaluation.figures import PUBLISHED, bleu_by_length_figure, save
from evaluation.significance import compare, significance_table
from evaluation.tables import comparison_table, text_table


@command
def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_intermixed_args(arguments)
    evaluated = [read_evaluation(Run(folder), options.split) for folder in options.runs]
    require_same_texts(evaluated)
    labels = distinct_labels([one.run for one in evaluated])
    sources, buckets = evaluated[0].sources, {"edges": options.edges, "minimum": options.minimum}
    statistics = {
        label: bleu.sentence_statistics(one.hypotheses, one.references)
        for label, one in zip(labels, evaluated, strict=True)
    }
    scores = {
        label: {
            "bleu": {
                "score": float(bleu.bleu_of(sums.sum(0))),
                "ci95": bleu.confidence_interval(sums),
            },
            "by_length": bleu.by_length(sums, sources, **buckets),
            "long_to_short": bleu.long_to_short(sums, sources, **buckets),
            "parameters": one.parameters,
        }
        for (label, sums), one in zip(statistics.items(), evaluated, strict=True)
    }
    header, rows = comparison_table(scores)
    differences = compare(statistics, sources, **buckets)
    curves = {label: score["by_length"] for label, score in scores.items()}
    published = PUBLISHED[options.reference] if options.reference else None
    figure = bleu_by_length_figure(curves, title=options.title, published=published)
    # files first, since who reads what is printed may stop reading
    written = save(figure, options.output or _default_output(evaluated, options.split))
    records = _records(scores, options.split) + differences
    if options.json:
        write_whole(options.json, json.dumps(records, indent=2, ensure_ascii=False) + "\n")
    if options.results:
        runs = [one.run for one in evaluated]
        write_results(options.results, header, rows, records, runs)
        save(figure, options.results.with_suffix(".png"))
    print(text_table(header, rows))
    if differences:
        print(f"\n{significance_table(differences)}\n(paired approximate randomisation)")
    print("\n" + "\n".join(map(str, written)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.plot_bleu_by_length", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run folders")
    parser.add_argument("--split", default="test", help="of the evaluation (default: test)")
    parser.add_argument("--output", type=Path, help="figure, written as PNG and PDF (or SVG)")
    parser.add_argument("--title", default="", help="of the figure")
    parser.add_argument(
        "--edges",
        type=lambda text: [int(edge) for edge in text.split(",")],
        default=bleu.DEFAULT_EDGES,
        metavar="10,20,30",
        help="longest sentence of each bucket but the last (default: 10,20,30,40,50)",
    )
    parser.add_argument(
        "--minimum",
        type=int,
        default=bleu.DEFAULT_MINIMUM,
        help=f"sentences that a bucket needs for a BLEU (default: {bleu.DEFAULT_MINIMUM})",
    )
    parser.add_argument("--reference", choices=PUBLISHED, help="published curves to draw faintly")
    parser.add_argument("--json", type=Path, help="writes all numbers as a list of records")
    parser.add_argument("--results", type=Path, help="writes table, numbers, origin: FILE.json")
    return parser


def _default_output(evaluated: Sequence[Evaluated], split: str) -> Path:
    """Beside the runs: in the folder that holds them all."""
    common = Path(os.path.commonpath([one.run.folder.resolve() for one in evaluated]))
    here = Path.cwd()
    folder = common.relative_to(here) if common.is_relative_to(here) else common
    return folder / f"bleu_by_length_{split}.png"


def _records(scores: dict[str, dict[str, Any]], split: str) -> list[dict[str, Any]]:
    records = []
    for label, score in scores.items():
        count = sum(bucket["sentences"] for bucket in score["by_length"])
        whole = {"from": 1, "to": None, "sentences": count, "bleu": score["bleu"]["score"]}
        whole |= {"ci95": score["bleu"]["ci95"], "long_to_short": score["long_to_short"]}
        records += [{"run": label, "split": split} | part for part in (whole, *score["by_length"])]
    return records


if __name__ == "__main__":
    main()
