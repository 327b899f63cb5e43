import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedbed.metrics.calibration import brier_score, calibration, reliability, return_calibration

REFERENCE = Path(__file__).parents[1] / "reference/statistics/calibration.json"


@pytest.mark.parametrize("case", json.loads(REFERENCE.read_text())["cases"], ids=lambda c: c["name"])
def test_errors_match_reference(case):
    given_, expected = case["inputs"], case["expected"]
    width = calibration(given_["predicted"], given_["outcome"], given_["n_bins"], "equal_width")
    mass = calibration(given_["predicted"], given_["outcome"], given_["n_bins"])
    found = {
        "ece_equal_width": width.expected_error,
        "mce_equal_width": width.largest_error,
        "ece_equal_mass": mass.expected_error,
        "brier": width.brier,
    }
    assert set(found) == set(expected)
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=case["rel_tol"], abs=1e-9), name


def test_reliability_by_hand():
    table = reliability([0.9, 0.1, 0.2, 0.8, 0.7], [1, 0, 1, 1, 0], 2)
    assert table.count.tolist() == [3, 2]
    assert table.predicted == pytest.approx([(0.1 + 0.2 + 0.7) / 3, 0.85])
    assert table.observed == pytest.approx([1 / 3, 1])


@pytest.mark.parametrize("bins", [10, 100, 7])
def test_printed_edges_belong_to_the_upper_bin(bins):
    edges = [round(i / bins, 2) for i in range(bins)] if bins != 7 else [i / 7 for i in range(7)]
    assert reliability(edges, np.zeros(bins), bins, "equal_width").count.tolist() == [1] * bins
    assert reliability([1.0, 1.0], [1, 1], bins, "equal_width").predicted.tolist() == [1.0]


def test_equal_mass_needs_a_prediction_per_bin():
    few = calibration([0.2, 0.4], [0, 1], 3)
    assert math.isnan(few.expected_error)
    assert math.isnan(few.largest_error)
    assert few.brier == pytest.approx((0.04 + 0.36) / 2)


@given(st.integers(0, 2**32 - 1), st.integers(1, 30))
def test_one_bin_compares_the_means_and_errors_are_ordered(seed, bins):
    generator = np.random.default_rng(seed)
    predicted = generator.random(40)
    outcome = generator.random(40) < 0.3
    one = calibration(predicted, outcome, 1)
    assert one.expected_error == pytest.approx(abs(predicted.mean() - outcome.mean()))
    for binning in ("equal_mass", "equal_width"):
        found = calibration(predicted, outcome, bins, binning)
        assert one.expected_error - 1e-12 <= found.expected_error <= found.largest_error + 1e-12
        assert found.reliability.count.sum() == found.n == 40


def test_calibrated_predictions_have_a_small_error():
    """200,000 outcomes drawn from their predictions, 10 bins: each share is within 4 standard errors."""
    generator = np.random.default_rng(1)
    predicted = generator.random(200_000)
    found = calibration(predicted, generator.random(200_000) < predicted)
    assert found.largest_error < 4 * math.sqrt(0.25 / 20_000)
    assert found.brier == pytest.approx(1 / 6, abs=0.002)  # the mean of p (1 - p)


def test_returns_are_calibrated_by_a_line():
    predicted = np.array([-3.0, 20.0, 55.0, 90.0, 140.0])
    realised = np.array([1.0, 18.0, 40.0, 100.0, 120.0])
    found = return_calibration(predicted, realised)
    assert (found.slope, found.intercept) == pytest.approx(tuple(np.polyfit(predicted, realised, 1)))
    exact = return_calibration(predicted, 2 * predicted - 7)
    assert (exact.slope, exact.intercept, exact.n) == pytest.approx((2, -7, 5))
    assert math.isnan(return_calibration([4.0, 4.0], [1.0, 2.0]).slope)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: calibration([70.0], [1]), "return_calibration"),
        (lambda: calibration([0.5], [0.5]), "0 or 1"),
        (lambda: calibration([0.5, math.nan], [0, 1]), "in \\[0, 1\\]"),
        (lambda: brier_score([], []), "n >= 1"),
        (lambda: reliability([0.5], [1], 0), "bins >= 1"),
        (lambda: reliability([0.5], [1], 2, "quantile"), "equal_mass, equal_width"),
        (lambda: return_calibration([1.0, math.inf], [1.0, 2.0]), "finite"),
        (lambda: return_calibration([1.0], [1.0, 2.0]), "shapes"),
    ],
)
def test_bad_input_is_refused_in_words(call, words):
    with pytest.raises(ValueError, match=words):
        call()
