"""Vocabularies: reversible, their special ids out of reach of text, refused where impossible."""

import math
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data import tokenizer as module
from data.corpus import normalise
from data.text import TextFile, digest_of
from data.tokenizer import (
    BOS,
    EOS,
    PAD,
    TYPES,
    UNK,
    Tokenizer,
    learn,
    learn_cached,
    learn_pair,
    sample,
)

TEXT = [
    "L'accord sur la zone économique européenne a été signé en août 1992.",
    "Où est-elle ? À l'école, peut-être ; « çà et là », dit-il !",
    "The agreement on the European Economic Area was signed in August 1992.",
] * 5
SIZES = {"bpe": 90, "unigram": 68, "char": 200, "word": 200}


@pytest.fixture(scope="module", params=TYPES)
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return learn(TEXT, type=request.param, size=SIZES[request.param])


def test_sentences_come_back_as_they_were(tokenizer: Tokenizer) -> None:
    for sentence in TEXT[:3]:
        assert tokenizer.decode(tokenizer.encode([sentence])[0]) == sentence


def test_pieces_spell_the_sentence(tokenizer: Tokenizer) -> None:
    tokens = tokenizer.encode(TEXT[:1])[0]
    assert "".join(tokenizer.pieces(tokens)).replace("▁", " ").strip() == TEXT[0]


def test_special_ids_are_the_documented_ones(tokenizer: Tokenizer) -> None:
    assert tokenizer.pieces([PAD, UNK, BOS, EOS]) == ["<pad>", "<unk>", "<s>", "</s>"]
    assert tokenizer.decode([BOS, EOS, PAD]) == ""


@settings(deadline=None, max_examples=60)
@given(text=st.text(max_size=30) | st.sampled_from(["<s>", "</s> <pad>", "a</s>b", "<unk>"]))
def test_special_ids_never_arise_from_text(tokenizer: Tokenizer, text: str) -> None:
    assert not {PAD, BOS, EOS} & set(tokenizer.encode([normalise(text)])[0])


def test_unseen_characters_are_unknown_and_seen_in_the_output(tokenizer: Tokenizer) -> None:
    tokens = tokenizer.encode(["☃"])[0]
    assert UNK in tokens
    assert "⁇" in tokenizer.decode(tokens)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_other_pieces_spell_the_same_sentences_and_depend_on_the_seed_alone(kind: str) -> None:
    vocabulary = learn(TEXT, type=kind, size=SIZES[kind])
    tokens = vocabulary.encode([*TEXT, "☃ signed"])
    drawn = vocabulary.resample(tokens, 7, alpha=0.3)
    assert [vocabulary.decode(one) for one in drawn] == [vocabulary.decode(one) for one in tokens]
    assert drawn != tokens and drawn[-1] == tokens[-1]  # what is unknown stays
    assert not {PAD, BOS, EOS} & {token for one in drawn for token in one}
    assert vocabulary.resample(tokens, 7, alpha=0.3) == drawn
    assert vocabulary.resample(tokens, 8, alpha=0.3) != drawn


def test_a_unigram_segmentation_is_drawn_by_its_probability_to_the_power_of_alpha() -> None:
    """Against all segmentations of a word and their probabilities: Kudo 2018, section 3.2."""
    vocabulary = learn(TEXT, type="unigram", size=68)
    scores = {vocabulary.pieces([i])[0]: vocabulary._processor.get_score(i) for i in range(4, 68)}
    word, alpha, draws = "▁a été", 0.5, 4000

    def segmentations(rest: str) -> list[list[str]]:
        if not rest:
            return [[]]
        begin = (rest[:n] for n in range(1, len(rest) + 1))
        return [[p, *more] for p in begin if p in scores for more in segmentations(rest[len(p) :])]

    ways = ["".join(f"{p} " for p in way) for way in segmentations(word.replace(" ", "▁"))]
    weights = [math.exp(alpha * sum(scores[p] for p in way.split())) for way in ways]
    (tokens,) = vocabulary.encode([word[1:]])
    drawn = vocabulary.resample([tokens] * draws, 3, alpha=alpha)
    counts = Counter("".join(f"{p} " for p in vocabulary.pieces(one)) for one in drawn)
    assert set(counts) <= set(ways) and len(ways) >= 3
    for way, weight in zip(ways, weights, strict=True):
        p = weight / sum(weights)
        assert counts[way] / draws == pytest.approx(p, abs=4 * math.sqrt(p * (1 - p) / draws))


