"""The policy of PETS: plans anew at every step with a learned model."""

from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from seedbed.algorithms.base import Memory
from seedbed.algorithms.forecasts import Forecasting
from seedbed.algorithms.planning import Choices, Planner, PlannerSettings
from seedbed.algorithms.q_policy import epsilon_greedy
from seedbed.algorithms.world_model import Imagination, WorldModel, stacked
from seedbed.artifacts import ArtifactError, read_arrays, write_arrays
from seedbed.environments.base import Dynamics, Knowledge, Spec

LAYER = 200_000
"""Lanes are planned for together while a hidden layer has no more numbers: what stays in a core's cache.
Changes speed, never a result."""


class PETSPolicy(Forecasting):
    """Plans for a few lanes together, each as if it were alone; see ``Policy``.

    Its memory is the plan of each lane, logits [S, L, H, choices]. Before there is a model it acts at random.
    The first of its two uniforms seeds all that a decision draws; a random action takes both.

    Args:
        seeds: training seeds of the rows, [S].
        spec: the environment's shapes.
        knowledge: what the environment says of itself, if anything.
        settings: fields of ``PlannerSettings``.
        model: what the future is planned with; None before any.
        pace: progress per step that is expected after the horizon, [S] float32; None expects nothing there.
    """

    modes: ClassVar[tuple[str, ...]] = ("greedy",)
    mode: ClassVar[str] = "greedy"
    needs_state: ClassVar[bool] = False
    uniforms: ClassVar[int] = 2
    most_lanes: ClassVar[int] = 10
    """More are no faster, and those that end early wait for the last."""

    def __init__(
        self,
        seeds: Sequence[int],
        spec: Spec,
        knowledge: Knowledge | None,
        settings: dict[str, Any],
        model: WorldModel | None,
        pace: np.ndarray | None,
    ):
        self.seeds, self.settings = list(seeds), PlannerSettings(**settings)
        self.world_model, self.pace, self._spec, self._knowledge = model, pace, spec, knowledge
        table = np.arange(spec.actions) if knowledge is None else knowledge.action_table
        self._choices = Choices(table)
        self._planners = [] if model is None else [self._planner(row, knowledge) for row in range(len(seeds))]

    def _planner(self, row: int, knowledge: Knowledge | None) -> Planner:
        model, worth = self.world_model, None
        if self.pace is not None:
            worth = partial(knowledge.promise, pace=self.pace[row])
        predictor = model.predictor(row, self.settings.bfloat16)
        imagination = Imagination(predictor, model.shape, self._spec, knowledge)
        models, changes = model.parameters.shape[1], model.shape.changes
        return Planner(self.settings, self._choices, imagination, models, changes, worth)

    def of(self, seeds: Sequence[int]) -> Self:
        """The policy of some of its seeds, in the order asked for; see ``Policy.of``."""
        if unknown := [seed for seed in seeds if seed not in self.seeds]:
            raise ValueError(f"The policy holds the seeds {self.seeds}, not {unknown}.")
        rows = [self.seeds.index(seed) for seed in seeds]
        model = None if self.world_model is None else self.world_model.of(rows)
        pace = None if self.pace is None else self.pace[rows]
        return type(self)(seeds, self._spec, self._knowledge, vars(self.settings), model, pace)

    @property
    def model_calls(self) -> int:
        """Particles x candidates x steps x iterations per decision; 0 before there is a model."""
        return 0 if self.world_model is None else self.settings.model_calls

    def in_mode(self, mode: str) -> Self:
        """Itself: a planner acts in one way only."""
        if mode not in self.modes:
            raise ValueError(f"PETSPolicy acts 'greedy' only, not '{mode}'.")
        return self

    def act(self, observation, mask, uniforms, memory, first) -> tuple[np.ndarray, Memory]:
        """See ``Policy.act``."""
        lanes = observation.shape[:2]
        if self.world_model is None:
            return epsilon_greedy(np.zeros(lanes, np.int64), mask, self._spec.actions, uniforms, 1.0), memory
        fresh = self._planners[0].fresh()
        plans = np.zeros((*lanes, *fresh.shape), np.float32) if memory is None else memory.copy()
        plans[first] = fresh
        action = np.zeros(lanes, np.int64)
        seen = observation.reshape(*lanes, -1).astype(np.float32)
        of_a_lane = self.settings.particles * self.settings.population * max(self.world_model.hidden)
        at_once = max(1, LAYER // of_a_lane)
        for row, start in product(range(lanes[0]), range(0, lanes[1], at_once)):
            some = slice(start, start + at_once)
            seeds = (uniforms[row, some, 0] * 2**53).astype(np.int64).tolist()
            generators = [np.random.Generator(np.random.PCG64(seed)) for seed in seeds]
            allowed = None if mask is None else mask[row, some]
            planned = self._planners[row](seen[row, some], allowed, plans[row, some], generators)
            action[row, some], plans[row, some] = planned
        return action, plans

    def probabilities(self, observation, mask, memory, first) -> np.ndarray:
        """Not known: an action is the best of sequences that were drawn."""
        raise ValueError("The probabilities of a planner's actions are not known; it draws what it compares.")

    def save(self, path: str | Path) -> None:
        """Write one safetensors file: per seed its models, scales and pace."""
        if self.world_model is None:
            raise ValueError("There is no model to save yet.")
        arrays, metadata = self.world_model.contents(self.seeds)
        if self.pace is not None:
            arrays |= {f"seed-{seed}/pace": self.pace[row : row + 1] for row, seed in enumerate(self.seeds)}
        metadata |= {
            "policy": type(self).__name__, "seeds": self.seeds, "planner": vars(self.settings),
            "observation": self._spec.observation_shape, "actions": self._spec.actions,
            "terminal_value": self.pace is not None,
        }  # fmt: skip
        write_arrays(path, arrays, metadata)

    @classmethod
    def load(cls, path: str | Path, dynamics: Dynamics) -> Self:
        """Read what ``save`` wrote.

        Raises:
            ArtifactError: the file holds another policy, lacks an array, or was made for another environment.
        """
        arrays, metadata = read_arrays(path)
        if metadata.get("policy") != cls.__name__:
            raise ArtifactError(f"{path} holds the policy {metadata.get('policy')}, not {cls.__name__}.")
        spec, knowledge = dynamics.spec, getattr(dynamics, "knowledge", None)
        trained = [*metadata["observation"], metadata["actions"]]
        if trained != [*spec.observation_shape, spec.actions]:
            raise ArtifactError(
                f"{path} was trained with observations and actions {trained}; this environment has "
                f"{[*spec.observation_shape, spec.actions]}. Evaluate it where it was trained."
            )
        model = WorldModel.read(path, arrays, metadata, dynamics)
        pace = stacked(path, arrays, metadata["seeds"], "pace")[:, 0] if metadata["terminal_value"] else None
        return cls(metadata["seeds"], spec, knowledge, metadata["planner"], model, pace)
