"""Compares models over seeds: mean and standard deviation of BLEU on several splits.

python -m scripts.compare_seeds RUN RUN ... [--splits test,test_2017_flickr] [--results FILE.json]

Runs that differ in nothing but their seed and name are one row. What their commands had and not all
others' is its settings, so that an ablation is a table; where that is the same, the keys that
differ (an experiment's own settings may have changed between two trainings). Each must have been
evaluated (python evaluate.py run=RUN split=SPLIT); evaluated with moses=true it has that BLEU as
well.
"""

import argparse
import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cli import command, flat
from decoding.evaluated import read_scores
from decoding.results import write_results
from decoding.run import Run
from evaluation.tables import text_table

NOT_SETTINGS = ("model", "seed", "name", "resume", "data.source")  # of overrides
METRICS = {"bleu": "BLEU", "moses_bleu": "Moses BLEU"}
HOW = ("checkpoint", "search", "precision")  # of an evaluation: alike in all of a row


@command
def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_intermixed_args(arguments)
    runs = [Run(folder) for folder in options.runs]
    splits = options.splits.split(",")
    records = [_record(run, split) for run in runs for split in splits]
    header, rows = _table(runs, splits, records)
    if options.results:  # first, since who reads what is printed may stop reading
        write_results(options.results, header, rows, records, runs)
    print(text_table(header, rows))
    if options.results:
        print(f"\nall numbers: {options.results}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.compare_seeds", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run folders")
    parser.add_argument("--splits", default="test", help="between commas (default: test)")
    parser.add_argument("--results", type=Path, help="writes table and numbers: FILE.json")
    return parser


def _record(run: Run, split: str) -> dict[str, Any]:
    """The scores of one run on one split, and how they were made."""
    scores = read_scores(run, split)
    measured = {name: scores[name] for name in METRICS if name in scores}
    return {
        "run": run.name,
        "seed": run.config.get("seed"),
        "split": split,
        "parameters": scores.get("parameters"),
        **{name: found["score"] for name, found in measured.items()},
        "signatures": {name: found["signature"] for name, found in measured.items()},
        **{name: scores.get(name) for name in HOW},
    }


def _table(
    runs: Sequence[Run], splits: Sequence[str], records: Sequence[Mapping[str, Any]]
) -> tuple[list[str], list[list[str]]]:
    """One row for the runs that differ in seed and name alone."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(json.dumps(_same(run), sort_keys=True), []).append(run)
    shown = {metric: name for metric, name in METRICS.items() if any(metric in r for r in records)}
    settings = _settings([members[0] for members in groups.values()])
    labels = ["model", "settings"] if any(settings.values()) else ["model"]
    header = [*labels, "parameters", "seeds", "minutes"]
    header += [f"{name}, {split}" for name in shown.values() for split in splits]
    rows = []
    for members in groups.values():
        names = {run.name for run in members}
        own = [record for record in records if record["run"] in names]
        for split in splits:
            _require_alike([record for record in own if record["split"] == split])
        minutes = [run.training["seconds"] / 60 for run in members if "seconds" in run.training]
        first = members[0]
        about = {"model": first.config["chosen"]["model"], "settings": settings[first.name]}
        row = [
            *(about[label] for label in labels),
            f"{size:,}" if isinstance(size := own[0]["parameters"], int) else "",
            ", ".join(str(run.config.get("seed")) for run in members),
            f"{statistics.mean(minutes):.0f}" if minutes else "",
        ]
        for metric in shown:
            for split in splits:
                row.append(_mean([r[metric] for r in own if r["split"] == split and metric in r]))
        rows.append(row)
    return header, rows


def _require_alike(records: Sequence[Mapping[str, Any]]) -> None:
    """Refuses a mean over evaluations that were made in several ways."""
    first, *others = records
    for other in others:
        for key in (*HOW, "signatures"):
            if other[key] != first[key]:
                raise ValueError(
                    f"{first['run']} and {other['run']} were not evaluated alike on "
                    f"{first['split']} ({key}: {first[key]}, {other[key]}): no mean of them"
                )


def _same(run: Run) -> dict[str, Any]:
    """The settings in which the runs of a row do not differ, by their dotted names."""
    apart = ("chosen", "seed", "name", "resume")
    settings = flat({key: value for key, value in run.config.items() if key not in apart})
    return settings | {"chosen.model": run.config["chosen"]["model"]}


def _settings(runs: Sequence[Run]) -> dict[str, str]:
    """By the name of each row's first run, what sets it apart from the others."""
    given = {
        run.name: [o for o in run.overrides if o.split("=")[0] not in NOT_SETTINGS] for run in runs
    }
    own = {
        name: " ".join(o for o in some if any(o not in other for other in given.values()))
        for name, some in given.items()
    }
    labels = {run.name: (run.config["chosen"]["model"], own[run.name]) for run in runs}
    for run in runs:
        settings = _same(run)
        others = [_same(r) for r in runs if r is not run and labels[r.name] == labels[run.name]]
        keys = [
            f"{key}={'null' if value is None else value}"
            for key, value in settings.items()
            if not isinstance(value, dict) and any(value != other.get(key) for other in others)
        ]
        own[run.name] = " ".join([*([own[run.name]] if own[run.name] else []), *keys])
    return own


def _mean(values: Sequence[float]) -> str:
    """Mean and sample standard deviation, as far as there are values for them."""
    if not values:
        return ""
    spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.1f}{spread}"


if __name__ == "__main__":
    main()
