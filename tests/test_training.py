"""The training loop: right loss, exact resume, what is kept, when it stops."""

import dataclasses
import itertools
import math
import os
import signal
import time
from collections.abc import Callable, Container
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
import toy
from architectures import NAMES, config, small
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.summary.writer import event_file_writer
from torch import nn
from torch.utils.tensorboard import SummaryWriter

from data.batching import Batch, TokenArray, TrainingBatches, collate
from data.tokenizer import learn
from models import checkpoint as checkpoints
from training.optimizer import optimizer_of
from training.schedule import schedule
from training.signals import Stop, stop_signals
from training.trainer import MAX_SKIPPED, Trainer
from training.validation import negative_log_likelihood, spread

PAIRS = toy.pairs(120)
SRC = learn([src for src, _ in PAIRS], type="word", size=100)
TGT = learn([tgt for _, tgt in PAIRS], type="word", size=100)
CPU = torch.device("cpu")
every_architecture = pytest.mark.parametrize("name", NAMES)
# TensorBoard reads the event files of one second and process by name, number 10 before number 9:
# here, where one process stands for many, all numbers have as many digits
event_file_writer._global_uid = event_file_writer.AtomicCounter(10_000)


class Scores(NamedTuple):
    loss: float
    bleu: float


def arrays() -> tuple[TokenArray, TokenArray]:
    return (
        TokenArray(SRC.encode([src for src, _ in PAIRS])),
        TokenArray(TGT.encode([tgt for _, tgt in PAIRS])),
    )


