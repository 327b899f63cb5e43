"""MBPO: imagined steps are those of the model and the policy, ends included; exact seeds; learning."""

import numpy as np
import pytest
import torch
from scipy import stats

from seedbed.algorithms.ensemble import Ensemble
from seedbed.algorithms.mbpo import MBPO, ImaginedSteps, joined
from seedbed.algorithms.mbpo_policy import MBPOPolicy
from seedbed.algorithms.replay import Replay
from seedbed.algorithms.sac import SoftActorCritic
from seedbed.algorithms.uniform_random import UniformRandomPolicy
from seedbed.environments.cart_pole import CartPole
from seedbed.environments.interview import MockInterview
from seedbed.environments.lanes import DynamicsLanes
from seedbed.evaluation import evaluate
from seedbed.seeding import Purpose
from seedbed.training import train

SMALL = {
    "learning_starts": 100,
    "fit_every": 50,
    "hidden": (32,),
    "batch_size": 32,
    "rollouts": 20,
    "rollout_horizon": (2, 3),
    "model": {"members": 3, "elites": 2, "hidden": (32,), "rounds": 2, "batches": 10, "batch_size": 32},
}


def imagined(dynamics, steps=120, horizon=3, **changes):
    """Imagined steps from a model of real random ones, the settings and the real steps' replay."""
    settings, seeds = MBPO(**(SMALL | {"model_buffer": 60} | changes)), [1, 2]
    lanes = DynamicsLanes(dynamics, Purpose.TRAINING, seeds, 1)
    ensemble = Ensemble(settings.model, dynamics.spec, dynamics.knowledge, seeds, 1, steps)
    replay = Replay(dynamics.spec, 2, 1, steps, gamma=0.9, keep_masks=True)
    learner = SoftActorCritic(settings, dynamics.spec, seeds)
    generator = np.random.default_rng(0)
    for _ in range(steps):
        observation, mask = lanes.observation, lanes.mask
        action = learner.draw(observation, mask, generator.random((2, 1), np.float32))
        step = lanes.step(action)
        replay.add(observation, action, step, mask)
        ensemble.add(observation, action, step)
    buffer = ImaginedSteps(settings, dynamics.spec, dynamics.knowledge, seeds)
    buffer.add(ensemble.fit(), learner, replay, horizon)
    return buffer, settings, replay, learner


def test_branches_start_in_real_states_and_go_on_from_imagined_ones():
    buffer, _, replay, _ = imagined(MockInterview("tiny"))
    assert buffer._added == buffer.model_calls == 60
    real = {row.tobytes() for row in replay._observation[0].reshape(-1, 12)}
    first, later = buffer._observation[0, :20], buffer._observation[0, 20:]
    assert {row.tobytes() for row in first} <= real
    went_on = buffer._terminated[0, :40] == 0
    np.testing.assert_array_equal(later[went_on], buffer._following[0, :40][went_on])
    assert {row.tobytes() for row in later[~went_on]} <= real
    assert (buffer._following[0, :20] != first).any(1).all()


def test_imagined_ends_and_rewards_are_those_of_the_imagined_states():
    dynamics = MockInterview("tiny", mastery_threshold=0.4)
    buffer, _, _, _ = imagined(dynamics, horizon=3)
    ended = buffer._terminated[0] == 1
    assert 0 < ended.sum() < 60
    mastery, frustration = buffer._following[0, :, :4].mean(1), buffer._following[0, :, 4]
    np.testing.assert_array_equal(ended, (mastery >= 0.4) | (frustration >= 0.945))
    batch = buffer.sample(500)
    np.testing.assert_array_equal(np.unique(batch.discount), np.array([0, 0.9], np.float32))


def test_masks_hold_in_imagined_states_too():
    buffer, _, _, _ = imagined(MockInterview("tiny"))
    batch = buffer.sample(200)
    assert batch.mask.gather(2, batch.action[..., None]).all()
    assert not batch.mask.all()
    assert batch.mask.any(-1).all()
    assert batch.next_mask.any(-1).all()


