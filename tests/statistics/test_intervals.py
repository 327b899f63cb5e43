import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from seedbed.statistics.intervals import (
    BOOTSTRAP_METHODS,
    PROPORTION_METHODS,
    bootstrap_interval,
    mean_t_interval,
    proportion_interval,
    sd_interval,
)

REFERENCE = Path(__file__).parents[1] / "reference" / "statistics"
SAMPLE = [2.1, 3.4, 1.9, 5.6, 4.4, 3.3, 2.8]


def cases(topic):
    return json.loads((REFERENCE / f"{topic}.json").read_text())["cases"]


def close(value, case):
    return pytest.approx(value, rel=case["rel_tol"], abs=1e-9)


@pytest.mark.parametrize("case", [c for c in cases("confidence_intervals") if "x" in c["inputs"]])
def test_mean_t_matches_reference(case):
    x, expected = case["inputs"]["x"], case["expected"]
    result = mean_t_interval(x, case["inputs"]["confidence"])
    assert result.estimate == close(expected["mean"], case)
    assert result.standard_error == close(expected["standard_error"], case)
    assert result.standard_error * math.sqrt(result.n) == close(expected["sample_sd"], case)
    assert (result.low, result.high) == close((expected["ci_low"], expected["ci_high"]), case)
    assert sd_interval(x).estimate == close(expected["sample_sd"], case)


@pytest.mark.parametrize("case", [c for c in cases("confidence_intervals") if "n" in c["inputs"]])
@pytest.mark.parametrize("method", PROPORTION_METHODS)
def test_proportions_match_reference_and_are_not_wald(case, method):
    given_ = case["inputs"]
    result = proportion_interval(given_["successes"], given_["n"], given_["confidence"], method)
    assert (result.low, result.high) == close(tuple(case["expected"][method]), case)
    wald = case["expected"]["wald_not_recommended"]
    assert (result.low, result.high) != pytest.approx(tuple(wald), rel=1e-3, abs=1e-6)
    assert result.high > result.low


@pytest.mark.parametrize("successes,n", [(0, 1), (1, 1), (3, 7), (10, 10), (17, 40)])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_wilson_bounds_solve_the_score_equation(successes, n, confidence):
    """Independent of the closed form: at each bound p the score statistic is the normal quantile."""
    result = proportion_interval(successes, n, confidence)
    z = stats.norm.ppf(0.5 + confidence / 2)
    for bound in (result.low, result.high):
        if 0 < bound < 1:
            assert abs(successes / n - bound) / math.sqrt(bound * (1 - bound) / n) == pytest.approx(
                z, rel=1e-9
            )
    assert result.low == 0 if successes == 0 else result.low > 0
    assert result.high == 1 if successes == n else result.high < 1


@pytest.mark.parametrize("successes,n", [(0, 5), (2, 9), (9, 9)])
def test_clopper_pearson_tails_are_exact(successes, n):
    result = proportion_interval(successes, n, 0.9, "clopper_pearson")
    if successes:
        assert stats.binom.sf(successes - 1, n, result.low) == pytest.approx(0.05, rel=1e-9)
    if successes < n:
        assert stats.binom.cdf(successes, n, result.high) == pytest.approx(0.05, rel=1e-9)


@pytest.mark.parametrize("method", PROPORTION_METHODS)
@given(n=st.integers(1, 200), data=st.data())
def test_proportion_intervals_hold_their_estimate_and_mirror(method, n, data):
    k = data.draw(st.integers(0, n))
    result, mirrored = proportion_interval(k, n, method=method), proportion_interval(n - k, n, method=method)
    assert 0 <= result.low < result.high <= 1
    if method != "jeffreys":  # a posterior interval may leave out 0 and 1
        assert result.low <= result.estimate <= result.high
    assert result.low == pytest.approx(1 - mirrored.high, abs=1e-9)


@pytest.mark.parametrize("successes,n", [(3, 2), (-1, 4), (1.5, 4)])
def test_impossible_counts_are_refused(successes, n):
    with pytest.raises(ValueError, match="whole numbers"):
        proportion_interval(successes, n)


