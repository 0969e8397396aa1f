"""Figures: every label in its place, what is missing left out, files whole and reproducible."""

import ast
import gc
import threading
from pathlib import Path

import numpy as np
import pytest
from matplotlib import image
from matplotlib.figure import Figure

from evaluation import figures
from evaluation.figures import PUBLISHED, alignment_figure, bleu_by_length_figure, save

DRAWING = ("figures.py", "gallery.py", "tour_figures.py")
SOURCE = ["The", "agreement", "was", "signed", "$", "5", "$", "."]
TARGET = ["L'", "accord", "a", "été", "signé", "."]
WEIGHTS = np.random.default_rng(0).dirichlet(np.ones(len(SOURCE)), size=len(TARGET))


def labels(axis):
    places, texts = axis.get_ticklocs(), axis.get_ticklabels()
    return [(tick, text.get_text()) for tick, text in zip(places, texts, strict=True)]


def curve(*bleu, ci95=True):
    spans = [(1, 10), (11, 20), (21, 30), (31, None)]
    return [
        {"from": low, "to": high, "sentences": 1000 + low, "bleu": x}
        | ({"ci95": None if x is None else [x - 1, x + 2]} if ci95 else {})
        for (low, high), x in zip(spans, bleu, strict=True)
    ]


def test_each_word_stands_at_its_own_row_or_column():
    axes = alignment_figure(WEIGHTS, SOURCE, TARGET, title="t", caption="c").axes[0]
    assert labels(axes.xaxis) == list(enumerate(SOURCE))
    assert labels(axes.yaxis) == list(enumerate(TARGET))
    (picture,) = axes.images
    np.testing.assert_array_equal(picture.get_array(), WEIGHTS)  # rows are target words
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # read from top to bottom
    assert {text.get_rotation() for text in axes.get_xticklabels()} == {90}
    assert axes.xaxis.get_ticks_position() == "top"


def test_a_sentence_of_sixty_words_still_has_all_its_labels():
    source, target = [f"w{i}" for i in range(60)], [f"m{i}" for i in range(70)]
    figure = alignment_figure(np.full((70, 60), 1 / 60), source, target)
    assert labels(figure.axes[0].xaxis) == list(enumerate(source))
    assert labels(figure.axes[0].yaxis) == list(enumerate(target))


def test_black_is_nothing_and_white_is_everything():
    picture = alignment_figure(np.array([[0.5, 0.25]]), ["a", "b"], ["x"]).axes[0].images[0]
    shades = picture.cmap(picture.norm(np.array([0.0, 0.5, 1.0])))[:, :3]
    np.testing.assert_allclose(shades[0], 0)
    np.testing.assert_allclose(shades[1], 0.5, atol=0.01)
    np.testing.assert_allclose(shades[2], 1)


def test_dollar_signs_in_words_are_not_mathematics(tmp_path):
    figure = alignment_figure(WEIGHTS, SOURCE, TARGET, title="$x$ _y_", caption="$z^2$")
    save(figure, tmp_path / "f")
    axes = figure.axes[0]
    texts = [axes.title, *axes.get_xticklabels(), *axes.get_yticklabels()]
    assert not any(text.get_parse_math() for text in texts)
    save(bleu_by_length_figure({"a$b$": curve(1, 2, 3, 4)}, title="$t$"), tmp_path / "g")


@pytest.mark.parametrize("shape", [(6, 7), (8, 6), (0, 8)])
def test_weights_that_do_not_fit_the_words_are_refused(shape):
    with pytest.raises(ValueError, match="do not fit"):
        alignment_figure(np.zeros(shape), SOURCE, TARGET[: shape[0]])


def test_bleu_begins_at_zero_and_missing_buckets_are_gaps():
    curves = {"rnn": curve(30, None, 20, 10), "bahdanau": curve(31, 32, 33, None)}
    axes = bleu_by_length_figure(curves).axes[0]
    assert axes.get_ylim()[0] == 0
    lines = {line.get_label(): line for line in axes.lines}
    np.testing.assert_array_equal(lines["rnn"].get_ydata(), [30, np.nan, 20, 10])
    np.testing.assert_array_equal(lines["bahdanau"].get_ydata(), [31, 32, 33, np.nan])


def test_models_are_told_apart_by_colour_marker_and_name():
    names = ["a", "b", "c", "d", "e", "f", "g", "h"]
    figure = bleu_by_length_figure({n: curve(*range(i, i + 4)) for i, n in enumerate(names)})
    lines = figure.axes[0].lines
    looks = [(line.get_color(), line.get_marker(), line.get_linestyle()) for line in lines]
    assert len(set(looks)) == len(names)
    assert len({look[0] for look in looks[:7]}) == len({look[1] for look in looks[:7]}) == 7
    assert [text.get_text() for text in figure.legends[0].get_texts()] == names


def test_numbers_of_sentences_stand_under_the_lengths():
    axes = bleu_by_length_figure({"rnn": curve(1, 2, 3, 4)}).axes[0]
    assert labels(axes.xaxis) == [
        (0, "1–10\n(1,001)"),
        (1, "11–20\n(1,011)"),
        (2, "21–30\n(1,021)"),
        (3, "31+\n(1,031)"),
    ]


