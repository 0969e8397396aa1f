"""Results that are kept: a table with the numbers behind it, and of what they come.

A file of results/ is JSON: `command` that wrote it, `table` (header and rows, as printed and as it
stands in the documents), `records` (the numbers), `runs` (settings, duration, machine, versions of
each). scripts.readme_tables puts the tables into the documents.
"""

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from data.text import write_whole
from decoding.run import Run
from models import checkpoint as checkpoints

KEPT = ("tgt_tokens", "step", "best_step")  # of the counters of a training


def write_results(
    path: Path,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    records: Sequence[Mapping[str, Any]],
    runs: Sequence[Run],
) -> None:
    """Writes FILE.json whole or not at all."""
    content = {
        "command": " ".join(["python -m", _module(), *map(shlex.quote, sys.argv[1:])]),
        "table": {"header": list(header), "rows": [list(row) for row in rows]},
        "records": list(records),
        "runs": [origin(run) for run in runs],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def origin(run: Run) -> dict[str, Any]:
    """How a run came about: its overrides, its counters, duration, machine and versions.

    Where the corpus lay (data.source) is left out: it is of one machine and changes no number.
    """
    progress = checkpoints.load(run.checkpoint("last")).get("progress", {})
    return {
        "run": run.name,
        "overrides": [o for o in run.overrides if not o.startswith("data.source=")],
        "seed": run.config.get("seed"),
        **{name: progress.get(name) for name in KEPT},
        **run.training,
    }


def _module() -> str:
    """The command's module, as it is given to python -m."""
    return f"{Path(sys.argv[0]).parent.name}.{Path(sys.argv[0]).stem}"
