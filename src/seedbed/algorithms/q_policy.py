"""Action values: the network, the masked arg max, and the policy that acts on them."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import torch

from seedbed.algorithms.base import Memory
from seedbed.algorithms.devices import host
from seedbed.algorithms.network_policy import NetworkPolicy
from seedbed.algorithms.networks import Layers, StackedMLP
from seedbed.algorithms.sampling import mask_logits


class QNetwork(StackedMLP):
    """Perceptrons of action values, plain or dueling.

    Dueling (Wang et al. 2016, eq. 9): Q = V + A - mean A. Value and advantages leave one last layer, the
    value in its last column, so that Q is linear in the last hidden layer either way. The last weights are
    stored [out, in], so that the value of one action is one row.

    Args:
        sizes: widths from observation to actions.
        activation: see ``StackedMLP``.
        dueling: whether the last layer has the further column.
        output_gain: see ``StackedMLP``.
    """

    def __init__(self, sizes: Sequence[int], activation: str, dueling: bool, output_gain: float = 1.0):
        super().__init__([*sizes[:-1], sizes[-1] + dueling], activation, output_gain)
        self.actions, self.dueling = sizes[-1], dueling

    def initialise(self, row: torch.Tensor, generator: np.random.Generator) -> None:
        """See ``StackedMLP.initialise``."""
        super().initialise(row, generator)
        first, _, inputs, outputs = self.slots[-1]
        weight = row[first : first + inputs * outputs]
        weight.copy_(weight.view(inputs, outputs).T.reshape(-1).clone())

    def layers(self, flat: torch.Tensor) -> Layers:
        """See ``StackedMLP.layers``."""
        *hidden, (weight, bias) = super().layers(flat)
        seeds, inputs, outputs = weight.shape
        return [*hidden, (weight.view(seeds, outputs, inputs).transpose(1, 2), bias)]

    def advantages(self, layers: Layers, x: torch.Tensor) -> torch.Tensor:
        """Values up to a number per state, [S, B, in] -> [S, B, actions]: enough to choose by."""
        return self(layers, x)[..., : self.actions]

    def chosen(self, layers: Layers, x: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
        """Values of actions [S, B] at x [S, B, in] -> [S, B]; the other actions' are not computed."""
        return self.chosen_from(layers, self.hidden(layers, x), action)

    def chosen_from(self, layers: Layers, hidden: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
        """``chosen``, from activations of the last hidden layer [S, B, hidden]."""
        weight, bias = layers[-1]
        seeds, inputs, outputs = weight.shape
        rows, bias = weight.transpose(1, 2).contiguous(), bias.transpose(1, 2)
        index = (action + torch.arange(seeds, device=action.device)[:, None] * outputs).view(-1)
        slope = rows.view(-1, inputs).index_select(0, index).view(hidden.shape)
        if self.dueling:
            slope, bias = slope + _baseline(rows), bias + _baseline(bias)
        return (slope * hidden).sum(-1) + bias.squeeze(2).gather(1, action)

    @torch.no_grad()
    def plain(self, flat: torch.Tensor) -> torch.Tensor:
        """Parameters [S, P] as those of a plain network of the same values, a copy on the CPU."""
        flat = flat.cpu()
        network = StackedMLP([*self.sizes[:-1], self.actions])
        plain = torch.zeros(flat.shape[0], network.size)
        for ours, theirs in zip(self.layers(flat), network.layers(plain), strict=True):
            for source, target in zip(ours, theirs, strict=True):
                if source.shape != target.shape:
                    source = source[..., :-1] + _baseline(source.transpose(1, 2)).transpose(1, 2)
                target.copy_(source)
        return plain


def _baseline(rows: torch.Tensor) -> torch.Tensor:
    """V - mean A of a last layer's weights or biases: [S, actions + 1, n] -> [S, 1, n]."""
    actions = rows.shape[1] - 1
    share = torch.full((actions + 1, 1), -1 / actions, device=rows.device)
    share[-1] = 1.0
    return (share * rows).sum(1, keepdim=True)


def masked_argmax(values: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """The allowed action of highest value, the first of equals: [..., actions] -> [...] int64.

    On a CPU numpy finds it several times faster than torch.
    """
    values = mask_logits(values, mask)
    if values.device.type == "cpu":
        return torch.as_tensor(values.numpy().argmax(-1))
    return values.argmax(-1)


def epsilon_greedy(
    greedy: np.ndarray, mask: np.ndarray | None, actions: int, uniforms: np.ndarray, epsilon: float
) -> np.ndarray:
    """Greedy actions [...], with probability epsilon replaced by a uniform choice among the allowed ones.

    Args:
        greedy: [...] int64.
        mask: [..., actions] bool, or None.
        actions: their number.
        uniforms: [..., 2] in [0, 1): whether to explore, and which action.
        epsilon: in [0, 1].
    """
    which = uniforms[..., 1].astype(np.float64)
    if mask is None:
        explored = (which * actions).astype(np.int64)
    else:
        allowed = mask.cumsum(-1)
        rank = (which * allowed[..., -1]).astype(np.int64)
        explored = (allowed > rank[..., None]).argmax(-1)
    return np.where(uniforms[..., 0] < epsilon, explored, greedy)


class QPolicy(NetworkPolicy):
    """Acts on action values: "greedy" takes the best allowed action, "sampled" explores with probability
    ``options["epsilon"]``, the rate that training ended with."""

    network_name: ClassVar[str] = "q"

    @property
    def uniforms(self) -> int:
        """None for a greedy decision; two for a sampled one: whether to explore, and which action."""
        return 0 if self.mode == "greedy" else 2

    def _greedy(self, observation: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
        allowed = None if mask is None else torch.from_numpy(mask)
        return host(masked_argmax(self.outputs(observation), allowed))

    def act(self, observation, mask, uniforms, memory, first) -> tuple[np.ndarray, Memory]:
        """See ``Policy.act``."""
        action = self._greedy(observation, mask)
        if self.mode == "sampled":
            action = epsilon_greedy(action, mask, self.sizes[-1], uniforms, self.options["epsilon"])
        return action, None

    def probabilities(self, observation, mask, memory, first) -> np.ndarray:
        """1 for the best allowed action, less the exploration of "sampled"; see ``Policy.probabilities``."""
        action = self._greedy(observation, mask)
        best = np.arange(self.sizes[-1]) == action[..., None]
        if self.mode == "greedy":
            return best.astype(np.float64)
        allowed = np.ones(best.shape, bool) if mask is None else mask
        epsilon = self.options["epsilon"]
        return (1 - epsilon) * best + epsilon * allowed / allowed.sum(-1, keepdims=True)
