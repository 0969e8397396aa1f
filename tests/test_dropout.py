"""Dropout with cheap random bits is dropout: its rate, its scale, its gradient, its seed."""

import pytest
import torch

from models.dropout import Dropout


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.9])
def test_elements_are_zero_at_the_rate_given_and_the_others_scaled(
    p: float, dtype: torch.dtype
) -> None:
    torch.manual_seed(1)
    kept = Dropout(p)(torch.ones(1000, 1001, dtype=dtype))
    share = (kept == 0).double().mean().item()
    assert share == pytest.approx(p, abs=5 * (p * (1 - p) / 1_001_000) ** 0.5 + 2**-17)
    assert kept.unique().tolist() == [0, pytest.approx(1 / (1 - p), rel=2**-7)]


def test_elements_are_dropped_independently() -> None:
    torch.manual_seed(1)
    kept = (Dropout(0.3)(torch.ones(4096, 512)) != 0).double() - 0.7
    for distance in (1, 2, 3, 4, 512):  # of elements of one draw, of two, of two rows
        flat = kept.flatten()
        correlation = (flat[:-distance] * flat[distance:]).mean() / 0.21
        assert abs(correlation) < 5 / flat.numel() ** 0.5


def test_the_gradient_passes_where_the_element_stayed() -> None:
    torch.manual_seed(1)
    x = torch.randn(7, 13, requires_grad=True)
    y = Dropout(0.5)(x)
    y.sum().backward()
    assert torch.equal(x.grad, (y != 0) * 2.0)


def test_the_seed_decides_and_evaluation_drops_nothing() -> None:
    x = torch.randn(3, 5, 7)
    drawn = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        drawn.append(Dropout(0.5)(x))
    assert torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0], drawn[2])
    assert torch.equal(Dropout(0.5).eval()(x), x)
    assert torch.equal(Dropout(0.0)(x), x)
    assert torch.equal(Dropout(1.0)(x), torch.zeros_like(x))
    assert Dropout(0.5)(x[:0]).shape == (0, 5, 7)
    with pytest.raises(ValueError):
        Dropout(1.5)
