"""The ensemble model: known systems are recovered, members differ, units do not matter, seeds are exact."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from seedbed.algorithms.ensemble import Ensemble, EnsembleNetwork, EnsembleSettings
from seedbed.algorithms.model_kernel import advance, moments
from seedbed.algorithms.world_model import Imagination, ModelShape, encode, variance
from seedbed.environments.base import Spec
from seedbed.environments.interview import MockInterview

SMALL = {"members": 3, "elites": 2, "hidden": (32,), "batch_size": 64}
DRIFT = np.array([[-0.2, 0.1], [0.0, -0.3]])
PUSH = np.array([[0.5, 0.0], [0.0, -0.5], [0.0, 0.0]])
NOISE = np.array([0.1, 0.3])


def spec_of(inputs=2, actions=3):
    bound = np.full(inputs, 1e6, np.float32)
    return Spec(-bound, bound, actions, 100, 0, 0)


def linear_steps(count, seeds=1, lanes=1, scale=(1.0, 1.0), noise=NOISE):
    """Steps of x' = x + DRIFT x + PUSH[a] + noise, entries in units of their own; they end where x_0 > 1."""
    generator, scale = np.random.default_rng(0), np.array(scale)
    for _ in range(count):
        x = generator.normal(size=(seeds, lanes, 2))
        action = generator.integers(3, size=(seeds, lanes))
        following = x + x @ DRIFT.T + PUSH[action] + noise * generator.normal(size=x.shape)
        step = SimpleNamespace(
            final_observation=(scale * following).astype(np.float32),
            reward=2 * x[..., 0] - action,
            terminated=following[..., 0] > 1,
            truncated=np.zeros_like(action, bool),
            facts={},
        )
        yield (scale * x).astype(np.float32), action, step


def fitted(count=1200, fits=1, settings=None, **system):
    settings = EnsembleSettings(**(SMALL | {"rounds": 6, "batches": 100} | (settings or {})))
    seeds, lanes = system.get("seeds", 1), system.get("lanes", 1)
    ensemble = Ensemble(settings, spec_of(), None, list(range(seeds)), lanes, count)
    for observation, action, step in linear_steps(count, **system):
        ensemble.add(observation, action, step)
    for _ in range(fits):
        model = ensemble.fit()
    return ensemble, model


@pytest.fixture(scope="module")
def linear():
    torch.set_num_threads(1)
    return fitted(2000, fits=4)


def test_it_recovers_a_linear_gaussian_system_and_its_noise(linear):
    _, model = linear
    predict, generator = model.predictor(), np.random.default_rng(1)
    x = generator.normal(size=(300, 2)).astype(np.float32) * 0.8
    action = generator.integers(3, size=300)
    mean, spread, event = predict(np.tile(x, (2, 1, 1)), np.tile(action, (2, 1)))
    expected = x @ DRIFT.T + PUSH[action]
    assert np.abs(mean[..., :2] - expected).mean() < 0.06
    np.testing.assert_allclose(np.sqrt((spread[..., :2] ** 2).mean((0, 1))), NOISE, rtol=0.15)
    assert np.abs(mean[..., 2] - (2 * x[:, 0] - action)).mean() < 0.1  # the reward is learned as well
    from scipy.stats import norm

    true = norm.sf((1 - (x + expected)[:, 0]) / NOISE[0])
    assert np.abs(event - true).mean() < 0.05


def test_the_error_is_measured_against_predicting_no_change(linear):
    ensemble, _ = linear
    variance_of_change = np.array([0.04 + 0.01 + 1 / 18, 0.09 + 1 / 18])  # drift and push around their mean
    mean_push = PUSH.mean(0) ** 2
    by_noise = NOISE**2 / (variance_of_change + mean_push + NOISE**2)
    expected = np.mean([*by_noise, 0.0])  # the reward is certain
    np.testing.assert_allclose(ensemble.diagnostics["validation_error"], expected, atol=0.05)
    assert 0 < ensemble.diagnostics["disagreement"][0] < 0.3
    assert (
        0 < ensemble.diagnostics["event_brier"][0] < 0.05
    )  # ends are nearly certain from where a step begins


