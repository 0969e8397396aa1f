"""A language model that translates: one stack reads the source, then writes the target after it.

Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training" (GPT), as a
translator: Gao et al. 2022, "Is Encoder-Decoder Redundant for Neural Machine Translation?" (arXiv
2210.11807). The prefix that is read in both directions is of Dong et al. 2019 (arXiv 1905.03197).

A row is: source tokens, BOS, target tokens; BOS, with which every target begins, is the separator.
Source positions see the source alone, so the source is read once, by `encode`, and what is kept of
it are each layer's keys and values; `decode` goes on from these.

What departs from the papers: only the target is predicted, not the source; layers, norms and
initialisation are those of models/attention.py (ReLU, sinusoids, pre-norm), so that a comparison
with the Transformer is of the wiring; target positions are counted anew from 0 beside a learnt
vector for each language, so that they do not depend on the source's length or padding.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from models.attention import (
    FeedForward,
    KeysValues,
    MultiHeadAttention,
    SubLayer,
    initialise,
    sinusoids,
)
from models.dropout import Dropout
from models.seq2seq import (
    ALIGNMENT,
    AttentionMap,
    DecoderState,
    Decoding,
    Seq2Seq,
    masked_softmax,
    require,
)


@dataclass(frozen=True)
class DecoderOnlyState(DecoderState):
    src_mask: Tensor  # (batch, src_len)
    past: tuple[KeysValues, ...]  # of each layer, from the source and the target tokens read so far


class Layer(nn.Module):
    """Attention to what the mask lets see, then a feed-forward network."""

    def __init__(self, d_model: int, heads: int, d_ff: int, dropout: float, norm: str) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(d_model, heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.around = nn.ModuleList(SubLayer(d_model, dropout, norm) for _ in range(2))

    def forward(
        self, x: Tensor, past: KeysValues | None, mask: Tensor
    ) -> tuple[Tensor, KeysValues, Tensor]:
        """x: (batch, length, d_model), the positions after `past`; mask broadcasts to the weights.

        Returns the layer's output, the past of the next call, and the weights, (batch, heads,
        length, all positions so far).
        """
        h = self.around[0].before(x)
        keys, values = self.attention.keys_values(h)
        if past is not None:
            keys, values = torch.cat([past[0], keys], dim=2), torch.cat([past[1], values], dim=2)
        found, weights = self.attention(h, (keys, values), mask)
        x = self.around[0].after(x, found)
        x = self.around[1].after(x, self.feed_forward(self.around[1].before(x)))
        return x, (keys, values), weights


class DecoderOnly(Seq2Seq[DecoderOnlyState]):
    """p(y_t | x, y_<t) by one stack of layers over the source and the target so far.

    The alignment is one layer's attention from the target to the source: the mean over its heads,
    brought to a sum of one, since the heads look at the target too.
    """

    def __init__(
        self,
        src_vocab: int,
        tgt_vocab: int,
        d_model: int,
        heads: int,
        expansion: int,
        decoder_layers: int,
        prefix: str,
        norm: str,
        tied: str | None,
        alignment_layer: int,
        dropout: float,
    ) -> None:
        super().__init__()
        require(
            d_model % heads == 0 and d_model % 2 == 0,
            f"model.d_model={d_model} must be even and a multiple of model.heads={heads}",
        )
        require(
            1 <= alignment_layer <= decoder_layers,
            f"model.alignment_layer must be from 1 to {decoder_layers}, not {alignment_layer}",
        )
        require(prefix in ("causal", "full"), f"model.prefix: causal or full, not {prefix!r}")
        self.prefix, self.alignment_layer = prefix, alignment_layer
        self.dropout = Dropout(dropout)
        self.src_embedding = nn.Embedding(src_vocab, d_model)
        self.tgt_embedding = nn.Embedding(tgt_vocab, d_model)
        self.language = nn.Embedding(2, d_model)  # of the source, of the target
        sizes = (d_model, heads, expansion * d_model, dropout, norm)
        self.layers = nn.ModuleList(Layer(*sizes) for _ in range(decoder_layers))
        # a pre-norm stack's output is a sum of sub-layers that nothing has normalised yet
        self.norm = nn.LayerNorm(d_model) if norm == "pre" else nn.Identity()
        self.output = nn.Linear(d_model, tgt_vocab)
        initialise(self, tied)

    def encode(self, src: Tensor, src_mask: Tensor) -> DecoderOnlyState:
        return self._encode(src, src_mask)[0]

    def decode(self, tgt: Tensor, state: DecoderOnlyState) -> Decoding[DecoderOnlyState]:
        return self._decode(tgt, state)[0]

    def attention_maps(self, src: Tensor, src_mask: Tensor, tgt: Tensor) -> dict[str, AttentionMap]:
        state, of_source, x = self._encode(src, src_mask)
        of_source.append(self.layers[-1](x, None, self._visible(src_mask))[2])
        of_target = torch.stack(self._decode(tgt, state)[1], dim=1)
        # the source does not see the target
        of_source = nn.functional.pad(torch.stack(of_source, dim=1), (0, tgt.size(1)))
        return {
            ALIGNMENT: AttentionMap(on_source(of_target, src_mask), "target", "source"),
            "self-attention": AttentionMap(
                torch.cat([of_source, of_target], dim=3), "both", "both"
            ),
        }

    def _encode(
        self, src: Tensor, src_mask: Tensor
    ) -> tuple[DecoderOnlyState, list[Tensor], Tensor]:
        """The state; the weights of all layers but the last; the last layer's input.

        Nothing reads the last layer's output at the source, so only its keys and values are made.
        """
        x = self._embed(self.src_embedding, src, language=0, first=0)
        mask = self._visible(src_mask)
        past, attended = [], []
        for layer in self.layers[:-1]:
            x, keys_values, weights = layer(x, None, mask)
            past.append(keys_values)
            attended.append(weights)
        final = self.layers[-1]
        past.append(final.attention.keys_values(final.around[0].before(x)))
        return DecoderOnlyState(src_mask, tuple(past)), attended, x

    def _visible(self, src_mask: Tensor) -> Tensor:
        """What of the source each of its positions sees: (batch, 1, 1 or src_len, src_len)."""
        mask = src_mask[:, None, None, :]
        if self.prefix == "full":
            return mask
        length = src_mask.size(1)
        return mask & torch.ones(length, length, dtype=torch.bool, device=mask.device).tril()

    def _decode(
        self, tgt: Tensor, state: DecoderOnlyState
    ) -> tuple[Decoding[DecoderOnlyState], list[Tensor]]:
        """What `decode` returns, and each layer's weights on the source and the target."""
        src_mask, length = state.src_mask, tgt.size(1)
        done = state.past[0][0].size(2) - src_mask.size(1)  # target tokens read before
        x = self._embed(self.tgt_embedding, tgt, language=1, first=done)
        causal = torch.ones(length, done + length, dtype=torch.bool, device=tgt.device).tril(done)
        source = src_mask.unsqueeze(1).expand(-1, length, -1)
        target = causal.expand(len(tgt), -1, -1)
        mask = torch.cat([source, target], dim=2).unsqueeze(1)  # (batch, 1, tgt_len, positions)
        past, attended = [], []
        for layer, before in zip(self.layers, state.past, strict=True):
            x, keys_values, weights = layer(x, before, mask)
            past.append(keys_values)
            attended.append(weights)
        alignment = on_source(attended[self.alignment_layer - 1].mean(dim=1), src_mask)
        logits = self.output(self.norm(x))
        return Decoding(logits, alignment, DecoderOnlyState(src_mask, tuple(past))), attended

    def _embed(self, embedding: nn.Embedding, tokens: Tensor, language: int, first: int) -> Tensor:
        """sqrt(d_model) times the embedding, plus the language and the position from `first` on."""
        x = embedding(tokens) * math.sqrt(embedding.embedding_dim) + self.language.weight[language]
        return self.dropout(x + sinusoids(first, tokens.size(1), x))


def on_source(weights: Tensor, src_mask: Tensor) -> Tensor:
    """The weights that fall on the source, brought to a sum of one: w / sum of w.

    weights: (batch, ..., queries, positions), the source's positions first; src_mask: (batch,
    src_len). Returns (batch, ..., queries, src_len). It goes by logarithms, as a sum may underflow.
    """
    src_mask = src_mask.unflatten(0, (-1, *[1] * (weights.dim() - 2)))
    tiny = torch.finfo(torch.float32).tiny
    return masked_softmax(weights[..., : src_mask.size(-1)].clamp(min=tiny).log(), src_mask)
