import json
import math
from pathlib import Path

import numpy as np
import pytest

from seedbed.statistics.design import (
    _sign_flip_pvalues,
    fewest_pairs,
    simulated_power,
    smallest_corrected_p,
    t_power,
    t_sample_size,
)
from seedbed.statistics.multiplicity import adjust
from seedbed.statistics.paired import sign_flip_test

REFERENCE = Path(__file__).parents[1] / "reference" / "statistics"
CASES = json.loads((REFERENCE / "power_analysis.json").read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["name"])
def test_t_power_matches_reference(case):
    given, expected = case["inputs"], case["expected"]

    def close(value):
        return pytest.approx(value, rel=case["rel_tol"])

    effect, alpha = given["effect"], given["alpha"]
    pairs = t_sample_size(effect, given["power"], alpha=alpha)
    groups = t_sample_size(effect, given["power"], alpha=alpha, paired=False)
    assert pairs == close(expected["n_pairs_real"])
    assert math.ceil(pairs) == expected["n_pairs_paired_t"]
    assert groups == close(expected["n_per_group_real"])
    assert math.ceil(groups) == expected["n_per_group_independent_t"]
    assert t_power(effect, 5, alpha=alpha) == close(expected["power_with_5_pairs"])
    assert t_power(effect, 5, alpha=alpha, paired=False) == close(expected["power_with_5_per_group"])
    assert t_power(effect, 10, alpha=alpha, paired=False) == close(expected["power_with_10_per_group"])


def test_simulation_agrees_with_the_formula():
    result = simulated_power(8, 1.2, test="t", seed=1, simulations=8_000)
    assert result.power == pytest.approx(t_power(1.2, 8), abs=4 * result.standard_error)


@pytest.mark.parametrize("test,n", [("t", 6), ("sign_flip", 6), ("sign_flip", 10), ("sign_flip", 20)])
def test_no_effect_rejects_no_more_than_alpha(test, n):
    result = simulated_power(n, 0.0, test=test, seed=2, simulations=4_000, draws=199)
    assert result.power <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 4_000)


@pytest.mark.parametrize("n", [2, 5, 9])
def test_simulated_p_is_that_of_the_test_itself(n):
    d = np.random.default_rng(n).normal(0.5, 1, (20, n))
    p = _sign_flip_pvalues(d, None, 0)
    assert list(p) == [sign_flip_test(row, np.zeros(n)).pvalue for row in d]


def test_a_design_that_cannot_reject_says_so_without_simulating():
    result = simulated_power(5, 10.0, seed=1)
    assert result.power == 0.0
    assert "cannot reject" in result.note
    assert simulated_power(8, 3.0, seed=1, comparisons=4).power > 0.9
    assert simulated_power(7, 3.0, seed=1, comparisons=4).power == 0.0
    assert math.isnan(simulated_power(1, 1.0, seed=1).power)


def test_pilot_values_lend_their_shape_and_must_vary():
    skewed = np.random.default_rng(0).exponential(3.0, 30)
    a = simulated_power(10, 0.9, seed=3, pilot=skewed, simulations=500)
    assert a == simulated_power(10, 0.9, seed=3, pilot=100 + 7 * skewed, simulations=500)
    assert a != simulated_power(10, 0.9, seed=3, simulations=500)
    with pytest.raises(ValueError, match="pilot"):
        simulated_power(10, 0.9, seed=3, pilot=[1.0, 1.0])
    with pytest.raises(ValueError, match="seed"):
        simulated_power(10, 0.9, seed=None)


def test_smallest_p_after_correction_and_fewest_pairs():
    """Five seeds cannot decide anything; eight decide four comparisons; all ten pairs need nine."""
    assert smallest_corrected_p(5, 1) == 0.0625
    assert smallest_corrected_p(8, 4) == pytest.approx(0.03125)
    assert smallest_corrected_p(5, 4) == 0.25
    assert smallest_corrected_p(3, 10) == 1.0
    assert smallest_corrected_p(8, 10, correction="bh") == smallest_corrected_p(8, 1)
    assert fewest_pairs(10) == 9
    assert fewest_pairs(4) == 8
    assert fewest_pairs(1) == 6
    assert math.isnan(smallest_corrected_p(1, 2))
    with pytest.raises(ValueError, match="comparisons"):
        smallest_corrected_p(5, 0)
    with pytest.raises(ValueError, match="alpha"):
        fewest_pairs(3, alpha=0)


@pytest.mark.parametrize("correction", ["holm", "bh", "bonferroni"])
@pytest.mark.parametrize("m", [1, 4, 10])
def test_smallest_corrected_p_is_the_correction_of_a_family_at_its_floor(correction, m):
    floor = adjust([2 / 2**9] * m, correction).pvalues
    assert floor == pytest.approx([smallest_corrected_p(9, m, correction=correction)] * m)


@pytest.mark.parametrize("effect,power", [(0.0, 0.8), (math.nan, 0.8), (0.5, 0.01), (0.5, 1.0)])
def test_impossible_wishes_are_refused(effect, power):
    with pytest.raises(ValueError, match="effect"):
        t_sample_size(effect, power)


def test_a_huge_effect_needs_two_pairs():
    assert t_sample_size(50.0, 0.8) == 2.0
    assert math.isnan(t_power(0.5, 1))


@pytest.mark.parametrize("n", [2, 5, 10, 51, 501])
def test_t_power_is_a_probability_that_grows_with_the_effect(n):
    powers = [t_power(d, n) for d in (0.0, 0.1, 0.5, 1, 2, 5, 10, 30)]
    assert powers[0] == pytest.approx(0.05)
    assert np.all(np.diff(powers) >= -1e-12)
    assert powers[-1] <= 1
    assert t_power(-0.7, n) == pytest.approx(t_power(0.7, n), rel=1e-9)
