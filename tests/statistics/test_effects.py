import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedbed.statistics.effects import (
    PAIRED_EFFECTS,
    cliffs_delta,
    cohen_d,
    cohen_d_av,
    cohen_d_z,
    effect_label,
    glass_delta,
    hedges_correction,
    hedges_g,
    hedges_g_z,
    matched_rank_biserial,
    noncentral_t_interval,
    paired_effect,
    probability_of_improvement,
)

REFERENCE = Path(__file__).parents[1] / "reference" / "statistics"
FUNCTIONS = {
    "cohens_d_pooled": cohen_d,
    "cohens_d_average": cohen_d_av,
    "cohens_d_z_paired": cohen_d_z,
    "hedges_g_pooled_exact": hedges_g,
    "hedges_g_pooled_approx": lambda x, y: hedges_g(x, y, exact=False),
    "hedges_g_z_paired_exact": hedges_g_z,
    "glass_delta_y_control": glass_delta,
    "cliffs_delta": cliffs_delta,
    "vargha_delaney_a12": probability_of_improvement,
    "matched_rank_biserial": matched_rank_biserial,
}
X = np.array([9.6, 8.9, 10.3, 6.4, 10.6, 7.7, 9.1, 8.2])
Y = np.array([9.1, 9.2, 8.8, 6.0, 9.9, 7.9, 8.0, 8.2])


def cases(topic):
    return json.loads((REFERENCE / f"{topic}.json").read_text())["cases"]


@pytest.mark.parametrize("case", cases("effect_sizes"), ids=lambda c: c["name"])
def test_effects_match_reference(case):
    x, y, expected = case["inputs"]["x"], case["inputs"]["y"], dict(case["expected"])
    wrong = expected.pop("wrong_d_z_population_sd", None)
    for name, value in expected.items():
        assert FUNCTIONS[name](x, y) == pytest.approx(value, rel=case["rel_tol"], abs=1e-9), name
    if wrong is not None:
        assert cohen_d_z(x, y) != pytest.approx(wrong, rel=1e-3)


def test_hedges_factor_makes_the_effect_unbiased():
    """Mean of 40,000 corrected d_z at n = 6, against the true 0.7; tolerance four standard errors."""
    d = np.random.default_rng(3).normal(0.7, 1.0, (40_000, 6))
    g = hedges_correction(5) * d.mean(1) / d.std(1, ddof=1)
    assert g.mean() == pytest.approx(0.7, abs=4 * g.std() / 200)
    assert hedges_g_z(d[0], np.zeros(6)) == pytest.approx(g[0])
    assert hedges_correction(200) == pytest.approx(hedges_correction(200, exact=False), rel=1e-5)
    assert math.isnan(hedges_correction(0))


@pytest.mark.parametrize(
    "effect,label",
    [
        (0.0, "negligible"),
        (0.19999, "negligible, a higher"),
        (0.2, "small, a higher"),
        (-0.49999, "small, b higher"),
        (0.5, "medium, a higher"),
        (-0.79999, "medium, b higher"),
        (0.8, "large, a higher"),
        (-3.0, "large, b higher"),
        (math.nan, "undefined"),
        (math.inf, "undefined"),
    ],
)
def test_labels_have_a_bottom_class_and_a_direction(effect, label):
    assert effect_label(effect) == label


def test_label_takes_names():
    assert effect_label(-0.6, ("PPO", "rule")) == "medium, rule higher"


@pytest.mark.parametrize("name", PAIRED_EFFECTS)
def test_interval_holds_a_clear_effect_and_repeats(name):
    result = paired_effect(X, Y, name, seed=1, draws=2_000)
    assert result == paired_effect(X, Y, name, seed=1, draws=2_000)
    assert result.low < result.estimate < result.high
    assert result.estimate == PAIRED_EFFECTS[name](X, Y)
    assert "a higher" in result.label


