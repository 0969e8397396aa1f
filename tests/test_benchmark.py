"""The benchmark: what it counts is right, and it runs what training and translation run."""

import json
import logging
import os
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import accumulate, chain, product, repeat
from multiprocessing import get_context
from pathlib import Path

import pytest
import torch
import toy
from hydra import compose, initialize_config_dir
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

import train
from cli import CONFIGS
from data.batching import TokenArray
from data.corpus import ParallelCorpus
from data.tokenizer import learn_pair
from decoding import cost as decoding_cost
from scripts import benchmark
from training import cost
from training.trainer import Trainer

WIDTH = 16
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("text")
    toy.write(folder, train=toy.pairs(200))
    return folder / "train.src", folder / "train.tgt"


def options(text: tuple[Path, Path], *more: str) -> list[str]:
    return [*("--text", *map(str, text)), "--width", str(WIDTH), *("--threads", "1"), "--seconds",
            "0", "--batch-tokens", "100", *more, "tokenizer=word"]  # fmt: skip


@pytest.fixture
def trainer(text: tuple[Path, Path], tmp_path: Path) -> Trainer:
    """A Transformer's, as train.py composes it."""
    overrides = ["data=files", f"data.train_src={text[0]}", f"data.train_tgt={text[1]}"]
    overrides += ["model=transformer", f"width={WIDTH}", "tokenizer=word", "precision=fp32"]
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        config = compose("train", [*overrides, "training.batch_tokens=100", "threads=1"])
    src, tgt = (path.read_text().splitlines() for path in text)
    pair = learn_pair(src, tgt, **config.tokenizer, cache=tmp_path)
    arrays = tuple(TokenArray(t.encode(side)) for t, side in zip(pair, (src, tgt), strict=True))
    data = train.Data(arrays, ParallelCorpus(src[:1], tgt[:1]), pair, text="")
    return train.trainer_of(config, train.parts_of(config, data), data, tmp_path, writer=None)


def forward_products(rows: int, src: int, tgt: int, vocabulary: int) -> int:
    """Multiplications of a Transformer of two layers, four heads, expansion 2: Vaswani 2017."""
    d = WIDTH
    feed_forward = 2 * d * 2 * d  # to 2 d and back, a position
    projections = 4 * d * d  # queries, keys, values, output, a position
    encoder = 2 * (src * (projections + feed_forward) + 2 * src * src * d)
    own = tgt * projections + 2 * tgt * tgt * d
    cross = tgt * 2 * d * d + src * 2 * d * d + 2 * tgt * src * d
    decoder = 2 * (own + cross + tgt * feed_forward)
    return rows * (encoder + decoder + tgt * d * vocabulary)


def test_the_products_counted_are_those_of_the_closed_form(trainer: Trainer) -> None:
    position = trainer.batches.state_dict()
    expected, tokens = 0, 0
    for _ in range(3):
        batch = next(trainer.batches)
        (rows, src), tgt = batch.src.shape, batch.tgt_in.size(1)
        # two operations a multiplication; the backward pass has two products for each
        size = trainer.model.tgt_embedding.num_embeddings
        expected += 3 * 2 * forward_products(rows, src, tgt, size)
        tokens += int((batch.tgt_out != 0).sum())
    trainer.batches.load_state_dict(position)
    assert cost.product_flops_per_token(trainer, 3) == pytest.approx(expected / tokens, rel=1e-12)


def test_the_counter_sees_every_product_of_a_gru() -> None:
    rows, length, inputs, hidden = 4, 5, 8, 16
    x = torch.randn(rows, length, inputs)
    with FlopCounterMode(display=False) as counter:
        nn.GRU(inputs, hidden, batch_first=True)(x)[0].sum().backward()
    step = 2 * rows * 3 * hidden  # of a unit of input, for the three gates
    forward = length * step * (inputs + hidden)
    # neither the gradient of x nor that of the first state, a zero, is needed
    backward = 2 * forward - length * step * inputs - step * hidden
    assert counter.get_total_flops() == forward + backward


def test_an_lstm_whose_products_are_not_seen_has_no_share(trainer: Trainer) -> None:
    trainer.model.add_module("unused", nn.LSTM(2, 2))
    assert cost.product_flops_per_token(trainer, 1) is None


