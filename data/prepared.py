"""A corpus prepared for training: read, cleaned and tokenised once, in bounded memory, and kept.

In corpora_root()/prepared there are folders, each named after a hash of all that decides what it
holds:

- CORPUS-HASH: the training text, one sentence a line, and the dev pairs. Hashed are the settings of
  the corpus, the files that it reads (path, size, times), the code of this room, Python's version.
- tokens-HASH: the tokens of one side of a training text, which training maps into memory. Hashed
  are the text, the vocabulary and the code.

A folder comes whole or not at all. One that is damaged (`about.json` has the sizes of its files) is
made anew. Where none can be kept, a temporary one serves.
"""

import atexit
import errno
import functools
import hashlib
import json
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from data.batching import TokenArray, write_tokens
from data.corpus import Corpus, ParallelCorpus
from data.download import arrive, corpora_root
from data.notes import Listener, Said, say
from data.pair import Pair
from data.text import TextFile, digest_of, line_of
from data.tokenizer import VERSION, Tokenizer

ABOUT = "about.json"
CHUNK = 10_000  # sentences tokenised at once
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # what is said where a file has no room

log = logging.getLogger(__name__)


class Prepared(NamedTuple):
    """What training needs of a corpus."""

    src: TextFile  # of the training pairs
    tgt: TextFile
    dev: ParallelCorpus

    @property
    def digest(self) -> str:
        """By which all of it is known again, on any machine."""
        dev = (self.dev.src, self.dev.tgt, *self.dev.extra_references)
        parts = (self.src.digest, self.tgt.digest, *map(digest_of, dev))
        return hashlib.sha256(" ".join(parts).encode()).hexdigest()


def prepare(corpus: Corpus) -> Prepared:
    """The training text and the dev pairs, read and cleaned unless they are there already.

    What is said while they are made (of dropped pairs, say) is said again whenever they are found.
    """
    name = type(corpus).__name__.lower()
    origins = _identity(corpus)
    said: Said = []

    def make(folder: Path) -> dict[str, Any]:
        said.clear()
        with Listener(said):
            digests, pairs = _write_text(corpus.stream("train"), folder)
            dev = json.dumps(asdict(corpus.load("dev")))
        (folder / "dev.json").write_text(dev, encoding="utf-8")
        if _identity(corpus) != origins:
            raise ValueError(f"data: files of {name} have changed while they were read; try again")
        return {"pairs": pairs, "digests": digests, "said": said}

    settings = json.dumps(asdict(corpus), sort_keys=True, default=str)
    folder, about = _kept(f"{name}-{_key(type(corpus).__qualname__, settings, origins)}", make)
    if not said:  # it was there
        say(about["said"])
    src, tgt = (
        TextFile(folder / side, about["pairs"], about["digests"][side]) for side in ("src", "tgt")
    )
    dev = json.loads((folder / "dev.json").read_text("utf-8"))
    references = tuple(dev.pop("extra_references"))
    return Prepared(src, tgt, ParallelCorpus(**dev, extra_references=references))


def tokens(text: TextFile, tokenizer: Tokenizer) -> TokenArray:
    """The tokens of the sentences, mapped from files that are written unless they are there."""
    dtype = np.uint16 if tokenizer.size <= 1 << 16 else np.int32

    def chunks() -> Iterator[list[list[int]]]:
        sentences = iter(tqdm(text, "tokens", unit=" sentences", leave=False, disable=None))
        while chunk := list(islice(sentences, CHUNK)):
            yield tokenizer.encode(chunk)

    def make(folder: Path) -> dict[str, Any]:
        write_tokens(chunks(), folder, dtype)
        return {}

    key = _key(text.digest, tokenizer.digest, VERSION, np.dtype(dtype).name)
    return TokenArray.mapped(_kept(f"tokens-{key}", make)[0], dtype)


def _write_text(pairs: Iterable[Pair], folder: Path) -> tuple[dict[str, str], int]:
    """Writes both sides to files; their hashes, and the number of pairs."""
    hashes = {"src": hashlib.sha256(), "tgt": hashlib.sha256()}
    count = 0
    with (folder / "src").open("wb") as src, (folder / "tgt").open("wb") as tgt:
        for pair in pairs:
            count += 1
            for file, side in ((src, "src"), (tgt, "tgt")):
                line = line_of(getattr(pair, side))
                file.write(line)
                hashes[side].update(line)
    return {side: found.hexdigest() for side, found in hashes.items()}, count


def _identity(corpus: Corpus) -> list[tuple[str | int, ...]]:
    """What tells the files of a corpus from others and from what they were before."""
    files = sorted(set(corpus.origins()))
    states = [(str(file), file.stat()) for file in files]
    return [(name, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for name, s in states]


def _key(*parts: object) -> str:
    return hashlib.sha256(repr([*parts, _code(), sys.version]).encode()).hexdigest()[:32]


@functools.cache
def _code() -> str:
    """A hash of the source files of this room, word lists included."""
    room = Path(__file__).parent
    own = [path for path in room.iterdir() if path.name != "corpora"]
    files = [file for path in own for file in (path.rglob("*") if path.is_dir() else [path])]
    digest = hashlib.sha256()
    for file in sorted(f for f in files if f.suffix in (".py", ".tsv")):
        digest.update(f"{file.relative_to(room)}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def _kept(name: str, make: Callable[[Path], dict[str, Any]]) -> tuple[Path, dict[str, Any]]:
    """The folder of this name and its `about.json`; `make` fills it unless it is there, whole."""

    def fill(_downloads: Path, ready: Path) -> None:
        about = make(ready)
        sizes = {path.name: path.stat().st_size for path in ready.iterdir()}
        (ready / ABOUT).write_text(json.dumps({**about, "sizes": sizes}), encoding="utf-8")
        for path in ready.iterdir():
            with path.open("rb") as file:  # or a power cut could leave a size and no contents
                os.fsync(file.fileno())

    folder = corpora_root() / "prepared" / name
    try:
        _check_writable(folder)
        folder = arrive(folder, fill, _is_whole)
    except OSError as error:
        if error.errno not in FULL and not isinstance(error, _NotWritable):
            raise
        log.warning("%s: prepared text cannot be kept there (%s)", folder.parent, error)
        folder = arrive(_temporary() / name, fill, _is_whole)
    return folder, json.loads((folder / ABOUT).read_text("utf-8"))


class _NotWritable(OSError):
    """A folder that nothing can be written into."""


def _check_writable(folder: Path) -> None:
    """Raises _NotWritable if there is no such folder yet, and none can be made."""
    if _is_whole(folder):
        return
    if folder.exists():
        log.warning("%s is damaged, and made anew", folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder.parent).close()
    except OSError as error:
        raise _NotWritable(str(error)) from error


def _is_whole(folder: Path) -> bool:
    """Whether the folder has all of its files, as long as they were written."""
    try:
        sizes = json.loads((folder / ABOUT).read_text("utf-8"))["sizes"]
        return all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


@functools.cache
def _temporary() -> Path:
    """A folder that is deleted when this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="seq2seq-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
