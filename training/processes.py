"""The processes that train one model together, as torchrun starts them; or one alone.

Each runs the same Trainer over the same stream of batches, computes its share of each batch's rows,
and takes the same step with the gradient that is added up over all. So the position in the data,
the counters and the checkpoints do not depend on how many there are, and the results are those of
one process up to rounding (dropout draws other masks). Only the first one writes.

torch's DistributedDataParallel is not used: it takes means over processes where ours is a mean over
target tokens, and wants the same number of batches, none empty, in each. Adding up one flat tensor
after the backward pass is shorter and exact; what DDP hides, the time of adding up, is little for
models of this size.
"""

import contextlib
import functools
import logging
import os
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import numpy as np
import torch
from torch import distributed, nn

from data.batching import Batch

PATIENCE = timedelta(hours=12)  # of the others while the first one validates


class Processes:
    """How many train together, which of them this one is, and how they agree."""

    def __init__(self, rank: int = 0, count: int = 1, local_rank: int = 0) -> None:
        """local_rank: the number among those of this machine, and of the GPU that it takes."""
        self.rank, self.count, self.local_rank = rank, count, local_rank

    @property
    def is_first(self) -> bool:
        """Whether this is the one that logs, validates and saves."""
        return self.rank == 0

    def device(self, name: str) -> str:
        """The device of this process where the settings say `name`: a GPU for each process."""
        if self.count == 1 or name == "cpu" or (name == "auto" and not torch.cuda.is_available()):
            return name
        if name not in ("auto", "cuda"):
            raise ValueError(f"device={name}: with several processes, use auto, cuda or cpu")
        if self.local_rank >= torch.cuda.device_count():
            raise ValueError(
                f"device={name}: {torch.cuda.device_count()} GPUs are not enough for the processes "
                "of this machine; start fewer (--nproc_per_node), or use device=cpu"
            )
        torch.cuda.set_device(self.local_rank)
        return f"cuda:{self.local_rank}"

    def share(self, batch: Batch) -> Batch:
        """The rows of a batch that this process computes; there may be none."""
        return batch if self.count == 1 else batch.share(self.rank, self.count)

    def seed(self, seed: int, step: int) -> None:
        """Random numbers of its own for each update of a process that is not the first.

        They depend on the step alone, so there is nothing to save. The first process draws from
        the one stream that a checkpoint holds.
        """
        if not self.is_first:
            state = np.random.SeedSequence([seed, step, self.rank]).generate_state(1, np.uint64)
            torch.manual_seed(int(state[0]))

    def add_up(self, parameters: Iterable[nn.Parameter], loss: float) -> float:
        """Leaves the sum over all processes in each gradient; gives the sum of their losses."""
        if self.count == 1:
            return loss
        parameters = list(parameters)
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        losses = gradients[0].new_tensor([loss])
        flat = torch.cat([gradient.flatten() for gradient in gradients] + [losses])
        with _connected():
            distributed.all_reduce(flat)
        *sums, losses = flat.split([p.numel() for p in parameters] + [1])
        for parameter, summed in zip(parameters, sums, strict=True):
            parameter.grad = summed.view_as(parameter)
        return losses.item()

    def highest(self, number: int) -> int:
        """The highest of the processes' numbers."""
        if self.count == 1:
            return number
        highest = torch.tensor([number])
        with _connected():
            distributed.all_reduce(highest, distributed.ReduceOp.MAX)
        return int(highest.item())

    def tell(self, value: Any) -> Any:
        """The first process' value, in all of them; they wait for it."""
        if self.count == 1:
            return value
        told = [value]
        with _connected():
            distributed.broadcast_object_list(told)
        return told[0]

    @contextmanager
    def first_before_others(self) -> Iterator[None]:
        """A part that the others begin when the first one has done it, and left its files."""
        if not self.is_first:
            self.tell(None)
        yield
        if self.is_first:
            self.tell(None)


ALONE = Processes()


@contextmanager
def join_processes() -> Iterator[Processes]:
    """Joins the processes that torchrun has started, as its environment says; or is alone.

    Only the first one talks. If one fails, all end with a status other than 0, and only that one
    says why.
    """
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        yield ALONE
        return
    store, rank = _meeting_point()
    meeting = store.add(f"meetings of {rank}", 1)  # each job of a sweep has its own
    able = torch.cuda.is_available() and distributed.is_nccl_available()
    distributed.init_process_group(
        "cpu:gloo,cuda:nccl" if able else "gloo",
        store=distributed.PrefixStore(f"meeting {meeting}", store),
        rank=rank,
        world_size=count,
        timeout=PATIENCE,
    )
    quiet = contextlib.nullcontext() if rank == 0 else _quiet()
    try:
        with quiet:
            yield Processes(rank, count, int(os.environ.get("LOCAL_RANK", rank)))
    except SystemExit:  # stopped, all of them after the same step
        distributed.destroy_process_group()
        raise
    except Exception as error:
        if rank != 0:
            time.sleep(1)  # what is wrong with the settings is for the first one to say
        if not _is_first_failure(store):
            sys.exit(1)  # the reason is said already
        if rank == 0:
            raise
        if not isinstance(error, ValueError | OSError):
            traceback.print_exc()
        print(f"error: process {rank} of {count}: {error}", file=sys.stderr)
        sys.exit(1)
    distributed.destroy_process_group()


@functools.cache
def _meeting_point() -> tuple[distributed.Store, int]:
    """The store that torchrun keeps for its processes, and the rank of this one."""
    store, rank, _ = next(distributed.rendezvous("env://"))
    return store, rank


@contextmanager
def _quiet() -> Iterator[None]:
    """No log and no progress bar: the first process' are enough."""
    disabled = logging.root.manager.disable
    logging.disable()
    try:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
            yield
    finally:
        logging.disable(disabled)


@contextmanager
def _connected() -> Iterator[None]:
    """What torch says when another process is gone, as one line."""
    try:
        yield
    except RuntimeError as error:
        raise ConnectionError("another process of this training has ended unexpectedly") from error


def _is_first_failure(store: distributed.Store) -> bool:
    try:
        return store.add("failures", 1) == 1
    except RuntimeError:  # the store is gone, with the process that kept it
        return False
