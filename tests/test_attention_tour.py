"""The guided tour: its numbers and laws, and that docs/attention.md is what the command writes."""

import importlib
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from architectures import config, small

from data.grammar import FIGURE_3A
from data.tokenizer import learn
from decoding.translator import Attention, Translation, WeightMap
from evaluation import tour_figures
from models import checkpoint
from models.attention import MultiHeadAttention, attention
from models.seq2seq import ALIGNMENT
from scripts import attention_tour
from scripts.tour import (
    alignment,
    bottleneck,
    causal,
    context,
    heads,
    page,
    projections,
    scaling,
    unweighted,
)

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "attention.md"
CONTEXTS = [
    [-0.0739, 0.0713],
    [-0.0748, 0.0703],
    [-0.0749, 0.0702],
    [-0.0760, 0.0685],
    [-0.0763, 0.0679],
    [-0.0754, 0.0693],
]


def close(a: torch.Tensor, b: torch.Tensor, within: float = 1e-5) -> None:
    torch.testing.assert_close(a, b, rtol=0, atol=within)


@pytest.fixture(scope="module")
def steps() -> list[page.Step]:
    """The tour without runs."""
    return attention_tour.tour([])


@pytest.fixture(scope="module")
def committed() -> str:
    return PAGE.read_text(encoding="utf-8")


# --- steps 1 to 4 -------------------------------------------------------------------------------


def test_one_vector_is_as_large_for_every_sentence_and_annotations_grow_with_it() -> None:
    assert [bottleneck.numbers_kept(words) for words in (1, 7)] == [(128, 256), (128, 7 * 256)]


def test_untrained_attention_is_spread_over_the_words_and_exactly_nothing_on_padding() -> None:
    weights = alignment.untrained()
    close(weights.sum(1), torch.ones(3))
    assert (weights[:, 4:] == 0).all() and (weights[:, :4] > 0.2).all()


def test_moves_back_in_the_source_are_named() -> None:
    aligned = alignment.WordAlignment(["red", "house"], ["maison", "rouge"], np.eye(2)[::-1])
    assert 'from "house" for "maison" back to "red" for "rouge"' in alignment.jumps(aligned)
    assert "never" in alignment.jumps(aligned._replace(matrix=np.eye(2)))


def test_keys_with_equal_dot_products_get_equal_attention_however_they_differ() -> None:
    _, weights = unweighted.attend(unweighted.VECTORS)
    assert weights[unweighted.IT, unweighted.CAT] == weights[unweighted.IT, unweighted.FISH]
    torch.manual_seed(1)
    query, others, across = torch.randn(1, 8), torch.randn(5, 8), torch.randn(8)
    across -= (across @ query[0]) / (query[0] @ query[0]) * query[0]  # at a right angle to it
    keys = torch.cat([others, others[:1] + 3 * across])
    _, weights = attention(query, keys, keys, torch.ones(1, 6, dtype=torch.bool))
    close(weights[0, 0], weights[0, 5])


def test_without_positions_the_order_of_the_words_does_not_matter() -> None:
    torch.manual_seed(1)
    words, order = torch.randn(6, 4), torch.randperm(6)
    close(unweighted.attend(words[order])[0], unweighted.attend(words)[0][order])


def test_projections_of_five_words_have_the_worked_shapes(steps: list[page.Step]) -> None:
    made = projections.project()
    assert made.x.shape == (5, 8) and len(projections.SENTENCE.split()) == 5
    assert made.query.shape == made.keys.shape == made.values.shape == made.context.shape == (5, 4)
    assert made.weights.shape == (5, 5)
    assert page.render_step(4, steps[3]).count("(5, 8) x (8, 4) -> (5, 4)") == 3


def test_projections_learn_what_equal_dot_products_could_not_tell() -> None:
    before, after = projections.learn(0), projections.learn(projections.UPDATES)
    assert torch.equal(before, unweighted.attend(unweighted.VECTORS)[1])  # the identity is step 3
    assert after[unweighted.IT, unweighted.CAT] > 0.95
    assert after[unweighted.IT, unweighted.FISH] < 0.02


# --- steps 5 and 6 ------------------------------------------------------------------------------


def test_the_worked_example_has_its_context_vectors() -> None:
    close(context.example().context, torch.tensor(CONTEXTS), within=5.1e-5)


def test_the_example_on_the_page_runs_as_it_stands(committed: str) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", committed, flags=re.DOTALL)
    names: dict = {}
    exec(code, names)
    close(names["context"].detach(), torch.tensor(CONTEXTS), within=5.1e-5)


