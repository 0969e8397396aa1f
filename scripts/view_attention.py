"""Writes a page to look into a model's attention with a browser: every map, layer and head.

python -m scripts.view_attention RUN [RUN2] --source "..." [--target "..."] [--output page.html]

Without a target, each model's own translation is read. Several sentences: repeat --source, or
--sources FILE with one a line (and --targets FILE). The page is one file and needs no network.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cli import command
from data.text import write_whole
from decoding.run import Run
from decoding.translator import MAX_SOURCE_TOKENS, attentive, search_with
from evaluation.alignment import words
from evaluation.attention_page import LIMIT, Pair, Shown, attention_page, view
from scripts.options import add_checkpoint, add_device, add_search, add_sentences, sentences

MOST_SENTENCES = 200  # more would not fit, and each costs time


@command
def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_intermixed_args(arguments)
    if len(options.runs) > 2:
        raise ValueError(f"at most two runs stand side by side, not {len(options.runs)}")
    if not options.limit > 0:  # nor not a number
        raise ValueError(f"--limit must be above 0 MB, not {options.limit:g}")
    search_with(options.beam_size, options.length_penalty)  # refuses what is impossible, early
    sources, targets = sentences(options)
    if len(sources) > MOST_SENTENCES:
        raise ValueError(f"{len(sources)} sentences: a page has at most {MOST_SENTENCES}")
    runs = [Run(folder) for folder in options.runs]
    output = options.output or runs[0].folder / "figures" / "attention.html"
    if output.is_dir():
        raise IsADirectoryError(f"{output}: a folder; give --output the name of a file")
    columns = [views(run, sources, targets, options) for run in runs]
    shown = [describe(run, options) for run in runs]
    page = attention_page(shown, sources, list(zip(*columns, strict=True)), options.limit)
    output.parent.mkdir(parents=True, exist_ok=True)
    write_whole(output, page)
    print(f"open {output} in a browser ({len(page.encode()) / 1e3:.0f} kB)")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.view_attention", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="one run folder or two")
    add_sentences(parser)
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="page (default: RUN/figures/attention.html)"
    )
    parser.add_argument("--limit", type=float, default=LIMIT, help=f"MB at most ({LIMIT:g})")
    add_checkpoint(parser)
    add_search(parser)
    add_device(parser)
    return parser


def views(
    run: Run, sources: Sequence[str], targets: Sequence[str], options: argparse.Namespace
) -> list[dict[str, Any]]:
    """What the page knows of each sentence in this run."""
    translator = attentive(run, options.device, options.checkpoint)
    check_length("source", translator.src_tokenizer.encode(sources))
    check_length("target", translator.tgt_tokenizer.encode(targets))
    produced, texts = targets, targets
    if not targets:
        search = search_with(options.beam_size, options.length_penalty)
        produced = translator.translate(sources, search)
        texts = [translation.text for translation in produced]
    pairs = zip(sources, produced, strict=True)  # one at a time, as all maps of all fill the memory
    found = (translator.attention([source], [target])[0] for source, target in pairs)
    return [
        view(
            text,
            Pair(looked.src_pieces, looked.tgt_pieces, words(source), words(text)),
            looked.maps,
        )
        for source, text, looked in zip(sources, texts, found, strict=True)
    ]


def check_length(name: str, sentences: Sequence[Sequence[int]]) -> None:
    """Raises ValueError for a sentence of more tokens than a model reads of a source."""
    for number, tokens in enumerate(sentences, 1):
        if len(tokens) > MAX_SOURCE_TOKENS:
            raise ValueError(
                f"{name} {number} has {len(tokens)} tokens, more than the {MAX_SOURCE_TOKENS} "
                "that are read"
            )


def describe(run: Run, options: argparse.Namespace) -> Shown:
    """The run's name, and what else a reader has to know of where the weights come from."""
    own = "greedy search" if options.beam_size == 1 else f"beam of {options.beam_size}"
    given = bool(options.target or options.targets)
    return Shown(
        run.name,
        options.checkpoint,
        "given target" if given else f"own translation, {own}",
        run.config["model"].get("alignment_layer"),
    )


if __name__ == "__main__":
    main()
