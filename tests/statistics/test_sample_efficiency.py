"""Sample efficiency: normalised scores, what is reached at fixed budgets, censored steps to a level."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedbed.statistics.sample_efficiency import (
    EFFICIENCY_COLUMNS,
    first_reached,
    normalise,
    sample_efficiency,
)
from seedbed.statistics.survival import CENSORED, EVENT
from seedbed.study import SampleEfficiency

PLAN = SampleEfficiency(floor="random", ceiling="planner", budgets=[100, 150, 400], levels=[0.5, 0.9])


def curve(algorithm, values, seed=0, steps=None, metric="return", status="ok"):
    steps = 100 * np.arange(len(values)) if steps is None else steps
    return pd.DataFrame(
        {
            "study": "s",
            "environment": "e",
            "algorithm": algorithm,
            "seed": seed,
            "policy_mode": "sampled",
            "metric": metric,
            "value": np.asarray(values, float),
            "episodes": 5,
            "status": status,
            "steps": steps,
        }
    )


def two_seeds():
    """Seed 0 between 10 and 20, seed 1 between 0 and 40; the learner has points 0 to 300."""
    ends = [curve("random", [10]), curve("planner", [20]), curve("random", [0], 1), curve("planner", [40], 1)]
    return pd.concat([*ends, curve("a", [10, 12, 16, 20]), curve("a", [0, 10, 10, 30], 1)])


def rows(table, **wanted):
    for name, value in wanted.items():
        table = table[table[name] == value]
    return table


def test_each_seed_is_normalised_by_its_own_floor_and_ceiling():
    table = normalise(two_seeds(), "return", "random", "planner")
    assert list(rows(table, algorithm="a", seed=0)["value"]) == pytest.approx([0, 0.2, 0.6, 1.0])
    assert list(rows(table, algorithm="a", seed=1)["value"]) == pytest.approx([0, 0.25, 0.25, 0.75])
    assert set(rows(table, algorithm="random")["value"]) == {0.0}
    assert set(rows(table, algorithm="planner")["value"]) == {1.0}


def test_a_metric_that_should_be_low_is_normalised_alike():
    """Ceiling below floor: the score still rises from 0 to 1 on the way from one to the other."""
    table = pd.concat([curve("random", [130]), curve("planner", [80]), curve("a", [130, 105])])
    found = normalise(table, "return", "random", "planner", better="lower")
    assert list(rows(found, algorithm="a")["value"]) == [0.0, 0.5]


@pytest.mark.parametrize(
    "ends",
    [
        [curve("random", [3]), curve("planner", [3])],
        [curve("random", [3])],
        [curve("random", [3]), curve("planner", [9], status="no episode")],
        [curve("random", [3]), curve("planner", [2])],
        [curve("random", [3]), curve("planner", [9]), curve("random", [3], 1), curve("planner", [2.9], 1)],
    ],
    ids=["equal", "absent", "missing", "worse", "worse in one seed"],
)
def test_without_a_scale_nothing_is_normalised_and_the_reason_is_said(ends):
    table = normalise(pd.concat([*ends, curve("a", [1, 2])]), "return", "random", "planner")
    learner = rows(table, algorithm="a")
    assert learner["value"].isna().all()
    assert set(learner["status"]) == {"random and planner give no scale"}


def test_budgets_are_read_off_the_curves_and_missing_beyond_them():
    table = rows(sample_efficiency(two_seeds(), PLAN), quantity="budget", metric="return").set_index("at")
    assert table.loc[100, "estimate"] == pytest.approx(11)
    assert table.loc[150, "estimate"] == pytest.approx((14 + 10) / 2)
    assert math.isnan(table.loc[400, "estimate"])
    assert table.loc[400, "n"] == 0
    assert table.loc[400, "note"] == "trained for 300 steps"


def test_intervals_at_a_budget_are_t_intervals_over_seeds():
    row = rows(sample_efficiency(two_seeds(), PLAN), quantity="budget", metric="return", at=100).iloc[0]
    half = 12.706204736432095 * np.std([12, 10], ddof=1) / np.sqrt(2)
    assert (row["low"], row["high"]) == (pytest.approx(11 - half), pytest.approx(11 + half))


def test_the_mean_height_is_the_area_per_step():
    row = rows(sample_efficiency(two_seeds(), PLAN), quantity="area", metric="return").iloc[0]
    seeds = (100 * (11 + 14 + 18) / 300, 100 * (5 + 10 + 20) / 300)
    assert row["estimate"] == pytest.approx(np.mean(seeds))
    assert row["at"] == 300


def test_steps_to_a_level_are_censored_at_the_last_point():
    table = rows(sample_efficiency(two_seeds(), PLAN), quantity="level").set_index("at")
    assert table.loc[0.5, "reached"] == 2
    assert table.loc[0.5, "estimate"] == 200  # seeds after 200 and 300 steps: half of them by 200
    assert table.loc[0.9, "reached"] == 1
    assert table.loc[0.9, "estimate"] == 300
    beyond = PLAN.model_copy(update={"levels": [0.99]})
    seed_1_alone = two_seeds().query("seed == 1")
    row = rows(sample_efficiency(seed_1_alone, beyond), quantity="level").iloc[0]
    assert row["reached"] == 0
    assert math.isnan(row["estimate"])
    assert "not estimable" in row["note"]


def test_policies_that_do_not_learn_have_no_rows():
    assert set(sample_efficiency(two_seeds(), PLAN)["algorithm"]) == {"a"}


def test_a_seed_without_a_value_is_counted():
    table = pd.concat([two_seeds(), curve("a", [1, np.nan, 3, 4], 2), curve("random", [0], 2)])
    table = pd.concat([table, curve("planner", [9], 2)])
    row = rows(sample_efficiency(table, PLAN), quantity="budget", metric="return", at=100).iloc[0]
    assert row["n"] == 2
    assert row["note"] == "1 of 3 seeds missing"


def test_without_plan_or_curves_the_table_is_empty_but_has_its_columns():
    only_points = pd.concat([curve("random", [1]), curve("planner", [2])])
    for table in (sample_efficiency(two_seeds(), None), sample_efficiency(only_points, PLAN)):
        assert table.empty
        assert list(table.columns) == list(EFFICIENCY_COLUMNS)


@given(st.lists(st.floats(-1, 2), min_size=1, max_size=8), st.floats(-1, 2))
def test_first_reached_is_the_first_point_at_or_above(values, level):
    steps = 10 * np.arange(len(values))
    step, event = first_reached(steps, values, level)
    before = [value for at, value in zip(steps, values, strict=True) if at < step]
    assert all(value < level for value in before)
    if event == EVENT:
        assert values[int(step) // 10] >= level
    else:
        assert event == CENSORED
        assert step == steps[-1]
        assert max(values) < level


def test_the_order_of_rows_does_not_matter():
    shuffled = two_seeds().sample(frac=1, random_state=3)
    pd.testing.assert_frame_equal(sample_efficiency(shuffled, PLAN), sample_efficiency(two_seeds(), PLAN))


@pytest.mark.parametrize(
    "wrong", [{"budgets": [5, 5]}, {"levels": [0.9, 0.8]}, {"levels": [1.0]}, {"budgets": []}]
)
def test_a_plan_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(ValueError):
        SampleEfficiency(**{"floor": "a", "ceiling": "b", "budgets": [1]} | wrong)
