import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedbed.statistics.intervals import proportion_interval
from seedbed.statistics.survival import (
    cumulative_incidence,
    kaplan_meier,
    log_rank,
    restricted_mean,
)

REFERENCE = Path(__file__).parents[1] / "reference" / "statistics"
# mastered at 2 and 5, quit at 3, still going at 4 and at the limit 6
TIMES, EVENTS = np.array([2, 3, 4, 5, 6]), np.array([1, 2, 0, 1, 0])
rows = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 2)), min_size=1, max_size=14)


def cases(topic):
    return json.loads((REFERENCE / f"{topic}.json").read_text())["cases"]


def redistributed(times, events, at):
    """Incidence by redistribution to the right: each censored row hands its weight to those still there."""
    order = np.lexsort((events == 0, times))  # events before censorings at one time
    t, e = np.asarray(times)[order], np.asarray(events)[order]
    weight = np.full(t.size, 1 / t.size)
    for i in range(t.size):
        if e[i] == 0 and i + 1 < t.size:
            weight[i + 1 :] += weight[i] / (t.size - i - 1)
            weight[i] = 0.0
    return weight[(e == 1) & (t <= at)].sum()


@pytest.mark.parametrize("case", cases("kaplan_meier"), ids=lambda c: c["name"])
def test_kaplan_meier_matches_reference(case):
    given_, expected = case["inputs"], case["expected"]
    result = kaplan_meier(given_["times"], given_["reached"])

    def close(value):
        return pytest.approx(value, rel=case["rel_tol"], abs=1e-9)

    assert list(result.times) == expected["event_times"]
    assert list(result.survival) == close(expected["survival_after_event"])
    assert list(result.standard_error) == close(expected["greenwood_se"])
    assert result.median == expected["median_time"]
    assert (result.n, result.n_events) == (expected["n"], expected["n_reached"])
    assert result.n_events / result.n == close(expected["success_rate"])
    mean = restricted_mean(given_["times"], given_["reached"], given_["horizon"])
    assert mean.estimate == close(expected["rmst_to_horizon"])
    naive = expected["naive_mean_of_finishers_only"]
    assert naive is None or mean.estimate > 1.1 * naive
    assert bool(result.note) == (expected["n_reached"] == 0)


@pytest.mark.parametrize("case", cases("log_rank"), ids=lambda c: c["name"])
def test_log_rank_matches_reference(case):
    given_, expected = case["inputs"], case["expected"]
    groups = [given_[k] for k in ("times_a", "reached_a", "times_b", "reached_b")]
    result = log_rank(*groups)
    assert result.statistic == pytest.approx(expected["chi2"], rel=case["rel_tol"])
    assert result.pvalue == pytest.approx(expected["p"], rel=case["rel_tol"])
    assert result.df == expected["df"]
    assert log_rank(*groups[2:], *groups[:2]).statistic == pytest.approx(result.statistic, rel=1e-9)


def test_incidence_by_hand():
    """F(2) = 1/5; quit at 3: S = 3/5; one leaves at 4; of two left one masters: 1/5 + 3/5 * 1/2."""
    result = cumulative_incidence(TIMES, EVENTS)
    assert list(result.times) == [2, 5]
    assert list(result.incidence) == pytest.approx([0.2, 0.5])
    assert result.median == 5
    assert (result.n_events, result.n_competing, result.n_censored) == (2, 1, 2)
    assert result.at(4.9).estimate == pytest.approx(0.2)
    assert result.at(1).estimate == 0.0


@settings(max_examples=150, deadline=None)
@given(rows)
def test_incidence_equals_redistribution_to_the_right(data):
    times, events = map(np.array, zip(*data, strict=True))
    result = cumulative_incidence(times, events)
    for t, share in zip(result.times, result.incidence, strict=True):
        assert share == pytest.approx(redistributed(times, events, t), abs=1e-12)
    assert np.all(np.diff(result.incidence) >= 0)
    assert np.all((result.low <= result.incidence + 1e-12) & (result.incidence <= result.high + 1e-12))
    assert np.all(result.high > result.low)
    assert np.all((result.low >= 0) & (result.high <= 1))


@settings(max_examples=80, deadline=None)
@given(rows, st.randoms())
def test_causes_and_survivors_make_one_and_order_does_not_matter(data, random):
    times, events = map(np.array, zip(*data, strict=True))
    exchanged = np.array([0, 2, 1])[events]
    end = float(times[events > 0].max()) if np.any(events) else 1.0
    total = [cumulative_incidence(times, e).at(end).estimate for e in (events, exchanged)]
    still = kaplan_meier(times, (events > 0).astype(int)).survival
    assert sum(total) + (still[-1] if still.size else 1.0) == pytest.approx(1.0)
    random.shuffle(data)
    shuffled = cumulative_incidence(*map(np.array, zip(*data, strict=True)))
    np.testing.assert_array_equal(shuffled.incidence, cumulative_incidence(times, events).incidence)


def test_without_early_censoring_it_is_the_plain_share_with_its_wilson_interval():
    """The interview study: everybody is followed to mastery, quitting or the step limit."""
    generator = np.random.default_rng(5)
    times, events = generator.integers(1, 30, 60), generator.integers(1, 3, 60)
    times, events = np.append(times, [30] * 15), np.append(events, [0] * 15)
    result = cumulative_incidence(times, events)
    for t, share, error, low, high in zip(
        result.times, result.incidence, result.standard_error, result.low, result.high, strict=True
    ):
        mastered = int(np.sum((times <= t) & (events == 1)))
        wilson = proportion_interval(mastered, 75)
        assert share == pytest.approx(mastered / 75)
        assert error == pytest.approx(math.sqrt(share * (1 - share) / 75))
        assert (low, high) == pytest.approx((wilson.low, wilson.high))


