"""What the cost of growing corpora is measured with is train.py's own start."""

import json
import sys
from pathlib import Path

import pytest
import toy

from scripts import benchmark_growth as growth

TINY = ["width=16", "threads=1", "tokenizer=word", "model=rnn", "training.batch_tokens=100"]


@pytest.fixture(autouse=True)
def untouched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of corpora, which is not the one that is measured with."""
    monkeypatch.setenv("SEQ2SEQ_CORPORA", str(tmp_path / "untouched"))
    return tmp_path / "untouched"


@pytest.fixture
def text(tmp_path: Path) -> list[str]:
    pairs = toy.pairs(120)
    return toy.write(tmp_path, train=pairs[:100], dev=pairs[100:])


def test_each_size_is_prepared_once_started_on_and_trained(
    text: list[str], tmp_path: Path, untouched: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    # here in this process, which takes a second where four fresh ones take twenty
    monkeypatch.setattr(growth, "in_fresh_process", lambda task, *arguments: task(*arguments))
    options = ["--sizes", "50,100", "--seconds", "0", "--results", str(tmp_path / "g.json")]
    growth.main([*options, *text, *TINY])
    content = json.loads((tmp_path / "g.json").read_text())
    machine, *records = content["records"]
    assert machine["processor"] and content["table"]["header"][0] == "pairs"
    assert [r["pairs"] for r in records] == [50, 100]
    for record in records:
        assert record["model"] == "models.rnn.RNN"
        assert record["tgt_tokens_per_s"] > record["sentences_per_s"] > 0
        assert 0 < record["train_own_mb"] < record["train_peak_rss_mb"]
        assert record["start_seconds"] > 0 and record["prepare_seconds"] > 0
    assert 0 < records[0]["disk_mb"] < records[1]["disk_mb"] < 1
    shown = capsys.readouterr().out
    assert "train tokens/s" in shown and "docs/speed.md" in shown
    assert not untouched.exists()


def test_the_generated_corpus_has_the_size_that_is_asked_for(tmp_path: Path) -> None:
    assert growth.settings(tmp_path, 77, []).data.sizes.train == 77
    assert growth.settings(tmp_path, 77, ["data=bible"]).data.max_pairs == 77


@pytest.mark.parametrize(
    "arguments, status, message",
    [
        (["--sizes", "10,x"], 2, "'10,x' is not a list of numbers"),
        (["--sizes", "0"], 2, "is not a list of numbers"),
        (["--seconds", "-1"], 1, "--seconds must not be negative"),
        (["widht=3"], 1, "did you mean 'width'?"),
        (["model=rnn", "data=files"], 1, "data=files needs the training text"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_one_line(
    arguments: list[str], status: int, message: str, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmark_growth"])
    monkeypatch.setattr(growth, "in_fresh_process", lambda task, *given: task(*given))
    with pytest.raises(SystemExit) as ended:
        growth.main(arguments)
    assert ended.value.code == status
    assert message in capsys.readouterr().err.strip().splitlines()[-1]
