"""The guided tour of attention: from one context vector to multi-head attention in eight steps.

python -m scripts.attention_tour [RUN ...] [--output docs/attention]

Prints the tour and writes it as a Markdown page with its figures. Runs fill in what only trained
models can show: BLEU by length of those evaluated, an alignment (model=bahdanau), two heads
(model=transformer). Without any given, those of `make demo` are taken, where they are.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from cli import command
from decoding.run import Run
from scripts.tour import (
    alignment,
    bottleneck,
    causal,
    context,
    heads,
    projections,
    scaling,
    unweighted,
)
from scripts.tour.page import FIGURES, Step, prose, render, text, write

DEMO = [Path("runs/grammar") / model / "demo" for model in ("rnn", "bahdanau", "transformer")]


@command
def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_intermixed_args(arguments)
    folders = options.runs or [run for run in DEMO if (run / "checkpoints/best.pt").is_file()]
    runs = [Run(folder) for folder in folders]
    if options.output.is_dir():
        raise ValueError(f"--output {options.output} is a folder: name the page, as in docs/tour")
    page = options.output.with_name(f"{options.output.name.removesuffix('.md')}.md")
    (page.parent / FIGURES).mkdir(parents=True, exist_ok=True)  # before the long part
    steps = tour(runs)
    rendered = render(introduction(runs), steps)
    print(rendered)
    write(rendered, steps, page)
    print(f"the same with its figures: {page}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.attention_tour", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "runs", nargs="*", type=Path, metavar="RUN", help="run folders (default: make demo's)"
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("runs/attention_tour/attention"),
        help="page, written as Markdown, with figures beside it (default: %(default)s)",
    )
    return parser


def tour(runs: Sequence[Run]) -> list[Step]:
    """The steps, in the order of the road."""
    return [
        bottleneck.step(runs),
        alignment.step(runs),
        unweighted.step(),
        projections.step(),
        context.step(),
        scaling.step(),
        causal.step(),
        heads.step(runs),
    ]


def introduction(runs: Sequence[Run]) -> str:
    shown = ", ".join(run.name for run in runs) or "none, so what needs training is left out"
    return text(
        "# Why attention was invented, step by step",
        prose(
            """From one context vector to multi-head attention in eight steps, each for what the one
            before could not do. All numbers and figures, but the published ones, are computed by
            the functions that train and translate in this repository; each step ends with their
            names. Each step is a file of `scripts/tour/`;
            `python -m scripts.attention_tour RUN RUN ...` writes such a page of other runs."""
        ),
        prose(f"Trained runs shown: {shown}."),
    )


if __name__ == "__main__":
    main()
