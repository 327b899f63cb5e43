"""A learned model of an environment, ready to predict: fixed parameters, standardisation folded in."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch

from seedbed.algorithms.model_kernel import advance, gather, moments
from seedbed.algorithms.networks import ALIGNMENT, StackedMLP
from seedbed.artifacts import ArtifactError
from seedbed.environments.base import Dynamics, Knowledge, Spec


def variance(raw: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
    """exp of a log variance held softly between two limits.

    Chua et al. 2018 (appendix A.1) bend the raw value v twice: v1 = high - softplus(high - v) and
    low + softplus(v1 - low). Exponentiated this is exp(low) + 1 / (exp(-high) + exp(-v)): one exponential.
    """
    return low.exp() + (torch.exp(-raw) + torch.exp(-high)).reciprocal()


def encode(table: np.ndarray) -> np.ndarray:
    """One-hot choices behind each action, [actions, sum of choices] float32.

    A choice on which an action does not depend, such as the modality of a question, is all zeros.

    Args:
        table: see ``Knowledge.action_table``.
    """
    columns = []
    for choice, size in zip(np.indices(table.shape), table.shape, strict=True):
        lowest, highest = np.full(table.max() + 1, size), np.full(table.max() + 1, -1)
        np.minimum.at(lowest, table.ravel(), choice.ravel())
        np.maximum.at(highest, table.ravel(), choice.ravel())
        columns.append((lowest[:, None] == np.arange(size)) & (lowest == highest)[:, None])
    return np.concatenate(columns, -1).astype(np.float32)


@dataclass(frozen=True)
class ModelShape:
    """What goes into a model of an environment and what comes out.

    Args:
        entries: entries of the observation that go in, [actions, n].
        changes: of these, the changes of the first so many come out.
        encoding: choices behind each action, [actions, e].
        learns_reward: whether the reward is predicted after the changes, and the event is termination;
            otherwise the environment knows both and the event is the outcome it asks for.
    """

    entries: np.ndarray
    changes: int
    encoding: np.ndarray
    learns_reward: bool

    @classmethod
    def of(cls, spec: Spec, knowledge: Knowledge | None) -> "ModelShape":
        """The shape for an environment; without knowledge an action is one choice and concerns everything."""
        if knowledge is not None:
            return cls(knowledge.entries, knowledge.learned, encode(knowledge.action_table), False)
        everything = np.arange(int(np.prod(spec.observation_shape)))
        entries = np.broadcast_to(everything, (spec.actions, everything.size))
        return cls(entries, everything.size, encode(np.arange(spec.actions)), True)

    @property
    def observed(self) -> int:
        """Entries of the observation that go in, n."""
        return self.entries.shape[1]

    @property
    def inputs(self) -> int:
        """Inputs of the network: entries of the observation and encoded action."""
        return self.observed + self.encoding.shape[1]

    @property
    def targets(self) -> int:
        """Numbers that are predicted, the event not among them."""
        return self.changes + self.learns_reward

    @property
    def width(self) -> int:
        """D: the targets and the event's logit, which comes last, rounded up to 16 floats."""
        return -(-(self.targets + 1) // ALIGNMENT) * ALIGNMENT


class WorldModel:
    """The elites of an ensemble for each of S seeds.

    Args:
        shape: what goes in and comes out.
        hidden: widths of the hidden layers.
        parameters: [S, E, P] in the layout of ``EnsembleNetwork``.
        scales: "centre" and "spread" [S, n] of entries, "size" [S, targets] of changes.
    """

    def __init__(
        self,
        shape: ModelShape,
        hidden: Sequence[int],
        parameters: torch.Tensor,
        scales: dict[str, np.ndarray],
    ):
        self.shape, self.hidden, self.parameters, self.scales = shape, tuple(hidden), parameters, scales

    def of(self, rows: Sequence[int]) -> Self:
        """The models of some of its seeds, by their rows."""
        scales = {name: value[list(rows)] for name, value in self.scales.items()}
        return type(self)(self.shape, self.hidden, self.parameters[list(rows)], scales)

    def contents(self, seeds: Sequence[int]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and metadata for a policy's file: ``seed-7/model`` and ``seed-7/model.<scale>``."""
        arrays = {}
        for row, seed in enumerate(seeds):
            arrays[f"seed-{seed}/model"] = self.parameters[row].numpy()
            arrays |= {f"seed-{seed}/model.{name}": scale[row] for name, scale in self.scales.items()}
        sizes = {"hidden": self.hidden, "inputs": self.shape.inputs, "targets": self.shape.targets}
        return arrays, {"model": sizes}

    @classmethod
    def read(
        cls, path: Any, arrays: dict[str, np.ndarray], metadata: dict[str, Any], dynamics: Dynamics
    ) -> Self:
        """What ``contents`` gave.

        Raises:
            ArtifactError: an array is missing, or the model is one of another environment.
        """
        shape = ModelShape.of(dynamics.spec, getattr(dynamics, "knowledge", None))
        sizes, here = metadata["model"], (shape.inputs, shape.targets)
        if (sizes["inputs"], sizes["targets"]) != here:
            raise ArtifactError(
                f"The model in {path} has {sizes['inputs']} inputs and {sizes['targets']} targets; this "
                f"environment has {here[0]} and {here[1]}. Evaluate it where it was trained."
            )
        parameters = torch.from_numpy(stacked(path, arrays, metadata["seeds"], "model"))
        scales = {
            name: stacked(path, arrays, metadata["seeds"], f"model.{name}")
            for name in ("centre", "spread", "size")
        }
        return cls(shape, sizes["hidden"], parameters, scales)

    def predictor(self, row: int | None = None, bfloat16: bool = False) -> "Predictor":
        """Predicts with the elites of one seed, E rows, or of all seeds, S x E rows."""
        rows = slice(None) if row is None else slice(row, row + 1)
        elites = self.parameters.shape[1]
        scales = {
            name: torch.from_numpy(value[rows]).repeat_interleave(elites, 0)
            for name, value in self.scales.items()
        }
        return Predictor(self.shape, self.hidden, self.parameters[rows].flatten(0, 1), scales, bfloat16)


def stacked(path: Any, arrays: dict[str, np.ndarray], seeds: Sequence[int], name: str) -> np.ndarray:
    """``seed-<seed>/<name>`` of all seeds, [S, ...].

    Raises:
        ArtifactError: one is missing in the file at ``path``.
    """
    keys = [f"seed-{seed}/{name}" for seed in seeds]
    if missing := [key for key in keys if key not in arrays]:
        raise ArtifactError(f"{path} lacks {missing[0]}. Train it again.")
    return np.stack([arrays[key] for key in keys])


class Predictor:
    """R models in the units of observations and rewards; the first layer looks an action up.

    Args:
        shape, hidden: see ``WorldModel``.
        parameters: [R, P].
        scales: as ``WorldModel``, [R, ...].
        bfloat16: whether to multiply in bfloat16; faster, less exact.
    """

    @torch.inference_mode()
    def __init__(self, shape, hidden, parameters, scales, bfloat16: bool = False):
        self._width, self._targets = shape.width, shape.targets
        self._type = torch.bfloat16 if bfloat16 else torch.float32
        network = StackedMLP([shape.inputs, *hidden, 2 * shape.width], "silu")
        (weight, bias), *middle, (last_weight, last_bias) = network.layers(parameters)
        into = weight[:, : shape.observed] / scales["spread"][:, :, None]
        encoding = torch.from_numpy(shape.encoding).expand(len(parameters), -1, -1)
        at_action = torch.baddbmm(bias, encoding, weight[:, shape.observed :])
        at_action = at_action - torch.bmm(scales["centre"][:, None], into)
        self._into = into.to(self._type).contiguous()
        self._at_action = at_action.to(self._type).flatten(0, 1).contiguous()
        self._first = shape.encoding.shape[0] * np.arange(len(parameters))[:, None]
        # size x mean, and size^2 x variance = size^2 low + 1 / (1 / (size^2 high) + exp(-raw - 2 log size))
        size = torch.ones(len(parameters), 1, self._width)
        size[:, 0, : shape.targets] = scales["size"]
        factor = torch.cat([size, torch.ones_like(size)], -1)
        offset = torch.cat([torch.zeros_like(size), 2 * size.log()], -1)
        layers = [*middle, (last_weight * factor, last_bias * factor + offset)]
        self._layers = [(w.to(self._type).contiguous(), b.to(self._type).contiguous()) for w, b in layers]
        limits = parameters[:, None, network.size : network.size + 2 * self._width]
        low, high = limits.split(self._width, -1)
        floor, ceiling = low.exp() * size.square(), torch.exp(-high) / size.square()
        self._floor, self._ceiling = (
            np.ascontiguousarray(x[:, 0, : self._targets].numpy()) for x in (floor, ceiling)
        )

    @torch.inference_mode()
    def __call__(self, seen: np.ndarray, action: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Predict one step.

        Args:
            seen: the entries that the action concerns, [R, B, n] float32.
            action: [R, B] int64.

        Returns:
            Means and standard deviations of the changes, and of the reward if it is learned,
            [R, B, targets]; the probability of the event [R, B]; all float32.
        """
        rows = torch.from_numpy((action + self._first).reshape(-1))
        bias = self._at_action.index_select(0, rows).view(*action.shape, -1)
        x = torch.baddbmm(bias, torch.from_numpy(seen).to(self._type), self._into)
        for weight, bias in self._layers:
            x = torch.baddbmm(bias, torch.nn.functional.silu(x, inplace=True), weight)
        out, shape = x.float().numpy(), (*action.shape, self._targets)
        mean, spread = np.empty(shape, np.float32), np.empty(shape, np.float32)
        event = np.empty(action.shape, np.float32)
        moments(out, self._floor, self._ceiling, mean, spread, event)
        return mean, spread, event


class Imagination:
    """Steps of an environment as models predict them, from observations alone.

    Args:
        predictor: R models.
        shape: what goes into them and comes out.
        spec: the environment's shapes; observations are held within its bounds.
        knowledge: what need not be predicted, if anything.
    """

    def __init__(self, predictor: Predictor, shape: ModelShape, spec: Spec, knowledge: Knowledge | None):
        self._predictor, self._knowledge = predictor, knowledge
        self._entries, self._changes = np.ascontiguousarray(shape.entries), shape.changes
        changing = self._entries[:, : self._changes]
        self._low, self._high = (
            bound.reshape(-1).take(changing) for bound in (spec.observation_low, spec.observation_high)
        )
        self.masked = spec.masked and knowledge is not None
        """Whether ``action_mask`` says anything."""

    def step(
        self, observation: np.ndarray, action: np.ndarray, noise: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """One step of each model.

        Args:
            observation: [R, B, d] float32.
            action: [R, B] int64.
            noise: standard normal, float32, broadcastable to [R, B, changes].

        Returns:
            The next observation [R, B, d] float32, the expected reward [R, B], and the probability that the
            episode terminated [R, B].
        """
        rows = np.ascontiguousarray(observation).reshape(-1, observation.shape[-1])
        number = action.reshape(-1)
        seen = np.empty((number.size, self._entries.shape[1]), np.float32)
        gather(rows, number, self._entries, seen)
        mean, spread, event = self._predictor(seen.reshape(*action.shape, -1), action)
        noise = np.ascontiguousarray(np.broadcast_to(noise, (*action.shape, self._changes)))
        predicted, targets = np.empty_like(rows), mean.shape[-1]
        advance(
            rows, number, mean.reshape(-1, targets), spread.reshape(-1, targets),
            noise.reshape(-1, self._changes), self._entries, self._low, self._high, predicted,
        )  # fmt: skip
        predicted = predicted.reshape(observation.shape)
        if self._knowledge is None:
            return predicted, mean[..., self._changes].copy(), event
        following, reward, terminated = self._knowledge.step(observation, action, predicted, event)
        return following, reward, terminated.astype(np.float32)

    def action_mask(self, observation: np.ndarray) -> np.ndarray | None:
        """Which actions are allowed at imagined observations, [..., actions]; None where nobody knows."""
        return self._knowledge.action_mask(observation) if self.masked else None
