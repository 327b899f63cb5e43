"""Stable-Baselines3's own classes (Raffin et al. 2021, JMLR 22:268), trained as algorithms of a study."""

import inspect
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.type_aliases import TrainFrequencyUnit
from stable_baselines3.common.vec_env import VecEnv

from seedbed.algorithms import sb3_networks
from seedbed.algorithms.base import Recorder
from seedbed.algorithms.global_generators import GlobalGenerators
from seedbed.algorithms.model_files import Model
from seedbed.algorithms.model_policy import ModelPolicy
from seedbed.algorithms.row_policy import refuse_several_agents
from seedbed.algorithms.turns import Turn
from seedbed.environments.base import Dynamics, Spec
from seedbed.environments.lanes import ExternalEnvironment, Lanes, LaneStep

_NOT_FROM_A_STUDY = (
    *("self", "policy", "env", "seed", "device", "verbose", "tensorboard_log", "monitor_wrapper"),
    *("_init_setup_model", "stats_window_size", "support_multi_env", "supported_action_spaces"),
    *("replay_buffer_class", "replay_buffer_kwargs", "rollout_buffer_class", "rollout_buffer_kwargs"),
)


class SeedEnvs(VecEnv):
    """One seed's lanes as Stable-Baselines3 sees them.

    Args:
        spec: the environment's.
        observation: the lanes' first observations, [L, *observation_shape].
    """

    def __init__(self, spec: Spec, observation: np.ndarray):
        self._spec, self._first, self._actions = spec, observation.copy(), None
        self.turn: Turn | None = None
        super().__init__(
            len(observation), sb3_networks.observation_space(spec), sb3_networks.action_space(spec)
        )

    def reset(self) -> np.ndarray:
        """The first observations; later episodes begin by themselves."""
        return self._first

    def step_async(self, actions: np.ndarray) -> None:
        """Keep the actions, in the environment's own numbers."""
        array = self._spec.action_array
        if array is not None and array.low.dtype.kind == "i":
            actions = actions + array.low
        elif array is not None:
            actions = np.clip(actions, array.low, array.high)  # unscaling may overshoot by a rounding error
        self._actions = actions

    def step_wait(self):
        """Ask for a step; a truncated episode's last observation and flag are in its info."""
        return self.turn.ask(self._actions)

    def close(self) -> None:
        """Nothing is held."""

    def get_attr(self, attr_name, indices=None):
        """The environments show nothing but their render mode, None."""
        if attr_name != "render_mode":
            raise AttributeError(f"Lanes have no attribute '{attr_name}'.")
        return [None] * self.num_envs

    def set_attr(self, attr_name, value, indices=None):
        """Refused: lanes are not changed from outside."""
        raise AttributeError(f"Lanes have no attribute '{attr_name}'.")

    def env_method(self, method_name, *arguments, indices=None, **keywords):
        """Refused: lanes have no further methods."""
        raise AttributeError(f"Lanes have no method '{method_name}'.")

    def env_is_wrapped(self, wrapper_class, indices=None):
        """No lane is wrapped."""
        return [False] * self.num_envs


