"""Which optimiser has which parameters, and what Muon does to a matrix."""

import pytest
import torch
from architectures import NAMES, config
from torch import nn

from models import checkpoint as checkpoints
from training import muon
from training.muon import Muon, orthogonal
from training.optimizer import Together, hidden_matrices, optimizer_of

ADAMW = {"_target_": "torch.optim.AdamW", "lr": 0.01, "weight_decay": 0.0}


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.embedding = nn.Embedding(50, 8)
        self.hidden = nn.Linear(8, 16)
        self.energy = nn.Linear(16, 1)
        self.output = nn.Linear(16, 50)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden = self.hidden(self.embedding(tokens)).tanh()
        return self.output(hidden * self.energy(hidden))


def stepped(muon: float | None, **settings) -> tuple[Model, dict[str, torch.Tensor]]:
    """A model with a gradient, and by how much one step changes each parameter."""
    model = Model()
    optimizer = optimizer_of(ADAMW | settings, model, muon)
    model(torch.arange(50)).log_softmax(-1).diagonal().sum().neg().backward()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimizer.step()
    return model, {name: p.detach() - before[name] for name, p in model.named_parameters()}


def test_muon_turns_hidden_matrices_by_an_orthogonal_step_and_adam_moves_the_rest():
    model, change = stepped(muon=0.02)
    values = torch.linalg.svdvals(change["hidden.weight"]) / (0.02 * 0.2 * 16**0.5)
    assert values.min() > 0.6 and values.max() < 1.3  # about 1, as five iterations come to it
    assert (change["hidden.weight"] * model.hidden.weight.grad).sum() < 0  # downhill
    for name, parameter in model.named_parameters():
        if name != "hidden.weight":  # Adam's first step is its rate against the gradient
            clear = parameter.grad.abs() > 1e-4
            expected = -0.01 * parameter.grad.sign()
            torch.testing.assert_close(change[name][clear], expected[clear], atol=1e-5, rtol=0)


@pytest.mark.parametrize("shape", [(3, 8, 8), (2, 8, 12), (2, 12, 8)])
def test_each_singular_value_goes_through_the_polynomial_and_the_vectors_stay(shape):
    torch.manual_seed(2)
    matrices = torch.randn(shape, dtype=torch.float64)
    left, values, right = torch.linalg.svd(matrices, full_matrices=False)
    values = values / values.pow(2).sum(-1, keepdim=True).sqrt()
    for _ in range(5):
        values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
    torch.testing.assert_close(orthogonal(matrices), left @ values.diag_embed() @ right)


@pytest.mark.parametrize("bf16", [True, False])
def test_muon_steps_as_torch_does(bf16, monkeypatch):
    """torch's turns matrix after matrix, in bfloat16: equal within its rounding."""
    monkeypatch.setattr(muon, "has_bf16_units", lambda *_: bf16)
    torch.manual_seed(3)
    shapes = [(8, 8), (8, 16), (8, 8), (16, 8), (4, 32)]
    ours = [nn.Parameter(torch.randn(shape)) for shape in shapes]
    theirs = [nn.Parameter(matrix.detach().clone()) for matrix in ours]
    options = {"lr": 0.05, "weight_decay": 0.1}
    optimizers = [
        Muon(ours, **options),
        torch.optim.Muon(theirs, **options, adjust_lr_fn="match_rms_adamw"),
    ]
    for step in range(4):
        for own, other in zip(ours[step % 2 :], theirs[step % 2 :], strict=True):
            own.grad = torch.randn_like(own)  # the first one has none every other time
            other.grad = own.grad.clone()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    for own, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(own, other, atol=5e-3, rtol=0)
    optimizers[0].load_state_dict(optimizers[1].state_dict())  # a run of before goes on


def test_a_gradient_of_zeros_moves_nothing():
    matrix = nn.Parameter(torch.ones(4, 4))
    matrix.grad = torch.zeros(4, 4)
    Muon([matrix], lr=0.1).step()
    assert torch.equal(matrix, torch.ones(4, 4))


def test_without_muon_one_optimizer_has_all_parameters():
    optimizer = optimizer_of(ADAMW, Model())
    assert isinstance(optimizer, torch.optim.AdamW)
    assert sum(len(group["params"]) for group in optimizer.param_groups) == 7


def test_weight_decay_is_the_same_for_all():
    _, without = stepped(muon=0.02)
    model, decayed = stepped(muon=0.02, weight_decay=0.5)
    for name, rate in (("hidden.weight", 0.02), ("output.weight", 0.01)):
        before = dict(model.named_parameters())[name].detach() - decayed[name]
        torch.testing.assert_close(decayed[name] - without[name], -rate * 0.5 * before)


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_has_one_optimizer_and_words_have_adam(name):
    model = checkpoints.build(config(name), 601, 701)
    together = optimizer_of(ADAMW, model, 0.02)
    assert isinstance(together, Together)
    rest, matrices = ({id(p) for p in group["params"]} for group in together.param_groups)
    assert rest | matrices == {id(p) for p in model.parameters()} and not rest & matrices
    names = {parameter: name for name, parameter in model.named_parameters()}
    assert {p.dim() for p in hidden_matrices(model)} == {2}
    for parameter in hidden_matrices(model):
        assert not {601, 701} & set(parameter.shape), names[parameter]


@pytest.mark.parametrize("name", NAMES)
def test_a_vocabulary_as_large_as_a_layer_takes_nothing_from_muon(name):
    def hidden(vocabulary: int) -> list[str]:
        model = checkpoints.build(config(name), vocabulary, vocabulary)
        names = {parameter: name for name, parameter in model.named_parameters()}
        return [names[matrix] for matrix in hidden_matrices(model)]

    expected, sizes = hidden(601), (12, 16, 24, 32, 48, 64)  # rows of what is of no word
    model = checkpoints.build(config(name), 601, 601)
    assert {matrix.size(0) for matrix in hidden_matrices(model)} <= set(sizes)
    assert all(hidden(size) == expected for size in sizes)


def test_the_state_comes_back_and_that_of_another_kind_is_refused():
    model = Model()
    together = optimizer_of(ADAMW, model, 0.02)
    model(torch.arange(50)).sum().backward()
    together.step()
    again = optimizer_of(ADAMW, model, 0.02)
    again.load_state_dict(together.state_dict())
    assert str(again.state_dict()) == str(together.state_dict())
    together.zero_grad()
    assert all(parameter.grad is None for parameter in model.parameters())
    with pytest.raises(KeyError):
        again.load_state_dict(optimizer_of(ADAMW, model).state_dict())


def test_a_rate_that_the_optimizer_refuses_is_said_with_its_key():
    with pytest.raises(ValueError, match=r"training\.optimizer: .*learning rate"):
        optimizer_of(ADAMW | {"lr": -1.0}, Model(), 0.02)


@pytest.mark.parametrize(
    "options",
    [
        {"amsgrad": "x", "fused": True},
        {"betas": [0.9, 0.98, 0.99]},
        {"capturable": True},
        {"differentiable": True},
    ],
)
def test_an_option_that_only_a_step_finds_wrong_is_said_before_the_first_update(options):
    with pytest.raises(ValueError, match=r"^training\.optimizer: ."):
        optimizer_of(ADAMW | options, Model())


def test_settings_of_runs_that_name_the_optimizer_as_partial_are_read():
    optimizer_of(ADAMW | {"_partial_": True}, Model())
