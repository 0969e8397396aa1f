"""Links between words: drawn, symmetrised, read and scored; numbers worked by hand."""

import json
import random

import numpy as np
import pytest

from evaluation.gold import AlignedText, is_json_lines, read_gold, read_json_lines, read_words
from evaluation.links import (
    METHODS,
    SYMMETRISATIONS,
    Gold,
    argmax_links,
    balanced,
    crossing_links,
    diagonal_links,
    draw_links,
    score_links,
    symmetrise,
    threshold_links,
    transposed,
)
from evaluation.tables import alignment_table, text_table

MATRIX = np.array([[0.6, 0.4, 0.0], [0.0, 0.3, 0.7], [0.5, 0.5, 0.0], [0.0, 0.0, 0.0]])


def test_links_are_pairs_of_source_and_target_word():
    assert argmax_links(MATRIX) == {(0, 0), (2, 1), (0, 2)}
    assert threshold_links(MATRIX, 0.4) == {(0, 0), (1, 0), (2, 1), (0, 2), (1, 2)}
    assert argmax_links(np.zeros((2, 0))) == argmax_links(np.zeros((0, 2))) == set()
    with pytest.raises(ValueError, match="threshold"):
        threshold_links(MATRIX, 0.0)


# will eat -> mangera; the other words one to one; the full stop draws attention that is not its own
EATS = np.array(
    [
        # she will  eat   .
        [0.6, 0.1, 0.0, 0.3],  # elle
        [0.0, 0.3, 0.6, 0.1],  # mangera
        [0.1, 0.0, 0.4, 0.5],  # .
    ]
)


def test_links_in_both_directions_out_of_one_matrix_are_symmetrised():
    assert draw_links(EATS, "argmax") == {(0, 0), (2, 1), (3, 2)}
    # from the source: she - elle, will - mangera, eat - mangera, . - .
    backward = {(0, 0), (1, 1), (2, 1), (3, 2)}
    assert transposed(argmax_links(EATS.T)) == backward
    assert draw_links(EATS, "bidirectional") == backward
    assert draw_links(EATS, "threshold", 0.4) == {(0, 0), (2, 1), (2, 2), (3, 2)}
    with pytest.raises(ValueError, match="use argmax, threshold, bidirectional, balanced"):
        draw_links(EATS, "viterbi")


def test_balancing_takes_attention_from_a_word_that_all_look_at():
    # all three target words look at the third source word most
    sink = np.array([[0.4, 0.1, 0.5], [0.1, 0.4, 0.5], [0.05, 0.05, 0.9]])
    assert argmax_links(sink) == {(2, 0), (2, 1), (2, 2)}
    assert draw_links(sink, "balanced") == {(0, 0), (1, 1), (2, 2)}


def test_a_balanced_matrix_has_equal_rows_and_nearly_equal_columns():
    matrix = np.random.default_rng(3).dirichlet(np.ones(5), size=7)
    result = balanced(matrix)
    np.testing.assert_allclose(result.sum(1), 1)
    np.testing.assert_allclose(result.sum(0), 7 / 5, rtol=0.1)
    # scaling rows and columns keeps every cross ratio, whatever is done first
    ratios = [m[0, 0] * m[1:, 1:] / (m[1:, :1] * m[:1, 1:]) for m in (matrix, result)]
    np.testing.assert_allclose(ratios[0], ratios[1])


