"""Forecasts: a perfect model foretells what happens; one of no change is exactly as good as that."""

from types import SimpleNamespace

import numpy as np
import pytest

from seedbed.algorithms.base import StatelessPolicy
from seedbed.algorithms.forecasts import EPISODE_FORECASTS, STEP_FORECASTS, Forecasting, replayed
from seedbed.algorithms.world_model import ModelShape
from seedbed.artifacts import SeedbedError
from seedbed.environments.cart_pole import CartPole, CartPoleState
from seedbed.environments.interview import MockInterview
from seedbed.evaluation import evaluate
from seedbed.metrics.base import score
from seedbed.metrics.world_model import METRICS
from seedbed.seeding import Purpose

MODELS = 2
PLAN = {"horizon": 4, "imagined": 3, "particles": 3}


class Leaning(StatelessPolicy, Forecasting):
    """Pushes the cart under the pole, but heeds the angle alone, so the pole falls soon."""

    world_model = None

    def act(self, observation, mask, uniforms, memory, first):
        return (observation[..., 2] > 0).astype(np.int64), None


def perfect(seen, action):
    """What CartPole does next, from its observation."""
    state = CartPoleState(*np.moveaxis(seen.astype(float), -1, 0))
    moved = CartPole().step(state, action, np.empty((*action.shape, 0)))
    change = np.stack(moved.state, -1) - seen
    mean = np.concatenate([change, np.ones((*action.shape, 1))], -1).astype(np.float32)
    return mean, np.zeros_like(mean), moved.terminated.astype(np.float32)


def still(seen, action):
    """No change, a reward of 1, no end."""
    mean = np.concatenate([np.zeros_like(seen), np.ones((*action.shape, 1), np.float32)], -1)
    return mean, np.zeros_like(mean), np.zeros(action.shape, np.float32)


def disagreeing(seen, action):
    """One model predicts no change, the other 2 in every entry."""
    mean, spread, event = still(seen, action)
    mean[1, ..., :4] = 2
    return mean, spread, event


def model(predict, seeds=1):
    shape = ModelShape.of(CartPole().spec, None)
    return SimpleNamespace(
        shape=shape,
        parameters=np.zeros((seeds, MODELS, 1)),
        scales={"size": np.ones((seeds, shape.targets), np.float32)},
        predictor=lambda row: predict,
    )


def tables(predict, seeds=(0,), episodes=6):
    policy = Leaning(seeds, CartPole())
    policy.world_model = model(predict, len(seeds))
    run = evaluate(policy, CartPole(), Purpose.TEST, episodes, lanes=4, log_steps=True)
    foretold = policy.add_forecasts(CartPole(), Purpose.TEST, episodes, run.episodes, run.steps, **PLAN)
    return run, foretold


def values(foretold):
    table = score("s", "e", "a", *foretold, METRICS, horizon=500).set_index("metric")
    return table["value"], table["status"]


@pytest.fixture
def alone(monkeypatch):
    """``Policy.of`` keeps the model of its seeds."""

    def of(self, seeds):
        chosen = Leaning(seeds, self.dynamics)
        chosen.world_model = self.world_model
        return chosen

    monkeypatch.setattr(Leaning, "of", of)


def test_a_perfect_model_foretells_steps_windows_and_whole_episodes():
    run, foretold = tables(perfect)
    episodes, steps = foretold
    found, _ = values(foretold)
    assert found["model_error"] < 1e-10
    assert found["model_window_error"] < 1e-8
    assert found["model_disagreement"] == 0
    np.testing.assert_array_equal(steps["forecast_event"], steps["terminated"])
    np.testing.assert_array_equal(episodes["forecast_return"][:3], run.episodes["return"][:3])
    assert list(episodes["forecast_rank"][:3]) == [2, 2, 2]  # all 4 imagined returns are ties
    assert found["event_brier"] == found["return_bias"] == 0
    assert found["return_slope"] == pytest.approx(1)


def test_a_model_of_no_change_is_as_good_as_that():
    _, foretold = tables(still)
    found, status = values(foretold)
    assert found["model_error"] == 1
    assert found["model_window_error"] == pytest.approx(1)
    assert (foretold[0]["forecast_return"][:3] == 500).all()  # it never ends, so it pays to the step limit
    assert found["return_coverage"] == 0
    assert status["success_brier"] == "the model does not tell success from other ends"


