"""What a future is worth after a planner's horizon: a value fitted to the episodes seen."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from seedbed.algorithms.ensemble import Ensemble
from seedbed.algorithms.networks import Layers, Learner, StackedMLP
from seedbed.seeding import Purpose, stream

HIDDEN = (64, 64)
LAMBDA = 0.95
BATCHES, BATCH_SIZE = 100, 256
LEARNING_RATE = 1e-3


class ValueScales(NamedTuple):
    """Units of a value function, of S seeds."""

    centre: np.ndarray
    """[S, d], of observations"""
    spread: np.ndarray
    """[S, d], of observations"""
    mean: np.ndarray
    """[S], of values"""
    size: np.ndarray
    """[S], of values"""


def value_network(observed: int) -> StackedMLP:
    """The network behind a value function of ``observed`` numbers."""
    return StackedMLP([observed, *HIDDEN, 1], "silu", output_gain=0.01)


def value(layers: Layers, scales: ValueScales, row: int, observation: np.ndarray) -> np.ndarray:
    """Values [N] float32 of observations [N, d] by one seed's layers [1, ...]; N a multiple of 16."""
    x = torch.from_numpy((observation - scales.centre[row]) / scales.spread[row])[None]
    network = value_network(observation.shape[-1])
    with torch.inference_mode():
        return network(layers, x)[0, :, 0].numpy() * scales.size[row] + scales.mean[row]


class TerminalValue:
    """Fits values of S seeds to lambda-returns of the steps an ensemble remembers (Sutton 1988).

    They are values of what was done, which improves as the planner does.

    Args:
        observed: numbers in an observation, d.
        seeds: training seeds.
        gamma: discount per step.
    """

    def __init__(self, observed: int, seeds: Sequence[int], gamma: float):
        self._network = value_network(observed)
        self._learner = Learner({"value": self._network}, seeds, LEARNING_RATE, part=2)
        self._generators = [stream(Purpose.MINIBATCHES, seed) for seed in seeds]
        self._gamma = gamma
        self._scales: ValueScales | None = None

    def fit(self, steps: Ensemble) -> tuple[torch.Tensor, ValueScales, np.ndarray]:
        """Fit to what is remembered; parameters [S, P], scales, and explained variance [S]."""
        order = steps.order
        seeds, lanes = steps.action.shape[0], steps.action.shape[2]
        rows = len(order) * lanes
        observation = np.ascontiguousarray(steps.observation[:, order]).reshape(seeds, rows, -1)
        returns = np.ascontiguousarray(self._returns(steps, order)).reshape(seeds, rows)
        scales = ValueScales(
            observation.mean(1),
            np.maximum(observation.std(1), 1e-6),
            returns.mean(1).astype(np.float32),
            np.maximum(returns.std(1), 1e-6).astype(np.float32),
        )
        x = torch.from_numpy((observation - scales.centre[:, None]) / scales.spread[:, None])
        goal = (returns - scales.mean[:, None]) / scales.size[:, None]
        goal = torch.from_numpy(goal.astype(np.float32))
        index = np.stack([g.integers(rows, size=(BATCHES, BATCH_SIZE)) for g in self._generators])
        index = torch.from_numpy(index)
        layers, first = self._learner.layers["value"], rows * torch.arange(seeds)[:, None]
        for batch in range(BATCHES):
            flat = (index[:, batch] + first).view(-1)
            at = x.view(seeds * rows, -1).index_select(0, flat).view(seeds, BATCH_SIZE, -1)
            error = self._network(layers, at).squeeze(2) - goal.view(-1).take(flat).view(seeds, BATCH_SIZE)
            self._learner.step(error.square().mean(1).sum())
        self._scales = scales
        return self._learner.parameters.clone(), scales, 1 - error.detach().square().mean(1).numpy()

    def _returns(self, steps: Ensemble, order: np.ndarray) -> np.ndarray:
        """Lambda-returns [S, slots, L]; the last step and truncated ones lean on the value alone."""
        reward, terminated = steps.reward[:, order], steps.terminated[:, order]
        ended = terminated | steps.truncated[:, order]
        following = np.zeros(reward.shape)
        if self._scales is not None:
            seen, scales = np.ascontiguousarray(steps.following[:, order]), self._scales
            shape = (len(seen), -1, seen.shape[-1])
            x = (seen.reshape(shape) - scales.centre[:, None]) / scales.spread[:, None]
            with torch.no_grad():
                out = self._network(self._learner.layers["value"], torch.from_numpy(x))[..., 0].numpy()
            out = out * scales.size[:, None] + scales.mean[:, None]
            following = out.reshape(reward.shape).astype(np.float64)
        following *= ~terminated
        returns, later = np.empty(reward.shape), following[:, -1]
        for t in reversed(range(reward.shape[1])):
            mixed = (1 - LAMBDA) * following[:, t] + LAMBDA * later
            returns[:, t] = reward[:, t] + self._gamma * np.where(ended[:, t], following[:, t], mixed)
            later = returns[:, t]
        return returns
