"""One evaluation from request to summary and files: what stands behind ``seedbed evaluate``."""

import dataclasses
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from seedbed.artifacts import EPISODE_COLUMNS, SeedbedError, atomic, write_table, write_text
from seedbed.environments.base import Spec
from seedbed.environments.opening import open_environment
from seedbed.evaluating.sources import OpenedPolicy, open_policy
from seedbed.evaluating.summary import effective_episodes, summarise
from seedbed.evaluation import evaluate
from seedbed.seeding import Purpose

if TYPE_CHECKING:
    import pandas as pd

    from seedbed.algorithms.base import Policy

SCHEMA_VERSION = 1


class EvaluateError(SeedbedError):
    """An evaluation could not be made; the message ends in the configuration that reproduces it."""


@dataclasses.dataclass(frozen=True)
class Request:
    """What is to be evaluated on which episodes.

    Episode k of training seed s is the one that a study's final table has under this number: both come from
    the stream (TEST, s, k). Episodes 0-49 and 50-99, one after the other, are therefore episodes 0-99.

    Args:
        policy, policy_arguments: see ``sources.open_policy``.
        environment, environment_arguments, max_steps: see ``environments.opening``.
        episodes: how many per seed.
        seeds: training seeds; None for all of a .safetensors file, and for seed 0 otherwise.
        seed_offset: number of the first episode.
        reset_seeds: whether episode k is reset with the plain seed k, the same for every training seed.
        lanes: episodes side by side per seed; changes speed, never a result.
        mode: "greedy" or "sampled"; None for greedy where the policy has both.
        device: where networks compute; environments are on the CPU always. "auto" takes a GPU if there is one
            and the policy has a network. Another device may give other last bits.
        optional_device: whether a missing GPU gives {"skipped": ...} in place of an error.
        output: for the episode table (.parquet) or the summary (.json).
        dump_trajectory: for one JSON object per step.
    """

    policy: str
    environment: str
    policy_arguments: dict[str, Any] = dataclasses.field(default_factory=dict)
    environment_arguments: dict[str, Any] = dataclasses.field(default_factory=dict)
    episodes: int = 100
    seeds: list[int] | None = None
    seed_offset: int = 0
    reset_seeds: bool = False
    lanes: int = 1
    mode: Literal["greedy", "sampled"] | None = None
    max_steps: int | None = None
    device: Literal["cpu", "cuda", "auto"] = "cpu"
    optional_device: bool = False
    output: Path | None = None
    dump_trajectory: Path | None = None


def evaluate_policy(request: Request) -> dict[str, Any]:
    """Evaluate, write the files asked for, and return the summary.

    Returns:
        How the policy acted where (schema, environment, environment_version, environment_arguments, policy,
        policy_arguments, algorithm, policy_sha256, greedy, device, seeds, first_episode, reset_seeds,
        max_steps) and what ``summary.summarise`` says of the episodes; always the same keys. Or, with
        ``optional_device``, {"skipped": reason}.

    Raises:
        EvaluateError: the request cannot be met; nothing is written then.
    """
    try:
        _check(request)
        if request.device == "cuda" and not _has_gpu():
            missing = "There is no GPU here that torch can use."
            if request.optional_device:
                return {"skipped": missing}
            raise SeedbedError(f"--device cuda: {missing} Use --device cpu, or skip with --optional-device.")
        return _evaluated(request)
    except SeedbedError as error:
        message = re.sub(r"\s*\n\s*", " ", str(error))
        raise EvaluateError(f"{message}\nConfiguration: {_configuration(request)}") from error
    except Exception as error:
        error.add_note(f"Configuration: {_configuration(request)}")
        raise


def _configuration(request: Request) -> str:
    return json.dumps(dataclasses.asdict(request), default=str)


def _check(request: Request) -> None:
    """Refuse what cannot be meant, before anything is made."""
    for name, least in (("episodes", 1), ("lanes", 1), ("seed_offset", 0), ("max_steps", 1)):
        value = getattr(request, name)
        if value is not None and value < least:
            raise SeedbedError(f"--{name.replace('_', '-')} is {value}; it has to be {least} at least.")
    seeds = request.seeds
    if seeds is not None and (len(set(seeds)) < len(seeds) or not all(0 <= seed < 2**32 for seed in seeds)):
        raise SeedbedError(f"--seed {' '.join(map(str, seeds))}: give each seed once, from 0 to 2**32 - 1.")
    if request.seed_offset + request.episodes > 2**32:
        raise SeedbedError("--seed-offset: episodes are numbered from 0 to 2**32 - 1.")
    if request.optional_device and request.device != "cuda":
        raise SeedbedError("--optional-device says what happens without a GPU: it goes with --device cuda.")
    for name in ("output", "dump_trajectory"):
        flag, path = f"--{name.replace('_', '-')}", getattr(request, name)
        suffixes = (".parquet", ".json") if name == "output" else (".jsonl",)
        if path is not None and path.suffix not in suffixes:
            raise SeedbedError(f"{flag} {path}: the name has to end in {' or '.join(suffixes)}.")
        if path is not None and (path.is_dir() or not _can_have_files(path.parent)):
            raise SeedbedError(f"{flag} {path}: no file can be written there. Choose another folder or name.")