def test_members_learn_from_samples_of_their_own():
    ensemble, model = fitted(200, settings={"rounds": 1, "batches": 20})
    copies = ensemble._copies[0, :, 0]
    assert (np.abs(copies.mean(0) - 1) < 0.2).all()
    for one in range(3):
        for other in range(one):
            assert (copies[:, one] != copies[:, other]).mean() > 0.4
    one, other = model.parameters[0]
    assert (one != other).float().mean() > 0.5


def test_held_out_steps_are_in_no_sample():
    ensemble, _ = fitted(100, lanes=2, settings={"rounds": 1, "batches": 1})
    data = ensemble._standardised()
    assert len(data.held_out) == 10
    assert (data.copies[:, data.held_out] == 0).all()
    rows = ensemble._batches(data) % data.copies.shape[1]
    assert not np.isin(rows.numpy(), data.held_out).any()


def test_units_change_nothing_but_the_last_digits():
    factor = np.array([256.0, 1 / 32])  # powers of two, so that standardised numbers are the same to the bit
    plain = fitted(300, settings={"rounds": 1, "batches": 30})[1]
    scaled = fitted(300, settings={"rounds": 1, "batches": 30}, scale=factor)[1]
    torch.testing.assert_close(plain.parameters, scaled.parameters, rtol=1e-5, atol=1e-6)
    x, action = np.random.default_rng(0).normal(size=(2, 16, 2)).astype(np.float32), np.ones((2, 16), int)
    one, other = plain.predictor()(x, action), scaled.predictor()((x * factor).astype(np.float32), action)
    np.testing.assert_allclose(one[0][..., :2] * factor, other[0][..., :2], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(one[1][..., :2] * factor, other[1][..., :2], rtol=1e-3)


def test_an_entry_that_never_moves_is_no_trouble():
    ensemble = Ensemble(EnsembleSettings(**SMALL, rounds=1, batches=5), spec_of(), None, [1], 1, 100)
    for observation, action, step in linear_steps(100):
        observation[..., 1] = step.final_observation[..., 1] = 0.1
        ensemble.add(observation, action, step)
    model = ensemble.fit()
    assert torch.isfinite(model.parameters).all()
    assert np.isfinite(ensemble.diagnostics["validation_error"]).all()


def test_a_few_steps_are_enough_to_begin_with():
    ensemble = Ensemble(EnsembleSettings(**SMALL, rounds=1, batches=5), spec_of(), None, [1], 1, 100)
    for observation, action, step in linear_steps(5):
        ensemble.add(observation, action, step)
    before = ensemble._learner.parameters.clone()
    model = ensemble.fit()  # nothing is held out yet
    assert torch.isfinite(model.parameters).all()
    assert not torch.equal(ensemble._learner.parameters, before)


def test_elites_are_the_members_of_lowest_validation_loss_and_never_get_worse():
    ensemble, _ = fitted(300, settings={"rounds": 1, "batches": 20})
    data = ensemble._standardised()
    parameters = ensemble._learner.parameters
    parameters[1] += 0.3  # one member is spoiled
    losses = ensemble._validate(data, parameters)
    model = ensemble._model(data, losses.view(1, -1))
    assert losses[1] == losses.max()
    torch.testing.assert_close(model.parameters[0], parameters[[0, 2]])
    before = losses.clone()
    ensemble.fit()
    assert (ensemble._validate(data, ensemble._learner.parameters) <= before + 1e-5).all()


def test_the_soft_limits_are_those_of_the_paper():
    raw = torch.linspace(-20, 20, 81, dtype=torch.float64)
    low, high = torch.tensor([-8.0, 0.5], dtype=torch.float64)
    softplus = torch.nn.functional.softplus
    bent = high - softplus(high - raw)
    bent = low + softplus(bent - low)
    torch.testing.assert_close(variance(raw, low, high).log(), bent)


@pytest.mark.parametrize("bfloat16", [False, True])
def test_a_predictor_is_its_network_with_standardisation_folded_in(bfloat16):
    generator, dynamics = np.random.default_rng(0), MockInterview("tiny")
    settings = EnsembleSettings(**SMALL, rounds=1, batches=5)
    ensemble = Ensemble(settings, dynamics.spec, dynamics.knowledge, [1], 4, 200)
    for _ in range(50):
        observation, following = generator.random((2, 1, 4, 12)).astype(np.float32)
        facts = {"correct": generator.integers(-1, 2, (1, 4))}
        zero = np.zeros((1, 4), bool)
        step = SimpleNamespace(
            final_observation=following, reward=np.ones((1, 4)), terminated=zero, truncated=zero, facts=facts
        )
        ensemble.add(observation, generator.integers(36, size=(1, 4)), step)
    model = ensemble.fit()
    network, shape = EnsembleNetwork(model.shape, settings.hidden), model.shape
    seen = generator.random((2, 9, shape.observed)).astype(np.float32)
    action = generator.integers(36, size=(2, 9))
    x = (seen - model.scales["centre"][0]) / model.scales["spread"][0]
    x = torch.from_numpy(np.concatenate([x, shape.encoding[action]], -1))
    mean, var, logit = network(network.layers(model.parameters[0]), x)
    size = model.scales["size"][0]
    tolerance = {"rtol": 0.1, "atol": 0.05} if bfloat16 else {"rtol": 1e-4, "atol": 1e-5}
    out = model.predictor(0, bfloat16)(seen, action)
    count = shape.targets
    mean, var, logit = mean.detach().numpy(), var.detach().numpy(), logit.detach().numpy()
    np.testing.assert_allclose(out[0], mean[..., :count] * size, **tolerance)
    np.testing.assert_allclose(out[1], np.sqrt(var[..., :count]) * size, **tolerance)
    np.testing.assert_allclose(out[2], 1 / (1 + np.exp(-logit)), **tolerance)


def test_actions_are_encoded_by_the_choices_that_matter():
    knowledge = MockInterview("tiny").knowledge
    encoding = encode(knowledge.action_table)  # gate 2, difficulty 3, modality 6, outcome 4
    assert encoding.shape == (36, 15)
    question, content = 3 * 1 + 2, 12 + 6 * 3 + 4
    np.testing.assert_array_equal(np.flatnonzero(encoding[question]), [0, 2 + 2, 11 + 1])
    np.testing.assert_array_equal(np.flatnonzero(encoding[content]), [1, 5 + 4, 11 + 3])
    assert len(np.unique(encoding, axis=0)) == 36
    np.testing.assert_array_equal(encode(np.arange(5)), np.eye(5))


class Still:
    """A predictor of no change, without doubt, and of an event of probability one half."""

    def __call__(self, seen, action):
        zero = np.zeros((*action.shape, 4), np.float32)
        return zero, zero, np.full(action.shape, 0.5, np.float32)


def test_ends_are_computed_from_what_is_imagined():
    dynamics = MockInterview("tiny")
    shape = ModelShape.of(dynamics.spec, dynamics.knowledge)
    imagination = Imagination(Still(), shape, dynamics.spec, dynamics.knowledge)
    x = np.zeros((1, 3, 12), np.float32)
    x[0, 0, :4], x[0, 1, 4] = 0.81, 0.95  # mastered; frustrated; neither
    following, reward, terminated = imagination.step(x, np.zeros((1, 3), int), np.zeros((1, 3, 4)))
    np.testing.assert_array_equal(terminated, [[1, 1, 0]])
    np.testing.assert_allclose(following[..., 6 + 4], 1 / 40)  # time passes
    c = dynamics.constants
    question = 0.5 * c.weight_correct - c.blueprint_penalty * (0.8 + 0.6 + 0.2)
    np.testing.assert_allclose(reward[0, 2], question, rtol=1e-5)
    np.testing.assert_allclose(reward[0, 0], question + c.time_saved_bonus * 39, rtol=1e-5)
    unknowing = Imagination(Still(), ModelShape.of(spec_of(), None), spec_of(), None)
    _, reward, terminated = unknowing.step(
        np.zeros((1, 3, 2), np.float32), np.zeros((1, 3), int), np.zeros(1)
    )
    np.testing.assert_array_equal(terminated, np.full((1, 3), 0.5))
    assert unknowing.action_mask(x) is None


def test_imagined_observations_stay_within_their_bounds():
    spec = Spec(np.array([0, -1], np.float32), np.array([1, 1], np.float32), 3, 10, 0, 0)
    imagination = Imagination(Still(), ModelShape.of(spec, None), spec, None)
    x = np.array([[[2.0, -3.0], [0.5, 0.5]]], np.float32)
    following, _, _ = imagination.step(x, np.zeros((1, 2), int), np.zeros(1, np.float32))
    np.testing.assert_array_equal(following, [[[1.0, -1.0], [0.5, 0.5]]])


@pytest.mark.parametrize("settings", [{}, {"hidden": (48, 16), "members": 4, "elites": 3}])
def test_a_seed_does_not_depend_on_its_block(settings):
    settings = EnsembleSettings(**(SMALL | {"rounds": 2, "batches": 10} | settings))
    results = []
    for block in ([7], [1, 7], [7, 1, 3], [1, 2, 3, 4, 7]):
        ensemble = Ensemble(settings, spec_of(), None, block, 2, 70)
        for observation, action, step in linear_steps(90, lanes=2):  # the ring goes round
            several = SimpleNamespace(
                **{k: v.repeat(len(block), 0) for k, v in vars(step).items() if k != "facts"}, facts={}
            )
            ensemble.add(observation.repeat(len(block), 0), action.repeat(len(block), 0), several)
        model, row = ensemble.fit(), block.index(7)
        predicted = model.predictor()
        out = predicted(
            np.full((len(block) * settings.elites, 8, 2), 0.3, np.float32),
            np.ones((len(block) * settings.elites, 8), int),
        )
        mine = slice(row * settings.elites, (row + 1) * settings.elites)
        results.append((model.parameters[row].numpy(), *(part[mine] for part in out)))
    for result in results[1:]:
        for part, first in zip(result, results[0], strict=True):
            np.testing.assert_array_equal(part, first)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"members": 3, "elites": 4}, "must not exceed"),
        ({"members": 1}, "greater than or equal to 2"),
        ({"hidden": (20,)}, "multiples of 16"),
        ({"batch_size": 100}, "multiple of 16"),
        ({"unknown": 1}, "unexpected|Unexpected"),
    ],
)
def test_settings_that_cannot_be_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        EnsembleSettings(**changes)


def test_what_is_no_number_stays_none():
    nan, zeros = np.full((1, 1, 32), np.nan, np.float32), np.zeros((1, 1), np.float32)
    mean, spread, event = np.zeros((1, 1, 1), np.float32), np.zeros((1, 1, 1), np.float32), zeros.copy()
    moments(nan, zeros, zeros + 1, mean, spread, event)
    assert np.isnan([mean.item(), spread.item(), event.item()]).all()
    predicted, entries = np.zeros((1, 2), np.float32), np.zeros((1, 1), np.int64)
    after = np.zeros((1, 2), np.float32)
    advance(predicted, entries[0], mean[0], spread[0], zeros, entries, zeros, zeros + 1, after)
    np.testing.assert_array_equal(after, [[np.nan, 0]])