def test_bpe_dropout_of_all_merges_leaves_characters_and_of_none_the_usual_pieces() -> None:
    vocabulary = learn(TEXT, type="bpe", size=90)
    tokens = vocabulary.encode(TEXT)
    assert vocabulary.resample(tokens, 1, alpha=0.0) == tokens
    letters = vocabulary.resample(tokens[:1], 1, alpha=1.0)[0]
    assert "".join(vocabulary.pieces(letters)).replace("▁", " ") == f" {TEXT[0]}"
    assert len(letters) == len(TEXT[0]) + 1


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_size_the_text_cannot_support_is_refused_with_the_range(kind: str) -> None:
    with pytest.raises(ValueError, match=r"tokenizer.size=9999 .* at most \d+"):
        learn(TEXT, type=kind, size=9999)
    with pytest.raises(ValueError, match=r"tokenizer.size=10 .* at least \d+"):
        learn(TEXT, type=kind, size=10)


def test_the_range_in_the_message_is_right() -> None:
    with pytest.raises(ValueError) as error:
        learn(TEXT, type="bpe", size=9999)
    most = int(str(error.value).split()[-1])
    assert learn(TEXT, type="bpe", size=most).size == most
    with pytest.raises(ValueError):
        learn(TEXT, type="bpe", size=most + 1)


@pytest.mark.parametrize("kind", ["char", "word"])
def test_characters_and_words_are_as_many_as_there_are(kind: str) -> None:
    units = {unit for line in TEXT for unit in (line.split() if kind == "word" else line)} - {" "}
    marks = 4 + (kind == "char")
    assert learn(TEXT, type=kind, size=5000).size == len(units) + marks


def test_wrong_settings_and_empty_text_are_refused_in_words() -> None:
    with pytest.raises(ValueError, match=r"tokenizer.type must be one of bpe"):
        learn(TEXT, type="bpee", size=50)
    with pytest.raises(ValueError, match="no text"):
        learn(["", ""], type="bpe", size=50)


def test_very_long_lines_are_left_out_and_counted(caplog) -> None:
    learn([*TEXT, "x" * 20_000], type="bpe", size=80)
    assert "1 lines over 16384 bytes" in caplog.text


def test_a_vocabulary_is_learnt_once_for_a_text_and_its_settings(tmp_path) -> None:
    first = learn_cached(TEXT, type="bpe", size=80, cache=tmp_path)
    assert learn_cached(TEXT, type="bpe", size=80, cache=tmp_path).model == first.model
    assert len(list(tmp_path.glob("*.model"))) == 1
    learn_cached(TEXT, type="bpe", size=81, cache=tmp_path)
    learn_cached(TEXT[1:], type="bpe", size=80, cache=tmp_path)
    assert len(list(tmp_path.glob("*.model"))) == 3


def test_what_was_said_in_learning_is_said_whenever_the_vocabulary_is_found(
    tmp_path: Path, caplog, monkeypatch
) -> None:
    caplog.set_level("INFO")
    monkeypatch.setattr(module, "MAX_SENTENCES", len(TEXT))
    options = {"type": "word", "size": 900, "cache": tmp_path}
    said = []
    for _ in range(2):
        caplog.clear()
        learn_cached([*TEXT, "x" * 20_000], **options)
        said.append([(r.levelname, r.getMessage()) for r in caplog.records])
    assert said[0] == said[1] and [level for level, _ in said[0]].count("WARNING") <= 1
    assert any(f"learnt from {len(TEXT)} of {len(TEXT) + 1} sentences" in m for _, m in said[0])
    assert any("fewer than 900" in m for _, m in said[0])
    (notes,) = tmp_path.glob("*.json")
    notes.write_text("{", encoding="utf-8")  # damaged: nothing is said, and nothing stops
    caplog.clear()
    assert learn_cached([*TEXT, "x" * 20_000], **options).size and not caplog.records


