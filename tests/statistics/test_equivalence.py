import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from seedbed.statistics.equivalence import paired_equivalence_test
from seedbed.statistics.unpaired import student_t_test

REFERENCE = Path(__file__).parents[1] / "reference/statistics/equivalence_tost.json"
CASES = json.loads(REFERENCE.read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["name"])
def test_tost_equals_the_reference(case):
    inputs, expected = case["inputs"], case["expected"]
    result = paired_equivalence_test(inputs["x"], inputs["y"], low=inputs["low"], high=inputs["high"])
    assert result.pvalue == pytest.approx(expected["p_overall"], rel=1e-9)
    for name in ("t_lower", "p_lower", "t_upper", "p_upper"):
        assert getattr(result, name) == pytest.approx(expected[name], rel=1e-9, abs=1e-9)
    assert (result.pvalue < 0.05) == expected["equivalent_at_0_05"]


@given(st.lists(st.floats(-5, 5), min_size=3, max_size=12), st.floats(0.01, 5))
@settings(max_examples=100, deadline=None)
def test_equivalence_is_an_interval_within_the_margins(differences, margin):
    x = np.array(differences)
    result = paired_equivalence_test(x, np.zeros(x.size), low=-margin, high=margin, confidence=0.9)
    mirrored = paired_equivalence_test(np.zeros(x.size), x, low=-margin, high=margin)
    assert result.pvalue == pytest.approx(mirrored.pvalue, rel=1e-9)
    if abs(result.pvalue - 0.05) > 1e-9:
        assert (result.pvalue < 0.05) == (-margin < result.low and result.high < margin)


def test_ugly_samples():
    same = paired_equivalence_test([1, 2, 3], [1, 2, 3], low=-0.1, high=0.1)
    assert (same.pvalue, same.mean_difference) == (0, 0)
    far = paired_equivalence_test([3, 4, 5], [1, 2, 3], low=-0.1, high=0.1)
    assert (far.pvalue, far.p_lower, far.p_upper) == (1, 0, 1)
    assert math.isnan(paired_equivalence_test([1, math.nan], [1, 2], low=-1, high=1).pvalue)
    assert math.isnan(paired_equivalence_test([1], [2], low=-1, high=1).pvalue)
    with pytest.raises(ValueError, match="low < high"):
        paired_equivalence_test([1, 2], [1, 2], low=1, high=-1)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_student_equals_scipy(alternative):
    generator = np.random.default_rng(3)
    x, y = generator.normal(0.4, 1, 12), generator.normal(0, 3, 30)
    expected = stats.ttest_ind(x, y, equal_var=True, alternative=alternative)
    result = student_t_test(x, y, alternative=alternative)
    assert (result.statistic, result.pvalue) == pytest.approx(
        (expected.statistic, expected.pvalue), rel=1e-12
    )
    interval = stats.ttest_ind(x, y).confidence_interval(0.95)
    assert (result.low, result.high) == pytest.approx((interval.low, interval.high), rel=1e-12)
    assert student_t_test([1, 1], [2, 2]).statistic == -math.inf
