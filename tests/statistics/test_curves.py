"""Learning curves: common grid, pointwise bands with their n, areas over a common range."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from seedbed.statistics.curves import CURVE_COLUMNS, area_under_curve, band, on_grid, trapezoid
from seedbed.statistics.rates import rate_interval

CASES = json.loads(
    (Path(__file__).parents[1] / "reference" / "statistics" / "learning_curves.json").read_text()
)["cases"]
GRID_CASE = next(case for case in CASES if case["name"] == "common_grid_auc")


def curve(values, *, steps=None, seed=0, algorithm="a", metric="return", environment="e"):
    steps = 100 * np.arange(len(values)) if steps is None else steps
    values = np.asarray(values, float)
    return pd.DataFrame(
        {
            "study": "s",
            "environment": environment,
            "algorithm": algorithm,
            "seed": seed,
            "policy_mode": "sampled",
            "metric": metric,
            "value": values,
            "episodes": 5,
            "status": np.where(np.isnan(values), "no success", "ok"),
            "steps": steps,
        }
    )


def test_reference_common_grid_and_area():
    inputs, expected = GRID_CASE["inputs"], GRID_CASE["expected"]
    for number, one in enumerate(inputs["curves"]):
        read = on_grid(one["steps"], one["values"], inputs["grid"])
        np.testing.assert_allclose(read, expected["interpolated"][number], rtol=1e-9)
        assert trapezoid(one["steps"], one["values"]) == pytest.approx(expected["auc_trapezoid"][number])
    table = band(
        pd.concat([curve(c["values"], steps=c["steps"], seed=k) for k, c in enumerate(inputs["curves"])])
    )
    assert list(table["steps"]) == inputs["grid"]
    np.testing.assert_allclose(table["mean"], expected["mean"], rtol=1e-9)


def test_reference_area_normalised_by_steps():
    curves = GRID_CASE["inputs"]["curves"]
    table = area_under_curve(
        pd.concat([curve(c["values"], steps=c["steps"], seed=k) for k, c in enumerate(curves)])
    )
    assert list(table["value"]) == pytest.approx(GRID_CASE["expected"]["auc_normalised_by_length"])
    assert list(table["metric"]) == ["area_under_return"] * 2


def test_band_is_the_t_interval_at_each_point():
    values = np.random.default_rng(2).normal(size=(6, 4)).cumsum(axis=1)
    table = band(pd.concat([curve(row, seed=k) for k, row in enumerate(values)]), 0.9)
    low, high = stats.t.interval(0.9, 5, values.mean(axis=0), stats.sem(values, axis=0))
    np.testing.assert_allclose(table["mean"], values.mean(axis=0))
    np.testing.assert_allclose(table["low"], low)
    np.testing.assert_allclose(table["high"], high)
    assert list(table["n"]) == [6] * 4


def test_the_band_of_a_rate_stays_possible_and_counts_episodes():
    parts = [curve(row, seed=k, metric="success_rate") for k, row in enumerate([[0, 0.2, 1], [0, 1, 1]])]
    table = band(pd.concat(parts), rates={"success_rate"})
    for row, values in zip(table.itertuples(), ([0, 0], [0.2, 1], [1, 1]), strict=True):
        expected = rate_interval(values, 5)
        assert (row.mean, row.low, row.high) == (expected.estimate, expected.low, expected.high)
    assert table["low"].iloc[0] == 0 < table["high"].iloc[0]
    assert band(pd.concat(parts))["low"].iloc[1] < 0  # a t interval does not


def test_a_rate_read_between_two_evaluations_has_their_episodes():
    parts = [
        curve([0.2, 0.4, 0.6], seed=0, metric="success_rate"),
        curve([0.2, 0.6], steps=[0, 200], seed=1, metric="success_rate"),
    ]
    row = band(pd.concat(parts), rates={"success_rate"}).iloc[1]
    expected = rate_interval([0.4, 0.4], [5, 5])
    assert (row["low"], row["high"]) == pytest.approx((expected.low, expected.high))


def test_no_curve_is_carried_beyond_its_end():
    table = band(pd.concat([curve([0, 10, 20], seed=0), curve([0, 30], seed=1)])).set_index("steps")
    assert list(table["n"]) == [2, 2, 1]
    assert table.loc[200, "mean"] == 20  # seed 1 has nothing to say here
    assert table.loc[200, ["low", "high"]].isna().all()


def test_one_seed_has_no_band():
    table = band(curve([1, 2, 3]))
    assert list(table["mean"]) == [1, 2, 3]
    assert table[["low", "high"]].isna().all(axis=None)
    assert (table["n"] == 1).all()


def test_a_missing_value_stays_missing_and_is_not_bridged():
    table = band(pd.concat([curve([1, math.nan, 3], seed=0), curve([1, 5, 7], seed=1)]))
    assert list(table["n"]) == [2, 1, 2]
    assert table["mean"].iloc[1] == 5
    assert math.isnan(on_grid([0, 100, 200], [1, math.nan, 3], [150])[0])
    assert on_grid([0, 100, 200], [1, math.nan, 3], [200])[0] == 3


def test_order_of_rows_changes_nothing_and_no_rows_give_none():
    table = pd.concat([curve([1, 2, 4], seed=k) for k in range(3)])
    pd.testing.assert_frame_equal(band(table), band(table.sample(frac=1, random_state=1)))
    empty = band(table.iloc[:0])
    assert len(empty) == 0
    assert list(empty.columns) == list(CURVE_COLUMNS)


def test_a_seed_that_appears_twice_is_refused():
    with pytest.raises(ValueError, match="twice"):
        band(pd.concat([curve([1, 2])] * 2))


def test_areas_of_different_budgets_cover_the_same_steps():
    """A longer run must not gain from steps that the other never had."""
    short, long = curve([0, 10, 10], algorithm="short"), curve([0, 10, 10, 90, 90], algorithm="long")
    table = area_under_curve(pd.concat([short, long])).set_index("algorithm")
    assert table.loc["short", "value"] == table.loc["long", "value"] == pytest.approx(7.5)
    assert list(table["end"]) == [200, 200]


def test_areas_say_why_they_are_missing():
    parts = [
        curve([5], algorithm="reference"),
        curve([1, 2, 3], algorithm="whole"),
        curve([1, math.nan, 3], algorithm="hole"),
    ]
    table = area_under_curve(pd.concat(parts), end=200).set_index("algorithm")
    assert table.loc["reference", "status"] == "one point: no curve"
    assert table.loc["hole", "status"] == "a point of the curve is missing"
    assert table.loc["whole", "value"] == 2
    assert area_under_curve(pd.concat(parts), end=900).set_index("algorithm").loc["whole", "status"] == (
        "evaluated from 0 to 200 steps only"
    )
    assert (table["value"].isna() == (table["status"] != "ok")).all()


def test_an_area_within_a_range_cuts_between_points():
    table = area_under_curve(curve([0, 10, 20]), start=50, end=150)
    assert table["value"].item() == pytest.approx(10)