def trainer(
    folder: Path, name: str = "bahdanau", validate=None, muon: float | None = None, **changes
) -> Trainer:
    """A small training with dropout, so that the random state matters."""
    (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
    torch.manual_seed(5)
    settings = config(name, dropout=0.3)
    model = checkpoints.build(settings, SRC.size, TGT.size)
    options = {
        "bf16": False,
        "max_steps": 12,
        "accumulate": 1,
        "clip_norm": 1.0,
        "label_smoothing": 0.1,
        "validate_every": 4,
        "patience": None,
        "log_every": 2,
        "keep": 0,
    } | changes
    return Trainer(
        model,
        optimizer_of({"_target_": "torch.optim.AdamW", "lr": 0.01}, model, muon),
        schedule("inverse_sqrt", 3, options["max_steps"]),
        TrainingBatches(*arrays(), batch_tokens=options.pop("batch_tokens", 150), seed=2),
        validate or (lambda step: Scores(1.0, -((step - 8) ** 2))),  # best at step 8
        folder,
        SummaryWriter(str(folder)),
        identity={
            "model": settings,
            "vocabularies": [SRC.size, TGT.size],
            "digests": [SRC.digest, TGT.digest],
        },
        device=CPU,
        **options,
    )


def same(a: object, b: object) -> bool:
    """Equality of nested containers with tensors, bit for bit."""
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def stop_in(training: Trainer, step: int, number: int = signal.SIGTERM) -> None:
    """Trains until a signal arrives in the middle of the update of a step."""
    update = training.update

    def interrupted() -> tuple[float, int, float]:
        if training.progress.step == step - 1:
            os.kill(os.getpid(), number)
        return update()

    training.update = interrupted
    with pytest.raises(Stop) as stopped:
        training.fit()
    assert stopped.value.signal_number == number and training.progress.step == step


@pytest.mark.parametrize(
    "name, options",
    [
        *((name, {}) for name in NAMES),
        ("transformer", {"muon": 0.02}),
        ("transformer", {"bf16": True}),
        ("bahdanau", {"bf16": True}),
    ],
)
def test_resuming_equals_never_stopping(name: str, options: dict, tmp_path: Path) -> None:
    trainer(tmp_path / "whole", name, **options).fit()
    folder = tmp_path / "stopped"
    stop_in(trainer(folder, name, **options), 1)
    for stop, number in ((6, signal.SIGTERM), (8, signal.SIGINT), (11, signal.SIGHUP), (12, None)):
        torch.manual_seed(999)  # whatever else drew random numbers meanwhile
        training = trainer(folder, name, **options)
        torch.manual_seed(123)
        training.resume(checkpoints.load(folder / "checkpoints" / "last.pt"))
        if number:
            stop_in(training, stop, number)
        else:
            training.fit()
    for kept in ("last", "best"):
        whole = checkpoints.load(tmp_path / "whole" / "checkpoints" / f"{kept}.pt")
        assert same(whole, checkpoints.load(folder / "checkpoints" / f"{kept}.pt"))
    assert losses(tmp_path / "whole") == losses(folder)


def losses(run: Path) -> list[tuple[int, float]]:
    """The training loss as TensorBoard shows it."""
    events = EventAccumulator(str(run))
    events.Reload()
    return [(event.step, event.value) for event in events.Scalars("train/loss")]


def test_a_reported_loss_is_the_mean_since_the_last_report_even_over_a_stop(tmp_path: Path) -> None:
    training = trainer(tmp_path, log_every=5, validate_every=100, max_steps=10)
    seen = []
    update = training.update

    def remembered() -> tuple[float, int, float]:
        seen.append(update())
        return seen[-1]

    training.update = remembered
    stop_in(training, 3)
    again = trainer(tmp_path, log_every=5, validate_every=100, max_steps=10)
    again.resume(checkpoints.load(tmp_path / "checkpoints" / "last.pt"))
    update = again.update
    again.update = remembered
    again.fit()
    for (step, loss), part in zip(losses(tmp_path), (seen[:5], seen[5:]), strict=True):
        tokens = sum(tokens for _, tokens, _ in part)
        expected = sum(loss * tokens for loss, tokens, _ in part) / tokens
        assert loss == pytest.approx(expected, rel=1e-6), step


@every_architecture
def test_training_repeats_bit_for_bit(name: str, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        trainer(tmp_path / folder, name, max_steps=4).fit()
    a, b = (checkpoints.load(tmp_path / f / "checkpoints" / "last.pt") for f in ("a", "b"))
    assert same(a, b)


def test_the_best_checkpoint_is_the_best_one_and_the_last_one_the_last(tmp_path: Path) -> None:
    progress = trainer(tmp_path).fit()
    assert (progress.best_step, progress.step) == (8, 12)
    for name, step in (("best", 8), ("last", 12)):
        content = checkpoints.load(tmp_path / "checkpoints" / f"{name}.pt")
        assert content["progress"]["step"] == step


def test_the_latest_validations_are_kept_where_asked(tmp_path: Path) -> None:
    trainer(tmp_path, max_steps=16, keep=2).fit()
    names = {path.stem for path in (tmp_path / "checkpoints").iterdir()}
    assert names == {"best", "last", "step_12", "step_16"}


def test_patience_stops_after_so_many_validations_without_a_better_one(
    tmp_path: Path, caplog
) -> None:
    caplog.set_level("INFO")
    progress = trainer(
        tmp_path, validate=lambda step: Scores(1, -step), patience=3, max_steps=99
    ).fit()
    assert progress.step == 16 and progress.stopped_early
    again = trainer(tmp_path, patience=3, max_steps=99)
    again.resume(checkpoints.load(tmp_path / "checkpoints" / "last.pt"))
    assert again.fit().step == 16
    assert caplog.messages[-1] == "ended at step 16; with a larger training.patience it goes on"
    again = trainer(tmp_path, patience=None, max_steps=16)
    again.resume(checkpoints.load(tmp_path / "checkpoints" / "last.pt"))
    assert caplog.messages[-1] == "ended at step 16; with a larger training.max_steps it goes on"


def test_a_training_that_patience_has_ended_goes_on_with_more_of_it(tmp_path: Path) -> None:
    worse = {"validate": lambda step: Scores(1, -step), "max_steps": 40}
    trainer(tmp_path / "whole", **worse, patience=5).fit()
    trainer(tmp_path / "ended", **worse, patience=3).fit()
    last = checkpoints.load(tmp_path / "ended" / "checkpoints" / "last.pt")
    for patience, end in ((2, 16), (5, 24), (None, 40)):
        again = trainer(tmp_path / "ended", **worse, patience=patience)
        again.resume(last)
        assert again.fit().step == end
        if patience == 5:
            found, whole = (
                checkpoints.load(tmp_path / name / "checkpoints" / "last.pt")
                for name in ("ended", "whole")
            )
            assert same(found, whole)


def gradients(batches: list, tmp_path: Path, accumulate: int) -> dict[str, torch.Tensor]:
    training = trainer(tmp_path, accumulate=accumulate, clip_norm=math.inf)
    training.model.dropout.p = training.model.output.dropout.p = 0.0
    training.batches = iter(batches)
    training.optimizer.zero_grad = lambda: None  # leaves the gradients to be looked at
    training.update()
    return {name: p.grad for name, p in training.model.named_parameters()}


def test_accumulating_small_batches_equals_one_large_batch(tmp_path: Path) -> None:
    src, tgt = arrays()
    numbers = [3, 50, 7, 8, 9, 20, 21]
    pair = [[side[i] for i in numbers] for side in (src, tgt)]
    parts = [collate([s], [t]) for s, t in zip(*pair, strict=True)]
    whole = gradients([collate(*pair)], tmp_path / "a", 1)
    for name, gradient in gradients(parts, tmp_path / "b", len(numbers)).items():
        torch.testing.assert_close(gradient, whole[name], rtol=1e-3, atol=1e-6)


@every_architecture
def test_the_loss_is_the_smoothed_mean_over_real_tokens(name: str, tmp_path: Path) -> None:
    training = trainer(tmp_path, name, label_smoothing=0.2, clip_norm=math.inf)
    training.model.eval()
    training.model.train = lambda: None  # no dropout
    src, tgt = arrays()
    batch = collate([src[0], src[1]], [tgt[0], tgt[1]], step=16)  # with much padding
    expected, count = torch.zeros(()), int((batch.tgt_out != 0).sum())
    for row in range(2):
        real = batch.tgt_out[row] != 0
        logits = training.model(
            batch.src[row : row + 1], batch.src_mask[row : row + 1], batch.tgt_in[row : row + 1]
        ).logits[0]
        log_probs = logits.log_softmax(-1)[real]
        hit = log_probs.gather(1, batch.tgt_out[row][real].unsqueeze(1)).sum()
        expected = expected - (0.8 * hit + 0.2 * log_probs.mean(-1).sum()) / count
    parameters = list(training.model.parameters())
    gradients = torch.autograd.grad(expected, parameters, allow_unused=True)
    squares = sum(gradient.square().sum().item() for gradient in gradients if gradient is not None)
    training.batches = iter([batch])
    loss, tokens, norm = training.update()
    assert tokens == count
    assert loss == pytest.approx(expected.item(), rel=1e-4)
    assert norm == pytest.approx(math.sqrt(squares), rel=1e-3)


@every_architecture
def test_dev_loss_is_the_mean_negative_log_likelihood_of_real_tokens(name: str) -> None:
    model = small(name, vocabulary=max(SRC.size, TGT.size)).train()
    src, tgt = arrays()
    total, tokens = 0.0, 0
    model.eval()
    for i in range(len(src)):
        batch = collate([src[i]], [tgt[i]])
        logits = model(batch.src, batch.src_mask, batch.tgt_in).logits[0]
        total += nn.functional.cross_entropy(logits, batch.tgt_out[0], reduction="sum").item()
        tokens += batch.tgt_out.size(1)
    for budget in (40, 5000):
        measured = negative_log_likelihood(model, src, tgt, budget, CPU)
        assert measured == pytest.approx(total / tokens, rel=1e-4)


def spoil(training: Trainer, steps: Container[int], value: float = math.nan) -> None:
    """Makes the loss of some steps a number that is not finite."""
    loss = training._loss

    def spoilt(batch: Batch) -> torch.Tensor:
        return loss(batch) * (value if training.progress.step + 1 in steps else 1.0)

    training._loss = spoilt


@pytest.mark.parametrize("value", [math.nan, math.inf])
@every_architecture
def test_an_update_without_a_finite_gradient_changes_nothing(
    name: str, value: float, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    training = trainer(tmp_path, name, max_steps=8)
    spoil(training, {3, 4}, value)
    for step in range(1, 6):
        before = [p.clone() for p in training.model.parameters()]
        training.update()
        changed = not all(map(torch.equal, before, training.model.parameters()))
        assert changed == (step not in (3, 4))
        assert (f"step {step}: loss or gradient not finite" in caplog.text) == (step in (3, 4))
        assert all(bool(p.isfinite().all()) for p in training.model.parameters())
    assert training.progress.skipped == 0


def test_a_training_that_diverges_ends_keeps_what_it_had_and_says_what_to_try(
    tmp_path: Path,
) -> None:
    training = trainer(tmp_path, max_steps=99)
    spoil(training, range(10, 99))
    with pytest.raises(
        ValueError, match=r"20 updates in a row.*learning_rate.*last good ones are in"
    ):
        training.fit()
    assert training.progress.step == 10 + MAX_SKIPPED - 1
    last, best = (checkpoints.load(tmp_path / "checkpoints" / f"{n}.pt") for n in ("last", "best"))
    assert last["progress"]["step"] == 28 and best["progress"]["step"] == 8
    assert all(bool(weight.isfinite().all()) for weight in last["weights"].values())
    values = [loss for _, loss in losses(tmp_path)]
    assert len(values) == 5 and all(map(math.isfinite, values))  # of steps 2, 4, 6, 8, 10


def test_weights_that_are_not_finite_are_neither_measured_nor_saved(tmp_path: Path) -> None:
    measured = []

    def validate(step: int) -> Scores:
        measured.append(step)
        return Scores(1.0, step)

    for stop in (None, 7):
        training = trainer(tmp_path, validate=validate)
        update = training.update

        def broken(training: Trainer = training, update: Callable = update) -> tuple:
            done = update()
            if training.progress.step == 6:
                next(iter(training.model.parameters())).data.flatten()[0] = math.inf
            return done

        training.update = broken
        with pytest.raises(ValueError, match="weights are not finite after step"):
            stop_in(training, stop) if stop else training.fit()
        for name in ("last", "best"):
            content = checkpoints.load(tmp_path / "checkpoints" / f"{name}.pt")
            assert content["progress"]["step"] == 4
    assert measured == [4, 4]


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_model_whose_dev_loss_is_not_finite_is_not_saved(loss: float, tmp_path: Path) -> None:
    scores = {4: Scores(2.0, 10.0), 8: Scores(loss, 50.0)}
    training = trainer(tmp_path, validate=scores.get)
    with pytest.raises(ValueError, match=r"dev loss is not finite after step 8.*learning_rate"):
        training.fit()
    for name in ("last", "best"):
        content = checkpoints.load(tmp_path / "checkpoints" / f"{name}.pt")
        assert content["progress"]["step"] == 4


def test_what_an_ignored_signal_is_for_stays_ignored(tmp_path: Path) -> None:
    """As nohup does with SIGHUP, and a shell with Ctrl-C for what runs in the background."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_signals() as received:
            os.kill(os.getpid(), signal.SIGHUP)
            assert received == []
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGINT)  # at once after the other: the same, passed on
            assert received == [signal.SIGTERM, signal.SIGINT]
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_second_ctrl_c_interrupts_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with stop_signals() as received:
        os.kill(os.getpid(), signal.SIGINT)
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now + 2)
        os.kill(os.getpid(), signal.SIGTERM)  # another kind of signal asks again, no more
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert received == [signal.SIGINT, signal.SIGTERM]


def test_training_in_another_thread_than_the_main_one_works_without_signals(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(trainer(tmp_path, max_steps=2).fit).result().step == 2


@every_architecture
def test_the_shares_of_a_batch_add_up_to_its_gradient(name: str, tmp_path: Path) -> None:
    """What each of several processes computes; some batches have fewer rows than processes."""
    training = trainer(tmp_path, name)
    for module in training.model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        elif isinstance(module, nn.RNNBase):
            module.dropout = 0.0
    src, tgt = arrays()
    for numbers in ([3, 50, 7, 8, 9, 20, 21], [4, 6]):
        batch = collate([src[i] for i in numbers], [tgt[i] for i in numbers])
        gradients = []
        for count in (1, 3):
            training.model.zero_grad()
            for rank in range(count):
                share = batch.share(rank, count)
                if len(share.src):
                    (training._loss(share) / batch.tgt_tokens).backward()
            gradients.append({n: p.grad for n, p in training.model.named_parameters()})
        for parameter, gradient in gradients[0].items():
            torch.testing.assert_close(gradients[1][parameter], gradient, rtol=1e-3, atol=1e-6)


def test_schedules_warm_up_and_follow_their_formulas() -> None:
    inverse, cosine, constant = (
        schedule(name, 100, 1100) for name in ("inverse_sqrt", "cosine", "constant")
    )
    for each in (inverse, cosine, constant):
        assert each(1) == 0.01 and each(50) == 0.5 and each(100) == 1.0
    assert inverse(400) == 0.5 and inverse(10_000) == 0.1
    assert cosine(600) == pytest.approx(0.5) and cosine(1100) == pytest.approx(0.0)
    assert constant(900) == 1.0
    with pytest.raises(ValueError, match="inverse_sqrt, cosine, constant"):
        schedule("linear", 1, 1)


@every_architecture
def test_a_few_sentences_can_be_learnt_by_heart(name: str, tmp_path: Path) -> None:
    training = trainer(
        tmp_path, name, max_steps=150, validate_every=1000, label_smoothing=0.0, batch_tokens=4000
    )
    for module in training.model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        elif isinstance(module, nn.RNNBase):
            module.dropout = 0.0
    src, tgt = arrays()
    eight = collate([src[i] for i in range(8)], [tgt[i] for i in range(8)])
    training.batches = itertools.repeat(eight)
    first = training.update()[0]
    for _ in range(149):
        last = training.update()[0]
    assert last < 0.25 * first
    assert dataclasses.asdict(training.progress)["step"] == 150


def test_eight_translations_of_the_whole_dev_set_are_written_out_or_all_of_fewer() -> None:
    assert spread(300) == [0, 37, 75, 112, 150, 187, 225, 262]
    assert [len(spread(count)) for count in (1, 5, 8, 15, 1014)] == [1, 5, 8, 8, 8]
