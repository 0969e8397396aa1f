"""Sweeps in parallel, with the two launchers of docs/clusters.md, where they are installed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from trainings import TINY, corpus, finished

ROOT = Path(__file__).resolve().parent.parent.parent
ENDLESS = ["training.max_steps=1000000", "training.patience=null"]


def sweep(folder: Path, *arguments: str) -> subprocess.Popen:
    """A running sweep in a folder, in a group of processes of its own, as a terminal makes it."""
    return subprocess.Popen(
        [sys.executable, str(ROOT / "train.py"), "-m", *corpus(folder), *TINY, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "SEQ2SEQ_CORPORA": str(folder / "corpora")},
        stdout=(folder / "output").open("w"),
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def wait_for(folder: Path, pattern: str, count: int) -> Sequence[Path]:
    """Files, when there are so many of the pattern."""
    deadline = time.monotonic() + 600
    while len(found := list(folder.glob(pattern))) < count:
        assert time.monotonic() < deadline, (folder / "output").read_text()
        time.sleep(0.2)
    return found


def test_jobs_side_by_side_have_their_own_folders_and_logs(tmp_path: Path) -> None:
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher.joblib_launcher")
    joblib = ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    assert sweep(tmp_path, *joblib, "model=rnn,transformer", "seed=1,2").wait(900) == 0
    runs = list(tmp_path.glob("runs/files/*/*"))
    seen = []
    for run in runs:
        config = yaml.safe_load((run / "config.yaml").read_text())
        seen.append((config["chosen"]["model"], config["seed"]))
        written = (run / "train.log").read_text()
        assert written.count("parameters on cpu") == 1 and written.count("best dev BLEU") == 1
    assert sorted(seen) == [("rnn", 1), ("rnn", 2), ("transformer", 1), ("transformer", 2)]


def test_after_ctrl_c_no_job_is_left_and_each_can_go_on(tmp_path: Path) -> None:
    """Joblib ends its jobs at once, so that some cannot save before."""
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher.joblib_launcher")
    joblib = ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    running = sweep(tmp_path, *joblib, "model=rnn", "seed=1,2,3", *ENDLESS)
    saved = wait_for(tmp_path, "runs/files/rnn/*/checkpoints/last.pt", 2)
    os.killpg(running.pid, signal.SIGINT)
    assert running.wait(300) == 130
    output = (tmp_path / "output").read_text()
    assert "error: interrupted" in output and "Traceback" not in output
    for last in saved:
        finished(tmp_path, f"resume={last.parent.parent}", "training.max_steps=1")


def test_a_job_that_is_preempted_goes_on_where_it_was(tmp_path: Path) -> None:
    pytest.importorskip("hydra_plugins.hydra_submitit_launcher.submitit_launcher")
    submitit = ("hydra/launcher=submitit_local", "hydra.launcher.timeout_min=30")
    name = ("model=rnn", "name=first", "resume=auto", "seed=1")
    running = sweep(tmp_path, *submitit, *name, "training.max_steps=1000", "training.patience=null")
    (last,) = wait_for(tmp_path, "runs/files/rnn/first/checkpoints/last.pt", 1)
    (lock,) = wait_for(tmp_path, "runs/files/rnn/first/.lock", 1)
    os.kill(int(lock.read_text().split()[1]), signal.SIGUSR2)  # as submitit tells a job of it
    assert running.wait(900) == 0, (tmp_path / "output").read_text()
    written = (last.parent.parent / "train.log").read_text()
    assert written.count("parameters on cpu") == 2 and "step 1000" in written
    assert written.count("step 10:") == 1  # it did not begin anew
