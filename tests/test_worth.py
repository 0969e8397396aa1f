"""What a source word is worth, by hand."""

import numpy as np
import pytest

from evaluation.alignment import words
from evaluation.worth import difference, weighed, without_each


@pytest.mark.parametrize(
    ("sentence", "lacking"),
    [
        ("the red house", ["red house", "the house", "the red"]),
        ("L'accord est là.", ["accord est là.", "L' est là.", "L'accord là.", "L'accord est."]),
        ("the doctor's dog", ["doctor's dog", "the's dog", "the doctor dog", "the doctor's"]),
        ("1,5", [",5", "1 5", "1,"]),  # what was two words does not become one
        ("alone", [""]),
    ],
)
def test_a_sentence_lacks_each_of_its_words_in_turn(sentence, lacking):
    found = without_each(sentence, words(sentence))
    assert found[: len(lacking)] == lacking
    assert len(found) == len(words(sentence))


def test_given_words_are_found_whatever_their_spaces_and_a_blank_one_is_no_loss():
    assert without_each("New York is big", ["New York", "", "is", "big"]) == [
        "is big",
        "New York is big",
        "New York big",
        "New York is",
    ]
    assert without_each("", []) == []
    with pytest.raises(ValueError, match="the words 'a c' do not spell 'a b'"):
        without_each("a b", ["a", "c"])


def test_a_word_is_worth_the_fall_of_the_log_probability_of_all_pieces_of_the_other():
    whole = np.array([-1.0, -2.0, -0.5, -0.1])  # three pieces and </s>
    without = [np.array([-3.0, -2.5, -0.25, -0.1]), np.array([-1.0, -1.0, -4.5, -9.0])]
    # the first two pieces are the first word; half of the third belongs to the second
    shares = np.array([[1, 0, 0], [1, 0, 0], [0, 0.5, 0.5], [0, 0, 0]])
    found = difference(whole, without, shares)
    np.testing.assert_allclose(found, [[2.5, 0], [0, 2], [0, 2]])
    assert difference(whole, [], shares).shape == (3, 0)


def test_attention_and_prediction_difference_speak_alike_for_a_link():
    weights = np.array([[0.5, 0.25, 0.25], [0.0, 0.5, 0.5]])
    worth = np.array([[0.5, 1.5, 0.0], [0.0, 0.0, 0.0]])
    assert weighed(weights, worth, "attention") is weights
    # the second word does not care, so that its attention decides
    for evidence, expected in (
        ("difference", [[0.25, 0.75, 0.0], [1 / 3, 1 / 3, 1 / 3]]),
        ("mean", [[0.375, 0.5, 0.125], [1 / 6, 5 / 12, 5 / 12]]),
        ("product", [[0.4, 0.6, 0.0], [0.0, 0.5, 0.5]]),  # 0.125 and 0.1875
    ):
        found = weighed(weights, worth, evidence)
        np.testing.assert_allclose(found, expected, atol=1e-5)
        np.testing.assert_allclose(found.sum(-1), 1)


def test_a_word_without_attention_has_no_link_by_the_product():
    np.testing.assert_array_equal(weighed(np.zeros((1, 2)), np.ones((1, 2)), "product"), [[0, 0]])
