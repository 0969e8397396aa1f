"""RNN encoder-decoder with ONE context vector: the bottleneck that attention was invented for.

Cho et al. 2014, "Learning Phrase Representations using RNN Encoder-Decoder" (arXiv 1406.1078), the
model that Bahdanau et al. 2015 call RNNencdec. The whole source sentence is squeezed into c, the
encoder's last state; the decoder sees c at every step, and nothing else of the source.

What departs from the paper: the reset gate acts on U h rather than on h (the form that fused GRU
implementations share); an LSTM, several layers and a source read backwards (Sutskever et al. 2014)
are options; c is the state itself, without the layer tanh(V h) of appendix A.1.1.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from models.dropout import Dropout
from models.recurrent import (
    DeepOutput,
    Hidden,
    InitialState,
    last,
    recurrent_layers,
    reverse,
    run,
)
from models.seq2seq import DecoderState, Decoding, Seq2Seq


@dataclass(frozen=True)
class RNNState(DecoderState):
    context: Tensor  # (batch, hidden): c, all that is kept of the source
    hidden: Hidden  # each (batch, layers, hidden)


class RNN(Seq2Seq[RNNState]):
    """p(y | x) = prod_t g(h_t, y_{t-1}, c), h_t = f(h_{t-1}, y_{t-1}, c): sections 2.1 and 2.2."""

    def __init__(
        self,
        src_vocab: int,
        tgt_vocab: int,
        embedding: int,
        hidden: int,
        layers: int,
        cell: str,
        reverse_source: bool,
        dropout: float,
    ) -> None:
        super().__init__()
        self.reverse_source = reverse_source
        self.dropout = Dropout(dropout)
        self.src_embedding = nn.Embedding(src_vocab, embedding)
        self.tgt_embedding = nn.Embedding(tgt_vocab, embedding)
        self.encoder = recurrent_layers(cell, embedding, hidden, layers, dropout)
        self.initial = InitialState(hidden, hidden, layers, cell)
        self.decoder = recurrent_layers(cell, embedding + hidden, hidden, layers, dropout)
        self.output = DeepOutput(hidden, embedding, hidden, tgt_vocab, dropout)

    def encode(self, src: Tensor, src_mask: Tensor) -> RNNState:
        if self.reverse_source:
            src = reverse(src, src_mask)
        outputs, _ = self.encoder(self.dropout(self.src_embedding(src)))  # eq. (1)
        context = last(outputs, src_mask)  # c, section 2.2
        return RNNState(context, self.initial(context))

    def decode(self, tgt: Tensor, state: RNNState) -> Decoding[RNNState]:
        embedded = self.dropout(self.tgt_embedding(tgt))  # (batch, tgt_len, embedding)
        context = state.context.unsqueeze(1).expand(-1, tgt.size(1), -1)
        # c is known beforehand, so all the steps of h_t = f(h_{t-1}, y_{t-1}, c) are one call
        outputs, hidden = run(self.decoder, torch.cat([embedded, context], dim=-1), state.hidden)
        logits = self.output(outputs, embedded, context)
        return Decoding(logits, None, RNNState(state.context, hidden))
