"""Replay of S seeds side by side: a ring of steps, n-step returns, prioritized sampling from sum trees."""

from typing import NamedTuple

import numpy as np
import torch

from seedbed.algorithms.devices import on
from seedbed.environments.base import Spec
from seedbed.environments.lanes import LaneStep

FAN_OUT = 16


class SumTree:
    """One sum tree per seed with two levels of fan-out 16 under a wide top.

    Three levels, where a binary tree has fifteen, mean as many fewer array operations; rows of 16 floats are
    the alignment at which a seed's bits do not depend on its neighbours.

    Args:
        seeds: number of trees, S.
        capacity: number of leaves of each.
    """

    def __init__(self, seeds: int, capacity: int):
        blocks = -(-capacity // FAN_OUT**2)
        self._leaves = torch.zeros(seeds * blocks * FAN_OUT, FAN_OUT)
        self._middle = torch.zeros(seeds * blocks, FAN_OUT)
        self._top = torch.zeros(seeds, blocks, dtype=torch.float64)
        self._first_block = torch.arange(seeds)[:, None] * blocks
        self._first_leaf = self._first_block.numpy() * FAN_OUT**2

    def set(self, index: np.ndarray, priority: np.ndarray) -> None:
        """Set leaves [S, K] to priorities [S, K], none negative; the last of equal indices wins."""
        flat = (index + self._first_leaf).reshape(-1)
        self._leaves.view(-1).numpy()[flat] = priority.reshape(-1)
        row = torch.from_numpy(flat) // FAN_OUT
        self._middle.view(-1)[row] = self._leaves.index_select(0, row).sum(1)
        row = row // FAN_OUT
        self._top.view(-1)[row] = self._middle.index_select(0, row).sum(1).double()

    def sample(self, fraction: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The leaves at which the running sum passes fraction x total.

        Args:
            fraction: [S, K] float64 in [0, 1).

        Returns:
            Indices [S, K] int64 and their priorities [S, K] float32; a leaf of priority 0 is never among them
            unless all are 0.
        """
        cumulative = self._top.cumsum(1)
        block, remainder = _descend(cumulative, torch.from_numpy(fraction) * cumulative[:, -1:])
        row, remainder = (block + self._first_block).view(-1), remainder.float().view(-1, 1)
        for level in (self._middle, self._leaves):
            child, remainder = _descend(level.index_select(0, row).cumsum(1), remainder)
            row = torch.add(child.view(-1), row, alpha=FAN_OUT)
        priority = self._leaves.view(-1).index_select(0, row)
        return row.view(fraction.shape).numpy() - self._first_leaf, priority.view(fraction.shape).numpy()


def _descend(cumulative: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """In each row of running sums [N, F], the children that hold x [N, K], and what is left of x there.

    Rounding may push x to the last sum or past it, where a child may be empty: x is held just below.
    """
    last = cumulative[:, -1:]
    x = torch.minimum(x, torch.nextafter(last, torch.zeros_like(last)))
    child = torch.searchsorted(cumulative, x, right=True).clamp_(max=cumulative.shape[1] - 1)
    before = cumulative.gather(1, (child - 1).clamp_(min=0)).masked_fill_(child == 0, 0.0)
    return child, x - before


class Batch(NamedTuple):
    """B transitions of each seed."""

    observation: torch.Tensor
    """[S, B, d] float32"""
    action: torch.Tensor
    """[S, B] int64"""
    reward: torch.Tensor
    """[S, B] float32: the discounted sum of up to n rewards"""
    next_observation: torch.Tensor
    """[S, B, d] float32: after the last of those rewards"""
    next_mask: torch.Tensor | None
    """[S, B, actions] bool"""
    discount: torch.Tensor
    """[S, B] float32: what the value of ``next_observation`` counts; 0 where the episode terminated"""
    weight: torch.Tensor
    """[S, B] float32: importance-sampling weights, 1 if sampling is uniform"""
    index: np.ndarray
    """[S, B] int64: where the transitions lie, for ``Replay.update``"""
    mask: torch.Tensor | None = None
    """[S, B, actions] bool for ``observation``, if the replay keeps it"""

    def on(self, device: torch.device) -> "Batch":
        """The same on a device, by one copy; ``index`` stays where the replay is."""
        names = [name for name in self._fields if name != "index"]
        moved = on(device, *(getattr(self, name) for name in names))
        return self._replace(**dict(zip(names, moved, strict=True)))


class Replay:
    """A ring of the latest steps of every seed and lane.

    A transition is n steps long, shorter where its episode ends. It can be sampled n - 1 steps after its own.

    Args:
        spec: the environment's shapes.
        seeds, lanes: S and L.
        capacity: steps kept per seed; rounded up to a multiple of L.
        n_step: steps per transition (Sutton 1988; in DQN: Hessel et al. 2018).
        gamma: discount per step.
        alpha: exponent of prioritized sampling (Schaul et al. 2016); None samples uniformly.
        epsilon: added to the size of an error before the exponent.
        keep_masks: whether ``Batch.mask`` is wanted where the environment forbids actions.
    """

    def __init__(
        self,
        spec: Spec,
        seeds: int,
        lanes: int,
        capacity: int,
        n_step: int = 1,
        gamma: float = 0.99,
        alpha: float | None = None,
        epsilon: float = 1e-6,
        keep_masks: bool = False,
    ):
        self.slots = -(-capacity // lanes)
        """Steps kept per lane."""
        if self.slots <= n_step:
            raise ValueError(
                f"A replay of {capacity} steps over {lanes} lanes cannot hold {n_step}-step returns."
            )
        self.seeds, self.lanes, self.n_step, self.gamma = seeds, lanes, n_step, gamma
        self.alpha, self.epsilon = alpha, epsilon
        shape, width = (seeds, self.slots, lanes), int(np.prod(spec.observation_shape))
        self._observation = np.zeros((*shape, width), np.float32)
        self._final_observation = np.zeros((*shape, width), np.float32)
        self._final_mask = np.zeros((*shape, spec.actions), bool) if spec.masked else None
        self._mask = np.zeros((*shape, spec.actions), bool) if spec.masked and keep_masks else None
        self._action = np.zeros(shape, np.int64)
        self._reward = np.zeros(shape)
        self._terminated, self._ended = np.zeros(shape, bool), np.zeros(shape, bool)
        self._return, self._discount = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        self._next = np.zeros(shape, np.int64)
        self._added = self._complete = 0
        self._first = np.arange(seeds)[:, None] * (self.slots * lanes)
        self._tree = SumTree(seeds, self.slots * lanes) if alpha is not None else None
        self._largest = np.ones((seeds, 1), np.float32)

    def __len__(self) -> int:
        """Transitions per seed that can be sampled."""
        return max(0, min(self._added, self.slots) - self.n_step + 1) * self.lanes

    def add(
        self, observation: np.ndarray, action: np.ndarray, step: LaneStep, mask: np.ndarray | None = None
    ) -> None:
        """Note that ``action`` [S, L] at ``observation`` [S, L, ...] led to ``step``.

        ``mask`` [S, L, actions] is what was allowed there; needed where masks are kept.
        """
        slot, shape = self._added % self.slots, (self.seeds, self.lanes, -1)
        self._observation[:, slot] = observation.reshape(shape)
        self._final_observation[:, slot] = step.final_observation.reshape(shape)
        if self._final_mask is not None:
            self._final_mask[:, slot] = step.final_mask
        if self._mask is not None:
            self._mask[:, slot] = mask
        self._action[:, slot] = action
        self._reward[:, slot] = step.reward
        self._terminated[:, slot] = step.terminated
        self._ended[:, slot] = step.terminated | step.truncated
        self._added += 1

    def sample(self, uniforms: np.ndarray, beta: float = 0.0) -> Batch:
        """B transitions per seed from uniforms [S, B] in [0, 1).

        Prioritized: P(i) = p_i / sum p, one draw from each of B equal parts of the sum. The weights
        (N P(i))^-beta are divided by the largest of the batch, so that they only ever shrink a step.
        """
        if not len(self):
            raise ValueError("The replay holds no complete transition yet.")
        self._commit()
        if self._tree is None:
            rank = (uniforms.astype(np.float64) * len(self)).astype(np.int64)
            oldest = self._added - self.n_step + 1 - len(self) // self.lanes
            index = (oldest * self.lanes + rank) % (self.slots * self.lanes)
            weight = torch.ones(index.shape)
        else:
            part = np.arange(uniforms.shape[1])
            index, priority = self._tree.sample((part + uniforms.astype(np.float64)) / uniforms.shape[1])
            # numpy's power, here and in update: torch's rounds otherwise at the end of an array than inside.
            weight = torch.from_numpy((priority.min(1, keepdims=True) / priority) ** np.float32(beta))
        flat = (index + self._first).reshape(-1)
        following = (self._next.reshape(-1)[flat].reshape(index.shape) + self._first).reshape(-1)
        return Batch(
            _gather(self._observation, flat, index.shape),
            _gather(self._action, flat, index.shape),
            _gather(self._return, flat, index.shape),
            _gather(self._final_observation, following, index.shape),
            None if self._final_mask is None else _gather(self._final_mask, following, index.shape),
            _gather(self._discount, flat, index.shape),
            weight,
            index,
            None if self._mask is None else _gather(self._mask, flat, index.shape),
        )

    def update(self, index: np.ndarray, error: np.ndarray) -> None:
        """Set the priorities of sampled transitions to (|error| + epsilon)^alpha; index and error [S, B]."""
        if self._tree is None:
            return
        size = np.abs(error) + np.float32(self.epsilon)
        np.maximum(self._largest, size.max(1, keepdims=True), out=self._largest)
        self._tree.set(index, size**self.alpha)

    def _commit(self) -> None:
        """Complete the transitions whose last step has been added; they get the largest priority so far."""
        start = np.arange(max(self._complete, self._added - self.slots), self._added - self.n_step + 1)
        self._complete = self._added - self.n_step + 1
        slots, discount = start % self.slots, 1.0
        total = np.zeros((self.seeds, len(start), self.lanes))
        running = np.ones(total.shape, bool)
        last = np.zeros(total.shape, np.int64)
        weight = np.zeros(total.shape)
        for step in range(self.n_step):
            at = (start + step) % self.slots
            total += running * discount * self._reward[:, at]
            discount *= self.gamma
            last = np.where(running, at[:, None], last)
            weight = np.where(running, discount * ~self._terminated[:, at], weight)
            running &= ~self._ended[:, at]
        self._return[:, slots], self._discount[:, slots] = total, weight
        self._next[:, slots] = last * self.lanes + np.arange(self.lanes)
        if self._tree is not None:
            unfinished = np.arange(self._complete, self._added) % self.slots
            lane = np.arange(self.lanes)
            index = (np.concatenate((slots, unfinished))[:, None] * self.lanes + lane).reshape(1, -1)
            priority = np.repeat(self._largest**self.alpha, index.shape[1], axis=1)
            priority[:, len(slots) * self.lanes :] = 0.0
            self._tree.set(np.repeat(index, self.seeds, axis=0), priority)


def _gather(values: np.ndarray, flat: np.ndarray, shape: tuple[int, int]) -> torch.Tensor:
    """Rows ``flat`` of values [S, slots, L, ...] as [*shape, ...]."""
    rows = values.reshape(-1, *values.shape[3:]).take(flat, axis=0)
    return torch.from_numpy(rows).view(*shape, *values.shape[3:])
