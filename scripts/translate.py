"""Translates lines: python -m scripts.translate RUN < in.en > out.fr

Output is line for line with the input; a blank line gives a blank line. Warnings go to stderr.
"""

import argparse
import logging
import sys
from collections.abc import Iterator, Sequence
from itertools import islice

from cli import command
from decoding.run import Run
from decoding.translator import Translation, Translator, search_with

CHUNK = 2_000  # lines translated together, so that memory is bounded for any input

log = logging.getLogger(__name__)


@command
def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    if options.n_best > options.beam_size:
        raise ValueError(
            f"--n-best {options.n_best} needs --beam-size {options.n_best} or more, "
            f"not {options.beam_size}"
        )
    search = search_with(options.beam_size, options.length_penalty)
    translator = Translator.from_run(Run(options.run), options.device, options.checkpoint)
    capped = unknown = done = 0
    lines = _lines()
    while chunk := list(islice(lines, CHUNK)):
        for found in translator.alternatives(chunk, search, first_line=done + 1):
            for translation in found[: options.n_best]:
                print(_line(translation, options.n_best > 1))
            capped += found[0].length_capped
            unknown += found[0].unknown_tokens
        done += len(chunk)
    sys.stdout.flush()
    if capped:
        log.warning("%d of %d translations were cut off by the length limit", capped, done)
    if unknown:
        log.warning('%d unknown tokens are in the output, written as "⁇"', unknown)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.translate",
        description="Translates standard input, line by line, to standard output.",
    )
    parser.add_argument("run", metavar="RUN", help="run folder")
    parser.add_argument(
        "--checkpoint", nargs="+", default=["best"], help="best, last or files; several: averaged"
    )
    parser.add_argument("--beam-size", type=int, default=5, help="1 is greedy (default: 5)")
    parser.add_argument("--length-penalty", type=float, default=1.0, help="(default: 1)")
    parser.add_argument(
        "--n-best", type=int, default=1, metavar="N", help="N lines each: score, tab, translation"
    )
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    return parser


def _lines() -> Iterator[str]:
    """Standard input's lines, ended by "\\n" alone; ValueError names one that is not UTF-8."""
    for number, line in enumerate(sys.stdin.buffer, start=1):
        try:
            yield line.decode("utf-8").removesuffix("\n")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"standard input, line {number}: not UTF-8 ({error.reason})"
            ) from error


def _line(translation: Translation, scored: bool) -> str:
    return f"{translation.score:.4f}\t{translation.text}" if scored else translation.text


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    main()