def test_bands_are_drawn_where_there_are_intervals_and_not_required():
    axes = bleu_by_length_figure({"rnn": curve(10, 20, 30, 40)}).axes[0]
    (band, bars) = axes.collections
    corners = {tuple(point) for path in band.get_paths() for point in path.vertices.tolist()}
    assert {(0.0, 9.0), (0.0, 12.0), (3.0, 39.0), (3.0, 42.0)} <= corners
    assert len(bars.get_segments()) == 4
    assert "interval" in axes.get_ylabel()
    plain = bleu_by_length_figure({"rnn": curve(10, 20, 30, 40, ci95=False)}).axes[0]
    assert plain.get_ylabel() == "BLEU"


def test_curves_on_other_sentences_are_not_drawn_together():
    other = [dict(bucket, sentences=1) for bucket in curve(1, 2, 3, 4)]
    with pytest.raises(ValueError, match="rnn and bahdanau"):
        bleu_by_length_figure({"rnn": curve(1, 2, 3, 4), "bahdanau": other})


def test_published_curves_stand_between_the_buckets_that_their_lengths_divide():
    figure = bleu_by_length_figure({"rnn": curve(1, 2, 3, 4)}, published=PUBLISHED["bahdanau2015"])
    line = figure.axes[0].lines[1]
    assert line.get_label() == "RNNsearch-50 (published, WMT'14)"
    np.testing.assert_allclose(line.get_xdata(), [0.5, 1.5, 2.5])  # 10, 20, 30 words; then 31+
    np.testing.assert_allclose(line.get_ydata(), [24.7, 26.9, 27.5])


def test_published_curves_are_grey_behind_the_others_and_told_apart():
    figure = bleu_by_length_figure({"rnn": curve(1, 2, 3, 4)}, published=PUBLISHED["bahdanau2015"])
    ours, *published = figure.axes[0].lines
    assert [line.get_label().split("-")[0] for line in published] == ["RNNsearch", "RNNencdec"] * 2
    assert all(line.get_zorder() < ours.get_zorder() for line in published)
    assert all(line.get_linestyle() != "-" for line in published)
    assert len({(line.get_color(), line.get_linestyle()) for line in published}) == 4
    assert {line.get_color() for line in published}.isdisjoint(figures.COLOURS)
    shown = {text.get_text() for text in figure.legends[0].get_texts()}
    assert shown == {line.get_label() for line in (ours, *published)}


def test_each_bucket_has_its_interval_as_a_band():
    figure = bleu_by_length_figure({"rnn": curve(10, 20, None, 40)})
    (bars,) = [c for c in figure.axes[0].collections if hasattr(c, "get_segments")]
    drawn = [seg.tolist() for seg in bars.get_segments() if len(seg)]
    assert drawn == [[[x, y - 1], [x, y + 2]] for x, y in ((0, 10), (1, 20), (3, 40))]


def test_a_figure_is_written_as_bitmap_and_as_vectors(tmp_path):
    figure = alignment_figure(WEIGHTS, SOURCE, TARGET)
    for asked, written in {
        "new/a": ["new/a.png", "new/a.pdf"],
        "b.png": ["b.png", "b.pdf"],
        "c.pdf": ["c.png", "c.pdf"],
        "d.svg": ["d.png", "d.svg"],
        "e.0.5": ["e.0.5.png", "e.0.5.pdf"],
    }.items():
        assert save(figure, tmp_path / asked) == [tmp_path / name for name in written]
    assert (tmp_path / "b.pdf").read_bytes().startswith(b"%PDF")
    assert "<svg" in (tmp_path / "d.svg").read_text(encoding="utf-8")
    width = figure.get_size_inches()[0]
    assert image.imread(tmp_path / "b.png").shape[1] == pytest.approx(200 * width, abs=1)


@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_the_same_figure_gives_the_same_bytes(tmp_path, ending):
    for name in ("one", "two"):
        save(bleu_by_length_figure({"rnn": curve(1, 2, 3, 4)}), tmp_path / f"{name}.{ending}")
    one, two = ((tmp_path / f"{name}.{ending}").read_bytes() for name in ("one", "two"))
    assert one == two


def test_a_figure_that_cannot_be_written_leaves_the_old_file_and_nothing_else(tmp_path):
    figure = alignment_figure(WEIGHTS, SOURCE, TARGET)
    save(figure, tmp_path / "a")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    figure.axes[0].set_title("$\\broken$")  # fails only when drawn
    with pytest.raises(ValueError):
        save(figure, tmp_path / "a")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_no_figure_is_kept_by_the_library():
    def figures():
        gc.collect()
        return sum(type(thing) is Figure for thing in gc.get_objects())

    before = figures()
    kept = bleu_by_length_figure({"rnn": curve(1, 2, 3, 4)})
    assert figures() == before + 1
    for _ in range(3):
        bleu_by_length_figure({"rnn": curve(1, 2, 3, 4)})
    del kept
    assert figures() == before


def test_figures_can_be_drawn_outside_the_main_thread(tmp_path):
    drawn = []
    thread = threading.Thread(
        target=lambda: drawn.extend(save(alignment_figure(WEIGHTS, SOURCE, TARGET), tmp_path / "a"))
    )
    thread.start()
    thread.join()
    assert len(drawn) == 2


def test_only_the_files_that_draw_know_matplotlib_and_none_knows_pyplot():
    for path in Path(figures.__file__).parent.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported = [
            alias.name for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names
        ]
        imported += [n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
        roots = {name.split(".")[0] for name in imported}
        assert "matplotlib" not in roots or path.name in DRAWING
        assert "matplotlib.pyplot" not in imported
        assert "torch" not in roots
