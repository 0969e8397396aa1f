"""An hour of training: memory stays flat and nothing stays open. `make test-long`.

LONG_RUN_MINUTES says how long, LONG_RUN_MODEL which architecture; runs/long/ gets a table of what
was measured and a figure of it.
"""

import csv
import os
import signal
import statistics
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from matplotlib.figure import Figure
from trainings import Training, corpus

MINUTES = float(os.environ.get("LONG_RUN_MINUTES", "60"))
MODEL = os.environ.get("LONG_RUN_MODEL", "bahdanau")
VALIDATIONS = max(20, MINUTES)  # one a minute, but not fewer than these
GROWTH = 0.02  # of the memory in use; what counts as flat
SETTINGS = [
    f"model={MODEL}",
    "threads=1",
    "width=64",
    "tokenizer=word",
    "training.schedule=constant",
    "training.batch_tokens=500",
    "training.keep=2",
    "training.patience=null",
    "training.log_every=10",
    "training.length_edges=[4,6]",
    "training.length_minimum=1",
]


class Sample(NamedTuple):
    seconds: float
    resident_mb: float
    open_files: int
    threads: int
    figures: int
    step: int


def sample(training: Training, begun: float) -> Sample:
    process = Path(f"/proc/{training.process.pid}")
    status = dict(
        line.split(":\t", 1)
        for line in (process / "status").read_text().splitlines()
        if ":\t" in line
    )
    numbers = {"figures": 0, "update": 0}
    for mark in reversed(training.marks):
        kind, *rest = mark.split()
        if kind in numbers and not numbers[kind]:
            numbers[kind] = int(rest[0])
        if numbers["update"] and kind == "figures":
            break
    return Sample(
        time.monotonic() - begun,
        int(status["VmRSS"].split()[0]) / 1024,
        len(list((process / "fd").iterdir())),
        int(status["Threads"]),
        numbers["figures"],
        numbers["update"],
    )


def measured(folder: Path, arguments: list[str], seconds: float) -> list[Sample]:
    """Samples of a training until it is stopped, which must go well."""
    samples = []
    with Training(folder, arguments, marked=True, command=True) as training:
        training.wait_for("update 1")
        begun = time.monotonic()
        while time.monotonic() - begun < seconds:
            assert training.process.is_alive(), training.output
            samples.append(sample(training, begun))
            time.sleep(min(5, seconds / 100))
        training.send(signal.SIGTERM)
        assert training.end(600) == 143, training.output
    return samples


def report(samples: list[Sample]) -> Path:
    """Writes runs/long/MODEL.csv and .png."""
    folder = Path("runs/long")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{MODEL}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(Sample._fields)
        writer.writerows(samples)
    figure = Figure(figsize=(7, 6), layout="constrained")
    minutes = [s.seconds / 60 for s in samples]
    for axis, name in zip(
        figure.subplots(3, sharex=True), ("resident_mb", "open_files", "figures"), strict=True
    ):
        axis.plot(minutes, [getattr(s, name) for s in samples])
        axis.set_ylim(bottom=0)
        axis.set_ylabel(name.replace("_", " "))
    axis.set_xlabel(f"minutes of training, {MODEL}")
    figure.savefig(folder / f"{MODEL}.png", dpi=120)
    return folder / f"{MODEL}.csv"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_a_long_training_keeps_its_memory_and_leaves_nothing_open(tmp_path: Path) -> None:
    arguments = [*corpus(tmp_path, 2000), *SETTINGS, "training.max_steps=1000000"]
    trial = measured(tmp_path, [*arguments, "training.validate_every=1000000"], 20)
    steps_a_minute = 60 * trial[-1].step / trial[-1].seconds
    every = max(1, round(steps_a_minute * MINUTES / VALIDATIONS))
    samples = measured(tmp_path, [*arguments, f"training.validate_every={every}"], 60 * MINUTES)
    print(f"{samples[-1].step} updates, {samples[-1].step // every} validations: {report(samples)}")

    settled = samples[len(samples) // 4 :]  # caches and pools have reached their sizes
    third = len(settled) // 3
    for name, allowed in (("resident_mb", 5), ("open_files", 1), ("threads", 0)):
        values = [getattr(s, name) for s in settled]
        before, after = statistics.median(values[:third]), statistics.median(values[-third:])
        assert after <= before * (1 + GROWTH if name == "resident_mb" else 1) + allowed, name
    assert max(s.open_files for s in settled) <= min(s.open_files for s in settled) + 3
    assert max(s.figures for s in samples) <= 1
