"""The figures; with gallery.py and tour_figures.py all that knows matplotlib. No model, no tensor.

Figures are plain objects that nothing holds on to (no pyplot), so that none accumulate in a long
run, and no display is needed.
"""

import logging
import os
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evaluation.tables import same_buckets, span

logging.getLogger("fontTools").setLevel(logging.WARNING)  # tells each glyph that a PDF embeds

# Okabe & Ito's colours, told apart with any colour vision, the darkest first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
STYLES = ("-", "--", "-.")

# BLEU of sentences of 10, 20, ..., 50 words on WMT'14 English to French, read off figure 2 of
# Bahdanau, Cho and Bengio 2015 (arXiv 1409.0473); 30 and 50 limit the training sentences.
PUBLISHED = {
    "bahdanau2015": {
        "RNNsearch-50": {10: 24.7, 20: 26.9, 30: 27.5, 40: 26.8, 50: 26.2},
        "RNNencdec-50": {10: 21.1, 20: 22.5, 30: 19.0, 40: 13.9, 50: 9.0},
        "RNNsearch-30": {10: 25.2, 20: 27.0, 30: 23.4, 40: 15.4, 50: 9.7},
        "RNNencdec-30": {10: 21.4, 20: 20.7, 30: 14.3, 40: 6.5, 50: 3.3},
    }
}

LOOK = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, has all of French
    "font.size": 9,
    "axes.linewidth": 0.6,
    "svg.hashsalt": "figures",  # the same figure gives the same bytes
    "pdf.fonttype": 42,
}
# Bounds on memory and time:
MAX_DRAWN_WORDS = 300  # of a sentence
MAX_PIXELS = 1e8  # of a bitmap
_SUFFIXES = (".png", ".pdf", ".svg")
_NO_DATE = {".png": {}, ".pdf": {"CreationDate": None}, ".svg": {"Date": None}}


def alignment_figure(
    weights: np.ndarray,
    src_words: Sequence[str],
    tgt_words: Sequence[str],
    *,
    title: str = "",
    caption: str = "",
) -> Figure:
    """Attention as in figure 3 of Bahdanau et al. 2015: black is 0, white is 1.

    weights: (target words, source words). The source stands on top, the target on the left, and
    every word is written at its own column or row. The caption says where the weights come from.
    """
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (len(tgt_words), len(src_words)) or not weights.size:
        raise ValueError(
            f"weights of shape {weights.shape} do not fit {len(tgt_words)} target and "
            f"{len(src_words)} source words"
        )
    if max(weights.shape) > MAX_DRAWN_WORDS:
        raise ValueError(
            f"a sentence of {max(weights.shape)} words is too long to be drawn: at most"
            f" {MAX_DRAWN_WORDS}"
        )
    cell = 0.27 if max(weights.shape) <= 30 else 0.2  # inches
    width = max(weights.shape[1] * cell + 0.085 * max(map(len, tgt_words)) + 0.2, 3.2)
    note = textwrap.fill(encodable(caption), int(width / 0.055))
    heights = weights.shape[0] * cell, 0.085 * max(map(len, src_words)), 0.1 * note.count("\n")
    with matplotlib.rc_context(LOOK):
        figure = Figure(figsize=(width, sum(heights) + 0.35 + 0.25 * bool(title)))
        figure.set_layout_engine("constrained", w_pad=0.05, h_pad=0.05)
        axes = figure.subplots()
        fontsize = 9 if cell > 0.25 else 7.5
        draw_alignment(axes, src_words, tgt_words, weights, fontsize=fontsize)
        if title:
            axes.set_title(encodable(title), fontsize=10, pad=8, parse_math=False)
        if note:
            figure.supxlabel(note, fontsize=6.5, color="0.35", parse_math=False)
    return figure


def draw_alignment(
    axes: Axes,
    src_words: Sequence[str],
    tgt_words: Sequence[str],
    weights: np.ndarray,
    *,
    fontsize: float,
) -> None:
    """The weights, (target words, source words), with a word at each column and row."""
    axes.imshow(weights, cmap="gray", vmin=0, vmax=1, interpolation="nearest", aspect="equal")
    axes.xaxis.tick_top()
    text = {"fontsize": fontsize, "parse_math": False}
    axes.set_xticks(range(len(src_words)), src_words, rotation=90, **text)
    axes.set_yticks(range(len(tgt_words)), tgt_words, **text)
    axes.tick_params(length=0, pad=3)


