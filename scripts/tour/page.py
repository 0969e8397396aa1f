"""What a step of the tour is made of, and how the steps become a Markdown page."""

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.text import write_whole
from evaluation.figures import Figure, save

FIGURES = Path("figures") / "tour"  # where the figures lie, seen from the page
WIDTH = 100  # characters of a line of prose
DPI = 140  # enough for a screen, and small files


@dataclass(frozen=True)
class Drawing:
    """A figure under its file's name; the caption says what there is to see."""

    name: str
    figure: Figure
    caption: str


@dataclass(frozen=True)
class Part:
    """A stretch of a step: Markdown, and perhaps a figure below it."""

    text: str
    drawing: Drawing | None = None
    from_runs: bool = False  # it tells of the given runs, or that none was given


@dataclass(frozen=True)
class Step:
    """One idea of the tour."""

    title: str
    parts: Sequence[Part]
    computed_by: Sequence[Callable[..., Any]]  # the functions and classes whose results are shown


def text(*blocks: str) -> str:
    """Blocks of Markdown with blank lines between them."""
    return "\n\n".join(blocks)


def prose(paragraph: str) -> str:
    """One paragraph with its lines broken anew, whatever numbers were put in."""
    words = " ".join(paragraph.split())
    return textwrap.fill(words, WIDTH, break_long_words=False, break_on_hyphens=False)


def code(lines: str) -> str:
    """Lines that are set as they stand."""
    return f"```\n{textwrap.dedent(lines).strip()}\n```"


def render_part(part: Part) -> str:
    if part.drawing is None:
        return part.text
    name, caption = part.drawing.name, part.drawing.caption
    path = (FIGURES / f"{name}.png").as_posix()
    return text(part.text, f"![{name.replace('_', ' ')}]({path})", prose(f"*{caption}*"))


def render_step(number: int, step: Step) -> str:
    """The step under its numbered heading; its last line names what computed it."""
    names = ", ".join(f"`{f.__module__}.{f.__qualname__}`" for f in step.computed_by)
    return text(
        f"## {number}. {step.title}",
        *(render_part(part) for part in step.parts),
        prose(f"Computed by {names}."),
    )


def render(introduction: str, steps: Sequence[Step]) -> str:
    """The page."""
    rendered = (render_step(number, step) for number, step in enumerate(steps, 1))
    return text(introduction, *rendered) + "\n"


def write(page: str, steps: Sequence[Step], path: Path) -> list[Path]:
    """Writes the figures, then the page that shows them; their paths, the page's last."""
    drawings = [part.drawing for step in steps for part in step.parts if part.drawing]
    written = []
    for drawing in drawings:
        target = path.parent / FIGURES / f"{drawing.name}.png"
        written += save(drawing.figure, target, vectors=False, dpi=DPI)
    write_whole(path, page)
    return [*written, path]
