"""Trainings that are killed, stopped or run out of disk, and go on: as if nothing had been."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from trainings import (
    HALF_WRITTEN,
    TINY,
    Training,
    corpus,
    differences,
    pairs_by_step,
)

RUN = "runs/files/rnn"


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("work")


@pytest.fixture(scope="module")
def overrides(workplace: Path) -> list[str]:
    return [*corpus(workplace), *TINY]


@pytest.fixture(scope="module")
def whole(workplace: Path, overrides: list[str]) -> Iterator[Training]:
    """A training that nothing interrupts, as runs/files/rnn/whole."""
    with Training(workplace, [*overrides, "name=whole", "model=rnn"], marked=True) as training:
        assert training.end() == 0, training.output
        yield training


def interrupted(
    workplace: Path,
    overrides: list[str],
    name: str,
    blows: list[tuple[str, int, int]],
    again: str,
) -> list[Training]:
    """A training that gets a signal after each of the marks, and goes on: all its lives."""
    lives = []
    command = [*overrides, f"name={name}", "model=rnn"]
    for mark, times, signal_number in [*blows, ("", 0, 0)]:
        arguments = [f"resume={RUN}/{name}"] if lives else command
        if again == "the same command":
            arguments = [*command, "resume=auto"]
        with Training(workplace, arguments, marked=True, pause=(mark, times)) as life:
            lives.append(life)
            if mark:
                life.wait_for(mark, times)
                life.send(signal_number)
                life.go()
            expected = 0
            if mark:
                expected = (
                    -signal_number if signal_number == signal.SIGKILL else 128 + signal_number
                )
            assert life.end() == expected, life.output
    return lives


def test_a_killed_training_goes_on_as_if_nothing_had_been(
    workplace: Path, overrides: list[str], whole: Training
) -> None:
    kill = signal.SIGKILL
    blows = [
        ("update 3", 1, kill),  # before there is a checkpoint
        ("validation 20", 1, kill),
        (HALF_WRITTEN.format("last"), 2, kill),  # of step 20, in the life after the first
        ("update 27", 1, kill),
    ]
    lives = interrupted(workplace, overrides, "killed", blows, "the same command")
    assert lives[2].marks[-1] == HALF_WRITTEN.format("last")
    assert list(differences(workplace / RUN / "whole", workplace / RUN / "killed")) == []
    assert pairs_by_step(lives) == pairs_by_step([whole])


def test_a_training_that_is_stopped_saves_first_and_says_how_to_go_on(
    workplace: Path, overrides: list[str], whole: Training
) -> None:
    blows = [
        ("update 7", 1, signal.SIGTERM),
        ("validation 10", 1, signal.SIGINT),
        (HALF_WRITTEN.format("best"), 1, signal.SIGHUP),
    ]
    lives = interrupted(workplace, overrides, "stopped", blows, "resume=")
    for life in lives[:-1]:
        assert "stopping after this step" in life.output
        said = f"stopped and saved; go on with: python train.py resume={RUN}/stopped"
        assert life.output.splitlines()[-1] == said
    assert list(differences(workplace / RUN / "whole", workplace / RUN / "stopped")) == []
    assert pairs_by_step(lives) == pairs_by_step([whole])
    made = sorted(int(m.split()[1]) for life in lives for m in life.marks if m[:3] == "upd")
    assert made == list(range(1, 41))  # no update was done again


def test_a_full_disk_leaves_the_checkpoint_before_and_says_how_to_go_on(
    workplace: Path, overrides: list[str], whole: Training
) -> None:
    run = workplace / RUN / "full"
    lives = []
    command = [*overrides, "name=full", "model=rnn"]
    with Training(workplace, command, pause=("update 13", 1)) as life:
        life.wait_for("update 13")
        life.send(signal.SIGTERM)
        life.go()
        assert life.end() == 143
        lives.append(life)
    kept = {p.name: p.read_bytes() for p in (run / "checkpoints").iterdir()}
    largest = len(kept["last.pt"]) - 1  # no checkpoint fits
    with Training(workplace, [f"resume={RUN}/full"], marked=True, largest_file=largest) as life:
        assert life.end() == 1
        lives.append(life)
    last = life.output.splitlines()[-1]
    assert last.startswith(f"error: {RUN}/full/checkpoints/") and "File too large" in last
    assert last.endswith(f"go on with: python train.py resume={RUN}/full")
    assert "Traceback" not in life.output
    assert {p.name: p.read_bytes() for p in (run / "checkpoints").iterdir()} == kept
    with Training(workplace, [f"resume={RUN}/full"], marked=True) as life:
        assert life.end() == 0
        lives.append(life)
    assert list(differences(workplace / RUN / "whole", run)) == []
    assert pairs_by_step(lives) == pairs_by_step([whole])


def test_no_run_is_trained_by_two_processes_at_once(workplace: Path, overrides: list[str]) -> None:
    for arguments in ([*overrides, "name=held", "model=rnn"], [f"resume={RUN}/held"]):
        with Training(workplace, arguments, pause=("update 11", 1)) as first:
            first.wait_for("update 11")
            with Training(workplace, [f"resume={RUN}/held"]) as second:
                assert second.end() == 1
                assert second.output.splitlines()[-1].startswith(
                    f"error: {RUN}/held is being trained by another process (process "
                    f"{first.process.pid} on "
                )
            first.send(signal.SIGKILL)  # which frees the run
            first.end()


def test_the_same_command_goes_on_only_with_the_same_settings(
    workplace: Path, overrides: list[str], whole: Training
) -> None:
    for arguments, message in (
        (["name=whole", "training.batch_tokens=160"], "training.batch_tokens cannot change"),
        ([], "give name="),
    ):
        with Training(workplace, [*overrides, "model=rnn", "resume=auto", *arguments]) as training:
            assert training.end() == 1
            assert message in training.output.splitlines()[-1]
