"""Step 3: words attend to each other by their dot products, with nothing to learn."""

import torch
from torch import Tensor

from evaluation.tables import text_table
from evaluation.tour_figures import plane_figure
from models.attention import attention
from scripts.tour.page import Drawing, Part, Step, code, prose, text

WORDS = ("cat", "ate", "fish", "it", "purred")
# made by hand: thing (+) or deed (-); of the one that eats (+) or of the one that is eaten (-)
VECTORS = torch.tensor([[0.8, 0.6], [-1.0, 0.0], [0.8, -0.6], [1.0, 0.0], [-0.8, 0.6]])
CAT, FISH, IT = (WORDS.index(word) for word in ("cat", "fish", "it"))


def attend(words: Tensor) -> tuple[Tensor, Tensor]:
    """Contexts and weights when each word is query, key and value: words (length, d)."""
    everywhere = torch.ones(len(words), len(words), dtype=torch.bool)
    return attention(words, words, words, everywhere)


def step() -> Step:
    contexts, weights = attend(VECTORS)
    scores = VECTORS @ VECTORS.T
    rows = [
        ["dot product with it", *(f"{score:.2f}" for score in scores[IT].tolist())],
        ["attention of it", *(f"{weight:.2f}" for weight in weights[IT].tolist())],
    ]
    order = torch.tensor([3, 1, 4, 0, 2])
    shuffled, _ = attend(VECTORS[order])
    assert torch.allclose(shuffled, contexts[order], atol=1e-6)  # which the last paragraph says
    before = text(
        prose(
            """Why only look from the target at the source? In self-attention a sentence looks at
            itself, so that each word's vector takes in what the other words say of it. In its
            plainest form a word's vector x is query, key and value at once:"""
        ),
        code(
            """
            score_ij  = x_i · x_j                     how alike two words are
            weight_ij = softmax over j of score_ij    (after a division that step 6 explains)
            context_i = Σ_j weight_ij x_j
            """
        ),
        prose(
            f"""Five words, placed by hand in a plane: {", ".join(WORDS)}. Who purred? "it" may be
            the cat or the fish."""
        ),
    )
    after = text(
        text_table(["", *WORDS], rows),
        prose(
            f""""cat" and "fish" have the same dot product with "it", so they get the same
            attention, {weights[IT, CAT]:.2f}, whatever the task needs. What tells them apart lies
            at a right angle to "it", where a dot product does not look. No training can change
            that: there is nothing to train. Besides, the scores are symmetric: "cat" has to score
            "it" as "it" scores "cat"."""
        ),
        prose(
            """(Nor does the order of the words matter. Shuffled, they get the same contexts, which
            is why a Transformer adds positions to its words: `models.attention.sinusoids`.)"""
        ),
    )
    drawing = Drawing(
        "plane",
        plane_figure(
            WORDS,
            VECTORS.numpy(),
            x_label="deed ← → thing",
            y_label="eaten ← → eats",
            alike=(CAT, FISH),
        ),
        'Seen from "it", "cat" and "fish" are the same: the dotted line meets it at a right angle.',
    )
    return Step(
        "A sentence looks at itself", [Part(before, drawing), Part(after)], [attention, attend]
    )