@pytest.mark.parametrize("factor", scaling.FACTORS)
def test_growing_scores_make_a_softmax_peak(factor: int) -> None:
    weights, slope = scaling.peaked(factor)
    powers = [math.exp(factor * score) for score in scaling.SCORES.tolist()]
    expected = torch.tensor([power / sum(powers) for power in powers])
    close(weights, expected)
    # a weight's slope by its own score is a (1 - a), by another's -a b, which is not larger
    assert slope == pytest.approx((expected * (1 - expected)).max().item(), abs=1e-4)


@pytest.mark.parametrize("dimension", scaling.DIMENSIONS)
def test_dot_products_vary_with_the_dimension_and_after_division_no_more(dimension: int) -> None:
    found = scaling.spread(dimension)
    assert found.variance == pytest.approx(dimension, rel=0.06)
    assert found.scaled_variance == pytest.approx(1, abs=0.06)
    assert 0.28 < found.scaled_largest < 0.36 < found.largest


def test_without_division_a_large_dimension_leaves_one_weight() -> None:
    largest = [scaling.spread(dimension).largest for dimension in (5, 50, 1000)]
    assert largest == sorted(largest) and largest[-1] > 0.95


# --- step 7 -------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 2, 7, 30])
def test_renormalising_and_minus_infinity_give_the_same_causal_weights(length: int) -> None:
    scores = 3 * torch.randn(length, length, generator=torch.Generator().manual_seed(length))
    weights = causal.causal(scores)
    close(causal.renormalised(scores), weights)
    close(weights.sum(1), torch.ones(length))
    assert (weights.triu(1) == 0).all()
    changed = scores + 100 * torch.ones_like(scores).triu(1)  # later words, whatever they score
    assert torch.equal(causal.causal(changed), weights)


def test_only_minus_infinity_survives_a_later_word_that_takes_all() -> None:
    scores = torch.tensor([[0.0, 200.0], [0.0, 200.0]])
    assert causal.renormalised(scores)[0, 0].isnan()
    assert causal.causal(scores)[0].tolist() == [1, 0]


def test_targets_are_the_inputs_one_word_later() -> None:
    tokens = torch.arange(100, 120)
    inputs, targets = causal.windows(tokens, causal.CONTEXT, causal.BATCH)
    assert inputs.shape == targets.shape == (8, 4)
    assert inputs[:, 0].tolist() == list(range(100, 108))
    for row in range(8):
        assert inputs[row].tolist() == tokens[row : row + 4].tolist()
        assert targets[row].tolist() == tokens[row + 1 : row + 5].tolist()


# --- step 8 -------------------------------------------------------------------------------------


@pytest.mark.parametrize("size, count", [(8, 1), (8, 2), (12, 3), (8, 8)])
def test_heads_together_equal_heads_apart_and_torch_s_own(size: int, count: int) -> None:
    torch.manual_seed(count)
    module, x = MultiHeadAttention(size, count), torch.randn(5, size)
    everywhere = torch.ones(5, 5, dtype=torch.bool)
    with torch.no_grad():
        output, weights = module(x[None], module.keys_values(x[None]), everywhere)
        theirs, their_weights = heads.as_torch(module)(
            x[None], x[None], x[None], average_attn_weights=False
        )
    apart = heads.heads_apart(module, x)
    close(apart.output, output[0])
    close(torch.stack(apart.weights), weights[0])
    close(theirs, output)
    close(their_weights, weights)


def test_every_row_of_attention_on_the_page_sums_to_one() -> None:
    torch.manual_seed(0)
    module = MultiHeadAttention(8, heads.HEADS)
    shown = [
        unweighted.attend(unweighted.VECTORS)[1],
        projections.project().weights,
        projections.learn(projections.UPDATES),
        context.example().weights,
        causal.renormalised(context.example().scores),
        *heads.heads_apart(module, projections.project().x).weights,
    ]
    for weights in shown:
        close(weights.sum(-1), torch.ones(len(weights)))


def test_the_divergence_is_jensen_s_and_shannon_s() -> None:
    p, q, even = np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array([0.5, 0.5])
    assert heads.divergence(p, p) == 0
    assert heads.divergence(p, q) == pytest.approx(1)
    entropy = -(0.75 * math.log2(0.75) + 0.25 * math.log2(0.25))  # of the mean of p and even
    assert heads.divergence(p, even) == pytest.approx(entropy - 0.5)
    assert heads.divergence(even, p) == heads.divergence(p, even)


def test_the_heads_shown_are_those_of_one_layer_that_differ_most_over_all_sentences() -> None:
    alike, left, right = [0.4, 0.3, 0.3], [1.0, 0.0, 0.0], [0.0, 0.5, 0.5]
    first = np.array([[left, alike, alike], [alike, left, right]])  # (layers, heads, words)
    second = np.array([[right, alike, alike], [alike, left, right]])
    assert heads.most_different([first, second]) == (1, 1, 2)


