"""The loop adapter: a class of yours that knows one seed becomes an algorithm of a study."""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from seedbed.algorithms.base import Recorder
from seedbed.algorithms.function_policy import imported
from seedbed.algorithms.global_generators import GlobalGenerators
from seedbed.algorithms.row_policy import (
    PolicyError,
    RowPolicy,
    legal_action,
    refuse_several_agents,
    try_out,
)
from seedbed.artifacts import ArtifactError, read_arrays, write_arrays
from seedbed.environments.base import Dynamics, Spec
from seedbed.environments.lanes import ExternalEnvironment, Lanes
from seedbed.seeding import BlockStreams, Purpose


class Agent(Protocol):
    """What your class has: built as ``Agent(spec, seed, **arguments)``.

    ``spec`` describes the spaces (``environments.base.Spec``). Optional class attributes: ``modes``, of
    ("greedy", "sampled"), and ``uniforms``, how many numbers a decision takes (1). Python's, NumPy's and
    PyTorch's global generators are the seed's own while it is built and learns.
    """

    def act(self, observation: np.ndarray, mask: np.ndarray | None, uniform: Any) -> Any:
        """Choose an action; changes nothing that ``state`` holds.

        Args:
            observation: [*observation_shape] float32.
            mask: [actions] bool; None where all actions are allowed.
            uniform: a number in [0, 1), or [uniforms] of them; None asks for the greedy action.
        """
        ...

    def learn(
        self,
        observation: np.ndarray,
        action: np.ndarray,
        reward: float,
        terminated: bool,
        truncated: bool,
        next_observation: np.ndarray,
    ) -> None:
        """Learn from one step; ``next_observation`` is the episode's own, before any reset."""
        ...

    def state(self) -> dict[str, np.ndarray]:
        """All that acting needs, as arrays by name."""
        ...

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Become what ``state`` described."""
        ...


def agent_class(name: str) -> type:
    """The class behind "package.module:Agent".

    Raises:
        ValueError: it cannot be imported, or lacks a method; names each.
    """
    found = imported(name)
    if not isinstance(found, type):
        raise ValueError(f"'{name}' is no class")
    if lacking := [
        key for key in ("act", "learn", "state", "restore") if not callable(getattr(found, key, 0))
    ]:
        raise ValueError(f"'{name}' lacks the methods {', '.join(lacking)}")
    modes = tuple(getattr(found, "modes", ("greedy", "sampled")))
    if not modes or set(modes) - {"greedy", "sampled"}:
        raise ValueError(f"'{name}' has the modes {modes}; there are 'greedy' and 'sampled'")
    return found


def _built(name: str, spec: Spec, seed: int, arguments: dict[str, Any]) -> Agent:
    try:
        return agent_class(name)(spec, seed, **arguments)
    except Exception as error:
        raise PolicyError(
            f"{name} cannot be built for seed {seed} with {arguments}: {type(error).__name__}: {error}"
        ) from error


@contextmanager
def _named(name: str, method: str, seed: int) -> Iterator[None]:
    """Errors of an agent's method, with the agent's name and seed."""
    try:
        yield
    except Exception as error:
        raise PolicyError(
            f"{name}.{method} raised {type(error).__name__} for seed {seed}: {error}"
        ) from error


def _state(agent: Agent, seed: int) -> dict[str, np.ndarray]:
    """A copy of an agent's state.

    Raises:
        PolicyError: it is no table of number arrays, or one is not finite.
    """
    with _named(type(agent).__name__, "state", seed):
        given = agent.state()
    if not isinstance(given, dict):
        raise PolicyError(f"state() of seed {seed} gave {type(given).__name__}, not a dict of arrays.")
    arrays = {str(name): np.array(value) for name, value in given.items()}
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf":
            raise PolicyError(f"state()['{name}'] of seed {seed} is {array.dtype}, not an array of numbers.")
        if array.dtype.kind == "f" and np.isnan(array).any():
            raise PolicyError(f"state()['{name}'] of seed {seed} holds NaN: its learning has broken down.")
    return arrays


class AgentPolicy(RowPolicy):
    """Agents as their states describe them; see ``Agent``.

    Args:
        seeds: training seeds of the rows, [S].
        dynamics: the environment they act in.
        options: the fields ``agent`` and ``arguments`` of ``SingleSeed``.
        states: one per row.

    Raises:
        PolicyError: an agent cannot be built or restored.
    """

    def __init__(
        self,
        seeds: Sequence[int],
        dynamics: Dynamics,
        options: dict[str, Any],
        states: Sequence[dict[str, np.ndarray]],
    ):
        self.options, self.states = dict(options), [dict(state) for state in states]
        kind = agent_class(options["agent"])
        self.modes = tuple(getattr(kind, "modes", ("greedy", "sampled")))
        self._numbers = int(getattr(kind, "uniforms", 1))
        super().__init__(seeds, dynamics)
        self._agents = []
        for seed, state in zip(self.seeds, self.states, strict=True):
            with GlobalGenerators(seed):
                agent = _built(options["agent"], dynamics.spec, seed, options["arguments"])
                try:
                    agent.restore(copy.deepcopy(state))
                except Exception as error:
                    raise PolicyError(
                        f"{options['agent']} of seed {seed} cannot restore its state: "
                        f"{type(error).__name__}: {error}"
                    ) from error
            self._agents.append(agent)

    @property
    def uniforms(self) -> int:
        """What a sampled decision takes."""
        return self._numbers if self.mode == "sampled" else 0

    def decide(self, row, observation, mask, uniforms) -> Any:
        """See ``RowPolicy.decide``."""
        uniform = None
        if self.mode == "sampled":
            uniform = float(uniforms[0]) if self._numbers == 1 else uniforms
        with _named(self.options["agent"], "act", self.seeds[row]):
            return self._agents[row].act(observation, mask, uniform)

    def save(self, path: str | Path) -> None:
        """Write one safetensors file: the arrays of each state as ``seed-7/<name>``."""
        arrays = {
            f"seed-{seed}/{name}": array
            for seed, state in zip(self.seeds, self.states, strict=True)
            for name, array in state.items()
        }
        shapes = {name: list(array.shape) for name, array in arrays.items()}
        metadata = {"policy": type(self).__name__, "seeds": self.seeds, "options": self.options}
        write_arrays(path, arrays, metadata | {"shapes": shapes})

    @classmethod
    def load(cls, path: str | Path, dynamics: Dynamics) -> Self:
        """Read what ``save`` wrote.

        Raises:
            ArtifactError: the file holds another policy, or its class is gone or does not fit.
        """
        arrays, metadata = read_arrays(path)
        if metadata.get("policy") != cls.__name__:
            raise ArtifactError(f"{path} holds the policy {metadata.get('policy')}, not {cls.__name__}.")
        states = [
            {
                name.removeprefix(f"seed-{seed}/"): array.reshape(metadata["shapes"][name])
                for name, array in arrays.items()
                if name.startswith(f"seed-{seed}/")
            }
            for seed in metadata["seeds"]
        ]
        try:
            return cls(metadata["seeds"], dynamics, metadata["options"], states)
        except (PolicyError, ValueError) as error:
            raise ArtifactError(f"{path} cannot act: {error}") from None


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class SingleSeed:
    """A class that knows one seed, as an algorithm: one agent per seed, each learning from its own lanes.

    Each step, the agents act in all lanes and then learn, lanes ascending.
    """

    policy_class: ClassVar = AgentPolicy
    array_actions: ClassVar[bool] = True

    agent: str = Field(description="package.module:Agent; see the protocol ``Agent``.")
    arguments: dict[str, Any] = Field({}, description="Keyword arguments of the class.")
    lanes: int = Field(1, ge=1, description="Training episodes side by side per seed.")

    @model_validator(mode="after")
    def _whole(self):
        agent_class(self.agent)
        return self

    def check(self, environment: Dynamics | ExternalEnvironment, seeds: Sequence[int], budget: int) -> None:
        """Build one agent, save, restore and let it act; see ``Algorithm.check``.

        Raises:
            PolicyError: one of these goes wrong.
            ValueError: several agents.
        """
        refuse_several_agents(environment.spec)
        with GlobalGenerators(seeds[0]):
            state = _state(_built(self.agent, environment.spec, seeds[0], self.arguments), seeds[0])
        try_out(AgentPolicy(seeds[:1], environment, self._options, [state]), environment)

    @property
    def _options(self) -> dict[str, Any]:
        return {"agent": self.agent, "arguments": self.arguments}

    def train(self, lanes: Lanes, seeds: Sequence[int], budget: int, recorder: Recorder) -> AgentPolicy:
        """Let each agent learn from ``budget`` steps of its lanes; see ``Algorithm.train``.

        Raises:
            ValueError: the budget is not a multiple of the number of lanes; several agents.
            PolicyError: an agent raises, or gives no legal action or no finite state.
        """
        refuse_several_agents(lanes.spec)
        if budget % lanes.lanes:
            raise ValueError(f"A budget of {budget} steps is not a multiple of {lanes.lanes} lanes.")
        generators, agents = [GlobalGenerators(seed) for seed in seeds], []
        for seed, own in zip(seeds, generators, strict=True):
            with own:
                agents.append(_built(self.agent, lanes.spec, seed, self.arguments))

        def policy() -> AgentPolicy:
            states = [_state(agent, seed) for agent, seed in zip(agents, seeds, strict=True)]
            return AgentPolicy(seeds, lanes.dynamics, self._options, states)

        numbers = int(getattr(type(agents[0]), "uniforms", 1))
        exploration = BlockStreams(Purpose.EXPLORATION, list(seeds), (lanes.lanes, numbers))
        array = lanes.spec.action_array
        action = np.zeros(
            (*lanes.first.shape, *lanes.spec.action_shape), array.low.dtype if array else np.int64
        )
        steps = 0
        while True:
            if recorder.due(steps):
                recorder.evaluate(steps, policy())
            if steps >= budget:
                return policy()
            observation, mask = lanes.observation, lanes.mask
            uniforms = exploration.uniforms().astype(np.float64)
            for row, lane in np.ndindex(*lanes.first.shape):
                uniform = float(uniforms[row, lane, 0]) if numbers == 1 else uniforms[row, lane].copy()
                allowed = None if mask is None else mask[row, lane].copy()
                with generators[row], _named(self.agent, "act", seeds[row]):
                    chosen = agents[row].act(observation[row, lane].copy(), allowed, uniform)
                action[row, lane] = legal_action(lanes.spec, seeds[row], chosen, allowed)
            step = lanes.step(action)
            recorder.step(step)
            steps += lanes.lanes
            for row, lane in np.ndindex(*lanes.first.shape):
                with generators[row], _named(self.agent, "learn", seeds[row]):
                    agents[row].learn(
                        observation[row, lane].copy(),
                        action[row, lane].copy(),
                        float(step.reward[row, lane]),
                        bool(step.terminated[row, lane]),
                        bool(step.truncated[row, lane]),
                        step.final_observation[row, lane].copy(),
                    )
