"""Planning by the cross-entropy method over the choices behind actions, with trajectory sampling.

Chua et al. 2018 (PETS, arXiv 1805.12114), algorithm 1, for discrete actions: a plan is a categorical
distribution per step and choice; Rubinstein 1999 for the method. Candidates share their noise (Ng and Jordan
2000, PEGASUS), so that they differ by their actions alone and noise costs next to nothing.
"""

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from seedbed.algorithms.model_kernel import permitted
from seedbed.algorithms.world_model import Imagination


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class PlannerSettings:
    """How a planner looks ahead."""

    horizon: int = Field(8, ge=1, description="Steps looked ahead")
    population: int = Field(100, ge=2, description="Action sequences tried per iteration")
    iterations: int = Field(3, ge=1, description="Iterations of the cross-entropy method")
    elite_share: float = Field(0.1, gt=0, le=1, description="Best sequences, which the plan moves towards")
    update_rate: float = Field(0.5, gt=0, le=1, description="How far the plan's logits move to the elites'")
    smoothing: float = Field(0.02, gt=0, description="Added to each choice's share among the elites")
    particles: int = Field(5, ge=1, description="Futures per sequence, a multiple of the model's elites")
    propagation: Literal["TS1", "TSinf"] = Field(
        "TS1", description="A particle meets another model at each step, or always the same (Chua 2018)"
    )
    gamma: float = Field(0.99, ge=0, le=1, description="Discount per step")
    uncertainty_penalty: float = Field(
        0.0, ge=0, description="Taken from a sequence's return per standard deviation over its particles"
    )
    bfloat16: bool = Field(False, description="Multiply in bfloat16: faster, less exact")

    @property
    def model_calls(self) -> int:
        """Predictions of one step per decision."""
        return self.horizon * self.population * self.iterations * self.particles


