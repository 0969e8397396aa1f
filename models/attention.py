"""What the Transformers share: attention with its heads, the other sub-layer, positions.

Vaswani et al. 2017, "Attention Is All You Need" (arXiv 1706.03762); numbers are the paper's.
"""

import math

import torch
from torch import Tensor, nn

from models.dropout import Dropout
from models.seq2seq import masked_softmax, require

KeysValues = tuple[Tensor, Tensor]  # each (batch, heads, length, d_model / heads)


def attention(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V: eq. (1).

    query: (..., queries, d_k); keys: (..., length, d_k); values: (..., length, d_v); mask, True
    where a query may look, broadcasts to the weights. Returns the context vectors
    (..., queries, d_v) and the weights (..., queries, length).
    """
    energy = query @ keys.transpose(-2, -1) / math.sqrt(query.size(-1))
    weights = masked_softmax(energy, mask)
    return weights.to(values.dtype) @ values, weights


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O: section 3.2.2."""

    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.W_q = nn.Linear(d_model, d_model)
        self.W_kv = nn.Linear(d_model, 2 * d_model)
        self.W_o = nn.Linear(d_model, d_model)

    def keys_values(self, memory: Tensor) -> KeysValues:
        """(batch, length, d_model) -> keys and values of every head."""
        keys, values = self.W_kv(memory).chunk(2, dim=-1)
        return self._split(keys), self._split(values)

    def forward(self, x: Tensor, keys_values: KeysValues, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Attends from x, (batch, queries, d_model), to keys; mask broadcasts to the weights.

        Returns (batch, queries, d_model) and the weights (batch, heads, queries, keys).
        """
        heads, weights = attention(self._split(self.W_q(x)), *keys_values, mask)
        return self.W_o(heads.transpose(1, 2).flatten(2)), weights

    def _split(self, x: Tensor) -> Tensor:
        """(batch, length, d_model) -> (batch, heads, length, d_model / heads)."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class SubLayer(nn.Module):
    """A residual connection around a sub-layer, dropout and layer norm: sections 3.1 and 5.4."""

    def __init__(self, d_model: int, dropout: float, norm: str) -> None:
        super().__init__()
        require(norm in ("pre", "post"), f"model.norm must be pre or post, not {norm!r}")
        self.pre = norm == "pre"
        self.norm = nn.LayerNorm(d_model)
        self.dropout = Dropout(dropout)

    def before(self, x: Tensor) -> Tensor:
        return self.norm(x) if self.pre else x

    def after(self, x: Tensor, result: Tensor) -> Tensor:
        x = x + self.dropout(result)
        return x if self.pre else self.norm(x)


class FeedForward(nn.Sequential):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2: eq. (2)."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))


def sinusoids(first: int, length: int, like: Tensor) -> Tensor:
    """Encodings of the positions from `first` on, (length, d_model): section 3.5.

    Even columns hold sin(position / 10000^(2i / d_model)), odd ones the cosine.
    """
    half = torch.arange(0, like.size(-1), 2, device=like.device, dtype=torch.float32)
    rates = torch.exp(half * (-math.log(10000.0) / like.size(-1)))
    positions = torch.arange(first, first + length, device=like.device, dtype=torch.float32)
    angles = positions.unsqueeze(1) * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1).to(like.dtype)


def initialise(model: nn.Module, tied: str | None) -> None:
    """Xavier (Glorot & Bengio 2010) for matrices; embeddings of variance 1 / d_model, and shared.

    model has src_embedding, tgt_embedding and output; tied says which of these matrices are one:
    "output" the last two, "all" all three (section 3.4), None none.
    """
    require(tied in (None, "output", "all"), f"model.tied: output, all or null, not {tied!r}")
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.xavier_uniform_(parameter)
    for embedding in (model.src_embedding, model.tgt_embedding):
        nn.init.normal_(embedding.weight, std=embedding.embedding_dim**-0.5)
    if tied is not None:
        model.output.weight = model.tgt_embedding.weight
    if tied == "all":
        require(
            model.src_embedding.num_embeddings == model.tgt_embedding.num_embeddings,
            "model.tied=all needs one vocabulary for both languages: tokenizer.shared=true",
        )
        model.src_embedding.weight = model.tgt_embedding.weight
