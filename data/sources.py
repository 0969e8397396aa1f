"""The corpora with a published place, and the user's own files.

A published corpus is fetched once into `corpora_root()/NAME` and read from there. With
`data.source` (URL, local archive or folder) that place is neither used nor touched.
"""

import hashlib
import logging
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from typing import ClassVar
from urllib.parse import unquote, urlsplit

from data.archive import unpack
from data.corpus import (
    Corpus,
    Pair,
    overlap,
    read_parallel,
    read_tsv,
    source_key,
    split_of,
)
from data.download import BY_HAND, arrive, corpora_root, fetch, locate, sha256_of
from data.text import count_lines, read_lines

logger = logging.getLogger(__name__)

MULTI30K = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"
MULTI30K_SHA256 = {
    "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "train.fr.gz": "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c",
    "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    "val.fr.gz": "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9",
    "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
    "test_2016_flickr.fr.gz": "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90",
    "test_2017_flickr.en.gz": "76a444ee25172e72695cddb13ae4a3bda59430617be88e0bb46b60504f054074",
    "test_2017_flickr.fr.gz": "3ba671ceb2299f3304ffafefea7a833d08632fbaf0ba18546f8a2ec2391af496",
    "test_2017_mscoco.en.gz": "aab300bfb4427697987e02cd0aacd44bfe8aa50456231b6474c08038bbed2b58",
    "test_2017_mscoco.fr.gz": "754f3072ba9f124569ba5258b32730fc1d214bbf8e0c6dfb2b74401676220db0",
}


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
        source = str(self.source)
        if re.match(r"https?://", source):
            return self._from_url(source)
        path = Path(source).expanduser().absolute()
        if path.is_dir() and not any(self.wanted(file.name) for file in path.iterdir()):
            path = next((path / name for name in self.archives if (path / name).is_file()), path)
        if path.is_dir():
            return path
        if not path.is_file():
            raise FileNotFoundError(f"data.source: no file or folder {path}")
        return self._from_archive(path)

    def origins(self) -> list[Path]:
        return [path for path in self.folder().rglob("*") if self.wanted(path.name)]

    def mirrored(self, url: str) -> list[str]:
        """What to fetch for a `data.source` that is a URL."""
        return [url]

    def _from_url(self, source: str) -> Path:
        """What lies at the user's URL, unpacked into a folder named after the URL."""
        try:
            _ = urlsplit(source).port
        except ValueError as error:
            raise ValueError(f"data.source: {source} is not a URL ({error})") from None

        def fill(downloads: Path, ready: Path) -> None:
            archives = []
            for url in self.mirrored(source):
                name = PurePosixPath(unquote(urlsplit(url).path)).name
                path = downloads / (name if name not in ("", "..") else "download")
                fetch(url, path, None)
                logger.info("%s: sha256 %s", url, sha256_of(path))
                archives.append(path)
            self._unpack(archives, ready)

        key = hashlib.sha256(source.encode("utf-8")).hexdigest()[:16]
        return arrive(corpora_root() / "supplied" / f"{self.name}-{key}", fill)

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


@dataclass(frozen=True, kw_only=True)
class Multi30k(Published):
    """Captions of photographs (Elliott et al. 2016, 2017), in the splits as published."""

    splits: ClassVar = ("train", "dev", "test", "test_2017_flickr", "test_2017_mscoco")
    name: ClassVar = "multi30k"
    files: ClassVar = r"(train|val|test_2016_flickr|test_2017_(flickr|mscoco))\.(en|fr)(\.gz)?"
    stems: ClassVar = {"dev": "val", "test": "test_2016_flickr"}  # where split and file differ
    urls: ClassVar = {f"{MULTI30K}/{file}": sha256 for file, sha256 in MULTI30K_SHA256.items()}

    def finish(self, folder: Path) -> None:
        lines = {path.name.removesuffix(".gz"): count_lines(path) for path in folder.iterdir()}
        for name, count in lines.items():
            other = f"{name[:-3]}.{'fr' if name.endswith('.en') else 'en'}"
            if lines.get(other, count) != count:
                raise ValueError(f"{name} has {count} lines, {other} {lines[other]}. {BY_HAND}")

    def mirrored(self, url: str) -> list[str]:
        if re.search(r"\.(zip|tar|tgz|gz)$", urlsplit(url).path):
            return [url]
        return [f"{url.rstrip('/')}/{file}" for file in MULTI30K_SHA256]

    def read(self, split: str) -> Iterator[Pair]:
        folder, stem = self.folder(), self.stems.get(split, split)
        src, tgt = (locate(folder, f"{stem}.{side}", f"{stem}.{side}.gz") for side in ("en", "fr"))
        yield from read_parallel(src, tgt)


