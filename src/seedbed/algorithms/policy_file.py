"""A policy that was trained elsewhere and lies in a file: ONNX, TorchScript or Stable-Baselines3."""

from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from seedbed.algorithms.base import Recorder, train_nothing
from seedbed.algorithms.model_files import Model, Output, format_of, read_model
from seedbed.algorithms.model_policy import ModelPolicy
from seedbed.algorithms.row_policy import refuse_several_agents, try_out
from seedbed.environments.base import Dynamics
from seedbed.environments.lanes import ExternalEnvironment, Lanes


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class PolicyFile:
    """A policy file as an algorithm that learns nothing.

    What it takes to act is copied into the run's own policy file, so evaluation never reads the original.
    ONNX and TorchScript models take [1, *observation_shape] float32 and return one tensor: [1, actions], or
    [1, *action_shape] for ``output: action``.
    """

    lanes: ClassVar[int] = 0
    array_actions: ClassVar[bool] = True
    policy_class: ClassVar = ModelPolicy

    path: str = Field(
        min_length=1,
        description="The file (.onnx, .pt, .ts or .zip); with {seed} in it, one file per training seed.",
    )
    output: Output = Field(
        "action",
        description="What an ONNX or TorchScript model returns; Stable-Baselines3's networks are known.",
    )
    clip: bool = Field(False, description="Whether actions that are arrays are clipped to their bounds.")
    sb3: Model | None = Field(None, description="Class of a Stable-Baselines3 model; needed for .zip.")
    policy_kwargs: dict[str, Any] = Field(
        {},
        description="What the Stable-Baselines3 model was made with: net_arch, activation_fn by name.",
    )

    @model_validator(mode="after")
    def _consistent(self):
        if format_of(self.path) == "sb3":
            if self.sb3 is None:
                raise ValueError("sb3 is missing: a .zip needs the class of its Stable-Baselines3 model")
            from seedbed.algorithms.sb3_networks import policy_arguments

            policy_arguments(self.sb3, self.policy_kwargs)
        elif self.sb3 is not None or self.policy_kwargs:
            raise ValueError("sb3 and policy_kwargs belong to .zip files of Stable-Baselines3")
        return self

    def check(self, environment: Dynamics | ExternalEnvironment, seeds: Sequence[int], budget: int) -> None:
        """Read every seed's file and try it on a first observation; see ``Algorithm.check``.

        Raises:
            PolicyError: a file is missing, not what its suffix says, or does not fit the environment.
            ValueError: the class cannot act there.
        """
        refuse_several_agents(environment.spec)
        if self.sb3:
            from seedbed.algorithms.sb3_networks import check_actions

            check_actions(self.sb3, environment.spec)
        try_out(self._policy(seeds, environment), environment)

    def train(self, lanes: Lanes, seeds: Sequence[int], budget: int, recorder: Recorder) -> ModelPolicy:
        """Learn nothing: read the files."""
        return train_nothing(self._policy(seeds, lanes.dynamics), recorder)

    def _policy(self, seeds: Sequence[int], dynamics: Dynamics | ExternalEnvironment) -> ModelPolicy:
        paths = [self.path.replace("{seed}", str(seed)) for seed in seeds]
        read = {path: read_model(path) for path in dict.fromkeys(paths)}
        output = self.output
        if self.sb3:
            from seedbed.algorithms.sb3_networks import output_of

            output = output_of(self.sb3, dynamics.spec)
        options = {
            "format": format_of(self.path),
            "output": output,
            "clip": self.clip,
            "sb3": self.sb3,
            "policy_kwargs": self.policy_kwargs,
            "sha256": [read[path][1] for path in paths],
        }
        return ModelPolicy(seeds, dynamics, options, [read[path][0] for path in paths])
