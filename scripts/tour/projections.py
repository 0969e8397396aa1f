"""Step 4: what a word asks, offers and says become three vectors, made by matrices to be learnt."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from evaluation.tables import text_table
from evaluation.tour_figures import Grid, grids_figure
from models.attention import attention
from scripts.tour.page import Drawing, Part, Step, code, prose, text
from scripts.tour.unweighted import CAT, FISH, IT, VECTORS, WORDS

SENTENCE = "The next day is bright"
WIDTH, SIZE = 8, 4  # of a word's vector; of its query, key and value
UPDATES = 100


class Projected(NamedTuple):
    """What becomes of a sentence's words, from their vectors to their contexts."""

    x: Tensor  # (words, WIDTH)
    query: Tensor  # (words, SIZE), as keys and values
    keys: Tensor
    values: Tensor
    weights: Tensor  # (words, words)
    context: Tensor  # (words, SIZE)


def project() -> Projected:
    """The words of SENTENCE through three linear maps and attention, all untrained."""
    torch.manual_seed(0)
    words = SENTENCE.split()
    x = nn.Embedding(len(words), WIDTH)(torch.arange(len(words)))
    W_q, W_k, W_v = (nn.Linear(WIDTH, SIZE, bias=False) for _ in range(3))
    query, keys, values = W_q(x), W_k(x), W_v(x)
    everywhere = torch.ones(len(words), len(words), dtype=torch.bool)
    context, weights = attention(query, keys, values, everywhere)
    return Projected(*(t.detach() for t in (x, query, keys, values, weights, context)))


def learn(updates: int) -> Tensor:
    """The weights between the words of step 3 after training for "it" to look at "cat".

    W_q and W_k begin as the identity, which is step 3 itself. Returns (words, words).
    """
    W_q, W_k = (nn.Linear(2, 2, bias=False) for _ in range(2))
    for projection in (W_q, W_k):
        nn.init.eye_(projection.weight)
    optimizer = torch.optim.SGD([W_q.weight, W_k.weight], lr=0.5)
    everywhere = torch.ones(len(WORDS), len(WORDS), dtype=torch.bool)
    for _ in range(updates):
        _, weights = attention(W_q(VECTORS), W_k(VECTORS), VECTORS, everywhere)
        optimizer.zero_grad()
        (-weights[IT, CAT].log()).backward()
        optimizer.step()
    return attention(W_q(VECTORS), W_k(VECTORS), VECTORS, everywhere)[1].detach()


def step() -> Step:
    return Step(
        "Queries, keys and values of their own",
        [_shapes(), _learning()],
        [attention, project, learn],
    )


def _shapes() -> Part:
    made = project()
    matrix = f"({WIDTH}, {SIZE})"
    shape = {name: str(tuple(value.shape)) for name, value in made._asdict().items()}
    rows = [
        ["words", "x", shape["x"]],
        ["queries", "Q = x W_q", f"{shape['x']} x {matrix} -> {shape['query']}"],
        ["keys", "K = x W_k", f"{shape['x']} x {matrix} -> {shape['keys']}"],
        ["values", "V = x W_v", f"{shape['x']} x {matrix} -> {shape['values']}"],
        ["weights", "softmax(Q Kᵀ / √d_k)", shape["weights"]],
        ["contexts", "weights V", shape["context"]],
    ]
    return Part(
        text(
            prose(
                """Let three matrices stand between a word and its three roles: what it asks for
                (its query), what it is found by (its key), what it tells (its value). They are
                learnt with the rest of the model."""
            ),
            code("query = x W_q        key = x W_k        value = x W_v"),
            prose(
                f""""{SENTENCE}" has {len(made.x)} words; let each be a vector of {WIDTH} numbers,
                and queries, keys and values have {SIZE}:"""
            ),
            text_table(["", "computed as", "shape"], rows),
            prose(
                f"""The three matrices, {3 * WIDTH * SIZE} numbers, serve sentences of any length;
                only the weights grow with it."""
            ),
        )
    )


def _learning() -> Part:
    before, after = learn(0), learn(UPDATES)
    row = {name: [weights[IT, CAT].item(), weights[IT, FISH].item()]
           for name, weights in (("before", before), ("after", after))}  # fmt: skip
    return Part(
        prose(
            f"""Back to the words of step 3. With W_q and W_k the identity, "it" gives
            {row["before"][0]:.2f} to "cat" and {row["before"][1]:.2f} to "fish", as there. Ask that
            it look at "cat", and let gradient descent change the two matrices: after {UPDATES}
            updates it gives {row["after"][0]:.2f} and {row["after"][1]:.2f}. The words' vectors
            have not moved; what they are compared by has. (The other rows, of which nothing was
            asked, move along, for all words share the two matrices.)"""
        ),
        Drawing(
            "projections",
            grids_figure(
                [
                    Grid("W_q and W_k the identity", before.numpy(), WORDS, WORDS),
                    Grid(f"after {UPDATES} updates", after.numpy(), WORDS, WORDS),
                ]
            ),
            "Attention of each word (rows) on each (columns): black is 0, white is 1.",
        ),
    )