def test_speed_counts_the_tokens_that_training_counts(trainer: Trainer) -> None:
    speed = cost.speed(trainer, seconds=0.2, warm_up=0)
    assert speed.updates == trainer.progress.step >= 1
    learnt = trainer.progress.tgt_tokens
    assert speed.tgt_tokens_per_s * speed.seconds == pytest.approx(learnt)
    assert learnt > speed.sentences_per_s * speed.seconds * 3  # two words and the end at least


def test_the_kinds_of_work_add_up_to_the_whole(trainer: Trainer) -> None:
    kinds = cost.kinds_of_work(trainer, 2)
    assert sum(kinds.values()) == pytest.approx(1)
    assert set(kinds) == {*cost.KINDS, cost.REST}
    for kind in ("matrix products", "attention softmax", "cross-entropy", "batches", "optimiser"):
        assert kinds[kind] > 0, kind
    assert trainer.progress.step == 3  # one to warm up: they are the trainer's own updates


@pytest.mark.parametrize(
    "operation, kind",
    [
        ("aten::addmm", "matrix products"),
        ("aten::_softmax_backward_data", "attention softmax"),
        ("aten::_log_softmax", "cross-entropy"),
        ("aten::nll_loss_backward", "cross-entropy"),
        ("aten::bernoulli_", "dropout"),
        ("aten::random_", "dropout"),
        ("aten::native_layer_norm_backward", "layer norm"),
        ("aten::_fused_adamw_", "optimiser"),
        ("Optimizer.step#AdamW.step", "optimiser"),
        ("aten::copy_", "copies and casts"),
        ("aten::mul", "elementwise"),
        ("aten::sum", "elementwise"),
        ("batches", "batches"),
        ("autograd::engine::evaluate_function: MmBackward0", cost.REST),
    ],
)
def test_operations_are_grouped_by_what_they_are_for(operation: str, kind: str) -> None:
    assert cost.kind_of(operation) == kind


def test_the_peak_is_the_fastest_product_of_the_largest_matrices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps = chain(
        [0.0, 0.5, 0.5, 1.0, 0.5, 0.25, 0.25], repeat(0.5)
    )  # the second product takes 0.25 s
    monkeypatch.setattr(cost.time, "perf_counter", accumulate(steps).__next__)
    monkeypatch.setitem(cost.KERNEL_SIZES, "cpu", (64,))
    assert cost.peak_flops(CPU, torch.float32, seconds=3.0) == 2 * 64**3 / 0.25


def test_peak_memory_is_not_that_of_the_parent_process() -> None:
    ballast = torch.ones(2**28)  # 1 GiB
    assert decoding_cost.peak_memory_mb(CPU)["peak_rss_mb"] > 1024
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        found = process.submit(decoding_cost.peak_memory_mb, CPU).result()
    assert 50 < found["peak_rss_mb"] < 1024
    del ballast