def test_heads_are_read_at_the_word_that_the_ambiguous_one_gets_most_attention_from() -> None:
    weights = np.full((1, 2, 4, 4), 0.25)  # layer, heads, target pieces, source pieces
    weights[0, :, 1] = [[0, 1, 0, 0], [0, 0.2, 0.8, 0]]
    weights[0, :, 2] = [[0, 0.6, 0.4, 0], [0, 1, 0, 0]]
    found = Attention(
        ["▁We", "▁look", "▁for", "</s>"],
        ["▁Nous", "▁cherch", "ons", "</s>"],
        {ALIGNMENT: WeightMap(weights, "target", "source")},
    )
    translation = Translation("Nous cherchons", [], [], 0.0, 0.0, False, 0)
    reading = heads.read("We look for", translation, found)
    assert reading.tgt_word == "cherchons" and reading.src_words == ["We", "look", "for", "</s>"]
    np.testing.assert_allclose(reading.weights[0], [[0, 0.8, 0.2, 0], [0, 0.6, 0.4, 0]])


# --- the page -----------------------------------------------------------------------------------


def test_the_page_in_docs_is_what_the_command_writes(
    steps: list[page.Step], committed: str
) -> None:
    """All of it but what tells of runs: those steps word for word, of the others each part."""
    written = [section.strip() for section in re.split(r"^(?=## )", committed, flags=re.MULTILINE)]
    assert len(written) == 1 + len(steps)
    for number, step in enumerate(steps, 1):
        if not any(part.from_runs for part in step.parts):
            assert written[number] == page.render_step(number, step)
        own = page.render_step(number, page.Step(step.title, [], step.computed_by)).split("\n\n")
        parts = [page.render_part(part) for part in step.parts if not part.from_runs]
        places = [written[number].index(text) for text in [own[0], *parts, own[-1]]]
        assert places == sorted(places) and len(places) > 2


def test_the_page_shows_figures_that_exist_and_are_small(committed: str) -> None:
    shown = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", committed)
    files = sorted((PAGE.parent / page.FIGURES).iterdir())
    assert sorted(PAGE.parent / name for name in shown) == files and len(files) == 9
    for file in files:
        assert file.suffix == ".png" and file.stat().st_size < 80_000


def test_the_functions_that_the_page_names_exist(committed: str) -> None:
    names = set(re.findall(r"`((?:models|decoding|evaluation|data|scripts)(?:\.\w+)+)`", committed))
    assert len(names) > 20
    for name in names - {"scripts.attention_tour"}:
        module, attribute = name.rsplit(".", 1)
        try:
            owner = importlib.import_module(module)
        except ModuleNotFoundError:  # a method
            parent, cls = module.rsplit(".", 1)
            owner = getattr(importlib.import_module(parent), cls)
        assert callable(getattr(owner, attribute)), name


def test_the_page_names_runs_and_no_paths(committed: str) -> None:
    assert re.search(r"Trained runs shown: \w+/\w+/\w+", committed)
    assert not re.search(r"(?<!\w)/(?:tmp|home|work|root|usr)\b|\bruns/", committed)


def test_prose_begins_no_line_as_a_list_would(steps: list[page.Step], committed: str) -> None:
    for line in committed.splitlines():
        assert not re.match(r"\s*(?:[-+*] |\d+[.)] |#+$)", line), line
        assert len(line) <= 100 or line.startswith("|"), line


# --- figures ------------------------------------------------------------------------------------


def test_a_grid_writes_every_number_in_its_cell_and_exact_zeros_as_0() -> None:
    grid = tour_figures.Grid("t", np.array([[1, 0], [0.004, 0.25]]), ["a", "b"], ["x", "y"])
    (axes,) = tour_figures.grids_figure([grid]).axes
    cells = {(round(t.get_position()[1]), round(t.get_position()[0])): t for t in axes.texts}
    written = {place: cell.get_text() for place, cell in cells.items()}
    assert written == {(0, 0): "1.00", (0, 1): "0", (1, 0): "0.00", (1, 1): "0.25"}
    assert cells[0, 0].get_color() == "black" and cells[0, 1].get_color() == "white"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["x", "y"]


def test_curves_are_drawn_as_measured_and_told_apart_without_colour() -> None:
    curves = {"a": [1.0, 10.0], "b": [1.0, 1.0]}
    (axes,) = tour_figures.panels_figure([tour_figures.Panel("t", [5, 50], curves, "d", True)]).axes
    for line, values in zip(axes.lines, curves.values(), strict=True):
        np.testing.assert_array_equal(line.get_ydata(), values)
    assert len({line.get_marker() for line in axes.lines}) == 2
    assert axes.get_xscale() == axes.get_yscale() == "log"


