"""Options that several commands share, and what is read from them."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from data.corpus import normalise
from data.text import read_lines


def add_sentences(parser: argparse.ArgumentParser) -> None:
    """--source and --target, or files of them."""
    parser.add_argument("--source", action="append", default=[], help="English sentence; repeat")
    parser.add_argument("--target", action="append", default=[], help="its given French; repeat")
    parser.add_argument("--sources", type=Path, metavar="FILE", help="source sentences, one a line")
    parser.add_argument("--targets", type=Path, metavar="FILE", help="their targets, one a line")


def add_checkpoint(parser: argparse.ArgumentParser) -> None:
    """--checkpoint, of which one is read."""
    parser.add_argument("--checkpoint", default="best", help="best, last, kept or a file")


def add_search(parser: argparse.ArgumentParser) -> None:
    """How a model's own translation is searched for."""
    parser.add_argument("--beam-size", type=int, default=5, help="1 is greedy (default: 5)")
    parser.add_argument("--length-penalty", type=float, default=1.0, help="(default: 1)")


def add_device(parser: argparse.ArgumentParser) -> None:
    """--device."""
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")


def sentences(options: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Sources and targets given, normalised; no targets where a model shall translate.

    Raises:
        ValueError: there is no source, another number of targets, or a blank one.
    """
    sources = _given("source", options.source, options.sources)
    targets = _given("target", options.target, options.targets)
    if not sources:
        raise ValueError("which sentence? give --source or --sources")
    if targets and len(targets) != len(sources):
        raise ValueError(f"{len(targets)} targets do not fit {len(sources)} sources")
    return sources, targets


def _given(name: str, texts: Sequence[str], file: Path | None) -> list[str]:
    given = [normalise(text) for text in [*texts, *(read_lines(file) if file else [])]]
    if "" in given:
        raise ValueError(f"{name} {given.index('') + 1} is blank")
    return given
