"""What was measured is kept with its origin, and the documents say nothing else."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml
from test_plot_scripts import failure, make_run

from decoding.run import Run
from evaluation.moses import moses_bleu, tokens
from models import checkpoint as checkpoints
from scripts import compare_seeds, readme_tables
from training.machine import timed

ROOT = Path(__file__).resolve().parents[1]


# --- documents ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["README.md", *(f"docs/{p.name}" for p in ROOT.glob("docs/*.md"))])
def test_tables_of_the_documents_are_those_of_the_results(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    assert readme_tables.with_tables(text, ROOT) == text


def test_all_kept_results_are_shown_and_say_where_they_come_from() -> None:
    documents = [ROOT / "README.md", *ROOT.glob("docs/*.md")]
    shown = set(re.findall(r"<!-- (results/\S+) -->", " ".join(p.read_text() for p in documents)))
    assert shown == {f"results/{path.name}" for path in ROOT.glob("results/*.json")}
    for path in ROOT.glob("results/*.json"):
        content = json.loads(path.read_text("utf-8"))
        assert content["command"].startswith("python -m scripts.") and content["records"]
        for run in content["runs"]:
            assert run["overrides"] and type(run["seed"]) is int and run["step"] > 0
            assert run["seconds"] > 0 and run["machine"]["processor"] and run["versions"]["torch"]
        known = " ".join(f"/{run['run']}/" for run in content["runs"])
        for named in filter(None, (record.get("run") for record in content["records"])):
            assert named == "(none)" or all(f"/{run}/" in known for run in named.split(" + ")), path


def test_a_table_is_put_where_its_mark_stands_and_nothing_else_changes(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    table = {"header": ["model", "BLEU"], "rows": [["rnn", "1.0"], ["bahdanau", "22.5"]]}
    (tmp_path / "results" / "a.json").write_text(json.dumps({"table": table}))
    mark = "<!-- results/a.json -->\n"
    text = f"before\n\n{mark}| old | x |\n| --- | --- |\n\nafter\n| other | table |\n"
    changed = readme_tables.with_tables(text, tmp_path)
    rows = [
        "| model    | BLEU |",
        "| -------- | ---: |",
        "| rnn      |  1.0 |",
        "| bahdanau | 22.5 |",
    ]
    assert changed == "before\n\n" + mark + "\n".join(rows) + "\n\nafter\n| other | table |\n"
    assert readme_tables.with_tables(changed, tmp_path) == changed
    new = readme_tables.with_tables(f"{mark}\nText that follows.\n", tmp_path)
    assert new == f"{mark}\n" + "\n".join(rows) + "\n\nText that follows.\n"
    (tmp_path / "results" / "c.json").write_text("{}")
    with pytest.raises(ValueError, match=r"results/c\.json: not a file of results"):
        readme_tables.with_tables("<!-- results/c.json -->\n", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"results/b\.json"):
        readme_tables.with_tables("<!-- results/b.json -->\n", tmp_path)


# --- runs of several seeds ----------------------------------------------------------------------


def seeded(folder: Path, seed: int, scores: dict[str, float], **settings) -> Path:
    """A trained and evaluated run."""
    make_run(folder, **settings)
    config = yaml.safe_load((folder / "config.yaml").read_text()) | {
        "seed": seed,
        "name": folder.name,
    }
    (folder / "config.yaml").write_text(yaml.dump(config))
    (folder / "overrides.yaml").write_text(yaml.dump([f"seed={seed}", "data.source=/some/where"]))
    (folder / "checkpoints").mkdir()
    progress = {"step": 7, "best_step": 5, "tgt_tokens": 900}
    identity = {"model": {}, "vocabularies": [4, 4], "digests": ["a", "b"], "weights": {}}
    checkpoints.save(folder / "checkpoints" / "last.pt", {**identity, "progress": progress})
    with timed(folder, torch.device("cpu")):
        pass
    for split, score in scores.items():
        place = folder / "evaluation" / split
        place.mkdir(parents=True)
        bleu = {"score": score, "signature": "s"}
        about = {"parameters": 1000, "by_length": [], "checkpoint": "kept"}
        (place / "scores.json").write_text(json.dumps({"bleu": bleu, **about}))
    return folder


def test_seeds_are_one_row_with_mean_and_deviation(tmp_path: Path, capsys, monkeypatch) -> None:
    runs = [
        seeded(tmp_path / "rnn" / "a", 1, {"test": 10.0, "dev": 1.0}, model="rnn"),
        seeded(tmp_path / "rnn" / "b", 2, {"test": 12.0, "dev": 2.0}, model="rnn"),
        seeded(tmp_path / "rnn" / "c", 4, {"test": 14.0, "dev": 6.0}, model="rnn"),
        seeded(tmp_path / "x" / "a", 1, {"test": 30.0, "dev": 3.0}, model="bahdanau"),
    ]
    results = tmp_path / "kept" / "r.json"
    arguments = [*map(str, runs), "--splits", "test,dev", "--results", str(results)]
    monkeypatch.setattr(sys, "argv", ["/somewhere/scripts/compare_seeds.py", *arguments])
    compare_seeds.main(arguments)
    lines = capsys.readouterr().out.splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert rows[0] == ["model", "parameters", "seeds", "minutes", "BLEU, test", "BLEU, dev"]
    assert rows[2] == ["rnn", "1,000", "1, 2, 4", "0", "12.0 ± 2.0", "3.0 ± 2.6"]
    assert rows[3] == ["bahdanau", "1,000", "1", "0", "30.0", "3.0"]
    kept = json.loads(results.read_text("utf-8"))
    assert kept["table"]["rows"] == [rows[2], rows[3]]
    assert kept["command"].startswith("python -m scripts.compare_seeds ")
    assert len(kept["records"]) == 8 and kept["records"][2]["bleu"] == 12.0
    first = kept["runs"][0]
    assert (first["run"], first["seed"], first["overrides"]) == ("bible/rnn/a", 1, ["seed=1"])
    assert (first["step"], first["tgt_tokens"]) == (7, 900) and first["seconds"] >= 0


def test_an_ablation_is_a_table_of_what_was_changed(tmp_path: Path, capsys) -> None:
    runs = []
    for name, dropout, given in (("a", 0.3, []), ("b", 0.1, ["training.dropout=0.1"])):
        run = seeded(tmp_path / name, 1, {"dev": 10 * dropout}, settings={"dropout": dropout})
        overrides = ["+experiment=x", f"name={name}", "data.source=/some/where", *given]
        (run / "overrides.yaml").write_text(yaml.dump(overrides))
        runs.append(run)
    compare_seeds.main([*map(str, runs), "--splits", "dev"])
    lines = capsys.readouterr().out.splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert rows[0][:4] == ["model", "settings", "parameters", "seeds"]
    assert [(row[1], row[-1]) for row in rows[2:]] == [("", "3.0"), ("training.dropout=0.1", "1.0")]


def test_rows_whose_commands_were_alike_show_the_keys_that_differ(tmp_path: Path, capsys) -> None:
    runs = [
        seeded(tmp_path / name, 1, {"dev": 1.0}, settings={"dropout": dropout})
        for name, dropout in (("a", 0.3), ("b", 0.1), ("c", 0.1))
    ]
    compare_seeds.main([*map(str, runs), "--splits", "dev"])
    lines = capsys.readouterr().out.splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert [(row[1], row[3]) for row in rows[2:]] == [
        ("model.dropout=0.3", "1"),
        ("model.dropout=0.1", "1, 1"),
    ]


def test_evaluations_that_were_not_alike_have_no_mean(tmp_path: Path, capsys) -> None:
    runs = [seeded(tmp_path / name, seed, {"dev": 1.0}) for name, seed in (("a", 1), ("b", 2))]
    path = runs[1] / "evaluation" / "dev" / "scores.json"
    scores = json.loads(path.read_text())
    for change in ({"checkpoint": "best"}, {"moses_bleu": scores["bleu"]}, {"precision": "bf16"}):
        path.write_text(json.dumps(scores | change))
        message = failure(compare_seeds.main, [*runs, "--splits", "dev"], capsys)
        assert "were not evaluated alike on dev" in message


def test_a_run_that_is_not_evaluated_says_how_to(tmp_path: Path, capsys) -> None:
    run = seeded(tmp_path / "a", 1, {"test": 1.0})
    message = failure(compare_seeds.main, [run, "--splits", "test,dev"], capsys)
    assert f"python evaluate.py run={run} split=dev" in message


@pytest.mark.parametrize("content", ["[1,", "5", "\x00"])
def test_damaged_overrides_of_a_run_are_told(tmp_path: Path, capsys, content: str) -> None:
    run = seeded(tmp_path / "a", 1, {"test": 1.0})
    (run / "overrides.yaml").write_text(content)
    message = failure(compare_seeds.main, [run, "--results", tmp_path / "r.json"], capsys)
    assert f"{run}/overrides.yaml: not a list of overrides" in message
    assert not (tmp_path / "r.json").exists()


def test_the_time_of_a_training_adds_up_over_its_parts(tmp_path: Path, monkeypatch) -> None:
    make_run(tmp_path / "a")
    for begun, ended in ((100.0, 160.0), (1000.0, 1030.0)):
        times = iter([begun, ended])
        monkeypatch.setattr("training.machine.time.perf_counter", lambda times=times: next(times))
        with pytest.raises(KeyboardInterrupt), timed(tmp_path / "a", torch.device("cpu")):
            raise KeyboardInterrupt
    run = Run(tmp_path / "a")
    assert run.training["seconds"] == 90.0 and run.training["machine"]["gpu"] is None
    for damaged in ("", "{", "[1]", '{"seconds": "x"}'):
        (tmp_path / "a" / "training.json").write_text(damaged)
        times = iter([0.0, 5.0])
        monkeypatch.setattr("training.machine.time.perf_counter", lambda times=times: next(times))
        with timed(tmp_path / "a", torch.device("cpu")):
            pass
        assert Run(tmp_path / "a").training["seconds"] == 5.0


# --- Moses' tokens ------------------------------------------------------------------------------


def test_french_is_lowercased_and_split_as_moses_does() -> None:
    assert tokens(["L'homme n\u2019est pas « prêt », aujourd'hui."], "fr") == [
        "l' homme n' est pas \" prêt \" , aujourd' hui ."
    ]
    assert tokens(["A man's dog doesn't bark at 3.5 metres."], "en") == [
        "a man 's dog doesn 't bark at 3.5 metres ."
    ]


def test_bleu_of_moses_tokens_is_what_the_sacrebleu_command_says(tmp_path: Path) -> None:
    references = ["L'homme porte un chapeau orange.", "Un chien court dans l'herbe, en été."]
    hypotheses = ["Un homme porte l'orange.", "un chien court, dans l'herbe en été."]
    for name, lines in {"hyp": hypotheses, "ref": references}.items():
        (tmp_path / name).write_text("\n".join(tokens(lines, "fr")) + "\n", "utf-8")
    command = [
        sys.executable,
        "-m",
        "sacrebleu",
        str(tmp_path / "ref"),
        "-i",
        str(tmp_path / "hyp"),
    ]
    command += ["--tokenize", "none", "--force", "-w", "6", "--format", "json", "--metrics", "bleu"]
    said = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    ours = moses_bleu(hypotheses, [references], "fr")
    assert ours["score"] == pytest.approx(said["score"], abs=1e-5)
    assert "tok:none" in ours["signature"] and ours["signature"].endswith("|text:lc.norm.tok")
