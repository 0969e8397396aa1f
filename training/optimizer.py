"""The optimiser that the settings describe."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch.nn import Parameter


def optimizer_of(
    settings: Mapping[str, Any], parameters: Iterable[Parameter]
) -> torch.optim.Optimizer:
    """The class of torch.optim that `_target_` names, with the other settings; or ValueError.

    Nothing else can be named: settings may come from a run folder that is anybody's.
    """
    options = {
        key: value for key, value in settings.items() if key not in ("_target_", "_partial_")
    }
    target = str(settings.get("_target_"))
    kind = getattr(torch.optim, target.removeprefix("torch.optim."), None)
    if not (isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer)):
        raise ValueError(f"training.optimizer._target_: {target!r} is no optimiser of torch.optim")
    try:
        return kind(parameters, **options)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"training.optimizer: {error}") from error
