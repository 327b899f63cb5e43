"""Reliability tables: bins hold what was foretold, seeds are the sample, nothing is invented."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedbed.metrics.calibration import reliability
from seedbed.statistics.rates import rate_interval
from seedbed.statistics.reliability import RELIABILITY_COLUMNS, equal_mass, reliability_table


def steps_of(seed, foretold, correct, mode="sampled"):
    foretold = np.asarray(foretold, float)
    return pd.DataFrame(
        {
            "seed": seed,
            "policy_mode": mode,
            "correct": correct,
            "forecast_event": foretold,
            "terminated": False,
        }
    )


def episodes_of(seed, foretold, success):
    columns = {"seed": seed, "policy_mode": "sampled", "success": np.asarray(success, bool)}
    return pd.DataFrame(columns | {"forecast_success": np.asarray(foretold, float)})


NO_FORECASTS = pd.DataFrame({"seed": [0, 1], "policy_mode": "sampled", "success": [True, False]})


@given(st.lists(st.sampled_from(np.linspace(0, 1, 30).tolist()), min_size=1, max_size=200))
def test_bins_are_ordered_without_gaps_and_never_divide_equal_predictions(values):
    predicted = np.array(values)
    bins = equal_mass(predicted)
    assert sorted(set(bins)) == list(range(bins.max() + 1))
    assert bins.max() < min(10, len(set(values)))
    order = np.argsort(predicted, kind="stable")
    assert (np.diff(bins[order]) >= 0).all()
    for value in set(values):
        assert len(set(bins[predicted == value])) == 1


@given(st.integers(1, 300), st.randoms(use_true_random=False))
def test_different_predictions_fill_bins_that_differ_by_one_at_most(n, random):
    predicted = np.array(random.sample(range(1000), n)) / 1000
    counts = np.bincount(equal_mass(predicted))
    assert len(counts) == min(n, 10)
    assert np.ptp(counts) <= 1


def test_few_different_predictions_have_a_bin_each():
    assert list(equal_mass(np.array([0.2, 0.8, 0.2, 0.5, 0.8]))) == [0, 2, 0, 1, 2]
    assert list(equal_mass(np.full(50, 0.3))) == [0] * 50


def test_one_seed_agrees_with_the_reliability_of_metrics_and_has_no_interval():
    generator = np.random.default_rng(0)
    foretold = generator.random(200)
    correct = (generator.random(200) < foretold).astype(int)
    table = reliability_table("e", "a", NO_FORECASTS, steps_of(3, foretold, correct))
    expected = reliability(foretold, correct)
    np.testing.assert_allclose(table["predicted"], expected.predicted)
    np.testing.assert_allclose(table["observed"], expected.observed)
    assert list(table["count"]) == list(expected.count)
    assert table["low"].isna().all()
    assert set(table["note"]) == {"not estimable: n = 1, needs at least 2"}
    assert set(table["event"]) == {"outcome"}


def test_a_bin_is_the_mean_over_seeds_whatever_their_numbers():
    """Seed 0: 1 of 4, seed 1: 1 of 2, seed 2 never says 0.4."""
    parts = [
        steps_of(0, [0.4] * 4, [1, 0, 0, 0]),
        steps_of(1, [0.4] * 2, [0, 1]),
        steps_of(2, [0.9] * 6, [1, 1, 1, 1, 1, 0]),
    ]
    table = reliability_table("e", "a", NO_FORECASTS, pd.concat(parts)).set_index("bin")
    assert list(table["count"]) == [6, 6]
    assert list(table["n"]) == [2, 1]
    expected = rate_interval([0.25, 0.5], [4, 2])
    row = table.loc[0]
    assert (row["predicted"], row["observed"], row["low"], row["high"]) == pytest.approx(
        (0.4, 0.375, expected.low, expected.high)
    )
    assert table.loc[1, "observed"] == pytest.approx(5 / 6)
    assert np.isnan(table.loc[1, "low"])


def test_steps_without_outcome_and_episodes_not_imagined_do_not_count():
    steps = steps_of(0, [0.5, np.nan, 0.5], [1, -1, 0])
    episodes = episodes_of(0, [1.0, np.nan], [False, True])
    table = reliability_table("e", "a", episodes, steps).set_index("event")
    assert table["count"].to_dict() == {"outcome": 2, "success": 1}
    assert table.loc["outcome", "observed"] == 0.5
    assert table.loc["success", ["predicted", "observed"]].tolist() == [1, 0]


def test_without_a_named_outcome_the_end_of_the_episode_is_foretold():
    steps = steps_of(0, [0.1, 0.9], 0).drop(columns="correct").assign(terminated=[False, True])
    table = reliability_table("e", "a", NO_FORECASTS, steps)
    assert list(table["observed"]) == [0, 1]


def test_policy_modes_are_apart():
    steps = pd.concat([steps_of(0, [0.1, 0.9], [0, 1]), steps_of(0, [0.5], [1], mode="greedy")])
    table = reliability_table("e", "a", NO_FORECASTS, steps)
    assert table.groupby("policy_mode")["count"].sum().to_dict() == {"greedy": 1, "sampled": 2}


def test_the_order_of_rows_is_without_effect():
    generator = np.random.default_rng(1)
    told = generator.integers(0, 11, (4, 20)) / 10
    episodes = pd.concat(
        [episodes_of(s, told[s], generator.random(20) < told[s]) for s in range(4)], ignore_index=True
    )
    steps = NO_FORECASTS
    one = reliability_table("e", "a", episodes, steps)
    other = reliability_table("e", "a", episodes.sample(frac=1, random_state=2), steps)
    pd.testing.assert_frame_equal(one, other)
    assert one["count"].sum() == 80
    assert one["observed"].between(one["low"], one["high"]).all()


def test_intervals_of_a_calibrated_model_cover_the_diagonal():
    """95 % of bins, less three standard deviations; 30 tables of about 10 bins, 5 seeds."""
    generator, inside = np.random.default_rng(3), []
    for _ in range(30):
        foretold = generator.beta(3, 2, (5, 80))
        correct = generator.random(foretold.shape) < foretold
        parts = [steps_of(seed, foretold[seed], correct[seed].astype(int)) for seed in range(5)]
        table = reliability_table("e", "a", NO_FORECASTS, pd.concat(parts))
        inside += list(table["predicted"].between(table["low"], table["high"]))
    assert np.mean(inside) > 0.95 - 3 * np.sqrt(0.95 * 0.05 / len(inside))


def test_without_forecasts_there_are_columns_but_no_rows():
    table = reliability_table("e", "a", NO_FORECASTS, NO_FORECASTS)
    assert table.empty
    assert table.dtypes.astype(str).to_dict() == RELIABILITY_COLUMNS


def test_what_is_no_probability_is_refused():
    with pytest.raises(ValueError, match=r"a: a predicted probability of the outcome is outside \[0, 1\]"):
        reliability_table("e", "a", NO_FORECASTS, steps_of(0, [1.2], [1]))