@pytest.mark.parametrize("name", PAIRED_EFFECTS)
@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_interval_is_that_of_a_plain_loop_over_resampled_pairs(name, method):
    """Same draws, one resample at a time, through the public effect functions."""
    draws, n = 400, X.size
    index = np.random.default_rng(8).integers(0, n, size=(draws, n))
    loop = np.array([PAIRED_EFFECTS[name](X[i], Y[i]) for i in index])
    loop = loop[np.isfinite(loop)]
    levels = np.array([0.05, 0.95])
    if method == "bca":
        from scipy.stats import norm

        folds = np.array([PAIRED_EFFECTS[name](np.delete(X, i), np.delete(Y, i)) for i in range(n)])
        if name == "g_z":  # the leave-one-out values enter by their shape only, so J(n - 2) cancels
            folds = folds / hedges_correction(n - 2)
        estimate = PAIRED_EFFECTS[name](X, Y)
        z = norm.ppf(np.mean(loop < estimate) / 2 + np.mean(loop <= estimate) / 2)
        deviation = folds.mean() - folds
        a = np.sum(deviation**3) / (6 * np.sum(deviation**2) ** 1.5)
        levels = norm.cdf(z + (z + norm.ppf(levels)) / (1 - a * (z + norm.ppf(levels))))
    expected = np.quantile(loop, levels)
    result = paired_effect(X, Y, name, seed=8, draws=draws, confidence=0.9, method=method)
    assert (result.low, result.high) == pytest.approx(tuple(expected), rel=1e-7)


@pytest.mark.parametrize("name", PAIRED_EFFECTS)
def test_exchanging_sides_mirrors_estimate_and_interval(name):
    a, b = paired_effect(X, Y, name, seed=3, draws=1_000), paired_effect(Y, X, name, seed=3, draws=1_000)
    centre = 1.0 if name == "probability_of_improvement" else 0.0
    assert (b.estimate, b.low, b.high) == pytest.approx(
        (centre - a.estimate, centre - a.high, centre - a.low), rel=1e-9
    )


@pytest.mark.parametrize("name", PAIRED_EFFECTS)
@pytest.mark.parametrize("x,y", [([], []), ([1.0], [2.0]), ([1.0, math.nan, 2.0], [1.0, 2.0, 3.0])])
def test_no_effect_without_data(name, x, y):
    result = paired_effect(x, y, name, seed=0)
    assert math.isnan(result.estimate)
    assert result.label == "undefined"
    assert result.note.startswith("not estimable")


@pytest.mark.parametrize("effect", [cohen_d_z, hedges_g_z])
def test_constant_difference_is_undefined_not_huge(effect):
    """0.3 - 0.2 and 1.2 - 1.1 differ by rounding: a naive d_z would be about 1e15."""
    x, y = np.array([0.3, 0.7, 1.2]), np.array([0.2, 0.6, 1.1])
    assert np.std(x - y, ddof=1) > 0
    assert math.isnan(effect(x, y))
    assert math.isnan(paired_effect(x, y, "d_z", seed=0).low)


@pytest.mark.parametrize("effect", [cohen_d, cohen_d_av, glass_delta, hedges_g])
def test_constant_groups_have_no_standardised_effect(effect):
    assert math.isnan(effect([1.0, 1.0, 1.0], [2.0, 2.0, 2.0]))


def test_complete_separation_has_no_zero_width_interval():
    result = paired_effect(X + 100, Y, "cliffs_delta", seed=0)
    assert result.estimate == 1.0
    assert math.isnan(result.low)
    assert "same value" in result.note


def test_all_ties():
    assert cliffs_delta(X, X) == 0.0
    assert probability_of_improvement(X, X) == 0.5
    assert math.isnan(matched_rank_biserial(X, X))
    assert probability_of_improvement([0.1 + 0.2], [0.3]) == 0.5


