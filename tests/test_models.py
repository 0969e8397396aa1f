"""The contract of models/seq2seq.py, held by every architecture in configs/model."""

import math

import pytest
import torch
from architectures import CONFIGS, IDS, NAMES, VARIANTS, VOCABULARY, config, small
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from torch import nn

from models import checkpoint, recurrent
from models.attention import MultiHeadAttention, sinusoids
from models.seq2seq import ALIGNMENT, Seq2Seq, masked_softmax

every_architecture = pytest.mark.parametrize("name, options", VARIANTS, ids=IDS)


def sentences(lengths: list[int], seed: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    """Random source tokens and their mask, padded to the longest."""
    generator = torch.Generator().manual_seed(seed)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    src = torch.randint(4, VOCABULARY, mask.shape, generator=generator)
    return src.masked_fill(~mask, 0), mask


def targets(rows: int, length: int) -> torch.Tensor:
    return torch.randint(4, VOCABULARY, (rows, length), generator=torch.Generator().manual_seed(2))


def close(a: torch.Tensor, b: torch.Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@every_architecture
def test_reading_at_once_equals_token_by_token(name: str, options: dict) -> None:
    model = small(name, **options)
    (src, mask), tgt = sentences([5, 3, 7]), targets(3, 6)
    whole = model(src, mask, tgt)
    state, logits, alignments = model.encode(src, mask), [], []
    for token in tgt.split(1, dim=1):
        step = model.decode(token, state)
        state = step.state
        logits.append(step.logits)
        alignments.append(step.alignment)
    close(torch.cat(logits, 1), whole.logits)
    if whole.alignment is not None:
        close(torch.cat(alignments, 1), whole.alignment)
    close(model.decode(tgt[:, 2:], model.decode(tgt[:, :2], model.encode(src, mask)).state).logits,
          whole.logits[:, 2:])  # fmt: skip


@every_architecture
def test_padding_changes_nothing(name: str, options: dict) -> None:
    model = small(name, **options)
    (src, mask), tgt = sentences([4]), targets(1, 5)
    padded = torch.cat([src, torch.zeros(1, 9, dtype=torch.long)], 1)
    plain, wide = model(src, mask, tgt), model(padded, padded != 0, tgt)
    close(wide.logits, plain.logits)
    if plain.alignment is not None:
        close(wide.alignment[:, :, :4], plain.alignment)


@every_architecture
def test_batch_mates_change_nothing(name: str, options: dict) -> None:
    model = small(name, **options)
    (src, mask), tgt = sentences([5, 2, 7, 1]), targets(4, 6)
    together = model(src, mask, tgt).logits
    for row, length in enumerate([5, 2, 7, 1]):
        alone = model(src[row : row + 1, :length], mask[row : row + 1, :length], tgt[row : row + 1])
        close(alone.logits, together[row : row + 1])


@every_architecture
def test_selected_rows_go_on_as_they_would_have(name: str, options: dict) -> None:
    model = small(name, **options)
    (src, mask), tgt = sentences([5, 2, 7]), targets(3, 6)
    rows = torch.tensor([2, 0, 0, 2, 1])
    state = model.decode(tgt[:, :3], model.encode(src, mask)).state.select(rows)
    close(model.decode(tgt[rows, 3:], state).logits, model(src, mask, tgt).logits[rows, 3:])


@every_architecture
def test_alignment_rows_sum_to_one_and_are_zero_on_padding(name: str, options: dict) -> None:
    src, mask = sentences([5, 1, 7])
    alignment = small(name, **options)(src, mask, targets(3, 4)).alignment
    if alignment is None:
        assert name == "rnn"  # the one architecture that has none, by design
        return
    assert alignment.shape == (3, 4, 7)
    close(alignment.sum(-1), torch.ones(3, 4))
    assert alignment.masked_select(~mask.unsqueeze(1).expand_as(alignment)).eq(0).all()


@every_architecture
def test_attention_maps_are_distributions_over_what_may_be_seen(name: str, options: dict) -> None:
    (src, mask), tgt = sentences([5, 1, 7]), targets(3, 4)
    model = small(name, **options)
    maps = model.attention_maps(src, mask, tgt)
    assert (ALIGNMENT in maps) == (model(src, mask, tgt).alignment is not None)
    read = torch.ones(3, 4, dtype=torch.bool)
    visible = {"source": mask, "target": read, "both": torch.cat([mask, read], 1)}
    for weights, queries, keys in maps.values():
        assert weights.shape[0] == 3 and weights.dim() == 5
        assert weights.shape[-2:] == (visible[queries].size(1), visible[keys].size(1))
        close(weights.sum(-1), torch.ones(weights.shape[:-1]))
        unseen = ~visible[keys][:, None, None, None, :].expand_as(weights)
        assert weights.masked_select(unseen).eq(0).all()


@pytest.mark.parametrize("layer", [1, 2])
def test_the_alignment_of_a_transformer_is_the_mean_over_one_layers_heads(layer: int) -> None:
    (src, mask), tgt = sentences([5, 3]), targets(2, 4)
    model = small("transformer", alignment_layer=layer)
    weights = model.attention_maps(src, mask, tgt)[ALIGNMENT].weights
    assert weights.shape == (2, 2, 2, 4, 5)  # batch, layers, heads, target, source
    close(weights[:, layer - 1].mean(1), model(src, mask, tgt).alignment)


@every_architecture
def test_a_source_without_any_token_stays_finite(name: str, options: dict) -> None:
    src = torch.zeros(2, 3, dtype=torch.long)
    src[0] = 5
    assert small(name, **options)(src, src != 0, targets(2, 3)).logits.isfinite().all()


@every_architecture
def test_every_parameter_gets_a_gradient(name: str, options: dict) -> None:
    model = small(name, **options).train()
    (src, mask), tgt = sentences([5, 3]), targets(2, 6)
    model(src, mask, tgt).logits.square().sum().backward()
    without = [n for n, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert without == []


@every_architecture
def test_the_future_does_not_leak(name: str, options: dict) -> None:
    model = small(name, **options)
    (src, mask), tgt = sentences([5]), targets(1, 6)
    changed = tgt.clone()
    changed[:, 3:] = (changed[:, 3:] - 3) % 7 + 4
    close(model(src, mask, changed).logits[:, :3], model(src, mask, tgt).logits[:, :3])


@every_architecture
def test_a_checkpoint_rebuilds_the_same_model(name: str, options: dict, tmp_path) -> None:
    model = small(name, **options)
    content = {
        "model": config(name, **options),
        "vocabularies": [VOCABULARY] * 2,
        "digests": ["a", "b"],
    }
    checkpoint.save(tmp_path / "a.pt", {**content, "weights": model.state_dict()})
    again = checkpoint.restore([tmp_path / "a.pt"], ["a", "b"])
    (src, mask), tgt = sentences([5, 3]), targets(2, 6)
    assert torch.equal(again(src, mask, tgt).logits, model(src, mask, tgt).logits)
    assert not again.training


def test_the_default_models_have_about_as_many_parameters() -> None:
    def parameters(name: str) -> int:
        whole = compose("train", [f"model={name}"])
        settings = OmegaConf.to_container(whole.model, resolve=True)
        model: Seq2Seq = checkpoint.build(settings, 4000, 4000)
        return sum(p.numel() for p in model.parameters())

    with initialize_config_dir(str(CONFIGS.parent), version_base="1.3"):
        counts = {name: parameters(name) for name in NAMES}
    assert max(counts.values()) <= 1.1 * min(counts.values()), counts


@pytest.mark.parametrize("name", NAMES)
def test_impossible_sizes_are_refused_in_words(name: str) -> None:
    settings = config(name)
    checkpoint.build(settings | {"dropout": 0}, 5, 5)  # is none
    sizes = [key for key, value in settings.items() if type(value) is int]
    assert len(sizes) >= 2
    for size in sizes:
        for number in (-4, 0, 10**6):
            with pytest.raises(ValueError, match=rf"^model\.{size} must be from 1 to 100,000, not"):
                checkpoint.build(settings | {size: number}, 5, 5)


def test_rnn_keeps_one_vector_of_the_source_whatever_its_length() -> None:
    model = small("rnn")
    for length in (1, 40):
        src, mask = sentences([length])
        assert model.encode(src, mask).context.shape == (1, 16)


def test_reading_backwards_equals_reading_a_reversed_sentence() -> None:
    src, mask = sentences([6])
    backwards, forwards = small("rnn", reverse_source=True), small("rnn")
    close(backwards.encode(src, mask).context, forwards.encode(src.flip(1), mask).context)


@torch.no_grad()
def test_bahdanau_equals_the_equations_written_out() -> None:
    """Appendix A of the paper, word by word with plain sums, for one sentence."""
    model = small("bahdanau")
    (src, mask), tgt = sentences([4]), targets(1, 3)
    state = model.encode(src, mask)
    h, size = state.annotations[0], 16
    weights = dict(model.named_parameters())
    both = nn.GRU(12, size, bidirectional=True)  # A.2.1
    for suffix, layer in (("", model.forwards), ("_reverse", model.backwards)):
        for name, parameter in layer.named_parameters():
            getattr(both, name + suffix).copy_(parameter)
    close(h, both(weights["src_embedding.weight"][src[0]])[0])
    first, bias = weights["initial.project.weight"], weights["initial.project.bias"]
    close(state.hidden[0][0], torch.tanh(first @ h[0, size:] + bias))
    w_gates, b_gates = weights["state_to_gates.weight"], weights["state_to_gates.bias"]
    s, expected, logits = state.hidden[0][0], [], []
    for y in tgt[0]:
        e = weights["tgt_embedding.weight"][y]
        from_state = w_gates @ s + b_gates
        query = from_state[3 * size :]
        scores = [
            (weights["v_a.weight"][0] @ torch.tanh(query + weights["U_a.weight"] @ h_j)).item()
            for h_j in h
        ]
        exponentials = [math.exp(score) for score in scores]
        alpha = torch.tensor([x / sum(exponentials) for x in exponentials])
        expected.append(alpha)
        c = sum(a * h_j for a, h_j in zip(alpha, h, strict=True))
        x = weights["embedding_to_gates.weight"] @ e + weights["embedding_to_gates.bias"]
        x = x + weights["context_to_gates.weight"] @ c
        r = torch.sigmoid(x[:size] + from_state[:size])
        z = torch.sigmoid(x[size : 2 * size] + from_state[size : 2 * size])
        proposal = torch.tanh(x[2 * size :] + r * from_state[2 * size : 3 * size])
        s = (1 - z) * s + z * proposal
        t = weights["output.combine.weight"] @ torch.cat([s, e, c]) + weights["output.combine.bias"]
        t = torch.tensor(
            [max(pair) for pair in zip(t[::2].tolist(), t[1::2].tolist(), strict=True)]
        )
        logits.append(weights["output.W_o.weight"] @ t + weights["output.W_o.bias"])
    decoded = model.decode(tgt, state)
    close(decoded.alignment[0], torch.stack(expected))
    close(decoded.logits[0], torch.stack(logits))
    close(decoded.state.hidden[0][0], s)


@torch.no_grad()
def test_bahdanau_s_gates_are_those_of_torch_s_own_cells() -> None:
    for cell, reference in (("gru", nn.GRUCell(5, 16)), ("lstm", nn.LSTMCell(5, 16))):
        model = small("bahdanau", cell=cell)
        x, hidden = (
            torch.randn(3, 5),
            tuple(torch.randn(3, 16) for _ in range(1 + (cell == "lstm"))),
        )
        from_input = nn.functional.linear(x, reference.weight_ih, reference.bias_ih)
        from_state = nn.functional.linear(hidden[0], reference.weight_hh, reference.bias_hh)
        if cell == "gru":  # torch keeps the share z of the old state, the paper 1 - z
            for projection in (from_input, from_state):
                projection[:, 16:32] *= -1
            close(model._step(from_input, from_state, hidden)[0], reference(x, hidden[0]))
        else:  # torch orders the gates i, f, g, o
            i, f, g, o = from_input.chunk(4, -1)
            j, k, p, q = from_state.chunk(4, -1)
            ours = model._step(torch.cat([i, f, o, g], -1), torch.cat([j, k, q, p], -1), hidden)
            for a, b in zip(ours, reference(x, hidden), strict=True):
                close(a, b)


def test_recurrent_layers_are_left_to_autocast_on_processors_that_can_and_on_no_gpu(
    monkeypatch,
) -> None:
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    for able in (True, False):
        monkeypatch.setattr(recurrent, "BF16_LSTM", able)
        assert [recurrent.autocast_works(cell, cpu) for cell in ("gru", "lstm")] == [True, able]
        assert not any(recurrent.autocast_works(cell, gpu) for cell in ("gru", "lstm"))


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_where_autocast_does_not_do_recurrent_layers_are_in_float32(cell, monkeypatch) -> None:
    monkeypatch.setattr(recurrent, "autocast_works", lambda cell, device: False)
    torch.manual_seed(4)
    layers = recurrent.recurrent_layers(cell, 6, 8, 2, 0.0)
    x, h = torch.randn(3, 5, 6), torch.randn(2, 3, 8)
    hidden = h if cell == "gru" else (h, torch.randn(2, 3, 8))
    found = []
    for enabled in (False, True):
        layers.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            outputs, after = layers(x, hidden)
        outputs.sum().backward()
        found.append([outputs, *after, *(p.grad for p in layers.parameters())])
    for plain, under_autocast in zip(*found, strict=True):
        assert torch.equal(plain, under_autocast)
    layers(x.bfloat16())  # of what another layer gave in bfloat16


def test_multi_head_attention_equals_torch_s_own() -> None:
    torch.manual_seed(3)
    ours, theirs = MultiHeadAttention(12, 3), nn.MultiheadAttention(12, 3, batch_first=True)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.W_q.weight, ours.W_kv.weight]))
        theirs.in_proj_bias.copy_(torch.cat([ours.W_q.bias, ours.W_kv.bias]))
        theirs.out_proj.load_state_dict(ours.W_o.state_dict())
    x, memory = torch.randn(2, 4, 12), torch.randn(2, 6, 12)
    mask = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    result, weights = ours(x, ours.keys_values(memory), mask[:, None, None, :])
    expected, expected_weights = theirs(
        x, memory, memory, key_padding_mask=~mask, average_attn_weights=False
    )
    close(result, expected)
    close(weights, expected_weights)


def test_positions_follow_section_3_5() -> None:
    encodings = sinusoids(2, 3, torch.zeros(1, 6))
    for row, position in enumerate((2, 3, 4)):
        for i in range(3):
            angle = position / 10000 ** (2 * i / 6)
            assert encodings[row, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert encodings[row, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_masked_softmax_is_exactly_zero_off_the_mask_and_finite_without_one() -> None:
    mask = torch.tensor([[True, False, True], [False, False, False]])
    weights = masked_softmax(torch.tensor([[1.0, 50.0, 2.0], [1.0, 2.0, 3.0]]), mask)
    assert weights[0, 1] == 0
    assert weights[0].tolist() == pytest.approx([1 / (1 + math.e), 0, math.e / (1 + math.e)])
    assert weights[1].isfinite().all()


def test_tying_everything_shares_one_matrix_and_needs_one_vocabulary() -> None:
    model = checkpoint.build(config("transformer", tied="all"), 9, 9)
    assert model.output.weight is model.src_embedding.weight is model.tgt_embedding.weight
    with pytest.raises(ValueError, match="shared=true"):
        checkpoint.build(config("transformer", tied="all"), 9, 8)
