"""The page of alignments: which sentences the rule chooses, what is written beside them."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import yaml
from matplotlib.backends.backend_agg import FigureCanvasAgg

from data.corpus import normalise
from decoding.described import model_and_step
from decoding.evaluated import read_evaluation
from decoding.run import Run
from decoding.translator import ALIGNMENT, Attention, WeightMap
from evaluation import choice
from evaluation.alignment import WordAlignment, words
from evaluation.figures import save
from evaluation.gallery import MAX_PANELS, Panel, gallery_figure
from models import checkpoint as checkpoints
from scripts import plot_alignments

# --- the rule -----------------------------------------------------------------------------------


def attention(links, size):
    """Weights whose strongest are the links, one for each target word: its source word."""
    matrix = np.full((len(links), size), 0.1 / size)
    matrix[np.arange(len(links)), links] += 0.9
    return matrix


def test_crossing_links_are_counted_between_content_words():
    source = ["The", "strange", "German", "student", "smiled", "."]
    target = ["Une", "étudiante", "allemande", "étrange", "a", "souri", "."]
    links = attention([0, 3, 2, 1, 4, 4, 5], 6)
    # student, German and strange cross each other; smiled, and its full stop, none of them
    assert choice.crossings(source, target, [links]) == 3
    assert (
        choice.crossings(source, target, [attention([5, 3, 2, 1, 0, 4, 0], 6)]) == 3
    )  # "Une", "a"
    assert choice.crossings(source, target, [attention([0, 1, 2, 3, 4, 4, 5], 6)]) == 0


def test_only_links_on_which_all_models_agree_count():
    source, target = ["black", "cats", "sleep"], ["chats", "noirs", "dorment"]
    right, wrong = attention([1, 0, 2], 3), attention([2, 1, 0], 3)
    assert choice.crossings(source, target, [right]) == 1
    assert choice.crossings(source, target, [wrong]) == 3
    assert choice.crossings(source, target, [right, wrong]) == 0
    assert choice.crossings(source, target, [right, right]) == 1


def test_a_word_linked_twice_crosses_nothing_by_itself():
    assert choice.crossings(["smiled", "never"], ["avait", "souri"], [attention([1, 1], 2)]) == 0


LINE = "one two three four five six"
SOURCES = [f"{LINE} {n}" for n in ("a", "b", "c", "a", "d e f g h i j k l m n")] + ["short"]


def test_sentences_are_readable_well_translated_by_every_model_and_taken_once():
    good, half = "un deux trois quatre cinq six sept", "un deux trois x x x x"
    references = [[good] * 6, [good.replace("sept", "huit")] * 6]
    first = [good.replace("sept", "huit"), good, good, good, good, good]
    second = [good, half, good, good, good, good]
    chosen = choice.well_translated(SOURCES, references, [first, second], count=0)
    assert chosen == {0: 100.0, 2: 100.0}  # further references count; 3 repeats 0, 4 is long
    assert choice.well_translated(SOURCES, references, [first], count=0).keys() == {0, 1, 2}


def test_where_few_are_translated_well_the_best_are_chosen_from():
    good = "un deux trois quatre cinq six sept"
    system = [" ".join(good.split()[:kept]) for kept in (1, 2, 4, 7, 7, 7)]
    chosen = choice.well_translated(SOURCES, [[good] * 6], [system], count=1)
    assert list(chosen) == [0, 1, 2]  # there are fewer than SPARE
    assert chosen[0] < chosen[1] < chosen[2] < choice.WELL
    many = [f"{LINE} {n}" for n in range(10)]
    system = [" ".join(good.split()[: 6 - n // 2]) for n in range(10)]  # in pairs, ever worse
    assert list(choice.well_translated(many, [[good] * 10], [system], count=1)) == [0, 1, 2, 3]


def test_the_most_reordered_come_first_then_the_better_translated_then_the_earlier():
    chrf = {3: 80.0, 5: 90.0, 7: 90.0, 8: 99.0, 9: 75.0}
    crossing = {3: 2, 5: 2, 7: 2, 8: 0, 9: 6}
    assert choice.most_reordered(chrf, crossing, 4) == [9, 5, 7, 3]
    assert choice.most_reordered(chrf, crossing, 9) == [9, 5, 7, 3, 8]


def test_the_papers_sentences_are_written_as_plain_text_is_here():
    assert len(choice.FIGURE_3) == 4
    for pair in choice.FIGURE_3:
        assert all(normalise(text) == text and " ." not in text for text in pair)
    assert words(choice.FIGURE_3[0][1])[:2] == ["L'", "accord"]


# --- the page -----------------------------------------------------------------------------------


def panel(src, tgt, title=""):
    matrix = np.full((len(tgt.split()), len(src.split())), 0.5)
    return Panel(WordAlignment(src.split(), tgt.split(), matrix), title)


def written(axes):
    return tuple(
        [label.get_text() for label in axis.get_ticklabels()] for axis in (axes.xaxis, axes.yaxis)
    )


def inches(figure):
    """Of each panel: left, bottom, width, height."""
    size = figure.get_size_inches()
    return [axes.get_position().bounds * np.tile(size, 2) for axes in figure.axes]


def test_panels_stand_in_rows_with_cells_of_one_size():
    panels = [panel("a bb", "x yy zzz", "left"), panel("a bb ccc", "x"), panel("a", "x yy")]
    figure = gallery_figure(panels, 2, ["caption"])
    left, right, below = inches(figure)
    for box, (wide, high) in zip((left, right, below), ((2, 3), (3, 1), (1, 2)), strict=True):
        np.testing.assert_allclose(box[2:], [0.2 * wide, 0.2 * high])
    assert left[0] == pytest.approx(below[0]) and right[0] > left[0] + left[2]
    assert left[1] + left[3] == pytest.approx(right[1] + right[3])  # both hang from one line
    assert below[1] + below[3] < left[1]
    assert [written(axes) for axes in figure.axes] == [
        (["a", "bb"], ["x", "yy", "zzz"]),
        (["a", "bb", "ccc"], ["x"]),
        (["a"], ["x", "yy"]),
    ]
    assert [text.get_text() for text in figure.texts if text.get_text()] == ["left", "caption"]


def test_neighbours_with_the_same_target_have_it_written_once():
    figure = gallery_figure([panel("a b", "x y"), panel("a b", "x y"), panel("a b", "x y")], 2)
    assert [written(axes)[1] for axes in figure.axes] == [["x", "y"], [], ["x", "y"]]


def test_nothing_written_leaves_the_page_or_runs_into_a_neighbour():
    long = "incompréhensiblement l'environnement MWMWMWMWMW"
    figure = gallery_figure([panel(long, long, "Title")] * 2 + [panel("a", "b")], 2, ["c " * 200])
    renderer = FigureCanvasAgg(figure).get_renderer()
    width, height = figure.canvas.get_width_height()
    first, second, _ = (axes.get_tightbbox(renderer) for axes in figure.axes)
    assert first.x1 < second.x0
    for artist in (*figure.axes, *figure.texts):
        box = (artist.get_tightbbox if artist in figure.axes else artist.get_window_extent)(
            renderer
        )
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height, artist


@pytest.mark.parametrize("count", [0, MAX_PANELS + 1])
def test_a_page_has_a_bounded_number_of_panels(count):
    with pytest.raises(ValueError, match=f"{count} alignments: a page has from 1 to 100"):
        gallery_figure([panel("a", "b")] * count, 2)


# --- what is said of a model --------------------------------------------------------------------


def make_run(folder, model="bahdanau", reverse=False):
    folder.mkdir(parents=True)
    corpus = {"_target_": "data.sources.Tatoeba", "source": None, "reverse": reverse}
    corpus |= {"max_pairs": None, "max_train_words": None}
    config = {"chosen": {"data": "tatoeba", "model": model}, "model": {}, "data": corpus}
    config |= {"tokenizer": {}, "training": {}, "search": {}}
    (folder / "config.yaml").write_text(yaml.dump(config), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("progress", "said"),
    [
        ({"progress": {"step": 3000}}, "checkpoint best (step 3000)"),
        ({}, "checkpoint best"),  # weights alone
        ({"progress": {"step": "3"}}, "checkpoint best"),
    ],
)
def test_a_picture_names_the_run_its_checkpoint_and_step(tmp_path, progress, said):
    run = make_run(tmp_path / "a")
    (run / "checkpoints").mkdir()
    whole = {"model": {}, "digests": ["", ""], "vocabularies": [4, 4], "weights": {}}
    whole["weights"]["w"] = torch.zeros(1)
    checkpoints.save(run / "checkpoints" / "best.pt", whole | progress)
    assert model_and_step(Run(run), "best") == f"tatoeba/bahdanau/a · {said}"
    for step in (900, 1000):
        (run / "checkpoints" / f"step_{step}.pt").touch()
    assert model_and_step(Run(run), "kept") == "tatoeba/bahdanau/a · mean of step_900, step_1000"


# --- the command --------------------------------------------------------------------------------

FRENCH = {"small": "petits", "black": "noirs", "cats": "chats", "sleep": "dorment",
          "every": "chaque", "night": "soir", "still": "encore", "they": "ils"}  # fmt: skip
TEXTS = [
    ("they still sleep every night now", "ils encore dorment chaque soir now"),  # no crossing
    ("black cats still sleep every night", "chats noirs encore dorment chaque soir"),  # one
    ("small black cats sleep every night", "chats noirs petits dorment chaque soir"),  # three
    ("black small cats sleep every night", "soir chaque dorment chats petits noirs"),  # mistaken
    ("small black cats sleep", "chats noirs petits dorment"),  # short
]
MISTAKEN = TEXTS[3][0]


class PretendedTranslator:
    """Looks at the word that it translates; the first target word is unknown to "rnn"."""

    def __init__(self, model):
        self.model, self.has_attention = model, model != "blind"

    @classmethod
    def from_run(cls, run, device, checkpoint):
        return cls(run.config["chosen"]["model"])

    def attention(self, sources, targets):
        return [self.look(*pair) for pair in zip(sources, targets, strict=True)]

    def look(self, source, target):
        src, tgt = words(source), words(target)
        weights = np.full((2, 4, len(tgt) + 1, len(src) + 1), 0.01)
        for j, word in enumerate(tgt):
            english = next((en for en, fr in FRENCH.items() if fr == word), word)
            if english in src:
                place = src.index(english)
                wrong = source == MISTAKEN and self.model == "transformer"
                weights[1, :, j, 0 if wrong else place] = 1.0
        pieces = [[f"▁{word}" for word in text] for text in (src, tgt)]
        if self.model == "rnn":
            pieces[1][0] = "<unk>"
        maps = {ALIGNMENT: WeightMap(weights, "target", "source")}
        return Attention([*pieces[0], "</s>"], [*pieces[1], "</s>"], maps)


@pytest.fixture
def pages(monkeypatch):
    """The panels, columns and captions of the pages that are drawn."""
    calls = []

    def record(panels, columns, caption):
        calls.append(SimpleNamespace(panels=panels, columns=columns, caption=caption))
        return gallery_figure(panels, columns, caption)

    monkeypatch.setattr(plot_alignments, "gallery_figure", record)
    monkeypatch.setattr("decoding.translator.Translator", PretendedTranslator)
    quick = partial(save, vectors=False, dpi=20)
    monkeypatch.setattr(plot_alignments, "save", quick)
    said = "{0.name} · checkpoint {1} (step 7)"
    monkeypatch.setattr(plot_alignments, "model_and_step", said.format)
    return calls


def evaluated(folder, model="bahdanau", texts=TEXTS, **keys):
    results = make_run(folder, model, **keys) / "evaluation" / "test"
    results.mkdir(parents=True)
    columns = {"sources.en": 0, "references.fr": 1, "hypotheses.fr": 1}
    for name, column in columns.items():
        (results / name).write_text("".join(f"{row[column]}\n" for row in texts), "utf-8")
    return folder


def failure(arguments, capsys):
    """The one line of an error."""
    with pytest.raises(SystemExit) as ended:
        plot_alignments.main([str(argument) for argument in arguments])
    assert ended.value.code == 1
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("error: ")
    return lines[0]


def sources_of(page):
    return [" ".join(one.alignment.src_words) for one in page.panels]


def test_two_runs_stand_side_by_side_a_row_for_each_sentence(tmp_path, pages, capsys, monkeypatch):
    monkeypatch.setattr(plot_alignments, "save", save)
    runs = [evaluated(tmp_path / name / "x", name) for name in ("bahdanau", "transformer")]
    plot_alignments.main([*map(str, runs), "--gallery", "--count", "2"])
    (page,) = pages
    three, one = TEXTS[2][0], TEXTS[1][0]  # on the mistaken sentence the runs do not agree
    assert sources_of(page) == [three, three, one, one] and page.columns == 2
    assert [panel.title for panel in page.panels] == ["bahdanau", "transformer", "", ""]
    assert page.panels[0].alignment.tgt_words == TEXTS[2][1].split()
    assert page.panels[0].alignment.matrix.argmax(1).tolist() == [2, 1, 0, 3, 4, 5]
    first, second, rule = page.caption
    where = "decoder layer 2 of 2, mean of 4 heads"
    assert first == f"tatoeba/bahdanau/x · checkpoint best (step 7) · {where}"
    assert second == f"tatoeba/transformer/x · checkpoint best (step 7) · {where}"
    assert "most crossing links of the 4 translated with chrF 100 or more" in rule
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == f"line 3, chrF 100, 3 crossing: {three}"
    figures = runs[0] / "figures"
    assert printed[-1] == f"look: {figures / 'gallery.png'}    {figures / 'gallery.pdf'}"
    assert (figures / "gallery.png").is_file() and (figures / "gallery.pdf").is_file()


def test_one_run_goes_by_its_own_links_two_sentences_a_row(tmp_path, pages):
    run = evaluated(tmp_path / "a")
    options = ["--head", "2", "--output", str(tmp_path / "page.png")]
    plot_alignments.main([str(run), "--gallery", *options])
    (page,) = pages
    assert sources_of(page) == [TEXTS[i][0] for i in (3, 2, 1, 0)] and page.columns == 2
    assert {panel.title for panel in page.panels} == {""}
    assert "head 2 of 4" in page.caption[0]
    assert (tmp_path / "page.png").is_file()


def test_the_choice_does_not_depend_on_how_the_end_is_drawn(tmp_path, pages):
    run = str(evaluated(tmp_path / "a"))
    plot_alignments.main([run, "--gallery"])
    plot_alignments.main([run, "--gallery", "--keep-end"])
    plain, kept = pages
    assert [f"{source} </s>" for source in sources_of(plain)] == [
        source.replace("< / s >", "</s>") for source in sources_of(kept)
    ]
    assert "</s> of the source kept" in kept.caption[-1]


def test_the_papers_four_sentences_need_no_evaluation_and_count_unknown_pieces(tmp_path, pages):
    runs = [make_run(tmp_path / name, name) for name in ("bahdanau", "rnn")]
    plot_alignments.main([*map(str, runs), "--figure3"])
    (page,) = pages
    titles = ["(a) bahdanau", "rnn", "(b)", "", "(c)", "", "(d)", ""]
    assert [panel.title for panel in page.panels] == titles
    assert page.panels[0].alignment.src_words == words(choice.FIGURE_3[0][0])
    assert page.panels[6].alignment.tgt_words == words(choice.FIGURE_3[3][1])
    pieces = sum(len(words(text)) for pair in choice.FIGURE_3 for text in pair)
    assert "unknown" not in page.caption[0]
    assert page.caption[1].endswith(f"4 of {pieces} pieces unknown")
    assert "figure 3 of Bahdanau et al. 2015" in page.caption[2]
    assert (runs[0] / "figures" / "figure3.png").is_file()


def test_the_papers_sentences_are_turned_round_for_runs_that_translate_back(
    tmp_path, pages, capsys
):
    back, there = make_run(tmp_path / "back", reverse=True), make_run(tmp_path / "there")
    plot_alignments.main([str(back), "--figure3"])
    assert pages[0].panels[0].alignment.src_words == words(choice.FIGURE_3[0][1])
    assert pages[0].columns == 2
    assert "not translate in the same direction" in failure([back, there, "--figure3"], capsys)


def test_a_run_that_was_not_evaluated_is_told_the_command(tmp_path, pages, capsys):
    run, other = evaluated(tmp_path / "a"), make_run(tmp_path / "b")
    message = failure([run, other, "--gallery"], capsys)
    assert f"python evaluate.py run={other} split=test" in message
    assert "split=dev" in failure([run, "--gallery", "--split", "dev"], capsys)


def test_runs_on_different_corpora_are_refused(tmp_path, pages, capsys):
    run, other = evaluated(tmp_path / "a"), evaluated(tmp_path / "b", texts=TEXTS[1:])
    message = failure([run, other, "--gallery"], capsys)
    assert "only runs on the same sentences can be compared" in message and str(other) in message


def test_a_split_without_a_readable_sentence_is_refused(tmp_path, pages, capsys):
    run = evaluated(tmp_path / "a", texts=TEXTS[4:])
    assert "test has no sentence of 6 to 16 words" in failure([run, "--gallery"], capsys)


@pytest.mark.parametrize("texts, warned", [(TEXTS[:1], True), (TEXTS[:2], False)])
def test_where_nothing_changes_places_a_line_says_so(tmp_path, pages, texts, warned, caplog):
    plot_alignments.main([str(evaluated(tmp_path / "a", texts=texts)), "--gallery"])
    assert ("in none of the 1 sentences to choose from" in caplog.text) == warned
    assert len(pages[0].panels) == len(texts)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--gallery", "--figure3"], "two pages: give one"),
        (["--gallery", "--source", "a"], "sentences of their own: no --source"),
        (["--figure3", "--targets", "f"], "sentences of their own: no --source"),
        (["--gallery", "--count", "0"], "--count is a number from 1 to 100, not 0"),
        (["--gallery", "--across", "101"], "--across is a number from 1 to 100, not 101"),
        (["OTHER", "--source", "a"], "side by side on a page: --gallery or --figure3"),
        (["OTHER", "--gallery"], "tatoeba/blind/b has no attention"),
        (["RUN", "--figure3"], "a run is given twice"),
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path, pages, options, message, capsys):
    run = evaluated(tmp_path / "a")
    others = {"OTHER": make_run(tmp_path / "b", "blind"), "RUN": run}
    arguments = [others.get(option, option) for option in options]
    assert message in failure([run, *arguments], capsys)


def test_an_evaluation_is_read_back(tmp_path):
    one = read_evaluation(Run(evaluated(tmp_path / "a")), "test")
    assert (one.sources[4], one.references[0][4]) == TEXTS[4] and one.parameters is None
