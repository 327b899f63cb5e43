"""Any single-agent dynamics as a Gymnasium environment and vector environment, and the registered names.

Importing this module registers the names: ``import seedbed.environments.gymnasium_env``, or let Gymnasium do
so by ``gymnasium.make("seedbed.environments.gymnasium_env:seedbed/MockInterview-v0", preset="tiny")``.
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from seedbed.environments.base import Dynamics

NAMES = {
    "seedbed/MockInterview-v0": "MockInterview",
    "seedbed/CartPole-v0": "CartPole",
    "seedbed/GoalGrid-v0": "GoalGrid",
}
"""Gymnasium id -> registered environment."""


def _spaces(dynamics: Dynamics) -> tuple[gymnasium.spaces.Box, gymnasium.spaces.Discrete]:
    spec = dynamics.spec
    if spec.agents is not None:
        raise ValueError(
            f"{type(dynamics).__name__} has {spec.agents} agents, but a Gymnasium environment has one: "
            "use it as a PettingZoo environment."
        )
    box = gymnasium.spaces.Box(spec.observation_low, spec.observation_high, dtype=np.float32)
    return box, gymnasium.spaces.Discrete(spec.actions)


class DynamicsEnv(gymnasium.Env):
    """One episode of a dynamics at a time.

    ``reset(seed=s)`` draws the episode's noise tape from ``default_rng(s)``; a reset without a seed draws the
    next tape from the same generator. ``info`` holds every fact of the step and ``action_mask``, int8 as
    ``action_space.sample(mask)`` takes it.

    Args:
        dynamics: the environment.

    Raises:
        ValueError: the dynamics has several agents.
    """

    def __init__(self, dynamics: Dynamics):
        self.dynamics = dynamics
        self.observation_space, self.action_space = _spaces(dynamics)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Begin an episode; there are no options."""
        super().reset(seed=seed)
        initial, self._tape = self.dynamics.draw(self.np_random)
        self.state, self._t = self.dynamics.initial(initial), 0
        self._limit = int(self.dynamics.limit(self.state))
        return self.dynamics.observe(self.state), self._mask()

    def step(self, action: int):
        """Take one step; ``truncated`` at the step limit, whatever ``terminated`` is."""
        state, reward, terminated, facts = self.dynamics.step(
            self.state, np.asarray(action, np.int64), self._tape[min(self._t, len(self._tape) - 1)]
        )
        self.state, self._t = state, self._t + 1
        info = {name: fact.item() for name, fact in facts.items()} | self._mask()
        observation = self.dynamics.observe(state)
        return observation, float(reward), bool(terminated), self._t >= self._limit, info

    def _mask(self) -> dict[str, np.ndarray]:
        return {"action_mask": self.dynamics.action_mask(self.state).astype(np.int8)}


