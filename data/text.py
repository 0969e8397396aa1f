"""Files: text read line by line, within bounds, so that no memory need hold it; whole writing."""

import codecs
import gzip
import hashlib
import math
import os
import secrets
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

from data.archive import MAX_RATIO, unpacked_limit

SPACE = "\u2581"  # "▁": how SentencePiece writes a space, and reads it wherever it stands
MAX_LINE_BYTES = 1 << 24  # a longer line is no sentence


def open_binary(path: Path) -> BinaryIO:
    """The file's bytes, unpacked when its name ends in .gz."""
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")  # type: ignore


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 text file (or .gz) without their ends; "\\n" alone ends a line.

    Raises ValueError for bytes that are not UTF-8, and where lines or unpacked files are so long
    that they would fill the memory (MAX_LINE_BYTES, `unpacked_limit`).
    """
    with open_binary(path) as stream:
        left = unpacked_limit(path.stat().st_size) if path.suffix == ".gz" else math.inf
        try:
            lines = iter(partial(stream.readline, MAX_LINE_BYTES + 1), b"")
            for number, line in enumerate(lines, start=1):
                left -= len(line)
                if len(line) > MAX_LINE_BYTES:
                    raise ValueError(f"{path}, line {number}: over {MAX_LINE_BYTES:,} bytes long")
                if left < 0:
                    raise ValueError(
                        f"{path}, line {number}: unpacks to over {MAX_RATIO} times its size;"
                        " if it is meant to, unpack it yourself"
                    )
                if number == 1 and line == codecs.BOM_UTF8:
                    return  # an empty file, as some editors write it
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                yield text.removesuffix("\n").replace("\r", "")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path}, line {number}: not UTF-8 (byte 0x{line[error.start]:02x});"
                " convert the file, for example with iconv -t UTF-8"
            ) from None
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{path}: damaged or cut-off gzip file ({error})") from None


def write_whole(path: Path, content: str | bytes) -> None:
    """Writes a file (text as UTF-8) all or nothing; OSError names it."""
    content = content.encode("utf-8") if isinstance(content, str) else content
    draft = path.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        if path.exists() and not path.is_file():  # /dev/stdout, a pipe: not to be replaced
            path.write_bytes(content)
            return
        draft.write_bytes(content)
        os.replace(draft, path)
    except BaseException as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        if isinstance(error, OSError):
            reason = error.strerror or error
            raise OSError(f"{path}: could not be written ({reason})") from error
        raise


def count_lines(path: Path) -> int:
    """The number of lines; a last line without an end counts."""
    return sum(1 for _ in read_lines(path))


@dataclass(frozen=True)
class TextFile:
    """Sentences, one a line; how many there are, and their hash, are known without reading."""

    path: Path
    count: int
    digest: str

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[str]:
        with self.path.open(encoding="utf-8", newline="\n") as lines:
            for line in lines:
                yield line.removesuffix("\n")


def digest_of(sentences: Sequence[str] | TextFile) -> str:
    """A hash of the sentences, the same in memory and in a file."""
    if isinstance(sentences, TextFile):
        return sentences.digest
    digest = hashlib.sha256()
    for sentence in sentences:
        digest.update(line_of(sentence))
    return digest.hexdigest()


def line_of(sentence: str) -> bytes:
    """The sentence as a line of a file; without "\\n" inside, as `normalise` leaves it."""
    return f"{sentence}\n".encode()
