"""An RNN encoder-decoder that looks at the source after its recurrent layers, not before them.

Luong, Pham, Manning 2015, "Effective Approaches to Attention-based Neural Machine Translation"
(arXiv 1508.04025): the global attention of section 3.1; letters and numbers are the paper's.

What departs from it: a layer norm (Ba et al. 2016) before the tanh of eq. (5), many of whose units
otherwise saturate under the common recipe with Adam (the paper has plain SGD), so that training
lags far behind the other models'; the decoder begins from tanh(W h̄_last) in every layer, as the
other recurrent models do, not from a copy of all the encoder's last states; a GRU is an option,
and a source read from both ends the default (model.bidirectional).

Without input feeding, what the attention finds does not enter the recurrent layers. These then run
over all the target at once, and the attention is one product for all positions.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from models.dropout import Dropout
from models.recurrent import Hidden, InitialState, last, recurrent_layers, reverse, run
from models.seq2seq import DecoderState, Decoding, Seq2Seq, masked_softmax, require


@dataclass(frozen=True)
class LuongState(DecoderState):
    of_source = ("memory", "keys", "src_mask")
    memory: Tensor  # (batch, src_len, hidden or 2 hidden): h̄_s, the source's hidden states
    keys: Tensor  # (batch, src_len, hidden): W_a h̄_s; h̄_s itself with the dot score
    src_mask: Tensor  # (batch, src_len)
    hidden: Hidden  # each (batch, layers, hidden): the decoder's after the last token read
    fed: Tensor  # (batch, 1, hidden): h̃_t of the last token read, for input feeding


class Luong(Seq2Seq[LuongState]):
    """p(y_t | y_<t, x) = softmax(W_s h̃_t): eq. (6)."""

    def __init__(
        self,
        src_vocab: int,
        tgt_vocab: int,
        embedding: int,
        hidden: int,
        encoder_layers: int,
        decoder_layers: int,
        cell: str,
        bidirectional: bool,
        score: str,
        input_feeding: bool,
        dropout: float,
    ) -> None:
        super().__init__()
        require(
            score in ("dot", "general", "concat"),
            f"model.score must be dot, general or concat, not {score!r}",
        )
        require(
            score != "dot" or not bidirectional,
            "model.score=dot needs source and target states of one size, but those of a source "
            "read from both ends are twice as long: model.bidirectional=false",
        )
        self.score, self.input_feeding = score, input_feeding
        self.dropout = Dropout(dropout)
        self.src_embedding = nn.Embedding(src_vocab, embedding)
        self.tgt_embedding = nn.Embedding(tgt_vocab, embedding)
        encoder = (cell, embedding, hidden, encoder_layers, dropout)
        self.forwards = recurrent_layers(*encoder)
        self.backwards = recurrent_layers(*encoder) if bidirectional else None
        source = 2 * hidden if bidirectional else hidden
        found = hidden if input_feeding else 0
        self.decoder = recurrent_layers(cell, embedding + found, hidden, decoder_layers, dropout)
        self.initial = InitialState(source, hidden, decoder_layers, cell)
        if score != "dot":
            self.W_a = nn.Linear(source, hidden, bias=False)
        if score == "concat":  # the paper's W_a [h_t; h̄_s] = U_a h_t + W_a h̄_s
            self.U_a = nn.Linear(hidden, hidden, bias=False)
            self.v_a = nn.Linear(hidden, 1, bias=False)
        self.W_c = nn.Linear(source + hidden, hidden, bias=False)
        self.norm = nn.LayerNorm(hidden)
        self.W_s = nn.Linear(hidden, tgt_vocab)

    def encode(self, src: Tensor, src_mask: Tensor) -> LuongState:
        embedded = self.dropout(self.src_embedding(src))  # (batch, src_len, embedding)
        memory, _ = self.forwards(embedded)
        end = last(memory, src_mask)
        if self.backwards is not None:
            leftward, _ = self.backwards(reverse(embedded, src_mask))
            leftward = reverse(leftward, src_mask)
            end = torch.cat([end, leftward[:, 0]], dim=-1)
            memory = torch.cat([memory, leftward], dim=-1)
        keys = memory if self.score == "dot" else self.W_a(memory)
        nothing = keys.new_zeros(keys.size(0), 1, keys.size(2))
        return LuongState(memory, keys, src_mask, self.initial(end), nothing)

    def decode(self, tgt: Tensor, state: LuongState) -> Decoding[LuongState]:
        embedded = self.dropout(self.tgt_embedding(tgt))  # (batch, tgt_len, embedding)
        hidden, fed, attentional, alignments = state.hidden, state.fed, [], []
        for y in embedded.split(1 if self.input_feeding else tgt.size(1), dim=1):
            if self.input_feeding:
                y = torch.cat([y, fed], dim=-1)  # section 3.3
            h, hidden = run(self.decoder, y, hidden)  # h_t
            energy = self._score(h, state.keys)
            alignment = masked_softmax(energy, state.src_mask.unsqueeze(1))  # a_t(s), eq. (7)
            context = torch.einsum("bts,bsd->btd", alignment, state.memory)  # c_t
            fed = torch.tanh(self.norm(self.W_c(torch.cat([context, h], dim=-1))))  # h̃_t, eq. (5)
            attentional.append(fed)
            alignments.append(alignment)
        logits = self.W_s(self.dropout(torch.cat(attentional, dim=1)))  # eq. (6)
        after = LuongState(state.memory, state.keys, state.src_mask, hidden, fed[:, -1:])
        return Decoding(logits, torch.cat(alignments, dim=1), after)

    def _score(self, h: Tensor, keys: Tensor) -> Tensor:
        """score(h_t, h̄_s), section 3.1: (batch, tgt_len, hidden) -> (batch, tgt_len, src_len)."""
        if self.score != "concat":
            return h @ keys.transpose(1, 2)
        # one position after the other: all at once would be (batch, tgt_len, src_len, hidden)
        return torch.cat(
            [self.v_a(torch.tanh(query + keys)).mT for query in self.U_a(h).split(1, dim=1)], dim=1
        )