def test_the_ring_keeps_the_latest_steps():
    buffer, *_ = imagined(MockInterview("tiny"), horizon=3, model_buffer=40)
    assert buffer._action.shape == (2, 40)
    assert buffer._added == 60
    np.testing.assert_array_equal(np.sort(buffer.sample(4000).index[0])[[0, -1]], [0, 39])


def test_batches_are_joined_part_by_part():
    buffer, _, replay, _ = imagined(MockInterview("tiny"))
    real, other = replay.sample(np.random.default_rng(0).random((2, 5))), buffer.sample(7)
    both = joined(real, other)
    for name in ("observation", "action", "reward", "next_mask", "mask", "discount", "weight"):
        assert torch.equal(getattr(both, name)[:, :5], getattr(real, name))
        assert torch.equal(getattr(both, name)[:, 5:], getattr(other, name))


def run(dynamics, seeds, budget=180, **changes):
    """A trained policy's parameters by seed, and the run."""
    result = train(MBPO(**(SMALL | changes)), dynamics, seeds, budget, None)
    return dict(zip(seeds, result.policy.parameters.numpy(), strict=True)), result


@pytest.mark.parametrize(
    ("environment", "budget", "changes"),
    [
        ("tiny", 140, {}),
        ("tiny", 140, {"lanes": 2, "steps_per_update": 2, "updates": 8, "rollouts": 18}),
        ("CartPole", 130, {"activation": "silu"}),
        pytest.param("default", 1000, {"hidden": (64, 64)}, marks=pytest.mark.slow),
    ],
)
def test_a_seed_does_not_depend_on_its_block(environment, budget, changes):
    dynamics = CartPole() if environment == "CartPole" else MockInterview(environment)
    results = [run(dynamics, block, budget, **changes)[0][7] for block in ([7], [1, 7], [7, 1, 2, 3])]
    assert np.isfinite(results[0]).all()
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_what_was_learned_and_computed_is_recorded():
    _, result = run(MockInterview("tiny"), [7], 200)
    names = {"model_loss", "validation_loss", "validation_error", "disagreement"}
    names |= {"loss", "value", "entropy", "temperature", "model_calls", "event_brier"}
    assert set(result.diagnostics.name) == names
    assert 11 * 20 * 2 <= result.model_calls <= 11 * 20 * 3  # roll-outs at 100, 110, ..., 200
    assert result.policy.model_calls == 0  # it acts without the model


def test_a_policy_survives_its_file(tmp_path):
    _, result = run(MockInterview("tiny"), [7, 1], 120)
    result.policy.save(tmp_path / "policy.safetensors")
    loaded = MBPOPolicy.load(tmp_path / "policy.safetensors", MockInterview("tiny"))
    assert torch.equal(loaded.parameters, result.policy.parameters)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"updates": 5}, "at most 4"),
        ({"rollouts": 501}, "multiple of model.elites"),
        ({"rollout_horizon": (3, 2)}, "must rise"),
        ({"real_share": 1.0}, "less than 1"),
        ({"real_share": 0.01, "batch_size": 16}, "lacks real"),
        ({"lanes": 3, "steps_per_update": 3}, "multiple of lanes"),
        ({"lanes": 2}, "multiple of lanes"),
        ({"entropy_share": 1.0}, "less than 1"),
        ({"unknown": 1}, "nexpected"),
    ],
)
def test_hyper_parameters_out_of_range_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        MBPO(**changes)


def test_an_environment_that_hides_what_is_allowed_is_refused():
    hiding = MockInterview("tiny", extended_observation=False)
    with pytest.raises(ValueError, match="which actions are allowed"):
        train(MBPO(**SMALL), hiding, [1], 200, None)


@pytest.mark.slow
def test_it_learns():
    seeds, dynamics = [1000, 1001, 1002], MockInterview("tiny")
    policy = train(MBPO(hidden=(64,), batch_size=64), dynamics, seeds, 1500, None).policy
    learned, chance = (
        evaluate(p, dynamics, Purpose.TUNING, 100, lanes=100).episodes.groupby("seed")["return"].mean()
        for p in (policy.in_mode("sampled"), UniformRandomPolicy(seeds, dynamics))
    )
    gained = (learned - chance).to_numpy()
    assert gained.mean() - stats.t.ppf(0.975, 2) * stats.sem(gained) > 2.0