def test_no_trial_has_no_rate():
    result = proportion_interval(0, 0)
    assert math.isnan(result.estimate)
    assert math.isnan(result.low)
    assert "n = 0" in result.note


UGLY = [
    ([], "n = 0"),
    ([3.0], "n = 1"),
    ([1.0, math.nan, 2.0], "1 of 3 values are missing"),
    ([1.0, math.inf], "1 of 2 values are missing"),
    ([0.1 + 0.2, 0.3, 0.3], "zero variance"),
]


@pytest.mark.parametrize("interval", [mean_t_interval, sd_interval])
@pytest.mark.parametrize("x,words", UGLY)
def test_not_estimable_is_nan_bounds_and_words(interval, x, words):
    result = interval(x)
    assert math.isnan(result.low)
    assert math.isnan(result.high)
    assert result.note.startswith("not estimable")
    assert words in result.note


@pytest.mark.parametrize("method", BOOTSTRAP_METHODS)
@pytest.mark.parametrize("x,words", [*UGLY[:4], ([2.0, 2.0, 2.0], "same value")])
def test_bootstrap_not_estimable_is_nan_bounds_and_words(method, x, words):
    if x == [2.0, 2.0, 2.0] and method == "studentised":
        words = "undefined in"  # no resample has a standard error
    result = bootstrap_interval(x, np.mean, seed=0, method=method, draws=200)
    assert math.isnan(result.low)
    assert math.isnan(result.high)
    assert result.note.startswith("not estimable")
    assert words in result.note


def test_one_value_keeps_its_mean():
    assert mean_t_interval([3.0]).estimate == 3.0
    assert bootstrap_interval([3.0], np.mean, seed=1).estimate == 3.0


def test_sd_interval_inverts_the_chi_square():
    result = sd_interval(SAMPLE, 0.9)
    df, variance = len(SAMPLE) - 1, np.var(SAMPLE, ddof=1)
    assert stats.chi2.cdf(df * variance / result.high**2, df) == pytest.approx(0.05)
    assert stats.chi2.sf(df * variance / result.low**2, df) == pytest.approx(0.05)


@pytest.mark.parametrize("case", cases("bootstrap_one_sample"))
@pytest.mark.parametrize("method", ["bca", "percentile", "basic"])
def test_bootstrap_matches_reference(case, method):
    expected = case["expected"]
    result = bootstrap_interval(case["inputs"]["x"], np.mean, seed=11, method=method, draws=100_000)
    assert (result.low, result.high) == pytest.approx(tuple(expected[method]), abs=expected["abs_tol"], rel=0)
    assert result.standard_error == pytest.approx(expected["standard_error"], abs=expected["abs_tol"], rel=0)


def test_studentised_matches_a_plain_bootstrap_t():
    """Written out for the mean: t* = (mean* - mean) sqrt(n) / sd*, same draws."""
    x, n, draws = np.array(SAMPLE), len(SAMPLE), 20_000
    resamples = x[np.random.default_rng(3).integers(0, n, size=(draws, n))]
    sd = resamples.std(axis=1, ddof=1)
    keep = sd > 1e-9
    t = (resamples.mean(axis=1) - x.mean())[keep] / (sd[keep] / math.sqrt(n))
    error = x.std(ddof=1) / math.sqrt(n)
    expected = x.mean() - error * np.quantile(t, [0.975, 0.025])
    result = bootstrap_interval(x, np.mean, seed=3, method="studentised", draws=draws)
    assert (result.low, result.high) == pytest.approx(tuple(expected), rel=1e-9)


def test_percentile_agrees_with_full_enumeration():
    """All 4^4 resamples of four values, against 100,000 random ones."""
    x = np.array([0.0, 1.0, 3.0, 7.0])
    means = np.array([x[list(i)].mean() for i in np.ndindex(4, 4, 4, 4)])
    exact = np.quantile(means, [0.1, 0.9])
    result = bootstrap_interval(x, np.mean, seed=5, method="percentile", confidence=0.8, draws=100_000)
    assert (result.low, result.high) == pytest.approx(tuple(exact), abs=0.25)  # one step of the lattice


