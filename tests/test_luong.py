"""models/luong.py against its equations, written out with plain loops over numbers."""

import math

import pytest
import torch
from architectures import VOCABULARY, config, small
from torch import Tensor, nn

from models import checkpoint
from models.luong import Luong

BOTH_WAYS = pytest.mark.parametrize("input_feeding", [False, True], ids=["plain", "fed"])
SCORES = [("dot", False), ("general", False), ("general", True), ("concat", True)]


def pair(src_len: int = 5, tgt_len: int = 4, padding: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """A source with its mask and padding, and a target, for a batch of two."""
    generator = torch.Generator().manual_seed(3)
    src = torch.randint(4, VOCABULARY, (2, src_len), generator=generator)
    src = torch.cat([src, torch.zeros(2, padding, dtype=torch.long)], dim=1)
    return src, src != 0, torch.randint(4, VOCABULARY, (2, tgt_len), generator=generator)


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def score(model: Luong, h: Tensor, source: Tensor) -> float:
    """score(h_t, h̄_s) of section 3.1, one number at a time."""
    size = len(h)
    if model.score == "dot":
        return sum(h[i].item() * source[i].item() for i in range(size))
    matrix = model.W_a.weight
    if model.score == "general":
        return sum(
            h[i].item() * matrix[i, j].item() * source[j].item()
            for i in range(size)
            for j in range(len(source))
        )
    both, both_weights = torch.cat([h, source]), torch.cat([model.U_a.weight, matrix], dim=1)
    return sum(
        model.v_a.weight[0, i].item() * math.tanh((both_weights[i] @ both).item())
        for i in range(size)
    )


def attend(model: Luong, h: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
    """a_t by eq. (7) and the attentional state by eq. (5), for one position of one sentence."""
    exponentials = [math.exp(score(model, h, source)) for source in memory]
    weights = [e / sum(exponentials) for e in exponentials]
    context = sum(a * source for a, source in zip(weights, memory, strict=True))
    x = model.W_c.weight @ torch.cat([context, h])
    spread = math.sqrt(((x - x.mean()) ** 2).mean().item() + model.norm.eps)
    return torch.tensor(weights), torch.tanh(
        (x - x.mean()) / spread * model.norm.weight + model.norm.bias
    )


def cells(stack: nn.RNNBase) -> list[nn.Module]:
    """The layers of a stack as torch's single steps."""
    kind = {"GRU": nn.GRUCell, "LSTM": nn.LSTMCell}[stack.mode]
    steps = []
    for layer in range(stack.num_layers):
        step = kind(stack.input_size if layer == 0 else stack.hidden_size, stack.hidden_size)
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            setattr(step, name, getattr(stack, f"{name}_l{layer}"))
        steps.append(step)
    return steps


@torch.no_grad()
@BOTH_WAYS
@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize("kind, bidirectional", SCORES)
def test_it_equals_the_equations_written_out(
    kind: str, bidirectional: bool, cell: str, input_feeding: bool
) -> None:
    model = small(
        "luong", score=kind, bidirectional=bidirectional, cell=cell, input_feeding=input_feeding
    )
    src, mask, tgt = pair()
    start, found = model.encode(src, mask), model(src, mask, tgt)
    for row in range(2):
        memory = start.memory[row, :5]  # without the padding
        hidden = [[part[row, layer] for part in start.hidden] for layer in range(2)]
        fed = torch.zeros(16)
        for t, token in enumerate(tgt[row]):
            h = model.tgt_embedding.weight[token]
            if input_feeding:
                h = torch.cat([h, fed])
            for layer, step in enumerate(cells(model.decoder)):
                before = hidden[layer]
                after = step(h, before[0] if cell == "gru" else tuple(before))
                hidden[layer] = [after] if cell == "gru" else list(after)
                h = hidden[layer][0]
            weights, fed = attend(model, h, memory)
            close(found.alignment[row, t, :5], weights)
            close(found.logits[row, t], model.W_s.weight @ fed + model.W_s.bias)  # eq. (6)


@torch.no_grad()
def test_the_source_states_are_those_of_torch_s_own_bidirectional_layer() -> None:
    model = small("luong", cell="gru")
    src, mask, _ = pair(padding=0)
    both = nn.GRU(12, 16, batch_first=True, bidirectional=True)
    for suffix, stack in (("", model.forwards), ("_reverse", model.backwards)):
        for name, parameter in stack.named_parameters():
            getattr(both, name + suffix).copy_(parameter)
    close(model.encode(src, mask).memory, both(model.src_embedding(src))[0])


@torch.no_grad()
def test_only_with_input_feeding_what_was_found_enters_the_recurrent_layers() -> None:
    src, mask, tgt = pair()
    for input_feeding in (False, True):
        model = small("luong", input_feeding=input_feeding)
        before = model(src, mask, tgt).state.hidden
        model.W_c.weight.mul_(-1)  # other attentional states
        after = model(src, mask, tgt).state.hidden
        assert torch.equal(before[0], after[0]) != input_feeding


@torch.no_grad()
def test_input_feeding_reads_nothing_at_the_first_position() -> None:
    model = small("luong", input_feeding=True)
    src, mask, tgt = pair()
    first = model.decode(tgt[:, :1], model.encode(src, mask))
    model.W_c.weight.mul_(-1)
    again = model.decode(tgt[:, :1], model.encode(src, mask))
    assert torch.equal(first.state.hidden[0], again.state.hidden[0])
    assert not torch.equal(first.state.fed, again.state.fed)


@torch.no_grad()
def test_the_norm_keeps_the_attentional_state_from_saturating() -> None:
    model = small("luong")
    src, mask, tgt = pair()
    model.W_c.weight.mul_(100)  # so large that the norm's epsilon does not count
    before = model(src, mask, tgt).state.fed
    model.W_c.weight.mul_(100)
    close(model(src, mask, tgt).state.fed, before)


def test_dot_is_refused_where_the_sizes_differ() -> None:
    with pytest.raises(ValueError, match=r"score=dot .* model\.bidirectional=false"):
        checkpoint.build(config("luong", score="dot", bidirectional=True), 9, 9)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"score": "location"}, "dot, general or concat, not 'location'"),
        ({"cell": "rnn"}, "gru or lstm, not 'rnn'"),
        ({"encoder_layers": 0}, "from 1 to 100,000, not 0"),
        ({"decoder_layers": 0}, "from 1 to 100,000, not 0"),
    ],
)
def test_what_it_cannot_be_is_refused_in_words(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        checkpoint.build(config("luong", **options), 9, 9)