@pytest.mark.parametrize("t, df", [(0.0, 7), (2.5, 7), (-2.5, 4), (39.4, 7), (-15.0, 19), (300.0, 7)])
def test_noncentral_t_interval_inverts_the_distribution(t, df):
    """At each bound the observed t is the quantile it should be, by simulation-free numerical integration."""
    from scipy import integrate, stats

    def below(noncentrality):
        def density(chi):
            return stats.norm.cdf(t * chi / math.sqrt(df) - noncentrality) * stats.chi.pdf(chi, df)

        centre = math.sqrt(df)
        points = sorted({abs(noncentrality) / max(abs(t), 1e-9) * centre, centre})
        points = [point for point in points if point < 60]
        return integrate.quad(density, 0, 60, points=points, limit=500)[0]

    low, high = noncentral_t_interval(t, df, 0.9)
    assert below(low) == pytest.approx(0.95, abs=1e-5)
    assert below(high) == pytest.approx(0.05, abs=1e-5)


def test_noncentral_t_interval_is_smooth_where_its_formula_changes():
    before, after = noncentral_t_interval(999.9, 9), noncentral_t_interval(1000.1, 9)
    assert before == pytest.approx(after, rel=5e-4)
    assert noncentral_t_interval(-1e9, 9)[0] == pytest.approx(1e6 * before[1] * -1e9 / 999.9e6, rel=1e-3)


@pytest.mark.parametrize(
    "true, n, correlation, d_av_covers", [(0.8, 8, 0.0, 0.95), (2.0, 8, 0.8, 0.97), (0.0, 5, 0.5, 0.95)]
)
def test_coverage_of_intervals_of_standardised_effects(true, n, correlation, d_av_covers):
    """2,000 samples of normal pairs: exact for d_z, near nominal for d_av; four binomial standard errors."""
    generator, covered = np.random.default_rng(1), {"d_z": 0, "d_av": 0}
    truth = {"d_z": true / math.sqrt(2 - 2 * correlation), "d_av": true}
    for _ in range(2000):
        y = generator.standard_normal(n)
        x = true + correlation * y + math.sqrt(1 - correlation**2) * generator.standard_normal(n)
        for name in covered:
            result = paired_effect(x, y, name, seed=0)
            covered[name] += result.low <= truth[name] <= result.high
    assert covered["d_z"] / 2000 == pytest.approx(0.95, abs=4 * math.sqrt(0.95 * 0.05 / 2000))
    assert covered["d_av"] / 2000 == pytest.approx(d_av_covers, abs=4 * math.sqrt(0.95 * 0.05 / 2000))


def test_unknown_effect_and_unequal_lengths_are_refused():
    with pytest.raises(ValueError, match="unknown effect"):
        paired_effect(X, Y, "eta", seed=0)
    with pytest.raises(ValueError, match="common seeds"):
        cohen_d_z(X, Y[:3])


numbers = st.lists(st.integers(-9, 9), min_size=1, max_size=7)


@settings(max_examples=60, deadline=None)
@given(x=numbers, y=numbers)
def test_ordinal_effects_count_pairs(x, y):
    wins = sum((a > b) + (a == b) / 2 for a in x for b in y)
    assert probability_of_improvement(x, y) == pytest.approx(wins / (len(x) * len(y)))
    assert cliffs_delta(x, y) == pytest.approx(-cliffs_delta(y, x))
    assert -1 <= cliffs_delta(x, y) <= 1


@settings(max_examples=40, deadline=None)
@given(x=st.lists(st.integers(-9, 9), min_size=3, max_size=8), data=st.data())
def test_effects_change_sign_with_sides_and_forget_units(x, data):
    y = data.draw(st.lists(st.integers(-9, 9), min_size=len(x), max_size=len(x)))
    x, y = np.array(x, float), np.array(y, float)
    for effect in (cohen_d_z, cohen_d_av, hedges_g_z, cohen_d, matched_rank_biserial):
        assert effect(y, x) == pytest.approx(-effect(x, y), rel=1e-9, nan_ok=True)
        assert effect(4 * x + 8, 4 * y + 8) == pytest.approx(effect(x, y), rel=1e-9, nan_ok=True)
