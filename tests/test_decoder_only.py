"""models/decoder_only.py against one that has no cache: source and target as one sequence."""

import pytest
import torch
from architectures import VOCABULARY, config, small
from torch import Tensor, nn

from models import checkpoint
from models.attention import sinusoids
from models.decoder_only import DecoderOnly, on_source
from models.seq2seq import ALIGNMENT

every_prefix = pytest.mark.parametrize("prefix", ["full", "causal"])


def pair(src_len: int = 5, tgt_len: int = 4) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    src = torch.randint(4, VOCABULARY, (1, src_len), generator=generator)
    return src, torch.randint(4, VOCABULARY, (1, tgt_len), generator=generator)


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def visible(src_len: int, tgt_len: int, prefix: str) -> Tensor:
    """What each position of a whole row sees, said position by position."""
    length = src_len + tgt_len
    mask = torch.zeros(length, length, dtype=torch.bool)
    for query in range(length):
        for key in range(length):
            both_in_source = query < src_len and key < src_len
            mask[query, key] = key <= query or (prefix == "full" and both_in_source)
    return mask


def whole(model: DecoderOnly, src: Tensor, tgt: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Logits at the target, and each layer's weights, from torch's own encoder layers.

    Source and target go through the layers as one sequence, at once, the last layer included.
    """
    size = model.output.in_features
    sides = [(model.src_embedding, src), (model.tgt_embedding, tgt)]
    x = torch.cat(
        [
            table(tokens) * size**0.5 + language + sinusoids(0, tokens.size(1), language)
            for (table, tokens), language in zip(sides, model.language.weight, strict=True)
        ],
        dim=1,
    )
    unseen, attended = ~visible(src.size(1), tgt.size(1), model.prefix), []
    for layer in model.layers:
        ours = layer.attention
        theirs = nn.TransformerEncoderLayer(
            size,
            ours.heads,
            layer.feed_forward[0].out_features,
            dropout=0.0,
            batch_first=True,
            norm_first=layer.around[0].pre,
        )
        theirs.self_attn.in_proj_weight.copy_(torch.cat([ours.W_q.weight, ours.W_kv.weight]))
        theirs.self_attn.in_proj_bias.copy_(torch.cat([ours.W_q.bias, ours.W_kv.bias]))
        theirs.self_attn.out_proj.load_state_dict(ours.W_o.state_dict())
        theirs.linear1.load_state_dict(layer.feed_forward[0].state_dict())
        theirs.linear2.load_state_dict(layer.feed_forward[2].state_dict())
        theirs.norm1.load_state_dict(layer.around[0].norm.state_dict())
        theirs.norm2.load_state_dict(layer.around[1].norm.state_dict())
        h = theirs.norm1(x) if theirs.norm_first else x
        attended.append(theirs.self_attn(h, h, h, attn_mask=unseen, average_attn_weights=False)[1])
        x = theirs(x, src_mask=unseen)
    return model.output(model.norm(x))[:, src.size(1) :], attended


@torch.no_grad()
@every_prefix
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_it_equals_a_stack_that_reads_source_and_target_as_one_sequence(
    prefix: str, norm: str
) -> None:
    model = small("decoder_only", prefix=prefix, norm=norm, decoder_layers=3, alignment_layer=2)
    src, tgt = pair()
    logits, attended = whole(model, src, tgt)
    found = model(src, src != 0, tgt)
    close(found.logits, logits)
    maps = model.attention_maps(src, src != 0, tgt)
    weights, queries, keys = maps["self-attention"]
    assert (queries, keys) == ("both", "both")
    close(weights, torch.stack(attended, dim=1))
    to_source = torch.stack(attended, dim=1)[..., 5:, :5]  # batch, layers, heads, target, source
    close(maps[ALIGNMENT].weights, to_source / to_source.sum(-1, keepdim=True))
    mean = to_source[:, 1].mean(1)
    close(found.alignment, mean / mean.sum(-1, keepdim=True))


@torch.no_grad()
@every_prefix
def test_the_source_sees_nothing_of_the_target(prefix: str) -> None:
    model = small("decoder_only", prefix=prefix)
    src, tgt = pair()
    weights = model.attention_maps(src, src != 0, tgt)["self-attention"].weights
    assert weights[..., :5, 5:].eq(0).all()
    assert weights[..., 5:, :].masked_select(visible(5, 4, prefix)[5:]).gt(0).all()
    before = model.encode(src, src != 0)
    after = model.decode(tgt, before).state
    for (keys, values), (grown_keys, grown_values) in zip(before.past, after.past, strict=True):
        assert torch.equal(grown_keys[:, :, :5], keys)
        assert torch.equal(grown_values[:, :, :5], values)
        assert grown_keys.size(2) == grown_values.size(2) == 9


@torch.no_grad()
def test_a_full_prefix_reads_in_both_directions_and_a_causal_one_does_not() -> None:
    (src, _), changed = pair(), pair()[0].clone()
    changed[0, -1] = (changed[0, -1] - 3) % 7 + 4
    for prefix, same in (("full", False), ("causal", True)):
        model = small("decoder_only", prefix=prefix)
        (keys, _), (others, _) = (model.encode(s, s != 0).past[-1] for s in (src, changed))
        assert torch.allclose(keys[:, :, :-1], others[:, :, :-1]) is same


@torch.no_grad()
def test_one_table_for_both_languages_still_tells_them_apart() -> None:
    model = small("decoder_only", tied="all")
    tokens = torch.tensor([[5, 6]])
    assert model.src_embedding.weight is model.tgt_embedding.weight is model.output.weight
    source = model._embed(model.src_embedding, tokens, language=0, first=0)
    target = model._embed(model.tgt_embedding, tokens, language=1, first=0)
    assert not torch.allclose(source, target)


def test_the_share_on_the_source_sums_to_one_even_where_it_underflows() -> None:
    mask = torch.tensor([[True, True, False]])
    weights = torch.tensor([[[0.1, 0.3, 0.0, 0.6], [0.0, 0.0, 0.0, 1.0], [1e-38, 0.0, 0.0, 1.0]]])
    found = on_source(weights, mask)
    close(found[0, 0], torch.tensor([0.25, 0.75, 0.0]))
    close(found.sum(-1), torch.ones(1, 3))
    assert found[..., 2].eq(0).all()


@pytest.mark.parametrize(
    "options, message",
    [
        ({"prefix": "both"}, "causal or full, not 'both'"),
        ({"decoder_layers": 0}, "from 1 to 100,000, not 0"),
        ({"alignment_layer": 6}, "from 1 to 5, not 6"),
        ({"heads": 3}, "multiple of model.heads=3"),
        ({"norm": "none"}, "pre or post, not 'none'"),
        ({"tied": "both"}, "output, all or null, not 'both'"),
    ],
)
def test_what_it_cannot_be_is_refused_in_words(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        checkpoint.build(config("decoder_only", **options), 9, 9)
