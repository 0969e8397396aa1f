"""Translates lines: python -m scripts.translate RUN < in.en > out.fr

Output is line for line with the input; a blank line gives a blank line. Warnings go to stderr.
A line ends at "\\n" and nowhere else. One that is not UTF-8 stops the translation with an error
that names it; of one over 1 MiB only the beginning is looked at, with a warning.
"""

import argparse
import codecs
import logging
import sys
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from cli import command
from decoding.run import Run
from decoding.translator import Translation, Translator, search_with
from scripts.options import add_device, add_search

# Translated together are so many lines, or so much text if that is less, so that memory is bounded.
CHUNK, CHUNK_BYTES = 2_000, 1 << 22
LINE_BYTES = 1 << 20  # of a longer line, only so much is looked at

log = logging.getLogger(__name__)


@command
def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    if options.n_best < 1:
        raise ValueError(f"--n-best must be at least 1, not {options.n_best}")
    if options.n_best > options.beam_size:
        raise ValueError(
            f"--n-best {options.n_best} needs --beam-size {options.n_best} or more, "
            f"not {options.beam_size}"
        )
    search = search_with(options.beam_size, options.length_penalty)
    translator = Translator.from_run(
        Run(options.run), options.device, options.checkpoint, options.precision
    )
    if sys.stdin is None or sys.stdout is None:
        raise ValueError("standard input or output is closed: give < FILE and > FILE")
    capped = unknown = done = 0
    for chunk in _chunks(_lines(sys.stdin.buffer)):
        for found in translator.alternatives(chunk, search, first_line=done + 1):
            lines = [_line(t, options.n_best > 1) for t in found[: options.n_best]]
            missing = options.n_best - len(lines)
            print("\n".join([*lines, *["-inf\t"] * missing]))
            capped += found[0].length_capped
            unknown += sum(t.unknown_tokens for t in found[: options.n_best])
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
        "--checkpoint",
        nargs="+",
        default=["best"],
        help="best, last, kept or files; several: averaged",
    )
    add_search(parser)
    parser.add_argument(
        "--n-best",
        type=int,
        default=1,
        metavar="N",
        help="N lines each: score, tab, translation; -inf and nothing where fewer were found",
    )
    add_device(parser)
    parser.add_argument(
        "--precision",
        default="fp32",
        help="fp32 (default), bf16 (faster from width 256 on) or auto",
    )
    return parser


def _lines(stream: BinaryIO) -> Iterator[str]:
    """The lines, ended by "\\n" alone; ValueError names one that is not UTF-8."""
    number = 0
    while piece := stream.readline(LINE_BYTES):
        number += 1
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            line = decoder.decode(piece)
            if not piece.endswith(b"\n"):
                beyond = _skip(stream, decoder)
                if beyond:
                    log.warning(
                        "line %d has %d bytes: only the first %d are looked at",
                        number,
                        LINE_BYTES + beyond,
                        LINE_BYTES,
                    )
            yield line.removesuffix("\n")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"standard input, line {number}: not UTF-8 ({error.reason});"
                " convert it, for example with iconv -t UTF-8"
            ) from error


def _skip(stream: BinaryIO, decoder: codecs.IncrementalDecoder) -> int:
    """Reads to the end of the line, which must be UTF-8 as well; how many bytes that were."""
    count, piece = 0, b""
    while not piece.endswith(b"\n") and (piece := stream.readline(LINE_BYTES)):
        count += len(piece.removesuffix(b"\n"))
        decoder.decode(piece)
    decoder.decode(b"", final=True)
    return count


def _chunks(lines: Iterator[str]) -> Iterator[list[str]]:
    """The lines in groups of CHUNK, or of less if they are long."""
    chunk, size = [], 0
    for line in lines:
        chunk.append(line)
        size += len(line)
        if len(chunk) == CHUNK or size > CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _line(translation: Translation, scored: bool) -> str:
    return f"{translation.score:.4f}\t{translation.text}" if scored else translation.text


if __name__ == "__main__":
    if sys.stdout is not None:
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    main()
