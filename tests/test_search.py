"""Beam search against greedy and exhaustive search, for every architecture."""

import itertools
import math
from dataclasses import dataclass

import pytest
import torch
from architectures import NAMES, VOCABULARY, small

from data.tokenizer import BOS, EOS, PAD
from decoding.search import beam_search, largest, length_penalty_of
from decoding.translator import search_with
from models.seq2seq import DecoderState, Decoding, Seq2Seq

every_architecture = pytest.mark.parametrize("name", NAMES)
SRC = torch.tensor([[5, 4, 5, 3], [4, 3, 0, 0], [6, 6, 3, 0]])


def search(model: Seq2Seq, src: torch.Tensor, *, beam_size: int, max_len: int, alpha: float = 1.0):
    limits = torch.full((len(src),), max_len)
    return beam_search(
        model, src, src != PAD, beam_size=beam_size, length_penalty=alpha, max_len=limits
    )


def log_prob(model: Seq2Seq, src: torch.Tensor, tokens: list[int]) -> float:
    """The sum of the tokens' log-probabilities by teacher forcing; src: (1, src_len), unpadded."""
    logits = model(src, src != PAD, torch.tensor([[BOS, *tokens[:-1]]])).logits
    chosen = logits.log_softmax(-1)[0].gather(1, torch.tensor(tokens).unsqueeze(1))
    return chosen.sum().item()


def unpadded(row: torch.Tensor) -> torch.Tensor:
    return row[row != PAD].unsqueeze(0)


@every_architecture
def test_a_beam_of_one_equals_the_argmax_loop(name: str) -> None:
    for seed in range(5):
        model = small(name, seed=seed)
        found = search(model, SRC, beam_size=1, max_len=9)
        for row, hypotheses in zip(SRC, found, strict=True):
            src = unpadded(row)
            state, token, expected = model.encode(src, src != PAD), BOS, []
            while len(expected) < 9:
                step = model.decode(torch.tensor([[token]]), state)
                state = step.state
                scores = step.logits[0, -1].clone()
                scores[[PAD, BOS]] = -torch.inf
                token = scores.argmax().item()
                if token == EOS:
                    break
                expected.append(token)
            assert hypotheses[0].tokens == expected


@every_architecture
def test_a_wide_beam_equals_exhaustive_search(name: str) -> None:
    limit = 4
    for seed in range(3):
        model = small(name, vocabulary=6, seed=seed)
        found = search(model, SRC[:2].clamp(max=5), beam_size=200, max_len=limit)
        for row, hypotheses in zip(SRC[:2].clamp(max=5), found, strict=True):
            scores = {}
            for length in range(limit):
                for tokens in itertools.product((1, 4, 5), repeat=length):  # all but PAD, BOS, EOS
                    total = log_prob(model, unpadded(row), [*tokens, EOS])
                    scores[tokens] = total / length_penalty_of(length + 1, 1.0)
            best = sorted(scores.items(), key=lambda item: -item[1])
            assert len(hypotheses) == len(scores)
            for hypothesis, (_, score) in zip(hypotheses[:10], best, strict=False):
                assert hypothesis.score == pytest.approx(score, abs=1e-4)
            assert tuple(hypotheses[0].tokens) == best[0][0]


@every_architecture
def test_scores_can_be_recomputed_from_the_tokens(name: str) -> None:
    model = small(name, seed=7)
    for row, hypotheses in zip(
        SRC, search(model, SRC, beam_size=4, max_len=6, alpha=0.7), strict=True
    ):
        for h in hypotheses:
            tokens = h.tokens if h.length_capped else [*h.tokens, EOS]
            assert h.log_prob == pytest.approx(log_prob(model, unpadded(row), tokens), abs=1e-4)
            assert h.score == pytest.approx(h.log_prob / ((5 + len(tokens)) / 6) ** 0.7, abs=1e-5)
        assert [h.score for h in hypotheses] == sorted((h.score for h in hypotheses), reverse=True)


