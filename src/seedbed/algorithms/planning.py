"""Planning by the cross-entropy method over the choices behind actions, with trajectory sampling.

Chua et al. 2018 (PETS, arXiv 1805.12114), algorithm 1, for discrete actions: a plan is a categorical
distribution per step and choice; Rubinstein 1999 for the method. Candidates share their noise (Ng and Jordan
2000, PEGASUS), so that they differ by their actions alone and noise costs next to nothing.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

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
        action = self._actions.take(number)
        if mask is None:
            return action
        first = self.sizes[0]
        rest = len(self._actions) // first
        rows = np.arange(0, mask.size, mask.shape[-1]).reshape(action.shape)
        mask = np.ascontiguousarray(mask).reshape(-1)
        for shift in range(1, len(self._actions)):
            forbidden = ~mask.take(action + rows)
            if not forbidden.any():
                break
            other = number // first
            other = (number % first + shift) % first + (other + shift // first) % rest * first
            action = np.where(forbidden, self._actions.take(other), action)
        return action

    def shares(self, chosen: np.ndarray, logits: np.ndarray, smoothing: float) -> np.ndarray:
        """Logarithms of the shares of each choice among combinations, as a row of logits.

        A combination counts for the choices that its action depends on; where none does, the logits stay.

        Args:
            chosen: [H, N, F].
            logits: [H, sum of sizes], of the plan they were drawn from.
            smoothing: added to each share.
        """
        out, matters = logits.copy(), self._matters.take(self.number(chosen), 0)
        for f, (start, end) in enumerate(zip(self.starts[:-1], self.starts[1:], strict=True)):
            one_hot = (chosen[..., f, None] == np.arange(end - start)) & matters[..., f, None]
            count = one_hot.sum(1, dtype=np.float32)
            total = count.sum(-1, keepdims=True)
            share = np.log(count / np.maximum(total, 1) + np.float32(smoothing))
            out[:, start:end] = np.where(total > 0, share, out[:, start:end])
        return out


class Planner:
    """Plans for one seed: choices, imagination, and what the future after the horizon is worth.

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
        generator: np.random.Generator,
    ) -> tuple[int, np.ndarray]:
        """Choose an action: the first of the best sequence tried.

        Args:
            observation: [d] float32.
            mask: allowed actions [actions], or None.
            plan: logits to start from, [H, sum of sizes].
            generator: of this decision.

        Returns:
            An allowed action, and the plan for the next step: moved on by one.
        """
        settings, best, chosen_action = self.settings, -np.inf, 0
        noise = generator.standard_normal((settings.horizon, settings.particles, self._changes), np.float32)
        order = np.tile(np.arange(settings.particles), (settings.horizon, 1))
        if settings.propagation == "TS1":
            order = generator.permuted(order, axis=1)
        shape = (settings.horizon, settings.population, len(self.choices.sizes))
        elites = max(1, round(settings.elite_share * settings.population))
        for _ in range(settings.iterations):
            chosen = self.choices.draw(plan, generator.random(shape, np.float32))
            number = self.choices.number(chosen)
            score, first = self._score(observation, mask, number, noise, order)
            ranked = np.argsort(-score, kind="stable")
            if score[ranked[0]] > best:
                best, chosen_action = score[ranked[0]], int(first[ranked[0]])
            shares = self.choices.shares(chosen[:, ranked[:elites]], plan, settings.smoothing)
            plan = plan + np.float32(settings.update_rate) * (shares - plan)
        return chosen_action, np.concatenate([plan[1:], np.zeros_like(plan[:1])])

    def _score(
        self,
        observation: np.ndarray,
        mask: np.ndarray | None,
        number: np.ndarray,
        noise: np.ndarray,
        order: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """What sequences [H, N] are worth, [N], and their first actions [N]."""
        settings, (horizon, population) = self.settings, number.shape
        particles, models = settings.particles, self._models
        rows = (models, particles // models * population)
        x = np.broadcast_to(observation, (particles, population, observation.size))
        total = np.zeros((particles, population), np.float32)
        alive = np.ones_like(total)
        first = self.choices.permitted(number[0], None if mask is None else mask[None].repeat(population, 0))
        for t in range(horizon):
            if settings.propagation == "TS1":
                x, total, alive = x[order[t]], total[order[t]], alive[order[t]]
            if t == 0:
                action = np.broadcast_to(first, (particles, population))
            else:
                action = np.broadcast_to(number[t], (particles, population))
                action = self.choices.permitted(action, self.imagination.action_mask(x))
            step = noise[t][:, None].repeat(population, 1).reshape(*rows, -1)
            following, reward, terminated = self.imagination.step(
                x.reshape(*rows, -1), action.reshape(rows), step
            )
            total = total + alive * reward.reshape(total.shape)
            alive = alive * np.float32(settings.gamma) * (1 - terminated.reshape(total.shape))
            x = following.reshape(x.shape)
        if self.worth is not None:
            total = total + alive * self.worth(x.reshape(-1, observation.size)).reshape(total.shape)
        score = total.mean(0)
        if settings.uncertainty_penalty:
            score = score - np.float32(settings.uncertainty_penalty) * total.std(0)
        return score, first
