"""Passages: what `data.join` makes of consecutive pairs, and what it leaves as it was."""

import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from data.corpus import Corpus, Pair, source_key, split_of
from data.grammar import Grammar
from data.joining import MAX_JOIN, join, joined
from data.sources import Files, Tatoeba
from evaluation.alignment import words

ROOT = Path(__file__).resolve().parent.parent
NUMBERED = [Pair(f"source {i}.", f"cible {i} .") for i in range(500)]


@dataclass(frozen=True, kw_only=True)
class Split(Corpus):
    """A corpus of the pairs given for each split."""

    pairs: dict[str, list[Pair]]

    def read(self, split: str) -> Iterable[Pair]:
        return self.pairs[split]


def corpus(most: int, *, train=NUMBERED, dev=(), test=(), **keys: object) -> Split:
    pairs = {"train": list(train), "dev": list(dev), "test": list(test)}
    limits = {"source": None, "max_pairs": None, "max_train_words": None}
    return Split(**(limits | keys), join=most, pairs=pairs)


def of_yaml(kind: type[Corpus], name: str, **keys: object) -> Corpus:
    """The corpus of configs/data/NAME.yaml with some keys overridden."""
    config = OmegaConf.to_container(OmegaConf.load(ROOT / f"configs/data/{name}.yaml"))
    del config["_target_"]
    return kind(**(config | keys))


# What a passage is


def test_links_of_a_passage_are_counted_from_its_beginning() -> None:
    # The first English has 5 words (the doctor 's house .) and the first French 6 (d' is one).
    first = Pair("The doctor's house.", "La maison d'été rouge.", "0-0 3-1 2p2 1-3")
    second = Pair("He sleeps.", "Il dort.", "0-0 1-1 2-2")
    passage = join([first, second, Pair("So!", "Ah !", "")])
    assert (len(words(first.src)), len(words(first.tgt))) == (5, 6)
    assert passage.src == "The doctor's house. He sleeps. So!"
    assert passage.tgt == "La maison d'été rouge. Il dort. Ah !"
    assert passage.link == "0-0 3-1 2p2 1-3 5-6 6-7 7-8"
    assert words(passage.src)[5:8] == ["He", "sleeps", "."]
    assert words(passage.tgt)[6:9] == ["Il", "dort", "."]


def test_every_link_of_a_generated_passage_joins_the_same_two_words_as_before() -> None:
    sizes = {"train": 1, "dev": 60, "test": 1, "test_long": 1, "test_compose": 1}
    plain = of_yaml(Grammar, "grammar", sizes=sizes).load("dev")
    passages = of_yaml(Grammar, "grammar", sizes=sizes, join=4).load("dev")

    def linked(src: list[str], tgt: list[str], links: list[str]) -> list[tuple[str, str]]:
        pairs = []
        for source, target, line in zip(src, tgt, links, strict=True):
            en, fr = words(source), words(target)
            ends = (link.split("-") for link in line.split())
            pairs += [(en[int(i)], fr[int(j)]) for i, j in ends]
        return pairs

    assert len(passages) < len(plain) == 60
    before, after = (linked(c.src, c.tgt, c.links) for c in (plain, passages))
    assert after == before


def test_further_references_are_joined_each_with_its_own() -> None:
    passage = join([Pair("a", "A", None, ("A2", "A3")), Pair("b", "B", None, ("B2", "B3"))])
    assert passage == Pair("a b", "A B", None, ("A2 B2", "A3 B3"))


# Which pairs are joined


@given(st.integers(0, 300), st.integers(2, MAX_JOIN), st.sampled_from(["dev", "test"]))
def test_each_pair_is_in_one_passage_and_the_order_stays(count: int, most: int, split: str) -> None:
    pairs = [Pair(f"s{i}", f"t{i}") for i in range(count)]
    passages = list(joined(pairs, most, split))
    assert " ".join(passage.src for passage in passages) == " ".join(pair.src for pair in pairs)
    assert " ".join(passage.tgt for passage in passages) == " ".join(pair.tgt for pair in pairs)
    assert all(1 <= len(passage.src.split()) <= most for passage in passages)


@pytest.mark.parametrize("most", [2, 4, 6])
def test_each_number_of_pairs_is_about_as_frequent(most: int) -> None:
    passages = joined([Pair("s", "t")] * 20_000, most, "test")
    sizes = Counter(len(passage.src.split()) for passage in passages)
    expected = 20_000 / ((most + 1) / 2) / most
    assert sorted(sizes) == list(range(1, most + 1))
    assert all(count == pytest.approx(expected, rel=0.1) for count in sizes.values())


@given(st.integers(0, 300), st.integers(2, MAX_JOIN))
def test_in_training_each_pair_also_stands_once_by_itself(count: int, most: int) -> None:
    pairs = [Pair(f"s{i}", f"t{i}") for i in range(count)]
    made = list(joined(pairs, most, "train"))
    assert [pair for pair in made if " " not in pair.src] == pairs
    passages = [pair.src.split() for pair in made if " " in pair.src]
    assert all(2 <= len(passage) <= most for passage in passages)
    together = [source for passage in passages for source in passage]
    assert len(set(together)) == len(together)
    assert together == [pair.src for pair in pairs if pair.src in set(together)]  # in order
    if count >= 100:
        assert len(together) > count / 2


