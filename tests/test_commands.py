"""The commands end to end on a toy corpus: train, resume, evaluate, translate, draw; and errors."""

import gzip
import importlib
import io
import json
import logging
import math
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
import toy
import yaml
from sacrebleu.metrics import BLEU
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.plugin_event_accumulator import (
    EventAccumulator as PluginEventAccumulator,  # what the pages of TensorBoard read
)

from data.tokenizer import BOS, EOS
from decoding.run import Run
from decoding.translator import Translator, search_with

Command = Callable[..., str]
TINY = [
    "width=16",
    "threads=1",
    "precision=fp32",
    "tokenizer=word",
    "training.max_steps=40",
    "training.validate_every=20",
    "training.log_every=5",
    "training.batch_tokens=200",
    "training.warmup_steps=5",
    "training.length_edges=[4,6]",
    "training.length_minimum=1",
]


def call(module: str, *arguments: str) -> None:
    """Runs a command in this process as if from the command line."""
    before, sys.argv = sys.argv, [module, *arguments]
    handlers = list(logging.getLogger().handlers)
    try:
        importlib.import_module(module).main()
    finally:
        sys.argv = before
        logging.getLogger().handlers = handlers


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a toy corpus, where commands run."""
    folder = tmp_path_factory.mktemp("work")
    pairs = toy.pairs(300)
    toy.write(folder, train=pairs[:240], dev=pairs[240:270], test=pairs[270:])
    patch = pytest.MonkeyPatch()
    patch.chdir(folder)
    patch.setenv("SEQ2SEQ_CORPORA", str(folder / "corpora"))
    yield folder
    patch.undo()


FILES = ["data=files"] + [
    f"data.{split}_{side}={split}.{side}"  # relative: they resolve from where the command starts
    for split in ("train", "dev", "test")
    for side in ("src", "tgt")
]


@pytest.fixture(scope="module", params=["rnn", "bahdanau", "transformer"])
def run(request: pytest.FixtureRequest, workplace: Path) -> Path:
    call("train", *FILES, *TINY, f"model={request.param}", "name=a")
    return workplace / "runs" / "files" / request.param / "a"


def fails(capsys: pytest.CaptureFixture, module: str, *arguments: str) -> str:
    """The one line that a command ends with; there is a non-zero status and no traceback."""
    with pytest.raises(SystemExit) as ended:
        call(module, *arguments)
    assert ended.value.code not in (0, None)
    err = capsys.readouterr().err
    assert "Traceback" not in err
    return err.strip().splitlines()[-1]


def scalars(run: Path) -> EventAccumulator:
    events = EventAccumulator(str(run), size_guidance={"scalars": 0})
    events.Reload()
    return events


def test_a_run_folder_is_complete(run: Path) -> None:
    there = {str(path.relative_to(run)) for path in run.rglob("*") if path.is_file()}
    assert {
        "config.yaml",
        "overrides.yaml",
        "train.log",
        "tokenizers/src.model",
        "tokenizers/tgt.model",
        "checkpoints/best.pt",
        "checkpoints/last.pt",
    } <= there
    config = yaml.safe_load((run / "config.yaml").read_text())
    assert config["training"]["max_steps"] == 40 and config["chosen"]["data"] == "files"
    assert "training.max_steps=40" in yaml.safe_load((run / "overrides.yaml").read_text())
    assert "step 40" in (run / "train.log").read_text()


def test_tensorboard_has_the_documented_curves_in_one_run(run: Path) -> None:
    events = scalars(run)
    tags = set(events.Tags()["scalars"])
    assert {
        *(f"train/{name}" for name in ("loss", "learning_rate", "gradient_norm")),
        "train/tokens_per_second",
        *(f"valid/{name}" for name in ("loss", "perplexity", "bleu", "chrf")),
        "valid/bleu_by_length/1-4",
        "best/bleu",
    } <= tags
    assert [event.step for event in events.Scalars("valid/bleu")] == [20, 40]
    assert ("valid/alignment" in events.Tags()["images"]) == ("rnn" not in str(run))
    assert not [path for path in run.iterdir() if path.is_dir() and path.name.isdigit()]
    hyperparameters = events.SummaryMetadata("_hparams_/session_start_info")
    assert hyperparameters.plugin_data.plugin_name == "hparams"


def test_perplexity_is_the_exponential_of_the_dev_loss(run: Path) -> None:
    events = scalars(run)
    for loss, perplexity in zip(
        events.Scalars("valid/loss"), events.Scalars("valid/perplexity"), strict=True
    ):
        assert perplexity.value == pytest.approx(math.exp(loss.value), rel=1e-5)


def test_evaluation_gives_the_score_that_training_logged(run: Path) -> None:
    call("evaluate", f"run={run}", "split=dev", "search=greedy", "checkpoint=last")
    scores = json.loads((run / "evaluation" / "dev" / "scores.json").read_text())
    logged = scalars(run).Scalars("valid/bleu")[-1].value
    assert scores["bleu"]["score"] == pytest.approx(logged, abs=1e-4)


def test_evaluation_writes_what_it_measured(run: Path) -> None:
    call("evaluate", f"run={run}", "length_edges=[4,6]", "length_minimum=3")
    folder = run / "evaluation" / "test"
    hypotheses, references, sources = (
        (folder / name).read_text(encoding="utf-8").split("\n")[:-1]
        for name in ("hypotheses.fr", "references.fr", "sources.en")
    )
    scores = json.loads((folder / "scores.json").read_text())
    assert len(hypotheses) == len(references) == len(sources) == scores["sentences"] == 30
    expected = BLEU().corpus_score(hypotheses, [references]).score
    assert scores["bleu"]["score"] == pytest.approx(expected)
    assert sum(row["sentences"] for row in scores["by_length"]) == 30
    assert [row["from"] for row in scores["by_length"]] == [1, 5, 7]
    for key in ("chrf", "ter", "length_capped", "unknown_tokens", "checkpoint", "search"):
        assert key in scores
    assert (folder / "bleu_by_length.csv").read_text().startswith("from,to,sentences,bleu")
    assert (folder / "bleu_by_length.png").read_bytes().startswith(b"\x89PNG")


def test_a_moved_run_still_evaluates_and_goes_on(run: Path, tmp_path: Path, monkeypatch) -> None:
    copy = shutil.copytree(run, run.with_name("copy"))
    moved = copy.rename(tmp_path / "elsewhere")
    before = run.rename(run.with_name("hidden"))  # where it was, there is nothing
    monkeypatch.chdir(tmp_path)
    try:
        call("evaluate", "run=elsewhere", "checkpoint=[best,last]", "ter=false", "search=greedy")
        assert json.loads((moved / "evaluation/test/scores.json").read_text())["ter"] is None
        call("train", "resume=elsewhere", "training.max_steps=42")
        assert scalars(moved).Scalars("valid/bleu")[-1].step == 42
    finally:
        before.rename(run)


def test_training_goes_on_with_its_own_text_and_vocabularies_alone(
    run: Path, tmp_path: Path, workplace: Path, capsys
) -> None:
    copy = shutil.copytree(run, tmp_path / "copy")
    dev = workplace / "dev.tgt"
    text = dev.read_text()
    words = text.split()
    try:
        dev.write_text(text.replace(words[0], words[1], 1))  # as many lines, words, letters
        said = fails(capsys, "train", f"resume={copy}", "training.max_steps=42")
        assert "the training or dev text is not what it was when this run began" in said
    finally:
        dev.write_text(text)
    tokenizers = copy / "tokenizers"
    (tokenizers / "src.model").write_bytes((tokenizers / "tgt.model").read_bytes())
    said = fails(capsys, "train", f"resume={copy}", "training.max_steps=42")
    assert "last.pt" in said and "vocabular" in said


def test_resuming_a_shorter_training_equals_the_longer_one(run: Path, workplace: Path) -> None:
    from models import checkpoint

    model = run.parent.name
    # a constant rate, since a cosine depends on where training ends
    rate = "training.schedule=constant"
    call("train", *FILES, *TINY, f"model={model}", "name=whole", rate)
    call("train", *FILES, *TINY, f"model={model}", "name=part", rate, "training.max_steps=20")
    part = run.parent / "part"
    call("train", f"resume={part}", "training.max_steps=40")
    whole, resumed = (
        checkpoint.load(folder / "checkpoints" / "last.pt")
        for folder in (run.parent / "whole", part)
    )
    assert all(bool((whole["weights"][k] == v).all()) for k, v in resumed["weights"].items())
    assert whole["progress"] == resumed["progress"]
    assert yaml.safe_load((part / "config.yaml").read_text())["training"]["max_steps"] == 40
    for tag in ("train/loss", "valid/bleu"):
        steps = [(event.step, event.value) for event in scalars(part).Scalars(tag)]
        assert steps == [(e.step, e.value) for e in scalars(run.parent / "whole").Scalars(tag)]


def test_a_killed_and_resumed_run_has_every_step_once_in_tensorboard(
    workplace: Path, monkeypatch
) -> None:
    from training.trainer import Trainer

    save = Trainer.save
    monkeypatch.setattr(
        Trainer, "save", lambda self, name: self.progress.step > 20 or save(self, name)
    )
    call("train", *FILES, *TINY, "model=rnn", "name=killed")  # the last checkpoint is of step 20
    monkeypatch.undo()
    run = workplace / "runs/files/rnn/killed"
    call("train", f"resume={run}")
    shown = PluginEventAccumulator(str(run), tensor_size_guidance={"scalars": 0})
    shown.Reload()
    for events in (scalars(run).Scalars("train/loss"), shown.Tensors("train/loss")):
        assert [event.step for event in events] == [5, 10, 15, 20, 25, 30, 35, 40]


def feed(monkeypatch: pytest.MonkeyPatch, text: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text), encoding="utf-8"))


def test_translation_is_line_for_line(run: Path, monkeypatch, capsys) -> None:
    lines = "the cat sleeps\n\n  \t \nthe dog\u2028 sees\r\nthe big bird"
    feed(monkeypatch, lines.encode())
    call("scripts.translate", str(run))
    out = capsys.readouterr().out.split("\n")
    assert len(out) == 6 and out[1] == out[2] == out[5] == ""
    feed(monkeypatch, b"the big bird\n")
    call("scripts.translate", str(run))
    assert capsys.readouterr().out == out[4] + "\n"


def test_alternatives_do_not_change_the_best(run: Path, monkeypatch, capsys) -> None:
    outputs = []
    for options in ([], ["--n-best", "3"]):
        feed(monkeypatch, b"the cat sees the dog\nthe bird\n")
        call("scripts.translate", str(run), "--beam-size", "4", *options)
        outputs.append(capsys.readouterr().out.splitlines())
    assert [line.split("\t")[1] for line in outputs[1][::3]] == outputs[0]
    feed(monkeypatch, b"the bird\n\nthe bird\n")
    call("scripts.translate", str(run), "--beam-size", "4", "--n-best", "3")
    best = outputs[1][3:]
    assert capsys.readouterr().out.splitlines() == [*best, "0.0000\t", "-inf\t", "-inf\t", *best]
    feed(monkeypatch, b"x\n")
    message = fails(capsys, "scripts.translate", str(run), "--n-best", "9", "--beam-size", "2")
    assert message.startswith("error: --n-best 9 needs --beam-size 9")


def test_evaluation_and_translation_can_search_in_bfloat16(
    run: Path, tmp_path: Path, monkeypatch, capsys
) -> None:
    copy = shutil.copytree(run, tmp_path / run.name)
    call("evaluate", f"run={copy}", "split=dev", "ter=false", "precision=bf16")
    scores = json.loads((copy / "evaluation" / "dev" / "scores.json").read_text())
    assert scores["precision"] == "bf16"
    hypotheses = (copy / "evaluation" / "dev" / "hypotheses.fr").read_bytes()
    capsys.readouterr()
    feed(monkeypatch, (copy / "evaluation" / "dev" / "sources.en").read_bytes())
    call("scripts.translate", str(copy), "--precision", "bf16")
    assert capsys.readouterr().out.encode() == hypotheses
    feed(monkeypatch, b"x\n")
    message = fails(capsys, "scripts.translate", str(run), "--precision", "fp16")
    assert message.startswith("error: precision must be auto, fp32 or bf16, not 'fp16'")


def test_the_matrix_belongs_to_the_returned_hypothesis(run: Path) -> None:
    if run.parent.name == "rnn":
        return
    translator = Translator.from_run(Run(run))
    sources = ["the big cat sees the dog", "the bird", "the dog hears the bird and sleeps"]
    for translation in translator.translate(sources, search_with(3, 1.0)):
        # other tokens that spell the same text, as a search may well return
        aligned = translator.align(["the big cat"], [translation._replace(text="quite another")])[0]
        assert aligned.tgt_pieces == [*translation.pieces, "</s>"]
        assert aligned.weights.shape == (len(translation.tokens) + 1, 4)


def test_log_probabilities_of_a_given_target_are_those_of_the_model_piece_by_piece(
    run: Path,
) -> None:
    translator = Translator.from_run(Run(run), "cpu")
    pairs = [("the big cat sees the dog", "le chat gros voit le chien"), ("the", "le oiseau")]
    pairs.append(("the bird", ""))
    found = translator.log_probs(*zip(*pairs, strict=True))
    for (source, target), log_probs in zip(pairs, found, strict=True):
        src = torch.tensor([[*translator.src_tokenizer.encode([source])[0], EOS]])
        tgt = translator.tgt_tokenizer.encode([target])[0]
        with torch.no_grad():
            logits = translator.model(src, src > 0, torch.tensor([[BOS, *tgt]])).logits[0]
        by_hand = [
            float(row.log_softmax(0)[token]) for row, token in zip(logits, [*tgt, EOS], strict=True)
        ]
        np.testing.assert_allclose(log_probs, by_hand, atol=1e-4)


def test_a_very_long_line_is_cut_with_a_warning_that_names_it(
    run: Path, monkeypatch, caplog
) -> None:
    feed(monkeypatch, b"the cat\n" + b"the dog sees " * 400 + b"\nthe bird\n")
    call("scripts.translate", str(run), "--beam-size", "1")
    assert "line 2 has 1200 tokens: only the first 1000 are read" in caplog.text


def test_lines_that_are_not_utf8_are_named(run: Path, monkeypatch, capsys) -> None:
    feed(monkeypatch, b"the cat\n\xe9t\xe9\n")
    assert "line 2: not UTF-8" in fails(capsys, "scripts.translate", str(run))


def test_alignments_are_drawn_where_there_is_attention(run: Path, capsys) -> None:
    arguments = ("scripts.plot_alignments", str(run), "--source", "the big cat sees the dog")
    if run.parent.name == "rnn":
        assert "no attention" in fails(capsys, *arguments)
        return
    call(*arguments, "--target", "le chat gros voit le chien")
    assert len(list((run / "figures").glob("*.png"))) == 1


def test_a_model_of_the_other_direction_is_trained_evaluated_and_symmetrised(
    run: Path, workplace: Path, capsys
) -> None:
    if run.parent.name == "rnn":
        return
    call("train", *FILES, *TINY, f"model={run.parent.name}", "name=back", "data.reverse=true")
    back = run.parent / "back"
    call("evaluate", f"run={back}", "search=greedy", "ter=false", "length_minimum=1")
    folder = back / "evaluation" / "test"
    assert (folder / "sources.fr").read_bytes() == (workplace / "test.tgt").read_bytes()
    assert (folder / "references.en").read_bytes() == (workplace / "test.src").read_bytes()
    assert len((folder / "hypotheses.en").read_text(encoding="utf-8").splitlines()) == 30
    assert not (folder / "hypotheses.fr").exists()
    call("scripts.plot_bleu_by_length", str(back))
    sentence = {
        "src_words": ["the", "big", "cat", "sleeps"],
        "tgt_words": ["le", "chat", "gros", "dort"],
        "alignment": [[0, 0], [1, 2], [2, 1], [3, 3]],
    }
    (workplace / "gold.jsonl").write_text(json.dumps(sentence) + "\n", encoding="utf-8")
    options = ("--gold", "gold.jsonl", "--method", "balanced", "--json", "aer.json")
    kept = ("--results", "kept.json")
    call("scripts.score_alignments", str(run), "--reverse", str(back), *options, *kept)
    origin = json.loads((workplace / "kept.json").read_text(encoding="utf-8"))["runs"]
    assert [used["run"] for used in origin] == [Run(run).name, Run(back).name]
    records = json.loads((workplace / "aer.json").read_text(encoding="utf-8"))
    sizes = [record["links"] for record in records]
    assert sizes[2] <= sizes[4] <= sizes[3]  # intersection, grown, union
    assert all(0 <= record["aer"] <= 1 for record in records)
    message = fails(capsys, "scripts.score_alignments", str(run), "--reverse", str(run), *options)
    assert "translates in the same direction" in message


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["model=bahdanu"], "did you mean 'bahdanau'?"),
        (["data=bibel"], "did you mean 'bible'?"),
        (["training.max_step=3"], "did you mean 'training.max_steps'?"),
        (["training.max_steps=many"], "must be a whole number"),
        (["training.learning_rate=fast"], "must be a number"),
        (["+experiment=demoo"], "did you mean 'demo'?"),
        (["nonsense"], "not of the form key=value"),
        (["resume=runs/nowhere"], "no such run folder"),
        ([*FILES, "tokenizer=bpe", "tokenizer.size=5000"], "at most"),
        ([*FILES, "data.train_src=missing.en"], "missing.en"),
        ([*FILES, *TINY, "model=transformer", "model.heads=3"], "multiple of model.heads=3"),
        ([*FILES, *TINY, "training.schedule=linear"], "training.schedule"),
        ([*FILES, *TINY, "search.beam_size=0"], "search.beam_size"),
        ([*FILES, *TINY, "precision=fp64"], "precision"),
        ([*FILES, *TINY, "device=cuda:9"], "device=cuda:9"),
        ([*FILES, *TINY, "training.validate_every=0"], "training.validate_every must be at least"),
        ([*FILES, *TINY, "training.accumulate=0"], "training.accumulate must be at least 1"),
        ([*FILES, *TINY, "training.label_smoothing=2"], "training.label_smoothing"),
        ([*FILES, *TINY, "training.concatenate=2"], "training.concatenate"),
        ([*FILES, *TINY, "training.clip_norm=0"], "training.clip_norm"),
        ([*FILES, *TINY, "training.muon=0"], "training.muon must be above 0 or null"),
        ([*FILES, *TINY, "training.subword_sampling=0.1"], "needs tokenizer.type bpe or unigram"),
        (
            [*FILES, *TINY, "training.subword_sampling=-1"],
            "training.subword_sampling must be from 0",
        ),
        ([*FILES, *TINY, "training.length_edges=[5,3]"], "training.length_edges"),
        ([*FILES, *TINY, "threads=0"], "threads must be at least 1"),
        ([*FILES, *TINY, "seed=-1"], "seed must not be negative"),
        ([*FILES, *TINY, "tokenizer.size=-5"], "tokenizer.size must be at least 1"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else None,
)
def test_training_refuses_in_one_line_and_leaves_nothing(
    workplace: Path, capsys, arguments: list[str], message: str
) -> None:
    before = sorted((workplace / "runs").rglob("*"))
    last = fails(capsys, "train", *arguments, "name=refused")
    assert last.startswith("error: ") and message in last
    assert sorted((workplace / "runs").rglob("*")) == before


@pytest.mark.parametrize("option", ["--cfg", "-c"])
def test_hydra_shows_the_settings_without_training(
    option: str, workplace: Path, capsys: pytest.CaptureFixture
) -> None:
    call("train", "+experiment=multi30k", "width=96", option, "job")
    shown = yaml.safe_load(capsys.readouterr().out)
    assert shown["width"] == 96 and shown["training"]["optimizer"]["weight_decay"] == 0.1


def test_unequal_files_are_refused_with_both_counts(workplace: Path, capsys) -> None:
    (workplace / "short.tgt").write_text("le chat\n")
    last = fails(capsys, "train", *FILES, *TINY, "data.train_tgt=short.tgt")
    assert "240" in last and "1" in last and "short.tgt" in last


def test_evaluation_refuses_in_one_line(run: Path, capsys) -> None:
    for argument, message in (
        ("threads=0", "threads must be at least 1"),
        ("length_edges=[5,3]", "positive and increasing"),
        ("search.beam_size=0", "search.beam_size"),
        ("device=cuda:9", "device=cuda:9"),
        ("spilt=dev", "did you mean 'split'?"),
    ):
        assert message in fails(capsys, "evaluate", f"run={run}", argument)


def test_runs_are_never_overwritten(run: Path, capsys) -> None:
    last = fails(capsys, "train", *FILES, *TINY, f"model={run.parent.name}", "name=a")
    assert "not overwritten" in last and "resume=" in last


def test_a_link_to_a_file_of_another_name_is_read_as_what_it_is_called(workplace: Path) -> None:
    stored = workplace / "stored"
    stored.mkdir()
    blob = stored / "3fa9c1"  # as caches of published data keep their files
    blob.write_bytes(gzip.compress((workplace / "train.src").read_bytes()))
    (workplace / "link.src.gz").symlink_to(blob)
    short = ["model=rnn", "name=linked", "training.max_steps=2"]
    call("train", *FILES, *TINY, *short, "data.train_src=link.src.gz")
    call("train", "resume=runs/files/rnn/linked", "training.max_steps=4")


def test_settings_do_not_change_on_resuming(run: Path, capsys) -> None:
    assert "seed cannot change" in fails(capsys, "train", f"resume={run}", "seed=7")
    for key in ("data.max_pairs=7", "data.source=here"):  # where the run has null
        assert f"{key.split('=')[0]} cannot change" in fails(capsys, "train", f"resume={run}", key)


def test_what_is_given_on_resuming_is_kept_as_its_value(run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / run.name)
    call("train", f"resume={copy}", "++training.max_steps=${training.length_minimum}")
    config = yaml.safe_load((copy / "config.yaml").read_text())
    assert config["training"]["max_steps"] == 20 and "++training" not in config


@pytest.mark.parametrize("how", ["run", "auto"])
def test_what_may_change_on_resuming_may_also_become_null_or_a_number(how: str, run: Path) -> None:
    name = f"changed-{how}"
    folder = run.parent / name
    new = [*FILES, *TINY, f"model={run.parent.name}", f"name={name}", "training.max_steps=20"]
    call("train", *new, "threads=null")
    go_on = [f"resume={folder}"] if how == "run" else [*new[:-1], "resume=auto"]
    for step, threads, patience in ((30, 1, None), (40, None, 3)):
        changed = {"threads": threads, "training.patience": patience}
        changed = [f"{k}={'null' if v is None else v}" for k, v in changed.items()]
        call("train", *go_on, *changed, f"training.max_steps={step}")
        settings = yaml.safe_load((folder / "config.yaml").read_text())
        assert (settings["threads"], settings["training"]["patience"]) == (threads, patience)
        overrides = yaml.safe_load((folder / "overrides.yaml").read_text())
        assert overrides[: len(FILES)] == FILES and len(overrides) == len({*overrides})
        assert {*changed, f"training.max_steps={step}"} <= {*overrides}
        assert scalars(folder).Scalars("valid/bleu")[-1].step == step


def test_a_run_made_before_an_option_existed_goes_on_with_its_default(
    run: Path, tmp_path: Path
) -> None:
    older = shutil.copytree(run, tmp_path / run.name)
    settings = yaml.safe_load((older / "config.yaml").read_text())
    del settings["training"]["subword_sampling"]
    (older / "config.yaml").write_text(yaml.dump(settings))
    call("train", f"resume={older}", "training.max_steps=42")
    settings = yaml.safe_load((older / "config.yaml").read_text())
    assert settings["training"]["subword_sampling"] == 0.0
    assert scalars(older).Scalars("valid/bleu")[-1].step == 42


def test_an_experiment_that_has_come_to_set_an_option_goes_on_with_a_run_made_before_without_it(
    workplace: Path,
) -> None:
    older = workplace / "runs" / "files" / "rnn" / "older"
    command = ["+experiment=multi30k", *FILES, *TINY, "model=rnn", "name=older", "resume=auto"]
    command += ["tokenizer=word", "tokenizer.shared=false"]
    call("train", *command, "training.muon=null")
    settings = yaml.safe_load((older / "config.yaml").read_text())
    del settings["training"]["muon"]
    (older / "config.yaml").write_text(yaml.dump(settings))
    call("train", *command, "training.max_steps=42")
    settings = yaml.safe_load((older / "config.yaml").read_text())
    assert settings["training"]["muon"] is None
    assert scalars(older).Scalars("valid/bleu")[-1].step == 42


def test_a_damaged_checkpoint_is_named_and_the_other_stays_usable(
    run: Path, tmp_path: Path, capsys
) -> None:
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    last = copy / "checkpoints" / "last.pt"
    last.write_bytes(last.read_bytes()[:500])
    assert "last.pt: damaged" in fails(capsys, "evaluate", f"run={copy}", "checkpoint=last")
    assert "last.pt: damaged" in fails(capsys, "train", f"resume={copy}")
    call("evaluate", f"run={copy}", "checkpoint=best", "ter=false", "search=greedy")
    (copy / "checkpoints" / "best.pt").unlink()
    assert "no checkpoint 'best'" in fails(capsys, "evaluate", f"run={copy}")
    assert "has no split 'tset'; it has " in fails(capsys, "evaluate", f"run={run}", "split=tset")


def test_a_job_that_fails_does_not_keep_the_rest_of_a_sweep_from_running(
    workplace: Path, capsys
) -> None:
    new = [*FILES, *TINY, "training.max_steps=2", "model=rnn"]
    decay = "training.optimizer.weight_decay"
    new += [f"{decay}=0.1,-1,0.2", f"name='s-${{{decay}}}'"]
    with pytest.raises(SystemExit) as ended:
        call("train", "-m", *new)
    error = capsys.readouterr().err
    assert ended.value.code == 1 and "Traceback" not in error
    assert "error: training.optimizer: Invalid weight_decay value: -1" in error
    assert error.index("weight_decay value: -1") < error.index("rnn/s-0.2")  # at once, not at last
    assert re.search(rf"with overrides: .*{decay}=-1.*\nerror: this job failed", error)
    runs = workplace / "runs" / "files" / "rnn"
    assert [(runs / f"s-{value}").is_dir() for value in (0.1, -1, 0.2)] == [True, False, True]


def test_a_dev_sentence_that_cannot_be_drawn_ends_no_training(workplace: Path, monkeypatch) -> None:
    from training import validation

    def refuse(*_: object, **__: object) -> None:
        raise ValueError("too long to be drawn")

    monkeypatch.setattr(validation, "alignment_figure", refuse)
    call("train", *FILES, *TINY, "model=bahdanau", "name=undrawn", "training.max_steps=20")
    folder = workplace / "runs/files/bahdanau/undrawn"
    assert (folder / "checkpoints/best.pt").is_file()
    said = (folder / "train.log").read_text()
    assert re.search(r"no alignment of dev sentence \d+: too long to be drawn", said)


def test_the_alignment_in_tensorboard_says_what_it_is(workplace: Path, monkeypatch) -> None:
    from training import validation

    drawn, draw = [], validation.alignment_figure

    def keep(*arguments: object, **options: object) -> object:
        drawn.append((arguments, options))
        return draw(*arguments, **options)

    monkeypatch.setattr(validation, "alignment_figure", keep)
    call("train", *FILES, *TINY, "model=transformer", "name=drawn", "training.max_steps=20")
    (weights, src_words, tgt_words), options = drawn[0]
    assert weights.shape == (len(tgt_words), len(src_words))
    assert options["title"] == "step 20, forced to the reference"
    assert re.match(r"decoder layer 2 of 2, mean of \d heads · </s> left out", options["caption"])


def test_every_job_of_a_sweep_has_its_own_folder_and_log(workplace: Path) -> None:
    call("train", "-m", *FILES, *TINY, "training.max_steps=2", "model=rnn", "seed=1,2")
    folders = [p for p in (workplace / "runs/files/rnn").iterdir() if p.name[0] == "2"]
    assert len(folders) == 2
    seeds = {yaml.safe_load((f / "config.yaml").read_text())["seed"] for f in folders}
    assert seeds == {1, 2}
    for folder in folders:
        assert (folder / "train.log").read_text().count("RNN with") == 1
