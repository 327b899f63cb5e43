"""Stacked networks: each row is an ordinary network, learns like one, and does not know its neighbours."""

import numpy as np
import pytest
import torch
from learners import ordinary

import seedbed  # noqa: F401  (sets MKL_CBWR before torch multiplies anything)
from seedbed.algorithms.networks import ACTIVATIONS, Learner, StackedMLP, affine

PEERS = {"relu": torch.nn.ReLU, "tanh": torch.nn.Tanh, "silu": torch.nn.SiLU}


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
@pytest.mark.parametrize("outputs", [1, 2, 30])
def test_each_row_learns_like_an_ordinary_network(activation, outputs):
    seeds, batch = [3, 8, 5], 16
    network = StackedMLP((6, 24, 20, outputs), activation)
    learner = Learner({"net": network}, seeds, 1e-2, 1e-5, max_gradient_norm=0.7)
    peers = [ordinary(learner.layers["net"], row, PEERS[activation]) for row in range(3)]
    optimisers = [torch.optim.Adam(peer.parameters(), 1e-2, eps=1e-5) for peer in peers]
    generator = torch.Generator().manual_seed(0)
    for _ in range(12):
        x = torch.randn(3, batch, 6, generator=generator)
        y = torch.randn(3, batch, outputs, generator=generator)
        out = network(learner.layers["net"], x)
        learner.step((out - y).square().mean((1, 2)).sum())
        for row, (peer, optimiser) in enumerate(zip(peers, optimisers, strict=True)):
            torch.testing.assert_close(out[row], peer(x[row]), atol=2e-5, rtol=1e-4)
            optimiser.zero_grad()
            (peer(x[row]) - y[row]).square().mean().backward()
            torch.nn.utils.clip_grad_norm_(peer.parameters(), 0.7)
            optimiser.step()


def test_initial_weights_are_orthogonal_scaled_by_the_gains():
    network = StackedMLP((12, 32, 32, 5), output_gain=0.01)
    learner = Learner({"net": network}, [0, 1], 1e-3)
    gains = [2**0.5, 2**0.5, 0.01]
    for (weight, bias), gain in zip(learner.layers["net"], gains, strict=True):
        for matrix in weight.detach():
            matrix = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
            torch.testing.assert_close(matrix @ matrix.T, gain**2 * torch.eye(len(matrix)), atol=1e-5, rtol=0)
        assert (bias == 0).all()
    assert not torch.equal(learner.parameters[0], learner.parameters[1])


def test_layers_are_aligned_views_of_the_flat_matrix():
    networks = {"a": StackedMLP((5, 7, 3)), "b": StackedMLP((5, 9, 1))}
    learner = Learner(networks, [0, 1, 2], 1e-3)
    assert learner.parameters.shape[1] % 16 == 0
    for name in networks:
        for layer in learner.layers[name]:
            for view in layer:
                assert view.untyped_storage().data_ptr() == learner.parameters.untyped_storage().data_ptr()
                assert (view.storage_offset() - learner.parameters.storage_offset()) % 16 == 0
    with pytest.raises(KeyError):
        learner.layers_of("c", learner.parameters)


def test_fast_tanh_is_tanh():
    x = torch.linspace(-12, 12, 4001, requires_grad=True)
    y = ACTIVATIONS["tanh"](x)
    torch.testing.assert_close(y, torch.tanh(x), atol=3e-7, rtol=0)
    (slope,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(slope, 1 - torch.tanh(x).detach() ** 2, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    "inputs, outputs", [(4, 64), (32, 128), (128, 1), (64, 2), (128, 8), (128, 36), (128, 270)]
)
@pytest.mark.parametrize("batch", [1, 8, 50, 125])
def test_a_layers_bits_do_not_depend_on_the_block(inputs, outputs, batch):
    generator = torch.Generator().manual_seed(7)
    normal = lambda *shape: torch.randn(shape, generator=generator)  # noqa: E731
    network = StackedMLP((inputs, outputs))
    flat, x, slope = normal(5, network.size), normal(5, batch, inputs), normal(5, batch, outputs)

    def run(rows):
        leaves = [x[rows].clone(), *(view.clone() for view in network.layers(flat[rows].clone())[0])]
        leaves = [leaf.requires_grad_() for leaf in leaves]
        out = affine(*leaves)
        return out, *torch.autograd.grad(out, leaves, slope[rows])

    everything = run([0, 1, 2, 3, 4])
    for rows in ([0], [2], [4], [0, 1], [3, 4], [4, 1, 2]):
        for part, whole in zip(run(rows), everything, strict=True):
            assert torch.equal(part, whole[rows])


@pytest.mark.parametrize("outputs", [1, 2, 36, 270])
def test_bits_do_not_depend_on_the_number_of_lanes_in_eights(outputs):
    network = StackedMLP((32, 128, 128, outputs))
    learner = Learner({"net": network}, [0, 1], 1e-3)
    x = torch.from_numpy(np.random.default_rng(0).random((2, 200, 32), np.float32))
    with torch.inference_mode():
        whole = network(learner.layers["net"], x)
        for lanes in (8, 16, 24, 40, 96, 136):
            assert torch.equal(network(learner.layers["net"], x[:, :lanes]), whole[:, :lanes])


@pytest.mark.parametrize("name", ["ppo", "dqn", "a2c", "sac", "mbpo"])
def test_widths_that_would_cost_exactness_are_refused(name):
    from seedbed.artifacts import SeedbedError
    from seedbed.registry import ALGORITHMS, make

    make(name, {"hidden": [17], "activation": "relu"}, ALGORITHMS, "algorithm")
    with pytest.raises(SeedbedError, match="multiples of 16"):
        make(name, {"hidden": [16, 17], "activation": "tanh"}, ALGORITHMS, "algorithm")
