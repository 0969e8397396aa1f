"""The loop with the hand-written backward pass gives what the plain one gives."""

import torch
from architectures import VOCABULARY, small
from torch import Tensor, nn

from models.bahdanau import Bahdanau


def pairs(rows: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Source tokens of several lengths, their mask, target tokens."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 8, (rows, 1), generator=generator)
    mask = torch.arange(8) < lengths
    src = torch.randint(4, VOCABULARY, (rows, 8), generator=generator).masked_fill(~mask, 0)
    return src, mask, torch.randint(4, VOCABULARY, (rows, 7), generator=generator)


def plain(model: Bahdanau) -> Bahdanau:
    """The model with the loop that reads like the paper, also in training."""
    model._fast_loop = model._loop
    return model


def test_results_and_gradients_equal_those_of_the_plain_loop() -> None:
    src, mask, tgt = pairs(5, seed=1)
    results = []
    for model in (small("bahdanau").double(), plain(small("bahdanau").double())):
        decoding = model(src, mask, tgt)
        # everything that comes out takes part, each in its own way
        total = decoding.logits.square().sum() + decoding.alignment.pow(3).sum()
        total = total + decoding.state.hidden[0].sin().sum()
        results.append([*decoding[:2], *torch.autograd.grad(total, model.parameters())])
    for fast, slow in zip(*results, strict=True):
        torch.testing.assert_close(fast, slow, rtol=1e-10, atol=1e-12)


def test_a_hundred_steps_of_training_have_the_same_losses() -> None:
    losses = []
    for model in (small("bahdanau"), plain(small("bahdanau"))):
        optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
        losses.append([])
        for step in range(100):
            src, mask, tgt = pairs(4, seed=step)
            logits = model(src, mask, tgt[:, :-1]).logits
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), tgt[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    fast, slow = torch.tensor(losses)
    assert slow[-10:].mean() < slow[:10].mean()  # something was learnt
    torch.testing.assert_close(fast, slow, rtol=0, atol=1e-5)


def test_without_gradients_the_plain_loop_is_used() -> None:
    model = small("bahdanau")
    model._fast_loop = None
    src, mask, tgt = pairs(2, seed=2)
    with torch.inference_mode():
        assert model(src, mask, tgt).logits.isfinite().all()
