"""What comes from elsewhere at its worst: text, bytes, files, archives and overrides at random.

Everything is drawn from a `random.Random`, so that a seed says it all.
"""

import bz2
import contextlib
import gzip
import importlib
import io
import logging
import lzma
import random
import sys
import tarfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

# Each is trouble somewhere: line separators that are not "\n", controls, marks, directions,
# surrogates, what SentencePiece, Hydra, matplotlib, the shell or a format string takes for its own.
PIECES = [
    "the", "cat", "sleeps", "l'école", "œuvre", "9", " ", "  ", "\t", "\n", "\r", "\r\n", "\x00",
    "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x1b[31m", "\x7f", "\x85", "\u2028", "\u2029",
    "\u00a0", "\u202f", "\u200b", "\u200d", "\u2060", "\ufeff", "\u00ad", "e\u0301", "\u0301",
    "\u0344", "\u0327" * 40, "\u0300\u0323" * 20, "\u0041\u030a", "\u1e9b\u0323", "\ufb01",
    "\u2019", "\u00b4", "\u0958", "שלום", "مرحبا", "\u202e", "\u2066", "日本", "\u1100\u1161",
    "😀", "👩\u200d👩\u200d👧", "\U0001f1eb\U0001f1f7", "\U0010ffff", "\ufffe", "\ufffd",
    "\ud800", "\udfff", "\udce9", "▁", "▅", "⁇", "<s>", "</s>", "<unk>", "<pad>", "|||", "0-0",
    "1p2", "-1-0", "9" * 30, "$x^2$", "\\frac{", "%s", "{0}", "${x}", "`", "'", '"', "\\", "<b>",
    "x" * 300, "İ", "ß", "ǆ", "٣", "²", "_",
]  # fmt: skip


def text(draw: random.Random, longest: int = 12) -> str:
    """Some pieces in a row."""
    return "".join(draw.choice(PIECES) for _ in range(draw.randrange(longest + 1)))


def raw(draw: random.Random, longest: int = 12) -> bytes:
    """Text as bytes, mostly UTF-8; a line of random bytes, another encoding or a very long one."""
    kind = draw.random()
    if kind < 0.7:
        return text(draw, longest).encode("utf-8", draw.choice(["surrogatepass", "ignore"]))
    if kind < 0.8:
        return draw.randbytes(draw.randrange(40))
    if kind < 0.9:
        encoding = draw.choice(["utf-16", "latin-1", "utf-7", "utf-8-sig", "cp1252"])
        return text(draw, longest).encode(encoding, "ignore")
    return draw.choice(PIECES[:60]).encode("utf-8", "ignore") * draw.randrange(3_000)


def lines(draw: random.Random, most: int = 8, *, valid: bool = False) -> bytes:
    """A file of lines, with or without an end of the last; all of it UTF-8 if it is to be valid."""
    ends = [b"\n", b"\n", b"\n", b"\r\n", b"\n\n"]
    line = (lambda d: text(d).encode("utf-8", "ignore")) if valid else raw
    made = [line(draw) + draw.choice(ends) for _ in range(draw.randrange(most + 1))]
    return b"".join(made).removesuffix(draw.choice([b"", b"\n"]))


def damaged(draw: random.Random, content: bytes) -> bytes:
    """The content with bits flipped, bytes changed, cut out or put in, its end cut off, ..."""
    made = bytearray(content)
    for _ in range(draw.choice([1, 1, 1, 2, 8])):
        if not made:
            break
        place, kind = draw.randrange(len(made)), draw.random()
        if kind < 0.5:
            made[place] ^= 1 << draw.randrange(8)
        elif kind < 0.6:
            del made[place:]
        elif kind < 0.8:
            made[place : place + draw.randrange(9)] = draw.randbytes(draw.randrange(9))
        elif kind < 0.9:
            other = draw.randrange(len(made))
            made[place:place] = made[other : other + draw.randrange(200)]
        else:
            made[place : place + draw.randrange(64)] = b""
    return bytes(made)


# Archives

NAMES = [
    "fra.txt", "a/fra.txt", "./fra.txt", "../fra.txt", "a/../../fra.txt", "/tmp/fra.txt",
    "..\\fra.txt", "C:\\fra.txt", "C:fra.txt", "\\\\host\\share\\fra.txt", "FRA.TXT", "Fra.txt",
    "fra.txt/", "fra.txt\x00.png", "a\nb/fra.txt", "é/fra.txt", "other.txt", "x" * 300,
    "__MACOSX/fra.txt", ".", "..", "", "con/fra.txt", "fra.txt/fra.txt",
]  # fmt: skip
TAR_TYPES = [
    *(tarfile.REGTYPE, tarfile.REGTYPE, tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE),
    *(tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE, tarfile.CONTTYPE),
    tarfile.GNUTYPE_SPARSE,
]
PACKERS = [lambda b: b, gzip.compress, bz2.compress, lzma.compress]