def _can_have_files(folder: Path) -> bool:
    """Whether it is a folder, or one can be made."""
    return folder.is_dir() or (not folder.exists() and _can_have_files(folder.parent))


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def _placed(policy: "Policy", device: str) -> tuple["Policy", str]:
    """The policy on a device, and which one it is."""
    if device == "cuda" and not hasattr(policy, "on"):
        raise SeedbedError(
            f"--device cuda: {type(policy).__name__} has no network to compute there. Use --device cpu."
        )
    if device == "cpu" or not hasattr(policy, "on") or not _has_gpu():
        return policy, "cpu"
    return policy.on("cuda"), "cuda"


def _evaluated(request: Request) -> dict[str, Any]:
    environment, arguments, version = open_environment(
        request.environment, request.environment_arguments, request.max_steps
    )
    seeds = None if request.seeds is None else sorted(request.seeds)
    opened = open_policy(request.policy, request.policy_arguments, environment, seeds)
    mode = request.mode or opened.policy.modes[0]
    if mode not in opened.policy.modes:
        raise SeedbedError(
            f"--{mode}: {request.policy} acts {' or '.join(opened.policy.modes)} only. Leave --{mode} out."
        )
    policy, device = _placed(opened.policy.in_mode(mode), request.device)
    first, numbers = request.seed_offset, range(request.seed_offset, request.seed_offset + request.episodes)
    try:
        run = evaluate(
            policy,
            environment,
            Purpose.TEST,
            list(numbers) if request.reset_seeds else request.episodes,
            lanes=request.lanes,
            first=first,
            log_steps=request.dump_trajectory is not None,
            fingerprints=not policy.uniforms,
        )
    except ValueError as error:  # lanes that cannot be had
        raise SeedbedError(str(error)) from error
    n_eff = effective_episodes(run.fingerprints) if run.fingerprints is not None else len(run.episodes)
    summary = {
        "schema": SCHEMA_VERSION,
        **_identity(request, opened, arguments, version),
        "greedy": mode == "greedy",
        "device": device,
        "seeds": policy.seeds,
        "first_episode": first,
        "reset_seeds": request.reset_seeds,
        "max_steps": request.max_steps,
        **summarise(run.episodes, n_eff, environment.spec.success is not None),
    }
    if request.dump_trajectory is not None:
        with atomic(request.dump_trajectory) as temporary, open(temporary, "w", encoding="utf-8") as file:
            for row in trajectory(run.steps, environment.spec):
                file.write(json.dumps(row, allow_nan=False) + "\n")
    if request.output is not None and request.output.suffix == ".json":
        write_text(request.output, json.dumps(summary, allow_nan=False) + "\n")
    elif request.output is not None:
        write_table(request.output, run.episodes, EPISODE_COLUMNS)
    return summary


def _identity(
    request: Request, opened: OpenedPolicy, arguments: dict[str, Any], version: str | None
) -> dict[str, Any]:
    return {
        "environment": request.environment,
        "environment_version": version,
        "environment_arguments": arguments,
        "policy": request.policy,
        "policy_arguments": request.policy_arguments,
        "algorithm": opened.algorithm,
        "policy_sha256": opened.sha256,
    }


def trajectory(steps: "pd.DataFrame", spec: Spec) -> Iterator[dict[str, Any]]:
    """The rows of a step table as JSON objects, by seed, episode and t; numbers that are not finite as None.

    ``action`` is a number, or a nested list of the action's shape.
    """
    columns = {name: steps[name].tolist() for name in steps if not re.fullmatch(r"action_\d+", name)}
    if spec.action_array is not None:
        names = [f"action_{i}" for i in range(math.prod(spec.action_shape))]
        columns["action"] = steps[names].to_numpy().reshape(-1, *spec.action_shape).tolist()
    for values in zip(*columns.values(), strict=True):
        yield {name: _plain(value) for name, value in zip(columns, values, strict=True)}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
