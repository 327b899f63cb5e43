"""A generalized environment for any agent: the transitions of the trial kernels over arrays."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from seedbed.compiled import compiled
from seedbed.environments.base import Spec, Transition
from seedbed.environments.generalized.documents import (
    EnvironmentDocument,
    canonical_environment,
    read_document,
)
from seedbed.environments.generalized.domains import DOMAINS, World, see, start, transition


class GeneralizedState(NamedTuple):
    """Leading shape [...]."""

    variables: np.ndarray
    """[..., variables] float64, in the domain's own units"""


class GeneralizedEnvironment:
    """Mountain Car, Acrobot or Puddle World, seen through transforms and moved by noise.

    Args:
        environment: a domain's name for its usual form, or an environment document.
        horizon: step limit of an episode. The domains know none; tables and tapes need one.

    Raises:
        ValueError: there is no such domain, or the horizon is below 1.
        SeedbedError: the document is none.
    """

    def __init__(self, environment: str | Mapping[str, Any] | EnvironmentDocument, horizon: int = 1000):
        if isinstance(environment, str):
            environment = canonical_environment(environment)
        if not isinstance(environment, EnvironmentDocument):
            environment = read_document(dict(environment))
        if horizon < 1:
            raise ValueError(f"horizon is at least 1, got {horizon}")
        self.document = environment
        self._domain = DOMAINS[environment.domain]
        self._world = environment.world()
        low, high = environment.ranges.astype(np.float32)
        self.spec = Spec(
            np.nextafter(low, np.float32(-np.inf)),  # rounding may take an observation one step beyond
            np.nextafter(high, np.float32(np.inf)),
            actions=self._domain.ACTIONS,
            horizon=horizon,
            initial_noise=4 if environment.random_start else 0,
            step_noise=self._domain.NOISE_PER_STEP if environment.noise else 0,
        )

    def draw(self, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """One episode's start [k0] in [0, 1) and its steps [horizon, k] in [-noise, noise)."""
        spec, noise = self.spec, self.document.noise
        first = generator.random(spec.initial_noise)
        return first, generator.uniform(-noise, noise, (spec.horizon, spec.step_noise))

    def initial(self, noise: np.ndarray) -> GeneralizedState:
        """First state, from initial noise [..., k0]."""
        noise = np.asarray(noise, float)
        leading = noise.shape[:-1]
        rows = noise.reshape(math.prod(leading), self.spec.initial_noise)
        states = np.empty((len(rows), len(self._domain.LOW)))
        _start_all(self._world, rows, states)
        return GeneralizedState(states.reshape(*leading, -1))

    def observe(self, state: GeneralizedState) -> np.ndarray:
        """What is seen, [..., variables] float32."""
        variables = np.ascontiguousarray(state.variables)
        seen = np.empty(variables.shape)
        _see_all(self._world, variables.reshape(-1, variables.shape[-1]), seen.reshape(-1, seen.shape[-1]))
        return seen.astype(np.float32)

    def action_mask(self, state: GeneralizedState) -> np.ndarray:
        """All actions always, [..., actions] bool."""
        return np.ones((*state.variables.shape[:-1], self.spec.actions), bool)

    def limit(self, state: GeneralizedState) -> np.ndarray:
        """The horizon, [...] int64."""
        return np.full(state.variables.shape[:-1], self.spec.horizon)

    def step(self, state: GeneralizedState, action: np.ndarray, noise: np.ndarray) -> Transition:
        """Take action [...] int64 under noise [..., k]."""
        leading, k = state.variables.shape[:-1], self.spec.step_noise
        variables = np.array(state.variables, float, order="C")
        rows = variables.reshape(-1, variables.shape[-1])
        reward, terminated = np.empty(len(rows)), np.empty(len(rows), bool)
        actions = np.ascontiguousarray(np.broadcast_to(action, leading), np.int64).reshape(-1)
        noises = np.ascontiguousarray(noise, float).reshape(len(rows), k)
        _step_all(self._world, rows, actions, noises, reward, terminated)
        return Transition(
            GeneralizedState(variables), reward.reshape(leading), terminated.reshape(leading), {}
        )

    def content_checksums(self) -> dict[str, str]:
        """The environment's document."""
        return {"environment": self.document.hash}


@compiled
def _start_all(world: World, noise, states):
    """First states [n, variables] from noise [n, 4], or [n, 0] where the start is fixed."""
    for row in range(states.shape[0]):
        u = np.zeros(4)
        for i in range(noise.shape[1]):
            u[i] = noise[row, i]
        first = start(world.domain, world.random_start, u[0], u[1], u[2], u[3])
        for i in range(states.shape[1]):
            states[row, i] = first[i]


@compiled
def _see_all(world: World, states, seen):
    """Observations [n, variables] of states [n, variables]."""
    for row in range(states.shape[0]):
        see(world, states[row], seen[row])


@compiled
def _step_all(world: World, states, actions, noise, reward, terminated):
    """Move states [n, variables] in place under noise [n, k]."""
    for row in range(states.shape[0]):
        x = np.zeros(4)
        for i in range(states.shape[1]):
            x[i] = states[row, i]
        u = noise[row, 0] if noise.shape[1] > 0 else 0.0
        v = noise[row, 1] if noise.shape[1] > 1 else 0.0
        x[0], x[1], x[2], x[3], reward[row], terminated[row] = transition(
            world.domain, world.variant, x[0], x[1], x[2], x[3], actions[row], u, v
        )
        for i in range(states.shape[1]):
            states[row, i] = x[i]
