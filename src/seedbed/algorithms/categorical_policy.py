"""A softmax policy over masked actions: what policy-gradient methods learn."""

from typing import ClassVar

import numpy as np
import torch

from seedbed.algorithms.base import Memory
from seedbed.algorithms.network_policy import NetworkPolicy
from seedbed.algorithms.sampling import inverse_cdf, mask_logits


class CategoricalPolicy(NetworkPolicy):
    """Draws from softmax(logits) over the allowed actions, or takes the likeliest; see ``Policy``."""

    network_name: ClassVar[str] = "policy"

    @property
    def uniforms(self) -> int:
        """One per drawn action."""
        return 1 if self.mode == "sampled" else 0

    def act(self, observation, mask, uniforms, memory, first) -> tuple[np.ndarray, Memory]:
        """Choose actions [S, L]; of equally likely ones the lowest index; see ``Policy.act``."""
        if self.mode == "greedy":
            return self._logits(observation, mask).numpy().argmax(-1), None
        probabilities = torch.softmax(self._logits(observation, mask).double(), -1)
        return inverse_cdf(probabilities, torch.from_numpy(uniforms[..., 0].copy())).numpy(), None

    def probabilities(self, observation, mask, memory, first) -> np.ndarray:
        """Exactly what ``act`` draws from, [S, L, actions] float64; see ``Policy.probabilities``."""
        logits = self._logits(observation, mask)
        if self.mode == "sampled":
            return torch.softmax(logits.double(), -1).numpy()
        return np.eye(logits.shape[-1])[logits.numpy().argmax(-1)]

    @torch.inference_mode()
    def _logits(self, observation: np.ndarray, mask: np.ndarray | None) -> torch.Tensor:
        return mask_logits(self.outputs(observation), None if mask is None else torch.from_numpy(mask))
