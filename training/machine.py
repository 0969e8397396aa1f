"""On what machine a training ran and how long: training.json in the run folder."""

import json
import logging
import multiprocessing
import os
import platform
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import torch

from data.text import write_whole

LIBRARIES = ("torch", "sentencepiece", "sacrebleu", "numpy")
T = TypeVar("T")
UNITS = ("avx2", "avx512_f", "avx512_bf16", "amx_bf16")  # for matrix products


def machine(device: torch.device) -> dict[str, Any]:
    """The processor with its units for matrix products, the GPU if it is used, torch's threads."""
    able = torch.cpu.get_capabilities()
    units = ", ".join(unit for unit in UNITS if able.get(unit))
    return {
        "processor": f"{able.get('cpu_name') or platform.processor()} ({units})",
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpu": torch.cuda.get_device_name(device) if device.type == "cuda" else None,
    }


def begin_measuring_process() -> None:
    """For the start of a process that measures for another: it is quiet, and ends with the other.

    A worker of a pool would go on with its task when whoever wanted it has been killed.
    """
    logging.disable(logging.WARNING)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()


def in_fresh_process(task: Callable[..., T], *arguments: Any) -> T:
    """What the task gives in a process whose peak memory is its own."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn, begin_measuring_process) as process:
        try:
            return process.submit(task, *arguments).result()
        except BrokenProcessPool as error:
            raise OSError(f"{task.__name__}: the process was killed; out of memory?") from error


@contextmanager
def timed(folder: Path, device: torch.device) -> Iterator[None]:
    """Adds what the context takes to the seconds in training.json, beside machine and versions.

    A training that was killed leaves out the seconds since it was started last.
    """
    path, begun = folder / "training.json", time.perf_counter()
    try:
        yield
    finally:
        seconds = _seconds(path) + time.perf_counter() - begun
        about = {
            "seconds": round(seconds, 1),
            "machine": machine(device),
            "versions": {"python": platform.python_version()}
            | {name: version(name) for name in LIBRARIES},
        }
        write_whole(path, json.dumps(about, indent=2) + "\n")


def _seconds(path: Path) -> float:
    """What was written before; nothing where there is none, or it is damaged."""
    try:
        return max(0.0, float(json.loads(path.read_text("utf-8"))["seconds"]))
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return 0.0
