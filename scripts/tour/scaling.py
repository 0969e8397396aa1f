"""Step 6: large scores make the softmax a choice of one; the root of d_k keeps them small."""

from typing import NamedTuple

import torch
from torch import Tensor

from evaluation.tables import text_table
from evaluation.tour_figures import Grid, Panel, grids_figure, panels_figure
from models.attention import attention
from models.seq2seq import masked_softmax
from scripts.tour.page import Drawing, Part, Step, prose, text

SCORES = torch.tensor([0.2, -0.1, 0.4, 0.0, 0.5])
FACTORS = (1, 8, 64)
DIMENSIONS = (5, 10, 20, 50, 100, 200, 500, 1000)
PAIRS, KEYS = 10_000, 10


def peaked(factor: float) -> tuple[Tensor, float]:
    """The softmax of SCORES times factor, and its largest slope: of a weight by a score."""
    everywhere = torch.ones(len(SCORES), dtype=torch.bool)
    slopes = torch.autograd.functional.jacobian(
        lambda scores: masked_softmax(scores, everywhere), SCORES * factor
    )
    return masked_softmax(SCORES * factor, everywhere), slopes.abs().max().item()


class Spread(NamedTuple):
    """Of vectors of one dimension, the numbers independent and standard normal."""

    variance: float  # of the dot products of two
    scaled_variance: float  # the same after division by the root of the dimension
    largest: float  # the mean of the largest of KEYS weights, from the plain dot products
    scaled_largest: float  # the same from `attention`


def spread(dimension: int) -> Spread:
    """Measured on PAIRS pairs, and on as many queries divided among KEYS keys each."""
    generator = torch.Generator().manual_seed(dimension)
    query = torch.randn(PAIRS, dimension, generator=generator)
    keys = torch.randn(PAIRS, dimension, generator=generator)
    products = (query * keys).sum(dim=1)
    query, keys = query.view(-1, KEYS, dimension)[:, :1], keys.view(-1, KEYS, dimension)
    everywhere = torch.ones(1, KEYS, dtype=torch.bool)
    plain = masked_softmax(query @ keys.transpose(-2, -1), everywhere)
    _, scaled = attention(query, keys, keys, everywhere)
    return Spread(
        products.var().item(),
        (products / dimension**0.5).var().item(),
        plain.amax(-1).mean().item(),
        scaled.amax(-1).mean().item(),
    )


def step() -> Step:
    return Step(
        "Why divide by the square root of d_k",
        [_peaks(), _variances()],
        [attention, masked_softmax, peaked, spread],
    )


def _peaks() -> Part:
    found = [peaked(factor) for factor in FACTORS]
    rows = [
        [f"scores times {factor}", f"{weights.max():.3f}", f"{slope:.4f}"]
        for factor, (weights, slope) in zip(FACTORS, found, strict=True)
    ]
    return Part(
        text(
            prose(
                """A softmax depends on the size of its scores, not only on their order. Multiplied
                by 8, five mild preferences become a strong one; by 64, a choice. Then there is next
                to nothing left to learn from: its slope, by how much a weight moves when a score
                moves a little, is almost 0 everywhere."""
            ),
            text_table(["", "largest weight", "largest slope"], rows),
        ),
        Drawing(
            "peaks",
            grids_figure(
                [
                    Grid(
                        "weights",
                        torch.stack([weights for weights, _ in found]).numpy(),
                        [f"times {factor}" for factor in FACTORS],
                        [f"{score:.1f}" for score in SCORES.tolist()],
                    )
                ]
            ),
            "Softmax of five scores (columns) as they grow: black is 0, white is 1.",
        ),
    )


def _variances() -> Part:
    found = [spread(dimension) for dimension in DIMENSIONS]
    rows = [
        [name, *(f"{value:,.0f}" if value > 99 else f"{value:.3g}" for value in values)]
        for name, values in (
            ("variance", [one.variance for one in found]),
            ("divided by √d_k", [one.scaled_variance for one in found]),
        )
    ]
    variances = {
        "q · k": [one.variance for one in found],
        "q · k / √d_k": [one.scaled_variance for one in found],
    }
    largest = {
        "softmax(q · k)": [one.largest for one in found],
        "softmax(q · k / √d_k)": [one.scaled_largest for one in found],
    }
    return Part(
        text(
            prose(
                f"""And scores do grow, with the size d_k of queries and keys. A dot product is a
                sum of d_k products. If the numbers are independent, of mean 0 and variance 1, then
                so are the products, and their variances add up to d_k. Divided by √d_k, the
                variance is 1 at any size. Measured on {PAIRS:,} pairs of each size:"""
            ),
            text_table(["d_k", *map(str, DIMENSIONS)], rows),
        ),
        Drawing(
            "scaling",
            panels_figure(
                [
                    Panel("variance of the scores", DIMENSIONS, variances, "d_k", log_y=True),
                    Panel(f"largest of {KEYS} weights (mean)", DIMENSIONS, largest, "d_k"),
                ]
            ),
            "Left: the variance of the scores grows as d_k; divided by √d_k, it stays 1. Right: "
            f"what that does to the largest of {KEYS} weights.",
        ),
    )