@pytest.mark.parametrize("method", BOOTSTRAP_METHODS)
def test_bootstrap_is_the_same_bytes_for_any_chunk(method):
    results = [
        bootstrap_interval(SAMPLE, np.mean, seed=7, method=method, draws=1_001, chunk=chunk)
        for chunk in (None, 1, 7, 500, 5_000)
    ]
    assert len({repr(r) for r in results}) == 1


def test_bootstrap_seed_is_required_and_used():
    with pytest.raises(ValueError, match="seed"):
        bootstrap_interval(SAMPLE, np.mean, seed=None)
    a, b, c = (bootstrap_interval(SAMPLE, np.mean, seed=s) for s in (1, 1, 2))
    assert a == b
    assert a != c


def test_bootstrap_leaves_the_global_generator_alone():
    np.random.seed(4)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    bootstrap_interval(SAMPLE, np.mean, seed=1)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.parametrize("method", BOOTSTRAP_METHODS)
def test_bootstrap_moves_and_scales_with_the_data(method):
    x = np.array(SAMPLE)
    plain = bootstrap_interval(x, np.mean, seed=2, method=method, draws=2_000)
    moved = bootstrap_interval(8 * x + 32, np.mean, seed=2, method=method, draws=2_000)
    assert (moved.low, moved.high) == pytest.approx((8 * plain.low + 32, 8 * plain.high + 32), rel=1e-9)


def test_pairs_are_resampled_together():
    """The difference of perfectly matched pairs never varies, whichever pairs are drawn."""
    x = np.array(SAMPLE)

    def difference(a, b, axis=-1):
        return (a - b).mean(axis)

    result = bootstrap_interval((x, x - 1), difference, seed=0, draws=500)
    assert result.estimate == pytest.approx(1.0)
    assert "same value" in result.note


def test_undefined_resamples_are_counted_and_too_many_are_refused():
    def ratio(x, axis=-1):
        return x.mean(axis) / np.where(np.ptp(x, axis=axis) > 0, np.ptp(x, axis=axis), np.nan)

    few = bootstrap_interval([1.0, 2.0, 4.0, 8.0, 9.0], ratio, seed=0, draws=5_000)
    assert "set aside" in few.note
    assert few.low < few.high
    many = bootstrap_interval([1.0, 2.0, 4.0], ratio, seed=0, draws=5_000)
    assert math.isnan(many.low)
    assert "undefined in" in many.note


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=12))
def test_t_interval_forgets_order_and_widens_with_confidence(values):
    x = np.array(values)
    result, reversed_ = mean_t_interval(x), mean_t_interval(x[::-1])
    if math.isnan(result.low):
        assert "zero variance" in result.note
        return
    assert (result.low, result.high) == pytest.approx((reversed_.low, reversed_.high), rel=1e-9, abs=1e-9)
    wide = mean_t_interval(x, 0.99)
    assert wide.low < result.low < result.estimate < result.high < wide.high


@pytest.mark.parametrize("confidence", [0, 1, 95])
def test_confidence_is_a_probability(confidence):
    with pytest.raises(ValueError, match="confidence"):
        mean_t_interval(SAMPLE, confidence)


def test_at_five_seeds_t_covers_95_and_percentile_about_83_percent():
    """4,000 normal samples of five; tolerance four binomial standard errors."""
    generator, repeats = np.random.default_rng(20), 4_000
    samples = generator.standard_normal((repeats, 5))
    t = [mean_t_interval(x) for x in samples]
    covered = np.mean([r.low <= 0 <= r.high for r in t])
    assert covered == pytest.approx(0.95, abs=4 * math.sqrt(0.95 * 0.05 / repeats))
    boot = [
        bootstrap_interval(x, np.mean, seed=i, method="percentile", draws=1_000)
        for i, x in enumerate(samples[:2_500])
    ]
    covered = np.mean([r.low <= 0 <= r.high for r in boot])
    assert covered == pytest.approx(0.834, abs=4 * math.sqrt(0.834 * 0.166 / 2_500))
