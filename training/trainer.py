"""The training loop. It knows no architecture and no search."""

import logging
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

from data.batching import Batch, TrainingBatches
from models import checkpoint as checkpoints
from models.seq2seq import Seq2Seq
from training.loss import smoothed_cross_entropy
from training.optimizer import Together
from training.processes import ALONE, Processes
from training.schedule import Schedule
from training.signals import Stop, stop_signals

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
    reported_nats: float = 0.0  # loss since the last report,
    reported_tokens: int = 0  # summed over so many tokens
    best_bleu: float = -math.inf
    best_step: int = 0
    without_improvement: int = 0  # validations since the best one
    skipped: int = 0  # updates skipped in a row because their gradient was not finite
    stopped_early: bool = False


class Trainer:
    """Updates a model until max_steps, or until validation has not improved `patience` times."""

    def __init__(
        self,
        model: Seq2Seq,
        optimizer: torch.optim.Optimizer | Together,
        schedule: Schedule,
        batches: TrainingBatches,
        validate: Callable[[int], DevScores],
        folder: Path,
        writer: SummaryWriter | None,
        processes: Processes = ALONE,
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
        """identity: the model's config, vocabularies and text, kept in every checkpoint.

        Of several processes, only the first one has a writer.
        """
        self.model, self.optimizer, self.schedule = model, optimizer, schedule
        self.batches, self.validate, self.writer = batches, validate, writer
        self.folder, self.checkpoints = folder, folder / "checkpoints"
        self.processes = processes
        self.identity, self.device, self.bf16 = identity, device, bf16
        self.max_steps, self.accumulate = max_steps, accumulate
        self.clip_norm, self.label_smoothing = clip_norm, label_smoothing
        self.validate_every, self.patience = validate_every, patience
        self.log_every, self.keep = log_every, keep
        self.learning_rates = [group["lr"] for group in optimizer.param_groups]
        self.seed = torch.initial_seed()
        self.progress = Progress()

    def fit(self) -> Progress:
        """Trains to the end; the best checkpoint by dev BLEU and the last one are in the folder.

        Raises Stop, with everything saved, if asked to stop by a signal.
        """
        progress = self.progress
        bar = tqdm(total=self.max_steps, initial=progress.step, unit="step", disable=None)
        with bar, logging_redirect_tqdm(), stop_signals() as received:
            clock = _Clock(progress)
            while progress.step < self.max_steps and not progress.stopped_early:
                _, _, norm = self.update()
                bar.update()
                if progress.step % self.log_every == 0:
                    self._report(norm, clock.tokens_per_second, bar)
                    clock = _Clock(progress)
                if progress.step % self.validate_every == 0 or progress.step == self.max_steps:
                    self._validate()
                    clock = _Clock(progress)
                if signal_number := self.processes.highest(max(received, default=0)):
                    self.save("last")
                    raise Stop(signal_number)
        return progress

    def update(self) -> tuple[float, int, float]:
        """One update from `accumulate` batches: loss a token, target tokens, gradient norm."""
        progress = self.progress
        self.model.train()
        self.processes.seed(self.seed, progress.step)
        batches = [next(self.batches) for _ in range(self.accumulate)]
        tokens = sum(batch.tgt_tokens for batch in batches)
        total = 0.0
        for batch in map(self.processes.share, batches):
            if len(batch.src):
                # the mean over the tokens of all batches, so that several small equal one large
                loss = self._loss(batch.to(self.device)) / tokens
                loss.backward()
                total += loss.item()
        total = self.processes.add_up(self.model.parameters(), total)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.clip_norm).item()
        progress.step += 1
        for group, rate in zip(self.optimizer.param_groups, self.learning_rates, strict=True):
            group["lr"] = rate * self.schedule(progress.step)
        if math.isfinite(norm) and math.isfinite(total):
            self.optimizer.step()
            progress.skipped = 0
            progress.tgt_tokens += tokens
            progress.reported_tokens += tokens
            progress.reported_nats += total * tokens
        else:
            self._skip()
        self.optimizer.zero_grad()
        return total, tokens, norm

    def _loss(self, batch: Batch) -> Tensor:
        """Cross-entropy with smoothed labels, summed over the real target tokens."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
            logits = self.model(batch.src, batch.src_mask, batch.tgt_in).logits
        return smoothed_cross_entropy(logits, batch.tgt_out, self.label_smoothing)

    def _skip(self) -> None:
        """A gradient that is not finite changes nothing; too many in a row end the training."""
        self.progress.skipped += 1
        log.warning("step %d: loss or gradient not finite, update skipped", self.progress.step)
        if self.progress.skipped >= MAX_SKIPPED:
            raise self._diverged(f"{MAX_SKIPPED} updates in a row had no finite gradient")

    def _check_weights(self) -> None:
        """Weights that are not finite are neither measured nor saved."""
        if not all(bool(p.isfinite().all()) for p in self.model.parameters()):
            raise self._diverged(f"the weights are not finite after step {self.progress.step}")

    def _diverged(self, what: str) -> ValueError:
        saved = (self.checkpoints / "last.pt").is_file()
        kept = f"the last good ones are in {self.checkpoints}" if saved else "none is saved yet"
        return ValueError(
            f"{what}: training has diverged. Start another with a smaller training.learning_rate, "
            "a longer training.warmup_steps, a smaller training.clip_norm or precision=fp32. "
            f"Checkpoints: {kept}"
        )

    def _report(self, norm: float, tokens_per_second: float, bar: tqdm) -> None:
        """Writes the loss of all updates since the last report, and what else there is to see."""
        progress = self.progress
        loss = progress.reported_nats / max(1, progress.reported_tokens)
        scalars = {
            "learning_rate": self.optimizer.param_groups[0]["lr"],
            "gradient_norm": norm,
            "tokens_per_second": tokens_per_second,
        }
        if progress.reported_tokens:  # else all updates were skipped
            scalars["loss"] = loss
        if self.writer is not None:
            for name, value in scalars.items():
                self.writer.add_scalar(f"train/{name}", value, progress.step)
        bar.set_postfix_str(f"loss {loss:.3f}, {tokens_per_second:,.0f} tokens/s")
        progress.reported_nats, progress.reported_tokens = 0.0, 0

    def _validate(self) -> None:
        self._check_weights()
        progress, first = self.progress, self.processes.is_first
        scores = self.processes.tell(self.validate(progress.step) if first else None)
        if not math.isfinite(scores.loss):
            raise self._diverged(f"the dev loss is not finite after step {progress.step}")
        improved = scores.bleu > progress.best_bleu
        if improved:
            progress.best_bleu, progress.best_step = scores.bleu, progress.step
            progress.without_improvement = 0
        else:
            progress.without_improvement += 1
        progress.stopped_early = self._out_of_patience()
        measured = ", ".join(f"{name} {value:.2f}" for name, value in scores._asdict().items())
        log.info("step %d: %s%s", progress.step, measured, " (best so far)" if improved else "")
        if progress.stopped_early:
            log.info("stopping early: %d validations without a better dev BLEU", self.patience)
        if improved and self.writer is not None:
            for name, value in scores._asdict().items():
                self.writer.add_scalar(f"best/{name}", value, progress.step)
        if improved:
            self.save("best")
        self._keep()
        self.save("last")  # when it is there, so is all the rest

    def _out_of_patience(self) -> bool:
        return self.patience is not None and self.progress.without_improvement >= self.patience

    def _keep(self) -> None:
        """Keeps the checkpoints of the latest validations as step_N.pt, to be averaged."""
        if self.keep and self.processes.is_first:
            self.save(f"step_{self.progress.step}")
            kept = sorted(self.checkpoints.glob("step_*.pt"), key=lambda p: int(p.stem[5:]))
            for path in kept[: -self.keep]:
                path.unlink()

    def save(self, name: str) -> None:
        """Writes checkpoints/NAME.pt: the weights, and all that going on from here needs.

        Of several processes, the first one writes; what it holds is the same for any number.
        """
        self._check_weights()
        if not self.processes.is_first:
            return
        self.writer.flush()  # a checkpoint of a step never comes before what was written of it
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
        """Goes back to the state that a checkpoint holds; ValueError if it is not of this run."""
        try:
            self.model.load_state_dict(content["weights"])
            self.optimizer.load_state_dict(content["optimizer"])
            self.batches.load_state_dict(content["batches"])
            torch.set_rng_state(content["random"]["cpu"])
            if "cuda" in content["random"] and self.device.type == "cuda":
                torch.cuda.set_rng_state(content["random"]["cuda"], self.device)
            self.progress = progress = Progress(**content["progress"])
        except (KeyError, TypeError, AttributeError, RuntimeError) as error:
            raise ValueError(f"last.pt does not fit this run's settings: {error}") from error
        progress.stopped_early = self._out_of_patience()  # which may be another than it was
        if progress.stopped_early or progress.step >= self.max_steps:
            more = "training.patience" if progress.stopped_early else "training.max_steps"
            log.info("ended at step %d; with a larger %s it goes on", progress.step, more)


class _Clock:
    """Measures how many target tokens a second are learnt from, from its making on."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self._tokens = progress, progress.tgt_tokens
        self._begun = time.perf_counter()

    @property
    def tokens_per_second(self) -> float:
        return (self._progress.tgt_tokens - self._tokens) / (time.perf_counter() - self._begun)
