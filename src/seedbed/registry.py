"""Names of environments, algorithms and metric sets, and where they live; imported when asked for."""

import importlib
import importlib.util
import re
from typing import Any

from seedbed.artifacts import SeedbedError

ENVIRONMENTS = {
    "MockInterview": "seedbed.environments.interview:MockInterview",
    "CartPole": "seedbed.environments.cart_pole:CartPole",
    "GoalGrid": "seedbed.environments.goal_grid:GoalGrid",
    "Gymnasium": "seedbed.environments.external:GymnasiumEnvironment",
    "Generalized": "seedbed.environments.generalized.dynamics:GeneralizedEnvironment",
    "Distribution": "seedbed.environments.distribution:Distribution",
    "GymnasiumVector": "seedbed.environments.external:VectorEnvironment",
}
ALGORITHMS = {
    "constant": "seedbed.algorithms.constant:Constant",
    "random": "seedbed.algorithms.uniform_random:UniformRandom",
    "rule_based": "seedbed.algorithms.interview_rules:RuleBased",
    "rule_based_fixed": "seedbed.algorithms.interview_rules:RuleBasedFixed",
    "interview_heuristic": "seedbed.algorithms.interview_rules:FixedHeuristic",
    "planner_index": "seedbed.algorithms.planner_index:PlannerIndex",
    "ppo": "seedbed.algorithms.ppo:PPO",
    "dqn": "seedbed.algorithms.dqn:DQN",
    "sac": "seedbed.algorithms.sac:SAC",
    "pets": "seedbed.algorithms.pets:PETS",
    "mbpo": "seedbed.algorithms.mbpo:MBPO",
    "a2c": "seedbed.algorithms.a2c:A2C",
    "shortest_path": "seedbed.algorithms.shortest_path:ShortestPath",
    "function": "seedbed.algorithms.function_policy:Function",
    "policy_file": "seedbed.algorithms.policy_file:PolicyFile",
    "sb3": "seedbed.algorithms.sb3:StableBaselines3",
    "agent": "seedbed.algorithms.single_seed:SingleSeed",
}
METRICS = {
    "episodes": "seedbed.metrics.episodes:METRICS",
    "interview": "seedbed.metrics.interview:METRICS",
    "goal": "seedbed.metrics.goal:METRICS",
    "model": "seedbed.metrics.world_model:METRICS",
    "generalization": "seedbed.metrics.generalization:METRICS",
}


def location(name: str, registry: dict[str, str], kind: str) -> str:
    """The "package.module:Name" behind a registered name or a name of that form.

    Raises:
        SeedbedError: the name is neither registered nor of the form, or its module cannot be found.
    """
    if name in registry:
        return registry[name]
    module, colon, attribute = name.partition(":")
    if not (colon and attribute.isidentifier()):
        raise SeedbedError(
            f"There is no {kind} '{name}'. Use one of {', '.join(sorted(registry))}, "
            f"or name your own as package.module:Name."
        )
    try:
        found = importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        found = False
    if not found:
        raise SeedbedError(
            f"The module '{module}' of the {kind} '{name}' cannot be found on the Python path."
        )
    return name


def mentioned(arguments: Any) -> list[str]:
    """The "package.module:Name" among arguments, at any depth, whose package can be found, in their order."""
    if isinstance(arguments, dict):
        arguments = list(arguments.values())
    if isinstance(arguments, list):
        return [name for value in arguments for name in mentioned(value)]
    match = re.fullmatch(r"([A-Za-z_]\w*)((?:\.\w+)*):\S+", arguments) if isinstance(arguments, str) else None
    if not match:
        return []
    package = importlib.util.find_spec(match[1])  # a name without dots is looked for, not imported
    return [arguments] if package and (package.has_location or package.submodule_search_locations) else []


def load(name: str, registry: dict[str, str], kind: str) -> Any:
    """Import and return the class behind a name.

    Raises:
        SeedbedError: as ``location``, or the module has no such class.
    """
    module, _, attribute = location(name, registry, kind).partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except AttributeError:
        raise SeedbedError(f"The module '{module}' has no {kind} called '{attribute}'.") from None


def make(name: str, arguments: dict[str, Any], registry: dict[str, str], kind: str) -> Any:
    """Construct a registered or user's environment or algorithm.

    Raises:
        SeedbedError: as ``load``, or it refuses an argument; each refused argument is named.
    """
    from pydantic import ValidationError

    try:
        return load(name, registry, kind)(**arguments)
    except ValidationError as error:
        problems = [
            f"  {'.'.join(map(str, problem['loc']))}: {problem['msg']} (got {problem['input']!r})"
            if problem["loc"]
            else f"  {problem['msg'].removeprefix('Value error, ')}"
            for problem in error.errors()
        ]
        raise SeedbedError("\n".join([f"The {kind} '{name}' refuses its arguments:", *problems])) from None
    except (TypeError, ValueError) as error:
        raise SeedbedError(f"The {kind} '{name}' refuses its arguments: {error}") from None
