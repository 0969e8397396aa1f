"""The Transformer: attention everywhere, recurrence nowhere.

Vaswani et al. 2017, "Attention Is All You Need" (arXiv 1706.03762); numbers are the paper's.
The sub-layers and the positions (sections 3.2 to 3.5) stand in models/attention.py.

What departs from it: layer normalisation stands before each sub-layer by default (`norm: pre`,
Xiong et al. 2020: it trains without a delicate warm-up; `post` is the paper's); the source and
target vocabularies may differ, so sharing embeddings is an option (`tied`, section 3.4).
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
from models.seq2seq import ALIGNMENT, AttentionMap, DecoderState, Decoding, Seq2Seq, require


@dataclass(frozen=True)
class TransformerState(DecoderState):
    of_source = ("src_mask", "memory")
    src_mask: Tensor  # (batch, src_len)
    memory: tuple[KeysValues, ...]  # of each decoder layer, from the encoder's output
    past: tuple[KeysValues, ...]  # of each decoder layer, from the target tokens read so far


class EncoderLayer(nn.Module):
    def __init__(self, d_model: int, heads: int, d_ff: int, dropout: float, norm: str) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(d_model, heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.around = nn.ModuleList(SubLayer(d_model, dropout, norm) for _ in range(2))

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """x: (batch, src_len, d_model); mask: (batch, 1, 1, src_len).

        Returns the layer's output and its weights, (batch, heads, src_len, src_len).
        """
        h = self.around[0].before(x)
        found, weights = self.attention(h, self.attention.keys_values(h), mask)
        x = self.around[0].after(x, found)
        return self.around[1].after(x, self.feed_forward(self.around[1].before(x))), weights


class DecoderLayer(nn.Module):
    def __init__(self, d_model: int, heads: int, d_ff: int, dropout: float, norm: str) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, heads)
        self.cross_attention = MultiHeadAttention(d_model, heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.around = nn.ModuleList(SubLayer(d_model, dropout, norm) for _ in range(3))

    def forward(
        self, x: Tensor, past: KeysValues, causal: Tensor, memory: KeysValues, src_mask: Tensor
    ) -> tuple[Tensor, KeysValues, Tensor, Tensor]:
        """x: (batch, tgt_len, d_model), the positions after `past`.

        Returns the layer's output, the past of the next call, and two kinds of weights: on the
        target, (batch, heads, tgt_len, all target positions), and on the source, (..., src_len).
        """
        h = self.around[0].before(x)
        keys, values = self.self_attention.keys_values(h)
        past = torch.cat([past[0], keys], dim=2), torch.cat([past[1], values], dim=2)
        found, on_target = self.self_attention(h, past, causal)
        x = self.around[0].after(x, found)
        found, on_source = self.cross_attention(self.around[1].before(x), memory, src_mask)
        x = self.around[1].after(x, found)
        x = self.around[2].after(x, self.feed_forward(self.around[2].before(x)))
        return x, past, on_target, on_source


class Transformer(Seq2Seq[TransformerState]):
    """Encoder and decoder stacks: section 3.1. The alignment is the mean over one layer's heads."""

    def __init__(
        self,
        src_vocab: int,
        tgt_vocab: int,
        d_model: int,
        heads: int,
        expansion: int,
        encoder_layers: int,
        decoder_layers: int,
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
        self.alignment_layer = alignment_layer
        self.dropout = Dropout(dropout)
        self.src_embedding = nn.Embedding(src_vocab, d_model)
        self.tgt_embedding = nn.Embedding(tgt_vocab, d_model)
        sizes = (d_model, heads, expansion * d_model, dropout, norm)
        self.encoder = nn.ModuleList(EncoderLayer(*sizes) for _ in range(encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(*sizes) for _ in range(decoder_layers))
        # a pre-norm stack's output is a sum of sub-layers that nothing has normalised yet
        self.encoder_norm = nn.LayerNorm(d_model) if norm == "pre" else nn.Identity()
        self.decoder_norm = nn.LayerNorm(d_model) if norm == "pre" else nn.Identity()
        self.output = nn.Linear(d_model, tgt_vocab)
        initialise(self, tied)

    def encode(self, src: Tensor, src_mask: Tensor) -> TransformerState:
        return self._encode(src, src_mask)[0]

    def decode(self, tgt: Tensor, state: TransformerState) -> Decoding[TransformerState]:
        return self._decode(tgt, state)[0]

    def attention_maps(self, src: Tensor, src_mask: Tensor, tgt: Tensor) -> dict[str, AttentionMap]:
        state, encoder = self._encode(src, src_mask)
        _, on_target, on_source = self._decode(tgt, state)
        return {
            ALIGNMENT: AttentionMap(torch.stack(on_source, dim=1), "target", "source"),
            "encoder self-attention": AttentionMap(torch.stack(encoder, dim=1), "source", "source"),
            "decoder self-attention": AttentionMap(
                torch.stack(on_target, dim=1), "target", "target"
            ),
        }

    def _encode(self, src: Tensor, src_mask: Tensor) -> tuple[TransformerState, list[Tensor]]:
        """The state, and each layer's attention weights."""
        x = self._embed(self.src_embedding, src, first=0)
        mask = src_mask[:, None, None, :]
        attended = []
        for layer in self.encoder:
            x, weights = layer(x, mask)
            attended.append(weights)
        x = self.encoder_norm(x)  # (batch, src_len, d_model)
        memory = tuple(layer.cross_attention.keys_values(x) for layer in self.decoder)
        nothing = tuple((keys[:, :, :0], values[:, :, :0]) for keys, values in memory)
        return TransformerState(src_mask, memory, nothing), attended

    def _decode(
        self, tgt: Tensor, state: TransformerState
    ) -> tuple[Decoding[TransformerState], list[Tensor], list[Tensor]]:
        """What `decode` returns, and the weights of each layer on the target and on the source."""
        done = state.past[0][0].size(2)  # target tokens read before
        x = self._embed(self.tgt_embedding, tgt, first=done)
        length = tgt.size(1)
        # position i may look at the positions up to itself: section 3.2.3
        causal = torch.ones(length, done + length, dtype=torch.bool, device=tgt.device).tril(done)
        src_mask = state.src_mask[:, None, None, :]
        past, on_target, on_source = [], [], []
        for layer, before, memory in zip(self.decoder, state.past, state.memory, strict=True):
            x, *found = layer(x, before, causal, memory, src_mask)
            for kind, one in zip((past, on_target, on_source), found, strict=True):
                kind.append(one)
        alignment = on_source[self.alignment_layer - 1].mean(dim=1)  # (batch, tgt_len, src_len)
        state = TransformerState(state.src_mask, state.memory, tuple(past))
        logits = self.output(self.decoder_norm(x))
        return Decoding(logits, alignment, state), on_target, on_source

    def _embed(self, embedding: nn.Embedding, tokens: Tensor, first: int) -> Tensor:
        """sqrt(d_model) times the embedding, plus the position: sections 3.4 and 3.5."""
        x = embedding(tokens) * math.sqrt(embedding.embedding_dim)
        return self.dropout(x + sinusoids(first, tokens.size(1), x))