@dataclass(frozen=True, kw_only=True)
class Tatoeba(Published):
    """Short everyday sentences; many sources have several translations, kept in one split."""

    name: ClassVar = "tatoeba"
    files: ClassVar = r"fra\.txt"
    archives: ClassVar = ("fra-eng.zip",)
    # The archive is renewed every few weeks, so no checksum can hold: `finish` looks inside.
    urls: ClassVar = {"https://www.manythings.org/anki/fra-eng.zip": None}
    shares: ClassVar = {"dev": 0.0125, "test": 0.025}  # of the distinct sources

    def finish(self, folder: Path) -> None:
        head = list(islice(read_lines(locate(folder, "fra.txt")), 1000))
        if sum("\t" in line for line in head) <= len(head) / 2:
            raise ValueError(f"{self.name}: fra.txt is not English TAB French. {BY_HAND}")

    def read(self, split: str) -> Iterator[Pair]:
        rows = read_tsv(locate(self.folder(), "fra.txt"))
        pairs = (pair for pair in rows if split_of(source_key(pair.src), **self.shares) == split)
        # Neighbours have the same length, and often the same source: none to make a passage of.
        yield from sorted(pairs, key=_shuffling) if self.join > 1 else pairs


def _shuffling(pair: Pair) -> bytes:
    """A key by which to sort into an order that has nothing to do with the text."""
    return hashlib.sha256(f"{pair.src}\t{pair.tgt}".encode()).digest()


@dataclass(frozen=True, kw_only=True)
class Europarl(Published):
    """Proceedings of the European Parliament, release 7 (Koehn 2005), read as a stream."""

    name: ClassVar = "europarl"
    files: ClassVar = r"europarl-v7\.fr-en\.(en|fr)"
    archives: ClassVar = ("fr-en.tgz",)
    urls: ClassVar = {"https://www.statmt.org/europarl/v7/fr-en.tgz": None}
    lines: ClassVar = 2_007_723  # of release 7, on both sides
    shares: ClassVar = {"dev": 0.01, "test": 0.01}
    held_out_lines: ClassVar = 200_000  # dev and test are drawn from these first lines alone

    def finish(self, folder: Path) -> None:
        for side in ("en", "fr"):
            count = count_lines(locate(folder, f"europarl-v7.fr-en.{side}"))
            if self.source is None and count != self.lines:
                raise ValueError(
                    f"{self.name}: europarl-v7.fr-en.{side} has {count} lines,"
                    f" release 7 has {self.lines}. {BY_HAND}"
                )

    def read(self, split: str) -> Iterator[Pair]:
        folder = self.folder()
        src, tgt = (locate(folder, f"europarl-v7.fr-en.{side}") for side in ("en", "fr"))
        pairs = read_parallel(src, tgt)
        # A source held out anywhere is never trained on, however often it comes back later.
        for pair in pairs if split == "train" else islice(pairs, self.held_out_lines):
            if split_of(source_key(pair.src), **self.shares) == split:
                yield pair