@every_architecture
def test_in_bfloat16_the_scores_are_nearly_those_of_float32(name: str) -> None:
    model = small(name, seed=7)
    with torch.autocast("cpu", torch.bfloat16):
        found = search(model, SRC, beam_size=4, max_len=6)
    differences = []
    for row, hypotheses in zip(SRC, found, strict=True):
        for h in hypotheses:
            tokens = h.tokens if h.length_capped else [*h.tokens, EOS]
            differences.append(abs(h.log_prob - log_prob(model, unpadded(row), tokens)))
    assert 0 < max(differences) < 0.2  # it was bfloat16, with its 8 bits for a logit


@every_architecture
def test_batch_mates_and_padding_do_not_change_what_is_found(name: str) -> None:
    model = small(name, seed=3)
    together = search(model, SRC, beam_size=3, max_len=8)
    for row, hypotheses in zip(SRC, together, strict=True):
        alone = search(model, unpadded(row), beam_size=3, max_len=8)[0]
        assert [h.tokens for h in alone] == [h.tokens for h in hypotheses]
        assert [h.score for h in alone] == pytest.approx([h.score for h in hypotheses], abs=1e-4)


def best_of_all(model: Seq2Seq, src: torch.Tensor, beam_size: int, limit: int) -> float:
    """The best log-probability that ends in a beam which is never stopped early; src: (1, length).

    One sentence, Python lists and the whole prefix read anew at each step.
    """
    beam, found = [((), 0.0)], [-math.inf]
    for _ in range(limit):
        continued = []
        for tokens, total in beam:
            logits = model(src, src != PAD, torch.tensor([[BOS, *tokens]])).logits[0, -1]
            for token, value in enumerate(logits.log_softmax(-1).tolist()):
                if token not in (PAD, BOS):
                    continued.append(((*tokens, token), total + value))
        continued.sort(key=lambda one: -one[1])
        found += [total for tokens, total in continued[:beam_size] if tokens[-1] == EOS]
        beam = [one for one in continued if one[0][-1] != EOS][:beam_size]
    return max(found)


@dataclass(frozen=True)
class Nothing(DecoderState):
    src_mask: torch.Tensor


class Table(Seq2Seq[Nothing]):
    """A model of which each token's probability depends on the one before it alone."""

    def __init__(self, chances: dict[int, dict[int, float]]) -> None:
        super().__init__()
        self.table = torch.full((7, 7), -torch.inf)
        for token, following in chances.items():
            self.table[token, list(following)] = torch.tensor(list(following.values())).log()

    def encode(self, src: torch.Tensor, src_mask: torch.Tensor) -> Nothing:
        return Nothing(src_mask)

    def decode(self, tgt: torch.Tensor, state: Nothing) -> Decoding[Nothing]:
        return Decoding(self.table[tgt], None, state)


def test_no_search_ends_while_a_better_translation_is_in_the_beam() -> None:
    a, b, c = 4, 5, 6
    model = Table(
        {BOS: {a: 0.5, EOS: 0.3, b: 0.2}, a: {c: 0.9, EOS: 0.1}, b: {EOS: 0.9, a: 0.1}}
        | {c: {EOS: 0.9, c: 0.1}, EOS: {EOS: 1.0}}
    )
    # after two steps the nothing (0.3) and b (0.18) have ended, but a c has 0.45
    found = search(model, torch.tensor([[a, EOS]]), beam_size=2, max_len=9, alpha=0.0)[0]
    assert found[0].tokens == [a, c]
    assert [math.exp(h.log_prob) for h in found] == pytest.approx([0.405, 0.3])


def test_a_prefix_may_still_win_by_the_length_that_its_end_adds() -> None:
    a, b, c = 4, 5, 6
    model = Table(
        {BOS: {a: 0.5, EOS: 0.26, b: 0.24}, a: {c: 0.46, a: 0.27, b: 0.27}}
        | {b: {EOS: 1.0}, c: {EOS: 1.0}, EOS: {EOS: 1.0}}
    )
    # after two steps the nothing (0.26) and b (0.24) have ended; a c (0.23) will have three tokens
    found = search(model, torch.tensor([[a, EOS]]), beam_size=2, max_len=9, alpha=1.0)[0]
    assert [h.tokens for h in found] == [[a, c], [b]]
    assert [h.score for h in found] == pytest.approx(
        [math.log(0.23) / (8 / 6), math.log(0.24) / (7 / 6)]
    )


