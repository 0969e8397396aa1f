"""Trainings as processes of their own, which tests watch, stop and kill from outside.

A fork server has imported train.py once, so that a process starts in a tenth of a second. It then
runs train.py's own main function, as from the command line. Where asked to, it leaves marks in a
file of what it is doing, so that a test can choose the moment of a kill.
"""

import gc
import io
import itertools
import multiprocessing
import os
import re
import resource
import runpy
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch
import toy
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.plugin_event_accumulator import (
    EventAccumulator as PluginEventAccumulator,  # what the pages of TensorBoard read
)

TINY = [
    "width=16",
    "threads=1",
    "precision=fp32",
    "tokenizer=word",
    "training.max_steps=40",
    "training.validate_every=10",
    "training.log_every=4",
    "training.batch_tokens=150",
    "training.warmup_steps=5",
    "training.learning_rate=0.02",
    "training.length_edges=[4,6]",
    "training.length_minimum=1",
    "training.keep=2",
]
HALF_WRITTEN = "half of {}"  # the mark of a checkpoint that is being written
FAILS_AT = "TEST_FAILS_AT"  # the variable that names the update at which a process fails

_numbers = itertools.count()
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["train", "trainings", "torch._dynamo"])


def corpus(folder: Path, size: int = 240) -> list[str]:
    """Writes a toy corpus; the overrides that make a training read it."""
    pairs = toy.pairs(size + 40)
    splits = {"train": pairs[:size], "dev": pairs[size : size + 20], "test": pairs[size + 20 :]}
    return toy.write(folder, **splits)


class Training:
    """A running `python train.py ARGUMENTS`, started in a folder."""

    def __init__(
        self,
        folder: Path,
        arguments: Sequence[str],
        *,
        marked: bool = False,
        pause: tuple[str, int] = ("", 0),
        environment: dict[str, str] | None = None,
        largest_file: int | None = None,
        command: bool = False,
    ) -> None:
        """marked: with marks; pause: a mark, and which of its kind, where the process waits for
        `go`, so that what is sent to it arrives there; bytes after which the system refuses to
        write; command: as a program of its own, started from nothing.
        """
        number = next(_numbers)
        self.pause = pause
        self.output_file = folder / f"output-{number}"
        self.marks_file = folder / f"marks-{number}" if marked or pause[0] else None
        start = _Command if command else _context.Process
        self.process: BaseProcess | _Command = start(
            target=_train,
            args=(folder, list(arguments), self.output_file, self.marks_file),
            kwargs={
                "pause": pause,
                "environment": environment or {},
                "largest_file": largest_file,
            },
        )
        self.process.start()

    def __enter__(self) -> "Training":
        return self

    def __exit__(self, *_: Any) -> None:
        self.process.kill()
        self.process.join()

    @property
    def output(self) -> str:
        return self.output_file.read_text(encoding="utf-8") if self.output_file.exists() else ""

    @property
    def marks(self) -> list[str]:
        """What the process says it has begun, in order; a line cut short by a kill is left out."""
        exists = self.marks_file is not None and self.marks_file.exists()
        return re.findall(r"(.*)\n", self.marks_file.read_text()) if exists else []

    def wait_for(self, mark: str, times: int = 1, patience: float = 300) -> None:
        """Waits until it has left the mark so many times; RuntimeError if it ends before."""
        deadline = time.monotonic() + patience
        while self.marks.count(mark) < times:
            if not self.process.is_alive() or time.monotonic() > deadline:
                raise RuntimeError(f"no mark {mark!r} in {self.marks}\n{self.output}")
            time.sleep(0.001)

    def wait_for_any(self, kind: str, patience: float = 300) -> str:
        """Waits for a mark of a kind, whatever it is of; that mark."""
        deadline = time.monotonic() + patience
        while not (found := [mark for mark in self.marks if mark.startswith(kind)]):
            if not self.process.is_alive() or time.monotonic() > deadline:
                raise RuntimeError(f"no mark of {kind}\n{self.output}")
            time.sleep(0.001)
        return found[0]

    def go(self) -> None:
        """Lets it go on from where it pauses."""
        self.marks_file.with_suffix(".go").touch()

    def send(self, signal_number: int) -> None:
        os.kill(self.process.pid, signal_number)

    def end(self, patience: float = 600) -> int:
        """Its exit status, when it has ended; the negative number of a signal that ended it."""
        self.process.join(patience)
        if self.process.exitcode is None:
            raise TimeoutError(f"still running after {patience} s\n{self.output}")
        return self.process.exitcode


