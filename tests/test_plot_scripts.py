"""The commands that compare, draw and score runs, over evaluated runs and a pretended model."""

import json
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
import yaml

from data.corpus import ParallelCorpus
from decoding.run import Run
from decoding.translator import ALIGNMENT, Attention, Translation, WeightMap
from evaluation import gold
from scripts import plot_alignments, plot_bleu_by_length, score_alignments

REFERENCES = ["le chat dort", "le chien mange la souris", "la souris voit le chat qui dort"] * 4
SOURCES = ["the cat sleeps", "the dog eats the mouse", "the mouse sees the sleeping cat"] * 4


def make_run(folder, data="bible", model="rnn", settings=None, reverse=False):
    folder.mkdir(parents=True)
    corpus = {"_target_": "data.sources.Tatoeba", "source": None, "reverse": reverse}
    corpus |= {"max_pairs": None, "max_train_words": None}
    config = {"chosen": {"data": data, "model": model}, "model": settings or {}, "data": corpus}
    config |= {"tokenizer": {}, "training": {}, "search": {}}
    (folder / "config.yaml").write_text(yaml.dump(config), encoding="utf-8")
    return folder


def evaluated(folder, hypotheses, sources=SOURCES, split="test", parameters=None, **kwargs):
    make_run(folder, **kwargs)
    results = folder / "evaluation" / split
    results.mkdir(parents=True)
    texts = {"sources.en": sources, "references.fr": REFERENCES, "hypotheses.fr": hypotheses}
    texts["references.2.fr"] = [line.replace("dort", "sommeille") for line in REFERENCES]
    for name, lines in texts.items():
        (results / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (results / "scores.json").write_text(json.dumps({"parameters": parameters}))
    return folder


def failure(main, arguments, capsys):
    """The one line of an error."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    assert ended.value.code == 1
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("error: ")
    return lines[0]


# --- plot_bleu_by_length ------------------------------------------------------------------------

BAD = [line.replace("chat", "chien").replace("dort", "mange") for line in REFERENCES]


def test_evaluated_runs_are_compared_in_a_table_a_figure_and_records(tmp_path, capsys):
    runs = [
        evaluated(tmp_path / "rnn" / "a", BAD, model="rnn", parameters=1234567),
        evaluated(tmp_path / "bahdanau" / "a", REFERENCES, model="bahdanau"),
    ]
    options = ["--edges", "4", "--minimum", "8", "--json", tmp_path / "all.json"]
    plot_bleu_by_length.main([str(argument) for argument in [*runs, *options]])
    printed = capsys.readouterr().out
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in printed.splitlines()]
    assert rows[0] == ["model", "parameters", "BLEU", "1–4 words", "5+ words"]
    assert rows[2][:2] == ["rnn", "1,234,567"] and rows[2][3] == "n/a"
    assert rows[3] == ["bahdanau", "", "100.0 ± 0.0", "n/a", "100.0"]
    assert rows[4] == ["sentences", "", "12", "4", "8"]
    assert rows[6] == ["difference in BLEU", "all", "5+ words"]
    assert rows[8][0] == "bahdanau − rnn" and rows[8][1].startswith("+")
    for ending in ("png", "pdf"):
        assert (tmp_path / f"bleu_by_length_test.{ending}").is_file()
        assert f"bleu_by_length_test.{ending}" in printed
    records = json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))
    assert [(r["run"], r["from"], r["to"], r["sentences"]) for r in records[:3]] == [
        ("rnn", 1, None, 12),
        ("rnn", 1, 4, 4),
        ("rnn", 5, None, 8),
    ]
    assert records[1]["bleu"] is None
    assert records[-1]["against"] == "rnn" and 0 < records[-1]["p"] <= 1


def test_what_is_left_on_long_sentences_stands_in_the_table_and_the_records(tmp_path, capsys):
    lengths = [12] * 6 + [45, 48, 50, 55, 60, 70]
    sources = [" ".join(["word"] * length) for length in lengths]
    run = evaluated(tmp_path / "rnn", [*REFERENCES[:6], *BAD[6:]], sources)
    options = ["--minimum", "6", "--json", tmp_path / "all.json"]
    plot_bleu_by_length.main([str(argument) for argument in [run, *options]])
    header, _, row, *_ = capsys.readouterr().out.splitlines()
    assert header.split("|")[-2].strip() == "41+ / 11–20"
    whole = json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))[0]
    assert 0 < whole["long_to_short"] < 1  # the six of 41 words and more are too few in each bucket
    assert row.split("|")[-2].strip() == f"{whole['long_to_short']:.2f}"


def test_further_references_count(tmp_path):
    run = evaluated(tmp_path / "a", [line.replace("dort", "sommeille") for line in REFERENCES])
    one = plot_bleu_by_length.read_evaluation(Run(run), "test")
    assert [name for name in one.texts if name[0] == "r"] == ["references.fr", "references.2.fr"]
    assert len(one.references) == 2 and one.references[0] == REFERENCES
    assert one.sources == SOURCES


def test_the_figure_goes_where_asked_with_published_curves(tmp_path, capsys):
    run = evaluated(tmp_path / "a", REFERENCES)
    output = tmp_path / "new" / "figure.svg"
    options = ["--reference", "bahdanau2015", "--output", str(output), "--title", "Bible"]
    plot_bleu_by_length.main([str(run), *options])
    assert "RNNsearch" not in capsys.readouterr().out
    svg = output.read_text("utf-8")
    assert svg.count("RNNsearch-50 (published") == 1
    assert output.is_file() and output.with_suffix(".png").is_file()


def test_runs_on_other_sentences_are_refused(tmp_path, capsys):
    first = evaluated(tmp_path / "a", REFERENCES)
    other = evaluated(tmp_path / "b", REFERENCES, sources=["other", *SOURCES[1:]], model="x")
    message = failure(plot_bleu_by_length.main, [first, other], capsys)
    assert "sources.en is not the same" in message and str(other) in message
    (other / "evaluation/test/references.2.fr").unlink()
    (other / "evaluation/test/sources.en").write_bytes(
        (first / "evaluation/test/sources.en").read_bytes()
    )
    assert "references.2.fr" in failure(plot_bleu_by_length.main, [first, other], capsys)


def test_a_run_without_evaluation_is_told_the_command(tmp_path, capsys):
    run = evaluated(tmp_path / "a", REFERENCES)
    message = failure(plot_bleu_by_length.main, [run, "--split", "dev"], capsys)
    assert f"python evaluate.py run={run} split=dev" in message


def test_a_missing_line_of_translation_is_an_error(tmp_path, capsys):
    run = evaluated(tmp_path / "a", REFERENCES[1:])
    message = failure(plot_bleu_by_length.main, [run], capsys)
    assert "11 translations cannot be scored against 12" in message


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["bible/rnn/a", "bible/bahdanau/a"], ["rnn", "bahdanau"]),
        (["bible/rnn/a", "bible/rnn/b", "bible/bahdanau/a"], ["rnn/a", "rnn/b", "bahdanau"]),
        (["bible/rnn/a", "multi30k/rnn/a"], ["bible/rnn", "multi30k/rnn"]),
        (["bible/rnn/a"], ["rnn"]),
        (["bible/rnn/a", "bible/rnn/a"], ["folder0", "folder1"]),
    ],
)
def test_runs_have_names_that_tell_them_apart(names, labels):
    runs = [SimpleNamespace(name=name, folder=f"folder{i}") for i, name in enumerate(names)]
    assert plot_bleu_by_length.distinct_labels(runs) == labels


def test_a_run_given_twice_is_refused(tmp_path, capsys):
    run = evaluated(tmp_path / "a", REFERENCES)
    assert "given twice" in failure(plot_bleu_by_length.main, [run, run], capsys)


# --- a model that knows one sentence ------------------------------------------------------------

PIECES = {
    "the red house": ["▁the", "▁red", "▁house"],
    "la maison rouge": ["▁la", "▁mai", "son", "▁rouge"],
}
WEIGHTS = np.array(
    [
        [0.8, 0.0, 0.1, 0.1],
        [0.1, 0.1, 0.7, 0.1],
        [0.1, 0.2, 0.6, 0.1],
        [0.1, 0.8, 0.0, 0.1],
        [0.0, 0.0, 0.0, 1.0],
    ]
)
# of a model that translates back: right for "red" alone
BACK = np.array(
    [
        [0.1, 0.5, 0.2, 0.1, 0.1],
        [0.1, 0.1, 0.0, 0.8, 0.0],
        [0.1, 0.1, 0.0, 0.7, 0.1],
        [0.0, 0.0, 0.0, 0.0, 1.0],
    ]
)
# two layers of two heads: the second layer's second head looks where it should have a step earlier
BEFORE = np.vstack([np.eye(4)[3], WEIGHTS[:-1]])
HEADS = np.array([[np.full((5, 4), 0.25), WEIGHTS[::-1]], [WEIGHTS, BEFORE]])


# without "house" the model knows neither "la" nor "maison", without "red" not "rouge"
LOG_PROBS = {
    "the red house": [-1, -1, -1, -1, -1],
    "red house": [-1, -1, -1, -1, -1],
    "the house": [-1, -1, -1, -3, -1],
    "the red": [-10, -6, -6, -1, -1],
}


class PretendedTranslator:
    has_attention = True
    text = "la maison rouge"
    pieces = PIECES["la maison rouge"]
    weights = WEIGHTS[None, None]  # (layers, heads, target pieces, source pieces)
    asked: ClassVar = []  # how many sentences at a time

    @classmethod
    def from_run(cls, run, device, checkpoint):
        return cls()

    def translate(self, sentences, search):
        return [
            Translation(self.text, [9, 8, 7], self.pieces, -1.0, -1.0, False, 0) for _ in sentences
        ]

    def attention(self, sources, targets, first_line=1):
        self.asked.append(len(sources))
        return [
            Attention(
                [*PIECES[source], "</s>"],
                [*PIECES[getattr(target, "text", target)], "</s>"],
                {ALIGNMENT: WeightMap(self.looks(source), "target", "source")},
            )
            for source, target in zip(sources, targets, strict=True)
        ]

    def log_probs(self, sources, targets):
        return [np.array(LOG_PROBS[source], dtype=float) for source in sources]

    def looks(self, source):
        return self.weights if source == "the red house" else BACK[None, None]


@pytest.fixture
def several(monkeypatch):
    monkeypatch.setattr(PretendedTranslator, "weights", HEADS)


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr(PretendedTranslator, "asked", [])
    monkeypatch.setattr("decoding.translator.Translator", PretendedTranslator)
    monkeypatch.setattr(
        plot_alignments, "model_and_step", lambda run, name: f"{run.name} · checkpoint {name}"
    )
    return make_run(tmp_path / "run", model="bahdanau")


# --- plot_alignments ----------------------------------------------------------------------------


@pytest.fixture
def drawn(monkeypatch):
    calls = []
    original = plot_alignments.alignment_figure

    def record(weights, src_words, tgt_words, **options):
        calls.append((weights, src_words, tgt_words, options))
        return original(weights, src_words, tgt_words, **options)

    monkeypatch.setattr(plot_alignments, "alignment_figure", record)
    return calls


def test_the_models_own_translation_is_drawn_word_by_word(run, drawn, capsys):
    plot_alignments.main([str(run), "--source", "the red house"])
    ((weights, src_words, tgt_words, options),) = drawn
    assert (src_words, tgt_words) == (["the", "red", "house"], ["la", "maison", "rouge"])
    expected = np.array([[8, 0, 1], [1, 1.5, 6.5], [1, 8, 0]]) / 9
    np.testing.assert_allclose(weights, expected)
    caption = options["caption"]
    for part in ("bible/bahdanau/run", "checkpoint best", "</s> left out", "own translation"):
        assert part in caption
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "la maison rouge"
    for line, ending in zip(printed[1:], ("png", "pdf"), strict=True):
        assert line.strip() == str(run / "figures" / f"alignment-the-red-house.{ending}")
        assert (run / "figures" / f"alignment-the-red-house.{ending}").is_file()


def test_a_given_target_is_not_translated_and_the_end_can_be_kept(run, drawn, tmp_path):
    options = ["--target", "la maison rouge", "--keep-end", "--output", str(tmp_path / "x.svg")]
    plot_alignments.main([str(run), "--source", "the red house", *options])
    ((weights, src_words, _, options),) = drawn
    assert src_words == ["the", "red", "house", "</s>"]
    np.testing.assert_allclose(weights.sum(1), 1)
    assert "given target" in options["caption"] and "kept" in options["caption"]
    assert (tmp_path / "x.svg").is_file() and (tmp_path / "x.png").is_file()


def test_several_sentences_make_several_figures(run, drawn, tmp_path):
    (tmp_path / "in.en").write_text("the red house\nthe red house\n", encoding="utf-8")
    arguments = [str(run), "--sources", str(tmp_path / "in.en")]
    plot_alignments.main(arguments)
    plot_alignments.main([*arguments, "--output", str(tmp_path / "out.png")])
    assert len(drawn) == 4
    names = {path.name for path in (run / "figures").glob("*.png")}
    assert names == {"alignment-the-red-house-1.png", "alignment-the-red-house-2.png"}
    assert {path.name for path in tmp_path.glob("*.png")} == {"out-1.png", "out-2.png"}


@pytest.mark.parametrize(
    ("options", "weights", "where", "name"),
    [
        ([], WEIGHTS + BEFORE, "decoder layer 2 of 2, mean of 2 heads", ""),
        (["--head", "2"], BEFORE, "decoder layer 2 of 2, head 2 of 2", "-head-2"),
        (
            ["--layer", "1", "--head", "1"],
            np.full((5, 4), 0.25),
            "decoder layer 1 of 2, head 1 of 2",
            "-layer-1-head-1",
        ),
        (
            ["--layer", "mean"],
            HEADS.sum((0, 1)),
            "mean of 2 decoder layers, mean of 2 heads",
            "-layer-mean",
        ),
    ],
)
def test_the_layer_and_head_that_are_asked_for_are_drawn_and_named(
    run, several, drawn, options, weights, where, name
):
    plot_alignments.main([str(run), "--source", "the red house", *options])
    ((matrix, *_, shown),) = drawn
    expected = weights[[0, 3], :3]  # the target words of one piece
    mass = expected.sum(1, keepdims=True)
    np.testing.assert_allclose(matrix[[0, 2]], expected / np.where(mass > 0, mass, 1))
    assert where in shown["caption"]
    assert (run / "figures" / f"alignment-the-red-house{name}.png").is_file()


def test_the_layer_of_the_runs_settings_is_drawn_unless_another_is_asked_for(
    run, several, drawn, tmp_path
):
    other = make_run(tmp_path / "t", settings={"alignment_layer": 1})
    for options in ([], ["--layer", "2"]):
        plot_alignments.main([str(other), "--source", "the red house", *options])
    first, second = (figure[3]["caption"] for figure in drawn)
    assert "decoder layer 1 of 2" in first and "decoder layer 2 of 2" in second


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--layer", "3"], "no layer 3: this model attends with 2 layers"),
        (["--head", "9"], "no head 9: this model attends with 2 heads"),
    ],
)
@pytest.mark.parametrize("script", [plot_alignments, score_alignments])
def test_a_layer_or_head_that_is_not_there_is_refused(
    script, run, several, corpus, options, message, capsys
):
    source = ["--source", "the red house"] if script is plot_alignments else []
    assert message in failure(script.main, [run, *source, *options], capsys)


@pytest.mark.parametrize("value", [0, 3, "two", None])
def test_settings_that_name_no_layer_are_refused(tmp_path, several, run, corpus, value, capsys):
    other = make_run(tmp_path / "t", settings={"alignment_layer": value})
    message = failure(score_alignments.main, [other], capsys)
    assert f"model.alignment_layer is a number from 1 to 2, not {value!r}" in message
    assert str(other / "config.yaml") in message


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "both"])
@pytest.mark.parametrize("script", [plot_alignments, score_alignments])
def test_a_layer_is_a_number_from_1_or_a_word(script, run, value, capsys):
    with pytest.raises(SystemExit) as ended:
        script.main([str(run), f"--layer={value}"])
    assert ended.value.code == 2
    assert "is not a number from 1 on" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "which sentence?"),
        (["--source", " "], "source 1 is blank"),
        (["--source", "a", "--target", "b", "--target", "c"], "2 targets do not fit 1 sources"),
        (["--sources", "nowhere.en"], "nowhere.en"),
    ],
)
def test_sentences_that_cannot_be_drawn_are_said_in_one_line(run, arguments, message, capsys):
    assert message in failure(plot_alignments.main, [run, *arguments], capsys)


def test_an_empty_translation_is_not_drawn(run, monkeypatch, capsys):
    monkeypatch.setattr(PretendedTranslator, "text", "")
    message = failure(plot_alignments.main, [run, "--source", "the red house"], capsys)
    assert "is empty" in message


@pytest.mark.parametrize("script", [plot_alignments, score_alignments])
def test_a_model_without_attention_is_refused(script, run, monkeypatch, capsys):
    monkeypatch.setattr(PretendedTranslator, "has_attention", False)
    arguments = [run, "--source", "the red house"] if script is plot_alignments else [run]
    message = failure(script.main, arguments, capsys)
    assert "bible/bahdanau/run has no attention" in message


@pytest.mark.parametrize(
    ("sentence", "name"),
    [("The été, n'est-ce pas?", "the-ete-n-est-ce-pas"), ("???", "sentence"), ("a" * 80, "a" * 50)],
)
def test_files_are_named_after_the_sentence(sentence, name):
    assert plot_alignments.slug(sentence) == name


# --- score_alignments ---------------------------------------------------------------------------


@pytest.fixture
def corpus(monkeypatch):
    """One sentence; `la maison rouge` aligned with `the house red`."""
    texts = ParallelCorpus(["the red house"], ["la maison rouge"], ["0-0 2-1 1-2"])

    def use(corpus):
        def pretended(run):
            reverse = run.config["data"]["reverse"]
            return SimpleNamespace(load=lambda split: corpus, reverse=reverse)

        monkeypatch.setattr(Run, "corpus", pretended)

    use(texts)
    return use


def records_of(run, tmp_path, *options):
    score_alignments.main([str(run), "--json", str(tmp_path / "out.json"), *map(str, options)])
    return json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))


def test_attention_is_scored_against_the_corpus_beside_a_diagonal(run, corpus, tmp_path, capsys):
    attention, diagonal = records_of(run, tmp_path)
    assert attention == {
        "run": "bible/bahdanau/run",
        "setting": "argmax",
        "layer": 1,
        "head": "mean",
        "shift": False,
        "aer": 0.0,
        "precision": 1.0,
        "recall": 1.0,
        "aer_crossing": 0.0,
        "aer_diagonal": 0.0,
        "sentences": 1,
        "links": 3,
    }
    assert (diagonal["setting"], diagonal["layer"]) == ("diagonal", None)
    assert diagonal["aer"] == pytest.approx(2 / 3)
    assert (diagonal["aer_crossing"], diagonal["aer_diagonal"]) == (1.0, 0.0)
    table = capsys.readouterr().out.splitlines()
    assert [cell.strip() for cell in table[3].strip("|").split("|")] == [
        "(none)", "", "", "diagonal", "66.7", "33.3", "33.3", "100.0", "0.0", "3", "1"
    ]  # fmt: skip
    assert table[4] == (
        f'see it: python -m scripts.plot_alignments {run} --layer 1 --head mean --source "..."'
    )


def test_links_may_be_drawn_by_threshold_or_from_the_next_step(run, corpus, tmp_path):
    (by_threshold, _) = records_of(run, tmp_path, "--method", "threshold", "--threshold", "0.1")
    assert by_threshold["setting"] == "threshold 0.1"
    # 0.1 of 0.9 is over the threshold too: links to all words but those of weight 0
    assert (by_threshold["precision"], by_threshold["recall"]) == (pytest.approx(3 / 7), 1.0)
    (shifted, _) = records_of(run, tmp_path, "--shift")
    assert shifted["setting"] == "argmax shifted"
    assert shifted["recall"] == 0.0  # each word takes its successor's attention, the last none


def test_links_may_be_drawn_from_what_a_word_is_worth(run, corpus, tmp_path):
    (worth, _) = records_of(run, tmp_path, "--evidence", "difference")
    assert worth["setting"] == "argmax, difference"
    assert worth["recall"] == pytest.approx(2 / 3)  # "la" goes with "house", not with "the"
    (mean, _) = records_of(run, tmp_path, "--evidence", "mean")
    assert mean["setting"] == "argmax, mean"
    # "la" has 0.8 + 0 of "the", 0.1 + 1 of "house": halves decide as their sum does
    assert mean["recall"] == pytest.approx(2 / 3)
    (drawn, _) = records_of(
        run, tmp_path, "--evidence", "mean", "--method", "threshold", "--threshold", "0.4"
    )
    assert (drawn["precision"], drawn["recall"]) == (pytest.approx(3 / 4), 1.0)


def test_the_diagonal_of_one_corpus_is_shown_once_for_several_runs(run, corpus, tmp_path):
    other = make_run(tmp_path / "other", model="transformer")
    records = records_of(run, tmp_path, other)
    assert [record["run"] for record in records] == [
        "bible/bahdanau/run",
        "bible/transformer/other",
        "(none)",
    ]


def test_gold_links_of_tokenised_text_are_read_from_files(run, tmp_path):
    (tmp_path / "text").write_text("the red house ||| la maison rouge\n", encoding="utf-8")
    (tmp_path / "gold").write_text("1-1 3-2 2p3\n", encoding="utf-8")
    files = ["--gold", tmp_path / "gold", "--text", tmp_path / "text", "--one-based"]
    attention, _ = records_of(run, tmp_path, *files)
    assert (attention["aer"], attention["precision"], attention["recall"]) == (0.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("gold", "text", "options", "message"),
    [
        ("1-1 3-3\n", "a b c ||| x y z\n", [], "gold, line 1: link 3-3 is beyond the 3 source"),
        ("0-0\n", "a ||| x\n", ["--one-based"], "gold, line 1: link 0-0 counts from 0"),
        ("0-0\n", "a | x\n", [], "text, line 1: expected source ||| target"),
        ("0-0\n0-0\n", "a ||| x\n", [], "gold: 2 lines for 1 sentences"),
    ],
)
def test_wrong_gold_files_are_reported_by_line(run, tmp_path, gold, text, options, message, capsys):
    (tmp_path / "gold").write_text(gold, encoding="utf-8")
    (tmp_path / "text").write_text(text, encoding="utf-8")
    files = ["--gold", tmp_path / "gold", "--text", tmp_path / "text"]
    assert message in failure(score_alignments.main, [run, *files, *options], capsys)


def test_a_corpus_without_gold_links_is_refused(run, corpus, capsys):
    corpus(ParallelCorpus(["the red house"], ["la maison rouge"]))
    message = failure(score_alignments.main, [run], capsys)
    assert "no gold alignments" in message and "data=grammar" in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--text", "t"], "--text and --one-based say more of --gold FILE, which is not given"),
        (["--one-based"], "--text and --one-based say more of --gold FILE"),
        (["--method", "threshold", "--threshold", "0"], "--threshold is above 0 and at most 1"),
        (["--gold", "nowhere"], "no file nowhere"),
        (["--evidence", "mean", "--shift"], "--shift and --each are for attention alone"),
        (["--evidence", "difference", "--each"], "--shift and --each are for attention alone"),
    ],
)
def test_options_that_make_no_sense_are_refused(run, options, message, capsys):
    assert message in failure(score_alignments.main, [run, *options], capsys)


def test_links_of_pharaoh_lines_need_their_words_and_json_lines_have_them(run, tmp_path, capsys):
    (tmp_path / "pharaoh").write_text("0-0\n", encoding="utf-8")
    (tmp_path / "json").write_text('{"src_words": ["a"]}\n', encoding="utf-8")
    (tmp_path / "empty").write_text("", encoding="utf-8")
    for options, message in (
        (["--gold", tmp_path / "pharaoh"], "pharaoh holds links alone: give their words as --text"),
        (["--gold", tmp_path / "json", "--text", "t"], "json holds words as well as links"),
        (["--gold", tmp_path / "json"], "json, line 1: expected an object"),
        (["--gold", tmp_path / "empty", "--text", tmp_path / "empty"], "empty holds no sentence"),
    ):
        assert message in failure(score_alignments.main, [run, *options], capsys)


SENTENCE = {
    "src_words": ["the", "red", "house"],
    "tgt_words": ["la", "maison", "rouge"],
    "alignment": [[0, 0], [2, 1], [1, 2]],
}


def test_json_lines_are_read_by_their_content_and_called_out_of_domain(run, tmp_path, capsys):
    (tmp_path / "gold.jsonl").write_text(json.dumps(SENTENCE) + "\n\n", encoding="utf-8")
    attention, _ = records_of(run, tmp_path, "--gold", tmp_path / "gold.jsonl")
    assert (attention["aer"], attention["sentences"]) == (0.0, 1)
    printed = capsys.readouterr().out
    assert "gold.jsonl, 1 sentences, 3 sure and 0 only possible links; out of domain" in printed
    assert "trained on bible" in printed and "(published)" not in printed


def test_words_of_json_lines_follow_the_text_rule(run, tmp_path, monkeypatch):
    monkeypatch.setitem(PIECES, "the dog's bone", ["▁the", "▁dog's", "▁bone"])
    monkeypatch.setattr(PretendedTranslator, "looks", lambda self, source: self.weights)
    words = {"src_words": ["the", "dog\u2019s", "bone"], "alignment": [[1, 1]]}
    (tmp_path / "gold").write_text(json.dumps(SENTENCE | words), encoding="utf-8")
    attention, _ = records_of(run, tmp_path, "--gold", tmp_path / "gold")
    assert attention["sentences"] == 1


def test_published_rates_stand_beside_the_hansards(run, tmp_path, capsys, monkeypatch):
    assert gold.HANSARDS == (447, 4038, 13400)
    assert gold.PUBLISHED["fast_align"] == 10.5 and gold.PUBLISHED["GIZA++"] == 5.9
    monkeypatch.setattr(gold, "HANSARDS", (1, 3, 0))
    (tmp_path / "gold").write_text(json.dumps(SENTENCE), encoding="utf-8")
    records = records_of(run, tmp_path, "--gold", tmp_path / "gold")
    assert len(records) == 2  # what was measured here
    printed = capsys.readouterr().out
    assert "| 10.5 |" in " ".join(printed.split()) and "Dou & Neubig 2021" in printed


def test_each_layer_and_head_has_a_row_with_and_without_shift(
    run, several, corpus, tmp_path, capsys
):
    *records, diagonal = records_of(run, tmp_path, "--each")
    assert diagonal["run"] == "(none)"
    assert [(r["layer"], r["head"], r["shift"]) for r in records] == [
        (layer, head, shift)
        for layer, head in [(1, 1), (1, 2), (1, "mean"), (2, 1), (2, 2), (2, "mean"), ("mean",) * 2]
        for shift in (False, True)
    ]
    rates = {(r["layer"], r["head"], r["shift"]): r["aer"] for r in records}
    assert rates[2, 1, False] == rates[2, 2, True] == 0.0
    assert rates[2, 2, False] > 0 and rates[2, 1, True] > 0
    marked = [line for line in capsys.readouterr().out.splitlines() if "**0.0**" in line]
    assert len(marked) == list(rates.values()).count(0.0)


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ([], [(2, "mean")]),
        (["--layer", "1"], [(1, "mean")]),
        (["--layer", "mean", "--head", "2"], [("mean", 2)]),
        (["--layer", "all"], [(1, "mean"), (2, "mean"), ("mean", "mean")]),
        (["--head", "all"], [(2, 1), (2, 2), (2, "mean")]),
        (["--layer", "all", "--head", "1"], [(1, 1), (2, 1), ("mean", 1)]),
        (["--layer", "1", "--each"], [(1, h) for h in (1, 1, 2, 2, "mean", "mean")]),
    ],
)
def test_rows_are_those_asked_for(run, several, corpus, tmp_path, options, rows):
    *records, _ = records_of(run, tmp_path, *options)
    assert [(r["layer"], r["head"]) for r in records] == rows


def test_the_layer_of_the_runs_settings_is_scored(run, several, corpus, tmp_path):
    other = make_run(tmp_path / "t", settings={"alignment_layer": 1})
    *records, _ = records_of(other, tmp_path, "--head", "1")
    assert [record["layer"] for record in records] == [1]


@pytest.mark.parametrize("method", ["bidirectional", "balanced"])
def test_links_of_both_directions_come_out_of_one_matrix(run, corpus, tmp_path, method):
    attention, _ = records_of(run, tmp_path, "--method", method)
    assert (attention["setting"], attention["aer"], attention["links"]) == (method, 0.0, 3)


def test_a_run_and_one_that_translates_back_are_symmetrised(run, corpus, tmp_path):
    back = make_run(tmp_path / "back", model="bahdanau", reverse=True)
    records = records_of(run, tmp_path, "--reverse", back)
    names = "bible/bahdanau/run", "bible/bahdanau/back"
    both = " + ".join(names)
    # forward: la-the, maison-house, rouge-red; back: the-maison, red-rouge, house-rouge
    expected = [
        (names[0], "argmax", 3, 3),
        (names[1], "argmax, back", 3, 1),
        (both, "argmax, intersection", 1, 1),
        (both, "argmax, union", 5, 3),
        # from red-rouge to house-rouge and the-maison, then to the-la; house-maison has both words
        (both, "argmax, grow-diag-final-and", 4, 2),
        # la-the, rouge-red and maison-the, for 0.1 times 0.7 is more than house's 0.65 times 0.1
        (both, "argmax, agreement", 3, 2),
        ("(none)", "diagonal", 3, 1),
    ]
    assert [(r["run"], r["setting"], r["links"]) for r in records] == [row[:3] for row in expected]
    for record, (*_, size, right) in zip(records, expected, strict=True):
        assert record["precision"] == pytest.approx(right / size)
        assert record["aer"] == pytest.approx(1 - 2 * right / (size + 3))


def test_a_run_that_translates_back_is_scored_on_gold_turned_round(run, tmp_path):
    back = make_run(tmp_path / "back", model="bahdanau", reverse=True)
    (tmp_path / "gold").write_text(json.dumps(SENTENCE), encoding="utf-8")
    attention, _ = records_of(back, tmp_path, "--gold", tmp_path / "gold")
    assert (attention["precision"], attention["links"]) == (pytest.approx(1 / 3), 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "bible/rnn/other translates in the same direction as bible/bahdanau/run"),
        (["--each"], "--reverse goes with one RUN and one layer and head"),
        (["--layer", "all"], "--reverse goes with one RUN and one layer and head"),
        (["RUN"], "--reverse goes with one RUN and one layer and head"),
    ],
)
def test_directions_that_cannot_be_symmetrised_are_refused(
    run, corpus, tmp_path, options, message, capsys
):
    other = make_run(tmp_path / "other")
    options = [str(other) if option == "RUN" else option for option in options]
    arguments = [run, *options, "--reverse", other]
    assert message in failure(score_alignments.main, arguments, capsys)


def test_attention_is_held_for_some_sentences_at_a_time(run, corpus, tmp_path, monkeypatch):
    corpus(ParallelCorpus(["the red house"] * 5, ["la maison rouge"] * 5, ["0-0 2-1 1-2"] * 5))
    whole = records_of(run, tmp_path)
    monkeypatch.setattr(score_alignments, "CHUNK", 2)
    PretendedTranslator.asked.clear()
    assert records_of(run, tmp_path) == whole and whole[0]["sentences"] == 5
    assert PretendedTranslator.asked == [2, 2, 1]


def test_sentences_that_were_not_read_whole_are_left_out_and_said(
    run, corpus, tmp_path, monkeypatch, caplog
):
    monkeypatch.setitem(PIECES, "the red house now", PIECES["the red house"])  # cut off
    sources = ["the red house", "the red house now"]
    monkeypatch.setattr(PretendedTranslator, "looks", lambda self, source: self.weights)
    corpus(ParallelCorpus(sources, ["la maison rouge"] * 2, ["0-0 2-1 1-2"] * 2))
    attention, diagonal = records_of(run, tmp_path)
    assert attention["sentences"] == diagonal["sentences"] == 1
    assert "1 sentences left out; the first: the pieces" in caplog.text
