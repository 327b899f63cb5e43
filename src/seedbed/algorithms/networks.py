"""Stacked networks: S independent multi-layer perceptrons as one, over a flat parameter matrix [S, P].

Bits of a seed must not depend on its neighbours (block exactness). Each of these measures was needed in an
experiment: rows padded to 16 floats, layers aligned to 16 floats, and no product of a single matrix with a
single column or row, which MKL hands to another kernel than a batch of them. The CPU must also be held to
one code path (``MKL_CBWR`` in ``seedbed/__init__.py``) and one thread.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch

from seedbed.algorithms.devices import CPU
from seedbed.seeding import Purpose, stream

ALIGNMENT = 16
NARROW = 8
Layers = list[tuple[torch.Tensor, torch.Tensor]]
"""Weights [S, in, out] and biases [S, 1, out] per layer: views of a flat matrix."""


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def affine(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """x @ weight + bias per seed: [S, B, in], [S, in, out], [S, 1, out] -> [S, B, out].

    On a CPU one output is fastest as dot products, a few outputs as the transposed product.
    """
    if weight.shape[2] == 1:
        return torch.linalg.vecdot(x, weight.transpose(1, 2)).unsqueeze(2) + bias
    single = x.shape[0] == x.shape[1] == 1
    if single:
        x, weight, bias = (tensor.expand(2, -1, -1) for tensor in (x, weight, bias))
    if weight.shape[2] <= NARROW:
        out = torch.baddbmm(
            bias.transpose(1, 2), weight.transpose(1, 2).contiguous(), x.transpose(1, 2)
        ).transpose(1, 2)
    else:
        out = torch.baddbmm(bias, x, weight)
    return out[:1] if single else out


class _FastTanh(torch.autograd.Function):
    """tanh(x) = 2 sigmoid(2x) - 1: on a CPU torch's sigmoid is several times faster than its tanh."""

    @staticmethod
    def forward(ctx, x):
        y = (x * 2).sigmoid_().mul_(2).sub_(1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        return torch.ops.aten.tanh_backward(gradient, ctx.saved_tensors[0])


ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": torch.relu,
    "tanh": _FastTanh.apply,
    "silu": torch.nn.functional.silu,
}


def check_widths(hidden: Sequence[int], activation: str) -> None:
    """Refuse hidden widths with which a seed's bits would depend on the seeds beside it.

    torch rounds sigmoid, tanh and silu otherwise at the end of an array than inside, where a width is no
    multiple of the vector's.

    Raises:
        ValueError: names the widths.
    """
    if activation != "relu" and any(width % ALIGNMENT for width in hidden):
        raise ValueError(
            f"hidden {tuple(hidden)}: with {activation} the widths must be multiples of {ALIGNMENT}, "
            f"or a seed's last bits would depend on the seeds beside it."
        )


class StackedMLP:
    """The shape of S perceptrons of equal size; it holds no parameters.

    Args:
        sizes: widths from input to output.
        activation: "relu", "tanh" or "silu" between layers.
        output_gain: gain of the last layer's orthogonal initialisation; hidden layers take sqrt 2.
    """

    def __init__(self, sizes: Sequence[int], activation: str = "relu", output_gain: float = 1.0):
        self.sizes = tuple(sizes)
        self.activation = ACTIVATIONS[activation]
        self.gains = [math.sqrt(2)] * (len(sizes) - 2) + [output_gain]
        self.slots, offset = [], 0
        for inputs, outputs in zip(self.sizes[:-1], self.sizes[1:], strict=True):
            self.slots.append((offset, offset + _aligned(inputs * outputs), inputs, outputs))
            offset = self.slots[-1][1] + _aligned(outputs)
        self.size = offset
        """Floats per seed, P."""

    def initialise(self, row: torch.Tensor, generator: np.random.Generator) -> None:
        """Fill one seed's parameters [P]: orthogonal weights (Saxe et al. 2014), zero biases."""
        row.zero_()
        for (weight, _, inputs, outputs), gain in zip(self.slots, self.gains, strict=True):
            normal = generator.standard_normal((max(inputs, outputs), min(inputs, outputs)))
            q, r = np.linalg.qr(normal)
            q *= np.sign(np.diagonal(r))
            q = q if inputs >= outputs else q.T
            row[weight : weight + inputs * outputs] = torch.from_numpy((gain * q).astype(np.float32)).reshape(
                -1
            )

    def layers(self, flat: torch.Tensor) -> Layers:
        """Views of parameters [S, P] as weights and biases."""
        seeds = flat.shape[0]
        return [
            (
                flat[:, weight : weight + inputs * outputs].view(seeds, inputs, outputs),
                flat[:, bias : bias + outputs].view(seeds, 1, outputs),
            )
            for weight, bias, inputs, outputs in self.slots
        ]

    def hidden(self, layers: Layers, x: torch.Tensor) -> torch.Tensor:
        """[S, B, in] -> activations of the last hidden layer [S, B, hidden]."""
        for weight, bias in layers[:-1]:
            x = self.activation(affine(x, weight, bias))
        return x

    def __call__(self, layers: Layers, x: torch.Tensor) -> torch.Tensor:
        """[S, B, in] -> [S, B, out]."""
        return affine(self.hidden(layers, x), *layers[-1])