class _Command:
    """What a Process is, with an interpreter of its own that runs train.py as its main program."""

    def __init__(self, target: Callable, args: tuple, kwargs: dict[str, Any]) -> None:
        here = [str(Path(__file__).parent.parent), str(Path(__file__).parent)]
        self._code = (
            f"import sys; sys.path[:0] = {here}; import trainings; from pathlib import PosixPath;"
            f"trainings.{target.__name__}(*{args!r}, **{kwargs!r}, as_main=True)"
        )

    def start(self) -> None:
        self._started = subprocess.Popen([sys.executable, "-c", self._code])

    @property
    def pid(self) -> int:
        return self._started.pid

    @property
    def exitcode(self) -> int | None:
        return self._started.poll()

    def is_alive(self) -> bool:
        return self.exitcode is None

    def kill(self) -> None:
        self._started.kill()

    def join(self, patience: float | None = None) -> None:
        with suppress(subprocess.TimeoutExpired):
            self._started.wait(patience)


@contextmanager
def several(
    folder: Path,
    arguments: Sequence[str],
    count: int,
    *,
    environment: dict[int, dict[str, str]] | None = None,
    **options: Any,
) -> Iterator[list[Training]]:
    """So many processes of one training, told of each other as torchrun tells them.

    environment: further variables for the process of a number.
    """
    store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    shared = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(store.port),
        "WORLD_SIZE": str(count),
        "TORCHELASTIC_USE_AGENT_STORE": "True",  # the store is here, and outlives the processes
    }
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                Training(
                    folder,
                    arguments,
                    environment={
                        **shared,
                        "RANK": str(rank),
                        "LOCAL_RANK": str(rank),
                        **(environment or {}).get(rank, {}),
                    },
                    **options,
                )
            )
            for rank in range(count)
        ]


def finished(folder: Path, *arguments: str, **options: Any) -> str:
    """Runs a training to its end, which must be a good one; its output."""
    with Training(folder, arguments, **options) as training:
        status = training.end()
        assert status == 0, training.output
        return training.output


def _train(
    folder: Path,
    arguments: list[str],
    output: Path,
    marks: Path | None,
    *,
    pause: tuple[str, int],
    environment: dict[str, str],
    largest_file: int | None,
    as_main: bool = False,
) -> None:
    """What the process does; as_main: train.py is run as a file, not imported."""
    os.setsid()
    os.chdir(folder)
    os.environ.update({"SEQ2SEQ_CORPORA": str(folder / "corpora"), **environment})
    written = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(written, 1)
    os.dup2(written, 2)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1) for number in (1, 2))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if largest_file is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    sys.argv = ["train.py", *arguments]
    if marks is not None:
        leave_marks(marks, pause)
    if FAILS_AT in os.environ:
        fail_at(int(os.environ[FAILS_AT]))
    if as_main:
        runpy.run_path(str(Path(__file__).parent.parent / "train.py"), run_name="__main__")
    else:
        import train

        train.main()


