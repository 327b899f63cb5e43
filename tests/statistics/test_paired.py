import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from seedbed.statistics.normality import anderson_darling, shapiro_wilk
from seedbed.statistics.paired import (
    paired_t_test,
    shapiro_on_differences,
    sign_flip_test,
    sign_test,
    smallest_attainable_p,
    wilcoxon_signed_rank,
)

REFERENCE = Path(__file__).parents[1] / "reference" / "statistics"
TESTS = [sign_flip_test, paired_t_test, wilcoxon_signed_rank, sign_test]
X = np.array([9.6, 8.9, 10.3, 6.4, 10.6, 7.7, 9.1])
Y = np.array([9.1, 9.2, 8.8, 6.0, 9.9, 7.9, 8.0])


def cases(topic):
    return json.loads((REFERENCE / f"{topic}.json").read_text())["cases"]


def close(value, case):
    value = math.inf if value == "inf" else value
    return pytest.approx(value, rel=case["rel_tol"], abs=1e-9)


@pytest.mark.parametrize("case", cases("paired_t"), ids=lambda c: c["name"])
def test_paired_t_matches_reference(case):
    given_, expected = case["inputs"], case["expected"]
    result = paired_t_test(given_["x"], given_["y"], confidence=given_["confidence"])
    assert result.statistic == close(expected["t"], case)
    assert result.pvalue == close(expected["p_two_sided"], case)
    assert result.mean_difference == close(expected["mean_difference"], case)
    if "df" not in expected:
        assert "zero variance" in result.note
        assert math.isnan(result.low)
        return
    assert result.df == expected["df"]
    assert (result.low, result.high) == close((expected["ci_low"], expected["ci_high"]), case)
    for side in ("greater", "less"):
        one_sided = paired_t_test(given_["x"], given_["y"], alternative=side)
        assert one_sided.pvalue == close(expected[f"p_{side}"], case)


@pytest.mark.parametrize("case", cases("permutation_paired_exact"), ids=lambda c: c["name"])
def test_sign_flip_matches_reference_exactly_and_by_sampling(case):
    x, y, expected = case["inputs"]["x"], case["inputs"]["y"], case["expected"]
    exact = sign_flip_test(x, y)
    assert exact.exact
    assert exact.arrangements == expected["n_arrangements"]
    assert exact.pvalue == close(expected["p_two_sided"], case)
    assert sign_flip_test(x, y, alternative="greater").pvalue == close(expected["p_greater"], case)
    sampled = sign_flip_test(x, y, exact_limit=0, draws=9_999, seed=1)
    p = exact.pvalue
    assert sampled.pvalue == pytest.approx(p, abs=4 * math.sqrt(p * (1 - p) / 9_999))
    assert not sampled.exact


@pytest.mark.parametrize("case", cases("wilcoxon_signed_rank"), ids=lambda c: c["name"])
def test_wilcoxon_matches_reference(case):
    x, y, expected = case["inputs"]["x"], case["inputs"]["y"], case["expected"]
    if "significant" in expected:  # all equal: p is 1 or undefined, never significant
        result = wilcoxon_signed_rank(x, y)
        assert result.pvalue == 1.0
        assert result.zeros == 4
        assert "zero" in result.note
        return
    for zero_method, correction in itertools.product(("wilcox", "pratt", "zsplit"), (False, True)):
        result = wilcoxon_signed_rank(
            x, y, zero_method=zero_method, method="asymptotic", correction=correction
        )
        wanted = expected[f"{zero_method}_asymptotic_correction_{str(correction).lower()}"]
        assert result.statistic == close(wanted["statistic"], case)
        assert result.pvalue == close(wanted["p_two_sided"], case)
    exact, wanted = wilcoxon_signed_rank(x, y), expected["wilcox_exact_enumerated"]
    assert exact.exact
    assert (exact.w_plus, exact.w_minus) == (wanted["w_plus"], wanted["w_minus"])
    assert exact.n - exact.zeros == wanted["n_nonzero"]
    assert exact.pvalue == close(wanted["p_two_sided"], case)


@pytest.mark.parametrize("case", cases("sign_test"), ids=lambda c: c["name"])
def test_sign_test_matches_reference(case):
    x, y, expected = case["inputs"]["x"], case["inputs"]["y"], case["expected"]
    result = sign_test(x, y)
    assert (result.statistic, result.losses, result.ties) == tuple(
        expected[k] for k in ("wins", "losses", "ties")
    )
    assert result.pvalue == close(expected["p_two_sided"], case)
    assert sign_test(x, y, alternative="greater").pvalue == close(expected["p_greater"], case)
    assert result.win_rate_excluding_ties == close(expected["win_rate_excluding_ties"], case)
    assert result.win_rate_half_ties == close(expected["win_rate_half_ties"], case)


