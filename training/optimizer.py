"""The optimiser that the settings describe."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.nn import Parameter

from training.muon import Muon


def optimizer_of(
    settings: Mapping[str, Any], model: nn.Module, muon: float | None = None
) -> "torch.optim.Optimizer | Together":
    """The class of torch.optim that `_target_` names, with the other settings; or ValueError.

    Nothing else can be named: settings may come from a run folder that is anybody's.
    muon: the learning rate of Muon, which then has the hidden matrices; None: no Muon.
    """
    not_options = ("_target_", "_partial_")  # the second only in runs of older versions
    options = {key: value for key, value in settings.items() if key not in not_options}
    target = str(settings.get("_target_"))
    kind = getattr(torch.optim, target.removeprefix("torch.optim."), None)
    if not (isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer)):
        raise ValueError(f"training.optimizer._target_: {target!r} is no optimiser of torch.optim")
    matrices = [] if muon is None else hidden_matrices(model)
    taken = {id(matrix) for matrix in matrices}
    rest = [parameter for parameter in model.parameters() if id(parameter) not in taken]
    try:
        optimizer = kind(rest, **options)
        # some options are found wrong by a step alone: better now than once a run folder is there
        probe = Parameter(torch.zeros(2, 2, device=rest[0].device))
        probe.grad = torch.zeros_like(probe)
        kind([probe], **options).step()
    except (TypeError, ValueError, IndexError, RuntimeError, AssertionError) as error:
        raise ValueError(f"training.optimizer: {error}") from error
    if not matrices:
        return optimizer
    return Together(optimizer, Muon(matrices, muon, options.get("weight_decay", 0.0)))


def hidden_matrices(model: nn.Module) -> list[Parameter]:
    """The matrices between embeddings and output layer, which are not of words.

    Muon's step has singular values of about 1, which is meant for those.
    """
    words = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
    *_, output = (m for m in model.modules() if isinstance(m, nn.Linear))  # every model's last one
    words.add(id(output.weight))
    matrices = (p for p in model.parameters() if p.dim() == 2 and p.size(0) > 1)
    return [matrix for matrix in matrices if id(matrix) not in words]


class Together:
    """Several optimisers, each of other parameters, used as one."""

    def __init__(self, *optimizers: torch.optim.Optimizer) -> None:
        self.optimizers = optimizers

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        return [group for optimizer in self.optimizers for group in optimizer.param_groups]

    def step(self) -> None:
        for optimizer in self.optimizers:
            optimizer.step()

    def zero_grad(self) -> None:
        for optimizer in self.optimizers:
            optimizer.zero_grad()

    def state_dict(self) -> dict[str, Any]:
        return {"together": [optimizer.state_dict() for optimizer in self.optimizers]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Raises KeyError or ValueError for the state of another kind."""
        for optimizer, own in zip(self.optimizers, state["together"], strict=True):
            optimizer.load_state_dict(own)
