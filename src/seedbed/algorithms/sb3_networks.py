"""Stable-Baselines3's networks over Seedbed's spaces: built from a study's words, filled with weights."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from gymnasium import spaces

from seedbed.algorithms.model_files import Model, Output
from seedbed.environments.base import Spec

_NOT_FROM_A_STUDY = (
    *("self", "observation_space", "action_space", "lr_schedule"),
    *("features_extractor_class", "features_extractor_kwargs", "optimizer_class", "optimizer_kwargs"),
)


def model_class(model: Model) -> type:
    """The class of Stable-Baselines3."""
    import stable_baselines3

    return getattr(stable_baselines3, model)


def observation_space(spec: Spec) -> spaces.Box:
    """Observations as Stable-Baselines3 sees them.

    Raises:
        ValueError: they are images, which its networks would take as bytes and turn.
    """
    low, high = spec.observation_low, spec.observation_high
    if low.ndim == 3 and (low == 0).all() and (high == 255).all():
        raise ValueError(
            "Observations are images, for which Stable-Baselines3 has networks of its own kind. Export the "
            "policy to ONNX or TorchScript, or flatten the observations by a wrapper."
        )
    return spaces.Box(low, high, dtype=np.float32)


def action_space(spec: Spec) -> spaces.Space:
    """Actions as Stable-Baselines3 sees them; several discrete ones count from 0.

    Raises:
        ValueError: several discrete actions that are not a vector.
    """
    array = spec.action_array
    if array is None:
        return spaces.Discrete(spec.actions)
    if not np.issubdtype(array.low.dtype, np.integer):
        return spaces.Box(array.low, array.high, dtype=array.low.dtype.type)
    if array.low.ndim != 1:
        raise ValueError(f"Stable-Baselines3 takes a vector of discrete actions, not {array.low.shape}.")
    return spaces.MultiDiscrete(array.high - array.low + 1)


def check_actions(model: Model, spec: Spec) -> None:
    """Whether a class can choose such actions at all.

    Raises:
        ValueError: it cannot.
    """
    space = action_space(spec)
    supported = {"DQN": spaces.Discrete, "DDPG": spaces.Box, "SAC": spaces.Box, "TD3": spaces.Box}
    if not isinstance(space, supported.get(model, spaces.Space)):
        raise ValueError(f"{model} chooses {supported[model].__name__} actions; these are {space}.")
    if isinstance(space, spaces.Box) and not np.isfinite([space.low, space.high]).all():
        raise ValueError(f"Stable-Baselines3 needs finite bounds of actions; these are {space}.")


def output_of(model: Model, spec: Spec) -> Output:
    """What a network's one output means."""
    if model == "DQN":
        return "q_values"
    return "logits" if spec.action_array is None else "action"


def policy_arguments(model: Model, given: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments of the policy class, from JSON: ``activation_fn`` is a name in ``torch.nn``.

    Raises:
        ValueError: an unknown argument or activation.
    """
    known = set(inspect.signature(model_class(model).policy_aliases["MlpPolicy"].__init__).parameters)
    known -= set(_NOT_FROM_A_STUDY)
    if unknown := sorted(set(given) - known):
        raise ValueError(
            f"policy_kwargs: {model} has no {', '.join(unknown)}; it has {', '.join(sorted(known))}"
        )
    arguments = dict(given)
    if "activation_fn" in arguments:
        name = arguments["activation_fn"]
        kind = getattr(torch.nn, name, None) if isinstance(name, str) else None
        if not (isinstance(kind, type) and issubclass(kind, torch.nn.Module)):
            raise ValueError(f"policy_kwargs.activation_fn: torch.nn has no '{name}'; it has ReLU, Tanh, ...")
        arguments["activation_fn"] = kind
    if model == "DDPG":
        arguments.setdefault("n_critics", 1)
    return arguments


def network(
    model: Model, spec: Spec, policy_kwargs: Mapping[str, Any], weights: Mapping[str, np.ndarray]
) -> torch.nn.Module:
    """A policy of Stable-Baselines3 with given weights, ready to act.

    Raises:
        ValueError: it cannot be built, or the weights do not fit; says which.
    """
    with torch.random.fork_rng(devices=[]):  # it is initialised at random before it is filled
        built = model_class(model).policy_aliases["MlpPolicy"](
            observation_space(spec),
            action_space(spec),
            lambda _: 0.0,
            **policy_arguments(model, policy_kwargs),
        )
    expected = built.state_dict()
    problems = [f"{name} is missing" for name in expected if name not in weights]
    problems += [f"{name} is not expected" for name in weights if name not in expected]
    problems += [
        f"{name} has the shape {list(weights[name].shape)}, not {list(tensor.shape)}"
        for name, tensor in expected.items()
        if name in weights and weights[name].shape != tuple(tensor.shape)
    ]
    if problems:
        more = f" and {len(problems) - 4} more" if len(problems) > 4 else ""
        raise ValueError(
            f"the weights do not fit a {model} network of this environment with policy_kwargs "
            f"{dict(policy_kwargs)}: {'; '.join(problems[:4])}{more}"
        )
    built.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in weights.items()})
    built.set_training_mode(False)
    return built


def weights_of(policy: torch.nn.Module) -> dict[str, np.ndarray]:
    """A copy of a network's weights."""
    return {name: tensor.detach().cpu().numpy().copy() for name, tensor in policy.state_dict().items()}


def runner(model: Model, spec: Spec, built: torch.nn.Module) -> Callable[[np.ndarray], np.ndarray]:
    """The network as a function of one observation [1, *shape] -> logits, values or action [1, ...].

    Actions are those of ``predict(deterministic=True)``: unscaled where the policy squashes, else clipped.
    """
    space, output = action_space(spec), output_of(model, spec)

    def run(observation: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            x = torch.tensor(observation)
            if output == "q_values":
                return built.q_net(x).numpy()
            if output == "logits":
                return built.get_distribution(x).distribution.logits.numpy()
            action = built._predict(x, deterministic=True).numpy().reshape(1, *space.shape)
        if isinstance(space, spaces.MultiDiscrete):
            return action.astype(np.int64) + spec.action_array.low
        if built.squash_output:
            action = built.unscale_action(action)
        return np.clip(action, space.low, space.high)

    return run
