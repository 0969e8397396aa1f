"""Draws where a model looks in the source while it produces each target word.

python -m scripts.plot_alignments RUN --source "..." [--target "..."] [--output FILE]
python -m scripts.plot_alignments RUN [RUN2 ...] --gallery [--count 6]
python -m scripts.plot_alignments RUN [RUN2 ...] --figure3

Without a target, the model's own translation is drawn. Several sentences: repeat --source, or
--sources FILE with one a line (and --targets FILE). A Transformer looks through the heads of
several layers: --layer and --head choose, and the caption says what is drawn.

--gallery draws a page of test sentences that a rule chooses (evaluation/choice.py): translated well
by every run, and of these those whose words change places most; --figure3 one of the sentences in
figure 3 of Bahdanau et al. 2015. Runs stand side by side, made to produce the same given target.
"""

import argparse
import logging
import math
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from cli import command, number_or
from data.corpus import normalise
from decoding.described import model_and_step
from decoding.evaluated import distinct_labels, read_evaluation, require_same_texts
from decoding.run import Run
from decoding.translator import ALIGNMENT, Translation, Translator, attentive, search_with
from evaluation import choice
from evaluation.alignment import (
    MEAN,
    UNKNOWN,
    WordAlignment,
    select,
    selection,
    word_alignment,
    words,
)
from evaluation.figures import alignment_figure, save
from evaluation.gallery import MAX_PANELS, Panel, gallery_figure
from scripts.options import add_checkpoint, add_device, add_search, add_sentences, sentences

log = logging.getLogger(__name__)


@command
def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_intermixed_args(arguments)
    check(options)
    runs = [Run(folder) for folder in options.runs]
    if options.gallery or options.figure3:
        draw_page(runs, options)
    else:
        draw_each(runs[0], options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.plot_alignments", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run folder")
    add_sentences(parser)
    parser.add_argument("--gallery", action="store_true", help="a page of sentences of a test set")
    parser.add_argument("--count", type=int, default=6, help="sentences of the gallery (6)")
    parser.add_argument("--split", default="test", help="that --gallery chooses from (test)")
    parser.add_argument("--figure3", action="store_true", help="a page of the paper's sentences")
    parser.add_argument("--across", type=int, help="sentences a row of a page (1; of one RUN 2)")
    parser.add_argument("--output", type=Path, help="figure, written as PNG and PDF (or SVG)")
    parser.add_argument(
        "--layer", type=number_or(MEAN), help="a number from 1, or mean (default: the model's)"
    )
    parser.add_argument("--head", type=number_or(MEAN), help="a number from 1, or mean (default)")
    add_checkpoint(parser)
    add_search(parser)
    add_device(parser)
    parser.add_argument("--keep-end", action="store_true", help="a column for the source's </s>")
    return parser


def check(options: argparse.Namespace) -> None:
    """Refuses options that contradict each other or make no sense."""
    page = options.gallery or options.figure3
    if options.gallery and options.figure3:
        raise ValueError("--gallery and --figure3 are two pages: give one of them")
    if page and (options.source or options.target or options.sources or options.targets):
        raise ValueError("--gallery and --figure3 have sentences of their own: no --source")
    if not page and len(options.runs) > 1:
        raise ValueError("several runs stand side by side on a page: --gallery or --figure3")
    most = MAX_PANELS // len(options.runs)
    for name, number in (("count", options.count), ("across", options.across)):
        if number is not None and not 1 <= number <= most:
            raise ValueError(f"--{name} is a number from 1 to {most}, not {number}")


class Looked(NamedTuple):
    """Where a model looked in several sentences."""

    alignments: list[WordAlignment]
    where: str  # layer and head
    unknown: int  # pieces of the sentences that are not in the vocabularies
    pieces: int


def look(
    run: Run,
    translator: Translator,
    sources: Sequence[str],
    targets: Sequence[str | Translation],
    options: argparse.Namespace,
    keep_end: bool,
) -> Looked:
    """Where the model looks while it is made to produce the targets: forced decoding."""
    alignments, unknown, pieces, where = [], 0, 0, ""
    attentions = translator.attention(sources, targets)
    for source, target, looked in zip(sources, targets, attentions, strict=True):
        weights = looked.maps[ALIGNMENT].weights
        layer, head = options.layer or run.alignment_layer(len(weights)), options.head or MEAN
        text = target if isinstance(target, str) else target.text
        alignments.append(
            word_alignment(
                select(weights, layer, head),
                looked.src_pieces,
                looked.tgt_pieces,
                src_words=words(normalise(source)),
                tgt_words=words(normalise(text)),
                keep_end=keep_end,
            )
        )
        where = selection(weights.shape[:2], layer, head)
        unknown += [*looked.src_pieces, *looked.tgt_pieces].count(UNKNOWN)
        pieces += len(looked.src_pieces) + len(looked.tgt_pieces) - 2  # without </s>
    return Looked(alignments, where, unknown, pieces)


def draw_each(run: Run, options: argparse.Namespace) -> None:
    """A figure for each sentence given."""
    sources, targets = sentences(options)
    translator = attentive(run, options.device, options.checkpoint)
    produced: list[str] | list[Translation] = targets
    given = bool(targets)
    if not given:
        search = search_with(options.beam_size, options.length_penalty)
        produced = translator.translate(sources, search)
        targets = [translation.text for translation in produced]
    for source, target in zip(sources, targets, strict=True):
        if not target.strip():
            raise ValueError(f"the translation of {source!r} is empty: there is nothing to draw")
    outputs = output_paths(options, run.folder / "figures", sources)
    looked = look(run, translator, sources, produced, options, options.keep_end)
    parts = [*described(run, looked, options), "given target" if given else "own translation"]
    shown = " · ".join([*parts, *how(options)])
    for target, drawn, output in zip(targets, looked.alignments, outputs, strict=True):
        figure = alignment_figure(drawn.matrix, drawn.src_words, drawn.tgt_words, caption=shown)
        print(target)
        print("\n".join(f"  {path}" for path in save(figure, output)))


