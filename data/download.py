"""Files from the network: fetched with resume, verified, and a corpus that arrives whole.

Nothing half-done is ever visible under its final name: a transfer grows in `NAME.part`, a corpus
in a folder of its own, and both are renamed when complete and checked.
"""

import contextlib
import fcntl
import hashlib
import http.client
import logging
import os
import shutil
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from tqdm import tqdm

logger = logging.getLogger(__name__)

BY_HAND = (
    "To supply the files by hand, give data.source=FOLDER_OR_ARCHIVE"
    " (data/README.md names the files of each corpus)."
)
# Some sites refuse clients that do not look like a browser (manythings.org: 406).
USER_AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
TIMEOUT = 30  # seconds without an answer
CHUNK = 1 << 16  # bytes
MAX_DOWNLOAD = 4 << 30  # bytes: a server that sends on and on fills no disk


def corpora_root() -> Path:
    """The folder of downloaded corpora: SEQ2SEQ_CORPORA, or data/corpora beside this file."""
    return Path(
        os.environ.get("SEQ2SEQ_CORPORA") or Path(__file__).resolve().parent / "corpora"
    ).absolute()


def locate(folder: Path, *names: str) -> Path:
    """The one file of `folder`, or of the folders below it, that has one of the names."""
    for name in names:
        if (folder / name).is_file():
            return folder / name
    for name in names:
        found = [path for path in sorted(folder.rglob(name)) if "__MACOSX" not in path.parts]
        if len(found) > 1:
            raise ValueError(f"{folder} holds {len(found)} files called {name}; name one folder")
        if found:
            return found[0]
    raise FileNotFoundError(f"{folder} holds no {names[0]}. {BY_HAND}")


def sha256_of(path: Path) -> str:
    """The file's SHA-256 as hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def verify(path: Path, sha256: str, origin: str) -> None:
    """Deletes the file and raises unless it has the checksum."""
    found = sha256_of(path)
    if found != sha256:
        path.unlink()
        raise OSError(
            f"{origin}: wrong checksum (sha256 {found}, expected {sha256});"
            f" the file was deleted, try again. {BY_HAND}"
        )


def fetch(url: str, target: Path, sha256: str | None) -> None:
    """Downloads `url` to `target`, going on from a partial transfer where the server allows it.

    A transfer that breaks off leaves `target.part` for the next attempt and never `target`.
    """
    if sha256 is not None and target.is_file() and sha256_of(target) == sha256:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    version = target.with_name(target.name + ".version")  # the server's name for what .part is of
    try:
        _transfer(url, part, version)
    except urllib.error.HTTPError as error:
        error.close()
        reason = f"the server answered {error.code} {error.reason}"
        raise OSError(f"could not download {url}: {reason}. {BY_HAND}") from None
    except (http.client.HTTPException, ConnectionError, TimeoutError, EOFError) as error:
        reason = f"{error or type(error).__name__}; run the command again to go on"
        raise OSError(f"could not download {url}: {reason}. {BY_HAND}") from None
    except (urllib.error.URLError, UnicodeError) as error:
        reason = getattr(error, "reason", error)  # UnicodeError: no possible name of a host
        raise OSError(f"could not download {url}: {reason}. {BY_HAND}") from None
    version.unlink(missing_ok=True)
    if sha256 is not None:
        verify(part, sha256, url)
    part.replace(target)


def _transfer(url: str, part: Path, version: Path) -> None:
    """Reads the rest of `url` into `part`; raises EOFError when the answer ends early."""
    headers = {"User-Agent": USER_AGENT, "Accept": "*/*", "Accept-Encoding": "identity"}
    # Only a file known to be unchanged (ETag or date) can be continued.
    have = part.stat().st_size if part.exists() and version.exists() else 0
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": version.read_text("utf-8")}
    try:
        response = urllib.request.urlopen(
            urllib.request.Request(url, headers=headers), timeout=TIMEOUT
        )
    except urllib.error.HTTPError as error:
        if error.code != 416 or not have:
            raise
        error.close()
        part.unlink()  # the server has nothing after our last byte: begin again
        return _transfer(url, part, version)
    with response:
        if have and not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            have = 0  # the server sends the whole file
        tag = response.headers.get("ETag") or response.headers.get("Last-Modified") or ""
        if tag and not tag.startswith("W/"):
            version.write_text(tag, encoding="utf-8")
        else:
            version.unlink(missing_ok=True)
        length = response.headers.get("Content-Length") or ""
        total = have + int(length) if length.isdecimal() else None
        if total is not None and total > MAX_DOWNLOAD:
            raise ValueError(f"{url} is over {MAX_DOWNLOAD:,} bytes long, refused. {BY_HAND}")
        _copy(response, part, have, total, PurePosixPath(url).name)
    got = part.stat().st_size
    if total is not None and got < total:
        raise EOFError(f"the transfer was cut off after {got:,} of {total:,} bytes")
    return None


def _copy(response: BinaryIO, part: Path, have: int, total: int | None, name: str) -> None:
    """Appends the answer to the first `have` bytes of `part`, with a progress bar."""
    with (
        part.open("ab" if have else "wb") as stream,
        tqdm(desc=name, total=total, initial=have, unit="B", unit_scale=True, disable=None) as bar,
    ):
        while chunk := response.read(CHUNK):
            stream.write(chunk)
            bar.update(len(chunk))
            have += len(chunk)
            if have > MAX_DOWNLOAD:
                raise ValueError(f"{name} is over {MAX_DOWNLOAD:,} bytes long, refused. {BY_HAND}")


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[bool]:
    """Holds the lock file while the block runs, so that one process at a time downloads.

    Gives whether it is held: some file systems know no locks.
    """
    with path.open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            logger.info("waiting for another process that fetches or prepares the same corpus")
            fcntl.flock(stream, fcntl.LOCK_EX)
        except OSError:  # the final rename still decides
            yield False
            return
        yield True


def arrive(
    target: Path,
    fill: Callable[[Path, Path], None],
    is_whole: Callable[[Path], bool] = Path.is_dir,
) -> Path:
    """The folder `target`, made by `fill(downloads, ready)` unless it is already there, whole.

    `fill` fetches into `downloads`, which stays for the next attempt when a transfer breaks off
    (OSError), and leaves the corpus in `ready`, which becomes `target`. Contents that turn out to
    be wrong (ValueError) are deleted, downloads included.
    """
    if is_whole(target):
        return target
    incoming = target.parent / ".incoming"
    incoming.mkdir(parents=True, exist_ok=True)
    downloads = incoming / target.name
    with _lock(incoming / f"{target.name}.lock") as alone:
        if is_whole(target):
            return target
        for killed in incoming.glob(f"{target.name}.tmp*") if alone else ():
            shutil.rmtree(killed)
        with tempfile.TemporaryDirectory(prefix=f"{target.name}.tmp", dir=incoming) as scratch:
            ready = Path(scratch) / target.name
            ready.mkdir()
            try:
                fill(downloads, ready)
            except ValueError:
                shutil.rmtree(downloads, ignore_errors=True)
                raise
            try:
                if target.exists() and not is_whole(target):
                    target.rename(Path(scratch) / "damaged")
                ready.rename(target)
            except OSError:
                if not is_whole(target):  # without locks another process may have been first
                    raise
        shutil.rmtree(downloads, ignore_errors=True)
    return target
