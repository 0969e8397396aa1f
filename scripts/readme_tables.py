"""Puts the tables of results/ into the documents, so that what they say is what was measured.

python -m scripts.readme_tables [README.md docs/FILE.md ...]

A comment `<!-- results/NAME.json -->` stands before each table that it replaces.
"""

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path

from cli import command
from data.text import write_whole
from evaluation.tables import text_table

DOCUMENTS = ("README.md", "docs/*.md")
MARKED = re.compile(r"(<!-- (results/[\w.-]+\.json) -->\n+)((?:\|[^\n]*\n)*)")


@command
def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.readme_tables", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("files", nargs="*", type=Path, help=f"default: {' '.join(DOCUMENTS)}")
    files = parser.parse_intermixed_args(arguments).files
    for path in files or [path for pattern in DOCUMENTS for path in sorted(Path().glob(pattern))]:
        text = path.read_text("utf-8")
        changed = with_tables(text)
        if changed != text:
            write_whole(path, changed)
            print(f"{path}: changed")


def with_tables(text: str, folder: Path = Path()) -> str:
    """The text with each marked table as its file of results has it."""

    def table(match: re.Match[str]) -> str:
        path = folder / match[2]
        if not path.is_file():
            raise FileNotFoundError(f"{path}: no such results, which a document shows")
        try:
            shown = text_table(**json.loads(path.read_text("utf-8"))["table"])
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"{path}: not a file of results ({error!r})") from error
        follows = match.string[match.end() : match.end() + 1]  # it would be a row of the table
        return f"{match[1]}{shown}\n" + ("\n" if follows.strip() else "")

    return MARKED.sub(table, text)


if __name__ == "__main__":
    main()
