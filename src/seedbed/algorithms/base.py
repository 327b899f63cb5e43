"""What an algorithm and a policy are, and what they share."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from seedbed.environments.base import Dynamics
from seedbed.environments.lanes import Lanes, LaneStep

Memory = Any
"""What a policy carries from step to step: None, an array [S, L, ...] or a tuple of such."""


class Policy(Protocol):
    """A way to act, stacked over seeds. Frozen: acting changes nothing in it."""

    seeds: list[int]
    """The training seeds of the rows, [S]."""
    modes: tuple[str, ...]
    """How it can act: "greedy", "sampled" or both."""
    mode: str
    """How it acts; one of ``modes``."""
    uniforms: int
    """k: uniform numbers that one decision takes in this mode."""
    needs_state: bool
    """An oracle: ``act`` gets the state of the dynamics in place of the observation."""
    model_calls: int
    """State-action predictions of a learned model per decision; 0 without a model."""
    # A policy may also have ``most_lanes: int``: evaluated on more lanes at once, it would be no faster.

    def in_mode(self, mode: str) -> Self:
        """The same policy acting in another of its modes."""
        ...

    def of(self, seeds: Sequence[int]) -> Self:
        """The policy of some of its seeds, in the order asked for; raises ValueError for one it has not."""
        ...

    def act(
        self,
        observation: np.ndarray,
        mask: np.ndarray | None,
        uniforms: np.ndarray,
        memory: Memory,
        first: np.ndarray,
    ) -> tuple[np.ndarray, Memory]:
        """Choose actions; a row's bits depend on neither the other seeds nor the number of lanes.

        Args:
            observation: [S, L, *observation_shape] float32, or the state if ``needs_state``.
            mask: [S, L, actions] bool; None where all actions are allowed.
            uniforms: [S, L, k] float64 in [0, 1).
            memory: what the last call returned; None at the start.
            first: [S, L] bool; the lane's memory is forgotten where an episode begins.

        Returns:
            Actions [S, L] int64, and memory.
        """
        ...

    def probabilities(
        self, observation: np.ndarray, mask: np.ndarray | None, memory: Memory, first: np.ndarray
    ) -> np.ndarray:
        """Probability of each action in this mode, [S, L, actions] float64."""
        ...

    def save(self, path: str | Path) -> None:
        """Write one safetensors file, rows addressable per seed."""
        ...

    @classmethod
    def load(cls, path: str | Path, dynamics: Dynamics) -> Self:
        """Read what ``save`` wrote; raises ArtifactError for any other file."""
        ...


class Recorder(Protocol):
    """What a training run is watched by. It only looks: nothing of it reaches the run."""

    def step(self, step: LaneStep) -> None:
        """Note one step of the training lanes."""
        ...

    def due(self, steps: int) -> bool:
        """Whether a point of the learning curve has been reached at this many steps per seed."""
        ...

    def evaluate(self, steps: int, policy: Policy) -> None:
        """Evaluate the policy as it is after this many steps per seed."""
        ...

    def log(self, steps: int, **scalars: np.ndarray) -> None:
        """Note diagnostics [S], such as losses."""
        ...


class Algorithm(Protocol):
    """A frozen dataclass of hyper-parameters that can be trained on several seeds at once.

    One that also chooses actions that are arrays (``Spec.action_array``) says so by ``array_actions = True``.
    One that can tell before training whether it fits has ``check(environment, seeds, budget)``, which raises
    ValueError or SeedbedError. One that can be trained on a GPU has the field ``device`` (see
    ``devices.Device``), which a study sets; its policies come back on the CPU. A file that it reads is named
    by the argument ``path`` ("{seed}" in it stands for the training seed), what it imports by
    "package.module:Name" anywhere in its arguments: when either changes, it trains again.
    """

    lanes: int
    """Training episodes side by side per seed; 0 where nothing is learned."""
    policy_class: ClassVar[type[Policy]]

    def train(self, lanes: Lanes, seeds: Sequence[int], budget: int, recorder: Recorder) -> Policy:
        """Learn from ``budget`` environment steps per seed and return the final policy.

        A seed's bits depend on the seed, the hyper-parameters and the budget alone, not on the other seeds.
        The caller records the policy at 0 steps through ``recorder.due`` as at any other number.

        Raises:
            ValueError: the budget does not fit the hyper-parameters.
        """
        ...


class StatelessPolicy:
    """A policy that learned nothing: what fixed rules and references have in common.

    Args:
        seeds: the seeds it stands for, [S].
        dynamics: the environment it acts in.
    """

    modes: ClassVar[tuple[str, ...]] = ("greedy",)
    needs_state: ClassVar[bool] = False
    model_calls: ClassVar[int] = 0
    uniforms: ClassVar[int] = 0

    def __init__(self, seeds: Sequence[int], dynamics: Dynamics, options: dict[str, Any] | None = None):
        self.seeds, self.dynamics, self.options = list(seeds), dynamics, dict(options or {})
        self.mode = self.modes[0]

    def in_mode(self, mode: str) -> Self:
        """Itself: a fixed rule acts in one way only."""
        if mode not in self.modes:
            raise ValueError(f"{type(self).__name__} acts '{self.modes[0]}' only, not '{mode}'.")
        return self

    def of(self, seeds: Sequence[int]) -> Self:
        """Itself, standing for some of its seeds; see ``Policy.of``."""
        if unknown := [seed for seed in seeds if seed not in self.seeds]:
            raise ValueError(f"The policy holds the seeds {self.seeds}, not {unknown}.")
        return type(self)(seeds, self.dynamics, self.options)

    def save(self, path: str | Path) -> None:
        """Write the options; there is nothing else to keep."""
        from seedbed.artifacts import write_arrays

        metadata = {"policy": type(self).__name__, "seeds": self.seeds, "options": self.options}
        write_arrays(path, {"seeds": np.array(self.seeds, np.int64)}, metadata)

    @classmethod
    def load(cls, path: str | Path, dynamics: Dynamics) -> Self:
        """Read what ``save`` wrote."""
        from seedbed.artifacts import ArtifactError, read_arrays

        _, metadata = read_arrays(path)
        if metadata.get("policy") != cls.__name__:
            raise ArtifactError(f"{path} holds the policy {metadata.get('policy')}, not {cls.__name__}.")
        return cls(metadata["seeds"], dynamics, metadata["options"])


def train_nothing(policy: Policy, recorder: Recorder) -> Policy:
    """The whole training of a policy that learns nothing: one point of the curve, at 0 steps."""
    if recorder.due(0):
        recorder.evaluate(0, policy)
    return policy
