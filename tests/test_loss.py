"""The loss in parts is torch's cross-entropy, and so is its gradient."""

import pytest
import torch
from torch import nn

from data.tokenizer import PAD
from training.loss import smoothed_cross_entropy


def example(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    logits = (5 * torch.randn(13, 11, 37)).to(dtype).requires_grad_()  # more rows than one part
    targets = torch.randint(1, 37, (13, 11))
    targets[3:5, 4:] = PAD
    return logits, targets


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_loss_and_gradient_are_those_of_torch(dtype: torch.dtype, smoothing: float) -> None:
    logits, targets = example(dtype)
    (3 * smoothed_cross_entropy(logits, targets, smoothing)).backward()
    exact = logits.detach().double().requires_grad_()
    expected = nn.functional.cross_entropy(
        exact.flatten(0, 1),
        targets.flatten(),
        ignore_index=PAD,
        reduction="sum",
        label_smoothing=smoothing,
    )
    (3 * expected).backward()
    loss = smoothed_cross_entropy(logits, targets, smoothing)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
    digits = 2**-7 if dtype == torch.bfloat16 else 1e-6
    torch.testing.assert_close(logits.grad.double(), exact.grad, rtol=digits, atol=1e-6)


def test_smoothing_by_hand() -> None:
    """Two classes with logits 0 and ln 3: p = 1/4 and 3/4."""
    logits = torch.tensor([[[1.0, 3.0]]]).log().requires_grad_()
    loss = smoothed_cross_entropy(logits, torch.tensor([[1]]), 0.2)
    quarter, three = torch.tensor([0.25, 0.75]).log().tolist()
    assert loss.item() == pytest.approx(-0.9 * three - 0.1 * quarter, rel=1e-6)


def test_padding_counts_nothing() -> None:
    logits, targets = example(torch.bfloat16)
    smoothed_cross_entropy(logits, targets, 0.1).backward()
    assert (logits.grad[targets == PAD] == 0).all()
    nothing = torch.full_like(targets, PAD)
    assert smoothed_cross_entropy(logits, nothing, 0.1).item() == 0


def test_the_gradient_can_be_taken_once_and_says_so() -> None:
    logits, targets = example(torch.bfloat16)
    loss = smoothed_cross_entropy(logits, targets, 0.1)
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="once"):
        loss.backward()