class DynamicsVectorEnv(gymnasium.vector.VectorEnv):
    """Several episodes of a dynamics side by side, stepped as one array.

    ``reset(seed=s)`` gives environment i the tape that ``DynamicsEnv.reset(seed=s + i)`` draws; a list holds
    one seed per environment. Under ``NEXT_STEP`` (the default) the step after an end is the reset; under
    ``DISABLED`` the caller resets, with ``options={"reset_mask": [num_envs] bool}`` for some of them only.

    Args:
        dynamics: the environment.
        num_envs: number of episodes side by side.
        autoreset_mode: NEXT_STEP or DISABLED.

    Raises:
        ValueError: the dynamics has several agents, or the mode is another one.
    """

    def __init__(
        self,
        dynamics: Dynamics,
        num_envs: int = 1,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    ):
        self.dynamics, self.num_envs = dynamics, num_envs
        self._mode = AutoresetMode(autoreset_mode)
        if self._mode is AutoresetMode.SAME_STEP:
            raise ValueError("DynamicsVectorEnv resets in NEXT_STEP or DISABLED mode, not in SAME_STEP.")
        self.metadata = {"autoreset_mode": self._mode}
        self.single_observation_space, self.single_action_space = _spaces(dynamics)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        spec = dynamics.spec
        self._generators: list[np.random.Generator | None] = [None] * num_envs
        self._initial = np.zeros((num_envs, spec.initial_noise))
        self._tape = np.zeros((num_envs, spec.horizon, spec.step_noise))
        self._t = np.zeros(num_envs, np.int64)
        self._ended = np.zeros(num_envs, bool)
        self.state = dynamics.initial(self._initial)

    def reset(self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None):
        """Begin episodes in all environments, or in those of ``options["reset_mask"]``.

        Raises:
            ValueError: not one seed per environment; the mask is not bool [num_envs], or nowhere true.
        """
        mask = np.asarray((options or {}).get("reset_mask", np.ones(self.num_envs, bool)))
        if mask.shape != (self.num_envs,) or mask.dtype != bool or not mask.any():
            raise ValueError(f"reset_mask must be {self.num_envs} booleans, at least one of them true.")
        if np.ndim(seed) == 0:
            seed = [None if seed is None else seed + i for i in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise ValueError(f"{len(seed)} seeds were given for {self.num_envs} environments.")
        self._begin(mask, seed)
        return self.dynamics.observe(self.state), self._info({}, mask)

    def step(self, actions: np.ndarray):
        """Take one step everywhere.

        Raises:
            RuntimeError: an episode is over and the mode is DISABLED.
        """
        resetting = self._ended.copy()
        if self._mode is AutoresetMode.DISABLED and resetting.any():
            raise RuntimeError(
                f"The episodes of environments {np.nonzero(resetting)[0]} are over: reset them."
            )
        noise = self._tape[np.arange(self.num_envs), np.minimum(self._t, self._tape.shape[1] - 1)]
        state, reward, terminated, facts = self.dynamics.step(self.state, np.asarray(actions), noise)
        self.state, self._t = state, self._t + 1
        truncated = self._t >= self.dynamics.limit(state)
        terminated, truncated = terminated & ~resetting, truncated & ~resetting
        reward = np.where(resetting, 0.0, reward)
        if resetting.any():
            self._begin(resetting, [None] * self.num_envs)
        self._ended = terminated | truncated
        return self.dynamics.observe(self.state), reward, terminated, truncated, self._info(facts, ~resetting)

    def _begin(self, mask: np.ndarray, seeds: list[int | None]) -> None:
        for i in np.nonzero(mask)[0]:
            if seeds[i] is not None or self._generators[i] is None:
                self._generators[i] = np.random.default_rng(seeds[i])
            self._initial[i], self._tape[i] = self.dynamics.draw(self._generators[i])
        for current, new in zip(self.state, self.dynamics.initial(self._initial[mask]), strict=True):
            current[mask] = new
        self._t[mask], self._ended[mask] = 0, False

    def _info(self, facts: dict[str, np.ndarray], valid: np.ndarray) -> dict[str, np.ndarray]:
        """Facts and mask as arrays over environments; ``_name`` tells where ``name`` has a value."""
        mask = self.dynamics.action_mask(self.state).astype(np.int8)
        info = facts | {f"_{name}": valid.copy() for name in facts}
        return info | {"action_mask": mask, "_action_mask": np.ones(self.num_envs, bool)}


def make_env(name: str, **arguments: Any) -> DynamicsEnv:
    """A registered environment by its Seedbed name, as a Gymnasium environment; nothing is rendered."""
    return DynamicsEnv(_dynamics(name, arguments))


def make_vector_env(
    name: str,
    num_envs: int = 1,
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    **arguments: Any,
) -> DynamicsVectorEnv:
    """A registered environment by its Seedbed name, as a Gymnasium vector environment."""
    return DynamicsVectorEnv(_dynamics(name, arguments), num_envs, autoreset_mode)


def _dynamics(name: str, arguments: dict[str, Any]) -> Dynamics:
    from seedbed.registry import ENVIRONMENTS, load

    return load(name, ENVIRONMENTS, "environment")(**arguments)


def register() -> None:
    """Make the names known to ``gymnasium.make``; a second call changes nothing."""
    for identifier, name in NAMES.items():
        if identifier not in gymnasium.registry:
            gymnasium.register(
                identifier,
                entry_point="seedbed.environments.gymnasium_env:make_env",
                vector_entry_point="seedbed.environments.gymnasium_env:make_vector_env",
                kwargs={"name": name},
            )


register()
