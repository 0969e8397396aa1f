"""Reproduces an experiment by one command: trains, evaluates and compares all its models.

python -m scripts.reproduce bottleneck [--budget 0.1] [--jobs 2] [--name NAME] [KEY=VALUE ...]

KEY=VALUE are overrides of train.py for all models (data=multi30k data.join=4). Interrupted, the
same command goes on where it stopped. The recipes are in configs/experiment/.
"""

import argparse
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import yaml
from tqdm import tqdm

from cli import command, fail

ROOT = Path(__file__).resolve().parents[1]
RUNS = Path("runs")
POLL = 1.0  # seconds between two looks at what has been done


class Plan(NamedTuple):
    """An experiment: what is trained, how it is evaluated, and what shows the result."""

    data: str
    trainings: Sequence[tuple[str, str, Sequence[str]]]  # model, name, overrides beside these two
    splits: Sequence[str]
    evaluation: Sequence[str]  # overrides of evaluate.py
    show: Sequence[str]  # a module of scripts/ and its options; the runs are put after them


PLANS = {
    "bottleneck": Plan(
        "bible",
        [
            (model, name, ["+experiment=bottleneck", *words])
            for name, words in (("all", []), ("30", ["data.max_train_words=30"]))
            for model in ("rnn", "bahdanau", "transformer")
        ],
        ["test"],
        ["ter=false"],
        ["scripts.plot_bleu_by_length"],
    ),
    "multi30k": Plan(
        "multi30k",
        [
            (model, f"seed{seed}", [f"+experiment={experiment}", f"seed={seed}"])
            for seed in (1, 2, 3)
            for model, experiment in (
                ("transformer", "multi30k_transformer"),
                ("bahdanau", "multi30k"),
            )
        ],
        ["test", "test_2017_flickr", "test_2017_mscoco"],
        ["ter=false", "moses=true", "checkpoint=kept"],
        ["scripts.compare_seeds", "--splits", "test,test_2017_flickr,test_2017_mscoco"],
    ),
}


@command
def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_intermixed_args(arguments)
    for stray in (override for override in options.overrides if "=" not in override):
        raise ValueError(f"{stray!r} is not of the form key=value, as overrides of train.py are")
    plan = PLANS[options.experiment]
    jobs = list(_jobs(options, plan))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores SIGHUP
            signal.signal(number, _interrupt)
    _run(jobs, options.jobs)
    module, *rest = plan.show
    results = ["--results", str(options.results)] if options.results else []
    shown = [sys.executable, "-m", module, *(str(job.folder) for job in jobs), *rest, *results]
    sys.exit(subprocess.run(shown, check=False).returncode)


def _interrupt(number: int, _: object) -> None:
    raise KeyboardInterrupt(number)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.reproduce", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("experiment", choices=PLANS)
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="for every training")
    parser.add_argument("--budget", type=float, default=1.0, help="times the updates (default: 1)")
    parser.add_argument("--jobs", type=int, default=2, help="trainings at a time (default: 2)")
    parser.add_argument(
        "--name", help="of the runs, runs/<data>/<model>/<name>-... (default: the experiment's)"
    )
    parser.add_argument("--results", type=Path, help="where the numbers go: FILE.json")
    return parser


