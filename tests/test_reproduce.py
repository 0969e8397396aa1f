"""An experiment is reproduced by one command, which goes on where it was interrupted."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import toy
from test_plot_scripts import failure
from trainings import TINY, corpus

from cli import check_overrides, scaled
from scripts import reproduce

ROOT = Path(__file__).resolve().parents[1]


def plan(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Makes small trainings the experiment."""
    short = ["+experiment=bottleneck", "training.max_steps=10"]
    trainings = [("rnn", name, short) for name in names]
    show = ["scripts.plot_bleu_by_length", "--edges", "4", "--minimum", "1"]
    small = reproduce.Plan("files", trainings, ["test", "dev"], ["ter=false"], show)
    monkeypatch.setitem(reproduce.PLANS, "bottleneck", small)


def ended(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as end:
        reproduce.main(["bottleneck", *arguments])
    return end.value.code


class Ended:
    """A command that has ended, with its status and what it said."""

    def __init__(self, returncode: int = 0, said: str = "") -> None:
        self.returncode, self.said = returncode, said

    def __enter__(self) -> "Ended":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def communicate(self) -> tuple[None, str]:
        return None, self.said


def test_models_are_trained_evaluated_and_compared(monkeypatch, tmp_path, capfd) -> None:
    pairs = toy.pairs(100)
    files = toy.write(tmp_path, train=pairs[:60], dev=pairs[60:80], test=pairs[80:])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("SEQ2SEQ_CORPORA", str(tmp_path / "corpora"))
    plan(monkeypatch, "a")
    tiny = [setting for setting in TINY if "max_steps" not in setting]
    assert ended([*files, *tiny, "--name", "toy"]) == 0
    assert "| sentences |" in capfd.readouterr().out
    run = tmp_path / "runs/files/rnn/toy-a"
    for split in ("test", "dev"):
        assert (run / "evaluation" / split / "scores.json").is_file()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """The commands that are called; they leave the files that the real ones leave."""
    called: list[list[str]] = []

    def call(arguments: list[str], **_: object) -> Ended:
        arguments = [Path(arguments[1]).name, *arguments[2:]]
        called.append(arguments)
        given = dict(a.split("=", 1) for a in arguments if "=" in a)
        if given.get("name", "").endswith("bad"):
            return Ended(1, "some lines\nerror: the reason")
        if arguments[0] == "train.py":
            file = tmp_path / f"runs/files/{given['model']}/{given['name']}/checkpoints/best.pt"
        elif arguments[0] == "evaluate.py":
            file = tmp_path / given["run"] / "evaluation" / given["split"] / "scores.json"
        else:
            return Ended()
        file.parent.mkdir(parents=True, exist_ok=True)
        if arguments[0] == "evaluate.py":
            file.write_text(json.dumps({"overrides": arguments[2:]}))
        elif not file.exists():
            file.touch()
        return Ended()

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(reproduce, "POLL", 0.01)
    monkeypatch.setattr(reproduce.subprocess, "run", call)
    monkeypatch.setattr(reproduce.subprocess, "Popen", call)
    return called


def test_what_is_there_is_not_done_again(calls, monkeypatch, tmp_path) -> None:
    plan(monkeypatch, "a", "b")
    assert ended(["data.x=y", "--budget", "0.5", "--results", "r.json"]) == 0
    trained = [call for call in calls if call[0] == "train.py"]
    common = ["+experiment=bottleneck", "model=rnn", "experiment.budget=0.5", "resume=auto"]
    for call, name in zip(sorted(trained), ("a", "b"), strict=True):
        assert {*common, f"name=bottleneck-{name}", "data.x=y"} <= set(call)
    folders = ["runs/files/rnn/bottleneck-a", "runs/files/rnn/bottleneck-b"]
    assert calls[-1][:4] == ["-m", "scripts.plot_bleu_by_length", *folders]
    assert calls[-1][-2:] == ["--results", "r.json"]
    assert sum(call[0] == "evaluate.py" for call in calls) == 4
    calls.clear()
    (tmp_path / folders[1] / "evaluation/dev/scores.json").unlink()
    best = tmp_path / folders[0] / "checkpoints/best.pt"
    later = time.time() + 100  # this model has been trained on since it was evaluated
    os.utime(best, (later, later))
    assert ended([]) == 0
    evaluated = sorted(call[1:3] for call in calls if call[0] == "evaluate.py")
    assert evaluated == [
        [f"run={folders[0]}", "split=dev"],
        [f"run={folders[0]}", "split=test"],
        [f"run={folders[1]}", "split=dev"],
    ]
    calls.clear()
    os.utime(best, (1, 1))
    other = tmp_path / folders[1] / "evaluation/test/scores.json"  # of someone's own evaluation
    other.write_text(json.dumps({"overrides": ["split=test", "checkpoint=last"]}))
    assert ended([]) == 0
    evaluated = [call[1:3] for call in calls if call[0] == "evaluate.py"]
    assert evaluated == [[f"run={folders[1]}", "split=test"]]


def test_a_model_that_cannot_be_trained_is_told_and_the_others_go_on(
    calls, monkeypatch, capsys
) -> None:
    plan(monkeypatch, "bad", "good")
    assert ended([]) == 1
    *told, message = capsys.readouterr().err.strip().splitlines()
    assert "train.py" in message and "name=bottleneck-bad" in message
    assert "error: the reason" in message and "some lines" not in message
    assert any(call[0] == "evaluate.py" and "bottleneck-good" in call[1] for call in calls)
    assert sorted(line.split(" (")[0] for line in told) == [
        "runs/files/rnn/bottleneck-bad: failed",
        "runs/files/rnn/bottleneck-good: done",
    ]
    assert [line[-8:] for line in told] == ["(1 of 2)", "(2 of 2)"]
    assert not any("plot_bleu_by_length" in part for call in calls for part in call)


def test_a_kill_lets_the_trainings_save_and_end(tmp_path: Path) -> None:
    settings = [*corpus(tmp_path), *TINY, "training.max_steps=100000", "training.patience=null"]
    run = tmp_path / "runs/files/rnn/bottleneck-all"
    program = [sys.executable, "-m", "scripts.reproduce", "bottleneck", "--jobs", "1"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    piped = {"stderr": subprocess.PIPE, "text": True, "cwd": tmp_path, "env": environment}
    with subprocess.Popen([*program, "data=files", *settings], **piped) as process:
        deadline = time.monotonic() + 120
        while not (run / "checkpoints/last.pt").is_file() and time.monotonic() < deadline:
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 143
    assert said.splitlines()[-1] == "error: interrupted; the same command goes on"
    assert "stopped and saved" in (run / "train.log").read_text("utf-8")


def test_progress_is_the_share_of_updates_that_have_been_measured(tmp_path: Path) -> None:
    job = reproduce.Job(tmp_path, [], {})
    assert job.done == 0
    (tmp_path / "config.yaml").write_text("training: {max_steps: 400}")
    (tmp_path / "train.log").write_text("10:00 INFO a\n10:01 INFO step 100: loss 1\n")
    assert job.done == 0.25
    with (tmp_path / "train.log").open("a") as log:
        log.write("10:02 INFO step 300: loss 1\n10:03 WARNING other\n")
    assert job.done == 0.75


def test_strange_arguments_are_refused(capsys) -> None:
    assert "'nonsense'" in failure(reproduce.main, ["bottleneck", "nonsense"], capsys)
    with pytest.raises(SystemExit):
        reproduce.main(["unknown"])
    assert "invalid choice" in capsys.readouterr().err


@pytest.mark.parametrize("name", list(reproduce.PLANS))
def test_every_plan_is_an_experiment_that_can_be_composed(name: str) -> None:
    """It would end the program, or raise an error, otherwise."""
    for model, _, overrides in reproduce.PLANS[name].trainings:
        check_overrides("train", [*overrides, f"model={model}", "experiment.budget=0.1"])


def test_a_budget_is_a_factor_of_the_updates() -> None:
    assert [scaled(6000, budget) for budget in (1, 1.0, 0.25, 2, 1e-9)] == [
        6000,
        6000,
        1500,
        12000,
        1,
    ]
    for budget in (0, -1, float("inf"), float("nan"), "x", None, True):
        with pytest.raises(ValueError, match=r"experiment\.budget must be a number above 0"):
            scaled(6000, budget)
