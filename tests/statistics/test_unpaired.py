import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedbed.statistics.unpaired import mann_whitney, permutation_test, welch_t_test

REFERENCE = Path(__file__).parents[1] / "reference" / "statistics"
TESTS = [welch_t_test, permutation_test, mann_whitney]


def cases(topic):
    return json.loads((REFERENCE / f"{topic}.json").read_text())["cases"]


def close(value, case):
    return pytest.approx(value, rel=case["rel_tol"], abs=1e-9)


@pytest.mark.parametrize("case", cases("welch_t"), ids=lambda c: c["name"])
def test_welch_matches_reference_and_is_not_student(case):
    given_, expected = case["inputs"], case["expected"]
    result = welch_t_test(given_["x"], given_["y"], confidence=given_["confidence"])
    assert (result.statistic, result.df) == close((expected["t"], expected["df"]), case)
    assert result.pvalue == close(expected["p_two_sided"], case)
    assert result.mean_difference == close(expected["mean_difference"], case)
    assert (result.low, result.high) == close((expected["ci_low"], expected["ci_high"]), case)
    assert result.pvalue != pytest.approx(expected["student_p"], rel=1e-3)
    assert result.statistic != pytest.approx(expected["student_t"], rel=1e-3)


@pytest.mark.parametrize("case", cases("permutation_two_sample_exact"), ids=lambda c: c["name"])
def test_permutation_matches_reference_exactly_and_by_sampling(case):
    x, y, expected = case["inputs"]["x"], case["inputs"]["y"], case["expected"]
    exact = permutation_test(x, y)
    assert exact.exact
    assert exact.arrangements == expected["n_arrangements"]
    assert exact.pvalue == close(expected["p_two_sided"], case)
    assert permutation_test(x, y, alternative="greater").pvalue == close(expected["p_greater"], case)
    sampled = permutation_test(x, y, exact_limit=0, draws=9_999, seed=2)
    p = exact.pvalue
    assert sampled.pvalue == pytest.approx(p, abs=4 * math.sqrt(p * (1 - p) / 9_999))


@pytest.mark.parametrize("case", cases("mann_whitney"), ids=lambda c: c["name"])
def test_mann_whitney_matches_reference(case):
    x, y, expected = case["inputs"]["x"], case["inputs"]["y"], case["expected"]
    exact = mann_whitney(x, y)
    assert (exact.statistic, exact.u_y) == (expected["u_x"], expected["u_y"])
    assert exact.pvalue == close(expected["p_exact_enumerated_midranks"], case)
    assert exact.probability_x_greater == close(expected["probability_x_greater_half_ties"], case)
    for correction, key in ((True, "p_asymptotic_continuity"), (False, "p_asymptotic_no_continuity")):
        result = mann_whitney(x, y, method="asymptotic", correction=correction)
        assert result.pvalue == close(expected[key], case)


@settings(max_examples=40, deadline=None)
@given(
    x=st.lists(st.integers(0, 6), min_size=1, max_size=5),
    y=st.lists(st.integers(0, 6), min_size=1, max_size=5),
)
def test_exact_mann_whitney_and_permutation_agree_with_brute_force(x, y):
    pool, n, m = np.array(x + y, float), len(x), len(y)
    u, means = [], []
    for chosen in itertools.combinations(range(n + m), n):
        mask = np.zeros(n + m, bool)
        mask[list(chosen)] = True
        gaps = np.subtract.outer(pool[mask], pool[~mask])
        u.append(float(np.sum(gaps > 0) + np.sum(gaps == 0) / 2))
        means.append(pool[mask].mean() - pool[~mask].mean())
    u, means, observed = np.array(u), np.array(means), np.mean(x) - np.mean(y)
    result = mann_whitney(x, y)
    assert result.statistic == u[0]
    assert result.pvalue == pytest.approx(np.mean(abs(u - n * m / 2) >= abs(u[0] - n * m / 2)), rel=1e-12)
    greater = mann_whitney(x, y, alternative="greater")
    assert greater.pvalue == pytest.approx(np.mean(u >= u[0]), rel=1e-12)
    for alternative, extreme in (
        ("two-sided", abs(means) >= abs(observed) - 1e-9),
        ("greater", means >= observed - 1e-9),
        ("less", means <= observed + 1e-9),
    ):
        p = permutation_test(x, y, alternative=alternative).pvalue
        assert p == pytest.approx(np.mean(extreme), rel=1e-12)


numbers = st.lists(st.integers(-20, 20), min_size=2, max_size=6)


@pytest.mark.parametrize("test", TESTS)
@settings(max_examples=30, deadline=None)
@given(x=numbers, y=numbers)
def test_unpaired_tests_forget_order_and_mirror(test, x, y):
    x, y = np.array(x) / 4, np.array(y) / 4
    plain, mirrored = test(x, y), test(y, x)
    assert test(x[::-1], np.sort(y)).pvalue == pytest.approx(plain.pvalue, rel=1e-9, nan_ok=True)
    assert mirrored.pvalue == pytest.approx(plain.pvalue, rel=1e-9, nan_ok=True)
    assert math.isnan(plain.pvalue) or 0 <= plain.pvalue <= 1
    one_sided = test(x, y, alternative="greater").pvalue
    assert test(y, x, alternative="less").pvalue == pytest.approx(one_sided, rel=1e-9, nan_ok=True)


def test_sampled_permutation_is_seeded_never_zero_and_forgets_order():
    generator = np.random.default_rng(1)
    x, y = generator.normal(5, 1, 20), generator.normal(0, 1, 25)
    result = permutation_test(x, y, seed=4, draws=999)
    assert result.pvalue == 1e-3
    assert not result.exact
    near = generator.normal(4.6, 1, 25)
    again = [permutation_test(a, near, seed=4, draws=999).pvalue for a in (x, x[::-1])]
    assert again[0] == again[1] == permutation_test(near, x, seed=4, draws=999).pvalue
    with pytest.raises(ValueError, match="needs a seed"):
        permutation_test(x, y)


@pytest.mark.parametrize("test", TESTS)
def test_empty_and_missing_are_not_testable(test):
    for x, y, words in (([], [1.0, 2.0], "groups of 0 and 2"), ([1.0, math.nan], [1.0, 2.0], "1 of 4")):
        result = test(x, y)
        assert math.isnan(result.pvalue)
        assert words in result.note


def test_welch_without_variance():
    result = welch_t_test([2.0, 2.0], [1.0, 1.0, 1.0])
    assert (result.statistic, result.pvalue) == (math.inf, 0.0)
    assert math.isnan(result.low)
    assert "zero variance" in result.note
    assert math.isnan(welch_t_test([0.1 + 0.2] * 3, [0.3] * 3).pvalue)
    one_side = welch_t_test([2.0, 2.0, 2.0], [1.0, 1.5, 0.7])
    assert 0 < one_side.pvalue < 1
    assert "n" not in one_side.note


@pytest.mark.parametrize("test", [permutation_test, mann_whitney])
def test_all_values_equal_is_p_one(test):
    result = test([1.0, 1.0, 1.0], [1.0, 1.0])
    assert result.pvalue == 1.0
    assert result.note == "all values are equal"
