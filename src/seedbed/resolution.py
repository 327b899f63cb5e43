"""A study with everything filled in: each environment and algorithm constructed, each default written out."""

import dataclasses
import inspect
import math
from typing import Any

import numpy as np
from pydantic import BaseModel

from seedbed.artifacts import SeedbedError
from seedbed.environments.base import Dynamics, Spec
from seedbed.environments.lanes import ExternalEnvironment
from seedbed.layout import blocks
from seedbed.registry import ALGORITHMS, ENVIRONMENTS, METRICS, load, make
from seedbed.study import Algorithm, Study
from seedbed.study_files import StudyError


def resolve(study: Study, seeds_per_job: int) -> dict[str, Any]:
    """Construct all that a study names and return it as a JSON document.

    Returns:
        "study": the study; "environments": label -> sizes, horizon, checksums of fixed content, and warnings
        (what was found about an external environment that limits the conclusions);
        "algorithms": environment label -> algorithm label -> every hyper-parameter;
        "blocks": how the seeds are divided over jobs.

    Raises:
        StudyError: an argument is refused, an external environment fails in trial episodes, a budget or the
            kind of actions does not fit, an algorithm's own check fails, or a metric is not computed; names
            the key.
    """
    environments, algorithms = {}, {}
    for label, entry in study.environments.items():
        key = f"studies/{study.name}.yaml: environments.{label}"
        dynamics = _made(entry.environment, entry.arguments, ENVIRONMENTS, "environment", key)
        environments[label] = {
            "arguments": _arguments(dynamics, entry.arguments),
            "observation_shape": list(dynamics.spec.observation_shape),
            "actions": _actions(dynamics.spec),
            "horizon": dynamics.spec.horizon,
            "success": _success(dynamics.spec),
            "content": dynamics.content_checksums(),
            "warnings": _warnings(dynamics, key),
        }
        algorithms[label] = {}
        for name, algorithm in study.algorithms_in(label).items():
            key = f"studies/{study.name}.yaml: algorithms.{name} (in {label})"
            arguments = study.arguments(name, label)
            _check_device(algorithm, key)
            made = _made(algorithm.algorithm, arguments, ALGORITHMS, "algorithm", key)
            if made.lanes and (algorithm.budget < 1 or algorithm.budget % made.lanes):
                raise StudyError(
                    f"{key}: a budget of {algorithm.budget} steps is not a positive multiple of "
                    f"{made.lanes} lanes."
                )
            if dynamics.spec.action_array is not None and not getattr(made, "array_actions", False):
                raise StudyError(
                    f"{key}: {algorithm.algorithm} chooses one of several actions, but an action of this "
                    f"environment is an array of {_actions(dynamics.spec)}."
                )
            if hasattr(made, "check"):
                try:
                    made.check(dynamics, study.seeds_in(label), algorithm.budget)
                except (SeedbedError, ValueError) as error:
                    raise StudyError(f"{key}: {error}") from error
            algorithms[label][name] = dataclasses.asdict(made)
    _check_metrics(study)
    if study.off_policy:
        _check_off_policy(study)
    return {
        "study": study.model_dump(mode="json"),
        "environments": environments,
        "algorithms": algorithms,
        "blocks": blocks(study, seeds_per_job),
    }


def _check_device(algorithm: Algorithm, key: str) -> None:
    """Whether there is a GPU is asked where it is trained, which may be another machine."""
    if algorithm.device == "cpu":
        return
    try:
        made_by = load(algorithm.algorithm, ALGORITHMS, "algorithm")
    except SeedbedError as error:
        raise StudyError(f"{key}: {error}") from None
    if "device" not in inspect.signature(made_by).parameters:
        raise StudyError(
            f"{key}: device: {algorithm.device}: {algorithm.algorithm} computes on the CPU only. "
            f"Leave `device` out."
        )


def _check_off_policy(study: Study) -> None:
    from seedbed.algorithms.epsilon_soft import epsilon_soft

    plan, key = study.off_policy, f"studies/{study.name}.yaml: off_policy"
    place = plan.environment
    dynamics = _made(place.environment, place.arguments, ENVIRONMENTS, "environment", f"{key}.environment")
    if not hasattr(dynamics, "draw") or not dynamics.spec.actions or dynamics.spec.agents is not None:
        raise StudyError(f"{key}.environment: needs a pure environment of one agent with discrete actions.")
    for label, policy in {"behaviour": plan.behaviour, **plan.targets}.items():
        try:
            epsilon_soft(policy.algorithm, policy.arguments, policy.epsilon, dynamics, [0])
        except SeedbedError as error:
            where = label if policy is plan.behaviour else f"targets.{label}"
            raise StudyError(f"{key}.{where}: {error}") from None


def _made(name: str, arguments: dict[str, Any], registry: dict[str, str], kind: str, key: str) -> Any:
    try:
        return make(name, arguments, registry, kind)
    except SeedbedError as error:
        raise StudyError(f"{key}: {error}") from None


def _actions(spec: Spec) -> int | str:
    """Number of discrete actions, or of which numbers an action consists that is an array."""
    if spec.action_array is None:
        return spec.actions
    count = math.prod(spec.action_shape)
    kind = "whole" if np.issubdtype(spec.action_array.low.dtype, np.integer) else "real"
    return f"{count} {kind} number{'' if count == 1 else 's'}"


def _arguments(dynamics: Dynamics | ExternalEnvironment, given: dict[str, Any]) -> dict[str, Any]:
    """All arguments where an environment keeps them as a model of its ``settings``; else those given."""
    settings = getattr(dynamics, "settings", None)
    return settings.model_dump(mode="json") if isinstance(settings, BaseModel) else given


def _success(spec: Spec) -> str:
    """What success is, in words; "" where there is none."""
    meanings = {fact.name: fact.meaning for fact in spec.facts}
    if spec.success is None:
        return ""
    cut = "may be one" if spec.truncated_success else "is none"
    meaning = meanings.get(spec.success) or spec.success
    return f"{meaning}, at the step that ends the episode; an episode cut by the step limit {cut}"


def _warnings(environment: Dynamics | ExternalEnvironment, key: str) -> list[str]:
    """What is found about an external environment in trial episodes; pure dynamics need none."""
    if not hasattr(environment, "warnings"):
        return []
    try:
        return environment.warnings()
    except Exception as error:
        raise StudyError(f"{key}: a trial episode failed: {type(error).__name__}: {error}") from error


def _check_metrics(study: Study) -> None:
    known = {metric.name for name in study.metrics for metric in load(name, METRICS, "metric set")}
    plan = study.statistics
    efficiency = plan.sample_efficiency
    followed = [efficiency.metric, *efficiency.also] if efficiency else []
    unknown = sorted({*plan.primary.values(), *plan.secondary, *followed} - known)
    if unknown:
        raise StudyError(
            f"studies/{study.name}.yaml: statistics: no metric {', '.join(unknown)} in the metric sets "
            f"{', '.join(study.metrics)}; they have {', '.join(sorted(known))}."
        )