def test_learning_is_reproducible() -> None:
    for kind in TYPES:
        assert (
            learn(TEXT, type=kind, size=SIZES[kind]).model
            == learn(TEXT, type=kind, size=SIZES[kind]).model
        )


@settings(deadline=None)
@given(counts=st.lists(st.integers(0, 40), min_size=1, max_size=3), most=st.integers(1, 50))
def test_of_many_sentences_an_even_sample_is_taken_and_of_few_all(
    counts: list[int], most: int
) -> None:
    texts = [[f"{i} {j}" for j in range(count)] for i, count in enumerate(counts)]
    every = [sentence for text in texts for sentence in text]
    with pytest.MonkeyPatch().context() as patch:
        patch.setattr(module, "MAX_SENTENCES", most)
        taken = list(sample(*texts))
        assert taken == list(sample(*texts))
    assert len(taken) == min(most, len(every))
    places = [every.index(sentence) for sentence in taken]
    gaps = [after - before for before, after in pairwise([*places, len(every)])]
    assert places == sorted(places) and (not gaps or max(gaps) - min(gaps) <= 1)


def test_a_vocabulary_of_a_large_text_is_that_of_its_sample(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    large = [line for line in TEXT for _ in range(7)] + [f"rare{i} words" for i in range(30)]
    whole = learn(large, type="bpe", size=80)
    monkeypatch.setattr(module, "MAX_SENTENCES", 27)
    taken = list(sample(large))
    assert len(taken) == 27
    for kind in TYPES:
        options = {"type": kind, "size": SIZES[kind] - 5}
        assert learn(large, **options).digest == learn(taken, **options).digest
    assert learn(large, type="bpe", size=80).digest != whole.digest
    options = {"type": "bpe", "size": 80, "cache": tmp_path}
    learn_cached(large, **options)
    monkeypatch.setattr(module, "MAX_SENTENCES", 28)
    learn_cached(large, **options)  # another sample is not taken for this one
    assert len(list(tmp_path.glob("*.model"))) == 2


def test_text_in_a_file_gives_the_vocabulary_of_text_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in TEXT), encoding="utf-8")
    text = TextFile(tmp_path / "text", len(TEXT), digest_of(TEXT))
    for shared in (True, False):
        options = {"type": "bpe", "size": 80, "shared": shared, "cache": tmp_path / "cache"}
        learnt = learn_pair(text, TEXT, **options)
        alone = [learn(TEXT + TEXT if shared else TEXT, type="bpe", size=80)] * 2
        assert [t.digest for t in learnt] == [t.digest for t in alone]
        monkeypatch.setattr(TextFile, "__iter__", None)  # it is found without being read
        assert [t.digest for t in learn_pair(text, TEXT, **options)] == [t.digest for t in alone]
        monkeypatch.undo()


def test_one_vocabulary_or_two(tmp_path) -> None:
    options = {"type": "bpe", "size": 80, "cache": tmp_path}
    src, tgt = learn_pair(TEXT[:2], TEXT[2:3] * 9, shared=True, **options)
    assert src.model == tgt.model
    src, tgt = learn_pair(TEXT[:2] * 3, TEXT[2:] * 3, shared=False, **{**options, "size": 60})
    assert src.model != tgt.model


def test_a_missing_or_damaged_vocabulary_is_named(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match=r"src\.model"):
        Tokenizer.load(tmp_path / "src.model")
    (tmp_path / "bad.model").write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"bad\.model"):
        Tokenizer.load(tmp_path / "bad.model")
