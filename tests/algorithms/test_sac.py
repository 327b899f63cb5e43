"""Discrete SAC: targets by hand, exact gradients, a target entropy that is reached, masks, exact seeds."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from learners import Quiet
from scipy import stats

from seedbed.algorithms.categorical_policy import CategoricalPolicy
from seedbed.algorithms.replay import Batch
from seedbed.algorithms.sac import SAC, SoftActorCritic, Temperature, soft_value
from seedbed.algorithms.uniform_random import UniformRandomPolicy
from seedbed.environments.base import Spec
from seedbed.environments.interview import MockInterview
from seedbed.environments.lanes import DynamicsLanes
from seedbed.evaluation import evaluate
from seedbed.seeding import Purpose
from seedbed.training import train


def spec_of(inputs, actions):
    return Spec(np.zeros(inputs, np.float32), np.ones(inputs, np.float32), actions, 10, 0, 0, masked=True)


def batch_of(seeds=1, size=16, inputs=3, actions=2, masked=False):
    generator = torch.Generator().manual_seed(0)
    random = lambda *shape: torch.rand(shape, generator=generator)  # noqa: E731
    mask = random(seeds, size, actions) < 0.6
    mask[..., 0] = True
    return Batch(
        observation=random(seeds, size, inputs),
        action=torch.zeros(seeds, size, dtype=torch.int64),
        reward=random(seeds, size),
        next_observation=random(seeds, size, inputs),
        next_mask=mask if masked else None,
        discount=torch.full((seeds, size), 0.9),
        weight=torch.ones(seeds, size),
        index=np.zeros((seeds, size), np.int64),
        mask=mask if masked else None,
    )


def test_the_soft_value_of_two_actions_by_hand():
    p, q, temperature = np.array([0.25, 0.75]), np.array([2.0, -1.0]), 0.5
    value, entropy = soft_value(
        torch.from_numpy(np.log(p))[None], torch.from_numpy(q)[None], torch.tensor([temperature])
    )
    by_hand = 0.25 * (2.0 - 0.5 * np.log(0.25)) + 0.75 * (-1.0 - 0.5 * np.log(0.75))
    np.testing.assert_allclose(value, [by_hand], rtol=1e-12)
    np.testing.assert_allclose(entropy, [stats.entropy(p)], rtol=1e-12)


def test_the_target_equals_the_formula_for_two_actions():
    learner = SoftActorCritic(SAC(hidden=(16,), reward_scale=0.5, temperature=0.3), spec_of(3, 2), [4])
    batch = batch_of()
    batch = batch._replace(discount=torch.where(torch.arange(16) % 4 == 0, 0.0, 0.9)[None])
    learner._target.add_(
        0.05 * torch.randn(learner._target.shape, generator=torch.Generator().manual_seed(1))
    )

    def outputs(network, layers):
        return network(layers, batch.next_observation).detach().numpy()[0].astype(np.float64)

    p = np.exp(logits := outputs(learner.actor, learner.learner.layers["policy"]))
    p /= np.exp(logits).sum(-1, keepdims=True)
    q = np.minimum(*(outputs(learner.critic, layers) for layers in learner._targets))
    value = p[:, 0] * (q[:, 0] - 0.3 * np.log(p[:, 0])) + p[:, 1] * (q[:, 1] - 0.3 * np.log(p[:, 1]))
    expected = 0.5 * batch.reward.numpy()[0] + batch.discount.numpy()[0] * value
    np.testing.assert_allclose(learner.goal(batch)[0], expected, rtol=1e-5)


def test_the_actors_gradient_is_the_derivative_and_vanishes_at_the_best_policy():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(4, 7, generator=generator, dtype=torch.float64, requires_grad=True)
    q = torch.randn(4, 7, generator=generator, dtype=torch.float64)
    alpha = torch.tensor([0.3, 1.0, 2.0, 0.1], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda x: soft_value(x, q, alpha)[0], (logits,))
    best = (q / alpha[:, None]).requires_grad_()
    value, _ = soft_value(best, q, alpha)
    (slope,) = torch.autograd.grad(value.sum(), best)
    assert slope.abs().max() < 1e-12
    torch.testing.assert_close(value, alpha * torch.logsumexp(q / alpha[:, None], -1))


@given(st.integers(0, 2**32 - 1))
def test_a_forbidden_action_adds_nothing_whatever_its_value(seed):
    generator = np.random.default_rng(seed)
    allowed = generator.random(9) < 0.5
    allowed[generator.integers(9)] = True
    logits, q = generator.normal(size=(2, 9))
    lured = np.where(allowed, q, 1e6)
    masked = torch.from_numpy(np.where(allowed, logits, -np.inf))[None].requires_grad_()
    one = torch.ones(1, dtype=torch.float64)
    value, entropy = soft_value(masked, torch.from_numpy(lured)[None], one)
    few = soft_value(torch.from_numpy(logits[allowed])[None], torch.from_numpy(q[allowed])[None], one)
    np.testing.assert_allclose([value.item(), entropy.item()], [few[0].item(), few[1].item()], atol=1e-9)
    (slope,) = torch.autograd.grad(value.sum(), masked)
    assert (slope[0, ~torch.from_numpy(allowed)] == 0).all()
    assert torch.isfinite(slope).all()


@pytest.mark.parametrize("masked", [False, True])
def test_the_entropy_reaches_its_target(masked):
    settings = SAC(
        hidden=(16,), entropy_share=0.6, learning_rate=1e-2, temperature=3.0, temperature_rate=3e-2, gamma=0.0
    )
    learner = SoftActorCritic(settings, spec_of(3, 6), [1, 2])
    batch = batch_of(seeds=2, size=32, actions=6, masked=masked)
    generator = torch.Generator().manual_seed(2)
    for _ in range(500):  # rewards that differ between actions, so that entropy has its price
        action = torch.randint(0, 6, (2, 32), generator=generator)
        learner.update(batch._replace(action=action, reward=action.float() % 3, discount=torch.zeros(2, 32)))
    count = np.full((2, 32), 6) if batch.mask is None else batch.mask.sum(-1).numpy()
    wanted = 0.6 * np.log(count).mean(1)
    np.testing.assert_allclose(learner.diagnostics["entropy"], wanted, atol=0.05)
    assert (learner.temperature.value < 3.0).all()


def test_the_temperature_moves_towards_the_target_and_never_below_zero():
    temperature = Temperature(2, 0.2, 0.1)
    for _ in range(200):
        temperature.step(np.array([1.0, -1.0]))
    assert 0 < temperature.value[0] < 1e-6 < 0.2 < temperature.value[1]
    still = Temperature(1, 0.2, 0.0)
    still.step(np.ones(1))
    np.testing.assert_allclose(still.value, 0.2, rtol=1e-15)


def run(preset, seeds, budget, **changes):
    """A trained policy, its parameters by seed, and the recorder."""
    algorithm = SAC(**{"learning_starts": 100, "hidden": (32,), "batch_size": 64} | changes)
    recorder = Quiet(0, budget)
    lanes = DynamicsLanes(MockInterview(preset), Purpose.TRAINING, seeds, algorithm.lanes)
    policy = algorithm.train(lanes, seeds, budget, recorder)
    return dict(zip(seeds, policy.parameters.numpy(), strict=True)), recorder, policy


BLOCKS = [[1007], [1007, 1001], [1002, 1007, 1001], [1001, 1002, 1003, 1004, 1007]]


@pytest.mark.parametrize(
    ("preset", "budget", "changes"),
    [
        ("tiny", 200, {}),
        ("tiny", 200, {"lanes": 4, "steps_per_update": 4, "hidden": (48,), "batch_size": 25}),
        ("as_specified", 150, {"activation": "silu", "max_gradient_norm": 1.0}),
        pytest.param("tiny", 6000, {"hidden": (128, 128)}, marks=pytest.mark.slow),
        pytest.param("default", 5000, {"lanes": 2, "steps_per_update": 2}, marks=pytest.mark.slow),
    ],
)
def test_a_seed_does_not_depend_on_its_block(preset, budget, changes):
    results = [run(preset, block, budget, **changes)[0][1007] for block in BLOCKS]
    for block, parameters in zip(BLOCKS, results, strict=True):
        different = np.count_nonzero(parameters != results[0])
        assert different == 0, f"{different} parameters differ in the block {block}"


def test_several_updates_per_step_and_exactly_the_budget():
    _, recorder, policy = run("tiny", [1001, 1002], 350, updates=3, hidden=(16,), batch_size=16)
    assert recorder.steps == 350
    assert [steps for steps, _ in recorder.evaluated] == [0, 350]
    np.testing.assert_array_equal(recorder.evaluated[1][1].parameters, policy.parameters)
    assert [steps for steps, _ in recorder.logged] == [100 + 250 // 3, 100 + 500 // 3, 349]
    assert {values.shape for _, scalars in recorder.logged for values in scalars.values()} == {(2,)}


def test_forbidden_actions_are_never_taken():
    taken = []

    class Watched(MockInterview):
        def step(self, state, action, noise):
            if np.ndim(action):
                taken.append(np.take_along_axis(self.action_mask(state), action[..., None], -1))
            return super().step(state, action, noise)

    train(SAC(hidden=(16,), learning_starts=50, batch_size=16), Watched("tiny"), [1001], 200, None)
    assert np.concatenate(taken).all()


def test_a_policy_survives_its_file(tmp_path):
    _, _, policy = run("tiny", [1001, 1002], 200)
    policy.save(tmp_path / "policy.safetensors")
    loaded = CategoricalPolicy.load(tmp_path / "policy.safetensors", MockInterview("tiny"))
    np.testing.assert_array_equal(loaded.parameters, policy.parameters)


@pytest.mark.parametrize(
    ("changes", "budget", "message"),
    [({"lanes": 2, "steps_per_update": 2}, 1001, "multiple of lanes"), ({}, 500, "nothing would be learned")],
)
def test_a_budget_that_cannot_be_met_is_refused(changes, budget, message):
    algorithm = SAC(**changes)
    lanes = DynamicsLanes(MockInterview("tiny"), Purpose.TRAINING, [1], algorithm.lanes)
    with pytest.raises(ValueError, match=message):
        algorithm.train(lanes, [1], budget, Quiet())


@pytest.mark.parametrize(
    "changes",
    [
        {"gamma": 1.1},
        {"lanes": 3, "steps_per_update": 4},
        {"hidden": ()},
        {"entropy_share": 1.0},
        {"temperature": 0.0},
        {"unknown": 1},
        {"activation": "silu", "hidden": (100,)},
    ],
)
def test_hyper_parameters_out_of_range_are_refused(changes):
    with pytest.raises(ValueError):
        SAC(**changes)


def seed_means(policy, dynamics, episodes=100):
    """Mean return of each seed's tuning episodes."""
    table = evaluate(policy, dynamics, Purpose.TUNING, episodes, lanes=episodes).episodes
    return table.groupby("seed")["return"].mean().to_numpy()


def test_it_learns():
    seeds, dynamics = [1000, 1001, 1002, 1003], MockInterview("tiny")
    chance = seed_means(UniformRandomPolicy(seeds, dynamics), dynamics)
    algorithm = SAC(hidden=(64,), batch_size=64)
    policy = train(algorithm, dynamics, seeds, 2000, None).policy
    gained = seed_means(policy.in_mode("sampled"), dynamics) - chance
    assert gained.mean() - stats.t.ppf(0.975, 3) * stats.sem(gained) > 2.0