def zipped(draw: random.Random) -> bytes:
    stream = io.BytesIO()
    methods = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
    with zipfile.ZipFile(stream, "w") as pack:
        for _ in range(draw.randrange(4)):
            info = zipfile.ZipInfo(draw.choice(NAMES) or "x")
            if draw.random() < 0.2:
                info.external_attr = 0o120777 << 16  # a symbolic link
            content = draw.choice([b"", lines(draw), b"../../out", bytes(100_000)])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of two members of one name
                pack.writestr(info, content, draw.choice(methods))
    return stream.getvalue()


def tarred(draw: random.Random) -> bytes:
    stream = io.BytesIO()
    kind = draw.choice([tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
    with tarfile.open(fileobj=stream, mode="w", format=kind) as pack:
        for _ in range(draw.randrange(4)):
            info = tarfile.TarInfo(draw.choice(NAMES))
            info.type = draw.choice(TAR_TYPES)
            info.linkname = draw.choice(["../../out", "/etc/hostname", "fra.txt", ""])
            content = draw.choice([b"", lines(draw), bytes(100_000)])
            info.size = len(content) if info.isreg() else 0
            with contextlib.suppress(ValueError):  # a name too long for the format
                pack.addfile(info, io.BytesIO(content))
    return draw.choice(PACKERS)(stream.getvalue())


def archive(draw: random.Random) -> bytes:
    """An archive with odd members, often damaged, sometimes within another."""
    made = draw.choice([zipped, tarred])(draw)
    if draw.random() < 0.1:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as pack:
            pack.writestr("fra.txt", made)
        made = stream.getvalue()
    return damaged(draw, made) if draw.random() < 0.5 else made


# Overrides

VALUES = [
    "null", "true", "0", "1", "-1", "3", "0.5", "1e309", "-1e9", "nan", "inf", "1" * 30, "1_000",
    "0x10", "１２", "9223372036854775807", "9223372036854775808", "''", "a", "é", "[]", "[1,2]",
    "[1,[2]]", "{}", "{a:1}", "{a:{b:c}}", "???", "${width}", "${nope}", "${training}",
    "${oc.env:HOME}", "${oc.env:NOPE}", "${oc.decode:'[1'}", "${${seed}}", "${", "'", '"a b"',
    "1,2", "choice(1,2)", "range(0,3)", "glob(*)", "[" * 50, "a=b", "a:b", " ", "../x", "/", "..",
    "\\,", "$x", "\x00", "\udcff", "\n", "😀", "x" * 3000, "torch.optim.SGD", "os.system", "@", "~",
]  # fmt: skip


def override(draw: random.Random, keys: list[str]) -> str:
    """An override: mostly of a known key, mostly with a value that it should not have."""
    key = draw.choice(keys)
    if draw.random() < 0.1:
        odd = ["", "a", "a.b", "é", "hydra", "training", "data@x", "x@y", "..", "_target_"]
        key = draw.choice([*odd, key[:-1], f"{key}.x", key.upper(), "model._target_"])
    value = draw.choice(VALUES) if draw.random() < 0.9 else text(draw, 3)
    before, between = draw.choice([""] * 9 + ["+", "++", "~"]), draw.choice(["="] * 19 + [""])
    return f"{before}{key}{between}{value}"


# Commands in this process


class Spoken:
    """What a command printed, and how it ended."""

    def __init__(self, status: int, out: bytes, err: str) -> None:
        self.status, self.out, self.err = status, out, err

    @property
    def is_clear(self) -> bool:
        """It went well, or ended with one line that says what is wrong."""
        last = self.err.strip().splitlines()[-1:] or [""]
        said = last[0].startswith("error: ") or ": error: " in last[0]  # argparse's way
        return "Traceback" not in self.err and (self.status == 0 or said)


def spoken(module: str, *arguments: str, stdin: bytes = b"") -> Spoken:
    """Runs a command in this process as if from the command line."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8", newline="\n"), io.StringIO()
    before = sys.argv, sys.stdin, list(logging.getLogger().handlers)
    sys.argv, sys.stdin = [module, *arguments], io.TextIOWrapper(io.BytesIO(stdin), "utf-8")
    logging.getLogger().handlers = [logging.StreamHandler(err)]
    status = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            importlib.import_module(module).main()
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    finally:
        sys.argv, sys.stdin, logging.getLogger().handlers = before
    out.flush()
    return Spoken(status, out.buffer.getvalue(), err.getvalue())


def everything_below(folder: Path) -> dict[str, bytes | None]:
    """Every path below a folder with its content; links are not followed."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        if path.is_file() and not path.is_symlink()
        else None
        for path in sorted(folder.rglob("*"))
    }


def smaller(content: bytes | str, fails: Callable[[bytes | str], bool]) -> bytes | str:
    """A shorter content that still fails, found by leaving out parts."""
    for piece in _halves(len(content)):
        place = 0
        while place < len(content):
            shorter = content[:place] + content[place + piece :]
            if fails(shorter):
                content = shorter
            else:
                place += piece
    return content


def _halves(length: int) -> Iterator[int]:
    while length > 1:
        length //= 2
        if length >= 1:
            yield length
