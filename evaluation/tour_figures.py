"""The figures of the guided tour: small matrices with their numbers, words in a plane, curves.

They take arrays and strings, never a model, and look as those of figures.py do.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evaluation.figures import COLOURS, LOOK, MARKERS

LETTER = 0.075  # inches, about, of a label


class Grid(NamedTuple):
    """A matrix to be drawn as its numbers."""

    title: str
    values: np.ndarray  # (rows, columns)
    rows: Sequence[str]
    columns: Sequence[str]
    weights: bool = True  # shaded as an alignment is: black is 0, white is 1
    digits: int = 2


class Panel(NamedTuple):
    """Curves over the same places; the x axis is logarithmic, and the y axis if said."""

    title: str
    x: Sequence[float]
    curves: Mapping[str, Sequence[float]]
    x_label: str
    log_y: bool = False


def grids_figure(grids: Sequence[Grid]) -> Figure:
    """Matrices side by side, every number in its cell; exact zeros are written as 0."""
    widths = [
        (0.27 + 0.07 * grid.digits) * len(grid.columns) + LETTER * max(map(len, grid.rows))
        for grid in grids
    ]
    rows = max(len(grid.rows) for grid in grids)
    labels = LETTER * max(len(column) for grid in grids for column in grid.columns)
    with matplotlib.rc_context(LOOK):
        figure = Figure(figsize=(sum(widths) + 0.25 * len(grids), 0.27 * rows + labels + 0.4))
        figure.set_layout_engine("constrained", w_pad=0.06, h_pad=0.05)
        places = figure.subplots(1, len(grids), width_ratios=widths, squeeze=False)[0]
        for axes, grid in zip(places, grids, strict=True):
            _draw_grid(axes, grid)
    return figure


def _draw_grid(axes: Axes, grid: Grid) -> None:
    values = np.asarray(grid.values, dtype=np.float64)
    shades = values if grid.weights else np.ones_like(values)
    axes.imshow(shades, cmap="gray", vmin=0, vmax=1, interpolation="nearest", aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        written = "0" if value == 0 and grid.weights else f"{value:.{grid.digits}f}"
        colour = "white" if shades[row, column] < 0.5 else "black"
        axes.text(column, row, written, ha="center", va="center", color=colour, fontsize=7)
    axes.xaxis.tick_top()
    axes.set_xticks(range(len(grid.columns)), grid.columns, rotation=90, parse_math=False)
    axes.set_yticks(range(len(grid.rows)), grid.rows, parse_math=False)
    axes.tick_params(length=0, pad=3)
    axes.set_title(grid.title, fontsize=9, pad=6, parse_math=False)


def plane_figure(
    words: Sequence[str], vectors: np.ndarray, *, x_label: str, y_label: str, alike: Sequence[int]
) -> Figure:
    """Words as arrows from the origin; vectors: (words, 2).

    The words of numbers `alike` have the same dot product with a vector along the x axis: a
    dotted line through their tips shows it.
    """
    with matplotlib.rc_context(LOOK):
        figure = Figure(figsize=(4.8, 2.8), layout="constrained")
        axes = figure.subplots()
        tips = vectors[list(alike)]
        axes.plot(tips[:, 0], tips[:, 1], color="0.5", linestyle=":", linewidth=1.2)
        for number, (word, (x, y)) in enumerate(zip(words, vectors, strict=True)):
            colour = COLOURS[1] if number in alike else COLOURS[0]
            arrow = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.4, "shrinkA": 0}
            axes.annotate("", (x, y), (0, 0), arrowprops=arrow | {"shrinkB": 0})
            side = "left" if x > 0 else "right"
            place = (x + 0.04 * np.sign(x), y)
            axes.text(*place, word, ha=side, va="center", color=colour, parse_math=False)
        axes.axhline(0, color="0.85", linewidth=0.6, zorder=0)
        axes.axvline(0, color="0.85", linewidth=0.6, zorder=0)
        reach = np.abs(vectors).max(0)
        axes.set_xlim(-reach[0] - 0.5, reach[0] + 0.35)
        axes.set_ylim(-reach[1] - 0.2, reach[1] + 0.2)
        axes.set_aspect("equal")
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def panels_figure(panels: Sequence[Panel]) -> Figure:
    """Panels of curves side by side over a logarithmic x axis, each with its own legend."""
    with matplotlib.rc_context(LOOK):
        figure = Figure(figsize=(3.6 * len(panels), 2.8), layout="constrained")
        places = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, panel in zip(places, panels, strict=True):
            for index, (name, values) in enumerate(panel.curves.items()):
                style = {"color": COLOURS[index], "marker": MARKERS[index], "markersize": 4}
                axes.plot(panel.x, values, label=name, linewidth=1.4, **style)
            axes.set_xscale("log")
            axes.set_xticks(panel.x, [f"{place:g}" for place in panel.x])
            axes.minorticks_off()
            if panel.log_y:
                axes.set_yscale("log")
                axes.yaxis.set_major_formatter("{x:g}")
            else:
                axes.set_ylim(0, 1)
            axes.set_xlabel(panel.x_label)
            axes.set_title(panel.title, fontsize=9)
            axes.grid(color="0.9", linewidth=0.6)
            axes.set_axisbelow(True)
            axes.spines[["top", "right"]].set_visible(False)
            axes.legend(frameon=False, fontsize=8)
    return figure
