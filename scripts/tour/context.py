"""Step 5: scores, weights and context vectors, in numbers to compute again."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from evaluation.tables import text_table
from evaluation.tour_figures import Grid, grids_figure
from models.attention import attention
from scripts.tour.page import Drawing, Part, Step, prose, text

TOKENS = torch.tensor(
    [
        [0.43, 0.15, 0.89],
        [0.55, 0.87, 0.66],
        [0.57, 0.85, 0.64],
        [0.22, 0.58, 0.33],
        [0.77, 0.25, 0.10],
        [0.05, 0.80, 0.55],
    ]
)
NAMES = [f"x{n}" for n in range(1, len(TOKENS) + 1)]
SEED = 789


class Example(NamedTuple):
    """The six tokens' attention to each other."""

    scores: Tensor  # (6, 6): queries times keys, before the division
    weights: Tensor  # (6, 6)
    context: Tensor  # (6, 2)


@torch.no_grad()
def example() -> Example:
    """Six tokens of three numbers, projected to two."""
    torch.manual_seed(SEED)
    W_q, W_k, W_v = (nn.Linear(3, 2, bias=False) for _ in range(3))
    query, keys, values = W_q(TOKENS), W_k(TOKENS), W_v(TOKENS)
    everywhere = torch.ones(len(TOKENS), len(TOKENS), dtype=torch.bool)
    context, weights = attention(query, keys, values, everywhere)
    return Example(query @ keys.T, weights, context)


def step() -> Step:
    scores, weights, context = example()
    inputs = ",\n                  ".join(str([round(v, 2) for v in t]) for t in TOKENS.tolist())
    rows = [
        [f"z{place}", *(f"{number:.4f}" for number in column)]
        for place, column in enumerate(context.T.tolist(), 1)
    ]
    written = text(
        prose("The whole road once, small enough to follow each number. Paste it into Python:"),
        "```python\n"
        "import torch\n"
        "from models.attention import attention\n\n"
        f"x = torch.tensor([{inputs}])\n"
        f"torch.manual_seed({SEED})\n"
        "W_q, W_k, W_v = (torch.nn.Linear(3, 2, bias=False) for _ in range(3))\n"
        "everywhere = torch.ones(6, 6, dtype=torch.bool)\n"
        "context, weights = attention(W_q(x), W_k(x), W_v(x), everywhere)\n"
        "```",
        prose(
            f"""A query's dot product with each key is a score. Divided by √2, for keys have 2
            numbers, and put through the softmax, a row of scores becomes weights that sum to one.
            The mean of the values with these weights is the context vector z: that of x1 is
            ({context[0, 0]:.4f}, {context[0, 1]:.4f}). The three maps are untrained, so the scores
            are small, all weights are near 1/6, and the contexts nearly the same."""
        ),
        text_table(["", *NAMES], rows),
    )
    drawing = Drawing(
        "context",
        grids_figure(
            [
                Grid("scores Q Kᵀ", scores.numpy(), NAMES, NAMES, weights=False),
                Grid("weights", weights.numpy(), NAMES, NAMES),
                Grid("contexts", context.numpy(), NAMES, ["z1", "z2"], weights=False, digits=4),
            ]
        ),
        "From scores to context vectors; rows are queries. Weights: black is 0, white is 1.",
    )
    return Step("Scores, weights, context", [Part(written, drawing)], [attention, example])
