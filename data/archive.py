"""Packed files, which are not trusted: what they may unpack to is bounded, and where it goes.

Members are written under their base names into one folder; links and devices are left out.
"""

import bz2
import contextlib
import gzip
import lzma
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PureWindowsPath
from typing import BinaryIO

from data.download import BY_HAND

CHUNK = 1 << 14  # bytes read at once
MAX_MEMBERS = 10_000
MAX_RATIO = 100  # text does not pack to less than a hundredth; what unpacks to more is refused,
MIN_BOMB_BYTES = 1 << 24  # once it is over this
PACKED = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}  # by first bytes


class Refused(ValueError):
    """An archive can be read, but is not to be unpacked."""


def unpacked_limit(packed_bytes: int) -> int:
    """The most bytes that a packed text of this size may unpack to: more is an attack."""
    return max(MIN_BOMB_BYTES, MAX_RATIO * packed_bytes)


def unpack(
    archive: Path, folder: Path, wanted: Callable[[str], bool], what: str, max_bytes: int
) -> None:
    """Puts the archive's files whose base name is `wanted` into `folder`, flat.

    A file that is no archive is copied when it is itself wanted. Refuses member names that climb
    out, two members of one base name, more than `max_bytes` or `unpacked_limit` in all, and more
    than MAX_MEMBERS; `what` names the files in messages.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with _opened(archive) as pack:
            if pack is not None:
                _unpack_members(pack, archive, folder, wanted, max_bytes)
            elif wanted(archive.name):
                shutil.copyfile(archive, folder / archive.name)
            else:
                raise Refused(f"neither a zip or tar archive nor {what}. {BY_HAND}")
    except Refused as error:
        raise ValueError(f"{archive}: {error}") from None
    except Exception as error:
        if isinstance(error, OSError) and error.errno:  # a full disk, say, and not the archive
            raise
        reason = f"{type(error).__name__}: {error}"  # these libraries raise nearly anything
        raise ValueError(f"{archive}: damaged or cut-off archive ({reason}). {BY_HAND}") from None
    if not any(folder.iterdir()):
        raise ValueError(f"{archive} holds no {what}. {BY_HAND}")


def _unpack_members(
    pack: zipfile.ZipFile | tarfile.TarFile,
    archive: Path,
    folder: Path,
    wanted: Callable[[str], bool],
    max_bytes: int,
) -> None:
    limit = min(max_bytes, unpacked_limit(archive.stat().st_size))
    left = limit
    for name, open_member in _members(pack):
        path = PureWindowsPath(name)  # knows both kinds of slash, and drives
        if path.anchor or ".." in path.parts:
            raise Refused(f"refused, its member {name!r} climbs out of the folder")
        if "__MACOSX" in path.parts or not wanted(path.name):
            continue
        if (folder / path.name).exists():
            raise Refused(f"two members are called {path.name}; keep one")
        with open_member() as member, (folder / path.name).open("wb") as out:
            while chunk := member.read(CHUNK):
                left -= len(chunk)  # counted, for what an archive says of sizes may be false
                if left < 0:
                    raise Refused(f"unpacks to over {limit:,} bytes, refused")
                out.write(chunk)


class _Forward:
    """The bytes of a tar file, unpacked as they are read: only forward, and no more than `limit`.

    Its headers may claim any size, and tarfile believes them: it would read as much at once, or go
    back and read the same for ever.
    """

    def __init__(self, stream: BinaryIO, limit: int) -> None:
        self.stream, self.limit, self.position = stream, limit, 0

    def tell(self) -> int:
        return self.position

    def read(self, size: int) -> bytes:
        if not 0 <= size <= CHUNK:
            raise Refused(f"damaged, or made to do harm: a header claims {size:,} bytes")
        content = self.stream.read(size)
        self.position += len(content)
        if self.position > self.limit:
            raise Refused(f"unpacks to over {MAX_RATIO} times its size, refused")
        return content

    def seek(self, position: int) -> None:
        if position < self.position:
            raise Refused("damaged, or made to do harm: a header points back")
        while self.position < position and self.read(min(CHUNK, position - self.position)):
            pass


@contextlib.contextmanager
def _opened(archive: Path) -> Iterator[zipfile.ZipFile | tarfile.TarFile | None]:
    """The archive, whatever its kind; None for a file that is none."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as pack:
            yield pack
        return
    with archive.open("rb") as stream:
        head = stream.read(6)
    unpacked = next((how for magic, how in PACKED.items() if head.startswith(magic)), open)
    with unpacked(archive, "rb") as stream:
        try:
            forward = _Forward(stream, unpacked_limit(archive.stat().st_size))
            pack = tarfile.TarFile(fileobj=forward)  # type: ignore
        except tarfile.ReadError:
            pack = None
        yield pack


def _members(
    pack: zipfile.ZipFile | tarfile.TarFile,
) -> Iterator[tuple[str, Callable[[], BinaryIO]]]:
    """Name and opener of each regular file of an archive, in order."""
    count = 0
    if isinstance(pack, zipfile.ZipFile):
        for info in pack.infolist():
            count += 1
            _check_count(count)
            if not info.is_dir():
                yield info.filename, lambda info=info: pack.open(info)
        return
    while (info := pack.next()) is not None:
        count += 1
        _check_count(count)
        pack.members.clear()  # or all of them stay in memory
        if info.isfile():
            yield info.name, lambda info=info: pack.extractfile(info)
    while pack.fileobj.read(CHUNK):  # to the end, where gzip compares its own checksum
        pass


def _check_count(count: int) -> None:
    if count > MAX_MEMBERS:
        raise Refused(f"holds over {MAX_MEMBERS:,} files, refused")
