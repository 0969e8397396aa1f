"""Links between words: drawn, symmetrised, read and scored; numbers worked by hand."""

import random

import numpy as np
import pytest

from evaluation.links import (
    Gold,
    argmax_links,
    crossing_links,
    diagonal_links,
    read_gold,
    score_links,
    symmetrise,
    threshold_links,
)

MATRIX = np.array([[0.6, 0.4, 0.0], [0.0, 0.3, 0.7], [0.5, 0.5, 0.0], [0.0, 0.0, 0.0]])


def test_links_are_pairs_of_source_and_target_word():
    assert argmax_links(MATRIX) == {(0, 0), (2, 1), (0, 2)}
    assert threshold_links(MATRIX, 0.4) == {(0, 0), (1, 0), (2, 1), (0, 2), (1, 2)}
    assert argmax_links(np.zeros((2, 0))) == argmax_links(np.zeros((0, 2))) == set()
    with pytest.raises(ValueError, match="threshold"):
        threshold_links(MATRIX, 0.0)


def test_the_diagonal_runs_from_corner_to_corner():
    assert diagonal_links(3, 3) == {(0, 0), (1, 1), (2, 2)}
    assert diagonal_links(3, 5) == {(0, 0), (1, 1), (1, 2), (2, 3), (2, 4)}  # halves go up
    assert diagonal_links(6, 3) == {(0, 0), (3, 1), (5, 2)}
    assert diagonal_links(4, 1) == {(0, 0)}
    assert diagonal_links(1, 3) == {(0, 0), (0, 1), (0, 2)}
    assert diagonal_links(0, 3) == diagonal_links(3, 0) == set()


def test_symmetrisation_of_an_example_worked_by_hand():
    # six source and five target words
    forward = {(0, 0), (1, 1), (2, 1), (4, 4), (5, 0)}
    backward = {(0, 0), (1, 1), (1, 2), (4, 3)}
    assert symmetrise(forward, backward, "intersection") == {(0, 0), (1, 1)}
    assert symmetrise(forward, backward, "union") == forward | backward
    # growing from (1, 1): (2, 1) has a new source word, (1, 2) a new target word; nothing touches
    # (4, 4), (4, 3), (5, 0). At the end (4, 4) joins, for neither word has a link yet; (5, 0) does
    # not, for target 0 has one, and (4, 3) does not, for source 4 has one by now.
    expected = {(0, 0), (1, 1), (2, 1), (1, 2), (4, 4)}
    assert symmetrise(forward, backward, "grow-diag-final-and") == expected
    with pytest.raises(ValueError, match="grow-diag-final-and"):
        symmetrise(forward, backward, "grow")


def test_growing_goes_on_from_what_has_grown_and_along_diagonals():
    forward = {(0, 0), (1, 1), (2, 2)}
    assert symmetrise(forward, {(0, 0)}, "grow-diag-final-and") == forward


@pytest.mark.parametrize("method", ["intersection", "union", "grow-diag-final-and"])
def test_symmetrisation_lies_between_intersection_and_union(method):
    rng = random.Random(method)
    for _ in range(50):
        forward = {(rng.randrange(6), j) for j in range(6)}
        backward = {(i, rng.randrange(6)) for i in range(6)}
        result = symmetrise(forward, backward, method)
        assert forward & backward <= result <= forward | backward
        assert symmetrise(forward, forward, method) == forward


def test_sure_and_possible_links_are_read():
    assert read_gold(["0-0 1p2", ""]) == [
        Gold(frozenset({(0, 0)}), frozenset({(0, 0), (1, 2)})),
        Gold(frozenset(), frozenset()),
    ]
    assert read_gold(["1-1 2p3"], one_based=True) == read_gold(["0-0 1p2"])
    assert read_gold(["1p1 1-1"]) == read_gold(["1-1"])  # sure is more than possible


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        (["0-0", "0-0 1_1"], {}, "gold, line 2: '1_1' is not a link"),
        (["0-0 -1-1"], {}, "line 1: '-1-1' is not a link"),
        (["1-1 0-1"], {"one_based": True}, "line 1: link 0-1 counts from 0"),
        (["1-1 2-2"], {"lengths": [(2, 3)]}, "link 2-2 is beyond the 2 source .* count from 1"),
        (["1-4"], {"lengths": [(2, 3)], "one_based": True}, "1-4 is beyond the 3 target words$"),
        (["0-0"], {"lengths": [(1, 1), (1, 1)]}, "1 lines for 2 sentences"),
    ],
)
def test_wrong_links_are_reported_by_line(lines, options, message):
    with pytest.raises(ValueError, match=message):
        read_gold(lines, name="gold", **options)


