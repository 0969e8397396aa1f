"""Laws of parallel text: the text rule, pairing, cleaning, splits, and the user's own files."""

import gzip
import logging
import os
import subprocess
import sys
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from data.corpus import (
    Corpus,
    Pair,
    ParallelCorpus,
    normalise,
    overlap,
    read_parallel,
    read_tsv,
    source_key,
    split_of,
)
from data.sources import Files
from data.text import read_lines

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, kw_only=True)
class Listed(Corpus):
    """A corpus of the pairs given."""

    pairs: list[Pair]

    def read(self, split: str) -> Iterable[Pair]:
        return self.pairs


def listed(*pairs: Pair, max_pairs: int | None = None, words: int | None = None) -> Listed:
    return Listed(source=None, max_pairs=max_pairs, max_train_words=words, pairs=list(pairs))


def files(**keys: object) -> Files:
    """The corpus of configs/data/files.yaml with some keys overridden."""
    config = OmegaConf.to_container(OmegaConf.load(ROOT / "configs/data/files.yaml"))
    assert config.pop("_target_") == "data.sources.Files"
    return Files(**(config | keys))


def write(path: Path, content: bytes | str) -> str:
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return str(path)


# The text rule


@given(st.text())
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once
    assert unicodedata.is_normalized("NFC", once)


def test_marks_that_composing_sets_free_are_counted_too() -> None:
    """NFC makes Ạ of Ǻ and a dot below, and so a ring and an acute accent free."""
    once = normalise("\u01fa" + 14 * "\u0323" + 20 * "\u0300")
    assert normalise(once) == once
    assert once[0] == "\u1ea0" and len(once) == 31


@given(st.text(alphabet=st.characters(categories=["Zs", "Zl", "Zp", "Cc", "Cf", "Mn", "Ll"])))
def test_normalised_text_has_no_space_but_single_plain_ones(text: str) -> None:
    once = normalise(text)
    assert once == once.strip() and "  " not in once
    assert all(char == " " or not char.isspace() for char in once)
    assert not any(unicodedata.category(char) in ("Cc", "Cf") for char in once)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("e\u0301te\u0301", "été"),  # decomposed accents
        ("l\u2019e\u0301cole", "l'école"),  # typographic apostrophe
        ("aujourd\u02bchui", "aujourd'hui"),
        ("«\u00a0Quoi\u202f?\u00a0»", "« Quoi ? »"),  # no-break spaces
        ("a\u2009b\u3000c\td", "a b c d"),  # thin, ideographic, tabulator
        ("\ufeffOui\r", "Oui"),  # byte-order mark, carriage return
        ("co\u00adop\u200bérer", "coopérer"),  # soft hyphen, zero-width space
        ("a\u2028b\u0085c\x0bd", "a b c d"),  # line separators are spaces here
        ("▁the ▁dog ' s", "the dog ' s"),  # text that was split into pieces
        ("  a   b  ", "a b"),
        ("\u00a0\u200b\r\n", ""),
        ("œuf \U0001f600", "œuf \U0001f600"),
        ('"Dash" — and … stay', '"Dash" — and … stay'),
    ],
)
def test_the_text_rule_is_as_documented(text: str, expected: str) -> None:
    assert normalise(text) == expected


# Reading


@pytest.mark.parametrize(
    "content",
    [
        "un\ndeux\n",
        "un\ndeux",  # no end of the last line
        "\ufeffun\ndeux\n",  # byte-order mark
        "un\r\ndeux\r\n",  # Windows
        "u\rn\ndeux\r\r\n",  # stray carriage returns
    ],
)
def test_byte_order_marks_and_line_ends_change_nothing(tmp_path: Path, content: str) -> None:
    path = tmp_path / "text.fr"
    write(path, content)
    assert list(read_lines(path)) == ["un", "deux"]


def test_unicode_line_separators_do_not_split_lines(tmp_path: Path) -> None:
    odd = "a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg"
    write(tmp_path / "a.en", f"{odd}\nsecond\n")
    write(tmp_path / "a.fr", f"un\n{odd}\n")
    pairs = list(read_parallel(tmp_path / "a.en", tmp_path / "a.fr"))
    assert [pair.tgt for pair in pairs] == ["un", odd]
    assert listed(*pairs).load("train").src == ["a b c d e f g", "second"]