def seen(step: LaneStep, row: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
    """One seed's part of a step as ``VecEnv.step`` gives it: observation, reward, done, info per lane."""
    done = step.terminated[row] | step.truncated[row]
    infos: list[dict[str, Any]] = [{} for _ in done]
    for lane in np.nonzero(done)[0]:
        infos[lane]["terminal_observation"] = step.final_observation[row, lane].copy()
        infos[lane]["TimeLimit.truncated"] = bool(step.truncated[row, lane] & ~step.terminated[row, lane])
    return step.observation[row].copy(), step.reward[row].astype(np.float32), done, infos


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class StableBaselines3:
    """A class of Stable-Baselines3, trained on each seed's own lanes, all seeds in lockstep.

    Each seed has a model and global random generators of its own, so its bits do not depend on the others.
    The policy is kept as weights; it acts as ``predict(deterministic=True)`` does ("greedy"), and where an
    actor-critic chooses one of several actions it can be "sampled" too. Seedbed hands on a flat vector, so
    MultiInputPolicy is MlpPolicy over it.
    """

    policy_class: ClassVar = ModelPolicy
    array_actions: ClassVar[bool] = True

    model: Model = Field(description="The class.")
    policy: Literal["MlpPolicy", "MultiInputPolicy"] = Field("MlpPolicy", description="Kind of network.")
    lanes: int = Field(1, ge=1, description="Training episodes side by side per seed (n_envs).")
    arguments: dict[str, Any] = Field(
        {},
        description="Keyword arguments of the class, as numbers and names: policy_kwargs with activation_fn "
        "by its name in torch.nn, action_noise as the standard deviation of normal noise.",
    )

    @model_validator(mode="after")
    def _known(self):
        known = set(inspect.signature(sb3_networks.model_class(self.model).__init__).parameters)
        known -= set(_NOT_FROM_A_STUDY)
        if unknown := sorted(set(self.arguments) - known):
            raise ValueError(
                f"arguments: {self.model} takes no {', '.join(unknown)} from a study; it takes "
                f"{', '.join(sorted(known))}"
            )
        sb3_networks.policy_arguments(self.model, self._policy_kwargs)
        return self

    @property
    def _policy_kwargs(self) -> dict[str, Any]:
        """What the network is rebuilt with."""
        sde = {"use_sde": True} if self.arguments.get("use_sde") else {}
        return dict(self.arguments.get("policy_kwargs") or {}) | sde

    def check(self, environment: Dynamics | ExternalEnvironment, seeds: Sequence[int], budget: int) -> None:
        """Construct a model without training it; see ``Algorithm.check``.

        Raises:
            ValueError: the class cannot learn there, refuses an argument, or the budget does not fit.
        """
        spec = environment.spec
        self._check_spaces(spec)
        envs = SeedEnvs(spec, np.zeros((self.lanes, *spec.observation_shape), np.float32))
        with GlobalGenerators(seeds[0]) as generators:
            self._check_budget(self._constructed(envs, generators.number), budget)

    def _check_spaces(self, spec: Spec) -> None:
        refuse_several_agents(spec)
        if spec.masked:
            raise ValueError(
                "The environment forbids actions, and Stable-Baselines3's classes know no masks: they would "
                "be trained on actions that are not allowed."
            )
        sb3_networks.check_actions(self.model, spec)

    def _check_budget(self, model: Any, budget: int) -> None:
        if isinstance(model, OnPolicyAlgorithm):
            steps, name = model.n_steps, "n_steps"
        else:
            steps, name = model.train_freq.frequency, "train_freq"
            if model.train_freq.unit is not TrainFrequencyUnit.STEP:
                raise ValueError("train_freq counts episodes; a budget of steps needs it to count steps.")
        if budget % (steps * self.lanes):
            raise ValueError(
                f"a budget of {budget} steps is not a multiple of {steps} steps ({name}) of {self.lanes} "
                f"lanes, after which {self.model} learns"
            )

    def _constructed(self, envs: SeedEnvs, number: int) -> Any:
        arguments = dict(self.arguments)
        arguments["policy_kwargs"] = sb3_networks.policy_arguments(
            self.model, self.arguments.get("policy_kwargs") or {}
        )
        if isinstance(arguments.get("train_freq"), list):
            arguments["train_freq"] = tuple(arguments["train_freq"])
        try:
            if arguments.get("action_noise") is not None:
                from stable_baselines3.common.noise import NormalActionNoise

                one = np.ones(envs.action_space.shape)
                arguments["action_noise"] = NormalActionNoise(0 * one, float(arguments["action_noise"]) * one)
            return sb3_networks.model_class(self.model)(
                "MlpPolicy", envs, seed=number, device="cpu", verbose=0, **arguments
            )
        except Exception as error:
            raise ValueError(
                f"{self.model} refuses its arguments: {type(error).__name__}: {error}"
            ) from error

    def train(self, lanes: Lanes, seeds: Sequence[int], budget: int, recorder: Recorder) -> ModelPolicy:
        """Let each seed's model learn from ``budget`` steps of its lanes; see ``Algorithm.train``.

        Raises:
            ValueError: as ``check``.
        """
        self._check_spaces(lanes.spec)
        models, turns = [], []
        for row, seed in enumerate(seeds):
            envs, generators = SeedEnvs(lanes.spec, lanes.observation[row]), GlobalGenerators(seed)
            with generators:
                models.append(self._constructed(envs, generators.number))
            self._check_budget(models[-1], budget)
            turns.append(Turn(lambda _, model=models[-1]: model.learn(budget), generators))
            envs.turn = turns[-1]

        def policy() -> ModelPolicy:
            options = {
                "format": "sb3",
                "output": sb3_networks.output_of(self.model, lanes.spec),
                "clip": False,
                "sb3": self.model,
                "policy_kwargs": self._policy_kwargs,
            }
            weights = [sb3_networks.weights_of(model.policy) for model in models]
            return ModelPolicy(seeds, lanes.dynamics, options, weights)

        steps = 0
        try:
            for turn in turns:
                turn.resume()
            while True:
                if recorder.due(steps):
                    recorder.evaluate(steps, policy())
                if turns[0].finished:
                    return policy()
                step = lanes.step(np.stack([turn.request for turn in turns]))
                recorder.step(step)
                steps += lanes.lanes
                for row, turn in enumerate(turns):
                    turn.resume(seen(step, row))
        finally:
            for turn in turns:
                turn.give_up()
