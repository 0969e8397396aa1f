"""Checkpoints: all or nothing, safe to load, averaged by the mean."""

import os
from pathlib import Path

import pytest
import torch
from architectures import VOCABULARY, config, small

from models import checkpoint

DIGESTS = ["of the source", "of the target"]
IDENTITY = {"model": config("rnn"), "vocabularies": [VOCABULARY, VOCABULARY], "digests": DIGESTS}


def content(seed: int = 0) -> dict:
    return {**IDENTITY, "weights": small("rnn", seed=seed).state_dict()}


def test_a_failed_write_leaves_the_earlier_checkpoint_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "last.pt"
    checkpoint.save(path, content(1))
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left.*earlier checkpoint is untouched"):
        checkpoint.save(path, content(2))
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["last.pt"]


def test_what_a_killed_process_left_half_written_is_cleared_away(tmp_path: Path) -> None:
    checkpoint.save(tmp_path / "last.pt", content())
    whole = (tmp_path / "last.pt").read_bytes()
    (tmp_path / ".last.pt.123.tmp").write_bytes(whole[:1000])
    (tmp_path / ".step_5.pt.7.tmp").write_bytes(b"")
    checkpoint.clear_unfinished(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["last.pt"]
    assert (tmp_path / "last.pt").read_bytes() == whole


@pytest.mark.parametrize("keep", [0, 10, 1000, -1])
def test_a_truncated_file_is_named_as_damaged(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "best.pt"
    checkpoint.save(path, content())
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"best\.pt: damaged"):
        checkpoint.load(path)


def test_other_files_are_refused(tmp_path: Path) -> None:
    torch.save({"something": 1}, tmp_path / "other.pt")
    with pytest.raises(ValueError, match=r"other\.pt: not a checkpoint"):
        checkpoint.load(tmp_path / "other.pt")
    with pytest.raises(FileNotFoundError, match="missing"):
        checkpoint.load(tmp_path / "missing.pt")


def test_code_in_a_checkpoint_is_not_run(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple:
            return os.mkdir, (str(tmp_path / "run"),)

    torch.save({**content(), "extra": Evil()}, tmp_path / "evil.pt")
    with pytest.raises(ValueError, match=r"evil\.pt"):
        checkpoint.load(tmp_path / "evil.pt")
    assert not (tmp_path / "run").exists()


def test_several_checkpoints_are_averaged(tmp_path: Path) -> None:
    paths = [tmp_path / f"{seed}.pt" for seed in range(3)]
    for seed, path in enumerate(paths):
        checkpoint.save(path, content(seed))
    mean = dict(checkpoint.restore(paths, DIGESTS).named_parameters())
    for name, parameter in mean.items():
        parts = torch.stack([content(seed)["weights"][name] for seed in range(3)])
        torch.testing.assert_close(parameter.data, parts.mean(0))


def test_other_architectures_cannot_be_averaged(tmp_path: Path) -> None:
    checkpoint.save(tmp_path / "a.pt", content())
    other = config("rnn", hidden=8)
    weights = small("rnn", hidden=8).state_dict()
    checkpoint.save(tmp_path / "b.pt", {**IDENTITY, "model": other, "weights": weights})
    with pytest.raises(ValueError, match=r"b\.pt: another architecture"):
        checkpoint.restore([tmp_path / "a.pt", tmp_path / "b.pt"], DIGESTS)


def test_other_vocabularies_than_those_of_training_are_reported(tmp_path: Path) -> None:
    checkpoint.save(tmp_path / "a.pt", content())
    with pytest.raises(ValueError, match=r"a\.pt: trained with other vocabularies"):
        checkpoint.restore([tmp_path / "a.pt"], ["of the source", "of another"])
