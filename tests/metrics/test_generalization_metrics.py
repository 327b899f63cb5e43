"""The generalization gap, from tables small enough to compute by hand."""

import pandas as pd
import pytest

from seedbed.artifacts import ArtifactError
from seedbed.metrics.base import load_metrics, score

METRICS = load_metrics(["generalization"]).values()


def episodes(numbers, returns, successes):
    count = len(numbers)
    return pd.DataFrame(
        {
            "seed": 3,
            "policy_mode": "greedy",
            "episode": range(count),
            "return": returns,
            "length": 1,
            "terminated": True,
            "truncated": False,
            "success": successes,
            "final_training_environment": numbers,
        }
    )


def scores(table):
    rows = score("s", "e", "a", table, None, METRICS, horizon=1)
    return rows.set_index("metric")


def test_the_gap_is_training_minus_fresh():
    table = episodes([0, -1, 7, -1, -1], [5.0, 1, 3, 0, 2], [True, False, True, True, False])
    found = scores(table)
    assert found["value"].to_dict() == pytest.approx(
        {
            "return_fresh": 1,
            "return_seen": 4,
            "return_gap": 3,
            "success_fresh": 1 / 3,
            "success_seen": 1,
            "success_gap": 2 / 3,
        }
    )
    assert found["episodes"].to_dict() == {
        f"{name}_{side}": count
        for name in ("return", "success")
        for side, count in (("fresh", 3), ("seen", 2), ("gap", 5))
    }


@pytest.mark.parametrize(
    "number, side, other, word", [(-1, "fresh", "seen", "a training"), (0, "seen", "fresh", "a fresh")]
)
def test_without_one_side_there_is_no_gap(number, side, other, word):
    found = scores(episodes([number] * 3, [1.0, 2, 3], [True] * 3))
    assert found.loc[f"return_{side}", "value"] == 2
    for name in (f"return_{other}", "return_gap", f"success_{other}", "success_gap"):
        assert found.loc[name, "status"] == f"no episode in {word} environment"
        assert pd.isna(found.loc[name, "value"])


def test_an_environment_that_is_no_distribution_has_none():
    with pytest.raises(ArtifactError, match="final_training_environment"):
        scores(episodes([0], [1.0], [True]).drop(columns="final_training_environment"))
