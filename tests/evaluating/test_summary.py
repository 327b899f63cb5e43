"""The summary of an episode table: exact small cases, and null where there is no number."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedbed.artifacts import EPISODE_COLUMNS
from seedbed.evaluating.summary import effective_episodes, summarise


def table(rows, **final):
    """Episodes (return, length, success), successes terminated and the others truncated."""
    returns, lengths, success = (np.array(column) for column in zip(*rows, strict=True))
    columns = {
        "seed": 0,
        "policy_mode": "greedy",
        "episode": np.arange(len(rows)),
        "return": returns,
        "length": lengths,
        "terminated": success,
        "truncated": ~success,
        "success": success,
    }
    return pd.DataFrame(columns | final).astype(EPISODE_COLUMNS)


def test_a_case_by_hand():
    episodes = table(
        [(5.0, 10, True), (1.0, 128, False), (7.0, 13, True), (3.0, 128, False)], final_distance=[0, 4, 0, 9]
    )
    z = 1.959963984540054
    half = z * math.sqrt(1 / 16 + z * z / 64) / (1 + z * z / 4)  # Wilson (1927) at 2 of 4
    assert summarise(episodes, 4, True) == {
        "episodes": 4,
        "n_eff": 4,
        "success_rate": 0.5,
        "success_rate_low": pytest.approx(0.5 - half),
        "success_rate_high": pytest.approx(0.5 + half),
        "confidence": 0.95,
        "median_steps_to_goal": 11.5,  # between the middle two
        "steps_p50_success": 11.5,
        "mean_return": 4.0,
        "std_return": pytest.approx(math.sqrt(20 / 3)),
        "return_mean_success": 6.0,
        "return_mean_fail": 2.0,
        "dist_at_end_p50": 2.0,
        "terminated": 2,
        "truncated": 2,
    }


def test_no_success_has_no_steps_and_no_failure_no_return():
    nobody = summarise(table([(1.0, 5, False)] * 3), 3, True)
    assert (nobody["success_rate"], nobody["median_steps_to_goal"], nobody["return_mean_success"]) == (
        0,
        None,
        None,
    )
    assert nobody["success_rate_low"] == 0
    assert nobody["success_rate_high"] > 0.5
    everybody = summarise(table([(1.0, 5, True)] * 3), 3, True)
    assert (everybody["success_rate"], everybody["return_mean_fail"]) == (1, None)


def test_without_a_condition_of_success_nothing_succeeds_or_fails():
    summary = summarise(table([(1.0, 5, False)] * 3), 3, False)
    for key in ("success_rate", "success_rate_low", "return_mean_fail", "dist_at_end_p50"):
        assert summary[key] is None, key
    assert summary["mean_return"] == 1


def test_one_episode_has_no_spread_and_no_episode_no_summary():
    assert summarise(table([(1.0, 5, True)]), 1, True)["std_return"] is None
    with pytest.raises(ValueError, match="no episodes"):
        summarise(table([(1.0, 5, True)]).iloc[:0], 0, True)


def test_repeated_episodes_have_no_interval():
    summary = summarise(table([(1.0, 5, True)] * 20), 1, True)
    assert (summary["success_rate"], summary["success_rate_low"], summary["success_rate_high"]) == (
        1,
        None,
        None,
    )


@given(
    st.lists(
        st.tuples(st.floats(allow_nan=False, allow_infinity=False), st.integers(1, 9), st.booleans()),
        min_size=1,
    )
)
def test_numbers_are_finite_or_none(rows):
    """Even where sums overflow."""
    summary = summarise(table(rows), len(rows), True)
    assert all(value is None or math.isfinite(value) for value in summary.values())


@pytest.mark.parametrize(
    ("fingerprints", "expected"),
    [
        ([[7, 7, 7]], 1),
        ([[7, 7, 8]], 3),
        ([[7, 7, 7], [7, 7, 7]], 1),
        ([[7, 7, 7], [8, 8, 8]], 2),
        ([[7, 7, 7], [8, 8, 9]], 4),
        ([[7]], 1),
    ],
)
def test_effective_episodes(fingerprints, expected):
    assert effective_episodes(np.array(fingerprints, np.uint64)) == expected
