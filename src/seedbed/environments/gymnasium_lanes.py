"""Lanes over a Gymnasium vector environment, whichever way it resets; it keeps its own random generators.

Three ways are known (https://farama.org/Vector-Autoreset-Mode), and each is counted as it has to be:

* DISABLED: a lane is reset when its episode is over, with the seed of its next episode. Only so does an
  episode depend on its seed and the actions alone, whatever the number of lanes.
* SAME_STEP: the step that ends an episode returns the first observation of the next one, and the last one in
  ``info["final_obs"]``.
* NEXT_STEP: the step after an end is a reset that ignores its action; it belongs to no episode.

In the latter two the environment seeds its later episodes itself. They are still as many as requested, and
every one that begins is counted, so there is no bias to short ones; but which they are depends on the lanes.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from seedbed.environments.gymnasium_spaces import Observations
from seedbed.environments.lanes import EpisodeError, ExternalEnvironment, LaneStep
from seedbed.seeding import Purpose, stream

SEED_BITS = 63
"""Reset seeds are drawn below 2**63, the largest that every generator of numpy and C takes as an integer."""
ERROR = "seedbed_error"
"""Key of ``info`` under which ``external.OneLane`` says what went wrong in a lane."""


def reset_seed(purpose: Purpose, seed: int, episode: int, bits: int = SEED_BITS) -> int:
    """The seed of one episode of an external environment, below 2**bits, from the episode's stream."""
    return int(stream(purpose, seed, episode).integers(2**bits))


def autoreset_mode(envs: VectorEnv) -> AutoresetMode:
    """How a vector environment says it resets.

    Raises:
        ValueError: it does not say; steps could not be told from resets.
    """
    mode = (envs.metadata or {}).get("autoreset_mode")
    try:
        return AutoresetMode(mode)
    except ValueError:
        raise ValueError(
            f"{type(envs).__name__} does not say how it resets (metadata['autoreset_mode'] is {mode!r}), so "
            "the rewards of an episode cannot be told from those of a reset. Set it to an AutoresetMode of "
            "gymnasium.vector: DISABLED, SAME_STEP or NEXT_STEP."
        ) from None