@pytest.mark.parametrize("case", cases("normality"), ids=lambda c: c["name"])
def test_normality_matches_reference(case):
    x, expected = np.array(case["inputs"]["x"]), case["expected"]
    result = shapiro_wilk(x)
    assert (result.statistic, result.pvalue) == close((expected["w"], expected["p"]), case)
    assert anderson_darling(x).statistic == close(expected["anderson_a2"], case)
    on_differences = shapiro_on_differences(x + 1, np.ones(x.size))
    assert on_differences.statistic == pytest.approx(result.statistic, rel=1e-9)


@pytest.mark.parametrize("zero_method", ["wilcox", "pratt", "zsplit"])
@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_exact_wilcoxon_is_the_share_of_all_sign_patterns(zero_method, alternative):
    d = np.array([0.0, 1, -1, 2, 3, 3, -4, 0, 5])
    kept = d[d != 0] if zero_method == "wilcox" else d
    ranks = stats.rankdata(np.abs(kept))[kept != 0]
    signs = np.array(list(itertools.product((-1, 1), repeat=ranks.size)))
    sums = signs @ ranks
    observed = float(np.sign(kept[kept != 0]) @ ranks)
    extreme = {"two-sided": abs(sums) >= abs(observed), "greater": sums >= observed, "less": sums <= observed}
    result = wilcoxon_signed_rank(d, np.zeros(9), zero_method=zero_method, alternative=alternative)
    assert result.pvalue == pytest.approx(np.mean(extreme[alternative]), rel=1e-12)


def test_hodges_lehmann_by_enumeration():
    """The bounds are where the exact test stops rejecting: shift y until p crosses .05."""
    x = np.array([1.1, 2.7, 0.4, 3.9, 5.3, -0.8, 2.2, 4.1])
    zero = np.zeros(x.size)
    result = wilcoxon_signed_rank(x, zero)
    pair_means = [(a + b) / 2 for a, b in itertools.combinations_with_replacement(x, 2)]
    assert result.estimate == pytest.approx(np.median(pair_means))
    for bound, outward in ((result.low, -1e-6), (result.high, 1e-6)):
        assert wilcoxon_signed_rank(x, zero + bound + outward).pvalue <= 0.05
        assert wilcoxon_signed_rank(x, zero + bound - outward).pvalue > 0.05


def test_five_pairs_cannot_give_a_95_percent_hodges_lehmann_interval():
    result = wilcoxon_signed_rank(X[:5], Y[:5])
    assert math.isnan(result.low)
    assert "no 95 %" in result.note
    assert wilcoxon_signed_rank(X[:5], Y[:5], confidence=0.9).low < result.estimate


@pytest.mark.parametrize("n", range(2, 12))
@pytest.mark.parametrize(
    "name,test", [("sign_flip", sign_flip_test), ("wilcoxon", wilcoxon_signed_rank), ("sign_test", sign_test)]
)
def test_smallest_p_is_what_one_sided_data_reach(n, name, test):
    x = np.arange(1.0, n + 1)
    assert test(x, np.zeros(n)).pvalue == pytest.approx(smallest_attainable_p(n, name), rel=1e-12)


def test_smallest_p_of_other_designs():
    assert smallest_attainable_p(5) == 0.0625
    assert smallest_attainable_p(8) == 0.0078125
    assert smallest_attainable_p((3, 3), "permutation") == pytest.approx(0.1)
    assert smallest_attainable_p((1, 1), "mann_whitney") == 1.0
    assert smallest_attainable_p(40, draws=9_999) == 1e-4
    assert smallest_attainable_p(3, "t") == 0.0
    assert math.isnan(smallest_attainable_p(1))
    with pytest.raises(ValueError, match="unknown test"):
        smallest_attainable_p(5, "anova")


def test_sampled_p_is_never_zero_and_needs_a_seed():
    x = np.arange(1.0, 31)
    result = sign_flip_test(x, np.zeros(30), seed=1, draws=999)
    assert result.pvalue == result.smallest_pvalue == pytest.approx(1e-3)
    with pytest.raises(ValueError, match="needs a seed"):
        sign_flip_test(x, np.zeros(30))