@pytest.mark.slow
def test_standard_error_agrees_with_the_bootstrap_under_censoring():
    """4,000 resamples of 150 rows with censoring throughout; the SD of the bootstrap within 6 %."""
    generator = np.random.default_rng(2)
    times, events = generator.integers(1, 25, 150), generator.integers(0, 3, 150)
    result = cumulative_incidence(times, events).at(15)
    boot = []
    for _ in range(4_000):
        i = generator.integers(0, 150, 150)
        boot.append(cumulative_incidence(times[i], events[i]).at(15).estimate)
    assert result.standard_error == pytest.approx(np.std(boot), rel=0.06)


def test_treating_quits_as_censored_overstates_mastery():
    """Half of the learners quit early, half of the rest master late: 25 % do, Kaplan-Meier says 50 %."""
    times = np.array([5] * 20 + [9] * 10 + [10] * 10)
    events = np.array([2] * 20 + [1] * 10 + [0] * 10)
    assert cumulative_incidence(times, events).at(10).estimate == pytest.approx(0.25)
    wrong = kaplan_meier(times, np.where(events == 2, 0, events))
    assert 1 - wrong.survival[-1] == pytest.approx(0.5)
    with pytest.raises(ValueError, match="competing"):
        kaplan_meier(times, events)


def test_restricted_mean_counts_quitters_with_the_horizon():
    times, events = np.array([3, 8, 2, 10, 10]), np.array([1, 1, 2, 2, 0])
    result = restricted_mean(times, events, 10)
    assert result.estimate == pytest.approx(np.mean([3, 8, 10, 10, 10]))
    shorter = restricted_mean(times, events, 5)
    assert shorter.estimate == pytest.approx(np.mean([3, 5, 5, 5, 5]))


def test_restricted_mean_is_not_known_beyond_what_was_followed():
    result = restricted_mean([3, 5], [1, 0], 10)
    assert math.isnan(result.estimate)
    assert "followed to 5" in result.note
    assert restricted_mean([3, 5], [1, 1], 10).estimate == 4.0
    with pytest.raises(ValueError, match="horizon"):
        restricted_mean([3], [1], 0)


def test_median_not_reached_and_exactly_half():
    assert cumulative_incidence([1, 2, 3, 3, 3], [1, 1, 0, 2, 2]).median is None
    assert cumulative_incidence(range(1, 7), [1, 1, 1, 0, 0, 0]).median == 3
    assert cumulative_incidence(range(12), [1] * 12).incidence[5] < 0.5  # a half, but for rounding
    assert cumulative_incidence(range(12), [1] * 12).median == 5


def test_all_censored_is_not_estimable():
    result = cumulative_incidence([10, 10, 10], [0, 0, 0])
    assert result.times.size == 0
    assert result.median is None
    assert "not estimable: none of 3" in result.note
    at_end = result.at(10)
    wilson = proportion_interval(0, 3)
    assert (at_end.estimate, at_end.low, at_end.high) == (0.0, wilson.low, pytest.approx(wilson.high))
    assert math.isnan(result.at(11).estimate)
    assert restricted_mean([10, 10], [0, 0], 10).note.startswith("no event")


def test_all_quit_and_all_mastered_have_no_zero_width_interval():
    for code, share in ((2, 0.0), (1, 1.0)):
        result = cumulative_incidence([4, 5, 6, 6], [code] * 4).at(6)
        assert result.estimate == pytest.approx(share)
        assert result.high - result.low > 0.4


def test_empty_input():
    result = cumulative_incidence([], [])
    assert result.n == 0
    assert "no row" in result.note
    assert math.isnan(result.at(3).estimate)
    assert math.isnan(restricted_mean([], [], 5).estimate)
    assert kaplan_meier([], []).median is None


@pytest.mark.parametrize(
    "times,events,words",
    [
        ([1, math.nan], [1, 0], "row 1"),
        ([1, -2], [1, 0], "row 1"),
        ([1, 2], [1, 3], "events must be"),
        ([1, 2], [1], "one length"),
    ],
)
def test_malformed_rows_are_named(times, events, words):
    with pytest.raises(ValueError, match=words):
        cumulative_incidence(times, events)


def test_log_rank_not_testable():
    assert "empty" in log_rank([], [], [1, 2], [1, 1]).note
    assert "no event" in log_rank([3, 4], [0, 2], [1, 2], [0, 0]).note
    assert math.isnan(log_rank([3, 4], [0, 0], [1, 2], [0, 0]).pvalue)
    assert "never at risk together" in log_rank([5, 6], [1, 1], [1, 2], [0, 0]).note
    assert log_rank(TIMES, EVENTS, TIMES, EVENTS).statistic == pytest.approx(0.0, abs=1e-12)


def test_log_rank_holds_its_level():
    """2,000 pairs of like groups of 25 rejected at 5 %; tolerance four binomial standard errors."""
    generator, rejected = np.random.default_rng(8), 0
    for _ in range(2_000):
        times = np.minimum(generator.exponential(10, (2, 25)), 12)
        events = (times < 12).astype(int)
        rejected += log_rank(times[0], events[0], times[1], events[1]).pvalue <= 0.05
    assert rejected / 2_000 == pytest.approx(0.05, abs=4 * math.sqrt(0.05 * 0.95 / 2_000))