@every_architecture
def test_a_beam_finds_what_one_of_python_lists_finds(name: str) -> None:
    for seed in range(2):
        model = small(name, seed=seed)
        found = search(model, SRC, beam_size=2, max_len=10, alpha=0.0)
        for row, hypotheses in zip(SRC, found, strict=True):
            expected = best_of_all(model, unpadded(row), beam_size=2, limit=10)
            if not hypotheses[0].length_capped:
                assert hypotheses[0].log_prob == pytest.approx(expected, abs=1e-4)


@every_architecture
def test_what_a_state_says_is_of_the_source_stays_as_it_is(name: str) -> None:
    model = small(name)
    start = model.encode(SRC, SRC != PAD).select(torch.tensor([0, 0, 1, 1, 2, 2]))
    state = model.decode(torch.tensor([[4], [5], [6], [7], [8], [9]]), start).state
    assert all(getattr(state, field) is getattr(start, field) for field in start.of_source)
    rows = torch.tensor([1, 0, 2, 2, 5, 4])  # each in the place of one with the same source
    next_token = torch.full((6, 1), 4)
    expected, found = (
        model.decode(next_token, state.select(rows, same_sources=same)).logits
        for same in (False, True)
    )
    assert torch.equal(expected, found)


@pytest.mark.parametrize("width", [1, 15, 16, 160, 1600, 1605])
def test_the_largest_values_are_those_that_sorting_finds(width: int) -> None:
    torch.manual_seed(width)
    values = torch.randn(7, width)
    values[3, : width // 2] = -torch.inf
    for count in (1, 2, 10):
        if count <= width:
            found, places = largest(values, count)
            assert torch.equal(found, values.sort(dim=1, descending=True).values[:, :count])
            assert torch.equal(values.gather(1, places), found)


@every_architecture
def test_there_is_always_a_result_at_the_length_limit(name: str) -> None:
    model = small(name)
    output = next(m for m in model.modules() if getattr(m, "out_features", 0) == VOCABULARY)
    with torch.no_grad():
        output.bias[EOS] = -1e4  # a model that never ends by itself
    for hypotheses in search(model, SRC, beam_size=3, max_len=5):
        assert all(h.length_capped and len(h.tokens) == 5 for h in hypotheses)
        assert len(hypotheses) == 3


@every_architecture
def test_nothing_comes_after_the_end_and_no_special_token_is_produced(name: str) -> None:
    for seed in range(4):
        for hypotheses in search(small(name, seed=seed), SRC, beam_size=5, max_len=8):
            for h in hypotheses:
                assert not {PAD, BOS, EOS} & set(h.tokens)


@every_architecture
def test_sentences_have_their_own_limits(name: str) -> None:
    model = small(name, seed=2)
    limits = torch.tensor([2, 7, 1])
    found = beam_search(model, SRC, SRC != PAD, beam_size=2, length_penalty=1.0, max_len=limits)
    for limit, hypotheses in zip(limits.tolist(), found, strict=True):
        assert all(len(h.tokens) + (not h.length_capped) <= limit for h in hypotheses)


def test_the_length_penalty_is_the_published_one() -> None:
    assert length_penalty_of(1, 0.6) == 1.0
    assert length_penalty_of(13, 1.0) == 3.0
    assert length_penalty_of(7, 0.5) == pytest.approx(math.sqrt(2))


def test_impossible_options_are_refused() -> None:
    with pytest.raises(ValueError, match="beam_size"):
        search_with(beam_size=0, length_penalty=1.0)
    with pytest.raises(ValueError, match="length_penalty"):
        search_with(beam_size=2, length_penalty=-1.0)
