"""Run folders: made whole, each by one training, held by one process; also several at once."""

import errno
import fcntl
import functools
import logging
import os
import threading
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
import torch
import toy
import yaml
from tensorboard.summary.writer.record_writer import RecordWriter
from trainings import TINY, Training

from data.tokenizer import Tokenizer, learn, learn_cached
from decoding.run import Run
from training import run_folder


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Tokenizer, Tokenizer]:
    monkeypatch.chdir(tmp_path)
    tokenizer = learn([src for src, _ in toy.pairs(20)], type="word", size=100)
    return tokenizer, tokenizer


def make(pair: tuple[Tokenizer, Tokenizer], name: str | None, **settings: int) -> Path:
    return run_folder.write("toy", "rnn", name, settings, ["a=1"], pair)


def test_trainings_of_the_same_moment_get_folders_of_their_own(
    pair: tuple[Tokenizer, Tokenizer],
) -> None:
    together = threading.Barrier(8)

    def begin(number: int) -> Path:
        together.wait()
        return make(pair, None, number=number)

    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(begin, range(8)))
    assert len(set(folders)) == 8
    for number, folder in enumerate(folders):
        assert yaml.safe_load((folder / "config.yaml").read_text()) == {"number": number}
    assert sorted(p.name for p in Path("runs/toy/rnn").iterdir()) == sorted(f.name for f in folders)


def test_of_trainings_that_want_one_name_one_gets_it(pair: tuple[Tokenizer, Tokenizer]) -> None:
    together = threading.Barrier(8)

    def begin(number: int) -> Path | str:
        together.wait()
        try:
            return make(pair, "mine", number=number)
        except ValueError as error:
            return str(error)

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(begin, range(8)))
    (winner,) = [n for n, result in enumerate(results) if isinstance(result, Path)]
    assert yaml.safe_load(Path("runs/toy/rnn/mine/config.yaml").read_text()) == {"number": winner}
    assert sum("exists and is not overwritten" in str(result) for result in results) == 7
    assert [p.name for p in Path("runs/toy/rnn").iterdir()] == ["mine"]


def test_a_folder_that_cannot_be_made_whole_is_not_made(
    pair: tuple[Tokenizer, Tokenizer], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match=r"could not be written \(No space left on device\)"):
        make(pair, "mine")
    assert list(Path("runs/toy/rnn").iterdir()) == []


@pytest.mark.parametrize("name", ["a/b", "..", ".", "", " ", "/tmp"])
def test_a_name_is_that_of_one_folder(name: str, pair: tuple[Tokenizer, Tokenizer]) -> None:
    with pytest.raises(ValueError, match="must be the name of one folder in runs/toy/rnn"):
        make(pair, name)
    assert not Path("runs").exists()


def test_where_there_are_no_locks_a_warning_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def unsupported(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with caplog.at_level(logging.WARNING), run_folder.locked(tmp_path):
        pass
    assert f"{tmp_path} cannot be locked" in caplog.text


def test_a_lock_is_given_back(tmp_path: Path) -> None:
    refused = pytest.raises(ValueError, match=f"is being trained.*process {os.getpid()} on")
    with run_folder.locked(tmp_path), refused, run_folder.locked(tmp_path):
        pass
    with run_folder.locked(tmp_path):
        pass


def test_curves_that_cannot_be_written_are_told_in_the_training_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with (
        pytest.raises(OSError, match="No space left"),
        run_folder.curves(tmp_path, first_step=0) as writer,
    ):
        writer.flush()
        monkeypatch.setattr(RecordWriter, "write", full)
        for step in range(100):
            writer.add_scalar("train/loss", 1.0, step)
            writer.flush()
    assert "Traceback" not in capfd.readouterr().err


def test_vocabularies_are_learnt_even_where_they_cannot_be_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sentences = [src for src, _ in toy.pairs(20)]
    (tmp_path / "file").touch()
    cache = tmp_path / "file" / "vocabularies"
    learnt = learn_cached(sentences, type="word", size=100, cache=cache)
    assert learnt.digest == learn(sentences, type="word", size=100).digest
    assert f"{cache}: the vocabulary could not be kept there" in caplog.text


def test_vocabularies_learnt_at_once_are_kept_whole(tmp_path: Path) -> None:
    sentences = [src for src, _ in toy.pairs(20)]
    with ThreadPoolExecutor(8) as pool:
        learnt = pool.map(
            lambda _: learn_cached(sentences, type="word", size=100, cache=tmp_path).digest,
            range(16),
        )
    assert len(set(learnt)) == 1
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".model"]


class Slowly(SimpleHTTPRequestHandler):
    """Serves a folder, so slowly that whoever comes later finds the transfer under way."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        time.sleep(0.5)
        super().do_GET()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def published(tmp_path: Path) -> Iterator[str]:
    """The URL of a corpus."""
    lines = "".join(f"{src}\t{tgt}\n" for src, tgt in toy.pairs(3000))
    with zipfile.ZipFile(tmp_path / "fra-eng.zip", "w") as archive:
        archive.writestr("fra.txt", lines)
    handler = functools.partial(Slowly, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/fra-eng.zip"
        server.shutdown()


def test_trainings_that_begin_at_once_share_corpus_and_vocabularies(
    tmp_path: Path, published: str
) -> None:
    """Three without a name, with nothing cached: each ends well in its own folder, all alike."""
    arguments = [*TINY, "model=rnn", "data=tatoeba", f"data.source={published}"]
    arguments.append("training.max_steps=10")
    with ExitStack() as stack:
        trainings = [stack.enter_context(Training(tmp_path, arguments)) for _ in range(3)]
        assert [training.end() for training in trainings] == [0, 0, 0], trainings[0].output
    assert Slowly.asked == ["/fra-eng.zip"]
    runs = list((tmp_path / "runs/tatoeba/rnn").iterdir())
    last = [torch.load(run / "checkpoints/last.pt", weights_only=True) for run in runs]
    assert len(last) == 3
    for other in last[1:]:
        assert other["digests"] == last[0]["digests"]
        assert all(torch.equal(w, other["weights"][n]) for n, w in last[0]["weights"].items())
    kept = (tmp_path / "corpora/vocabularies").iterdir()
    assert sorted(path.suffix for path in kept) == [".json", ".json", ".model", ".model"]
    assert not [path for path in tmp_path.rglob("*tmp*") if path.suffix != ".lock"]


def test_kept_checkpoints_are_found_together_and_in_their_order(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    (folder / "best.pt").touch()
    (tmp_path / "config.yaml").touch()
    run = Run(tmp_path)
    with pytest.raises(FileNotFoundError, match="no checkpoint 'kept'"):
        run.checkpoints("kept")
    for step in (900, 10000, 8100):
        (folder / f"step_{step}.pt").touch()
    kept = [folder / f"step_{step}.pt" for step in (900, 8100, 10000)]
    assert run.checkpoints("kept") == kept
    assert run.checkpoints(["best", "kept"]) == [folder / "best.pt", *kept]
    assert run.checkpoints("step_900") == kept[:1]