def test_rounding_makes_neither_ranks_nor_variance():
    """0.3 - 0.2 and 0.7 - 0.6 are one tie; a constant difference has no variance."""
    x, y = np.array([0.3, 0.7, 1.2, 0.9]), np.array([0.2, 0.6, 1.1, 0.8])
    assert len(set(x - y)) > 1
    assert "zero variance" in paired_t_test(x, y).note
    assert math.isinf(paired_t_test(x, y).statistic)
    assert "zero variance" in shapiro_on_differences(x, y).note
    assert sign_test([0.1 + 0.2, 1.0], [0.3, 0.0]).ties == 1
    assert wilcoxon_signed_rank([0.1 + 0.2, 1.0], [0.3, 0.0]).zeros == 1
    mixed = wilcoxon_signed_rank(np.array([0.3, 0.6, 1.2, 5]), np.array([0.2, 0.7, 1.1, 0]))
    assert mixed.w_minus == 2.0


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("x,y,words", [([], [], "n = 0"), ([1.0], [2.0], "n = 1")])
def test_too_few_pairs_are_not_testable(test, x, y, words):
    result = test(x, y)
    assert math.isnan(result.pvalue)
    assert words in result.note
    assert result.note.startswith("not testable")


@pytest.mark.parametrize("test", TESTS)
def test_missing_values_are_not_dropped(test):
    result = test([1.0, math.nan, 3.0], [0.0, 1.0, math.inf])
    assert math.isnan(result.pvalue)
    assert "2 of 3" in result.note


@pytest.mark.parametrize("test", TESTS)
def test_unequal_lengths_are_refused(test):
    with pytest.raises(ValueError, match="common seeds"):
        test([1.0, 2.0], [1.0, 2.0, 3.0])


@pytest.mark.parametrize("test", TESTS)
def test_all_equal_is_never_significant(test):
    p = test(X, X).pvalue
    assert math.isnan(p) or p == 1.0


def test_constant_difference_against_the_alternative():
    assert paired_t_test(X, X - 2, alternative="less").pvalue == 1.0
    assert paired_t_test(X, X - 2, alternative="greater").pvalue == 0.0


@pytest.mark.parametrize("test", TESTS)
def test_unknown_alternative_is_refused(test):
    with pytest.raises(ValueError, match="alternative"):
        test(X, Y, alternative="bigger")


values = st.lists(st.integers(-20, 20), min_size=2, max_size=10)


@pytest.mark.parametrize("test", TESTS)
@settings(max_examples=40, deadline=None)
@given(d=values, data=st.data())
def test_paired_tests_forget_order_and_mirror(test, d, data):
    x, y = np.array(d, float) / 8, np.zeros(len(d))
    order = data.draw(st.permutations(range(len(d))))
    plain, shuffled, mirrored = test(x, y), test(x[order], y[order]), test(y, x)
    assert shuffled.pvalue == pytest.approx(plain.pvalue, rel=1e-9, nan_ok=True)
    assert mirrored.pvalue == pytest.approx(plain.pvalue, rel=1e-12, nan_ok=True)
    assert math.isnan(plain.pvalue) or 0 <= plain.pvalue <= 1
    greater, less = test(x, y, alternative="greater"), test(y, x, alternative="less")
    assert greater.pvalue == pytest.approx(less.pvalue, rel=1e-12, nan_ok=True)


@settings(max_examples=25, deadline=None)
@given(d=st.lists(st.floats(-5, 5), min_size=2, max_size=9))
def test_sign_flip_agrees_with_brute_force_and_with_sampling(d):
    x, zero = np.array(d), np.zeros(len(d))
    sums = np.array(list(itertools.product((-1, 1), repeat=len(d)))) @ np.abs(x)
    brute = np.mean(np.abs(sums) >= abs(x.sum()) - 1e-9 * np.abs(x).sum())
    exact = sign_flip_test(x, zero)
    # values a hair apart may tie for one tolerance and not for the other; then the test says nothing
    loose = np.mean(np.abs(sums) >= abs(x.sum()) - 1e-6 * np.abs(x).sum())
    if brute == loose:
        assert exact.pvalue == brute
    assert exact.pvalue >= exact.smallest_pvalue
    sampled = sign_flip_test(x, zero, exact_limit=0, draws=1_999, seed=3)
    error = math.sqrt(max(exact.pvalue * (1 - exact.pvalue), 1e-4) / 1_999)
    assert sampled.pvalue == pytest.approx(exact.pvalue, abs=5 * error + 1 / 2_000)


def test_sampled_sign_flip_is_the_same_bytes_in_any_order():
    x = np.random.default_rng(0).normal(0.4, 1, 30)
    runs = [sign_flip_test(v, np.zeros(30), seed=9, draws=4_999) for v in (x, x[::-1], np.sort(x))]
    assert len({r.pvalue for r in runs}) == 1
    assert sign_flip_test(np.zeros(30), x, seed=9, draws=4_999).pvalue == runs[0].pvalue


@pytest.mark.parametrize("check", [shapiro_wilk, anderson_darling])
@pytest.mark.parametrize(
    "x,words", [([1.0, 2.0], "n = 2"), ([1.0] * 5, "variance"), ([1, 2, math.nan], "1 of 3")]
)
def test_normality_not_estimable(check, x, words):
    result = check(x)
    assert math.isnan(result.pvalue)
    assert words in result.note
