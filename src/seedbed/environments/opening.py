"""Environments by a name from outside: a registered one, a Gymnasium id, or somebody's class."""

import difflib
import importlib.metadata
from typing import Any, NamedTuple

from seedbed.artifacts import SeedbedError
from seedbed.environments.base import Dynamics
from seedbed.environments.lanes import ExternalEnvironment
from seedbed.registry import ENVIRONMENTS, load, make


class OpenedEnvironment(NamedTuple):
    """An environment and what it is called."""

    environment: Dynamics | ExternalEnvironment
    arguments: dict[str, Any]
    """All keyword arguments it was made with."""
    version: str | None
    """Package and version that define it, such as "gymnasium 1.4.0"; None for a module without a version."""


def open_environment(name: str, arguments: dict[str, Any], max_steps: int | None = None) -> OpenedEnvironment:
    """An environment by its registered name, its Gymnasium id, or package.module:Name.

    Args:
        name: a registered name comes first; another one is an environment of your own, a Gymnasium class or a
            Gymnasium id; for the latter two, arguments are those of the registered ``Gymnasium``.
        arguments: keyword arguments.
        max_steps: step limit in place of the environment's own; it becomes the argument ``horizon``.

    Raises:
        SeedbedError: there is no such environment, it refuses an argument, or its step limit is fixed.
    """
    arguments = dict(arguments)
    if max_steps is not None:
        if "horizon" in arguments:
            raise SeedbedError(
                "--max-steps and --environment-argument horizon say the same: give one of them."
            )
        arguments["horizon"] = max_steps
    registered = name if name in ENVIRONMENTS else _adapter(name)
    if registered != name:
        arguments = {"id": name, **arguments}
    if max_steps is not None and registered == "GymnasiumVector":
        raise SeedbedError(
            "--max-steps: a vector environment keeps its step limits itself. Give it its own argument: "
            "--environment-argument kwargs.NAME=VALUE."
        )
    try:
        made = make(registered, arguments, ENVIRONMENTS, "environment")
    except SeedbedError as error:
        if max_steps is not None and "horizon" in str(error):
            raise SeedbedError(
                f"{error} (--max-steps is the argument 'horizon'; without it, the limit is fixed.)"
            ) from error
        if "NameNotFound" in str(error):
            close = difflib.get_close_matches(name, ENVIRONMENTS, n=1)
            raise SeedbedError(
                f"There is no environment '{name}'{f'; did you mean {close[0]}?' if close else '.'} "
                f"Use one of {', '.join(sorted(ENVIRONMENTS))}, a Gymnasium id, or package.module:Name."
            ) from error
        raise
    if max_steps is not None and made.spec.horizon > max_steps:
        raise SeedbedError(
            f"--max-steps: '{name}' has episodes of {made.spec.horizon} steps in spite of the argument "
            f"horizon={max_steps}."
        )
    return OpenedEnvironment(made, arguments, _version(made))


def _adapter(name: str) -> str:
    """Under which registered name an environment that is not registered is made; its own if it is ours."""
    if not name.partition(":")[2].isidentifier():
        return "Gymnasium"
    import gymnasium

    try:
        found = load(name, ENVIRONMENTS, "environment")
    except SeedbedError:
        raise
    except Exception as error:
        raise SeedbedError(f"{name} cannot be imported: {type(error).__name__}: {error}") from error
    if isinstance(found, type) and issubclass(found, gymnasium.vector.VectorEnv):
        return "GymnasiumVector"
    if isinstance(found, type) and issubclass(found, gymnasium.Env):
        return "Gymnasium"
    return name if hasattr(found, "draw") or hasattr(found, "make_lanes") else "Gymnasium"


def _version(environment: Dynamics | ExternalEnvironment) -> str | None:
    module = type(environment).__module__
    if isinstance(named := getattr(environment, "id", None), str):
        import gymnasium

        entry = gymnasium.registry[named].entry_point if named in gymnasium.registry else named
        module = entry if isinstance(entry, str) else entry.__module__
    package = module.partition(":")[0].partition(".")[0]
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return None