def test_text_that_is_not_utf8_is_reported_with_file_and_line(tmp_path: Path) -> None:
    write(tmp_path / "a.fr", "un\nété\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"a\.fr, line 2: not UTF-8.*0xe9"):
        list(read_lines(tmp_path / "a.fr"))


def test_compressed_text_reads_like_plain_text_and_cut_off_is_reported(tmp_path: Path) -> None:
    packed = gzip.compress(b"un\ndeux\n" * 1000)
    write(tmp_path / "a.fr.gz", packed)
    assert list(read_lines(tmp_path / "a.fr.gz")) == ["un", "deux"] * 1000
    write(tmp_path / "b.fr.gz", packed[: len(packed) // 2])
    with pytest.raises(ValueError, match=r"b\.fr\.gz: damaged or cut-off"):
        list(read_lines(tmp_path / "b.fr.gz"))


def test_unequal_line_counts_stop_with_both_counts_and_names(tmp_path: Path) -> None:
    write(tmp_path / "a.en", "one\ntwo\nthree\n")
    write(tmp_path / "a.fr", "un\ndeux\n")
    with pytest.raises(ValueError, match=r"a\.en has 3, .*a\.fr has 2"):
        next(read_parallel(tmp_path / "a.en", tmp_path / "a.fr"))


def test_rows_without_a_tab_are_reported_by_number_and_further_columns_are_not_text(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path / "a.tsv", "Go.\tVa !\tCC-BY (France)\nbroken\n\nHi.\tSalut.\nbad\n")
    pairs = [pair for pair in read_tsv(tmp_path / "a.tsv") if pair.src]
    assert pairs == [Pair("Go.", "Va !"), Pair("Hi.", "Salut.")]
    assert "2 rows without a TAB left out: 2, 5" in caplog.text
    caplog.clear()
    assert list(islice(read_tsv(tmp_path / "a.tsv"), 2))[1] == Pair("", "")  # as max_pairs does
    assert "1 rows without a TAB left out: 2" in caplog.text


# Cleaning


def test_pairs_blank_on_either_side_are_dropped_together_and_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    pairs = [Pair("a", "A"), Pair("b", "\u00a0"), Pair("\ufeff", "C"), Pair("", ""), Pair("d", "D")]
    corpus = listed(*pairs).load("dev")
    assert (corpus.src, corpus.tgt) == (["a", "d"], ["A", "D"])
    assert "2 pairs (dropped, 3 blank on a side)" in caplog.text


def test_links_and_further_references_stay_with_their_pair() -> None:
    corpus = listed(
        Pair("a", "A", "0-0", ("A2", "")),
        Pair("", "x", "9-9", ("y", "z")),
        Pair("b", "B", "", ("", "B3")),
    ).load("test")
    assert corpus.links == ["0-0", ""]
    assert corpus.extra_references == (["A2", "B"], ["A", "B3"])  # a missing one repeats the first


def test_limits_apply_to_training_pairs_only_and_count_what_is_left() -> None:
    pairs = [
        Pair("a b c", "A"),
        Pair("a", "A B C"),
        Pair("", "x"),
        Pair("a b", "A"),
        Pair("c", "C"),
    ]
    corpus = listed(*pairs, words=2, max_pairs=1)
    assert corpus.load("train").src == ["a b"]
    assert len(corpus.load("dev")) == 4


@pytest.mark.parametrize("value", [0, -1, 2.5, "10", True])
@pytest.mark.parametrize("key", ["max_pairs", "max_train_words"])
def test_limits_that_are_not_positive_whole_numbers_are_refused(key: str, value: object) -> None:
    keys = {"max_pairs": None, "max_train_words": None} | {key: value}
    with pytest.raises(ValueError, match=rf"data\.{key}"):
        Listed(source=None, pairs=[], **keys)


def test_an_unknown_split_names_the_splits_and_an_empty_corpus_is_refused() -> None:
    with pytest.raises(ValueError, match="'valid'; it has train, dev, test"):
        listed(Pair("a", "A")).load("valid")
    with pytest.raises(ValueError, match="no pair left to use"):
        listed(Pair("a", " ")).load("train")


def test_a_corpus_of_unequal_sides_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="2 source sentences but 1"):
        ParallelCorpus(["a", "b"], ["A"])


# The other direction


@dataclass(frozen=True, kw_only=True)
class Split(Corpus):
    """A corpus of the pairs given for each split."""

    pairs: dict[str, list[Pair]]

    def read(self, split: str) -> Iterable[Pair]:
        return self.pairs[split]


def split_corpus(reverse: bool, **pairs: list[Pair]) -> Split:
    return Split(source=None, max_pairs=None, max_train_words=None, reverse=reverse, pairs=pairs)


def test_a_reversed_corpus_has_sides_and_links_exchanged_and_one_reference() -> None:
    pairs = [Pair("the red house", "la maison rouge", "0-0 1-2 12p3", ("la rouge maison",))]
    corpus = split_corpus(True, test=pairs)
    found = corpus.load("test")
    assert (found.src, found.tgt) == (["la maison rouge"], ["the red house"])
    assert found.links == ["0-0 2-1 3p12"] and found.extra_references == ()
    assert corpus.languages == ("fr", "en")
    assert split_corpus(False, test=pairs).languages == ("en", "fr")
    assert split_corpus(True, test=[Pair("a", "b")]).load("test").links is None


def test_both_directions_have_the_same_test_and_no_source_in_two_splits(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    pairs = {
        "train": [Pair("Go.", "Va !"), Pair("Move!", "Bouge."), Pair("Eat.", "Mange.")],
        "dev": [Pair("Get moving.", "bouge"), Pair("Come.", "Viens !")],
        "test": [Pair("Leave.", "Va"), Pair("Be off.", "Va !"), Pair("Come here.", "viens")],
    }
    forth, back = split_corpus(False, **pairs), split_corpus(True, **pairs)
    there, here = forth.load("test"), back.load("test")
    assert (there.src, there.tgt) == (here.tgt, here.src)
    assert back.load("dev").src == ["bouge"]
    assert back.load("train").src == ["Mange."]
    assert "train: 1 pairs (dropped, 2 with a source of dev or test)" in caplog.text
    assert len(forth.load("train")) == 3


def test_every_corpus_can_be_reversed_by_one_key() -> None:
    for path in sorted((ROOT / "configs/data").glob("*.yaml")):
        assert OmegaConf.load(path).reverse is False, path
    assert listed(Pair("a", "b")).reverse is False  # settings of runs older than the key
    with pytest.raises(ValueError, match=r"data\.reverse is true or false, not 'yes'"):
        split_corpus("yes")


# Splits


@pytest.mark.parametrize("other", ["go on", "GO  ON!", "«Go\u00a0on…»", "Go on.\r"])
def test_case_punctuation_and_spacing_do_not_tell_sources_apart(other: str) -> None:
    assert source_key("Go on.") == source_key(other)


def test_sources_that_differ_or_have_no_letters_keep_their_own_key() -> None:
    assert source_key("Ça va ?") != source_key("Ca va ?")
    assert source_key("?!") != source_key("...") != ""


@pytest.mark.parametrize(
    ("key", "split"),
    [("c", "test"), ("b", "test"), ("stop", "dev"), ("1:1", "train"), ("été", "train")],
)
def test_the_hash_of_a_split_never_changes(key: str, split: str) -> None:
    """The first hexadecimal digits of sha256sum are 2e7d, 3e23, 6c45, d6b5 and bd01 of ffff."""
    assert split_of(key, dev=0.3, test=0.3) == split


def test_shares_of_the_splits_are_as_asked() -> None:
    splits = [split_of(str(number), dev=0.1, test=0.2) for number in range(10_000)]
    assert splits.count("dev") == pytest.approx(1000, abs=100)
    assert splits.count("test") == pytest.approx(2000, abs=130)


def test_overlap_counts_sentences_of_the_second_that_stand_in_the_first() -> None:
    assert overlap(["Go.", "Stop."], ["go!", "GO", "Wait.", "stop"]) == 3


# The user's own files


def text_files(folder: Path, pairs: int = 400) -> dict[str, str]:
    """Training files in which each source stands twice, in two spellings."""
    src = [f"Sentence {i % (pairs // 2)}{'.' if i % 3 else ' !'}" for i in range(pairs)]
    return {
        "train_src": write(folder / "t.en", "\n".join(src)),
        "train_tgt": write(folder / "t.fr", "\n".join(f"Phrase {i}" for i in range(pairs))),
    }


def test_splits_drawn_from_files_keep_each_source_in_one_and_lose_nothing(tmp_path: Path) -> None:
    corpus = files(**text_files(tmp_path), dev_share=0.2, test_share=0.2)
    loaded = {split: corpus.load(split) for split in corpus.splits}
    keys = [set(map(source_key, text.src)) for text in loaded.values()]
    assert sum(map(len, keys)) == len(set.union(*keys)) == 200
    assert sorted(tgt for text in loaded.values() for tgt in text.tgt) == sorted(
        f"Phrase {i}" for i in range(400)
    )


def test_a_tsv_of_three_columns_equals_two_files(tmp_path: Path) -> None:
    keys = text_files(tmp_path)
    src, tgt = (Path(path).read_text("utf-8").split("\n") for path in keys.values())
    rows = "\r\n".join(f"{s}\t{t}\tsome\tone" for s, t in zip(src, tgt, strict=True))
    tsv = files(tsv=write(tmp_path / "t.tsv", rows), dev_share=0.2)
    assert tsv.load("train") == files(**keys, dev_share=0.2).load("train")
    assert tsv.load("dev") == files(**keys, dev_share=0.2).load("dev")


def test_overlap_between_files_of_the_user_is_measured_and_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys = text_files(tmp_path)
    keys |= {
        "dev_src": write(tmp_path / "d.en", "sentence 1\nSomething else\n"),
        "dev_tgt": write(tmp_path / "d.fr", "phrase 1\nautre chose\n"),
        "test_src": write(tmp_path / "e.en", "something ELSE\nNew\nSentence 2\n"),
        "test_tgt": write(tmp_path / "e.fr", "autre\nnouveau\nphrase 2\n"),
    }
    corpus = files(**keys)
    assert len(corpus.load("train")) == 400  # nothing is drawn from it
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == [
        "1 of 2 dev sources also in train",
        "1 of 3 test sources also in train",
        "1 of 3 test sources also in dev",
    ]


@pytest.mark.parametrize("own", ["dev", "test"])
def test_no_source_drawn_for_one_held_out_split_stands_in_the_users_other_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, own: str
) -> None:
    keys, drawn = text_files(tmp_path), {"dev": "test", "test": "dev"}[own]
    keys[f"{own}_src"] = write(tmp_path / "own.en", "Something else\nAnother\n")
    keys[f"{own}_tgt"] = write(tmp_path / "own.fr", "autre chose\nun autre\n")
    before = files(**keys, dev_share=0.1, test_share=0.1).load(drawn).src
    write(tmp_path / "own.en", f"{before[1].upper()}\nSomething else\n")
    for reverse in (False, True):
        caplog.clear()
        corpus = files(**keys, dev_share=0.1, test_share=0.1, reverse=reverse)
        left, known = corpus.load(drawn), corpus.load(own)
        english = [(text.tgt if reverse else text.src) for text in (left, known)]
        assert len(english[0]) > 10
        assert set(map(source_key, english[0])).isdisjoint(map(source_key, english[1]))
        assert f"drawn for {drawn} are left out" in caplog.text


def test_relative_paths_start_from_where_the_command_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert len(files(train_src="t.en", train_tgt="t.fr").load("train")) > 300
    with pytest.raises(FileNotFoundError, match=r"data\.train_src: no file .*missing\.en"):
        files(train_src="missing.en", train_tgt="t.fr").load("train")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({}, "needs the training text"),
        ({"train_src": "a", "train_tgt": "b", "tsv": "c"}, "needs the training text"),
        ({"train_src": "a"}, "data.train_tgt is missing"),
        ({"tsv": "a", "dev_tgt": "b"}, "data.dev_src is missing"),
        ({"tsv": "a", "source": "b"}, "not data.source"),
        ({"tsv": "a", "dev_share": 0.5, "test_share": 0.5}, "nothing to train on"),
        ({"tsv": "a", "dev_share": -0.5}, "between 0 and 1"),
    ],
)
def test_keys_that_contradict_each_other_are_refused(keys: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        files(**keys)


def test_nothing_depends_on_the_locale(tmp_path: Path) -> None:
    write(tmp_path / "t.en", "Summer\nWinter\n")
    write(tmp_path / "t.fr", "l\u2019e\u0301te\u0301\nl\u2019hiver\n")
    code = (
        "from tests.test_corpus import files;"
        "print(ascii(files(train_src='t.en', train_tgt='t.fr', dev_share=0, test_share=0)"
        ".load('train').tgt))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=True,
    )
    assert answer.stdout.strip() == ascii(["l'été", "l'hiver"]).encode()


def test_what_a_terminal_cannot_show_is_written_in_ascii_and_stops_nothing() -> None:
    code = "from cli import command; command(lambda: print('1–10 œuf'))(); print('after')"
    answer = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONIOENCODING": "latin-1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=True,
    )
    assert answer.stdout.split(b"\n")[:2] == [rb"1\u201310 \u0153uf", b"after"]


def test_a_file_of_a_byte_order_mark_alone_has_no_line(tmp_path: Path) -> None:
    write(tmp_path / "a", b"\xef\xbb\xbf")
    write(tmp_path / "b", b"\xef\xbb\xbf\n")
    assert list(read_lines(tmp_path / "a")) == [] and list(read_lines(tmp_path / "b")) == [""]
