"""Goal metrics on tables worked out by hand."""

import pandas as pd
import pytest

from seedbed.metrics.base import load_metrics, score

METRICS = load_metrics(["episodes", "goal"])


def scores(success, length, shortest, distance):
    count = len(success)
    episodes = pd.DataFrame(
        {
            "seed": 3,
            "policy_mode": "greedy",
            "episode": range(count),
            "return": 0.0,
            "length": length,
            "terminated": success,
            "truncated": [not reached for reached in success],
            "success": success,
            "final_shortest": shortest,
            "final_distance": distance,
        }
    )
    table = score("s", "e", "a", episodes, None, METRICS.values(), horizon=128)
    return table.set_index("metric")


def test_failures_count_in_rates_and_distances_but_not_in_ratios():
    table = scores([True, False, True, True], [20, 128, 40, 10], [10, 30, 10, 10], [0, 12, 0, 0])
    assert table.loc["success_rate", "value"] == 0.75
    assert table.loc["steps_to_success", "value"] == 20
    assert table.loc["optimality_ratio", "value"] == pytest.approx((0.5 + 0.25 + 1) / 3)
    assert table.loc["optimality_ratio", "episodes"] == 3
    assert table.loc["final_distance", "value"] == 0


def test_even_counts_take_the_middle_of_the_two_middle_values():
    table = scores([True, True, False, False], [20, 31, 128, 128], [10, 31, 10, 10], [0, 0, 5, 9])
    assert table.loc["steps_to_success", "value"] == 25.5
    assert table.loc["final_distance", "value"] == 2.5


def test_without_success_there_is_no_ratio():
    table = scores([False, False], [128, 128], [10, 20], [4, 8])
    for metric in ("steps_to_success", "optimality_ratio"):
        assert table.loc[metric, "status"] == "no success"
        assert pd.isna(table.loc[metric, "value"])
    assert table.loc["final_distance", "value"] == 6
