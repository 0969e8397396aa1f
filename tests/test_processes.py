"""Several processes that train one model: the results of one process, one folder, one voice."""

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from trainings import FAILS_AT, TINY, Training, corpus, finished, scalars, several

from training.processes import Processes

# Adam divides a gradient by its size. Where a gradient is nothing but rounding, as that of the bias
# of the keys in attention is, the result is noise, unless this keeps it small.
COMPARABLE = ["training.dropout=0", "+training.optimizer.eps=1e-4", "training.max_steps=50"]
RUNS = Path("runs/files")


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("work")


@pytest.fixture(scope="module")
def overrides(workplace: Path) -> list[str]:
    return [*corpus(workplace), *TINY, *COMPARABLE]


@pytest.fixture(scope="module")
def alone(workplace: Path, overrides: list[str]) -> Path:
    """The run of one process."""
    finished(workplace, *overrides, "model=rnn", "name=alone")
    return workplace / RUNS / "rnn/alone"


def ends(processes: Sequence[Training]) -> list[int]:
    return [process.end() for process in processes]


def check_equal_up_to_rounding(a: Path, b: Path) -> None:
    contents = [torch.load(r / "checkpoints/last.pt", weights_only=True) for r in (a, b)]
    for name, weight in contents[0]["weights"].items():
        torch.testing.assert_close(contents[1]["weights"][name], weight, rtol=0, atol=1e-5)
    for counter, value in contents[0]["progress"].items():
        assert contents[1]["progress"][counter] == pytest.approx(value, rel=1e-5), counter
    assert contents[0]["batches"] == contents[1]["batches"]
    curves, others = scalars(a), scalars(b)
    assert curves.keys() == others.keys()
    for tag in curves:
        assert [s for s, _ in curves[tag]] == [s for s, _ in others[tag]], tag
        assert [v for _, v in curves[tag]] == pytest.approx([v for _, v in others[tag]], rel=1e-4)


def test_each_process_takes_a_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    second, alone = Processes(rank=5, count=8, local_rank=1), Processes()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert (second.device("auto"), second.device("cpu"), alone.device("cuda:3")) == (
        "auto",
        "cpu",
        "cuda:3",
    )
    taken = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "set_device", taken.append)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert second.device("auto") == second.device("cuda") == "cuda:1" and taken == [1, 1]
    with pytest.raises(ValueError, match="use auto, cuda or cpu"):
        second.device("cuda:0")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ValueError, match=r"1 GPUs are not enough.*--nproc_per_node"):
        second.device("auto")


def test_each_process_draws_its_own_random_numbers_which_depend_on_the_step_alone() -> None:
    def drawn(rank: int, step: int) -> list[float]:
        torch.manual_seed(7)
        Processes(rank, 3).seed(7, step)
        return torch.rand(4).tolist()

    assert drawn(0, 1) == drawn(0, 2)  # the first goes on with the stream that checkpoints hold
    others = [drawn(rank, step) for rank in (1, 2) for step in (1, 2)]
    assert len({tuple(numbers) for numbers in [drawn(0, 1), *others]}) == 5
    assert drawn(2, 2) == others[-1]


def test_torchrun_trains_what_one_process_trains(
    workplace: Path, overrides: list[str], alone: Path
) -> None:
    train = Path(__file__).resolve().parent.parent / "train.py"
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2"]
    done = subprocess.run(
        [*torchrun, str(train), *overrides, "model=rnn", "name=torchrun"],
        cwd=workplace,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    check_equal_up_to_rounding(alone, workplace / RUNS / "rnn/torchrun")
    assert done.stderr.count("2 processes -> runs/files/rnn/torchrun") == 1
    assert done.stderr.count("step 50") == 1
    assert len(list((workplace / RUNS / "rnn/torchrun").glob("events*"))) == 1


def test_a_training_goes_on_with_another_number_of_processes(
    workplace: Path, overrides: list[str], alone: Path
) -> None:
    """Two processes, then one, then three: more than some batches have rows."""
    run = workplace / RUNS / "rnn/changing"
    arguments = [*overrides, "model=rnn", "name=changing"]
    with several(workplace, arguments, 2, pause=("update 13", 1)) as two:
        two[1].wait_for("update 13")
        two[1].send(signal.SIGINT)  # one is asked to stop, all stop
        for process in two:
            process.go()
        assert ends(two) == [130, 130]
        assert "go on with: python train.py resume=runs/files/rnn/changing" in two[0].output
        assert two[1].output == ""
    with Training(workplace, [f"resume={run}"], pause=("update 31", 1)) as one:
        one.wait_for("update 31")
        one.send(signal.SIGTERM)
        one.go()
        assert one.end() == 143
    with several(workplace, [f"resume={run}"], 3) as three:
        assert ends(three) == [0, 0, 0], three[0].output
    check_equal_up_to_rounding(alone, run)


def test_several_processes_stop_early_together_however_uneven_the_data(
    workplace: Path, overrides: list[str]
) -> None:
    early = [
        "model=rnn",
        "training.patience=1",
        "training.learning_rate=0",
        "training.accumulate=3",
    ]
    finished(workplace, *overrides, *early, "name=early-alone")
    with several(workplace, [*overrides, *early, "name=early"], 2) as two:
        assert ends(two) == [0, 0], two[0].output
        assert "stopping early" in two[0].output and two[1].output == ""
    run = workplace / RUNS / "rnn/early"
    content = torch.load(run / "checkpoints/last.pt", weights_only=True)
    assert content["progress"]["step"] == 20 and content["progress"]["stopped_early"]
    check_equal_up_to_rounding(workplace / RUNS / "rnn/early-alone", run)


def test_an_error_in_one_process_ends_all_with_one_message(
    workplace: Path, overrides: list[str]
) -> None:
    arguments = [*overrides, "model=rnn", "name=failing"]
    with several(workplace, arguments, 2, environment={1: {FAILS_AT: "5"}}) as two:
        assert ends(two) == [1, 1]
        said = [line for t in two for line in t.output.splitlines() if line.startswith("error")]
        assert said == ["error: process 1 of 2: no update 5 here"]
    with several(workplace, arguments, 2) as two:  # what is wrong with the settings
        assert ends(two) == [1, 1]
        assert "name=" in two[0].output and two[1].output == ""


def test_the_loss_of_a_process_is_told(workplace: Path, overrides: list[str]) -> None:
    arguments = [*overrides, "model=rnn", "name=lost"]
    with several(workplace, arguments, 2, pause=("update 3", 1)) as two:
        two[1].wait_for("update 3")
        two[1].send(signal.SIGKILL)
        two[0].go()
        assert ends(two) == [1, -signal.SIGKILL]
        last = two[0].output.splitlines()[-1]
        assert last.startswith("error: ") and "another process of this training has ended" in last
        assert last.endswith("python train.py resume=runs/files/rnn/lost")
