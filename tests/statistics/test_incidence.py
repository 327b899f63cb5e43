"""Cumulative incidence: quitting competes, seeds are the sample, a flat zero is flagged."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from seedbed.statistics.incidence import INCIDENCE_COLUMNS, NOBODY, incidence_table, seed_incidence
from seedbed.statistics.rates import rate_interval


def ends(*episodes, seed=0, mode="sampled"):
    """Episodes as (kind, length), kind in success, quit, limit."""
    kinds, lengths = zip(*episodes, strict=True)
    kinds = np.array(kinds)
    return pd.DataFrame(
        {
            "seed": seed,
            "policy_mode": mode,
            "episode": range(len(kinds)),
            "length": lengths,
            "success": kinds == "success",
            "terminated": kinds != "limit",
            "truncated": kinds == "limit",
        }
    )


def test_quitting_competes_and_is_not_censoring():
    """Kaplan-Meier with quits censored would say that everybody who stays masters: 1, where half do."""
    episodes = ends(("success", 8), ("quit", 3))
    table = incidence_table("e", "a", episodes, horizon=10).set_index("t")
    assert list(table.loc[[7, 8, 10], "incidence"]) == [0, 0.5, 0.5]
    assert list(table.loc[[2, 3, 10], "quit"]) == [0, 0.5, 0.5]


def test_the_last_point_is_the_share_of_all_episodes_even_with_limits_that_differ():
    episodes = ends(("success", 9), ("limit", 5), ("limit", 10), ("quit", 2))
    table = incidence_table("e", "a", episodes, horizon=10)
    assert table["incidence"].iloc[-1] == pytest.approx(0.25)
    assert table["quit"].iloc[-1] == pytest.approx(0.25)


def test_success_at_the_step_limit_is_success():
    episodes = ends(("limit", 10), ("limit", 10)).assign(success=[True, False], terminated=[True, True])
    table = incidence_table("e", "a", episodes, horizon=10).set_index("t")
    assert list(table.loc[[9, 10], "incidence"]) == [0, 0.5]
    assert table.loc[10, "quit"] == 0  # the step limit comes before frustration


def test_band_is_the_interval_of_a_rate_over_seeds():
    shares = np.array([0.9, 1.0, 1.0, 0.4])
    seeds = [
        ends(*[("success", 4)] * round(10 * p), *[("quit", 2)] * round(10 - 10 * p), seed=k)
        for k, p in enumerate(shares)
    ]
    table = incidence_table("e", "a", pd.concat(seeds), horizon=6)
    expected = rate_interval(shares, 10)
    last = table.iloc[-1]
    assert last["incidence"] == pytest.approx(shares.mean())
    assert (last["low"], last["high"]) == (expected.low, expected.high)
    assert stats.t.interval(0.95, 3, shares.mean(), stats.sem(shares))[1] > 1 > last["high"]
    assert last["n"] == 4
    assert (table["low"].iloc[0], table["high"].iloc[0]) == (0, rate_interval(np.zeros(4), 10).high)


def test_nobody_succeeding_is_a_flat_zero_and_says_so():
    table = incidence_table("e", "a", ends(("limit", 6), ("quit", 3)), horizon=6)
    assert (table["incidence"] == 0).all()
    assert set(table["note"]) == {NOBODY}
    assert table[["low", "high"]].isna().all(axis=None)
    assert (incidence_table("e", "a", ends(("success", 3)), horizon=6)["note"] == "").all()


def test_one_row_per_mode_and_step_and_one_seed_has_no_bounds():
    episodes = pd.concat([ends(("success", 2)), ends(("success", 3), mode="greedy")])
    table = incidence_table("e", "a", episodes, horizon=4)
    assert list(table["policy_mode"]) == ["greedy"] * 5 + ["sampled"] * 5
    assert list(table["t"]) == [0, 1, 2, 3, 4] * 2
    assert all(math.isnan(bound) for bound in table["low"])
    empty = incidence_table("e", "a", episodes.iloc[:0], horizon=4)
    assert list(empty.columns) == list(INCIDENCE_COLUMNS)
    assert len(empty) == 0


@given(st.lists(st.lists(st.integers(1, 12), min_size=1, max_size=30), min_size=2, max_size=4))
def test_where_all_succeed_sooner_or_later_bounds_hold_the_share_and_end_at_one(lengths):
    seeds = [ends(*(("success", n) for n in seed), seed=k) for k, seed in enumerate(lengths)]
    table = incidence_table("e", "a", pd.concat(seeds), horizon=12)
    assert table["incidence"].iloc[-1] == pytest.approx(1)
    assert table["high"].iloc[-1] == pytest.approx(1)
    assert (table["low"] <= table["incidence"] + 1e-12).all()
    assert (table["high"] >= table["incidence"] - 1e-12).all()
    assert table["low"].min() >= 0
    assert table["high"].max() <= 1


def test_an_episode_beyond_the_horizon_is_refused():
    with pytest.raises(ValueError, match="7 steps, more than the horizon 6"):
        incidence_table("e", "a", ends(("limit", 7)), horizon=6)


@given(st.lists(st.tuples(st.sampled_from(["success", "quit", "limit"]), st.integers(1, 12)), min_size=1))
def test_curves_are_the_plain_counts(episodes):
    """Every episode is followed to its end, so the estimate is a count, and both events never exceed one."""
    table, grid = ends(*episodes), np.arange(13)
    total = np.zeros(13)
    for event in ("success", "quit"):
        share = seed_incidence(table, grid, event)
        counted = [sum(kind == event and length <= t for kind, length in episodes) for t in grid]
        np.testing.assert_allclose(share, np.array(counted) / len(episodes), atol=1e-12)
        total += share
    assert (total <= 1 + 1e-12).all()