class Learner:
    """Parameters of several networks, their gradients and Adam moments: four matrices [S, P].

    A loss is the mean over a seed's batch, summed over seeds, so that gradients separate exactly.

    Args:
        networks: name -> network; each seed's row holds them one after the other.
        seeds: ``members`` rows each; parameters are drawn from the seed's INITIALISATION stream.
        learning_rate, epsilon: Adam (Kingma and Ba 2015).
        max_gradient_norm: global norm at which a row's gradient is clipped; None for never.
        weight_decay: squared parameters, halved, times this are added to the loss.
        members: rows per seed.
        part: tells several learners of one seed apart; their parameters come from streams of their own.
        device: where the matrices lie; initial parameters are drawn on the CPU, so that seeds begin alike.
    """

    def __init__(
        self,
        networks: dict[str, StackedMLP],
        seeds: Sequence[int],
        learning_rate: float,
        epsilon: float = 1e-8,
        max_gradient_norm: float | None = None,
        weight_decay: float = 0.0,
        members: int = 1,
        part: int | None = None,
        device: torch.device = CPU,
    ):
        self.networks, self._weight_decay, self.device = networks, weight_decay, device
        self.learning_rate, self.epsilon, self.max_gradient_norm = learning_rate, epsilon, max_gradient_norm
        size = sum(network.size for network in networks.values())
        matrices = torch.zeros(4, len(seeds) * members, size)
        generators = [stream(Purpose.INITIALISATION, seed, part) for seed in seeds]
        for number, row in enumerate(matrices[0]):
            generator, offset = generators[number // members], 0
            for network in networks.values():
                network.initialise(row[offset : offset + network.size], generator)
                offset += network.size
        self.parameters, self.gradients, self._mean, self._variance = matrices.to(device)
        self._steps = torch.zeros((), device=device)
        self.layers = {
            name: [
                tuple(view.detach().requires_grad_() for view in layer)
                for layer in self.layers_of(name, self.parameters)
            ]
            for name in networks
        }
        self._leaves = [view for layers in self.layers.values() for layer in layers for view in layer]
        self._slopes = [
            view for name in networks for layer in self.layers_of(name, self.gradients) for view in layer
        ]

    def layers_of(self, name: str, flat: torch.Tensor) -> Layers:
        """The layers of one network in another matrix [S, P] of the same layout, such as a target's."""
        offset = 0
        for other, network in self.networks.items():
            if other == name:
                return network.layers(flat[:, offset : offset + network.size])
            offset += network.size
        raise KeyError(name)

    def step(self, loss: torch.Tensor) -> None:
        """One Adam step down a scalar loss, gradients clipped per seed."""
        slopes = torch.autograd.grad(loss, self._leaves)
        with torch.no_grad():
            torch._foreach_copy_(self._slopes, slopes)
        self._descend()

    def accumulate(self, loss: torch.Tensor) -> None:
        """Add the gradients of a scalar loss to those that ``descend`` will follow."""
        slopes = torch.autograd.grad(loss, self._leaves)
        with torch.no_grad():
            torch._foreach_add_(self._slopes, slopes)

    def descend(self) -> None:
        """One Adam step down the accumulated gradients, clipped per seed; then there are none."""
        self._descend()
        self.gradients.zero_()

    @torch.no_grad()
    def _descend(self) -> None:
        if self.max_gradient_norm is not None:
            norm = torch.linalg.vector_norm(self.gradients, dim=1, keepdim=True)
            self.gradients.mul_((self.max_gradient_norm / (norm + 1e-6)).clamp_(max=1.0))
        self._steps += 1
        torch._fused_adam_(
            [self.parameters], [self.gradients], [self._mean], [self._variance], [], [self._steps],
            lr=self.learning_rate, beta1=0.9, beta2=0.999, weight_decay=self._weight_decay, eps=self.epsilon,
            amsgrad=False, maximize=False,
        )  # fmt: skip
