"""What the recurrent papers share: gated units, reading direction, the deep output layer."""

from typing import Any

import torch
from torch import Tensor, nn

from models.dropout import Dropout
from models.seq2seq import require

Hidden = tuple[Tensor, ...]  # (h,) of a GRU or (h, cell) of an LSTM

BF16_LSTM = bool(torch.cpu.get_capabilities().get("avx512_bw"))  # as oneDNN asks


def autocast_works(cell: str, device: torch.device) -> bool:
    """Whether torch's layers of such cells may run under autocast to bfloat16.

    An LSTM needs a processor for it. On a GPU, cuDNN's would be cast to float16, in which small
    gradients vanish.
    """
    return device.type == "cpu" and (cell == "gru" or BF16_LSTM)


class _InFloat32(nn.RNNBase):
    """Layers that leave autocast where it does not do for them."""

    def forward(self, x: Tensor, hidden: Any = None) -> tuple[Tensor, Any]:
        if autocast_works(self.mode.lower(), x.device):
            return super().forward(x, hidden)
        if hidden is not None:
            hidden = (
                hidden.float() if isinstance(hidden, Tensor) else tuple(h.float() for h in hidden)
            )
        with torch.autocast(x.device.type, enabled=False):
            return super().forward(x.float(), hidden)


class GRU(_InFloat32, nn.GRU):
    """torch's, but for where it is in float32."""


class LSTM(_InFloat32, nn.LSTM):
    """torch's, but for where it is in float32."""


UNITS = {"gru": GRU, "lstm": LSTM}


def recurrent_layers(cell: str, inputs: int, hidden: int, layers: int, dropout: float) -> nn.Module:
    """A batch-first stack of `gru` or `lstm` layers; ValueError for another cell."""
    require(cell in UNITS, f"model.cell must be gru or lstm, not {cell!r}")
    between = dropout if layers > 1 else 0.0
    return UNITS[cell](inputs, hidden, layers, batch_first=True, dropout=between)


def run(layers: nn.Module, x: Tensor, hidden: Hidden) -> tuple[Tensor, Hidden]:
    """The top layer's outputs over x, and the state of all layers after it.

    x: (batch, length, inputs); outputs: (batch, length, hidden); states: each (batch, layers,
    hidden), of which a GRU has one and an LSTM two.
    """
    before = tuple(part.transpose(0, 1).contiguous() for part in hidden)  # as torch has them
    outputs, after = layers(x, before if len(before) == 2 else before[0])
    after = after if isinstance(after, tuple) else (after,)
    return outputs, tuple(part.transpose(0, 1) for part in after)


def reverse(tokens: Tensor, mask: Tensor) -> Tensor:
    """Each row's real tokens in reverse order, its padding left where it was.

    tokens: (batch, length, ...); mask: (batch, length), True on tokens, which come first.
    """
    lengths = mask.sum(dim=1, keepdim=True)
    positions = torch.arange(mask.size(1), device=mask.device).expand_as(mask)
    index = torch.where(mask, lengths - 1 - positions, positions)
    return tokens.gather(1, index if tokens.dim() == 2 else index.unsqueeze(2).expand_as(tokens))


def last(outputs: Tensor, mask: Tensor) -> Tensor:
    """Each row's output at its last real token: (batch, length, size) -> (batch, size)."""
    index = mask.sum(dim=1).sub(1).clamp(min=0)
    return outputs[torch.arange(outputs.size(0), device=outputs.device), index]


class InitialState(nn.Module):
    """s_0 = tanh(W x), for every layer; an LSTM's cell begins at zero.

    Cho et al. 2014, appendix A.1.2; Bahdanau et al. 2015, appendix A.2.2.
    """

    def __init__(self, inputs: int, hidden: int, layers: int, cell: str) -> None:
        super().__init__()
        self.layers, self.cell = layers, cell
        self.project = nn.Linear(inputs, layers * hidden)

    def forward(self, x: Tensor) -> Hidden:
        """(batch, inputs) -> a tuple of (batch, layers, hidden)."""
        h = torch.tanh(self.project(x)).unflatten(1, (self.layers, -1))
        return (h,) if self.cell == "gru" else (h, torch.zeros_like(h))


class DeepOutput(nn.Module):
    """logits = W_o maxout(U_o s + V_o E y + C_o c): Bahdanau et al. 2015, appendix A.2.2.

    The maxout layer halves: each unit is the larger of two (Goodfellow et al. 2013).
    """

    def __init__(
        self, hidden: int, embedding: int, context: int, tgt_vocab: int, dropout: float
    ) -> None:
        super().__init__()
        self.combine = nn.Linear(hidden + embedding + context, 2 * embedding)  # U_o, V_o, C_o
        self.dropout = Dropout(dropout)
        self.W_o = nn.Linear(embedding, tgt_vocab)

    def forward(self, s: Tensor, embedded: Tensor, context: Tensor) -> Tensor:
        """(batch, tgt_len, ...) of states, embedded last tokens, contexts -> logits."""
        t = self.combine(torch.cat([s, embedded, context], dim=-1))
        t = t.unflatten(-1, (-1, 2)).amax(dim=-1)  # (batch, tgt_len, embedding)
        return self.W_o(self.dropout(t))
