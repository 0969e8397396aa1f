"""Step 7: attention that sees no later word, and what a model of the next word is trained on."""

import torch
from torch import Tensor

from data.batching import collate
from data.grammar import FIGURE_3A
from data.tokenizer import BOS, EOS
from evaluation.alignment import words
from evaluation.tables import text_table
from evaluation.tour_figures import Grid, grids_figure
from models.seq2seq import masked_softmax
from scripts.tour.context import NAMES, example
from scripts.tour.page import Drawing, Part, Step, prose, text

CONTEXT, BATCH = 4, 8


def renormalised(scores: Tensor) -> Tensor:
    """Causal weights the long way: softmax over all, later positions set to 0, rows divided."""
    everything = masked_softmax(scores, torch.ones_like(scores, dtype=torch.bool))
    kept = everything.tril()
    return kept / kept.sum(dim=-1, keepdim=True)


def causal(scores: Tensor) -> Tensor:
    """Causal weights as models compute them: minus infinity for later positions, then softmax."""
    return masked_softmax(scores, torch.ones_like(scores, dtype=torch.bool).tril())


def windows(tokens: Tensor, context: int, batch: int) -> tuple[Tensor, Tensor]:
    """Inputs and targets, each (batch, context), of a text's first windows.

    tokens: (length,). A window begins at each token; its target is what follows each of its inputs.
    """
    rows = tokens.unfold(0, context + 1, 1)[:batch]
    return rows[:, :-1], rows[:, 1:]


def step() -> Step:
    return Step(
        "Not looking ahead",
        [_masks(), _next_words()],
        [masked_softmax, renormalised, causal, windows, collate],
    )


def _masks() -> Part:
    scores = example().scores / 2**0.5
    assert torch.allclose(renormalised(scores), causal(scores), atol=1e-6)  # which the text says
    extreme = torch.tensor([[0.0, 200.0], [0.0, 200.0]])
    return Part(
        text(
            prose(
                """A decoder that predicts the next word must not see it. So word i may attend to
                words 1 to i only. There are two ways to that: take the softmax over all words, set
                the later ones to 0, and divide each row by what is left; or set the later scores to
                minus infinity before the softmax, for the exponential of that is 0. But for
                rounding they agree."""
            ),
            prose(
                f"""The models take the second way. It is one step, and it is safe: where a later
                word has all the weight, nothing is left to divide. With the scores 0 and 200, the
                first word's attention to itself is {renormalised(extreme)[0, 0].item()} (0 divided
                by 0) the first way and {causal(extreme)[0, 0].item()} the second."""
            ),
        ),
        Drawing(
            "causal",
            grids_figure(
                [
                    Grid("later ones 0, rows divided", renormalised(scores).numpy(), NAMES, NAMES),
                    Grid("minus infinity first", causal(scores).numpy(), NAMES, NAMES),
                ]
            ),
            "Weights of the scores of step 5, computed in both ways: no word sees a later one.",
        ),
    )


def _next_words() -> Part:
    vocabulary = words(FIGURE_3A)
    inputs, targets = windows(torch.arange(len(vocabulary)), CONTEXT, BATCH)
    rows = [
        [" ".join(vocabulary[token] for token in row) for row in pair]
        for pair in zip(inputs.tolist(), targets.tolist(), strict=True)
    ]
    first = [vocabulary[token] for token in inputs[0].tolist()]
    after = [vocabulary[token] for token in targets[0].tolist()]
    batch = collate([[]], [[4, 5, 6]])
    return Part(
        text(
            prose(
                f"""With the mask, one reading of a text gives a prediction at every position.
                Inputs and targets are the same text, shifted by one. Windows of context {CONTEXT},
                a batch of {BATCH}:"""
            ),
            text_table(["input", "target"], rows),
            prose(
                f"""The first row holds {CONTEXT} tasks at once: """
                + "; ".join(
                    f'after "{" ".join(first[: i + 1])}" comes "{after[i]}"' for i in range(CONTEXT)
                )
                + f""". The batch has {inputs.numel()}. For translation it is the same: of the
                target tokens 4 5 6, the decoder reads {_listed(batch.tgt_in)} and is to predict
                {_listed(batch.tgt_out)}, where {BOS} begins a sentence and {EOS} ends it."""
            ),
        )
    )


def _listed(tokens: Tensor) -> str:
    return " ".join(map(str, tokens[0].tolist()))
