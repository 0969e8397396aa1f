"""Dropout (Srivastava et al. 2014) with cheap random bits.

torch draws a floating-point number for each element, one after the other, which takes a sixth of a
step of the small models here. Of one 64-bit draw this takes four masks: 16 bits are enough to say
whether an element stays.
"""

import torch
from torch import Tensor, nn

LEVELS = 1 << 16  # a probability is rounded to a multiple of 1 / LEVELS


class Dropout(nn.Dropout):
    """As nn.Dropout: zeroes elements with probability p, scales the others by 1 / (1 - p)."""

    def forward(self, x: Tensor) -> Tensor:
        dropped = round(self.p * LEVELS)
        if not self.training or dropped in (0, LEVELS) or x.device.type != "cpu":
            return super().forward(x)
        bits = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(1 << 63), None)
        uniform = bits.view(torch.int16)[: x.numel()].view(x.shape)
        stays = uniform >= dropped - LEVELS // 2
        return x * (stays * (LEVELS / (LEVELS - dropped))).to(x.dtype)