class Job:
    """One model: its training and its evaluations, each a command of its own."""

    def __init__(self, folder: Path, train: list[str], evaluate: dict[str, list[str]]) -> None:
        self.folder, self.train, self.evaluate = folder, train, evaluate
        self.running: subprocess.Popen | None = None
        self.stopped = False

    def run(self) -> None:
        """Trains, or goes on; evaluates what has changed. ValueError with what a command said."""
        self._call(["train.py", *self.train])
        trained = max(p.stat().st_mtime for p in (self.folder / "checkpoints").glob("*.pt"))
        for split, overrides in self.evaluate.items():
            overrides = [f"split={split}", *overrides]
            scores = self.folder / "evaluation" / split / "scores.json"
            if not _is_of(scores, overrides) or scores.stat().st_mtime < trained:
                self._call(["evaluate.py", f"run={self.folder}", *overrides])

    def stop(self) -> None:
        """Ends what is running: a training saves what it has first."""
        self.stopped = True
        if self.running:
            self.running.terminate()

    def _call(self, arguments: list[str]) -> None:
        if self.stopped:
            raise ValueError("stopped")
        command = [sys.executable, str(ROOT / arguments[0]), *arguments[1:]]
        hidden = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        with subprocess.Popen(command, **hidden, text=True) as self.running:
            if self.stopped:  # since it was looked at
                self.running.terminate()
            _, said = self.running.communicate()
        if self.running.returncode:
            lines = said.strip().splitlines() or [f"status {self.running.returncode}"]
            raise ValueError(f"python {' '.join(arguments)}: {lines[-1]}")

    @property
    def done(self) -> float:
        """The share of the training's updates that have been measured."""
        log, config = self.folder / "train.log", self.folder / "config.yaml"
        if not log.is_file() or not config.is_file():
            return 0.0
        steps = re.findall(r" step (\d+):", log.read_text("utf-8", "replace"))
        most = yaml.safe_load(config.read_text("utf-8"))["training"]["max_steps"]
        return min(1.0, int(steps[-1]) / most) if steps else 0.0


def _is_of(scores: Path, overrides: Sequence[str]) -> bool:
    """Whether scores.json is there, and of an evaluation with these overrides."""
    try:
        return json.loads(scores.read_text("utf-8"))["overrides"] == overrides
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return False


def _jobs(options: argparse.Namespace, plan: Plan) -> Iterator[Job]:
    given = [f"data={plan.data}", *options.overrides]
    data = [override for override in given if override.startswith("data=")][-1][5:]
    for model, name, overrides in plan.trainings:
        name = f"{options.name or options.experiment}-{name}"
        folder = RUNS / data / model / name
        train = [
            *overrides,
            *(f"model={model}", f"name={name}", f"experiment.budget={options.budget:g}"),
            "resume=auto",
            *options.overrides,
        ]
        evaluate = {split: [*plan.evaluation, "threads=1"] for split in plan.splits}
        yield Job(folder, train, evaluate)


def _run(jobs: Sequence[Job], at_once: int) -> None:
    """All jobs, some at a time, with one bar over the whole plan; ValueError if any failed."""
    progress = {"total": 100 * len(jobs), "unit": "%", "disable": None}
    pool = ThreadPoolExecutor(max(1, at_once))
    with tqdm(**progress, bar_format="{l_bar}{bar}| {elapsed}<{remaining}{postfix}") as bar:
        futures = [pool.submit(job.run) for job in jobs]
        told: set[Path] = set()
        try:
            while not all(future.done() for future in futures):
                _show(bar, jobs, futures)
                _tell(jobs, futures, told)
                time.sleep(POLL)
            _tell(jobs, futures, told)
        except KeyboardInterrupt as asked:  # Ctrl-C reaches the trainings by itself, kill does not
            for job in jobs:
                job.stop()
            pool.shutdown(cancel_futures=True)
            fail("interrupted; the same command goes on", status=128 + asked.args[0])
    failed = [str(future.exception()) for future in futures if future.exception()]
    if failed:
        raise ValueError(f"{'; '.join(failed)} (the same command goes on with the rest)")


def _show(bar: tqdm, jobs: Sequence[Job], futures: Sequence[Future]) -> None:
    shares = [1.0 if f.done() else job.done for job, f in zip(jobs, futures, strict=True)]
    bar.update(round(100 * sum(shares)) - bar.n)
    finished = sum(future.done() for future in futures)
    running = [j.folder for j, f in zip(jobs, futures, strict=True) if f.running()]
    names = ", ".join("/".join(folder.parts[-2:]) for folder in running)
    bar.set_postfix_str(f"{finished} of {len(jobs)} done; {names}")


def _tell(jobs: Sequence[Job], futures: Sequence[Future], told: set[Path]) -> None:
    """One line for each model that is done: where no terminal shows the bar, all there is."""
    for job, future in zip(jobs, futures, strict=True):
        if future.done() and job.folder not in told:
            told.add(job.folder)
            state = "failed" if future.exception() else "done"
            tqdm.write(f"{job.folder}: {state} ({len(told)} of {len(jobs)})", file=sys.stderr)


if __name__ == "__main__":
    main()
