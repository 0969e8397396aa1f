"""Measures how the cost of a corpus grows with its size: python -m scripts.benchmark_growth

For each size, in processes of their own: preparing the corpus (generating or reading, cleaning,
learning vocabularies, tokenising); starting a training on it when it is prepared; training. All is
what train.py does. What is prepared lies in a temporary folder (TMPDIR says where).
docs/speed.md says what the columns mean.
"""

import argparse
import importlib
import logging
import os
import tempfile
import time
from argparse import ArgumentTypeError
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from hydra import compose, initialize_config_dir
from hydra.errors import HydraException

from cli import CONFIGS, check_overrides, command
from decoding import cost
from decoding.device import device_of, use_threads
from decoding.results import write_results
from evaluation.tables import number, text_table
from training.machine import in_fresh_process, machine

SIZES = (10_000, 100_000)
COLUMNS = {  # of the table, and the keys of the records
    **{"prepare s": "prepare_seconds", "peak MB": "prepare_peak_rss_mb", "disk MB": "disk_mb"},
    **{"start s": "start_seconds", "train tokens/s": "tgt_tokens_per_s"},
    **{"train peak MB": "train_peak_rss_mb", "train own MB": "train_own_mb"},
}

log = logging.getLogger(__name__)
Record = dict[str, Any]


@command
def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_intermixed_args(arguments)
    if options.seconds < 0:
        raise ValueError(f"--seconds must not be negative, but is {options.seconds}")
    check_overrides("train", options.overrides)
    records = []
    for size in options.sizes:
        log.info("%d pairs", size)
        records.append(measure(size, options))
    digits = {"prepare_seconds": 1, "start_seconds": 2}
    rows = [
        [f"{r['pairs']:,}", *(number(r[key], digits.get(key, 0)) for key in COLUMNS.values())]
        for r in records
    ]
    if options.results:
        about = {"task": "machine", **machine(device_of("auto")), "torch": torch.__version__}
        del about["threads"]  # of this process, which measures nothing itself
        write_results(options.results, ["pairs", *COLUMNS], rows, [about, *records], runs=[])
    print(text_table(["pairs", *COLUMNS], rows))
    print("\nwhat the columns mean: docs/speed.md, under Large corpora")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.benchmark_growth",
        description="Measures how the cost of a corpus grows with its size.",
    )
    parser.add_argument(
        "overrides", nargs="*", metavar="KEY=VALUE", help="settings of train.py, such as data=files"
    )
    sizes = ",".join(map(str, SIZES))
    parser.add_argument(
        "--sizes", type=_sizes, default=SIZES, metavar="N,N", help=f"training pairs ({sizes})"
    )
    parser.add_argument("--seconds", type=float, default=20.0, help="of each training (20)")
    parser.add_argument("--results", type=Path, help="writes table and numbers: FILE.json")
    return parser


def _sizes(text: str) -> list[int]:
    """An argparse type: numbers with commas between them."""
    if not all(part.isascii() and part.isdigit() and int(part) for part in text.split(",")):
        raise ArgumentTypeError(f"{text!r} is not a list of numbers, such as 10000,100000")
    return [int(part) for part in text.split(",")]


def measure(size: int, options: argparse.Namespace) -> Record:
    """What a corpus of so many training pairs costs."""
    with tempfile.TemporaryDirectory(prefix="growth-") as folder:
        prepared = in_fresh_process(prepare, Path(folder), size, options.overrides)
        trained = in_fresh_process(
            start_and_train, Path(folder), size, options.overrides, options.seconds
        )
        disk = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    return {"task": "growth", "pairs": size, **prepared, "disk_mb": disk / 2**20, **trained}


def settings(folder: Path, size: int, overrides: Sequence[str]) -> Any:
    """The settings of train.py for a corpus of this size, whose prepared form lies in `folder`."""
    os.environ["SEQ2SEQ_CORPORA"] = str(folder)
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        try:
            config = compose("train", list(overrides))
            key = "data.sizes.train" if "sizes" in config.data else "data.max_pairs"
            return compose("train", [*overrides, f"{key}={size}"])
        except HydraException as error:
            raise ValueError(str(error)) from error


def prepare(folder: Path, size: int, overrides: Sequence[str]) -> Record:
    """Time and memory of preparing the corpus."""
    import train

    config = settings(folder, size, overrides)
    use_threads(config.threads)
    begun = time.perf_counter()
    train.data_of(config)
    seconds = time.perf_counter() - begun
    memory = cost.peak_memory_mb(torch.device("cpu"))["peak_rss_mb"]
    return {"prepare_seconds": seconds, "prepare_peak_rss_mb": memory}


def start_and_train(folder: Path, size: int, overrides: Sequence[str], seconds: float) -> Record:
    """Time and memory of starting on a prepared corpus, to the first batch, and of training."""
    import train
    from training import cost as training_cost

    config = settings(folder, size, overrides)
    device = device_of(config.device)
    importlib.import_module("torch._dynamo")  # or torch would, with the first optimiser
    begun = time.perf_counter()
    data = train.data_of(config)
    parts = train.parts_of(config, data)
    trainer = train.trainer_of(config, parts, data, folder, writer=None)
    next(trainer.batches)
    started = time.perf_counter() - begun
    speed = training_cost.speed(trainer, seconds)
    return {
        "start_seconds": started,
        "model": config.model["_target_"],
        "dtype": "bf16" if parts.bf16 else "fp32",
        "tgt_tokens_per_s": speed.tgt_tokens_per_s,
        "sentences_per_s": speed.sentences_per_s,
        "cores_used": speed.cores_used,
        "train_peak_rss_mb": cost.peak_memory_mb(device)["peak_rss_mb"],
        "train_own_mb": own_memory_mb(),
    }


def own_memory_mb() -> float | None:
    """The memory that this process has now, without files that are mapped into it."""
    status = Path("/proc/self/status")
    if not status.is_file():  # not Linux
        return None
    line = next(x for x in status.read_text().splitlines() if x.startswith("RssAnon"))
    return int(line.split()[1]) / 2**10


if __name__ == "__main__":
    main()
