"""The loop of models/bahdanau.py for training, with its backward pass written by hand.

Nothing here is needed to understand the model: `Bahdanau._loop` says the same in the paper's words,
and tests hold that both agree. It takes a fifth less time for a whole training step of a small
model, and less memory, for three reasons:

- Autograd multiplies matrices for the gradient of each weight at every step, with as few rows as
  the batch has. Here one product does it for all steps.
- tanh(x) = 2 sigmoid(2 x) - 1, and a sigmoid takes a fifth of a tanh's time. The energies
  v_a tanh(u) become 2 v_a sigmoid(2 u), which differs by sum(v_a), the same for all source
  positions: a softmax does not see it.
- The sigmoids, (batch, src_len, hidden) at each step, are not stored: computing them again in the
  backward pass costs no more than reading them from memory.

Under autocast matrix products with weights are in bfloat16; all else is float32.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear

from models.seq2seq import masked_softmax


def cell(x: Tensor, s: Tensor, h: Tensor, gates: Tensor, proposal: Tensor, after: Tensor) -> None:
    """One step; writes the gates r and u side by side, the proposal n, and the state after."""
    size = h.size(-1)
    torch.add(x[:, : 2 * size], s[:, : 2 * size], out=gates).sigmoid_()
    new = torch.addcmul(x[:, 2 * size :], gates[:, :size], s[:, 2 * size :])
    torch.sigmoid(new.mul_(2), out=proposal).mul_(2).sub_(1)  # tanh
    torch.lerp(h, proposal, gates[:, size:], out=after)


def cell_backward(
    grad: Tensor,
    gates: Tensor,
    proposal: Tensor,
    s_new: Tensor,
    h: Tensor,
    d_x: Tensor,
    d_s: Tensor,
) -> Tensor:
    """Writes the gradients of x and s; returns that of h, but for what comes through s."""
    size = h.size(-1)
    through = grad * gates[:, size:]
    new = torch.ops.aten.tanh_backward(through, proposal)
    both = torch.cat([new * s_new, (proposal - h).mul_(grad)], dim=-1)
    both = torch.ops.aten.sigmoid_backward(both, gates)
    d_x[:, : 2 * size] = both
    d_x[:, 2 * size :] = new
    d_s[:, : 2 * size] = both
    torch.mul(new, gates[:, :size], out=d_s[:, 2 * size :])
    return grad - through


def weight_gradient(d_out: Tensor, inputs: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Of a linear layer's weight and bias; d_out, inputs: (length, batch, ...), all steps."""
    d_out, inputs = d_out.flatten(0, 1), inputs.flatten(0, 1)
    return d_out.to(dtype).t() @ inputs.to(dtype), d_out.sum(0).to(dtype)


def compute_dtype(like: Tensor) -> torch.dtype:
    """That of matrix products: bfloat16 under autocast."""
    device = like.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else like.dtype


