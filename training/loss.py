"""Cross-entropy with smoothed labels, summed over the real target tokens."""

from typing import Any

import torch
from torch import Tensor, nn

from data.tokenizer import PAD

ROWS = 64  # positions at once: their float32 numbers stay in the processor's cache


def smoothed_cross_entropy(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """The loss of logits (batch, tgt_len, tgt_vocab) for targets (batch, tgt_len), a scalar.

    Smoothing gives that share evenly to the whole vocabulary (Szegedy et al. 2016, section 7). PAD
    counts nothing. Numbers are summed in float32, whatever the logits are.
    """
    logits, targets = logits.flatten(0, 1), targets.flatten()
    if logits.dtype == torch.bfloat16 and logits.requires_grad and logits.device.type == "cpu":
        return _InParts.apply(logits, targets, smoothing)
    return nn.functional.cross_entropy(
        logits.float(), targets, ignore_index=PAD, reduction="sum", label_smoothing=smoothing
    )


class _InParts(torch.autograd.Function):
    """The same, a few rows at a time, with the gradient made in the same pass.

    torch goes through the whole matrix of logits in float32 about ten times, which takes a fifth of
    a step in bfloat16. With p the softmax, y the target, e the smoothing and V the vocabulary, the
    loss of a row is -(1 - e) log p_y - e mean(log p), its gradient p - (1 - e) [y] - e / V.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
        gradient = torch.empty_like(logits)
        total = torch.zeros((), dtype=torch.float64)
        parts = (tensor.split(ROWS) for tensor in (logits, targets, gradient))
        for part, target, wanted in zip(*parts, strict=True):
            own, real = target.unsqueeze(1), (target != PAD).unsqueeze(1)
            log_p = part.log_softmax(-1, dtype=torch.float32)
            score = (1 - smoothing) * log_p.gather(1, own)
            if smoothing:
                score += smoothing * log_p.mean(-1, keepdim=True)
            total -= (score * real).sum()
            p = log_p.exp_()
            if smoothing:
                p -= smoothing / logits.size(-1)
            p.scatter_add_(1, own, torch.full_like(score, smoothing - 1))
            wanted.copy_(p.mul_(real))
        ctx.gradient = gradient
        return total.float()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        own, ctx.gradient = ctx.gradient, None  # it is used up: scaled where it lies
        if own is None:
            raise RuntimeError("the gradient of this loss can be taken once")
        return own.mul_(gradient), None, None
