"""Batches: every pair once an epoch, within the budget, padded right, resumable."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from data import batching
from data.batching import (
    LENGTH_STEP,
    ROWS_STEP,
    Batch,
    TokenArray,
    TrainingBatches,
    by_length,
    collate,
    evaluation_batches,
    pad,
    write_tokens,
)
from data.tokenizer import BOS, EOS, PAD


def corpus(pairs: int = 200, seed: int = 0) -> tuple[TokenArray, TokenArray]:
    """Pairs whose first source token tells them apart."""
    random = np.random.default_rng(seed)
    src = [[10 + i, *random.integers(4, 9, random.integers(0, 30))] for i in range(pairs)]
    tgt = [[4] * (len(s) + random.integers(0, 5)) for s in src]
    return TokenArray(src), TokenArray(tgt)


def epoch(batches: TrainingBatches) -> list[list[int]]:
    return [next(batches).src[:, 0].tolist() for _ in range(len(batches.order))]


def test_tokens_come_back_as_they_went_in() -> None:
    array = TokenArray([[5, 6], [], [7]])
    assert [list(array[i]) for i in range(len(array))] == [[5, 6], [], [7]]


def test_tokens_come_back_from_files_as_they_were_written(tmp_path: Path) -> None:
    write_tokens([[[5, 6], []], [[7]], [[8, 1 << 16]]], tmp_path, np.int32)
    array = TokenArray.mapped(tmp_path, np.int32)
    assert [list(array[i]) for i in range(len(array))] == [[5, 6], [], [7], [8, 1 << 16]]
    assert array.lengths.tolist() == [2, 0, 1, 2]


def test_sources_and_targets_have_their_marks() -> None:
    batch = collate([np.array([7, 8]), np.array([9])], [np.array([5]), np.array([4, 6, 4])])
    assert batch.src.tolist() == [[7, 8, EOS], [9, EOS, PAD]]
    assert batch.tgt_in.tolist() == [[BOS, 5, PAD, PAD], [BOS, 4, 6, 4]]
    assert batch.tgt_out.tolist() == [[5, EOS, PAD, PAD], [4, 6, 4, EOS]]
    assert batch.src_mask.tolist() == [[True, True, True], [True, True, False]]


def test_an_epoch_holds_each_pair_exactly_once() -> None:
    batches = TrainingBatches(*corpus(), batch_tokens=150, seed=3)
    for _ in range(3):
        seen = sorted(i for batch in epoch(batches) for i in batch)
        assert seen == list(range(10, 210))


def test_every_epoch_and_every_seed_has_its_own_order() -> None:
    first = TrainingBatches(*corpus(), batch_tokens=150, seed=3)
    orders = [
        epoch(first),
        epoch(first),
        epoch(TrainingBatches(*corpus(), batch_tokens=150, seed=4)),
    ]
    assert orders[0] != orders[1] and orders[0] != orders[2]
    assert epoch(TrainingBatches(*corpus(), batch_tokens=150, seed=3)) == orders[0]


def test_concatenation_holds_each_pair_once_and_makes_other_neighbours_in_each_epoch() -> None:
    src = TokenArray([[10 + i, 4] for i in range(200)])
    tgt = TokenArray([[10 + i, 5, 6] for i in range(200)])
    batches = TrainingBatches(src, tgt, batch_tokens=120, seed=3, concatenate=0.5)
    neighbours = []
    for _ in range(2):
        rows = [
            row
            for _ in range(len(batches.order))
            for row in zip(*sides(next(batches)), strict=True)
        ]
        seen = []
        for source, target in rows:
            numbers = [token for token in source if token >= 10]
            assert source == [token for i in numbers for token in (i, 4)] + [EOS]
            assert target == [token for i in numbers for token in (i, 5, 6)] + [EOS]
            seen.append(tuple(numbers))
        assert sorted(number for row in seen for number in row) == [10 + i for i in range(200)]
        assert sorted(map(len, seen)) == [1] * 100 + [2] * 50
        neighbours.append({row for row in seen if len(row) == 2})
    assert len(neighbours[0] & neighbours[1]) < 5


def sides(batch: Batch) -> tuple[list[list[int]], list[list[int]]]:
    """Sources and targets without padding."""
    return tuple([[t for t in row if t != PAD] for row in side.tolist()]
                 for side in (batch.src, batch.tgt_out))  # fmt: skip


def test_pairs_that_are_too_long_for_a_batch_together_stay_apart() -> None:
    src = TokenArray([[4] * (40 if i % 2 else 3) for i in range(100)])
    batches = TrainingBatches(src, src, batch_tokens=64, seed=1, concatenate=1.0)
    lengths = [len(row) for _ in range(len(batches.order)) for row in sides(next(batches))[0]]
    assert sum(lengths) == src.starts[-1] + len(lengths)  # one EOS each, nothing is lost
    assert set(lengths) == {7, 41, 44}
    assert lengths.count(41) + lengths.count(44) == 50


@pytest.mark.parametrize("concatenate", [0.0, 0.5])
def test_going_on_from_a_saved_position_equals_never_stopping(concatenate: float) -> None:
    settings = {"batch_tokens": 150, "seed": 3, "concatenate": concatenate}
    whole = TrainingBatches(*corpus(), **settings)
    stream = [next(whole).src.tolist() for _ in range(3 * len(whole.order))]
    for stop in (0, 1, len(whole.order), len(whole.order) + 2):
        part = TrainingBatches(*corpus(), **settings)
        for _ in range(stop):
            next(part)
        later = TrainingBatches(*corpus(), **settings)
        later.load_state_dict(part.state_dict())
        assert [next(later).src.tolist() for _ in range(5)] == stream[stop : stop + 5]


def test_resampled_batches_go_on_from_a_saved_position_and_differ_from_epoch_to_epoch() -> None:
    def noise(sentences: list, seed: int) -> list[list[int]]:
        """The tokens again, with one that tells the seed."""
        return [[*sentence, 4 + seed % 1_000] for sentence in sentences]

    def stream() -> TrainingBatches:
        return TrainingBatches(*corpus(), batch_tokens=150, seed=3, resample=(noise, noise))

    plain, whole = TrainingBatches(*corpus(), batch_tokens=150, seed=3), stream()
    count = len(whole.order)
    drawn = [next(whole) for _ in range(2 * count)]
    for with_noise in drawn:  # the same pairs, in the same order
        assert with_noise.src[:, 0].tolist() == next(plain).src[:, 0].tolist()

    def marks(sides: list[torch.Tensor]) -> list[int]:
        return [side[0][side[0].tolist().index(EOS, 1) - 1].item() for side in sides]

    src, tgt = marks([b.src for b in drawn]), marks([b.tgt_out for b in drawn])
    assert len(set(src)) > count  # each batch of each epoch draws anew
    assert sum(s != t for s, t in zip(src, tgt, strict=True)) > count  # and so does each side
    later = stream()
    part = stream()
    for _ in range(count + 2):
        next(part)
    later.load_state_dict(part.state_dict())
    assert torch.equal(next(later).src, drawn[count + 2].src)


def test_the_order_of_a_seed_never_changes() -> None:
    """As it was before epochs had windows: published results and old checkpoints rest on it."""
    batches = TrainingBatches(*corpus(), batch_tokens=150, seed=3)
    order = hashlib.sha256(repr([epoch(batches), epoch(batches)]).encode()).hexdigest()
    assert order[:16] == "5b0d4b3afa6b1935"


@pytest.fixture
def four_windows(monkeypatch: pytest.MonkeyPatch) -> TrainingBatches:
    """Of 200 pairs."""
    monkeypatch.setattr(batching, "WINDOW", 60)
    return TrainingBatches(*corpus(), batch_tokens=150, seed=3)


def windows(batches: TrainingBatches) -> list[list[list[int]]]:
    """The first source tokens of each batch of each window of the next epoch."""
    found: dict[int, list[list[int]]] = {}
    while len(found) < batches.windows or batches.position < len(batches.order):
        tokens = next(batches).src[:, 0].tolist()
        found.setdefault(batches.window, []).append(tokens)
    return list(found.values())


def test_windows_of_an_epoch_are_of_one_size_and_hold_each_pair_once(
    four_windows: TrainingBatches,
) -> None:
    for _ in range(2):
        pairs = [[i for batch in window for i in batch] for window in windows(four_windows)]
        assert [len(window) for window in pairs] == [50, 50, 50, 50]
        assert sorted(i for window in pairs for i in window) == list(range(10, 210))


def test_each_window_has_other_pairs_in_each_epoch_the_same_for_a_seed(
    four_windows: TrainingBatches,
) -> None:
    first, second = windows(four_windows), windows(four_windows)
    for one, other in zip(first, second, strict=True):
        assert {i for batch in one for i in batch} != {i for batch in other for i in batch}
    again = TrainingBatches(*corpus(), batch_tokens=150, seed=3)
    assert [windows(again), windows(again)] == [first, second]
    lengths = [np.diff([len(batch) for batch in window]) for window in first]
    assert all((steps < 0).any() and (steps > 0).any() for steps in lengths)  # not by length


def test_going_on_from_any_window_equals_never_stopping(four_windows: TrainingBatches) -> None:
    saved, stream = [], []
    while four_windows.epoch < 2:
        saved.append(four_windows.state_dict())
        stream.append(next(four_windows).src.tolist())
    assert {(state["epoch"], state["window"]) for state in saved} > {(0, 0), (0, 3), (1, 3)}
    for number, state in enumerate(saved[:-5]):
        later = TrainingBatches(*corpus(), batch_tokens=150, seed=3)
        later.load_state_dict(state)
        assert [next(later).src.tolist() for _ in range(5)] == stream[number : number + 5]


def test_a_position_from_before_there_were_windows_is_refused_if_there_are_several(
    four_windows: TrainingBatches,
) -> None:
    with pytest.raises(ValueError, match="older than the order"):
        four_windows.load_state_dict({"epoch": 0, "position": 1})


@pytest.mark.parametrize("state", [(0, 0, 10_000), (0, 4, 0), (0, -1, 0), (0, 0, -1)])
def test_a_position_that_is_not_of_this_text_is_refused(
    state: tuple[int, int, int], four_windows: TrainingBatches
) -> None:
    with pytest.raises(ValueError, match="has the training text changed"):
        four_windows.load_state_dict(dict(zip(("epoch", "window", "position"), state, strict=True)))


def test_another_text_is_not_gone_on_with_even_if_it_has_as_many_batches() -> None:
    src, tgt = corpus()
    state = TrainingBatches(src, tgt, batch_tokens=150, seed=3).state_dict()
    TrainingBatches(src, tgt, batch_tokens=120, seed=3).load_state_dict(state)  # the same text
    longer = TokenArray([[*tgt[i], 9] if i == 5 else tgt[i] for i in range(len(tgt))])
    with pytest.raises(ValueError, match=r"had [\d,]+ tgt_tokens, and now has .* run of its own"):
        TrainingBatches(src, longer, batch_tokens=150, seed=3).load_state_dict(state)
    more = [TokenArray([*(side[i] for i in range(len(side))), [5]]) for side in (src, tgt)]
    with pytest.raises(ValueError, match=r"training text has changed: it had [\d,]+ pairs"):
        TrainingBatches(*more, batch_tokens=150, seed=3).load_state_dict(state)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(1, 30), max_size=8))
def test_however_often_it_is_interrupted_an_epoch_holds_each_pair_once_in_the_same_order(
    lives: list[int],
) -> None:
    """lives: the batches made by each process that went on from what the one before had saved."""
    whole = epoch(TrainingBatches(*corpus(), batch_tokens=150, seed=3))
    saved, seen = {"epoch": 0, "position": 0}, []
    for batches_made in [*lives, len(whole)]:
        life = TrainingBatches(*corpus(), batch_tokens=150, seed=3)
        life.load_state_dict(saved)
        seen += [next(life).src[:, 0].tolist() for _ in range(batches_made)]
        saved = life.state_dict()
    assert seen[: len(whole)] == whole
    assert sorted(i for batch in whole for i in batch) == list(range(10, 210))


@pytest.mark.parametrize("count", [1, 2, 3, 50])
def test_shares_hold_each_row_of_a_batch_once(count: int) -> None:
    batch = next(TrainingBatches(*corpus(), batch_tokens=150, seed=3))
    shares = [batch.share(number, count) for number in range(count)]
    for side in ("src", "tgt_in", "tgt_out"):
        rows = [row for share in shares for row in getattr(share, side).tolist()]
        assert sorted(rows) == sorted(getattr(batch, side).tolist())
    assert sum(share.tgt_tokens for share in shares) == batch.tgt_tokens
    assert max(len(share.src) for share in shares) - min(len(share.src) for share in shares) <= 1


def test_batches_keep_within_the_budget_and_waste_little() -> None:
    batches = TrainingBatches(*corpus(2000), batch_tokens=600, seed=1)
    real = padded = 0
    for _ in range(len(batches.order)):
        batch = next(batches)
        for side in (batch.src, batch.tgt_out):
            assert side.numel() <= 600
            assert side.size(1) % LENGTH_STEP == 0
            real += int((side != PAD).sum())
            padded += side.numel()
    assert real / padded > 0.75


def test_a_corpus_smaller_than_a_batch_is_one_batch() -> None:
    batches = TrainingBatches(*corpus(3), batch_tokens=100_000, seed=1)
    assert len(batches.order) == 1 and len(next(batches).src) == 3


def test_pairs_longer_than_a_batch_are_left_out_and_counted(caplog) -> None:
    src, tgt = TokenArray([[5] * 3, [5] * 50]), TokenArray([[5] * 3, [5] * 2])
    batches = TrainingBatches(src, tgt, batch_tokens=20, seed=1)
    assert sum(len(order) for order in batches.order) == 1
    assert "1 training pairs are longer" in caplog.text
    with pytest.raises(ValueError, match="batch_tokens=8"):
        TrainingBatches(TokenArray([[5] * 9]), TokenArray([[5]]), batch_tokens=8, seed=1)


def test_evaluation_sees_every_pair_once() -> None:
    src, tgt = corpus()
    seen = [i for batch in evaluation_batches(src, tgt, 100) for i in batch.src[:, 0].tolist()]
    assert sorted(seen) == list(range(10, 210))


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=60), st.integers(40, 400))
def test_groups_hold_every_sentence_once_within_the_budget(lengths: list[int], budget: int) -> None:
    groups = by_length(np.array(lengths)[:, None], budget)
    assert sorted(np.concatenate(groups).tolist()) == list(range(len(lengths)))
    for group in groups:
        longest = max(lengths[i] for i in group)
        assert -(-longest // LENGTH_STEP) * LENGTH_STEP * len(group) <= budget


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=80),
    st.integers(4, 400),
)
def test_groups_are_as_large_as_the_budget_allows(
    lengths: list[tuple[int, int]], budget: int
) -> None:
    """Against taking one sentence after the other, as long as they fit."""
    padded = [[-(-side // LENGTH_STEP) * LENGTH_STEP for side in pair] for pair in lengths]
    order = sorted(range(len(lengths)), key=lambda i: (padded[i][1], padded[i][0]))
    expected = []
    while order:
        rows = 1
        while rows < len(order) and max(max(padded[i]) for i in order[: rows + 1]) * (
            rows + 1
        ) <= budget:  # fmt: skip
            rows += 1
        rows = rows - rows % ROWS_STEP if rows > ROWS_STEP else rows
        expected.append(order[:rows])
        order = order[rows:]
    assert [group.tolist() for group in by_length(np.array(lengths), budget)] == expected


def test_padding_rounds_lengths_up() -> None:
    assert torch.equal(pad([[5], [6, 7, 8]], 4), torch.tensor([[5, 0, 0, 0], [6, 7, 8, 0]]))