def test_passages_are_the_same_on_every_machine() -> None:
    sizes = [len(p.src.split()) for p in joined([Pair("s", "t")] * 30, 4, "test")]
    assert sizes == [2, 4, 4, 4, 2, 4, 1, 3, 4, 1, 1]


def test_no_passage_has_pairs_of_two_splits() -> None:
    sides = {name: [Pair(f"{name} {i}", "t") for i in range(50)] for name in ("dev", "test")}
    made = corpus(6, train=[Pair("train", "t")] * 50, **sides)
    for split in ("train", "dev", "test"):
        sources = made.load(split).src
        assert {word for line in sources for word in line.split() if word.isalpha()} == {split}
        assert max(len(line.split()) for line in sources) > 2


# Limits, the other direction, and no joining at all


def test_limits_are_of_passages_and_change_no_other_passage() -> None:
    whole = corpus(4).load("train").src  # two words a pair
    assert corpus(4, max_pairs=7).load("train").src == whole[:7]
    short = [line for line in whole if len(line.split()) <= 4]
    assert corpus(4, max_train_words=6).load("train").tgt == [
        line.replace("source", "cible").replace(".", " .") for line in short
    ]
    held_out = corpus(4, dev=NUMBERED, max_pairs=7, max_train_words=6).load("dev")
    assert max(len(line.split()) for line in held_out.src) == 8


def test_both_directions_are_tested_on_the_same_passages() -> None:
    pairs = [pair._replace(link="0-0 1-1 2-2") for pair in NUMBERED[:60]]
    there = corpus(4, test=pairs).load("test")
    back = corpus(4, test=pairs, reverse=True).load("test")
    assert (back.src, back.tgt, back.links) == (there.tgt, there.src, there.links)


def test_a_source_held_out_is_left_out_before_pairs_are_joined() -> None:
    train = [Pair("Go.", "Va."), Pair("Eat.", "Mange."), Pair("Run.", "Cours.")] * 5
    made = corpus(3, train=train, test=[Pair("Move.", "va !")], reverse=True).load("train")
    assert [line for line in made.src if line.count(".") == 1] == ["Mange.", "Cours."] * 5
    assert not any("Va." in line for line in made.src)


@pytest.mark.parametrize("name", ["multi30k", "tatoeba", "europarl", "bible", "files", "grammar"])
def test_every_corpus_can_be_joined_and_is_not_by_default(name: str) -> None:
    assert OmegaConf.load(ROOT / f"configs/data/{name}.yaml").join == 1


def test_without_joining_the_pairs_are_those_read() -> None:
    pairs = [pair._replace(link="0-0", extra_references=("r",)) for pair in NUMBERED]
    made = corpus(1, test=pairs).load("test")
    assert (made.src, made.tgt) == ([p.src for p in pairs], [p.tgt for p in pairs])
    assert made.links == ["0-0"] * 500 and made.extra_references == (["r"] * 500,)
    older = Split(source=None, max_pairs=None, max_train_words=None, pairs={"test": pairs})
    assert older.load("test") == made  # settings of runs older than the key


@pytest.mark.parametrize("value", [0, -1, 2.5, "4", True, None, MAX_JOIN + 1])
def test_a_number_of_pairs_that_cannot_be_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=rf"data\.join is a number from 1 to {MAX_JOIN}, not"):
        corpus(value)


# Corpora with an order of their own, and with files of their own


def test_tatoeba_is_shuffled_before_it_is_joined_for_it_is_sorted_by_length(
    tmp_path: Path,
) -> None:
    rows = [(f"{'so ' * (i // 40)}word {i}.", f"mot {i}.") for i in range(400)]
    text = "".join(f"{src}\t{tgt}\tsomeone\n" for src, tgt in rows)
    (tmp_path / "fra.txt").write_text(text, encoding="utf-8")
    plain, made = (
        of_yaml(Tatoeba, "tatoeba", source=str(tmp_path), join=most).load("train")
        for most in (1, 4)
    )
    assert plain.src == [
        src for src, _ in rows if split_of(source_key(src), **Tatoeba.shares) == "train"
    ]
    alone = [line.split() for line in made.tgt if line.count("mot") == 1]
    found = [int(number[:-1]) for _, number in alone]
    assert sorted(f"mot {i}." for i in found) == sorted(plain.tgt)
    far = [abs(i - j) > 40 for i, j in pairwise(found)]
    assert sum(far) > 0.7 * len(far)  # 0.81 of the pairs drawn at random are
    assert of_yaml(Tatoeba, "tatoeba", source=str(tmp_path), join=4).load("train") == made


def test_overlap_between_files_is_looked_for_sentence_by_sentence(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    keys = {}
    for split, first, last in (("train", 0, 40), ("dev", 30, 50), ("test", 60, 80)):
        for side in ("src", "tgt"):
            path = tmp_path / f"{split}.{side}"
            path.write_text("".join(f"{side} {i}\n" for i in range(first, last)), "utf-8")
            keys[f"{split}_{side}"] = str(path)
    passages = of_yaml(Files, "files", join=4, **keys).load("train")
    assert len(passages) > 40
    assert [r.getMessage() for r in caplog.records] == ["10 of 20 dev sources also in train"]
