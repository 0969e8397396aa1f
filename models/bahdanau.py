"""RNNsearch: an RNN encoder-decoder that learns where to look in the source for each target word.

Bahdanau, Cho, Bengio 2015, "Neural Machine Translation by Jointly Learning to Align and Translate"
(arXiv 1409.0473); letters and numbers are the paper's.

What departs from it: the reset gate acts on U s rather than on s (the form that fused GRU
implementations share); the deep output reads s_i, as eq. (4) says, where appendix A.2.2 prints
s_{i-1}; an LSTM is an option. What does not depend on the decoder's past (U_a h_j, and the input
projection of y_{i-1}) is computed for all positions at once, outside the loop.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from models.bahdanau_fast import attention_loop
from models.dropout import Dropout
from models.recurrent import DeepOutput, Hidden, InitialState, recurrent_layers, reverse
from models.seq2seq import DecoderState, Decoding, Seq2Seq, masked_softmax


@dataclass(frozen=True)
class BahdanauState(DecoderState):
    of_source = ("annotations", "keys", "src_mask")
    annotations: Tensor  # (batch, src_len, 2 hidden): h_j, eq. (7)
    keys: Tensor  # (batch, src_len, hidden): U_a h_j
    src_mask: Tensor  # (batch, src_len)
    hidden: Hidden  # each (batch, hidden): s_i


class Bahdanau(Seq2Seq[BahdanauState]):
    """p(y_i | y_1..y_{i-1}, x) = g(y_{i-1}, s_i, c_i): eq. (4)."""

    def __init__(
        self, src_vocab: int, tgt_vocab: int, embedding: int, hidden: int, cell: str, dropout: float
    ) -> None:
        super().__init__()
        self.cell = cell
        self.dropout = Dropout(dropout)
        self.src_embedding = nn.Embedding(src_vocab, embedding)
        self.tgt_embedding = nn.Embedding(tgt_vocab, embedding)
        self.forwards = recurrent_layers(cell, embedding, hidden, 1, dropout)
        self.backwards = recurrent_layers(cell, embedding, hidden, 1, dropout)
        self.initial = InitialState(hidden, hidden, 1, cell)
        self.U_a = nn.Linear(2 * hidden, hidden, bias=False)
        self.v_a = nn.Linear(hidden, 1, bias=False)
        self.gates = {"gru": 3, "lstm": 4}[cell] * hidden
        self.embedding_to_gates = nn.Linear(embedding, self.gates)
        self.context_to_gates = nn.Linear(2 * hidden, self.gates, bias=False)
        self.state_to_gates = nn.Linear(hidden, self.gates + hidden)  # and W_a, in one product
        self.output = DeepOutput(hidden, embedding, 2 * hidden, tgt_vocab, dropout)

    def encode(self, src: Tensor, src_mask: Tensor) -> BahdanauState:
        embedded = self.dropout(self.src_embedding(src))  # (batch, src_len, embedding)
        rightward, _ = self.forwards(embedded)
        leftward, _ = self.backwards(reverse(embedded, src_mask))
        leftward = reverse(leftward, src_mask)
        annotations = torch.cat([rightward, leftward], dim=-1)  # eq. (7), appendix A.2.1
        hidden = tuple(part.squeeze(1) for part in self.initial(leftward[:, 0]))  # A.2.2
        return BahdanauState(annotations, self.U_a(annotations), src_mask, hidden)

    def decode(self, tgt: Tensor, state: BahdanauState) -> Decoding[BahdanauState]:
        embedded = self.dropout(self.tgt_embedding(tgt))  # (batch, tgt_len, embedding)
        y = self.embedding_to_gates(embedded)
        # the same numbers, in training much faster
        loop = self._fast_loop if torch.is_grad_enabled() and self.cell == "gru" else self._loop
        states, contexts, alignment, hidden = loop(y, state)
        logits = self.output(states, embedded, contexts)
        after = BahdanauState(state.annotations, state.keys, state.src_mask, hidden)
        return Decoding(logits, alignment, after)

    def _loop(self, y: Tensor, state: BahdanauState) -> tuple[Tensor, Tensor, Tensor, Hidden]:
        """From projected words read: all s_i, c_i and alpha_i, and the state after the last."""
        hidden, states, contexts, alignments = state.hidden, [], [], []
        for y_i in y.unbind(dim=1):
            from_state, query = self.state_to_gates(hidden[0]).split(
                [self.gates, self.v_a.in_features], dim=-1
            )
            energy = self.v_a(torch.tanh(query.unsqueeze(1) + state.keys))  # e_ij, A.1.2
            alignment = masked_softmax(energy.squeeze(2), state.src_mask)  # alpha_ij, eq. (6)
            context = torch.einsum("bj,bjd->bd", alignment, state.annotations)  # c_i, eq. (5)
            hidden = self._step(y_i + self.context_to_gates(context), from_state, hidden)
            states.append(hidden[0])
            contexts.append(context)
            alignments.append(alignment)
        return *(torch.stack(found, 1) for found in (states, contexts, alignments)), hidden

    def _fast_loop(self, y: Tensor, state: BahdanauState) -> tuple[Tensor, Tensor, Tensor, Hidden]:
        states, contexts, alignment = attention_loop(
            y,
            state.hidden[0],
            state.annotations,
            state.keys,
            state.src_mask,
            self.state_to_gates,
            self.context_to_gates,
            self.v_a,
        )
        return states, contexts, alignment, (states[:, -1],)

    def _step(self, from_input: Tensor, from_state: Tensor, hidden: Hidden) -> Hidden:
        """s_i = f(s_{i-1}, y_{i-1}, c_i), from projections (batch, gates): appendix A.1.1."""
        if self.cell == "lstm":
            i, f, o, g = (from_input + from_state).chunk(4, dim=-1)
            memory = torch.sigmoid(f) * hidden[1] + torch.sigmoid(i) * torch.tanh(g)
            return torch.sigmoid(o) * torch.tanh(memory), memory
        size = hidden[0].size(-1)
        (x_gates, x_new) = from_input.split([2 * size, size], dim=-1)
        (s_gates, s_new) = from_state.split([2 * size, size], dim=-1)
        r, z = torch.sigmoid(x_gates + s_gates).chunk(2, dim=-1)
        proposal = torch.tanh(x_new + r * s_new)
        return (torch.lerp(hidden[0], proposal, z),)