class FirstAllowed(StatelessPolicy, Forecasting):
    """The first action that is allowed."""

    world_model = None

    def act(self, observation, mask, uniforms, memory, first):
        return mask.argmax(-1), None


def test_a_clock_is_no_unit_of_error():
    """Time changes alike in all windows: its SD is rounding, and errors in such units were above 10^12."""
    dynamics = MockInterview("default")
    shape = ModelShape.of(dynamics.spec, dynamics.knowledge)
    policy = FirstAllowed((0,), dynamics)
    policy.world_model = SimpleNamespace(
        shape=shape,
        parameters=np.zeros((1, MODELS, 1)),
        scales={"size": np.ones((1, shape.targets), np.float32)},
        predictor=lambda row: (
            lambda seen, action: (
                *np.zeros((2, *action.shape, shape.targets), np.float32),
                np.zeros(action.shape, np.float32),
            )
        ),
    )
    run = evaluate(policy, dynamics, Purpose.TEST, 6, lanes=4, log_steps=True)
    _, steps = policy.add_forecasts(dynamics, Purpose.TEST, 6, run.episodes, run.steps, **PLAN)
    assert 0.1 < steps["window_no_change_error"].mean() < 10
    # known rules alone move nothing that a model would have to foretell
    np.testing.assert_allclose(steps["window_error"], steps["window_no_change_error"], rtol=1e-5)


def test_disagreement_is_the_sd_of_means_and_the_error_that_of_their_mean():
    _, (_, steps) = tables(disagreeing)
    assert steps["forecast_disagreement"].to_numpy() == pytest.approx(np.std([0, 2], ddof=1))
    run, _ = tables(still)
    observed = replayed(CartPole(), Purpose.TEST, 0, 6, run.steps["action"].to_numpy(), run.episodes)
    error = np.square(1 - (observed.following - observed.observation)).mean(-1)
    np.testing.assert_allclose(steps["forecast_error"], error, rtol=1e-5)


def test_tables_keep_their_rows_and_gain_columns():
    run, (episodes, steps) = tables(perfect)
    assert list(episodes.columns) == [*run.episodes.columns, *EPISODE_FORECASTS]
    assert list(steps.columns) == [*run.steps.columns, *STEP_FORECASTS]
    assert episodes[run.episodes.columns].equals(run.episodes)
    assert steps[run.steps.columns].equals(run.steps)
    assert episodes["forecast_return"].isna().tolist() == [False] * 3 + [True] * 3
    windows = steps["window_error"].notna()
    assert (steps.loc[windows, "t"] % PLAN["horizon"] == 0).all()
    assert windows.sum() == (run.episodes["length"] // PLAN["horizon"]).sum()


@pytest.mark.usefixtures("alone")
def test_a_seeds_forecasts_are_those_it_has_alone():
    _, together = tables(perfect, seeds=(4, 0))
    _, alone = tables(perfect, seeds=(0,))
    for both, one in zip(together, alone, strict=True):
        own = both[both["seed"] == 0].reset_index(drop=True)
        assert own.equals(one.reset_index(drop=True))


def test_without_a_model_nothing_is_added_and_metrics_say_so():
    policy = Leaning([0], CartPole())
    run = evaluate(policy, CartPole(), Purpose.TEST, 2, lanes=2, log_steps=True)
    foretold = policy.add_forecasts(CartPole(), Purpose.TEST, 2, run.episodes, run.steps, **PLAN)
    assert foretold[0] is run.episodes
    found, status = values(foretold)
    assert found.isna().all()
    assert status.str.startswith("no forecasts: the policy has no model").all()


def test_episodes_that_are_others_when_played_again_are_refused():
    run, _ = tables(perfect)
    actions, episodes = run.steps["action"].to_numpy(), run.episodes
    with pytest.raises(SeedbedError, match="ends elsewhere"):
        replayed(CartPole(), Purpose.EVALUATION, 0, 6, actions, episodes)
    richer = episodes.assign(**{"return": episodes["return"] + 1})
    with pytest.raises(SeedbedError, match="other rewards"):
        replayed(CartPole(), Purpose.TEST, 0, 6, actions, richer)