def bleu_by_length_figure(
    curves: Mapping[str, Sequence[Mapping]],
    *,
    title: str = "",
    published: Mapping[str, Mapping[int, float]] | None = None,
) -> Figure:
    """BLEU over source length, a curve with its 95 % band for each model.

    curves: for each model the buckets of by_length (from, to, sentences, bleu, perhaps ci95). A
    bucket without BLEU is a gap. published: curves to compare with, {words: BLEU}, drawn faintly.
    """
    buckets = same_buckets(curves)
    with matplotlib.rc_context(LOOK):
        crowded = len(curves) + len(published or {}) > 4
        figure = Figure(figsize=(8.4 if crowded else 6.4, 4.2), layout="constrained")
        axes = figure.subplots()
        for index, (name, points) in enumerate(curves.items()):
            _draw_curve(axes, name, points, index)
        for index, (name, points) in enumerate((published or {}).items()):
            _draw_published(axes, name, points, buckets, index)
        labels = [f"{span(bucket)}\n({bucket['sentences']:,})" for bucket in buckets]
        axes.set_xticks(range(len(buckets)), labels)
        axes.set_xlim(-0.5, len(buckets) - 0.5)
        axes.set_ylim(bottom=0)
        banded = any(bucket.get("ci95") for points in curves.values() for bucket in points)
        axes.set_xlabel("words of the source sentence (number of sentences)")
        axes.set_ylabel("BLEU with its 95 % bootstrap interval" if banded else "BLEU")
        axes.grid(axis="y", color="0.9", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        if crowded:
            figure.legend(loc="outside right center", frameon=False, fontsize=8)
        else:
            axes.legend(frameon=False, fontsize=8)
        if title:
            axes.set_title(encodable(title), fontsize=10, parse_math=False)
    return figure


def _draw_curve(axes: Axes, name: str, points: Sequence[Mapping], index: int) -> None:
    missing = (np.nan, np.nan)
    bleu = np.array([np.nan if point["bleu"] is None else point["bleu"] for point in points])
    band = np.array([point.get("ci95") or missing for point in points], dtype=float)
    places, colour = np.arange(len(points)), COLOURS[index % len(COLOURS)]
    axes.fill_between(places, band[:, 0], band[:, 1], color=colour, alpha=0.15, linewidth=0)
    axes.vlines(places, band[:, 0], band[:, 1], color=colour, alpha=0.5, linewidth=1)
    axes.plot(
        places,
        bleu,
        color=colour,
        marker=MARKERS[index % len(MARKERS)],
        linestyle=STYLES[index // len(COLOURS) % len(STYLES)],
        linewidth=1.6,
        markersize=5,
        label=_plain(name),
    )


def _draw_published(
    axes: Axes, name: str, points: Mapping[int, float], buckets: Sequence[Mapping], index: int
) -> None:
    """Grey curves, two dashed and dotted ones of each grey, behind the others.

    Lengths stand between the buckets: the last word of a bucket is half way to the next.
    """
    ends = [0, *(bucket["to"] for bucket in buckets[:-1])]
    known = {words: bleu for words, bleu in points.items() if words <= ends[-1]}
    places = np.interp(list(known), ends, np.arange(len(ends)) - 0.5)
    axes.plot(
        places,
        list(known.values()),
        color=("0.5", "0.75")[index // 2 % 2],
        linestyle=("--", ":")[index % 2],
        linewidth=1.2,
        zorder=1,
        label=f"{_plain(name)} (published, WMT'14)",
    )


def _plain(text: str) -> str:
    """The text with nothing in it that matplotlib would set as mathematics."""
    return encodable(text).replace("$", r"\$")


def encodable(text: str) -> str:
    """The text with "?" for what is no character, as in a file name that is not UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")


def save(figure: Figure, path: str | Path, *, vectors: bool = True, dpi: int = 200) -> list[Path]:
    """Writes the figure as PNG and as vectors (PDF; SVG if the path says so); their paths.

    Each file appears whole or not at all. The same figure gives the same bytes. Without vectors,
    the PNG alone is written.
    """
    path = Path(path)
    suffix = path.suffix.lower() if path.suffix.lower() in _SUFFIXES else ""
    stem = path.name.removesuffix(path.suffix) if suffix else path.name
    path.parent.mkdir(parents=True, exist_ok=True)
    written = []
    area = float(np.prod(figure.get_size_inches()))
    dpi = min(dpi, int((MAX_PIXELS / area) ** 0.5))
    with TemporaryDirectory(dir=path.parent, prefix=".") as folder, matplotlib.rc_context(LOOK):
        for ending in (".png", ".svg" if suffix == ".svg" else ".pdf")[: 1 + vectors]:
            draft, final = Path(folder) / f"figure{ending}", path.with_name(stem + ending)
            figure.savefig(draft, dpi=dpi, metadata=_NO_DATE[ending])
            written.append((draft, final))
        for draft, final in written:
            os.replace(draft, final)
    return [final for _, final in written]