def test_balancing_leaves_a_matrix_alone_that_is_balanced_and_zeros_zero():
    even = np.array([[0.7, 0.3, 0.0], [0.3, 0.3, 0.4], [0.0, 0.4, 0.6]])
    np.testing.assert_allclose(balanced(even), even)
    dead = np.array([[0.5, 0.0, 0.5], [0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(balanced(dead), dead)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_knows_sentences_without_words_or_attention(method):
    for shape in ((0, 0), (0, 3), (3, 0), (2, 3)):
        assert draw_links(np.zeros(shape), method) == set()


@pytest.mark.parametrize("method", METHODS)
def test_attention_on_one_word_each_is_linked_alike_by_every_method(method):
    order = [2, 0, 3, 1]
    assert draw_links(np.eye(4)[order], method) == {(i, j) for j, i in enumerate(order)}


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
    with pytest.raises(ValueError, match="use intersection, union, grow-diag-final-and"):
        symmetrise(forward, backward, "grow")


def test_growing_goes_on_from_what_has_grown_and_along_diagonals():
    forward = {(0, 0), (1, 1), (2, 2)}
    assert symmetrise(forward, {(0, 0)}, "grow-diag-final-and") == forward


def grown(forward, backward):
    """Grow-diag-final-and a second time, over a matrix of marks as in Koehn's pseudo-code."""
    size = 1 + max((max(link) for link in forward | backward), default=0)
    union, links = np.zeros((2, size + 2, size + 2), dtype=bool)  # with an empty border
    for i, j in forward | backward:
        union[i + 1, j + 1] = True
    for i, j in forward & backward:
        links[i + 1, j + 1] = True
    around = [(-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)]
    while True:
        before = links.copy()
        for i, j in np.argwhere(before):
            for di, dj in around:
                alone = not links[i + di].any() or not links[:, j + dj].any()
                links[i + di, j + dj] |= union[i + di, j + dj] and alone
        if (links == before).all():
            break
    for direction in (forward, backward):
        for i, j in sorted(direction):
            links[i + 1, j + 1] |= not links[i + 1].any() and not links[:, j + 1].any()
    return {(int(i) - 1, int(j) - 1) for i, j in np.argwhere(links)}


def test_growing_agrees_with_a_second_implementation():
    rng = random.Random(11)
    sizes = []
    for _ in range(300):
        length = rng.randrange(1, 9)
        forward = {(rng.randrange(length), j) for j in range(length) if rng.random() < 0.9}
        backward = {(i, rng.randrange(length)) for i in range(length) if rng.random() < 0.9}
        forward |= {link for link in backward if rng.random() < 0.4}
        result = symmetrise(forward, backward, "grow-diag-final-and")
        assert result == grown(forward, backward)
        sizes.append((len(forward & backward), len(result), len(forward | backward)))
    assert any(a < b < c for a, b, c in sizes)


@pytest.mark.parametrize("method", SYMMETRISATIONS)
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


EUROPARL = {
    "src_words": ["distributed", "the", "minutes"],
    "tgt_words": ["distribué", "le", "procès", "-", "verbal"],
    "alignment": [[0, 0], [1, 1], [2, 2], [2, 3], [2, 4]],
}


def test_json_lines_hold_words_and_sure_links():
    lines = [json.dumps(EUROPARL), " ", json.dumps(EUROPARL | {"alignment": []}, indent=None)]
    assert is_json_lines(lines) and is_json_lines(["", *lines])
    assert not is_json_lines(["0-0 1p2"]) and not is_json_lines([])
    words, gold = read_json_lines(lines)
    assert words == [(EUROPARL["src_words"], EUROPARL["tgt_words"])] * 2
    links = frozenset({(0, 0), (1, 1), (2, 2), (2, 3), (2, 4)})
    assert gold == [Gold(links, links), Gold(frozenset(), frozenset())]
    one_based = EUROPARL | {"alignment": [[i + 1, j + 1] for i, j in EUROPARL["alignment"]]}
    assert read_json_lines([json.dumps(one_based)], one_based=True)[1] == gold[:1]


@pytest.mark.parametrize(
    ("line", "options", "message"),
    [
        ('{"src_words": [', {}, "gold, line 2: not JSON"),
        ("[1, 2]", {}, "line 2: expected an object with src_words, tgt_words and alignment"),
        ({"src_words": "a b"}, {}, "line 2: src_words and tgt_words are lists of strings"),
        ({"tgt_words": ["a", 3]}, {}, "line 2: src_words and tgt_words are lists of strings"),
        ({"alignment": [[0, 0, 1]]}, {}, "line 2: alignment is a list of pairs of whole numbers"),
        ({"alignment": [[0, 1.5]]}, {}, "line 2: alignment is a list of pairs of whole numbers"),
        ({"alignment": None}, {}, "line 2: alignment is a list of pairs of whole numbers"),
        ({"alignment": [[2, -1]]}, {}, "line 2: link 2--1 has a negative number"),
        ({"alignment": [[0, 5]]}, {}, "link 0-5 is beyond the 5 target words; do the links count"),
        ({"alignment": [[0, 1]]}, {"one_based": True}, "link 0-1 counts from 0, where"),
    ],
)
def test_wrong_json_lines_are_reported_by_line(line, options, message):
    line = line if isinstance(line, str) else json.dumps(EUROPARL | line)
    with pytest.raises(ValueError, match=message):
        read_json_lines(["", line], **options)


def test_text_beside_links_is_words_on_either_side_of_three_bars():
    assert read_words(["the  cat ||| le chat", " ||| "]) == [
        (["the", "cat"], ["le", "chat"]),
        ([], []),
    ]
    for line in ("the cat", "a ||| b ||| c", "a || b"):
        with pytest.raises(ValueError, match="text, line 1: expected source"):
            read_words([line])


def test_text_for_the_other_direction_has_all_sides_exchanged():
    words = [(["the", "red", "cat"], ["le", "chat", "rouge"])]
    text = AlignedText.of_words(words, read_gold(["0-0 1-2 2p1"]))
    assert text.sources == ["the red cat"] and text.size() == (1, 2, 1)
    back = text.reversed()
    assert (back.sources, back.targets) == (["le chat rouge"], ["the red cat"])
    assert back.words == [(["le", "chat", "rouge"], ["the", "red", "cat"])]
    assert back.gold == read_gold(["0-0 2-1 1p2"])
    assert back.reversed() == text


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
    assert (scores.sentences, scores.links) == (1, 4)


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


def test_a_table_of_alignments_marks_the_least_error_and_adds_published_rates():
    gold = read_gold(["0-0 1-1"])
    rows = []
    for layer, found in ((1, {(0, 0)}), (2, {(0, 0), (1, 1)}), (None, {(1, 0)})):
        place = {"run": "a", "layer": layer, "head": "mean" if layer else None, "setting": "argmax"}
        rows.append(place | score_links([found], gold)._asdict())
    lines = text_table(*alignment_table(rows, {"GIZA++": 5.9})).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[0][:5] == ["run", "layer", "head", "setting", "AER %"]
    # 1 - 2 / 3: one link, right; two sure ones
    assert cells[2] == [
        "a",
        "1",
        "mean",
        "argmax",
        "33.3",
        "100.0",
        "50.0",
        "n/a",
        "33.3",
        "1",
        "1",
    ]
    assert [row[4] for row in cells[2:]] == ["33.3", "**0.0**", "100.0", "5.9"]
    assert cells[4][1:3] == ["", ""]
    assert cells[5][:4] == ["(published)", "", "", "GIZA++"] and set(cells[5][5:]) == {""}
    assert "**" not in text_table(*alignment_table(rows[1:], {}))  # nothing to compare it with
