"""Learning rates over the steps of a training: pure functions of the step, so nothing to resume."""

import math
from collections.abc import Callable

Schedule = Callable[[int], float]  # step, counted from 1 -> factor of the learning rate

NAMES = ("inverse_sqrt", "cosine", "constant")


def schedule(name: str, warmup_steps: int, max_steps: int) -> Schedule:
    """A linear warm-up to 1, then: constant; cosine to 0 at max_steps (Loshchilov & Hutter 2017);
    or inverse_sqrt, the square root of warmup_steps / step (Vaswani et al. 2017, section 5.3).

    Raises ValueError for another name.
    """
    if name not in NAMES:
        raise ValueError(f"training.schedule must be one of {', '.join(NAMES)}, not {name!r}")
    warmup = max(1, warmup_steps)

    def factor(step: int) -> float:
        if step < warmup:
            return step / warmup
        if name == "inverse_sqrt":
            return math.sqrt(warmup / step)
        if name == "cosine":
            done = (step - warmup) / max(1, max_steps - warmup)
            return 0.5 * (1 + math.cos(math.pi * min(1.0, done)))
        return 1.0

    return factor