class _AttentionLoop(torch.autograd.Function):
    """s_i, c_i and alpha_i for all i: equations (5), (6) and appendix A.1 of the paper.

    y: (tgt_len, batch, 3 hidden), projected embeddings; h: (batch, hidden); annotations: (batch,
    src_len, 2 hidden); keys: (batch, src_len, hidden); W_s: (4 hidden, hidden), gates and query of
    a state, b_s: its bias; W_c: (3 hidden, 2 hidden), gates of a context; v: (hidden).
    Returns the states, the contexts and the alignment, each (tgt_len, batch, ...).
    """

    @staticmethod
    def forward(
        ctx: Any,
        y: Tensor,
        h: Tensor,
        annotations: Tensor,
        keys: Tensor,
        src_mask: Tensor,
        W_s: Tensor,
        b_s: Tensor,
        W_c: Tensor,
        v: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        size = h.size(-1)
        steps, batch, src_len = len(y), *src_mask.shape
        doubled = 2 * keys
        states = y.new_empty(steps + 1, batch, size)
        contexts = y.new_empty(steps, batch, 2 * size)
        alignments = y.new_empty(steps, batch, src_len)
        projected = y.new_empty(steps, batch, 4 * size)
        gates, proposals = y.new_empty(steps, batch, 2 * size), y.new_empty(steps, batch, size)
        states[0] = h
        for t in range(steps):
            projected[t] = linear(states[t].to(W_s.dtype), W_s, b_s)
            squashed = squash(doubled, projected[t, :, 3 * size :])
            energy = torch.mv(squashed.flatten(0, 1), 2 * v).view(batch, src_len)
            alignments[t] = masked_softmax(energy, src_mask)
            torch.bmm(alignments[t].unsqueeze(1), annotations, out=contexts[t].unsqueeze(1))
            x = y[t] + linear(contexts[t].to(W_c.dtype), W_c)
            cell(x, projected[t, :, : 3 * size], states[t], gates[t], proposals[t], states[t + 1])
        saved = (states, contexts, alignments, projected, gates, proposals)
        ctx.save_for_backward(annotations, doubled, W_s, W_c, v, *saved)
        return states[1:], contexts, alignments

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, d_states: Tensor, d_contexts: Tensor, d_alignments: Tensor
    ) -> tuple[Tensor | None, ...]:
        annotations, doubled, W_s, W_c, v, *rest = ctx.saved_tensors
        states, contexts, alignments, projected, gates, proposals = rest
        size = v.size(0)
        d_y = gates.new_empty(*gates.shape[:2], 3 * size)
        d_s = torch.empty_like(projected)
        d_context = torch.empty_like(contexts)
        d_keys, d_v = torch.zeros_like(doubled), torch.zeros_like(v)
        carried = torch.zeros_like(d_states[0])
        for t in reversed(range(len(d_states))):
            carried = cell_backward(
                d_states[t] + carried,
                gates[t],
                proposals[t],
                projected[t, :, 2 * size : 3 * size],
                states[t],
                d_y[t],
                d_s[t, :, : 3 * size],
            )
            d_c = torch.add(d_contexts[t], d_y[t].to(W_c.dtype) @ W_c, out=d_context[t])
            d_alpha = torch.bmm(d_c.unsqueeze(1), annotations.transpose(1, 2)).squeeze(1)
            weighted = alignments[t] * d_alpha.add_(d_alignments[t])
            d_energy = weighted.addcmul_(
                alignments[t], weighted.sum(1, keepdim=True), value=-1
            ).unsqueeze(2)
            # computed again, which takes less time than storing it for all steps
            squashed = squash(doubled, projected[t, :, 3 * size :])
            d_v.addmv_(squashed.flatten(0, 1).t(), d_energy.flatten(), alpha=2)
            # 4 v sigmoid'(2 u), the derivative of 2 v sigmoid(2 u)
            d_u = torch.ops.aten.sigmoid_backward(d_energy * (4 * v), squashed)
            d_keys += d_u
            torch.sum(d_u, 1, out=d_s[t, :, 3 * size :])
            carried += d_s[t].to(W_s.dtype) @ W_s
        d_annotations = torch.bmm(alignments.permute(1, 2, 0), d_context.transpose(0, 1))
        d_W_s, d_b_s = weight_gradient(d_s, states[:-1], W_s.dtype)
        d_W_c, _ = weight_gradient(d_y, contexts, W_c.dtype)
        return d_y, carried, d_annotations, d_keys, None, d_W_s, d_b_s, d_W_c, d_v


def squash(doubled_keys: Tensor, query: Tensor) -> Tensor:
    """sigmoid(2 (query + keys)), (batch, src_len, hidden)."""
    return torch.add(doubled_keys, query.unsqueeze(1), alpha=2).sigmoid_()


def attention_loop(
    y: Tensor,
    h: Tensor,
    annotations: Tensor,
    keys: Tensor,
    src_mask: Tensor,
    state_to_gates: torch.nn.Linear,
    context_to_gates: torch.nn.Linear,
    v_a: torch.nn.Linear,
) -> tuple[Tensor, Tensor, Tensor]:
    """States (batch, tgt_len, hidden), contexts (..., 2 hidden) and alignment (..., src_len).

    y: (batch, tgt_len, 3 hidden), the projected embeddings of the words read.
    """
    dtype, exact = compute_dtype(h), v_a.weight.dtype
    with torch.autocast(h.device.type, enabled=False):  # the loop says itself what is bfloat16
        found = _AttentionLoop.apply(
            y.transpose(0, 1).to(exact),
            h.to(exact),
            annotations.to(exact),
            keys.to(exact),
            src_mask,
            state_to_gates.weight.to(dtype),
            state_to_gates.bias.to(dtype),
            context_to_gates.weight.to(dtype),
            v_a.weight[0],
        )
    states, contexts, alignments = (tensor.transpose(0, 1) for tensor in found)
    return states, contexts, alignments
