"""What policies of one stacked network share: padding, modes, and a file with rows addressable per seed."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch

from seedbed.algorithms.networks import StackedMLP
from seedbed.artifacts import ArtifactError, read_arrays, write_arrays
from seedbed.environments.base import Dynamics

LANE_MULTIPLE = 8


class NetworkPolicy:
    """A policy that reads its action values or logits from one network per seed; see ``Policy``.

    Subclasses name the network and write ``act`` and ``probabilities`` on top of ``outputs``.

    Args:
        seeds: training seeds of the rows, [S].
        sizes: widths of the network from flattened observation to actions.
        activation: a name in ``networks.ACTIVATIONS``.
        parameters: [S, P] in the layout of ``StackedMLP``; the caller hands over a copy.
        options: what else the subclass needs to act; plain JSON values.
        mode: one of ``modes``; the first if None.
    """

    network_name: ClassVar[str]
    modes: ClassVar[tuple[str, ...]] = ("greedy", "sampled")
    needs_state: ClassVar[bool] = False
    model_calls: ClassVar[int] = 0

    def __init__(
        self,
        seeds: Sequence[int],
        sizes: Sequence[int],
        activation: str,
        parameters: torch.Tensor,
        options: dict[str, Any] | None = None,
        mode: str | None = None,
    ):
        self.seeds, self.sizes, self.activation = list(seeds), tuple(sizes), activation
        self.network = StackedMLP(sizes, activation)
        self.parameters, self.options = parameters.detach(), dict(options or {})
        self.mode = mode or self.modes[0]
        self._layers = self.network.layers(self.parameters)

    def in_mode(self, mode: str) -> Self:
        """The same policy acting in another of its modes.

        Raises:
            ValueError: it has no such mode.
        """
        if mode not in self.modes:
            raise ValueError(f"{type(self).__name__} acts {' or '.join(self.modes)}, not '{mode}'.")
        return type(self)(self.seeds, self.sizes, self.activation, self.parameters, self.options, mode)

    def of(self, seeds: Sequence[int]) -> Self:
        """The policy of some of its seeds, in the order asked for.

        Raises:
            ValueError: it holds no such seed.
        """
        if unknown := [seed for seed in seeds if seed not in self.seeds]:
            raise ValueError(f"The policy holds the seeds {self.seeds}, not {unknown}.")
        parameters = self.parameters[[self.seeds.index(seed) for seed in seeds]]
        return type(self)(seeds, self.sizes, self.activation, parameters, self.options, self.mode)

    def on(self, device: str) -> Self:
        """The same policy with its network on a device of torch; another device may give other last bits."""
        parameters = self.parameters.to(device)
        return type(self)(self.seeds, self.sizes, self.activation, parameters, self.options, self.mode)

    @classmethod
    def concatenate(cls, policies: Sequence[Self]) -> Self:
        """Blocks of seeds as one.

        Raises:
            ValueError: they differ in more than seeds and parameters, or share a seed.
        """
        shapes = {(part.sizes, part.activation, str(part.options), part.mode) for part in policies}
        seeds = [seed for part in policies for seed in part.seeds]
        if len(shapes) != 1 or len(set(seeds)) != len(seeds):
            raise ValueError(f"These blocks are no parts of one policy: seeds {seeds}, shapes {shapes}.")
        first, parameters = policies[0], torch.cat([part.parameters for part in policies])
        return cls(seeds, first.sizes, first.activation, parameters, first.options, first.mode)

    @torch.inference_mode()
    def outputs(self, observation: np.ndarray) -> torch.Tensor:
        """The network's outputs [S, L, actions] for observations [S, L, *observation_shape].

        Lanes are padded to a multiple of 8 (and a single seed is computed twice, see ``networks.affine``),
        so that a row's bits depend on the number of neither.
        """
        seeds, lanes = observation.shape[:2]
        x = torch.from_numpy(np.ascontiguousarray(observation, np.float32)).reshape(seeds, lanes, -1)
        x = torch.nn.functional.pad(x, (0, 0, 0, -lanes % LANE_MULTIPLE)).to(self.parameters.device)
        return self.network(self._layers, x)[:, :lanes].cpu()

    def save(self, path: str | Path) -> None:
        """Write one safetensors file of ``contents``."""
        write_arrays(path, *self.contents())

    def contents(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays ``seed-7/<network>.<layer>.weight`` [in, out] and ``.bias`` [out], and metadata."""
        arrays = {}
        for layer, (weight, bias) in enumerate(self._layers):
            for row, seed in enumerate(self.seeds):
                prefix = f"seed-{seed}/{self.network_name}.{layer}"
                arrays[f"{prefix}.weight"] = weight[row].numpy()
                arrays[f"{prefix}.bias"] = bias[row, 0].numpy()
        metadata = {"policy": type(self).__name__, "seeds": self.seeds, "sizes": self.sizes}
        return arrays, metadata | {"activation": self.activation, "options": self.options}

    @classmethod
    def load(cls, path: str | Path, dynamics: Dynamics) -> Self:
        """Read what ``save`` wrote.

        Raises:
            ArtifactError: the file holds another policy, lacks an array, or was made for another environment.
        """
        arrays, metadata = read_arrays(path)
        if metadata.get("policy") != cls.__name__:
            raise ArtifactError(f"{path} holds the policy {metadata.get('policy')}, not {cls.__name__}.")
        sizes, spec = metadata["sizes"], dynamics.spec
        if (sizes[0], sizes[-1]) != (math.prod(spec.observation_shape), spec.actions):
            raise ArtifactError(
                f"{path} was trained on {sizes[0]} observed numbers and {sizes[-1]} actions; this "
                f"environment has {math.prod(spec.observation_shape)} and {spec.actions}. "
                f"Evaluate it where it was trained."
            )
        network = StackedMLP(sizes, metadata["activation"])
        parameters = torch.zeros(len(metadata["seeds"]), network.size)
        for layer, (weight, bias) in enumerate(network.layers(parameters)):
            for row, seed in enumerate(metadata["seeds"]):
                for kind, view in (("weight", weight[row]), ("bias", bias[row, 0])):
                    key = f"seed-{seed}/{cls.network_name}.{layer}.{kind}"
                    if key not in arrays or arrays[key].shape != tuple(view.shape):
                        raise ArtifactError(
                            f"{path} lacks {key} of shape {list(view.shape)}. Train it again."
                        )
                    view.copy_(torch.from_numpy(arrays[key]))
        return cls(metadata["seeds"], sizes, metadata["activation"], parameters, metadata["options"])
