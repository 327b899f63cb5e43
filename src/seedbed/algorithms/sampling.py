"""Categorical distributions over masked actions, and drawing from them with one uniform number each."""

import math

import torch


def mask_logits(logits: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """Logits [..., A] with -inf where the mask [..., A] forbids an action.

    Written as a sum (1 - 1/1 = 0, 1 - 1/0 = -inf): on a CPU 15 times faster than ``masked_fill``, and the
    gradient passes through untouched.
    """
    return logits if mask is None else logits + (1 - mask.to(logits.dtype).reciprocal())


def inverse_cdf(probabilities: torch.Tensor, uniforms: torch.Tensor) -> torch.Tensor:
    """Draw actions by inverse transform: the first whose cumulative probability exceeds the uniform number.

    The threshold stays below the last cumulative sum and the sums never fall, so an action of probability 0
    is never drawn, whatever the rounding. That holds on the CPU, which sums from left to right: a GPU sums in
    pieces, so probabilities are brought here first.

    Args:
        probabilities: [..., A], not necessarily summing to exactly 1.
        uniforms: [...] in [0, 1).

    Returns:
        Actions [...] int64.
    """
    cumulative = probabilities.cumsum(-1)
    below_one = 1 - torch.finfo(cumulative.dtype).eps / 2
    uniforms = uniforms.to(cumulative.dtype).clamp(max=below_one)
    threshold = uniforms.unsqueeze(-1) * cumulative[..., -1:]
    return torch.searchsorted(cumulative, threshold, right=True).squeeze(-1)


class _LogProbabilityAndEntropy(torch.autograd.Function):
    """One pass forward and one backward over [..., A] instead of the eight that autograd would record."""

    @staticmethod
    def forward(ctx, logits, actions):
        log = torch.log_softmax(logits, -1)
        chosen = log.gather(-1, actions.unsqueeze(-1)).squeeze(-1)
        probabilities = torch.softmax(logits, -1)  # exp is several times slower where it meets -inf
        log.clamp_(min=math.log(torch.finfo(log.dtype).smallest_normal))  # 0 * -inf would be NaN
        entropy = torch.linalg.vecdot(probabilities, log).neg_()
        ctx.save_for_backward(log, probabilities, entropy, actions)
        return chosen, entropy

    @staticmethod
    def backward(ctx, chosen_slope, entropy_slope):
        log, probabilities, entropy, actions = ctx.saved_tensors
        # d log p(a) / d logit_i = [a = i] - p_i;  d H / d logit_i = -p_i (log p_i + H)
        slope = log.add(entropy.unsqueeze(-1)).mul_(-entropy_slope.unsqueeze(-1))
        slope.sub_(chosen_slope.unsqueeze(-1)).mul_(probabilities)
        slope.scatter_add_(-1, actions.unsqueeze(-1), chosen_slope.unsqueeze(-1))
        return slope, None


def log_probability_and_entropy(
    logits: torch.Tensor, actions: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """log p(action) and the entropy of softmax(logits), with gradients.

    Args:
        logits: [..., A]; -inf forbids an action, which then adds neither entropy nor gradient.
        actions: [...] int64, none of them forbidden.

    Returns:
        Both [...].
    """
    return _LogProbabilityAndEntropy.apply(logits, actions)