class GymnasiumLanes:
    """Lanes over a vector environment; a free lane takes its seed's next episode, lanes ascending.

    Environment number ``row * L + lane`` is lane ``lane`` of seed ``row``. In mode DISABLED, a lane without
    an episode is reset with the seed None and stepped along; what it does is never logged.

    Args:
        environment: what ``envs`` was made by; its ``spec`` describes observations and actions.
        envs: S * L environments; the lanes close them.
        observations: how their observations become arrays.
        purpose, seeds, lanes, episodes, first: see ``DynamicsLanes``.
        seed_bits: reset seeds are below 2**seed_bits.
        first_action: the smallest discrete action of ``envs``; ours count from 0.

    Raises:
        ValueError: no seed or no lane; not S * L environments; no autoreset mode; plain reset seeds or a
            first episode other than 0 where the environment seeds its episodes itself; an endless stream in
            mode NEXT_STEP.
        EpisodeError: a reset went wrong.
    """

    def __init__(
        self,
        environment: ExternalEnvironment,
        envs: VectorEnv,
        observations: Observations,
        purpose: Purpose,
        seeds: Sequence[int],
        lanes: int,
        episodes: int | Sequence[int] | None = None,
        first: int = 0,
        seed_bits: int = SEED_BITS,
        first_action: int = 0,
    ):
        if not seeds or lanes < 1:
            raise ValueError(f"Lanes need at least one seed and one lane, got {len(seeds)} and {lanes}.")
        if envs.num_envs != len(seeds) * lanes:
            raise ValueError(
                f"{envs.num_envs} environments are not {len(seeds)} seeds x {lanes} lanes of them."
            )
        self.dynamics, self.spec, self.purpose = environment, environment.spec, purpose
        self.seeds, self.lanes, self.mask = list(seeds), lanes, None
        self._envs, self._observations, self._seed_bits = envs, observations, seed_bits
        self._first_action, self._mode = first_action, autoreset_mode(envs)
        self._reset_seeds = list(episodes) if isinstance(episodes, Sequence) else None
        count = len(self._reset_seeds) if self._reset_seeds is not None else episodes
        self._first_episode, self._end = first, None if count is None else first + count
        if self._mode is not AutoresetMode.DISABLED and (self._reset_seeds is not None or first):
            raise ValueError(
                "Plain reset seeds need the autoreset mode DISABLED, and so does a first episode other than "
                f"0; in {self._mode.name} the environment seeds its episodes itself."
            )
        if self._mode is AutoresetMode.NEXT_STEP and episodes is None:
            raise ValueError(
                "In the autoreset mode NEXT_STEP every episode is followed by a step that belongs to none, "
                "from which nothing can be learned. Train on the environment in DISABLED or SAME_STEP."
            )
        shape = (len(self.seeds), lanes)
        self._upcoming = np.full(shape[0], first, np.int64)
        self.t, self.episode = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self.active, self.first = np.ones(shape, bool), np.ones(shape, bool)
        self._resetting = np.zeros(shape, bool)
        self.observation = self._reset(np.ones(shape, bool))

    @property
    def state(self):
        """An external environment shows no state.

        Raises:
            ValueError: always.
        """
        raise ValueError("The policy acts on the state of pure dynamics; this environment shows none.")

    def close(self) -> None:
        """Close the environments."""
        self._envs.close()

    def _begin(self, row: int, lane: int) -> int | None:
        """Give a lane its seed's next episode; returns the reset seed, None where no episode is left."""
        episode = int(self._upcoming[row])
        self._upcoming[row] += 1
        self.t[row, lane], self.first[row, lane] = 0, True
        if self._end is not None and episode >= self._end:
            self.active[row, lane] = False
            return None
        self.episode[row, lane] = episode
        if self._reset_seeds is not None:
            return int(self._reset_seeds[episode - self._first_episode])
        return reset_seed(self.purpose, self.seeds[row], episode, self._seed_bits)

    def _reset(self, which: np.ndarray) -> np.ndarray:
        """Begin episodes in some lanes [S, L] by a call of reset; observations [S, L, ...] of all lanes."""
        seeds: list[int | None] = [None] * which.size
        for row, lane in np.argwhere(which).tolist():
            seeds[row * self.lanes + lane] = self._begin(row, lane)
        if self._mode is AutoresetMode.DISABLED:
            # A mask even where all are reset: an environment sees the same options at each of its resets.
            observations, info = self._envs.reset(seed=seeds, options={"reset_mask": which.ravel().copy()})
        else:  # one number: not every vector environment takes a list, and it seeds later episodes itself
            observations, info = self._envs.reset(seed=seeds[0])
        self._raise_reported(info, which)
        return self._checked_first(self._shaped(self._observations.batch(observations, which.size)))

    def _checked_first(self, observation: np.ndarray) -> np.ndarray:
        wrong = self.first & self.active & ~self._finite(observation)
        self._refuse(wrong, "the first observation is not finite")
        return observation

    def step(self, action: np.ndarray) -> LaneStep:
        """Take actions [S, L, *action_shape]; lanes whose episode ends begin their next one.

        Raises:
            ValueError: actions are of another shape or type, or one of an active lane is out of bounds.
            EpisodeError: the environment raised, gave a reward or observation that is not finite, did not say
                whether a finished episode succeeded, or went beyond its step limit.
        """
        action = self._checked(np.asarray(action))
        flat = action.reshape(-1, *self.spec.action_shape)
        observations, reward, terminated, truncated, info = self._envs.step(flat + self._first_action)
        taken = self.active & ~self._resetting
        self.t = self.t + taken
        self._raise_reported(info, taken)
        reward = self._shaped(np.array(reward, np.float64))
        # A reset step ends nothing, whatever its flags say.
        terminated = self._shaped(np.array(terminated, bool)) & ~self._resetting
        truncated = self._shaped(np.array(truncated, bool)) & ~self._resetting
        ended = terminated | truncated
        observation = self._shaped(self._observations.batch(observations, reward.size))
        final = observation
        if self._mode is AutoresetMode.SAME_STEP and ended.any():
            final, info = self._same_step_ends(observation, info, ended)
        self._refuse(taken & ~np.isfinite(reward), "the reward is not finite", reward)
        self._refuse(taken & ~self._finite(final), "the observation is not finite")
        self._refuse(
            taken & ~ended & (self.t >= self.spec.horizon),
            f"the episode has not ended after {self.spec.horizon} steps, the limit; set `horizon`",
        )
        facts = self._facts(info, taken & ended)
        episode, t, resetting = self.episode.copy(), self.t, self._resetting
        self.first, self.t = np.zeros_like(ended), self.t.copy()
        if self._mode is AutoresetMode.NEXT_STEP:
            for row, lane in np.argwhere(resetting).tolist():
                self._begin(row, lane)
            self._resetting = ended
        elif ended.any() and self._mode is AutoresetMode.SAME_STEP:
            for row, lane in np.argwhere(ended).tolist():
                self._begin(row, lane)
        elif ended.any():
            observation = final.copy()
            observation[ended] = self._reset(ended)[ended]
        self.observation = self._checked_first(observation)
        return LaneStep(
            observation, None, reward, terminated, truncated, final, None, episode, t, taken, facts
        )

    def _same_step_ends(
        self, observation: np.ndarray, info: dict[str, Any], ended: np.ndarray
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Final observations, and the info that belongs to the step rather than to the reset."""
        if "final_obs" not in info:
            raise EpisodeError(
                f"{type(self._envs).__name__} resets in the step that ends an episode (SAME_STEP) but gives "
                "no info['final_obs'], so the last observation is lost. Use the mode DISABLED."
            )
        final = observation.copy()
        for row, lane in np.argwhere(ended).tolist():
            final[row, lane] = self._observations.one(info["final_obs"][row * self.lanes + lane])
        name, last = self.spec.success, info.get("final_info")
        if name is None:
            return final, {}
        last, where = last if isinstance(last, dict) else {}, ended.ravel()
        return final, {
            name: np.where(where, self._array(last, name), self._array(info, name)),
            f"_{name}": np.where(where, self._present(last, name), self._present(info, name)),
        }

    def _facts(self, info: dict[str, Any], ended: np.ndarray) -> dict[str, np.ndarray]:
        """Success [S, L] as ``info`` tells it; an episode that ends has to tell it."""
        name = self.spec.success
        if name is None:
            return {}
        there = self._shaped(self._present(info, name))
        known = ", ".join(sorted(key for key in info if not key.startswith("_"))) or "nothing"
        self._refuse(ended & ~there, f"the episode ended, but info has no '{name}'; it has {known}")
        return {name: self._shaped(self._array(info, name)) & there}

    def _array(self, info: dict[str, Any], name: str) -> np.ndarray:
        """A flag of ``info`` as [N] bool, False where it is absent."""
        return np.array([bool(value) for value in info.get(name, np.zeros(self.t.size, bool))])

    def _present(self, info: dict[str, Any], name: str) -> np.ndarray:
        """Where ``info`` has a value, [N] bool."""
        return np.array(info.get(f"_{name}", np.full(self.t.size, name in info)), bool)

    def _checked(self, action: np.ndarray) -> np.ndarray:
        """Actions of the environment's type; those of idle lanes are replaced by allowed ones."""
        shape = (*self.active.shape, *self.spec.action_shape)
        if action.shape != shape:
            raise ValueError(f"Actions have the shape {action.shape}; these lanes take {shape}.")
        array = self.spec.action_array
        low, high = (0, self.spec.actions - 1) if array is None else (array.low, array.high)
        kind = np.dtype(np.int64) if array is None else array.low.dtype
        if kind.kind == "i" and action.dtype.kind not in "iu":
            raise ValueError(f"These lanes take whole numbers as actions, not {action.dtype}.")
        action = action.astype(kind)
        outside = ~((action >= low) & (action <= high)).reshape(*self.active.shape, -1).all(-1)
        if (outside & self.active & ~self._resetting).any():
            cell = tuple(np.argwhere(outside & self.active & ~self._resetting)[0])
            bounds = f"[0, {self.spec.actions})" if array is None else f"[{low}, {high}]"
            raise ValueError(f"Action {action[cell]} of {self._where(cell, 1)} is not in {bounds}.")
        if outside.any():
            action[outside] = np.clip(np.nan_to_num(action[outside]), low, high)
        return action

    def _raise_reported(self, info: dict[str, Any], which: np.ndarray) -> None:
        if ERROR in info:
            reported = self._shaped(self._present(info, ERROR)) & which
            if reported.any():
                cell = tuple(np.argwhere(reported)[0])
                message = info[ERROR][cell[0] * self.lanes + cell[1]]
                raise EpisodeError(f"In {self._where(cell)}: {message}")

    def _refuse(self, wrong: np.ndarray, message: str, values: np.ndarray | None = None) -> None:
        if wrong.any():
            cell = tuple(np.argwhere(wrong)[0])
            value = "" if values is None else f" ({values[cell]})"
            raise EpisodeError(f"In {self._where(cell)}: {message}{value}.")

    def _where(self, cell: tuple[int, int], ahead: int = 0) -> str:
        return f"seed {self.seeds[cell[0]]}, episode {self.episode[cell]}, step {self.t[cell] + ahead}"

    def _shaped(self, array: np.ndarray) -> np.ndarray:
        """[S * L, ...] -> [S, L, ...]"""
        return array.reshape(len(self.seeds), self.lanes, *array.shape[1:])

    def _finite(self, observation: np.ndarray) -> np.ndarray:
        return np.isfinite(observation).all(tuple(range(2, observation.ndim)))
