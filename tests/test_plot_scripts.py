"""The commands that compare, draw and score runs, over evaluated runs and a pretended model."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

from data.corpus import ParallelCorpus
from decoding.run import Run
from decoding.translator import Alignment, Translation
from scripts import plot_alignments, plot_bleu_by_length, score_alignments

REFERENCES = ["le chat dort", "le chien mange la souris", "la souris voit le chat qui dort"] * 4
SOURCES = ["the cat sleeps", "the dog eats the mouse", "the mouse sees the sleeping cat"] * 4


def make_run(folder, data="bible", model="rnn", settings=None):
    folder.mkdir(parents=True)
    config = {"chosen": {"data": data, "model": model}, "model": settings or {}}
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


class PretendedTranslator:
    has_attention = True
    text = "la maison rouge"
    pieces = PIECES["la maison rouge"]

    @classmethod
    def from_run(cls, run, device, checkpoint):
        return cls()

    def translate(self, sentences, search):
        return [
            Translation(self.text, [9, 8, 7], self.pieces, -1.0, -1.0, False, 0) for _ in sentences
        ]

    def align(self, sources, targets):
        return [
            Alignment([*PIECES[s], "</s>"], [*PIECES[getattr(t, "text", t)], "</s>"], WEIGHTS)
            for s, t in zip(sources, targets, strict=True)
        ]


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr(plot_alignments, "Translator", PretendedTranslator)
    monkeypatch.setattr(score_alignments, "Translator", PretendedTranslator)
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


def test_the_layer_of_a_transformer_is_named(tmp_path):
    run = Run(make_run(tmp_path / "t", settings={"alignment_layer": 2}))
    assert "decoder layer 2, mean of its heads" in plot_alignments.caption(run, "best", True, False)


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
        monkeypatch.setattr(Run, "corpus", lambda run: SimpleNamespace(load=lambda split: corpus))

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
        "aer": 0.0,
        "precision": 1.0,
        "recall": 1.0,
        "aer_crossing": 0.0,
        "aer_diagonal": 0.0,
        "sentences": 1,
    }
    assert diagonal["setting"] == "diagonal"
    assert diagonal["aer"] == pytest.approx(2 / 3)
    assert (diagonal["aer_crossing"], diagonal["aer_diagonal"]) == (1.0, 0.0)
    table = capsys.readouterr().out.splitlines()
    assert [cell.strip() for cell in table[3].strip("|").split("|")] == [
        "(none)", "diagonal", "66.7", "33.3", "33.3", "100.0", "0.0", "1"
    ]  # fmt: skip


def test_links_may_be_drawn_by_threshold_or_from_the_next_step(run, corpus, tmp_path):
    (by_threshold, _) = records_of(run, tmp_path, "--method", "threshold", "--threshold", "0.1")
    assert by_threshold["setting"] == "threshold 0.1"
    # 0.1 of 0.9 is over the threshold too: links to all words but those of weight 0
    assert (by_threshold["precision"], by_threshold["recall"]) == (pytest.approx(3 / 7), 1.0)
    (shifted, _) = records_of(run, tmp_path, "--shift")
    assert shifted["setting"] == "argmax shifted"
    assert shifted["recall"] == 0.0  # each word takes its successor's attention, the last none


def test_the_diagonal_of_one_corpus_is_shown_once_for_several_runs(run, corpus, tmp_path):
    other = make_run(tmp_path / "other", model="transformer")
    records = records_of(run, tmp_path, other)
    assert [record["run"] for record in records] == [
        "bible/bahdanau/run",
        "(none)",
        "bible/transformer/other",
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


def test_gold_links_need_their_text(run, tmp_path, capsys):
    assert "together" in failure(score_alignments.main, [run, "--gold", tmp_path / "g"], capsys)


def test_sentences_that_were_not_read_whole_are_left_out_and_said(run, corpus, tmp_path, caplog):
    texts = ParallelCorpus(
        ["the red house", "the red house"], ["la maison rouge"] * 2, ["0-0 2-1 1-2"] * 2
    )
    corpus(texts)
    text = score_alignments.read_corpus(Run(run), "test")
    text.words[1][0].append("now")
    options = score_alignments._parser().parse_args([str(run)])
    alignments = PretendedTranslator().align(text.sources, text.targets)
    record, _ = score_alignments.score("r", text, alignments, options)
    assert record["sentences"] == 1 and "1 sentences left out" in caplog.text
