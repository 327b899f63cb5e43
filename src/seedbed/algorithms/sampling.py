"""Choosing among masked actions with one uniform number per decision."""

import torch


def mask_logits(logits: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """Logits [..., A] with -inf where the mask [..., A] forbids an action."""
    return logits if mask is None else logits.masked_fill(~mask, -torch.inf)


def inverse_cdf(probabilities: torch.Tensor, uniforms: torch.Tensor) -> torch.Tensor:
    """Draw actions by inverse transform: probabilities [..., A], uniforms [...] in [0, 1) -> [...] int64.

    An action of probability 0 is never drawn, whatever the rounding.
    """
    cumulative = probabilities.cumsum(-1)
    threshold = uniforms.unsqueeze(-1) * cumulative[..., -1:]
    drawn = (cumulative <= threshold).sum(-1)
    last_possible = probabilities.shape[-1] - 1 - (probabilities.flip(-1) > 0).to(torch.int8).argmax(-1)
    return torch.minimum(drawn, last_possible)
