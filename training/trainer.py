"""The training loop. It knows no architecture and no search."""

import logging
import math
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

from data.batching import Batch, TrainingBatches
from data.tokenizer import PAD
from models import checkpoint as checkpoints
from models.seq2seq import Seq2Seq
from training.schedule import Schedule

MAX_SKIPPED = 20  # updates in a row without a finite gradient, after which training stops

log = logging.getLogger(__name__)


class DevScores(Protocol):
    """What a validation has to say: the loss, and the BLEU by which checkpoints are chosen."""

    loss: float
    bleu: float

    def _asdict(self) -> dict[str, float]: ...


@dataclass
class Progress:
    """The counters of a training; part of its checkpoint."""

    step: int = 0  # updates done
    tgt_tokens: int = 0  # real target tokens learnt from
    best_bleu: float = -math.inf
    best_step: int = 0
    without_improvement: int = 0  # validations since the best one
    skipped: int = 0  # updates skipped in a row because their gradient was not finite
    stopped_early: bool = False


class Stop(Exception):
    """Training was asked to stop (Ctrl-C, SIGTERM); its state has been saved."""


class Trainer:
    """Updates a model until max_steps, or until validation has not improved `patience` times."""

    def __init__(
        self,
        model: Seq2Seq,
        optimizer: torch.optim.Optimizer,
        schedule: Schedule,
        batches: TrainingBatches,
        validate: Callable[[int], DevScores],
        folder: Path,
        writer: SummaryWriter,
        *,
        identity: dict[str, Any],
        device: torch.device,
        bf16: bool,
        max_steps: int,
        accumulate: int,
        clip_norm: float,
        label_smoothing: float,
        validate_every: int,
        patience: int | None,
        log_every: int,
        keep: int,
    ) -> None:
        """identity: the model's config and vocabulary sizes, kept in every checkpoint."""
        self.model, self.optimizer, self.schedule = model, optimizer, schedule
        self.batches, self.validate, self.writer = batches, validate, writer
        self.folder, self.checkpoints = folder, folder / "checkpoints"
        self.identity, self.device, self.bf16 = identity, device, bf16
        self.max_steps, self.accumulate = max_steps, accumulate
        self.clip_norm, self.label_smoothing = clip_norm, label_smoothing
        self.validate_every, self.patience = validate_every, patience
        self.log_every, self.keep = log_every, keep
        self.learning_rate = optimizer.param_groups[0]["lr"]
        self.progress = Progress()

    def fit(self) -> Progress:
        """Trains to the end; the best checkpoint by dev BLEU and the last one are in the folder.

        Raises Stop, with everything saved, if asked to stop by a signal.
        """
        progress = self.progress
        window = _Window()
        bar = tqdm(total=self.max_steps, initial=progress.step, unit="step", disable=None)
        with bar, logging_redirect_tqdm(), _stop_signals() as asked_to_stop:
            while progress.step < self.max_steps and not progress.stopped_early:
                loss, tokens, norm = self.update()
                window.add(loss, tokens)
                bar.update()
                if progress.step % self.log_every == 0:
                    self._report(window, norm, bar)
                    window = _Window()
                if progress.step % self.validate_every == 0 or progress.step == self.max_steps:
                    self._validate()
                    window = _Window()
                if asked_to_stop:
                    self.save("last")
                    raise Stop
        return progress

    def update(self) -> tuple[float, int, float]:
        """One update from `accumulate` batches: loss a token, target tokens, gradient norm."""
        progress = self.progress
        self.model.train()
        group = [next(self.batches).to(self.device) for _ in range(self.accumulate)]
        tokens = sum(int((batch.tgt_out != PAD).sum()) for batch in group)
        total = 0.0
        for batch in group:
            # the mean over the tokens of all batches, so that several small equal one large
            loss = self._loss(batch) / tokens
            loss.backward()
            total += loss.item()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.clip_norm).item()
        progress.step += 1
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = self.learning_rate * self.schedule(progress.step)
        if math.isfinite(norm) and math.isfinite(total):
            self.optimizer.step()
            progress.tgt_tokens += tokens
            progress.skipped = 0
        else:
            self._skip()
        self.optimizer.zero_grad()
        return total, tokens, norm

    def _loss(self, batch: Batch) -> Tensor:
        """Cross-entropy with smoothed labels, summed over the real target tokens.

        Smoothing gives label_smoothing evenly to the whole vocabulary (Szegedy et al. 2016, 7).
        """
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
            logits = self.model(batch.src, batch.src_mask, batch.tgt_in).logits
        return nn.functional.cross_entropy(
            logits.float().flatten(0, 1),
            batch.tgt_out.flatten(),
            ignore_index=PAD,
            reduction="sum",
            label_smoothing=self.label_smoothing,
        )

    def _skip(self) -> None:
        """A gradient that is not finite changes nothing; too many in a row end the training."""
        self.progress.skipped += 1
        log.warning("step %d: loss or gradient not finite, update skipped", self.progress.step)
        if self.progress.skipped >= MAX_SKIPPED:
            raise ValueError(
                f"{MAX_SKIPPED} updates in a row had no finite gradient: training has diverged. "
                "Try a smaller training.learning_rate, a longer training.warmup_steps or "
                f"precision=fp32. The last good checkpoint is in {self.checkpoints}"
            )

    def _report(self, window: "_Window", norm: float, bar: tqdm) -> None:
        step = self.progress.step
        scalars = {
            "loss": window.loss,
            "learning_rate": self.optimizer.param_groups[0]["lr"],
            "gradient_norm": norm,
            "tokens_per_second": window.tokens_per_second,
        }
        for name, value in scalars.items():
            self.writer.add_scalar(f"train/{name}", value, step)
        bar.set_postfix_str(f"loss {window.loss:.3f}, {window.tokens_per_second:,.0f} tokens/s")

    def _validate(self) -> None:
        progress = self.progress
        scores = self.validate(progress.step)
        improved = scores.bleu > progress.best_bleu
        if improved:
            progress.best_bleu, progress.best_step = scores.bleu, progress.step
            progress.without_improvement = 0
        else:
            progress.without_improvement += 1
            patience = self.patience
            progress.stopped_early = patience is not None and (
                progress.without_improvement >= patience
            )
        measured = ", ".join(f"{name} {value:.2f}" for name, value in scores._asdict().items())
        log.info("step %d: %s%s", progress.step, measured, " (best so far)" if improved else "")
        if progress.stopped_early:
            log.info("no improvement in %d validations: stopping early", self.patience)
        for name, value in scores._asdict().items():
            if improved:
                self.writer.add_scalar(f"best/{name}", value, progress.step)
        self.writer.flush()
        if improved:
            self.save("best")
        self.save("last")
        self._keep()

    def _keep(self) -> None:
        """Keeps the checkpoints of the latest validations as step_N.pt, to be averaged."""
        if not self.keep:
            return
        shutil.copy(
            self.checkpoints / "last.pt", self.checkpoints / f"step_{self.progress.step}.pt"
        )
        kept = sorted(self.checkpoints.glob("step_*.pt"), key=lambda p: int(p.stem[5:]))
        for path in kept[: -self.keep]:
            path.unlink()

    def save(self, name: str) -> None:
        """Writes checkpoints/NAME.pt: the weights, and all that going on from here needs."""
        random = {"cpu": torch.get_rng_state()}
        if self.device.type == "cuda":
            random["cuda"] = torch.cuda.get_rng_state(self.device)
        content = {
            **self.identity,
            "weights": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "batches": self.batches.state_dict(),
            "random": random,
            "progress": asdict(self.progress),
        }
        checkpoints.save(self.checkpoints / f"{name}.pt", content)

    def resume(self, content: dict[str, Any]) -> None:
        """Goes back to the state that a checkpoint holds."""
        self.model.load_state_dict(content["weights"])
        self.optimizer.load_state_dict(content["optimizer"])
        self.batches.load_state_dict(content["batches"])
        torch.set_rng_state(content["random"]["cpu"])
        if "cuda" in content["random"] and self.device.type == "cuda":
            torch.cuda.set_rng_state(content["random"]["cuda"], self.device)
        self.progress = Progress(**content["progress"])


class _Window:
    """The losses since the last report."""

    def __init__(self) -> None:
        self.nats, self.tokens, self.begun = 0.0, 0, time.perf_counter()

    def add(self, loss: float, tokens: int) -> None:
        self.nats += loss * tokens
        self.tokens += tokens

    @property
    def loss(self) -> float:
        return self.nats / max(1, self.tokens)

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / (time.perf_counter() - self.begun)


@contextmanager
def _stop_signals() -> Iterator[list[int]]:
    """A list that Ctrl-C and SIGTERM fill; a second Ctrl-C interrupts at once."""
    received: list[int] = []

    def note(number: int, _: Any) -> None:
        received.append(number)
        if len(received) == 1:
            log.warning("stopping after this step; once more to stop at once, without saving")
        else:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
