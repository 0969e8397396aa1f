"""Trainings killed and stopped at many moments, for every architecture: `make test-long`.

Each life is `python train.py` started from nothing. The moments are drawn from a seed.
"""

import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from architectures import NAMES
from test_processes import COMPARABLE, check_equal_up_to_rounding
from trainings import HALF_WRITTEN, TINY, Training, corpus, differences, pairs_by_step, several

LONGER = [*TINY, "training.max_steps=800", "training.patience=null"]
KILLS, STOPS = 20, 8
MEANING = {
    "update": "update",
    "pairs": "update",
    "validation": "validation",
    "figures": "validation",
    "half": "checkpoint",
}
every_architecture = pytest.mark.parametrize("name", NAMES)


def strike(life: Training, kind: str, draw: random.Random, number: int) -> str:
    """Sends a signal at some moment of a kind; what it hit."""
    if kind == "any time":
        time.sleep(draw.uniform(0, 4))
    elif kind == "update":
        first = int(life.wait_for_any("update").split()[1])
        life.wait_for(f"update {first + draw.randrange(15)}")
        time.sleep(draw.uniform(0, 0.02))
    elif kind == "validation":
        life.wait_for_any("validation")
        time.sleep(draw.uniform(0, 0.1))
    else:
        life.wait_for(*life.pause)
    hit = MEANING[life.marks[-1].split()[0]] if life.marks else "before the first update"
    life.send(number)
    life.go()
    # by a signal; saved; stopped before the training had begun; the training was at its end
    assert life.end() in (-number, 128 + number, 130, 0), life.output
    return hit


def survive(
    folder: Path, arguments: list[str], run: Path, number: int, times: int, seed: int
) -> list[Training]:
    """A training that gets so many signals, with what they hit printed: all its lives."""
    draw = random.Random(seed)
    lives, hit = [], Counter()
    for strikes_left in range(times, -1, -1):
        if not (run / "config.yaml").exists():
            command = arguments
        elif draw.random() < 0.5:
            command = [f"resume={run}"]
        else:
            command = [*arguments, "resume=auto"]
        kind = draw.choice(["any time", *2 * ("update", "validation", "save")])
        pause = ("", 0)
        if kind == "save" and strikes_left:
            pause = (HALF_WRITTEN.format("last"), draw.choice([1, 2]))
        with Training(folder, command, marked=True, pause=pause, command=True) as life:
            lives.append(life)
            if strikes_left:
                hit[strike(life, kind, draw, number)] += 1
            else:
                assert life.end() == 0, life.output
    print(f"{run.parent.name}: {signal.Signals(number).name} hit {dict(hit)}")
    return lives


@every_architecture
def test_twenty_kills_change_nothing(name: str, tmp_path: Path) -> None:
    arguments = [*corpus(tmp_path), *LONGER, f"model={name}"]
    runs = tmp_path / "runs/files" / name
    with Training(tmp_path, [*arguments, "name=whole"], marked=True, command=True) as whole:
        lives = survive(
            tmp_path, [*arguments, "name=killed"], runs / "killed", signal.SIGKILL, KILLS, seed=1
        )
        assert whole.end(600) == 0
    assert list(differences(runs / "whole", runs / "killed")) == []
    assert pairs_by_step(lives) == pairs_by_step([whole])


@every_architecture
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stops_change_nothing(name: str, number: int, tmp_path: Path) -> None:
    arguments = [*corpus(tmp_path), *LONGER, f"model={name}"]
    runs = tmp_path / "runs/files" / name
    with Training(tmp_path, [*arguments, "name=whole"], marked=True, command=True) as whole:
        lives = survive(
            tmp_path, [*arguments, "name=stopped"], runs / "stopped", number, STOPS, seed=2
        )
        assert whole.end(600) == 0
    assert list(differences(runs / "whole", runs / "stopped")) == []
    assert pairs_by_step(lives) == pairs_by_step([whole])


@every_architecture
def test_processes_may_be_lost_and_their_number_may_change(name: str, tmp_path: Path) -> None:
    """Of one to three processes, one is killed, six times; the result is that of one process."""
    arguments = [*corpus(tmp_path), *TINY, *COMPARABLE, f"model={name}"]
    runs = tmp_path / "runs/files" / name
    with Training(tmp_path, [*arguments, "name=alone"]) as alone:
        assert alone.end() == 0
    draw = random.Random(3)
    resumable = [*arguments, "name=several", "resume=auto"]
    for _ in range(6):
        with several(tmp_path, resumable, draw.choice([1, 2, 3]), marked=True) as processes:
            victim = draw.choice(processes)
            victim.wait_for_any("update")
            time.sleep(draw.uniform(0, 0.5))
            victim.send(signal.SIGKILL)
            assert all(process.end() != 0 for process in processes)
    with several(tmp_path, resumable, 2) as processes:
        assert [process.end() for process in processes] == [0, 0]
    check_equal_up_to_rounding(runs / "alone", runs / "several")
