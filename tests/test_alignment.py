"""Words, and attention over pieces that becomes attention over words."""

import numpy as np
import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.alignment import select, word_alignment, words


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("L'accord n'a pas.", "L' accord n' a pas ."),
        ("the doctor's house", "the doctor 's house"),
        ("Y a-t-il quelqu'un ?", "Y a-t-il quelqu' un ?"),
        ("C'est-à-dire 3,5 % « ici »…", "C' est-à-dire 3 , 5 % « ici » …"),
        ("the dogs' snake_case - yes", "the dogs ' snake _ case - yes"),
        ("l'est, s'est; 's", "l' est , s' est ; 's"),
        (" \n", ""),
    ],
)
def test_words_are_what_a_reader_expects(sentence, expected):
    assert words(sentence) == expected.split()


@given(st.text())
def test_words_put_together_are_the_sentence_without_its_spaces(sentence):
    assert "".join(words(sentence)) == "".join(sentence.split())
    assert all(words(sentence))


def test_pieces_are_summed_on_the_source_and_averaged_on_the_target():
    weights = [
        # ▁the  ▁do  g   </s>
        [0.5, 0.2, 0.1, 0.2],  # ▁le
        [0.1, 0.3, 0.4, 0.2],  # ▁chi
        [0.3, 0.1, 0.4, 0.2],  # en
        [0.0, 0.0, 0.0, 1.0],  # </s>
    ]
    pieces = ["▁the", "▁do", "g", "</s>"], ["▁le", "▁chi", "en", "</s>"]
    kept = word_alignment(np.array(weights), *pieces, keep_end=True)
    assert (kept.src_words, kept.tgt_words) == (["the", "dog", "</s>"], ["le", "chien"])
    np.testing.assert_allclose(kept.matrix, [[0.5, 0.3, 0.2], [0.2, 0.6, 0.2]])
    dropped = word_alignment(np.array(weights), *pieces)
    assert (dropped.src_words, dropped.tgt_words) == (["the", "dog"], ["le", "chien"])
    np.testing.assert_allclose(dropped.matrix, [[0.625, 0.375], [0.25, 0.75]])


def test_a_piece_that_spans_two_words_is_divided_by_its_characters():
    source = word_alignment(np.array([[1.0, 0.0]]), ["▁l'a", "mi"], ["▁x"])
    assert source.src_words == ["l'", "ami"]
    np.testing.assert_allclose(source.matrix, [[2 / 3, 1 / 3]])
    # "ami" is a third of the first piece and all of the second: (1/3 row 0 + row 1) / (4/3)
    target = word_alignment(np.array([[1.0, 0.0], [0.0, 1.0]]), ["▁x", "▁y"], ["▁l'a", "mi"])
    assert target.tgt_words == ["l'", "ami"]
    np.testing.assert_allclose(target.matrix, [[1, 0], [0.25, 0.75]])


def test_a_lone_space_piece_belongs_to_the_word_after_it_and_at_the_end_to_the_last():
    pieces = ["▁", "a", "▁", "b", "▁"]
    result = word_alignment(np.array([[0.1, 0.2, 0.3, 0.2, 0.2]]), pieces, ["▁x"])
    assert result.src_words == ["a", "b"]
    np.testing.assert_allclose(result.matrix, [[0.3, 0.7]])


def test_unknown_pieces_are_shown_as_such_or_matched_with_the_given_words():
    pieces = ["▁a", "<unk>", "▁c"]
    weights = np.array([[0.2, 0.5, 0.3]])
    assert word_alignment(weights, pieces, ["▁x"]).src_words == ["a", "⁇", "c"]
    result = word_alignment(weights, pieces, ["▁x"], src_words=["a☃☃", "c"])
    np.testing.assert_allclose(result.matrix, [[0.7, 0.3]])
    result = word_alignment(weights, pieces, ["▁x"], src_words=["a☃", "☂☂", "c"])
    np.testing.assert_allclose(result.matrix, [[0.2 + 0.5 / 3, 0.5 * 2 / 3, 0.3]])


@pytest.mark.parametrize(
    ("pieces", "given_words"),
    [
        (["▁a"], ["ab"]),
        (["▁a", "▁b"], ["a"]),
        (["▁a", "<unk>"], ["a"]),
        (["<unk>", "▁b"], ["b"]),
        (["▁a", "<unk>", "▁c"], ["a", "b", "d"]),
        (["▁a"], []),
    ],
)
def test_pieces_that_do_not_spell_the_given_words_are_refused(pieces, given_words):
    with pytest.raises(ValueError, match="do not spell"):
        word_alignment(np.ones((1, len(pieces))), pieces, ["▁x"], src_words=given_words)


def test_given_words_may_be_any_division_of_the_same_characters():
    result = word_alignment(
        np.eye(2), ["▁Mr", "."], ["▁M", "."], src_words=["Mr."], tgt_words=["M", "."]
    )
    assert (result.src_words, result.tgt_words) == (["Mr."], ["M", "."])
    np.testing.assert_allclose(result.matrix, [[1], [1]])


def test_a_shifted_word_takes_the_attention_of_the_next_step():
    weights = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
    pieces = ["▁a", "▁b", "▁c"], ["▁x", "▁y", "</s>"]
    np.testing.assert_array_equal(word_alignment(weights, *pieces).matrix, weights[:2])
    np.testing.assert_array_equal(word_alignment(weights, *pieces, shift=True).matrix, weights[1:])
    with pytest.raises(ValueError, match="ends with"):
        word_alignment(weights, pieces[0], ["▁x", "▁y", "▁z"], shift=True)


