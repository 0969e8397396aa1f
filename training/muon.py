"""Muon, an optimiser for matrices that turn one vector into another.

Jordan et al. 2024, kellerjordan.github.io/posts/muon; steps scaled to the size of Adam's as in Liu
et al. 2025, arXiv 2502.16982, section 2.2, so that rates and weight decay mean the same for both.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from decoding.device import has_bf16_units

COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # Jordan et al.: singular values of about 1 after 5 rounds
ROUNDS = 5


class Muon(torch.optim.Optimizer):
    """Goes against the gradient's average, with all singular values of the step about the same.

    torch.optim.Muon computes the same one matrix at a time and always in bfloat16, which takes
    thirty times as long where a processor has no units for it. Here matrices of one shape are one
    product, in float32 on such a processor.
    """

    def __init__(
        self,
        matrices: Iterable[Parameter],
        lr: float,
        weight_decay: float = 0.0,
        momentum: float = 0.95,
    ) -> None:
        super().__init__(matrices, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]  # without a closure, which nothing here has
        for group in self.param_groups:
            alike: dict[tuple[torch.Size, torch.device], list[Parameter]] = defaultdict(list)
            for matrix in group["params"]:
                if matrix.grad is not None:
                    alike[matrix.shape, matrix.device].append(matrix)
            for matrices in alike.values():
                self._step(matrices, group)

    def _step(self, matrices: Sequence[Parameter], group: dict[str, Any]) -> None:
        """Moves matrices of one shape."""
        momentum, directions = group["momentum"], []
        for matrix in matrices:
            state = self.state[matrix]
            if not state:
                state["momentum_buffer"] = torch.zeros_like(matrix)
            average = state["momentum_buffer"].lerp_(matrix.grad, 1 - momentum)
            directions.append(matrix.grad.lerp(average, momentum))  # Nesterov's look ahead
        bf16 = has_bf16_units(matrices[0].device)
        steps = orthogonal(torch.stack(directions).to(torch.bfloat16 if bf16 else torch.float32))
        size = 0.2 * max(matrices[0].shape) ** 0.5
        for matrix, step in zip(matrices, steps, strict=True):
            matrix.mul_(1 - group["lr"] * group["weight_decay"])
            matrix.add_(step, alpha=-group["lr"] * size)


def orthogonal(matrices: Tensor) -> Tensor:
    """For U S V^T of each (count, rows, columns), about U V^T: Newton and Schulz's iteration.

    A round takes each singular value s to a s + b s^3 + c s^5; five take all from 0.01 to
    1 to between 0.68 and 1.14.
    """
    a, b, c = COEFFICIENTS
    tall = matrices.size(1) > matrices.size(2)
    x = matrices.mT if tall else matrices
    x = x / matrices.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    for _ in range(ROUNDS):
        squares = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(squares, squares, squares, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x
