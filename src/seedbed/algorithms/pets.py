"""PETS: probabilistic ensembles with trajectory sampling, for discrete actions.

Chua et al. 2018 (arXiv 1805.12114). A model of the environment is learned from all steps so far and a plan is
made anew at every step, from where the last one left off, on the CPU whatever
the device. What the environment knows of itself (``environments.base.Knowledge``) need not be learned;
without it reward and termination are.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import ClassVar, Self

import numpy as np
from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from seedbed.algorithms.base import Recorder
from seedbed.algorithms.devices import Device, torch_device
from seedbed.algorithms.ensemble import Ensemble, EnsembleSettings
from seedbed.algorithms.pets_policy import PETSPolicy
from seedbed.algorithms.planning import PlannerSettings
from seedbed.algorithms.q_policy import epsilon_greedy
from seedbed.environments.base import Knowledge
from seedbed.environments.lanes import Lanes
from seedbed.seeding import BlockStreams, Purpose

STEPS_BETWEEN_COUNTS = 1000
PACE_STEPS = 1000
"""Latest steps from which the pace towards the goal is taken."""
SLOWEST_PACE = 1e-4


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class PETS:
    """Planning with a learned model. Steps are environment steps per seed."""

    lanes: int = Field(1, ge=1, description="Training episodes side by side per seed")
    learning_starts: int = Field(500, ge=1, description="Steps of random actions before the first model")
    fit_every: int = Field(250, ge=1, description="Steps from one fit of the model to the next")
    buffer_size: int = Field(100_000, ge=1, description="Steps the model learns from, the latest")
    terminal_value: bool = Field(
        True,
        description="Where a horizon ends, add the reward still to come for reaching the goal at the pace of "
        "the latest steps, so that a goal beyond the horizon is seen; nothing where no goal is known",
    )
    model: EnsembleSettings = Field(EnsembleSettings(), description="The model of the environment")
    planner: PlannerSettings = Field(PlannerSettings(), description="How it looks ahead")
    device: Device = "cpu"

    policy_class: ClassVar = PETSPolicy

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for name in ("learning_starts", "fit_every"):
            if getattr(self, name) % self.lanes:
                raise ValueError(
                    f"{name} ({getattr(self, name)}) must be a multiple of lanes ({self.lanes})."
                )
        if self.planner.particles % self.model.elites:
            raise ValueError(
                f"planner.particles ({self.planner.particles}) must be a multiple of model.elites "
                f"({self.model.elites}), so that each model carries as many."
            )
        return self

    def train(self, lanes: Lanes, seeds: Sequence[int], budget: int, recorder: Recorder) -> PETSPolicy:
        """See ``Algorithm.train``.

        Raises:
            ValueError: the budget is not a multiple of lanes or not above ``learning_starts``, or the
                environment has several agents, or there is no such device.
        """
        spec, seeds = lanes.spec, list(seeds)
        self._check(spec, lanes.lanes, budget)
        knowledge = getattr(getattr(lanes, "dynamics", None), "knowledge", None)
        ensemble = Ensemble(
            self.model, spec, knowledge, seeds, self.lanes, min(budget, self.buffer_size),
            torch_device(self.device),
        )  # fmt: skip
        exploration = BlockStreams(Purpose.EXPLORATION, seeds, (self.lanes, 2))
        policy = PETSPolicy(seeds, spec, knowledge, asdict(self.planner), None, None)
        memory, calls = None, 0

        if recorder.due(0):
            recorder.evaluate(0, policy)
        for steps in range(self.lanes, budget + 1, self.lanes):
            observation, mask, uniforms = lanes.observation, lanes.mask, exploration.uniforms()
            if policy.world_model is None:
                nobody = np.zeros((len(seeds), self.lanes), np.int64)
                action = epsilon_greedy(nobody, mask, spec.actions, uniforms, 1.0)
            else:
                action, memory = policy.act(observation, mask, uniforms, memory, lanes.first)
                calls += self.lanes * policy.model_calls
            step = lanes.step(action)
            recorder.step(step)
            ensemble.add(observation, action, step)

            if steps >= self.learning_starts and (steps - self.learning_starts) % self.fit_every == 0:
                model = ensemble.fit()
                pace = None
                if self.terminal_value and knowledge is not None:
                    pace = latest_pace(ensemble, knowledge)
                    recorder.log(steps, pace=pace)
                policy = PETSPolicy(seeds, spec, knowledge, asdict(self.planner), model, pace)
                recorder.log(steps, **ensemble.diagnostics)
            if steps == budget or steps % STEPS_BETWEEN_COUNTS == 0:
                recorder.log(steps, model_calls=np.full(len(seeds), calls))
            if recorder.due(steps):
                recorder.evaluate(steps, policy)
        return policy

    def _check(self, spec, lanes: int, budget: int) -> None:
        if spec.agents is not None or spec.action_array is not None:
            raise ValueError("PETS plans discrete actions for one agent; this environment has others.")
        if lanes != self.lanes:
            raise ValueError(f"PETS was configured for {self.lanes} lanes and given {lanes}.")
        if budget % self.lanes:
            raise ValueError(f"The budget ({budget}) must be a multiple of lanes ({self.lanes}).")
        if budget < self.learning_starts:
            raise ValueError(
                f"learning_starts ({self.learning_starts}) is above the budget ({budget}): no model would be "
                f"learned. Raise the budget or lower learning_starts."
            )


def latest_pace(steps: Ensemble, knowledge: Knowledge) -> np.ndarray:
    """Mean progress per step over the latest steps remembered, [S], at least ``SLOWEST_PACE``."""
    latest = steps.order[-PACE_STEPS // steps.action.shape[2] :]
    gained = [
        knowledge.progress(after[latest]).mean() - knowledge.progress(before[latest]).mean()
        for before, after in zip(steps.observation, steps.following, strict=True)
    ]
    return np.maximum(np.array(gained, np.float32), np.float32(SLOWEST_PACE))
