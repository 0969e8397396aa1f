"""Prepared corpora: the same text and tokens as in memory, found again, never stale or damaged."""

import errno
import logging
import os
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import toy

from data import prepared, tokenizer
from data.batching import TokenArray, TrainingBatches
from data.corpus import Pair
from data.grammar import Grammar
from data.prepared import prepare, tokens
from data.sources import Files, Tatoeba
from data.text import TextFile, digest_of, line_of
from data.tokenizer import Tokenizer, learn, learn_pair

SIZES = {"train": 60, "dev": 20, "test": 5, "test_long": 5, "test_compose": 5}


@pytest.fixture(autouse=True)
def corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of corpora, empty."""
    monkeypatch.setenv("SEQ2SEQ_CORPORA", str(tmp_path / "corpora"))
    return tmp_path / "corpora"


def files(folder: Path, pairs: int = 200, kind: type[Files] = Files, **keys: object) -> Files:
    """Files of so many pairs, with a dev set of their own, and one pair that is blank."""
    rows = toy.pairs(pairs + 20)
    folder.mkdir(exist_ok=True)
    toy.write(folder, train=[*rows[:pairs], ("blank", " ")], dev=rows[pairs:])
    paths = {f"{split}_{s}": str(folder / f"{split}.{s}") for split in ("train", "dev")
             for s in ("src", "tgt")}  # fmt: skip
    none = dict.fromkeys(("test_src", "test_tgt", "tsv", "source", "max_pairs", "max_train_words"))
    return kind(**(none | paths | {"dev_share": 0.0, "test_share": 0.0} | keys))


def grammar(**keys: object) -> Grammar:
    lengths = {"min_words": 5, "max_words": 9, "long_min_words": 10, "long_max_words": 12}
    limits = {"source": None, "max_pairs": None, "max_train_words": None}
    return Grammar(seed=1, sizes=SIZES, lexicon=0.3, **lengths, **limits, **keys)


def vocabulary(corpus: Files | Grammar) -> Tokenizer:
    return learn(corpus.load("train").src, type="word", size=100)


def folders(corpora: Path, kind: str = "") -> list[Path]:
    return sorted(path for path in (corpora / "prepared").glob("[!.]*") if kind in path.name)


@pytest.mark.parametrize(
    "make",
    [
        files,
        lambda folder: files(folder, reverse=True, max_train_words=5),
        lambda folder: files(folder, join=3, max_pairs=30),
        lambda folder: grammar(),
    ],
    ids=["files", "reversed", "joined", "generated"],
)
def test_what_is_prepared_equals_what_is_loaded(make: Callable, tmp_path: Path) -> None:
    corpus = make(tmp_path / "text")
    train, dev = corpus.load("train"), corpus.load("dev")
    for _ in range(2):  # made, and found
        found = prepare(corpus)
        assert (list(found.src), list(found.tgt)) == (train.src, train.tgt)
        assert len(found.src) == len(found.tgt) == len(train)
        assert found.dev == dev
        assert found.src.digest == digest_of(train.src) != digest_of(train.tgt)


class Referenced(Files):
    """Files of which each pair has a second translation."""

    def read(self, split: str) -> Iterator[Pair]:
        for pair in super().read(split):
            yield pair._replace(extra_references=(f"{pair.tgt} !",))


def test_dev_pairs_keep_their_links_and_further_references(tmp_path: Path) -> None:
    assert prepare(grammar()).dev.links == grammar().load("dev").links != None  # noqa: E711
    corpus = files(tmp_path, kind=Referenced)
    for _ in range(2):  # made, and found
        dev = prepare(corpus).dev
        assert dev == corpus.load("dev")
        assert dev.extra_references == ([f"{tgt} !" for tgt in dev.tgt],)


@pytest.mark.parametrize("chunk", [1, 7, 10_000])
def test_tokens_in_files_equal_those_in_memory_and_so_do_their_batches(
    chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared, "CHUNK", chunk)
    corpus = files(tmp_path)
    train, found = corpus.load("train"), prepare(corpus)
    pair = learn_pair(*found[:2], type="bpe", size=40, shared=True, cache=tmp_path / "v")
    memory = [TokenArray(t.encode(side)) for t, side in zip(pair, (train.src, train.tgt))]  # noqa: B905
    mapped = [tokens(text, t) for text, t in zip(found[:2], pair)]  # noqa: B905
    for expected, array in zip(memory, mapped, strict=True):
        assert [list(array[i]) for i in range(len(array))] == [
            list(expected[i]) for i in range(len(expected))
        ]
        assert array.lengths.tolist() == expected.lengths.tolist()
    streams = [TrainingBatches(*both, batch_tokens=150, seed=3) for both in (memory, mapped)]
    for _ in range(2 * len(streams[0].order)):
        first, second = map(next, streams)
        for side in ("src", "tgt_in", "tgt_out"):
            assert getattr(first, side).equal(getattr(second, side))


class Large(Tokenizer):
    """A vocabulary with ids that do not fit into 16 bits."""

    size = (1 << 16) + 1

    def encode(self, sentences: list[str]) -> list[list[int]]:
        return [[1 << 16, len(sentence)] for sentence in sentences]


def test_tokens_of_a_large_vocabulary_are_not_cut_off(tmp_path: Path) -> None:
    corpus = files(tmp_path)
    array = tokens(prepare(corpus).src, Large(vocabulary(corpus).model))
    assert array[3].tolist() == [1 << 16, len(corpus.load("train").src[3])]


@pytest.mark.parametrize("odd", ["a\u2028b", "c\x0bd\x1ce", "f\rg", "", "h\u0085i", "😀 é"])
def test_a_line_of_text_comes_back_as_it_was(odd: str, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(line_of(odd) + line_of("second"))
    assert list(TextFile(tmp_path / "text", 2, "")) == [odd, "second"]


# Found again


def test_a_corpus_is_read_once_and_what_was_said_of_it_is_said_each_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    corpus = files(tmp_path)
    prepare(corpus)
    first = [(r.levelname, r.getMessage()) for r in caplog.records]
    assert ("INFO", "files train: 200 pairs (dropped, 1 blank on a side)") in first
    assert any("dev sources also in train" in message for _, message in first)
    caplog.clear()
    monkeypatch.setattr(Files, "read", None)
    prepare(corpus)
    assert [(r.levelname, r.getMessage()) for r in caplog.records] == first


def test_tokens_are_found_again_also_when_the_text_was_prepared_anew(
    tmp_path: Path, corpora: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = files(tmp_path)
    learnt = vocabulary(corpus)
    expected = tokens(prepare(corpus).src, learnt).tokens.tolist()
    os.utime(corpus.path("train_src"), ns=(1, 1))
    text = prepare(corpus).src
    assert len(folders(corpora, "files")) == 2
    monkeypatch.setattr(Tokenizer, "encode", None)
    assert tokens(text, learnt).tokens.tolist() == expected


def other_content(corpus: Files) -> Files:
    """The file changed in place, as long as before and with the same date."""
    path, state = corpus.path("train_src"), corpus.path("train_src").stat()
    path.write_text(path.read_text().replace("cat", "dog"))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert path.stat().st_size == state.st_size
    return corpus


def longer(corpus: Files) -> Files:
    for side in ("train_src", "train_tgt"):
        with corpus.path(side).open("a") as file:
            file.write("one more\n")
    return corpus


def other_dev(corpus: Files) -> Files:
    corpus.path("dev_src").write_text("one\n")
    corpus.path("dev_tgt").write_text("un\n")
    return corpus


@pytest.mark.parametrize(
    "change",
    [
        other_content,
        longer,
        other_dev,
        lambda corpus: replace(corpus, max_pairs=9),
        lambda corpus: replace(corpus, max_train_words=4),
        lambda corpus: replace(corpus, reverse=True),
        lambda corpus: replace(corpus, join=2),
        lambda corpus: replace(corpus, train_tgt=corpus.train_src),
    ],
)
def test_a_change_of_files_or_settings_is_seen(change: Callable, tmp_path: Path) -> None:
    corpus = files(tmp_path)
    before = prepare(corpus)
    before = list(before.src), list(before.tgt), before.dev
    changed = change(corpus)
    found = prepare(changed)
    train = changed.load("train")
    after = list(found.src), list(found.tgt), found.dev
    assert after == (train.src, train.tgt, changed.load("dev")) != before


@pytest.mark.parametrize("what", ["code", "python", "vocabulary", "library"])
def test_a_change_of_the_code_or_the_vocabulary_is_seen(
    what: str, tmp_path: Path, corpora: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = files(tmp_path)
    learnt = vocabulary(corpus)
    tokens(prepare(corpus).src, learnt)
    if what == "code":
        monkeypatch.setattr(prepared, "_code", lambda: "other")
    elif what == "python":
        monkeypatch.setattr("sys.version", "4.0")
    elif what == "vocabulary":
        learnt = learn(corpus.load("train").src, type="word", size=9)
    else:
        monkeypatch.setattr(prepared, "VERSION", "other")
    expected = TokenArray(learnt.encode(corpus.load("train").src))
    assert tokens(prepare(corpus).src, learnt).tokens.tolist() == expected.tokens.tolist()
    text = 2 if what in ("code", "python") else 1
    assert (len(folders(corpora, "files")), len(folders(corpora, "tokens"))) == (text, 2)


def test_the_code_of_a_room_is_all_its_sources_and_word_lists(monkeypatch, tmp_path: Path) -> None:
    room = tmp_path / "data"
    sources, others = ("prepared.py", "lexicon/a.tsv", "generator/a.py"), ("a.md", "corpora/a.py")
    for name in (*sources, *others):
        (room / name).parent.mkdir(parents=True, exist_ok=True)
        (room / name).write_text("a")
    monkeypatch.setattr(prepared, "__file__", str(room / "prepared.py"))
    code = prepared._code.__wrapped__
    before = code()
    for name in others:
        (room / name).write_text("b")
        assert code() == before
    for name in sources:
        (room / name).write_text("b")
        assert code() != before
        before = code()


def test_the_files_of_a_published_corpus_are_those_that_it_wants(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/fra.txt").write_text("Go.\tVa !\n")
    (tmp_path / "notes.txt").write_text("other")
    limits = {"max_pairs": None, "max_train_words": None}
    assert Tatoeba(source=str(tmp_path), **limits).origins() == [tmp_path / "deep/fra.txt"]


def test_files_that_change_while_they_are_read_are_refused(
    tmp_path: Path, corpora: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, read = files(tmp_path), Files.read

    def changing(self: Files, split: str) -> Iterator:
        yield from read(self, split)
        longer(corpus)

    monkeypatch.setattr(Files, "read", changing)
    with pytest.raises(ValueError, match="have changed while they were read"):
        prepare(corpus)
    assert folders(corpora) == []


# Whole or not at all


@pytest.mark.parametrize("name", ["src", "tgt", "dev.json", "about.json", "tokens", "starts"])
@pytest.mark.parametrize("damage", ["cut", "gone", "empty"])
def test_damaged_files_are_found_out_and_made_anew(
    name: str, damage: str, tmp_path: Path, corpora: Path, caplog: pytest.LogCaptureFixture
) -> None:
    corpus = files(tmp_path)
    learnt = vocabulary(corpus)
    expected = tokens(prepare(corpus).src, learnt).tokens.tolist()
    kind = "tokens" if name in ("tokens", "starts") else "files"
    (folder,) = folders(corpora, kind)
    path = folder / name
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[: -1 if damage == "cut" else 0])
    found = prepare(corpus)
    assert (list(found.src), found.dev) == (corpus.load("train").src, corpus.load("dev"))
    assert tokens(found.src, learnt).tokens.tolist() == expected
    assert f"{folder} is damaged, and made anew" in caplog.text
    assert folders(corpora, kind) == [folder] and prepared._is_whole(folder)


@pytest.mark.parametrize("damaged", [False, True])
def test_several_at_once_prepare_once_and_get_the_same(
    damaged: bool, tmp_path: Path, corpora: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, read, asked = files(tmp_path), Files.read, []
    learnt = vocabulary(corpus)
    if damaged:
        tokens(prepare(corpus).src, learnt)
        for folder in folders(corpora):
            (folder / "about.json").write_text("{")

    def counted(self: Files, split: str) -> Iterator:
        asked.append(split)
        return read(self, split)

    monkeypatch.setattr(Files, "read", counted)
    with ThreadPoolExecutor(8) as pool:
        arrays = list(pool.map(lambda _: tokens(prepare(corpus).src, learnt), range(8)))
    assert asked.count("train") == 1
    assert all(array.tokens.tolist() == arrays[0].tokens.tolist() for array in arrays)
    assert len(folders(corpora)) == 2
    assert [path for path in corpora.rglob("*tmp*")] == []


def test_a_preparation_that_breaks_off_leaves_nothing(
    tmp_path: Path, corpora: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, read = files(tmp_path), Files.read

    def broken(self: Files, split: str) -> Iterator:
        yield from read(self, split)
        raise OSError("the cable was pulled")

    with monkeypatch.context() as patch:
        patch.setattr(Files, "read", broken)
        with pytest.raises(OSError, match="the cable was pulled"):
            prepare(corpus)
    assert folders(corpora) == []
    assert list(prepare(corpus).src) == corpus.load("train").src


def test_where_nothing_can_be_kept_a_temporary_folder_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("SEQ2SEQ_CORPORA", str(tmp_path / "file"))
    corpus = files(tmp_path)
    assert list(prepare(corpus).src) == corpus.load("train").src
    assert f"{tmp_path}/file/prepared: prepared text cannot be kept there" in caplog.text


def test_a_full_disk_is_said_and_a_temporary_folder_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, corpora: Path
) -> None:
    corpus, write = files(tmp_path), prepared.write_tokens

    def full(chunks: Iterator, folder: Path, dtype: type) -> None:
        if folder.is_relative_to(corpora):
            raise OSError(errno.ENOSPC, "No space left on device")
        write(chunks, folder, dtype)

    monkeypatch.setattr(prepared, "write_tokens", full)
    text, learnt = prepare(corpus).src, vocabulary(corpus)
    assert len(tokens(text, learnt)) == len(text)
    assert "cannot be kept there ([Errno 28] No space left on device)" in caplog.text
    assert folders(corpora, "tokens") == []


# Large corpora


def peak_bytes(folder: Path, pairs: int) -> int:
    """The most memory that preparing a corpus of so many pairs has taken."""
    corpus = files(folder, pairs)
    tracemalloc.start()
    try:
        found = prepare(corpus)
        pair = learn_pair(*found[:2], type="word", size=50, shared=False, cache=folder)
        for text, learnt in zip(found[:2], pair, strict=True):
            tokens(text, learnt)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_for_preparing_hardly_grows_with_the_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A further pair costs less than 40 bytes, for where its tokens are; as text, over 150."""
    monkeypatch.setattr(prepared, "CHUNK", 200)
    monkeypatch.setattr(tokenizer, "MAX_SENTENCES", 500)
    peak_bytes(tmp_path / "warm-up", 100)
    small, large = (peak_bytes(tmp_path / str(n), n) for n in (1_500, 6_000))
    assert (large - small) / 4_500 < 40
