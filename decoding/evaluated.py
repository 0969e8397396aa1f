"""What evaluate.py left in a run folder, read back, to compare runs or choose among sentences."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from data.text import read_lines
from decoding.run import Run


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
        raise FileNotFoundError(_how_to_evaluate(run, split))
    texts = {name: list(read_lines(files[name])) for name in names}
    parameters = _parameters(folder / "scores.json")
    return Evaluated(run, texts, list(read_lines(hypotheses[0])), parameters)


def read_scores(run: Run, split: str) -> dict[str, Any]:
    """scores.json of a split; FileNotFoundError says how to make it, ValueError if it is not."""
    path = run.folder / "evaluation" / split / "scores.json"
    if not path.is_file():
        raise FileNotFoundError(_how_to_evaluate(run, split))
    try:
        scores = json.loads(path.read_text("utf-8"))
        number, about = scores["bleu"]["score"], scores["bleu"]["signature"]
        sound = isinstance(number, float) and isinstance(about, str)
        sound = sound and isinstance(scores["by_length"], list)
    except (ValueError, TypeError, KeyError, RecursionError):
        sound = False
    if not sound:
        raise ValueError(f"{path}: not the scores of an evaluation; evaluate the run again")
    return scores


def _how_to_evaluate(run: Run, split: str) -> str:
    return (
        f"{run.folder}: not evaluated on {split} yet; "
        f"do so with: python evaluate.py run={run.folder} split={split}"
    )


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
