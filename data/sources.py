"""The corpora with a published place, and the user's own files.

A published corpus is fetched once into `corpora_root()/NAME` and read from there. With
`data.source` (URL, local archive or folder) that place is neither used nor touched.
"""

import logging
import re
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import ClassVar
from urllib.parse import unquote, urlsplit

from data.corpus import (
    Corpus,
    Pair,
    ParallelCorpus,
    count_lines,
    overlap,
    read_lines,
    read_parallel,
    read_tsv,
    source_key,
    split_of,
)
from data.download import BY_HAND, arrive, corpora_root, fetch, sha256_of, unpack

logger = logging.getLogger(__name__)


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


@dataclass(frozen=True, kw_only=True)
class Published(Corpus):
    """A corpus that lies somewhere on the network, or in `data.source`."""

    name: ClassVar[str]
    urls: ClassVar[dict[str, str | None]]  # published place -> SHA-256, None if it changes
    archives: ClassVar[tuple[str, ...]] = ()  # names of the archive when it lies in a folder
    files: ClassVar[str]  # pattern of the base names that are the corpus
    max_bytes: ClassVar[int] = 1 << 30  # bound on what an archive unpacks to

    def obtain(self, downloads: Path) -> list[Path]:
        """Fetches what is published and returns the files."""
        for url, sha256 in self.urls.items():
            fetch(url, downloads / PurePosixPath(url).name, sha256)
        return [downloads / PurePosixPath(url).name for url in self.urls]

    def finish(self, folder: Path) -> None:
        """Checks freshly unpacked files, and may rework them; ValueError when they are wrong."""

    def wanted(self, name: str) -> bool:
        return re.fullmatch(self.files, name) is not None

    def folder(self) -> Path:
        """The folder of the corpus, fetched or unpacked first where needed."""
        if self.source is None:
            return arrive(
                corpora_root() / self.name,
                lambda downloads, ready: self._unpack(self.obtain(downloads), ready),
            )
        if re.match(r"https?://", self.source):
            return self._from_url(self.source)
        path = Path(self.source).expanduser().absolute()
        if path.is_dir() and not any(self.wanted(file.name) for file in path.iterdir()):
            path = next((path / name for name in self.archives if (path / name).is_file()), path)
        if path.is_dir():
            return path
        if not path.is_file():
            raise FileNotFoundError(f"data.source: no file or folder {path}")
        return self._from_archive(path)

    def _from_url(self, url: str) -> Path:
        """What lies at the user's URL, unpacked into a folder named after the URL."""
        name = PurePosixPath(unquote(urlsplit(url).path)).name or "download"

        def fill(downloads: Path, ready: Path) -> None:
            fetch(url, downloads / name, None)
            logger.info("%s: sha256 %s", url, sha256_of(downloads / name))
            self._unpack([downloads / name], ready)

        return arrive(corpora_root() / "supplied" / f"{self.name}-{_short_hash(url)}", fill)

    def _from_archive(self, path: Path) -> Path:
        """The user's archive, unpacked into a folder named after its contents."""
        sha256 = sha256_of(path)
        logger.info("%s: sha256 %s", path, sha256)
        return arrive(
            corpora_root() / "supplied" / f"{self.name}-{sha256[:16]}",
            lambda downloads, ready: self._unpack([path], ready),
        )

    def _unpack(self, archives: list[Path], ready: Path) -> None:
        for archive in archives:
            unpack(archive, ready, self.wanted, f"file of {self.name}", self.max_bytes)
        self.finish(ready)


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


@dataclass(frozen=True, kw_only=True)
class Multi30k(Published):
    """Captions of photographs (Elliott et al. 2016, 2017), in the splits as published."""

    splits: ClassVar = ("train", "dev", "test", "test_2017_flickr", "test_2017_mscoco")
    name: ClassVar = "multi30k"
    files: ClassVar = r"(train|val|test_201[67]_\w+)\.(en|fr)(\.gz)?"
    archives: ClassVar = ("multi30k.zip", "multi30k.tar.gz", "dataset-master.zip")
    stems: ClassVar = {"dev": "val", "test": "test_2016_flickr"}  # where file and split differ
    place: ClassVar = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/"
    urls: ClassVar = {
        place + file: sha256
        for file, sha256 in {
            "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
            "train.fr.gz": "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c",
            "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
            "val.fr.gz": "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9",
        }.items()
    }

    def read(self, split: str) -> Iterator[Pair]:
        folder, stem = self.folder(), self.stems.get(split, split)
        src, tgt = (locate(folder, f"{stem}.{side}", f"{stem}.{side}.gz") for side in ("en", "fr"))
        yield from read_parallel(src, tgt)
