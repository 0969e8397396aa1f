"""The training loop: right loss, exact resume, what is kept, when it stops."""

import dataclasses
import itertools
import math
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
import toy
from architectures import NAMES, config, small
from torch import nn
from torch.utils.tensorboard import SummaryWriter

from data.batching import TokenArray, TrainingBatches, collate
from data.tokenizer import learn
from models import checkpoint as checkpoints
from training.schedule import schedule
from training.trainer import MAX_SKIPPED, Stop, Trainer
from training.validation import negative_log_likelihood

PAIRS = toy.pairs(120)
SRC = learn([src for src, _ in PAIRS], type="word", size=100)
TGT = learn([tgt for _, tgt in PAIRS], type="word", size=100)
CPU = torch.device("cpu")
every_architecture = pytest.mark.parametrize("name", NAMES)


class Scores(NamedTuple):
    loss: float
    bleu: float


def arrays() -> tuple[TokenArray, TokenArray]:
    return (
        TokenArray(SRC.encode([src for src, _ in PAIRS])),
        TokenArray(TGT.encode([tgt for _, tgt in PAIRS])),
    )


def trainer(folder: Path, name: str = "bahdanau", validate=None, **changes) -> Trainer:
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
        torch.optim.AdamW(model.parameters(), lr=0.01),
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


@every_architecture
def test_resuming_equals_never_stopping(name: str, tmp_path: Path) -> None:
    trainer(tmp_path / "whole", name).fit()
    for stop in (1, 6, 11):
        folder = tmp_path / f"stopped-{stop}"
        first = trainer(folder, name)
        for _ in range(stop):
            first.update()
            if first.progress.step % 4 == 0:
                first._validate()
        first.save("last")
        torch.manual_seed(999)  # whatever else drew random numbers meanwhile
        second = trainer(folder, name)
        torch.manual_seed(123)
        second.resume(checkpoints.load(folder / "checkpoints" / "last.pt"))
        second.fit()
        for kept in ("last", "best"):
            whole = checkpoints.load(tmp_path / "whole" / "checkpoints" / f"{kept}.pt")
            assert same(whole, checkpoints.load(folder / "checkpoints" / f"{kept}.pt")), stop


def test_training_repeats_bit_for_bit(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        trainer(tmp_path / folder).fit()
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


def test_patience_stops_after_so_many_validations_without_a_better_one(tmp_path: Path) -> None:
    progress = trainer(
        tmp_path, validate=lambda step: Scores(1, -step), patience=3, max_steps=99
    ).fit()
    assert progress.step == 16 and progress.stopped_early
    again = trainer(tmp_path, patience=3, max_steps=99)
    again.resume(checkpoints.load(tmp_path / "checkpoints" / "last.pt"))
    assert again.fit().step == 16


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
    training = trainer(tmp_path, name, label_smoothing=0.2)
    training.model.eval()
    src, tgt = arrays()
    batch = collate([src[0], src[1]], [tgt[0], tgt[1]], step=16)  # with much padding
    expected = 0.0
    for row in range(2):
        real = batch.tgt_out[row] != 0
        logits = training.model(
            batch.src[row : row + 1], batch.src_mask[row : row + 1], batch.tgt_in[row : row + 1]
        ).logits[0]
        log_probs = logits.log_softmax(-1)[real]
        hit = log_probs.gather(1, batch.tgt_out[row][real].unsqueeze(1)).sum()
        expected += -(0.8 * hit + 0.2 * log_probs.mean(-1).sum()).item()
    assert training._loss(batch).item() == pytest.approx(expected, rel=1e-4)


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


def test_an_update_without_a_finite_gradient_changes_nothing(tmp_path: Path, caplog) -> None:
    training = trainer(tmp_path)
    before = {name: p.clone() for name, p in training.model.named_parameters()}
    training._loss = lambda batch: training.model.W_nan(batch)
    training.model.W_nan = lambda batch: (
        sum(p.sum() for p in training.model.parameters()) * math.nan
    )
    training.update()
    assert "not finite" in caplog.text
    assert all(torch.equal(p, before[name]) for name, p in training.model.named_parameters())
    with pytest.raises(ValueError, match="learning_rate"):
        for _ in range(MAX_SKIPPED):
            training.update()


def test_a_signal_saves_first_and_resumes_to_the_same_end(tmp_path: Path) -> None:
    import os
    import signal

    trainer(tmp_path / "whole").fit()
    stopped = trainer(tmp_path / "stopped")
    update = stopped.update

    def interrupted() -> tuple[float, int, float]:
        if stopped.progress.step == 5:
            os.kill(os.getpid(), signal.SIGTERM)
        return update()

    stopped.update = interrupted
    with pytest.raises(Stop):
        stopped.fit()
    again = trainer(tmp_path / "stopped")
    again.resume(checkpoints.load(tmp_path / "stopped" / "checkpoints" / "last.pt"))
    assert again.progress.step == 6
    again.fit()
    whole, resumed = (
        checkpoints.load(tmp_path / f / "checkpoints" / "last.pt") for f in ("whole", "stopped")
    )
    assert same(whole, resumed)


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
    src, tgt = arrays()
    eight = collate([src[i] for i in range(8)], [tgt[i] for i in range(8)])
    training.batches = itertools.repeat(eight)
    first = training.update()[0]
    for _ in range(149):
        last = training.update()[0]
    assert last < 0.25 * first
    assert dataclasses.asdict(training.progress)["step"] == 150
