"""Draws where a model looks in the source while it produces each target word.

python -m scripts.plot_alignments RUN --source "..." [--target "..."] [--output FILE]

Without a target, the model's own translation is drawn. Several sentences: repeat --source, or
--sources FILE with one a line (and --targets FILE). A Transformer looks through the heads of
several layers: --layer and --head choose, and the caption says what is drawn.
"""

import argparse
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from cli import command, number_or
from data.corpus import normalise, read_lines
from decoding.run import Run
from decoding.translator import ALIGNMENT, Translation, Translator, search_with
from evaluation.alignment import MEAN, select, word_alignment, words
from evaluation.figures import alignment_figure, save


@command
def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    sources, targets = sentences(options)
    run = Run(options.run)
    translator = Translator.from_run(run, options.device, options.checkpoint)
    if not translator.has_attention:
        raise ValueError(f"{run.name} has no attention, so there is no alignment to draw")
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
    attentions = translator.attention(sources, produced)
    for i, (source, target, looked) in enumerate(zip(sources, targets, attentions, strict=True)):
        weights = looked.maps[ALIGNMENT].weights
        layer, head = options.layer or run.alignment_layer(len(weights)), options.head or MEAN
        drawn = word_alignment(
            select(weights, layer, head),
            looked.src_pieces,
            looked.tgt_pieces,
            src_words=words(normalise(source)),
            tgt_words=words(normalise(target)),
            keep_end=options.keep_end,
        )
        figure = alignment_figure(
            drawn.matrix,
            drawn.src_words,
            drawn.tgt_words,
            caption=caption(run, options, place(weights.shape[:2], layer, head), given),
        )
        paths = save(figure, outputs[i])
        print(target)
        print("\n".join(f"  {path}" for path in paths))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.plot_alignments", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="run folder")
    parser.add_argument("--source", action="append", default=[], help="English sentence; repeat")
    parser.add_argument("--target", action="append", default=[], help="its given French; repeat")
    parser.add_argument("--sources", type=Path, metavar="FILE", help="source sentences, one a line")
    parser.add_argument("--targets", type=Path, metavar="FILE", help="their targets, one a line")
    parser.add_argument("--output", type=Path, help="figure, written as PNG and PDF (or SVG)")
    parser.add_argument(
        "--layer", type=number_or(MEAN), help="a number from 1, or mean (default: the model's)"
    )
    parser.add_argument(
        "--head", type=number_or(MEAN), help="a number from 1, or mean (the default)"
    )
    parser.add_argument("--checkpoint", default="best", help="best, last or a file")
    parser.add_argument("--beam-size", type=int, default=5, help="1 is greedy (default: 5)")
    parser.add_argument("--length-penalty", type=float, default=1.0, help="(default: 1)")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument(
        "--keep-end",
        action="store_true",
        help="show the attention to the source's </s> as a column of its own",
    )
    return parser


def sentences(options: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Sources and targets; no targets where the model shall translate."""
    sources, targets = list(options.source), list(options.target)
    if options.sources:
        sources += read_lines(options.sources)
    if options.targets:
        targets += read_lines(options.targets)
    if not sources:
        raise ValueError("which sentence? give --source or --sources")
    if targets and len(targets) != len(sources):
        raise ValueError(f"{len(targets)} targets do not fit {len(sources)} sources")
    for number, source in enumerate(sources, 1):
        if not normalise(source):
            raise ValueError(f"source {number} is blank")
    return sources, targets


def place(there: tuple[int, int], layer: int | str, head: int | str) -> str:
    """What is drawn, of so many layers and heads, in words."""
    layers, heads = there
    if layers == heads == 1:
        return "the decoder's attention"
    part = f"mean of {heads} heads" if head == MEAN else f"head {head} of {heads}"
    if layer == MEAN:
        return f"mean of {layers} decoder layers, {part}"
    return f"decoder layer {layer} of {layers}, {part}"


def caption(run: Run, options: argparse.Namespace, where: str, given: bool) -> str:
    """Which model's attention it is, of what, and how the end of the sentence was treated."""
    parts = [
        run.name,
        f"checkpoint {options.checkpoint}",
        where,
        "given target" if given else "own translation",
        "</s> of the source kept" if options.keep_end else "</s> left out, rows rescaled to 1",
        "black 0, white 1",
    ]
    return " · ".join(parts)


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