def leave_marks(path: Path, pause: tuple[str, int]) -> None:
    """Makes this process write down each update with its sentence pairs, validation and save."""
    seen = Counter[str]()
    from data.batching import TrainingBatches
    from training.trainer import Trainer
    from training.validation import Validation

    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def mark(text: str) -> None:
        os.write(file, f"{text}\n".encode())
        seen[text] += 1
        while (text, seen[text]) == pause and not path.with_suffix(".go").exists():
            time.sleep(0.002)

    update, validate, following = Trainer.update, Validation.__call__, TrainingBatches.__next__

    def marked_update(self: Any) -> Any:
        mark(f"update {self.progress.step + 1}")
        return update(self)

    def marked_validation(self: Any, step: int) -> Any:
        mark(f"validation {step}")
        scores = validate(self, step)
        mark(f"figures {_figures()}")
        return scores

    def marked_next(self: Any) -> Any:
        batch = following(self)
        mark("pairs " + " ".join(map(str, self.order[self.position - 1][:, 0])))
        return batch

    def halting_save(content: Any, to: io.BufferedWriter) -> None:
        memory = io.BytesIO()
        save(content, memory)
        to.write(memory.getvalue()[: len(memory.getvalue()) // 2])
        to.flush()
        mark(HALF_WRITTEN.format(Path(to.name).name.split(".")[1]))
        to.write(memory.getvalue()[len(memory.getvalue()) // 2 :])

    save = torch.save
    Trainer.update, Validation.__call__ = marked_update, marked_validation
    TrainingBatches.__next__, torch.save = marked_next, halting_save


def _figures() -> int:
    """How many figures there are in this process, shown or not."""
    from matplotlib import pyplot
    from matplotlib.figure import Figure

    gc.collect()
    return max(len(pyplot.get_fignums()), sum(type(o) is Figure for o in gc.get_objects()))


def fail_at(step: int) -> None:
    """Makes this process raise an error instead of doing the update of a step."""
    from training.trainer import Trainer

    update = Trainer.update

    def failing(self: Any) -> Any:
        if self.progress.step + 1 == step:
            raise ValueError(f"no update {step} here")
        return update(self)

    Trainer.update = failing


def pairs_by_step(lives: Sequence[Training]) -> dict[int, list[int]]:
    """The sentence pairs of each update that counts: where several lives made one, the last."""
    seen: dict[int, list[int]] = {}
    for life in lives:
        step = 0
        for mark in life.marks:
            kind, *numbers = mark.split()
            if kind == "update":
                step = int(numbers[0])
                seen[step] = []
            elif kind == "pairs":
                seen[step] += map(int, numbers)
    return seen


def scalars(run: Path) -> dict[str, list[tuple[int, float]]]:
    """The curves of a run as TensorBoard shows them, but for speeds, which no two runs share."""
    events = EventAccumulator(str(run), size_guidance={"scalars": 0})
    events.Reload()
    shown = PluginEventAccumulator(str(run), tensor_size_guidance={"scalars": 0})
    shown.Reload()
    curves = {}
    for tag in events.Tags()["scalars"]:
        if not tag.endswith("per_second"):
            curves[tag] = [(event.step, event.value) for event in events.Scalars(tag)]
            assert [step for step, _ in curves[tag]] == [e.step for e in shown.Tensors(tag)]
    return curves


def differences(a: Path, b: Path) -> Iterator[str]:
    """What two run folders do not have in common, bit for bit; nothing if they are the same run."""
    names = [sorted(p.name for p in (run / "checkpoints").iterdir()) for run in (a, b)]
    if names[0] != names[1]:
        yield f"checkpoints: {names[0]}, {names[1]}"
    for name in {*names[0]} & {*names[1]}:
        contents = (torch.load(run / "checkpoints" / name, weights_only=True) for run in (a, b))
        yield from (f"{name}: {path}" for path in _different(*contents))
    yield from (f"curve {path}" for path in _different(scalars(a), scalars(b)))
    yield from (str(left) for left in b.rglob(".*.tmp"))


def _different(a: Any, b: Any, path: str = "") -> Iterator[str]:
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        for key in a:
            yield from _different(a[key], b[key], f"{path}/{key}")
    elif isinstance(a, list | tuple) and isinstance(b, list | tuple) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            yield from _different(x, y, f"{path}/{i}")
    elif isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        if not torch.equal(a, b):
            yield path
    elif type(a) is not type(b) or a != b:
        yield path