# --- the command --------------------------------------------------------------------------------


def make_run(folder: Path, model: str, bleu: tuple[float, float] | None = (20.0, 10.0)) -> Path:
    """A run folder with an untrained model over characters, and scores."""
    settings = {"chosen": {"data": "grammar", "model": model}, "model": config(model)}
    settings |= {group: {} for group in ("data", "tokenizer", "training", "search")}
    for name in ("checkpoints", "tokenizers", "evaluation/test"):
        (folder / name).mkdir(parents=True)
    (folder / "config.yaml").write_text(yaml.dump(settings), encoding="utf-8")
    tokenizer = learn([FIGURE_3A, *heads.SENTENCES], type="char", size=64)
    for side in ("src", "tgt"):
        (folder / "tokenizers" / f"{side}.model").write_bytes(tokenizer.model)
    content = {
        "model": config(model),
        "vocabularies": [tokenizer.size] * 2,
        "digests": [tokenizer.digest] * 2,
        "weights": small(model, tokenizer.size).state_dict(),
    }
    checkpoint.save(folder / "checkpoints" / "best.pt", content)
    if bleu:
        buckets = [
            {"from": low, "to": high, "sentences": 30, "bleu": score, "ci95": [1.0, 30.0]}
            for (low, high), score in zip([(1, 10), (11, None)], bleu, strict=True)
        ]
        whole = {"score": sum(bleu) / 2, "ci95": [1.0, 30.0], "signature": "s"}
        scores = {"bleu": whole, "by_length": buckets}
        (folder / "evaluation/test/scores.json").write_text(json.dumps(scores), encoding="utf-8")
    return folder


def failure(arguments: list[object], capsys: pytest.CaptureFixture) -> str:
    with pytest.raises(SystemExit) as ended:
        attention_tour.main([str(argument) for argument in arguments])
    assert ended.value.code == 1
    return capsys.readouterr().err.strip().splitlines()[-1]


def test_without_runs_the_tour_says_what_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    attention_tour.main([])
    written = Path("runs/attention_tour/attention.md")
    text, printed = written.read_text(encoding="utf-8"), capsys.readouterr().out
    assert printed.startswith(text) and printed.rstrip().endswith(str(written))
    assert text.count("was given, so no") == 3 and "Trained runs shown: none" in text
    figures = {path.name for path in (written.parent / page.FIGURES).iterdir()}
    assert {"plane.png", "scaling.png"} <= figures
    assert not {"alignment.png", "heads.png", "bleu_by_length.png"} & figures
    assert set(re.findall(r"\(figures/tour/(.+?)\)", text)) == figures


def test_runs_fill_in_what_needs_training(tmp_path: Path) -> None:
    runs = [
        make_run(tmp_path / "a", "rnn", (20.0, 10.0)),
        make_run(tmp_path / "b", "bahdanau", (30.0, 29.0)),
        make_run(tmp_path / "c", "transformer", None),
    ]
    arguments = [*runs, "--output", tmp_path / "new" / "tour.md"]
    attention_tour.main([str(argument) for argument in arguments])
    text = " ".join((tmp_path / "new" / "tour.md").read_text(encoding="utf-8").split())
    assert "grammar/rnn/a from 20.0 to 10.0, grammar/bahdanau/b from 30.0 to 29.0." in text
    assert "grammar/bahdanau/b translates it as" in text
    assert "translated by grammar/transformer/c" in text and "heads 1 and 2 of layer" in text
    assert "was given" not in text
    shown = set(re.findall(r"\((figures/tour/.+?)\)", text))
    assert len(shown) == 9 and all((tmp_path / "new" / name).is_file() for name in shown)


def test_a_run_that_was_not_evaluated_is_left_out_of_step_1_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = attention_tour.Run(make_run(tmp_path / "a", "rnn", None))
    assert bottleneck.scores_of([run]) == {}
    assert f"python evaluate.py run={run.folder} split=test" in caplog.text


def test_runs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    folders = [make_run(tmp_path / place / "a", "rnn") for place in ("one", "two")]
    scores = bottleneck.scores_of([attention_tour.Run(folder) for folder in folders])
    assert list(scores) == ["grammar/rnn/a", str(folders[1])]


def test_what_the_user_did_wrong_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "no such run folder" in failure(["nowhere"], capsys)
    assert "is a folder" in failure(["--output", tmp_path], capsys)
    run = make_run(tmp_path / "a", "rnn")
    scores = run / "evaluation/test/scores.json"
    for damaged in ("{", "{}"):
        scores.write_text(damaged, encoding="utf-8")
        line = failure([run], capsys)
        assert str(scores) in line and "not the scores of an evaluation" in line
        assert "evaluate the run again" in line
