"""Compares evaluated runs: BLEU by source length in one figure, and paired significance.

python -m scripts.plot_bleu_by_length RUN RUN ... [--split test] [--output FILE] [--json FILE]

Each run must have been evaluated (python evaluate.py run=RUN split=SPLIT) on the same sentences.
"""

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cli import command
from data.corpus import read_lines
from decoding.run import Run
from evaluation import bleu
from evaluation.figures import PUBLISHED, bleu_by_length_figure, save
from evaluation.significance import compare, significance_table
from evaluation.tables import comparison_table


class Evaluated(NamedTuple):
    """What evaluate.py left of one run and split."""

    run: Run
    texts: dict[str, list[str]]  # by file name: sources.en, references.fr, ...
    hypotheses: list[str]
    parameters: int | None

    @property
    def sources(self) -> list[str]:
        return next(lines for name, lines in self.texts.items() if name.startswith("sources."))

    @property
    def references(self) -> list[list[str]]:
        return [lines for name, lines in self.texts.items() if name.startswith("references.")]


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
                "score": float(bleu.bleu_of(rows.sum(0))),
                "ci95": bleu.confidence_interval(rows),
            },
            "by_length": bleu.by_length(rows, sources, **buckets),
            "long_to_short": bleu.long_to_short(rows, sources, **buckets),
            "parameters": one.parameters,
        }
        for (label, rows), one in zip(statistics.items(), evaluated, strict=True)
    }
    print(comparison_table(scores))
    differences = compare(statistics, sources, **buckets)
    if differences:
        print(f"\n{significance_table(differences)}\n(paired approximate randomisation)")
    curves = {label: score["by_length"] for label, score in scores.items()}
    published = PUBLISHED[options.reference] if options.reference else None
    figure = bleu_by_length_figure(curves, title=options.title, published=published)
    output = options.output or _default_output(evaluated, options.split)
    print("\n" + "\n".join(str(path) for path in save(figure, output)))
    if options.json:
        records = _records(scores, options.split) + differences
        options.json.write_text(json.dumps(records, indent=2, ensure_ascii=False) + "\n", "utf-8")


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
    return parser


def read_evaluation(run: Run, split: str) -> Evaluated:
    """What evaluate.py wrote for a split; FileNotFoundError says how to make it."""
    folder = run.folder / "evaluation" / split
    files = {path.name: path for path in sorted(folder.glob("*.*"))}
    hypotheses = [path for name, path in files.items() if name.startswith("hypotheses.")]
    # references.fr, then references.2.fr, references.3.fr, ...
    names = sorted(
        (name for name in files if name.startswith(("sources.", "references."))),
        key=lambda name: [int(part) for part in name.split(".") if part.isdecimal()],
    )
    kinds = {name.split(".")[0] for name in names}
    if len(hypotheses) != 1 or kinds != {"sources", "references"}:
        raise FileNotFoundError(
            f"{run.folder}: not evaluated on {split} yet; "
            f"do so with: python evaluate.py run={run.folder} split={split}"
        )
    texts = {name: list(read_lines(files[name])) for name in names}
    parameters = _parameters(folder / "scores.json")
    return Evaluated(run, texts, list(read_lines(hypotheses[0])), parameters)


def _parameters(path: Path) -> int | None:
    """The number of parameters that scores.json has; None where it is missing or damaged."""
    try:
        number = json.loads(path.read_text("utf-8")).get("parameters")
    except (FileNotFoundError, ValueError, RecursionError, AttributeError):
        return None
    return number if type(number) is int and 0 < number < 2**63 else None


def require_same_texts(evaluated: Sequence[Evaluated]) -> None:
    """Refuses runs that were not evaluated on the same sentences and references."""
    first, *others = evaluated
    for other in others:
        for name in sorted(first.texts.keys() | other.texts.keys()):
            if first.texts.get(name) != other.texts.get(name):
                raise ValueError(
                    f"{name} is not the same in the evaluations of {first.run.folder} and "
                    f"{other.run.folder}: only runs on the same sentences can be compared"
                )


def distinct_labels(runs: Sequence[Run]) -> list[str]:
    """For each run its model, with its corpus and name where only these tell it from another."""
    names = [run.name for run in runs]  # corpus/model/name
    if len(set(names)) < len(names):
        names = [str(run.folder) for run in runs]
        if len(set(names)) < len(names):
            raise ValueError("a run is given twice")
        return names
    corpora = {name.split("/")[0] for name in names}
    models = [name.rsplit("/", 1)[0] for name in names]
    shown = [
        model if models.count(model) == 1 else n for model, n in zip(models, names, strict=True)
    ]
    return [label.split("/", 1)[1] if len(corpora) == 1 else label for label in shown]


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
