"""A page of alignments, all cells of one size, so that sentences and models compare at a glance."""

import textwrap
from collections.abc import Sequence
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from evaluation.alignment import WordAlignment
from evaluation.figures import LOOK, draw_alignment, encodable

CELL, LETTER, GAP = 0.2, 0.075, 0.15  # inches: a weight, about a letter, between what is drawn
TITLE, LINE = 0.32, 0.12  # inches: a title's height, and that of a line of the caption
MAX_PANELS = 100


class Panel(NamedTuple):
    """An alignment, and what is written above it."""

    alignment: WordAlignment
    title: str = ""


def gallery_figure(panels: Sequence[Panel], columns: int, caption: Sequence[str] = ()) -> Figure:
    """Alignments in rows of so many columns; black is 0, white is 1, as in `alignment_figure`.

    Neighbours with the same target words have them written once. caption: its lines.
    """
    if not 1 <= len(panels) <= MAX_PANELS:
        raise ValueError(f"{len(panels)} alignments: a page has from 1 to {MAX_PANELS}")
    columns = min(columns, len(panels))
    rooms = np.zeros((-(-len(panels) // columns), columns, 4))
    for number, panel in enumerate(panels):
        rooms[divmod(number, columns)] = _room(panel, _labelled(panels, number, columns))
    left, wide = rooms[..., :2].max(0).T
    above, high = rooms[..., 2:].max(1).T
    x, y = np.cumsum(left + wide) - wide, np.cumsum(above + high) - high  # of the weights' corners
    width = x[-1] + wide[-1] + GAP
    note = [part for line in caption for part in textwrap.wrap(encodable(line), int(width / 0.048))]
    height = y[-1] + high[-1] + GAP + (LINE * len(note) + GAP) * bool(note)
    small = {"fontsize": 6.5, "color": "0.35", "va": "top", "parse_math": False}
    heading = {"fontsize": 9.5, "fontweight": "bold", "va": "top", "parse_math": False}
    with matplotlib.rc_context(LOOK):
        figure = Figure(figsize=(width, height))
        for number, panel in enumerate(panels):
            row, column = divmod(number, columns)
            size = CELL * np.array(panel.alignment.matrix.shape[::-1])
            corner = np.array([x[column], height - y[row] - size[1]])
            axes = figure.add_axes([*corner / (width, height), *size / (width, height)])
            draw_alignment(axes, *panel.alignment, fontsize=8)
            if not _labelled(panels, number, columns):
                axes.set_yticks([])
            top = 1 - (y[row] - above[row] + GAP) / height
            figure.text(x[column] / width, top, encodable(panel.title), **heading)
        for number, line in enumerate(note):
            place = (LINE * (len(note) - number) + GAP / 2) / height
            figure.text(GAP / width, place, line, **small)
    return figure


def _labelled(panels: Sequence[Panel], number: int, columns: int) -> bool:
    """Whether the target words are not those written on the left already."""
    own, before = panels[number].alignment, panels[number - 1].alignment
    return number % columns == 0 or own.tgt_words != before.tgt_words


def _room(panel: Panel, labelled: bool) -> tuple[float, float, float, float]:
    """Inches left of the weights, their width, inches above them, their height."""
    src_words, tgt_words, matrix = panel.alignment
    left = LETTER * max(map(len, tgt_words)) if labelled else 0
    above = LETTER * max(map(len, src_words)) + TITLE * bool(panel.title)
    high, wide = CELL * np.array(matrix.shape)
    return left + GAP, wide, above + GAP, high
