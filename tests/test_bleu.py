"""BLEU and the other scores: against sacreBLEU's command, its own bootstrap, and by hand."""

import json
import math
import random
import subprocess
import sys

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, TER
from sacrebleu.significance import PairedTest

from evaluation import bleu
from evaluation.significance import compare, paired_difference, significance_table
from evaluation.tables import comparison_table, span, text_table

EDGES = [10, 20, 30, 40, 50]
SENTENCE = "le la chat chien mange dort très bien l'été, à-propos « oui » 3,5 % n'a pas été ."
VOCABULARY = SENTENCE.split()


def corpus(seed: int, sentences: int = 60, noise: float = 0.2) -> tuple[list[str], list[str]]:
    """Hypotheses with a share of wrong words, and their references (the same for each seed)."""
    wording, errors = random.Random(0), random.Random(seed)
    references = [" ".join(wording.choices(VOCABULARY, k=1 + 7 * i // 6)) for i in range(sentences)]
    hypotheses = [
        " ".join(w if errors.random() > noise else errors.choice(VOCABULARY) for w in line.split())
        for line in references
    ]
    return hypotheses, references


def test_scores_equal_the_sacrebleu_command_on_the_written_files(tmp_path):
    hypotheses, references = corpus(1)
    more = [line.replace("chat", "félin") for line in references]
    hypotheses[3] = ""  # a blank translation counts
    for name, lines in (("hyp", hypotheses), ("ref", references), ("ref2", more)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    result = bleu.scores(hypotheses, [references, more], references, edges=EDGES, minimum=20)
    command = [sys.executable, "-m", "sacrebleu", "ref", "ref2", "-i", "hyp", "-w", "10"]
    command += ["-m", "bleu", "chrf", "ter"]
    printed = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, text=True)
    for theirs, ours in zip(json.loads(printed.stdout), ("bleu", "chrf", "ter"), strict=True):
        assert result[ours]["score"] == pytest.approx(theirs["score"], abs=1e-9)
        assert result[ours]["signature"] == theirs["signature"]


def test_scores_have_the_structure_of_scores_json():
    hypotheses, references = corpus(1)
    result = bleu.scores(hypotheses, [references], references, edges=[10, 20], minimum=5)
    assert json.loads(json.dumps(result)) == result
    assert set(result) == {"bleu", "chrf", "ter", "sentences", "by_length"}
    assert set(result["bleu"]) == {"score", "signature", "ci95"}
    assert set(result["chrf"]) == set(result["ter"]) == {"score", "signature"}
    assert [set(row) for row in result["by_length"]] == [
        {"from", "to", "sentences", "bleu", "ci95"}
    ] * 3
    assert result["sentences"] == len(hypotheses)
    assert bleu.scores(hypotheses, [references], references, ter=False)["ter"] is None


def test_bleu_of_statistics_worked_by_hand():
    # hypothesis "a b c d e", reference "a b c x e f": matches 4 of 5, 2 of 4, 1 of 3, 0 of 2
    rows = bleu.sentence_statistics(["a b c d e"], [["a b c x e f"]])
    assert rows.tolist() == [[5, 6, 4, 2, 1, 0, 5, 4, 3, 2]]
    expected = 100 * math.exp(1 - 6 / 5) * (4 / 5 * 2 / 4 * 1 / 3 * 0.5 / 2) ** 0.25
    assert float(bleu.bleu_of(rows[0])) == pytest.approx(expected, abs=1e-9)


def test_bleu_of_statistics_equals_sacrebleu_also_where_matches_are_missing():
    pairs = [
        ("a b c d e", "a b c d e"),
        ("a", "a"),
        ("", "a"),
        ("x y z", "a b c"),
        ("a b", "b a c"),
    ]
    pairs += list(zip(*corpus(5, 20, 0.9), strict=True))
    for hypothesis, reference in pairs:
        rows = bleu.sentence_statistics([hypothesis], [[reference]])
        theirs = BLEU().corpus_score([hypothesis], [[reference]]).score
        assert float(bleu.bleu_of(rows.sum(0))) == pytest.approx(theirs, abs=1e-9)


def test_unequal_numbers_are_an_error_and_not_a_score():
    with pytest.raises(ValueError, match="2 translations cannot be scored against 1 lines"):
        bleu.scores(["a", "b"], [["a"]], ["a", "b"])
    with pytest.raises(ValueError, match="reference 2"):
        bleu.scores(["a", "b"], [["a", "b"], ["a"]], ["a", "b"])
    with pytest.raises(ValueError, match="do not fit 3 sources"):
        bleu.scores(["a", "b"], [["a", "b"]], ["a", "b", "c"])


def test_nothing_to_score_is_an_error():
    with pytest.raises(ValueError, match="no translations"):
        bleu.scores([], [[]], [])
    with pytest.raises(ValueError, match="no references"):
        bleu.scores(["a"], [], ["a"])


def test_every_sentence_is_in_exactly_one_bucket_and_an_edge_closes_its_own():
    sources = ["w " * length for length in (0, 1, 10, 11, 20, 21, 50, 51, 200)]
    found = bleu.buckets(sources, EDGES)
    assert [(low, high) for low, high, _ in found] == [
        (1, 10), (11, 20), (21, 30), (31, 40), (41, 50), (51, None)
    ]  # fmt: skip
    assert [rows.tolist() for _, _, rows in found] == [[0, 1, 2], [3, 4], [5], [], [6], [7, 8]]


@pytest.mark.parametrize("edges", [[], [0, 10], [10, 10], [20, 10]])
def test_impossible_edges_are_refused(edges):
    with pytest.raises(ValueError, match="edges"):
        bleu.buckets(["a"], edges)


def test_bleu_of_a_bucket_is_corpus_bleu_of_its_sentences():
    hypotheses, references = corpus(1)
    for row in bleu.bleu_by_length(hypotheses, [references], references, edges=[15, 40], minimum=1):
        inside = [
            (h, r)
            for h, r in zip(hypotheses, references, strict=True)
            if row["from"] <= len(r.split()) <= (row["to"] or 10_000)
        ]
        theirs = BLEU().corpus_score([h for h, _ in inside], [[r for _, r in inside]]).score
        assert row == {**row, "sentences": len(inside), "bleu": pytest.approx(theirs, abs=1e-9)}
        assert "ci95" not in row


def test_a_bucket_of_too_few_sentences_reads_not_available_and_not_zero():
    hypotheses, references = corpus(1, sentences=12)
    rows = bleu.scores(hypotheses, [references], references, edges=[5, 100], minimum=6)["by_length"]
    assert [row["sentences"] for row in rows] == [5, 7, 0]
    assert [row["bleu"] is None for row in rows] == [True, False, True]
    assert [row["ci95"] is None for row in rows] == [True, False, True]
    empty = bleu.bleu_by_length(hypotheses, [references], references, edges=[100], minimum=0)[1]
    assert (empty["sentences"], empty["bleu"]) == (0, None)


def test_the_bootstrap_interval_is_sacrebleus_own():
    hypotheses, references = corpus(1)
    low, high = bleu.confidence_interval(bleu.sentence_statistics(hypotheses, [references]))
    theirs = BLEU().corpus_score(hypotheses, [references], n_bootstrap=1000)
    assert (high - low) / 2 == pytest.approx(theirs._ci, abs=1e-4)
    assert low < theirs.score < high


def test_terms_of_translation_edit_rate_add_up_over_processes(monkeypatch):
    hypotheses, references = corpus(1, sentences=40)
    monkeypatch.setattr(bleu, "_FEW", 30)  # so that processes are started
    theirs = TER().corpus_score(hypotheses, [references])
    assert bleu._ter(hypotheses, [references])["score"] == pytest.approx(theirs.score, abs=1e-9)


def test_translation_edit_rate_of_blank_references_is_that_of_the_library():
    for hypothesis in ("", "a b"):
        theirs = TER().corpus_score([hypothesis], [[""]]).score
        assert bleu._ter([hypothesis], [[""]])["score"] == theirs


def test_significance_agrees_with_sacrebleus_paired_test():
    (better, references), (worse, _) = corpus(1, noise=0.2), corpus(2, noise=0.21)
    systems = [("worse", worse), ("better", better)]
    theirs = PairedTest(systems, {"BLEU": BLEU()}, [references], test_type="ar")()[1]["BLEU"]
    first, second = (bleu.sentence_statistics(h, [references]) for h in (better, worse))
    ours = paired_difference(first, second)
    assert ours.bleu == pytest.approx(theirs[1].score - theirs[0].score, abs=1e-9)
    assert ours.p == pytest.approx(theirs[1].p_value, abs=0.02)


def test_significance_is_symmetric_and_equal_systems_do_not_differ():
    (one, references), (other, _) = corpus(1), corpus(2, noise=0.6)
    first, second = (bleu.sentence_statistics(h, [references]) for h in (one, other))
    there, back = paired_difference(first, second), paired_difference(second, first)
    assert there.bleu == pytest.approx(-back.bleu)
    assert there.p == back.p < 0.001
    assert paired_difference(first, first) == (0.0, 1.0)
    with pytest.raises(ValueError, match="in pairs"):
        paired_difference(first, second[1:])


def test_pairs_are_compared_over_all_sentences_and_in_each_bucket_that_is_large_enough():
    (one, references), (other, _) = corpus(1), corpus(2, noise=0.6)
    systems = {
        name: bleu.sentence_statistics(h, [references])
        for name, h in (("a", one), ("b", other), ("c", one))
    }
    records = compare(systems, references, edges=[2, 40], minimum=5, trials=200)
    assert [(r["run"], r["against"]) for r in records[::3]] == [("b", "a"), ("c", "a"), ("c", "b")]
    assert [(r["from"], r["to"]) for r in records[:3]] == [(1, None), (3, 40), (41, None)]
    assert [r["sentences"] for r in records[:3]] == [60, 33, 25]
    assert records[0]["bleu"] < 0 and records[3]["p"] == 1.0
    head, _, *rows = significance_table(records).splitlines()
    columns = [cell.strip() for cell in head.strip("|").split("|")]
    assert columns == ["difference in BLEU", "all", "3–40 words", "41+ words"]
    assert rows[1].startswith("| c − a") and rows[1].count("+0.0 (p=1.000)") == 3


def test_a_table_compares_systems_with_counts_and_what_is_not_available():
    def system(score, *lengths):
        rows = [("1", "10", 30), ("11", None, 4)]
        return {
            "bleu": {"score": score, "ci95": [score - 1, score + 2]},
            "parameters": 1234567 if score > 20 else None,
            "by_length": [
                {"from": int(a), "to": b and int(b), "sentences": n, "bleu": x}
                for (a, b, n), x in zip(rows, lengths, strict=True)
            ],
        }

    table = comparison_table({"rnn": system(12.34, 20.0, None), "bahdanau": system(25, 26, 0.0)})
    assert text_table(*table).splitlines() == [
        "| model     | parameters |       BLEU | 1–10 words | 11+ words |",
        "| --------- | ---------: | ---------: | ---------: | --------: |",
        "| rnn       |            | 12.3 ± 1.5 |       20.0 |       n/a |",
        "| bahdanau  |  1,234,567 | 25.0 ± 1.5 |       26.0 |       0.0 |",
        "| sentences |            |         34 |         30 |         4 |",
    ]


def test_what_is_left_on_long_sentences_is_one_ratio_of_all_of_41_words_and_more():
    hypotheses, references = corpus(1)
    hypotheses = [  # of long sentences, half is lost
        " ".join(h.split()[: len(h.split()) // 2]) if len(h.split()) > 40 else h for h in hypotheses
    ]
    rows = bleu.sentence_statistics(hypotheses, [references])
    lengths = [len(line.split()) for line in references]

    def theirs(low, high):
        kept = [i for i, length in enumerate(lengths) if low <= length <= high]
        chosen = [hypotheses[i] for i in kept], [[references[i] for i in kept]]
        return BLEU().corpus_score(*chosen).score

    for edges in (EDGES, [5, 10, 20, 40]):
        ratio = bleu.long_to_short(rows, references, edges=edges, minimum=5)
        assert ratio == pytest.approx(theirs(41, 999) / theirs(11, 20), abs=1e-9) and ratio < 0.5


@pytest.mark.parametrize(("edges", "minimum"), [([10, 20, 50], 5), ([20, 40], 5), (EDGES, 100)])
def test_there_is_no_ratio_without_both_buckets(edges, minimum):
    hypotheses, references = corpus(1)
    rows = bleu.sentence_statistics(hypotheses, [references])
    assert bleu.long_to_short(rows, references, edges=edges, minimum=minimum) is None
    worthless = bleu.sentence_statistics(["x"] * len(references), [references])
    assert bleu.long_to_short(worthless, references, edges=EDGES, minimum=5) is None


def test_a_table_has_the_ratio_where_any_system_has_one():
    bucket = {"from": 1, "to": None, "sentences": 30, "bleu": 20.0}
    system = {"bleu": {"score": 20.0, "ci95": [19, 21]}, "by_length": [bucket]}
    table = comparison_table(
        {"rnn": system | {"long_to_short": 0.456}, "other": system | {"long_to_short": None}}
    )
    header, rows = table
    assert [header[-1], *(row[-1] for row in rows)] == ["41+ / 11–20", "0.46", "n/a", ""]


def test_systems_scored_on_other_buckets_are_not_compared():
    def system(count):
        bucket = {"from": 1, "to": None, "sentences": count, "bleu": 1.0}
        return {"bleu": {"score": 1.0, "ci95": [1, 1]}, "by_length": [bucket]}

    with pytest.raises(ValueError, match="a and b were not scored on the same buckets"):
        comparison_table({"a": system(3), "b": system(4)})
    with pytest.raises(ValueError, match="no scores"):
        comparison_table({})


def test_tables_align_and_spans_read_as_people_write_them():
    assert text_table(["x", "n"], [["long", "1"]]).splitlines() == [
        "| x    |   n |",
        "| ---- | --: |",
        "| long |   1 |",
    ]
    assert span({"from": 51, "to": None}) == "51+"
    assert span({"from": 11, "to": 20}) == "11–20"


def test_intervals_narrow_as_sentences_grow_in_number():
    hypotheses, references = corpus(1)
    rows = bleu.sentence_statistics(hypotheses, [references])
    few, many = (bleu.confidence_interval(np.tile(rows, (n, 1))) for n in (1, 16))
    assert (few[1] - few[0]) / (many[1] - many[0]) == pytest.approx(4, rel=0.15)
