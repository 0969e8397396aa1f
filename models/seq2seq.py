"""The interface every architecture implements, and all that training, search and alignment use.

One verb, `decode`, serves three customers: training reads a whole target sentence, search reads one
token at a time and carries the state on, alignment reads a finished translation (forced decoding).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import ClassVar, Generic, NamedTuple, Self, TypeVar

import torch
from torch import Tensor, nn

ALIGNMENT = "alignment"  # the name of the attention map from target to source


@dataclass(frozen=True)
class DecoderState:
    """All that the decoder remembers of the source and of the target so far.

    Every field is batch-first: a tensor, or a (nested) tuple of tensors.
    """

    of_source: ClassVar[tuple[str, ...]] = ()  # fields that `decode` hands on as they are, if any

    def select(self, rows: Tensor, same_sources: bool = False) -> Self:
        """The state of the given rows; rows: (new_batch,) of row numbers, repeats allowed.

        same_sources: each row has the source of the row whose place it takes, so that the fields
        in of_source can stay, which spares search most of the copying.
        """
        names = [f.name for f in fields(self) if not (same_sources and f.name in self.of_source)]
        return replace(self, **{name: _pick(getattr(self, name), rows) for name in names})


def _pick(value: Tensor | tuple, rows: Tensor) -> Tensor | tuple:
    if isinstance(value, tuple):
        return tuple(_pick(part, rows) for part in value)
    return value.index_select(0, rows)


State = TypeVar("State", bound=DecoderState)


class Decoding(NamedTuple, Generic[State]):
    """What reading some target tokens gives."""

    logits: Tensor  # (batch, tgt_len, tgt_vocab): scores of the token after each one read
    alignment: Tensor | None  # (batch, tgt_len, src_len): rows sum to 1; None without attention
    state: State  # after the last token read


class AttentionMap(NamedTuple):
    """One way in which a model looks: the weights of a query sum to 1 and are 0 on padding.

    queries and keys say what positions they are: "source", "target", or "both", one after the
    other.
    """

    weights: Tensor  # (batch, layers, heads, queries, keys)
    queries: str
    keys: str


class Seq2Seq(nn.Module, ABC, Generic[State]):
    """p(target | source), one token after the other."""

    @abstractmethod
    def encode(self, src: Tensor, src_mask: Tensor) -> State:
        """The state before the first target token.

        src: (batch, src_len) token ids; src_mask: (batch, src_len) bool, True on tokens.
        """

    @abstractmethod
    def decode(self, tgt: Tensor, state: State) -> Decoding[State]:
        """Reads tgt, (batch, tgt_len) MORE target tokens, from `state` on."""

    def forward(self, src: Tensor, src_mask: Tensor, tgt: Tensor) -> Decoding[State]:
        return self.decode(tgt, self.encode(src, src_mask))

    def attention_maps(self, src: Tensor, src_mask: Tensor, tgt: Tensor) -> dict[str, AttentionMap]:
        """Where the model looks while it reads tgt, for pictures and measurements.

        ALIGNMENT, from target to source positions, is among the maps of every model with attention;
        a model without has none. An architecture that looks in more than one way says so here.
        """
        alignment = self(src, src_mask, tgt).alignment
        if alignment is None:
            return {}
        return {ALIGNMENT: AttentionMap(alignment[:, None, None], "target", "source")}


def masked_softmax(energy: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last dimension: exactly 0 where mask is False, finite if all of it is.

    The lowest finite number stands for minus infinity, so that a row with nothing to attend to
    stays finite; next to any real energy its exponential underflows to exactly 0.
    """
    energy = energy.to(torch.promote_types(energy.dtype, torch.float32))
    return energy.masked_fill(~mask, torch.finfo(torch.float32).min).softmax(dim=-1)


def require(condition: bool, message: str) -> None:
    """Raises ValueError(message) unless condition holds: sizes that no model can have."""
    if not condition:
        raise ValueError(message)