def test_everything_is_measured_and_written(
    text: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    # here in this process, which takes a second where six fresh ones take a minute
    monkeypatch.setattr(benchmark, "in_fresh_process", lambda task, *arguments: task(*arguments))
    monkeypatch.setattr(benchmark, "SENTENCES", 5)
    monkeypatch.setitem(cost.KERNEL_SIZES, "cpu", (64,))
    monkeypatch.setitem(os.environ, "KINETO_LOG_LEVEL", "6")
    benchmark.main(options(text, "--models", "transformer", "--results", str(tmp_path / "b")))
    records = []
    for task in ("train", "profile", "translate"):
        content = json.loads((tmp_path / f"b_{task}.json").read_text())
        machine, *own = content["records"]
        assert {record["task"] for record in own} == {task} and content["table"]["rows"]
        records += own
    assert machine["threads"] == 1 and machine["torch"] == torch.__version__
    trained = [r for r in records if r["task"] == "train"]
    assert [r["dtype"] for r in trained] == ["fp32", "bf16"]
    for r in trained:
        assert r["batch"] == 100 and r["tgt_tokens_per_s"] > r["sentences_per_s"] > 0
        share = r["product_gflops_per_s"] / r["peak_gflops_per_s"]
        assert r["share_of_peak"] == pytest.approx(share)
    translated = [r for r in records if r["task"] == "translate"]
    searches = [(r["beam"], r["batch"], r["dtype"]) for r in translated]
    assert searches == list(product((1, 5), (1, 64), ("fp32", "bf16")))
    for r in translated:
        assert r["length"] == r["mean_length"] == 20
        assert r["tgt_tokens_per_s"] == pytest.approx(20 * r["sentences_per_s"])
    assert {r["kind"] for r in records if r["task"] == "profile"} == {*cost.KINDS, cost.REST}
    shown = capsys.readouterr().out
    for column in ("share of peak", "% of an update", "tokens each", "docs/speed.md"):
        assert column in shown


def test_a_measurement_has_a_process_of_its_own(
    text: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.setattr(benchmark, "BEAMS", (1,))
    monkeypatch.setitem(os.environ, "KINETO_LOG_LEVEL", "6")
    before = logging.root.manager.disable
    more = ("--models", "rnn", "--only", "translate", "--batches", "1")
    more += ("--dtypes", "fp32")
    benchmark.main(options(text, *more))
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| rnn")]
    assert len(rows) == 1
    assert benchmark.in_fresh_process(os.getpid) != os.getpid()
    assert logging.root.manager.disable == before  # silenced there, not here


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--models", "rnn,bahdanu"], "'bahdanu' is unknown; there are bahdanau"),
        (["--dtypes", "fp64"], "'fp64' is unknown; there are fp32, bf16"),
        (["--run", "nowhere"], "nowhere: no such run folder"),
        (["--text", "a.en", "b.fr"], "a.en"),
        (["--seconds", "-1"], "--seconds must not be negative"),
        (["--batches", "8,x"], "--batches 8,x: not numbers from 1 on"),
        (["--threads", "0"], "threads must be at least 1"),
        (["--device", "cuda:9"], "device=cuda:9"),
        (["widht=3"], "did you mean 'width'?"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_what_cannot_be_measured_is_refused_in_one_line(
    arguments: list[str], message: str, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmark"])
    monkeypatch.setitem(os.environ, "KINETO_LOG_LEVEL", "6")
    with pytest.raises(SystemExit) as ended:
        benchmark.main(arguments)
    assert ended.value.code == 1
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith("error: ") and message in last


def test_a_measuring_process_ends_with_the_one_that_wanted_it(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import multiprocessing, os, time\n"
        "from concurrent.futures import ProcessPoolExecutor\n"
        "from training.machine import begin_measuring_process\n"
        "if __name__ == '__main__':\n"
        "    spawn = multiprocessing.get_context('spawn')\n"
        "    pool = ProcessPoolExecutor(1, spawn, begin_measuring_process)\n"
        "    print(pool.submit(os.getpid).result(), flush=True)\n"
        "    pool.submit(time.sleep, 100).result()\n"
    )
    root = Path(__file__).resolve().parents[1]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    command = [sys.executable, str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as parent:
        child = int(parent.stdout.readline())
        os.kill(child, 0)  # it is there
        parent.kill()
    for _ in range(300):
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            break
        if (
            Path(f"/proc/{child}/stat").is_file()
            and ") Z " in Path(f"/proc/{child}/stat").read_text()
        ):
            break  # ended; nobody has asked for its status
        time.sleep(0.1)
    else:
        raise AssertionError("it goes on by itself")


PAGES = """
import resource, sys, torch
from cli import command
def main():
    torch.empty(2**24).fill_(1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(40):
        torch.empty(2**24).fill_(1)  # 64 MiB
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
(command(main) if sys.argv[1:] else main)()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="of glibc")
def test_commands_do_not_ask_the_system_for_the_same_memory_again_and_again() -> None:
    root = Path(__file__).resolve().parents[1]
    plain = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
    kept = {"MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_MMAP_MAX_": "0"}
    returned = {"MALLOC_TRIM_THRESHOLD_": "0", "MALLOC_MMAP_MAX_": "65536"}

    def pages(given: dict[str, str], *arguments: str) -> int:
        ran = subprocess.run(
            [sys.executable, "-c", PAGES, *arguments],
            env={**plain, **given, "PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            check=True,
        )
        return int(ran.stdout)

    each_time = pages({})  # no command
    assert each_time > 500  # pages of 2 MiB at the most
    # a few tensors are new: of a freed one, a part may have been taken meanwhile
    assert pages({}, "command") < each_time / 2
    assert pages(kept) < each_time / 2  # what a process started by a command has
    assert pages(returned, "command") > each_time / 2  # what the user has set stays