def test_several_matrices_are_merged_at_once_as_each_by_itself():
    stack = np.random.default_rng(1).dirichlet(np.ones(4), size=(2, 3, 4))
    pieces = ["▁the", "▁do", "g", "</s>"], ["▁le", "▁chi", "en", "</s>"]
    for options in ({}, {"shift": True}, {"keep_end": True}):
        merged = word_alignment(stack, *pieces, **options)
        assert merged.matrix.shape[:2] == (2, 3)
        for place in np.ndindex(2, 3):
            one = word_alignment(stack[place], *pieces, **options)
            assert (one.src_words, one.tgt_words) == (merged.src_words, merged.tgt_words)
            np.testing.assert_allclose(one.matrix, merged.matrix[place])


def test_a_layer_and_head_are_chosen_by_number_or_as_a_mean():
    weights = np.arange(12.0).reshape(2, 3, 1, 2)  # layers, heads, queries, keys
    np.testing.assert_array_equal(select(weights, 2, 3), [[10, 11]])
    np.testing.assert_array_equal(select(weights, 1, "mean"), [[2, 3]])
    np.testing.assert_array_equal(select(weights, "mean", 1), [[3, 4]])
    np.testing.assert_array_equal(select(weights, "mean", "mean"), [[5, 6]])
    for layer, head, message in (
        (3, 1, "no layer 3: .* 2 layers"),
        (0, 1, "no layer 0"),
        (1, 4, "no head 4"),
    ):
        with pytest.raises(ValueError, match=message):
            select(weights, layer, head)
    with pytest.raises(ValueError, match=r"attends with 1 layer$"):
        select(weights[:1], 2, 1)


def test_only_the_last_end_of_sentence_is_left_out():
    result = word_alignment(np.array([[0.5, 0.5], [0, 1]]), ["</s>", "</s>"], ["▁x", "</s>"])
    assert result.src_words == ["<", "/", "s", ">"]
    np.testing.assert_allclose(result.matrix, [[0.25] * 4])


def test_a_row_that_attends_to_the_end_alone_is_zero_and_finite():
    result = word_alignment(np.array([[0.0, 1.0]]), ["▁a", "</s>"], ["▁x"])
    np.testing.assert_array_equal(result.matrix, [[0.0]])


def test_attention_that_does_not_fit_the_pieces_is_refused():
    with pytest.raises(ValueError, match=r"\(2, 1\) does not fit 1 target and 2 source"):
        word_alignment(np.ones((2, 1)), ["▁a", "▁b"], ["▁x"])


TEXT = [
    "The agreement on the European Economic Area was signed in August 1992.",
    "L'accord sur la zone économique européenne a été signé en août 1992.",
    "Qu'est-ce qu'il n'a pas vu aujourd'hui ?",
    "The doctor's house isn't far, is it?",
    "« Œuvre », dit-il, l'été : 3,5 %.",
] * 4


@pytest.fixture(scope="module", params=["char", "word", "bpe", "unigram"])
def processor(request, tmp_path_factory):
    model = tmp_path_factory.mktemp("pieces") / "model"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT),
        model_prefix=str(model),
        model_type=request.param,
        vocab_size={"char": 60, "word": 40, "bpe": 90, "unigram": 90}[request.param],
        hard_vocab_limit=False,
        character_coverage=1.0,
        normalization_rule_name="identity",
        minloglevel=2,
    )
    return sentencepiece.SentencePieceProcessor(model_file=f"{model}.model")


UNSEEN = "☃ Éa☃b l'été n☂ 's"


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), number=st.integers(0, 5), other=st.integers(0, 5))
def test_words_and_mass_are_kept_whatever_the_kind_of_piece(processor, seed, number, other):
    sentences = [[*TEXT[:5], UNSEEN][i] for i in (number, other)]
    src, tgt = (
        [*(processor.id_to_piece(i) for i in processor.encode(s)), "</s>"] for s in sentences
    )
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(src)), size=len(tgt))
    expected = [words(sentence) for sentence in sentences]
    given_words = {"src_words": expected[0], "tgt_words": expected[1]}
    for shift in (False, True):
        kept = word_alignment(weights, src, tgt, **given_words, keep_end=True, shift=shift)
        assert kept.matrix.shape == (len(kept.tgt_words), len(kept.src_words))
        np.testing.assert_allclose(kept.matrix.sum(1), 1)
        dropped = word_alignment(weights, src, tgt, **given_words, shift=shift)
        np.testing.assert_allclose(dropped.matrix.sum(1), 1)
        ratio = dropped.matrix / kept.matrix[:, :-1]  # the same but for the scale of each row
        np.testing.assert_allclose(ratio, ratio[:, :1] * np.ones_like(ratio))
    for sentence, pieces, found in zip(sentences, (src, tgt), (0, 1), strict=True):
        if sentence != UNSEEN and "<unk>" not in pieces:
            assert word_alignment(weights, src, tgt)[found] == words(sentence)


def test_equal_attention_over_characters_gives_words_mass_by_their_length(processor):
    src = [processor.id_to_piece(i) for i in processor.encode(TEXT[1])]
    sizes = np.array([len(piece.replace("▁", "")) for piece in src], dtype=float)
    if "<unk>" in src or (sizes == 0).any():
        sizes = np.ones(len(src))
    weights = (sizes / sizes.sum())[None]
    result = word_alignment(weights, src, ["▁x"], src_words=words(TEXT[1]))
    assert result.matrix.sum() == pytest.approx(1)
    if sizes.max() > 1:
        lengths = np.array([len(word) for word in words(TEXT[1])])
        np.testing.assert_allclose(result.matrix[0], lengths / lengths.sum())
