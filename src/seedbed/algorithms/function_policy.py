"""A plain function of yours, ``observation -> action``, as a policy that learns nothing."""

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from seedbed.algorithms.base import Recorder, train_nothing
from seedbed.algorithms.row_policy import RowPolicy, refuse_several_agents, try_out
from seedbed.artifacts import ArtifactError, read_arrays, write_arrays
from seedbed.environments.base import Dynamics
from seedbed.environments.lanes import ExternalEnvironment, Lanes


def imported(name: str) -> Any:
    """The object behind "package.module:name".

    Raises:
        ValueError: the name has another form, its module cannot be imported, or has no such object.
    """
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute.isidentifier()):
        raise ValueError(f"'{name}' is not of the form package.module:name")
    try:
        found = importlib.import_module(module)
    except Exception as error:
        raise ValueError(f"'{module}' cannot be imported: {type(error).__name__}: {error}") from error
    if not hasattr(found, attribute):
        raise ValueError(f"the module '{module}' has nothing called '{attribute}'")
    return getattr(found, attribute)


def function_of(name: str) -> Callable[..., Any]:
    """The function behind "package.module:name".

    Raises:
        ValueError: as ``imported``, or it cannot be called.
    """
    found = imported(name)
    if not callable(found) or isinstance(found, type):
        raise ValueError(f"'{name}' is no function")
    return found


class FunctionPolicy(RowPolicy):
    """Calls a function for one observation at a time, all seeds the same one.

    Args:
        seeds: the seeds it stands for, [S].
        dynamics: the environment it acts in.
        options: the fields of ``Function``.
    """

    def __init__(self, seeds: Sequence[int], dynamics: Dynamics, options: dict[str, Any]):
        self.options = dict(options)
        self.uniforms = int(options["sampled"])
        self.modes = ("sampled",) if options["sampled"] else ("greedy",)
        self._function = function_of(options["function"])
        super().__init__(seeds, dynamics)

    def decide(self, row, observation, mask, uniforms) -> Any:
        """What the function returns; see ``RowPolicy.decide``."""
        arguments = [observation]
        if self.options["masked"]:
            arguments.append(np.ones(self.dynamics.spec.actions, bool) if mask is None else mask)
        if self.options["sampled"]:
            arguments.append(float(uniforms[0]))
        try:
            return self._function(*arguments)
        except Exception as error:
            raise self._error(
                row, f"{self.options['function']} raised {type(error).__name__}: {error}"
            ) from error

    def save(self, path: str | Path) -> None:
        """Write the options: the function itself is source code and is imported again."""
        metadata = {"policy": type(self).__name__, "seeds": self.seeds, "options": self.options}
        write_arrays(path, {"seeds": np.array(self.seeds, np.int64)}, metadata)

    @classmethod
    def load(cls, path: str | Path, dynamics: Dynamics) -> Self:
        """Read what ``save`` wrote.

        Raises:
            ArtifactError: the file holds another policy, or its function cannot be imported any more.
        """
        _, metadata = read_arrays(path)
        if metadata.get("policy") != cls.__name__:
            raise ArtifactError(f"{path} holds the policy {metadata.get('policy')}, not {cls.__name__}.")
        try:
            return cls(metadata["seeds"], dynamics, metadata["options"])
        except ValueError as error:
            raise ArtifactError(f"{path} cannot act: {error}.") from None


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Function:
    """A function that is called as ``function(observation)`` and returns an action.

    It gets one observation [*observation_shape] float32 and returns a whole number, or an array of the
    environment's action shape. It may keep nothing between calls: a row depends on its observation alone.
    """

    lanes: ClassVar[int] = 0
    array_actions: ClassVar[bool] = True
    policy_class: ClassVar = FunctionPolicy

    function: str = Field(description="package.module:name of the function.")
    masked: bool = Field(False, description="Whether it is also handed the mask of allowed actions, bool.")
    sampled: bool = Field(
        False, description="Whether it is handed, last, a uniform number in [0, 1) to draw its action by."
    )

    @model_validator(mode="after")
    def _importable(self):
        function_of(self.function)
        return self

    def check(self, environment: Dynamics | ExternalEnvironment, seeds: Sequence[int], budget: int) -> None:
        """Try the function on a first observation; see ``Algorithm.check``.

        Raises:
            PolicyError: it gives no legal action, or two for one observation.
            ValueError: several agents; a mask of array actions.
        """
        refuse_several_agents(environment.spec)
        if self.masked and environment.spec.action_array is not None:
            raise ValueError("masked: there is no mask where an action is an array.")
        try_out(self._policy(seeds[:1], environment), environment)

    def train(self, lanes: Lanes, seeds: Sequence[int], budget: int, recorder: Recorder) -> FunctionPolicy:
        """Learn nothing."""
        return train_nothing(self._policy(seeds, lanes.dynamics), recorder)

    def _policy(self, seeds: Sequence[int], dynamics: Dynamics) -> FunctionPolicy:
        options = {"function": self.function, "masked": self.masked, "sampled": self.sampled}
        return FunctionPolicy(seeds, dynamics, options)