def draw_page(runs: Sequence[Run], options: argparse.Namespace) -> None:
    """One figure of several sentences, a column for each run."""
    labels = distinct_labels(runs)
    models = [attentive(run, options.device, options.checkpoint) for run in runs]
    pairs, what = chosen(runs, models, options) if options.gallery else figure3(runs)
    sources, targets = zip(*pairs, strict=True)
    columns = [
        look(run, model, sources, targets, options, options.keep_end)
        for run, model in zip(runs, models, strict=True)
    ]
    across = options.across or (2 if len(runs) == 1 else 1)
    panels = []
    for row, alignments in enumerate(zip(*(one.alignments for one in columns), strict=True)):
        for number, (alignment, label) in enumerate(zip(alignments, labels, strict=True)):
            letter = f"({'abcd'[row]})" if options.figure3 and number == 0 else ""
            name = label if len(runs) > 1 and row < across else ""
            panels.append(Panel(alignment, f"{letter} {name}".strip()))
    notes = [
        " · ".join(described(run, looked, options))
        for run, looked in zip(runs, columns, strict=True)
    ]
    figure = gallery_figure(panels, across * len(runs), [*notes, " · ".join([what, *how(options)])])
    name = "gallery" if options.gallery else "figure3"
    output = options.output or runs[0].folder / "figures" / f"{name}.png"
    print("look: " + "    ".join(map(str, save(figure, output))))


def chosen(
    runs: Sequence[Run], models: Sequence[Translator], options: argparse.Namespace
) -> tuple[list[tuple[str, str]], str]:
    """The sentences of the gallery with their references, and in words by what rule."""
    evaluated = [read_evaluation(run, options.split) for run in runs]
    require_same_texts(evaluated)
    sources, references = evaluated[0].sources, evaluated[0].references
    hypotheses = [one.hypotheses for one in evaluated]
    chrf = choice.well_translated(sources, references, hypotheses, options.count)
    if not chrf:
        least, most = choice.READABLE[0], choice.READABLE[-1]
        raise ValueError(f"{options.split} has no sentence of {least} to {most} words to draw")
    pairs = {number: (sources[number], references[0][number]) for number in chrf}
    columns = [
        look(run, model, *zip(*pairs.values(), strict=True), options, keep_end=False)
        for run, model in zip(runs, models, strict=True)
    ]
    crossing = {
        number: choice.crossings(same[0].src_words, same[0].tgt_words, [one.matrix for one in same])
        for number, *same in zip(chrf, *(one.alignments for one in columns), strict=True)
    }
    numbers = choice.most_reordered(chrf, crossing, options.count)
    for number in numbers:
        print(
            f"line {number + 1}, chrF {chrf[number]:.0f}, {crossing[number]} crossing: "
            f"{sources[number]}"
        )
    if not any(crossing.values()):
        log.warning(
            "in none of the %d sentences to choose from do words change places, going by the links"
            " on which all models agree: the best translated are drawn",
            len(chrf),
        )
    least = math.floor(min(chrf.values()))
    what = (
        f"{options.split} sentences and their references: most crossing links of the {len(chrf)}"
        f" translated with chrF {least} or more"
    )
    return [pairs[number] for number in numbers], what


def figure3(runs: Sequence[Run]) -> tuple[list[tuple[str, str]], str]:
    """The paper's sentences in the direction in which the runs translate, and where they stand."""
    directions = {run.corpus().reverse for run in runs}
    if len(directions) > 1:
        raise ValueError("these runs do not translate in the same direction")
    pairs = [pair[::-1] if True in directions else pair for pair in choice.FIGURE_3]
    return pairs, "figure 3 of Bahdanau et al. 2015, as translated there"


def described(run: Run, looked: Looked, options: argparse.Namespace) -> list[str]:
    """Which model's attention it is, and what it could not read."""
    parts = [model_and_step(run, options.checkpoint), looked.where]
    if looked.unknown:
        parts.append(f"{looked.unknown} of {looked.pieces} pieces unknown")
    return parts


def how(options: argparse.Namespace) -> list[str]:
    """How the end of the sentence was treated, and what the shades mean."""
    end = "</s> of the source kept" if options.keep_end else "</s> left out, rows rescaled to 1"
    return [end, "black 0, white 1"]


def output_paths(options: argparse.Namespace, folder: Path, sources: Sequence[str]) -> list[Path]:
    """A file for each figure: as asked, numbered if several, or named after what it shows."""
    output = options.output
    if output is not None:
        if len(sources) == 1:
            return [output]
        return [
            output.with_name(f"{output.stem}-{number}{output.suffix}")
            for number in range(1, len(sources) + 1)
        ]
    part = "".join(
        f"-{name}-{value}"
        for name, value in (("layer", options.layer), ("head", options.head))
        if value
    )
    names = [f"alignment-{slug(source)}{part}" for source in sources]
    return [
        folder / (f"{name}-{number}.png" if names.count(name) > 1 else f"{name}.png")
        for number, name in enumerate(names, 1)
    ]


def slug(sentence: str) -> str:
    """A file name that recalls the sentence: its first letters and digits, in ASCII."""
    plain = unicodedata.normalize("NFKD", normalise(sentence)).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain.lower())[:50].strip("-") or "sentence"


if __name__ == "__main__":
    main()
