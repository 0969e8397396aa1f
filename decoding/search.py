"""Beam search over any Seq2Seq; a beam of one is greedy search. It knows no architecture."""

from typing import NamedTuple

import torch
from torch import Tensor

from data.tokenizer import BOS, EOS, PAD
from models.seq2seq import Seq2Seq

FOLDS = 16  # of a row of candidates, in which the best are looked for


class Hypothesis(NamedTuple):
    """A translation found by the search."""

    tokens: list[int]  # without BOS and EOS
    log_prob: float  # log p(tokens, EOS | source); without EOS where length_capped
    score: float  # log_prob / length_penalty(tokens with EOS)
    length_capped: bool  # the limit came before EOS


def length_penalty_of(length: int, alpha: float) -> float:
    """((5 + length) / 6) ** alpha: Wu et al. 2016 (arXiv 1609.08144), eq. (14)."""
    return ((5 + length) / 6) ** alpha


def largest(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Each row's `count` largest values, the largest first, and their places: `topk`, but faster.

    Laid out in FOLDS lines, a row has columns; those that hold the largest values are among the
    `count` columns of the largest maxima. Finding maxima takes a fifth of the time of `topk`.
    """
    columns = values.size(1) // FOLDS
    if values.size(1) % FOLDS or columns < count:
        return values.topk(count, dim=1)
    lines = values.view(-1, FOLDS, columns)
    near = lines.amax(dim=1).topk(count, dim=1).indices  # (rows, count) columns
    few = lines.gather(2, near.unsqueeze(1).expand(-1, FOLDS, -1)).flatten(1)
    found, index = few.topk(count, dim=1)
    return found, index // count * columns + near.gather(1, index % count)


@torch.inference_mode()
def beam_search(
    model: Seq2Seq,
    src: Tensor,
    src_mask: Tensor,
    *,
    beam_size: int,
    length_penalty: float,
    max_len: Tensor,
) -> list[list[Hypothesis]]:
    """For each source sentence at most beam_size hypotheses, the best first, at least one.

    src, src_mask: (batch, src_len); max_len: (batch,) the most target tokens, EOS counted.
    A sentence is done when beam_size hypotheses have ended among its beam_size best continuations
    and no prefix that goes on would score higher than the best of them by ending where it is, were
    its EOS certain; or at its limit. A beam of one ends with its first EOS, as greedy search does.
    Those cut off by the limit are returned only where none has ended.
    """
    batch = src.size(0)
    limits = max_len.tolist()
    beams = _Beams([[] for _ in range(batch)], beam_size, length_penalty)
    sentences = list(range(batch))  # those still searched, in the order of their rows
    state = model.encode(src, src_mask)
    state = state.select(torch.arange(batch, device=src.device).repeat_interleave(beam_size))
    prefixes = src.new_full((batch * beam_size, 1), BOS)  # rows: beam_size for each sentence
    log_probs = torch.full((batch, beam_size), -torch.inf, device=src.device)
    log_probs[:, 0] = 0.0  # the beams begin alike: only the first counts
    while sentences:
        decoding = model.decode(prefixes[:, -1:], state)
        following = decoding.logits[:, -1].float().log_softmax(dim=1)
        following[:, PAD] = following[:, BOS] = -torch.inf
        following += log_probs.view(-1, 1)
        vocabulary = following.size(1)
        candidates = following.view(len(sentences), -1)  # (sentences, beam_size x vocabulary)
        # twice the beam: even if beam_size of these end, beam_size others go on
        best, index = largest(candidates, min(2 * beam_size, candidates.size(1)))
        first_row = torch.arange(len(sentences), device=src.device).unsqueeze(1) * beam_size
        rows, tokens = first_row + index // vocabulary, index % vocabulary
        ended = (tokens == EOS) & best.isfinite()
        beams.add(sentences, ended[:, :beam_size], best, rows, prefixes)
        going_on = ended.int().argsort(dim=1, stable=True)[:, :beam_size]
        log_probs = best.gather(1, going_on)
        rows, tokens = rows.gather(1, going_on), tokens.gather(1, going_on)
        log_probs = log_probs.masked_fill(tokens == EOS, -torch.inf)
        length = prefixes.size(1)
        going_best = log_probs[:, 0].tolist()
        keep = []
        for place, sentence in enumerate(sentences):
            if beams.complete(sentence, going_best[place], length):
                continue
            if length >= limits[sentence]:
                if not beams.ended[sentence]:
                    beams.cap(sentence, prefixes[rows[place]], tokens[place], log_probs[place])
                continue
            keep.append(place)
        same_sources = len(keep) == len(sentences)
        if not same_sources:
            sentences = [sentences[place] for place in keep]
            kept = torch.tensor(keep, dtype=torch.long, device=src.device)
            rows, tokens, log_probs = rows[kept], tokens[kept], log_probs[kept]
        rows = rows.flatten()
        prefixes = torch.cat([prefixes[rows], tokens.reshape(-1, 1)], dim=1)
        unmoved = torch.arange(decoding.logits.size(0), device=src.device)
        state = decoding.state
        if not torch.equal(rows, unmoved):
            state = state.select(rows, same_sources)
    return [sorted(found, key=lambda h: -h.score)[:beam_size] for found in beams.ended]


class _Beams:
    """The hypotheses that have ended, sentence by sentence."""

    def __init__(self, ended: list[list[Hypothesis]], beam_size: int, alpha: float) -> None:
        self.ended, self.beam_size, self.alpha = ended, beam_size, alpha

    def add(
        self, sentences: list[int], ended: Tensor, best: Tensor, rows: Tensor, prefixes: Tensor
    ) -> None:
        """Takes the prefixes that EOS has ended; ended: (sentences, beam_size)."""
        if not ended.any():
            return
        penalty = length_penalty_of(prefixes.size(1), self.alpha)
        for place, rank in ended.nonzero().tolist():
            log_prob = best[place, rank].item()
            tokens = prefixes[rows[place, rank], 1:].tolist()
            self.ended[sentences[place]].append(
                Hypothesis(tokens, log_prob, log_prob / penalty, False)
            )

    def complete(self, sentence: int, log_prob: float, length: int) -> bool:
        """Whether a sentence needs no more search.

        log_prob: of the best prefix that goes on, of `length` tokens, to which EOS would be added.
        """
        ended = self.ended[sentence]
        if self.beam_size == 1:
            return bool(ended)
        at_most = log_prob / length_penalty_of(length + 1, self.alpha)
        return len(ended) >= self.beam_size and at_most <= max(h.score for h in ended)

    def cap(self, sentence: int, prefixes: Tensor, tokens: Tensor, log_probs: Tensor) -> None:
        """Takes what the limit has cut off; prefixes: (beam_size, length)."""
        penalty = length_penalty_of(prefixes.size(1), self.alpha)
        for prefix, token, log_prob in zip(
            prefixes.tolist(), tokens.tolist(), log_probs.tolist(), strict=True
        ):
            if log_prob > -torch.inf:
                capped = Hypothesis([*prefix[1:], token], log_prob, log_prob / penalty, True)
                self.ended[sentence].append(capped)
