"""What an update costs: its time, the share of it that each kind of work takes, its products.

Measured on a Trainer as train.py composes it, by calling its own `update`.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import nn
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils.flop_counter import FlopCounterMode

from data.batching import Batch, TrainingBatches
from training.trainer import Trainer

# The kinds of work, each with parts of the names of torch's operations; the first that fits counts.
KINDS = {
    "matrix products": ("::mm", "::addmm", "::bmm", "::baddbmm", "linear", "mkldnn", "::dot"),
    "dropout": ("dropout", "bernoulli", "random_", "aten::ge"),
    "cross-entropy": ("log_softmax", "nll_loss", "cross_entropy", "::exp_", "scatter_add"),
    "attention softmax": ("softmax", "masked_fill", "scaled_dot_product", "flash_attention"),
    "layer norm": ("layer_norm",),
    "embeddings": ("embedding", "index_select"),
    "optimiser": ("adam", "sgd", "optimizer", "_foreach", "linalg_vector_norm"),
    "copies and casts": ("copy", "::cat", "contiguous", "::clone", "::stack"),
    "batches": ("batches",),
    "elementwise": ("aten::",),
}
REST = "Python and dispatch"
KERNEL_SIZES = {"cpu": (1024, 2048), "cuda": (4096, 8192)}  # of square products, for the peak


class Speed(NamedTuple):
    """How fast whole updates were, from the next batch to the optimiser's step."""

    updates: int
    seconds: float
    tgt_tokens_per_s: float  # real target tokens, EOS counted, padding and BOS not
    sentences_per_s: float
    cores_used: float  # processor seconds a second: fewer than threads if others had the cores


@dataclass
class _Watched:
    """The trainer's batches, counted, and named for the profiler."""

    batches: TrainingBatches
    sentences: int = 0

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        with record_function("batches"):
            batch = next(self.batches)
        self.sentences += len(batch.src)
        return batch


def speed(trainer: Trainer, seconds: float, warm_up: int = 5) -> Speed:
    """The speed of all updates that begin within so many seconds, after those of the warm-up."""
    trainer.batches = watched = _Watched(trainer.batches)
    for _ in range(warm_up):
        trainer.update()
    watched.sentences, updates, tokens = 0, 0, 0
    begun, processor = time.perf_counter(), time.process_time()
    while (passed := time.perf_counter() - begun) < seconds or updates == 0:
        tokens += trainer.update()[1]
        updates += 1
    used = time.process_time() - processor
    trainer.batches = watched.batches
    return Speed(updates, passed, tokens / passed, watched.sentences / passed, used / passed)


def product_flops_per_token(trainer: Trainer, updates: int) -> float | None:
    """Floating-point operations of the matrix products of updates, for each real target token.

    Forward and backward, padding included, a multiplication and an addition counted as two. None
    for an LSTM on the CPU, whose fused kernel the counter does not see (a GRU's it does).
    """
    if trainer.device.type == "cpu" and any(
        isinstance(m, nn.LSTM) for m in trainer.model.modules()
    ):
        return None
    with FlopCounterMode(display=False) as counter:
        tokens = sum(trainer.update()[1] for _ in range(updates))
    return counter.get_total_flops() / tokens


def peak_flops(device: torch.device, dtype: torch.dtype, seconds: float = 0.5) -> float:
    """Operations a second of the fastest square matrix product seen: what the machine can do."""
    best = 0.0
    for size in KERNEL_SIZES["cuda" if device.type == "cuda" else "cpu"]:
        a, b = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            begun = time.perf_counter()
            torch.mm(a, b)
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            best = max(best, 2 * size**3 / (time.perf_counter() - begun))
    return best


def kinds_of_work(trainer: Trainer, updates: int) -> dict[str, float]:
    """The share of an update's time that each of KINDS takes, and the REST; they sum to 1.

    The time of the main thread on a CPU, that of the kernels on a GPU. Profiling itself slows
    small operations down, so their shares are somewhat too large.
    """
    on_gpu = trainer.device.type == "cuda"
    trainer.batches = watched = _Watched(trainer.batches)
    trainer.update()
    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * on_gpu
    with profile(activities=activities, acc_events=True) as profiler:
        begun = time.perf_counter()
        for _ in range(updates):
            trainer.update()
        passed = time.perf_counter() - begun
    trainer.batches = watched.batches
    microseconds = dict.fromkeys([*KINDS, REST], 0.0)
    for event in profiler.key_averages():
        if on_gpu and event.device_type != DeviceType.CUDA and event.key != "batches":
            continue
        own = event.self_device_time_total if on_gpu else event.self_cpu_time_total
        microseconds[kind_of(event.key)] += own
    total = max(passed * 1e6, sum(microseconds.values()))
    microseconds[REST] += total - sum(microseconds.values())
    return {kind: own / total for kind, own in microseconds.items()}


def kind_of(operation: str) -> str:
    """Which of KINDS an operation is, by its name in the profile; REST if none."""
    name = operation.lower()
    return next((kind for kind, parts in KINDS.items() if any(p in name for p in parts)), REST)
