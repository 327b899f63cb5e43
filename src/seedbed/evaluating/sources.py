"""Where policies and environments come from: a registered name, a file, a Gymnasium id, somebody's module."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from seedbed.artifacts import ArtifactError, SeedbedError, read_arrays, sha256
from seedbed.environments.base import Dynamics
from seedbed.environments.lanes import ExternalEnvironment
from seedbed.registry import ALGORITHMS, load, make
from seedbed.training import train

if TYPE_CHECKING:
    from seedbed.algorithms.base import Policy

POLICY_FILES = (".zip", ".onnx", ".pt", ".ts")
"""Files of policies that other tools wrote; the algorithm ``policy_file`` reads them."""


class OpenedPolicy(NamedTuple):
    """A policy and what it is called."""

    policy: "Policy"
    algorithm: str | None
    """Name of the algorithm; None for a file that several algorithms may have written."""
    sha256: str
    """Of the policy's file; of the bytes that it would be saved as, if it has none."""


def open_policy(
    source: str,
    arguments: dict[str, Any],
    environment: Dynamics | ExternalEnvironment,
    seeds: Sequence[int] | None = None,
) -> OpenedPolicy:
    """A policy by the name of an algorithm that learns nothing, by its file, or by package.module:Name.

    Args:
        source: registered name; a .safetensors file of Seedbed's; a file that ``policy_file`` reads; or
            package.module:Name of an algorithm of your own or of a function ``observation -> action``.
        arguments: hyper-parameters; for a .safetensors file only "algorithm", the one that wrote it.
        environment: where it is to act.
        seeds: training seeds; None for all that a .safetensors file has, and for seed 0 otherwise.

    Raises:
        SeedbedError: there is no such policy, it learns, does not fit the environment or lacks a seed.
    """
    if source not in ALGORITHMS and Path(source).suffix == ".safetensors":
        return _saved(source, arguments, environment, seeds)
    name = source
    if source not in ALGORITHMS and Path(source).suffix in POLICY_FILES:
        if not Path(source).is_file() and "{seed}" not in source:
            raise ArtifactError(f"{source} does not exist. Give the path of a policy's file.")
        name, arguments = "policy_file", {"path": source, **arguments}
    elif source not in ALGORITHMS and not hasattr(load(source, ALGORITHMS, "algorithm"), "policy_class"):
        name, arguments = "function", {"function": source, **arguments}
    algorithm = make(name, arguments, ALGORITHMS, "algorithm")
    if algorithm.lanes:
        raise SeedbedError(
            f"'{source}' learns, so its policy comes out of training. Give the file, such as "
            f"results/STUDY/ENVIRONMENT/ALGORITHM/BLOCK/policy.safetensors."
        )
    if environment.spec.action_array is not None and not getattr(algorithm, "array_actions", False):
        raise SeedbedError(f"'{source}' chooses one of several actions; this environment's are arrays.")
    try:
        policy = train(algorithm, environment, [0] if seeds is None else seeds, 0, None).policy
    except (AttributeError, TypeError, ValueError) as error:
        raise SeedbedError(f"'{source}' cannot act in this environment: {error}") from error
    return OpenedPolicy(policy, name, sha256(source) if Path(source).is_file() else _digest(policy))


def _saved(
    path: str, arguments: dict[str, Any], environment: Any, seeds: Sequence[int] | None
) -> OpenedPolicy:
    """See ``open_policy``; a file that Seedbed wrote."""
    if unknown := sorted(set(arguments) - {"algorithm"}):
        raise SeedbedError(
            f"{path} holds all that its policy needs; --policy-argument {unknown[0]} has no meaning. "
            f"Only 'algorithm' has: the one that wrote the file."
        )
    written = read_arrays(path)[1].get("policy")
    if "algorithm" in arguments:
        makers = {arguments["algorithm"]: load(arguments["algorithm"], ALGORITHMS, "algorithm").policy_class}
    else:
        makers = _makers(written)
    if not makers:
        raise ArtifactError(
            f"{path} holds the policy {written}, which no registered algorithm writes. "
            f"Name the one that does: --policy-argument algorithm=package.module:Name."
        )
    try:
        policy = next(iter(makers.values())).load(path, environment)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ArtifactError(
            f"{path} cannot act in this environment: {type(error).__name__}: {error}"
        ) from error
    if seeds is not None and list(seeds) != policy.seeds:
        if unknown := [seed for seed in seeds if seed not in policy.seeds]:
            raise ArtifactError(
                f"{path} has the seeds {policy.seeds}, not {unknown}. Choose --seed among them."
            )
        policy = policy.of(list(seeds))
    return OpenedPolicy(policy, next(iter(makers)) if len(makers) == 1 else None, sha256(path))


def _makers(policy_class: str) -> dict[str, type]:
    """Registered algorithms whose policies are of a class of this name: name -> class."""
    found = {}
    for name in ALGORITHMS:
        try:
            made = load(name, ALGORITHMS, "algorithm").policy_class
        except ImportError:  # it needs a package that is not here; then it did not write this file here
            continue
        if made.__name__ == policy_class:
            found[name] = made
    return found


def _digest(policy: "Policy") -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "policy.safetensors")
        policy.save(path)
        return sha256(path)