@dataclass(frozen=True, kw_only=True)
class Files(Corpus):
    """The user's own text: two parallel files a split, or one file of source TAB target."""

    train_src: str | None
    train_tgt: str | None
    dev_src: str | None
    dev_tgt: str | None
    test_src: str | None
    test_tgt: str | None
    tsv: str | None  # instead of train_src and train_tgt
    dev_share: float  # of the training text's distinct sources, where no dev files are given
    test_share: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.source is not None:
            raise ValueError("data=files takes data.train_src and data.train_tgt, not data.source")
        for split in self.splits:
            given = {f"{split}_{side}": getattr(self, f"{split}_{side}") for side in ("src", "tgt")}
            missing = [key for key, value in given.items() if value is None]
            if len(missing) == 1:
                raise ValueError(f"data.{missing[0]} is missing: both sides of a split are needed")
        if (self.train_src is None) == (self.tsv is None):
            raise ValueError(
                "data=files needs the training text: either data.train_src=FILE and"
                " data.train_tgt=FILE, or data.tsv=FILE"
            )
        if not (self.dev_share >= 0 and self.test_share >= 0):
            raise ValueError("data.dev_share and data.test_share are shares between 0 and 1")
        if self.dev_share + self.test_share >= 1:
            raise ValueError("data.dev_share and data.test_share leave nothing to train on")

    def given(self, split: str) -> bool:
        """Whether the split has files of its own."""
        return getattr(self, f"{split}_src") is not None

    def path(self, key: str) -> Path:
        path = Path(str(getattr(self, key))).expanduser().absolute()
        if not path.is_file():
            raise FileNotFoundError(f"data.{key}: no file {path}")
        return path

    def origins(self) -> list[Path]:
        keys = ["tsv", *(f"{split}_{side}" for split in self.splits for side in ("src", "tgt"))]
        return [self.path(key) for key in keys if getattr(self, key) is not None]

    def read(self, split: str) -> Iterator[Pair]:
        if split != "train" and self.given(split):
            yield from read_parallel(self.path(f"{split}_src"), self.path(f"{split}_tgt"))
            return
        shares = {
            key: 0.0 if self.given(key) else getattr(self, f"{key}_share")
            for key in ("dev", "test")
        }
        left_out, taken = 0, set()  # by dev or test files; training may have it too, and says so
        if split != "train":
            own = (self.read(other) for other in shares if self.given(other))
            taken = {source_key(pair.src) for pair in chain(*own)}
        pairs = (
            read_tsv(self.path("tsv"))
            if self.tsv is not None
            else read_parallel(self.path("train_src"), self.path("train_tgt"))
        )
        for pair in pairs:
            key = source_key(pair.src)
            if split_of(key, **shares) == split:
                if key in taken:
                    left_out += 1
                else:
                    yield pair
        if left_out:
            logger.warning(
                "%d pairs drawn for %s are left out: their sources stand in the dev or test files",
                left_out,
                split,
            )

    def stream(self, split: str) -> Iterator[Pair]:
        pairs, train = super().stream(split), split == "train"
        yield from self._overlap_reported(pairs) if train and self.join == 1 else pairs
        if train and self.join > 1:  # a sentence inside a passage would not be found
            deque(replace(self, join=1).stream(split), maxlen=0)

    def _overlap_reported(self, train: Iterable[Pair]) -> Iterator[Pair]:
        """The pairs; then warns of sources that stand in two splits. Those drawn here never do."""
        given = {split: self.load(split).src for split in ("dev", "test") if self.given(split)}
        keys = set(map(source_key, chain(*given.values())))
        also = set()  # training sources that are held out
        for pair in train:
            if keys and source_key(pair.src) in keys:
                also.add(pair.src)
            yield pair
        texts: dict[str, Iterable[str]] = {"train": also}
        for split, held_out in given.items():
            for other, sources in texts.items():
                count = overlap(sources, held_out)
                level = logging.WARNING if count else logging.INFO
                logger.log(
                    level, "%d of %d %s sources also in %s", count, len(held_out), split, other
                )
            texts[split] = held_out