class Choices:
    """What stands behind actions: several choices, each among a few.

    Args:
        table: see ``Knowledge.action_table``.
    """

    def __init__(self, table: np.ndarray):
        self.sizes = table.shape
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)])
        """Where each choice begins in a row of logits, and where the last one ends."""
        self._strides = np.cumprod([1, *self.sizes[:-1]])
        self._actions = table.ravel(order="F")
        self._matters = self._dependence(table)

    @staticmethod
    def _dependence(table: np.ndarray) -> np.ndarray:
        """Whether the action depends on a choice, other choices being what they are: [combinations, F]."""
        columns = [(table != np.roll(table, 1, axis)).any(axis, keepdims=True) for axis in range(table.ndim)]
        columns = [np.broadcast_to(column, table.shape).ravel(order="F") for column in columns]
        return np.stack(columns, -1)

    def draw(self, logits: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
        """Combinations [..., N, F] from logits [..., sum of sizes] and uniforms [..., N, F] in [0, 1)."""
        chosen = np.empty(uniforms.shape, np.int64)
        for f, (start, end) in enumerate(zip(self.starts[:-1], self.starts[1:], strict=True)):
            weights = np.exp(logits[..., start:end] - logits[..., start:end].max(-1, keepdims=True))
            cumulative = weights.cumsum(-1)
            bounds = cumulative / cumulative[..., -1:]
            bounds[..., -1] = 1.0
            chosen[..., f] = (uniforms[..., f, None] < bounds[..., None, :]).argmax(-1)
        return chosen

    def number(self, chosen: np.ndarray) -> np.ndarray:
        """Combinations [..., F] as numbers [...]; the first choice counts fastest."""
        return chosen @ self._strides

    def permitted(self, number: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
        """The actions [...] of combinations [...], or the next allowed ones.

        After a forbidden combination come those that differ in the first choice only, then those with the
        other choices moved on by one, and so on: a content that is not allowed becomes the question with the
        same other choices. A mask [..., actions] must allow at least one action.
        """
        if mask is None:
            return self._actions.take(number)
        action, rows = np.empty(number.shape, np.int64), np.ascontiguousarray(mask).reshape(number.size, -1)
        permitted(number.reshape(-1), self._actions, self.sizes[0], rows, action.reshape(-1))
        return action

    def shares(self, chosen: np.ndarray, logits: np.ndarray, smoothing: float) -> np.ndarray:
        """Logarithms of the shares of each choice among combinations, as rows of logits.

        A combination counts for the choices that its action depends on; where none does, the logits stay.

        Args:
            chosen: [..., N, F].
            logits: [..., sum of sizes], of the plans they were drawn from.
            smoothing: added to each share.
        """
        out, matters = logits.copy(), self._matters.take(self.number(chosen), 0)
        for f, (start, end) in enumerate(zip(self.starts[:-1], self.starts[1:], strict=True)):
            one_hot = (chosen[..., f, None] == np.arange(end - start)) & matters[..., f, None]
            count = one_hot.sum(-2, dtype=np.float32)
            total = count.sum(-1, keepdims=True)
            share = np.log(count / np.maximum(total, 1) + np.float32(smoothing))
            out[..., start:end] = np.where(total > 0, share, out[..., start:end])
        return out


class Planner:
    """Plans for lanes of one seed: choices, imagination, and what the future after the horizon is worth.

    Lanes share the calls of the models and nothing else.

    Args:
        settings: how to look ahead.
        choices: behind actions.
        imagination: of ``models`` models.
        models: their number, which divides ``settings.particles``.
        changes: numbers that a model predicts with noise.
        worth: observations [N, d] float32 to values [N]; None for nothing.
    """

    def __init__(
        self,
        settings: PlannerSettings,
        choices: Choices,
        imagination: Imagination,
        models: int,
        changes: int,
        worth: Callable[[np.ndarray], np.ndarray] | None,
    ):
        self.settings, self.choices, self.imagination, self.worth = settings, choices, imagination, worth
        self._models, self._changes = models, changes

    def fresh(self) -> np.ndarray:
        """A plan that prefers nothing, [H, sum of sizes] float32."""
        return np.zeros((self.settings.horizon, self.choices.starts[-1]), np.float32)

    def __call__(
        self,
        observation: np.ndarray,
        mask: np.ndarray | None,
        plan: np.ndarray,
        generators: Sequence[np.random.Generator],
    ) -> tuple[np.ndarray, np.ndarray]:
        """Choose actions: the first of the best sequence tried.

        Args:
            observation: [L, d] float32.
            mask: allowed actions [L, actions], or None.
            plan: logits to start from, [L, H, sum of sizes].
            generators: of each lane's decision, [L].

        Returns:
            Allowed actions [L], and the plans for the next step: moved on by one.
        """
        settings, lanes = self.settings, len(observation)
        best, chosen_action = np.full(lanes, -np.inf, np.float32), np.zeros(lanes, np.int64)
        shape = (settings.horizon, settings.particles, self._changes)
        noise = np.stack([generator.standard_normal(shape, np.float32) for generator in generators], 2)
        order = np.tile(np.arange(settings.particles), (lanes, settings.horizon, 1))
        if settings.propagation == "TS1":
            order = np.stack([g.permuted(own, axis=1) for g, own in zip(generators, order, strict=True)])
        order = np.moveaxis(order, 0, 2)
        shape = (settings.horizon, settings.population, len(self.choices.sizes))
        elites, rows = max(1, round(settings.elite_share * settings.population)), np.arange(lanes)
        for _ in range(settings.iterations):
            uniforms = np.stack([generator.random(shape, np.float32) for generator in generators])
            chosen = self.choices.draw(plan, uniforms)
            number = np.ascontiguousarray(np.moveaxis(self.choices.number(chosen), 0, 1))
            score, first = self._score(observation, mask, number, noise, order)
            ranked = np.argsort(-score, axis=1, kind="stable")
            top = score[rows, ranked[:, 0]]
            better = top > best
            best = np.where(better, top, best)
            chosen_action = np.where(better, first[rows, ranked[:, 0]], chosen_action)
            kept = np.take_along_axis(chosen, ranked[:, None, :elites, None], 2)
            shares = self.choices.shares(kept, plan, settings.smoothing)
            plan = plan + np.float32(settings.update_rate) * (shares - plan)
        return chosen_action, np.concatenate([plan[:, 1:], np.zeros_like(plan[:, :1])], 1)

    def _score(
        self,
        observation: np.ndarray,
        mask: np.ndarray | None,
        number: np.ndarray,
        noise: np.ndarray,
        order: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """What sequences [H, L, N] are worth, [L, N], and their first actions [L, N].

        ``noise`` is [H, particles, L, changes], ``order`` [H, particles, L].
        """
        settings, (horizon, lanes, population) = self.settings, number.shape
        particles, models, width = settings.particles, self._models, observation.shape[-1]
        rows = (models, particles // models * lanes * population)
        x = np.broadcast_to(observation[:, None], (particles, lanes, population, width))
        total = np.zeros((particles, lanes, population), np.float32)
        alive = np.ones_like(total)
        first = self.choices.permitted(number[0], None if mask is None else mask.repeat(population, 0))
        every = np.arange(lanes)
        for t in range(horizon):
            if settings.propagation == "TS1":
                x, total, alive = x[order[t], every], total[order[t], every], alive[order[t], every]
            if t == 0:
                action = np.broadcast_to(first, total.shape)
            else:
                action = np.broadcast_to(number[t], total.shape)
                action = self.choices.permitted(action, self.imagination.action_mask(x))
            step = noise[t].repeat(population, 1).reshape(*rows, -1)
            following, reward, terminated = self.imagination.step(
                x.reshape(*rows, -1), action.reshape(rows), step
            )
            total = total + alive * reward.reshape(total.shape)
            alive = alive * np.float32(settings.gamma) * (1 - terminated.reshape(total.shape))
            x = following.reshape(x.shape)
        if self.worth is not None:
            total = total + alive * self.worth(x.reshape(-1, width)).reshape(total.shape)
        score = total.mean(0)
        if settings.uncertainty_penalty:
            score = score - np.float32(settings.uncertainty_penalty) * total.std(0)
        return score, first