def test_error_rate_of_an_example_worked_by_hand():
    # A: 4 links, 2 of them sure, 3 of them possible (sure ones counted); S: 3 links
    found = {(0, 0), (1, 1), (2, 1), (3, 3)}
    gold = Gold(
        frozenset({(0, 0), (1, 1), (2, 2)}), frozenset({(0, 0), (1, 1), (2, 2), (2, 1), (4, 4)})
    )
    scores = score_links([found], [gold])
    assert scores.precision == pytest.approx(3 / 4)
    assert scores.recall == pytest.approx(2 / 3)
    assert scores.aer == pytest.approx(1 - (2 + 3) / (4 + 3))
    assert scores.sentences == 1


def test_counts_are_summed_over_sentences_and_not_averaged():
    gold = read_gold(["0-0", "0-0 1-1 2-2"])
    found = [{(1, 0)}, {(0, 0), (1, 1), (2, 2)}]
    assert score_links(found, gold).aer == pytest.approx(1 - (3 + 3) / (4 + 4))


def test_crossing_links_are_those_of_reversed_words():
    # the European Economic Area -> la zone économique européenne
    links = {(0, 0), (1, 3), (2, 2), (3, 1)}
    assert crossing_links(links) == {(1, 3), (2, 2), (3, 1)}
    assert crossing_links({(0, 0), (0, 1), (1, 1), (2, 5)}) == set()  # sharing is not crossing


def test_crossing_and_the_rest_are_scored_apart_by_target_word():
    gold = read_gold(["0-0 1-3 2-2 3-1"])
    diagonal = [{(0, 0), (1, 1), (2, 2), (3, 3)}]
    scores = score_links(diagonal, gold)
    # all but target word 0 cross: there 3 links are found, 1 of them right, of 3
    assert scores.aer_crossing == pytest.approx(1 - (1 + 1) / (3 + 3))
    assert scores.aer_diagonal == 0.0
    assert scores.aer == pytest.approx(1 - (2 + 2) / (4 + 4))


def test_where_nothing_crosses_its_error_rate_is_not_available():
    scores = score_links([{(0, 0)}], read_gold(["0-0"]))
    assert (scores.aer, scores.aer_crossing, scores.aer_diagonal) == (0.0, None, 0.0)
    nothing = score_links([set()], read_gold([""]))
    assert nothing[:5] == (None,) * 5


def test_alignments_and_gold_must_be_equally_many():
    with pytest.raises(ValueError, match=r"2 alignments .* against 1"):
        score_links([set(), set()], read_gold(["0-0"]))


def error_rate(found, sure, possible):
    """Och & Ney's formula again, in counts of lists and the other way round."""
    hits = [link for links, s in zip(found, sure, strict=True) for link in links if link in s]
    fair = [link for links, p in zip(found, possible, strict=True) for link in links if link in p]
    total = sum(map(len, found)) + sum(map(len, sure))
    return (total - len(hits) - len(fair)) / total


def test_error_rates_agree_with_a_second_implementation_and_divide_by_target_words():
    rng = random.Random(7)
    sentences = []
    for _ in range(40):
        sure = {(rng.randrange(8), j) for j in range(8) if rng.random() < 0.7}
        possible = sure | {(rng.randrange(8), rng.randrange(8)) for _ in range(5)}
        found = {(rng.randrange(8), j) for j in range(8)} | set(rng.sample(sorted(sure), 1))
        sentences.append((found, sure, possible))
    found, sure, possible = zip(*sentences, strict=True)
    gold = [Gold(frozenset(s), frozenset(p)) for s, p in zip(sure, possible, strict=True)]
    scores = score_links(found, gold)
    assert scores.aer == pytest.approx(error_rate(found, sure, possible))
    hard = [{j for i, j in s for k, m in s if (i < k and j > m) or (i > k and j < m)} for s in sure]
    for crosses, ours in ((True, scores.aer_crossing), (False, scores.aer_diagonal)):
        part = [
            [{(i, j) for i, j in x if (j in h) == crosses} for x, h in zip(xs, hard, strict=True)]
            for xs in (found, sure, possible)
        ]
        assert ours == pytest.approx(error_rate(*part))


def test_gold_itself_has_no_error_and_swapping_sides_changes_no_overall_rate():
    gold = read_gold(["0-0 1-3 2-2 3-1", "0-1 1-0 2p2"])
    assert score_links([set(g.sure) for g in gold], gold).aer == 0.0
    found = [{(0, 0), (1, 1)}, {(0, 1), (2, 2)}]

    def swap(links):
        return frozenset((j, i) for i, j in links)

    swapped = [Gold(swap(g.sure), swap(g.possible)) for g in gold]
    ours, theirs = score_links(found, gold), score_links([set(swap(f)) for f in found], swapped)
    assert ours[:3] == theirs[:3]
