import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from seedbed.statistics.effects import cliffs_delta, cohen_d_av, cohen_d_z, hedges_g_z
from seedbed.statistics.intervals import mean_t_interval, sd_interval
from seedbed.statistics.multiplicity import bh, bonferroni, holm
from seedbed.statistics.paired import (
    paired_t_test,
    shapiro_on_differences,
    sign_flip_test,
    wilcoxon_signed_rank,
)
from seedbed.statistics.study_tables import (
    COMPARISON_COLUMNS,
    SCORE_COLUMNS,
    SUMMARY_COLUMNS,
    Family,
    against_baseline,
    all_pairs,
    compare,
    summarise,
)

ALGORITHMS = ("rule", "ppo", "dqn")


def score(
    algorithm, seed, value, metric="return", status="ok", environment="default", mode="greedy", study="s"
):
    return (study, environment, algorithm, seed, mode, metric, value, 50, status)


def table(*rows):
    return pd.DataFrame(list(rows), columns=list(SCORE_COLUMNS))


def study(n=8, metrics=("return", "steps"), seed=0):
    """ppo is far above rule in both metrics, dqn is like rule."""
    generator = np.random.default_rng(seed)
    lift = {"rule": 0.0, "ppo": 30.0, "dqn": 0.0}
    return table(
        *(
            score(a, s, 100 + lift[a] + generator.normal(0, 5), metric)
            for a in ALGORITHMS
            for s in range(n)
            for metric in metrics
        )
    )


def family(pairs=(("ppo", "rule"), ("dqn", "rule")), metrics=("return",), better="higher", **changes):
    return Family("primary", tuple(metrics), dict.fromkeys(metrics, better), tuple(pairs), **changes)


def one(scores, pair=("a", "b"), **options):
    """The single comparison of a and b."""
    row = compare(scores, [family([pair])], draws=500, **options)
    assert len(row) == 1
    return row.iloc[0]


def two_sides(x, y, **changes):
    return table(
        *(score("a", i, v, **changes) for i, v in enumerate(x)),
        *(score("b", i, v, **changes) for i, v in enumerate(y)),
    )


def test_summary_gives_the_statistics_of_each_cell():
    scores = study()
    result = summarise(scores, 0.9)
    assert tuple(result.columns) == SUMMARY_COLUMNS
    assert len(result) == 6
    x = scores.query("algorithm == 'ppo' and metric == 'steps'")["value"].to_numpy()
    row = result.query("algorithm == 'ppo' and metric == 'steps'").iloc[0]
    t, sd = mean_t_interval(x, 0.9), sd_interval(x, 0.9)
    assert (row.n, row.missing, row.note) == (8, 0, "")
    assert (row["mean"], row.low, row.high) == pytest.approx((x.mean(), t.low, t.high))
    assert (row.sd, row.sd_low, row.sd_high) == pytest.approx((np.std(x, ddof=1), sd.low, sd.high))
    assert (row["median"], row.q25, row.q75) == pytest.approx(tuple(np.quantile(x, [0.5, 0.25, 0.75])))
    assert (row.minimum, row.maximum, row.range) == pytest.approx((x.min(), x.max(), np.ptp(x)))
    assert row.cv == pytest.approx(row.sd / row["mean"])


def test_missing_runs_are_counted_and_named_and_never_zero():
    """A crashed run is neither dropped in silence nor a zero: 12 +- 2 of three, one missing."""
    scores = table(
        score("a", 0, 10.0),
        score("a", 1, math.nan, status="crashed"),
        score("a", 2, 12.0),
        score("a", 3, 14.0),
    )
    row = summarise(scores).iloc[0]
    assert (row.n, row.missing, row["mean"], row.sd) == (3, 1, 12.0, pytest.approx(2.0))
    assert "1 of 4 seeds missing (1: crashed)" in row.note
    assert row.minimum == 10.0


def test_a_value_with_a_bad_status_and_an_infinite_value_are_missing():
    scores = table(score("a", 0, 5.0, status="short"), score("a", 1, math.inf), score("a", 2, 1.0))
    row = summarise(scores).iloc[0]
    assert (row.n, row.missing, row["mean"]) == (1, 2, 1.0)
    assert "0: short" in row.note
    assert "1: value is not finite" in row.note
    assert math.isnan(row.low)
    assert "n = 1" in row.note


def test_a_cell_without_any_value_stays_as_a_row_of_nan():
    row = summarise(table(score("a", 0, math.nan, status="no question asked"))).iloc[0]
    assert (row.n, row.missing) == (0, 1)
    assert np.all(np.isnan(row[["mean", "sd", "low", "median", "minimum", "range", "cv"]].astype(float)))


@pytest.mark.parametrize(
    "values,defined",
    [([9.0, 10, 11], True), ([-9.0, -10, -11], False), ([-1.0, 0.5, 1.0], False), ([5.0, 5, 5], True)],
)
def test_cv_is_undefined_when_the_mean_is_near_zero_or_negative(values, defined):
    row = summarise(table(*(score("a", i, v) for i, v in enumerate(values)))).iloc[0]
    assert math.isnan(row.cv) != defined


def test_constant_scores_have_no_zero_width_interval():
    row = summarise(table(*(score("a", i, 0.3) for i in range(5)))).iloc[0]
    assert row.sd == 0
    assert math.isnan(row.low)
    assert math.isnan(row.sd_low)
    assert "zero variance" in row.note


def test_comparison_gives_each_test_and_effect_of_the_common_seeds():
    scores = study()
    x, y = (
        scores.query("algorithm == @a and metric == 'return'")["value"].to_numpy() for a in ("ppo", "rule")
    )
    result = compare(scores, [family()], draws=1_000)
    assert tuple(result.columns) == COMPARISON_COLUMNS
    row, t = result.iloc[0], paired_t_test(x, y)
    assert (row.n, row.unpaired_seeds, row.algorithm_a, row.algorithm_b) == (8, 0, "ppo", "rule")
    assert (row.mean_a, row.mean_b) == pytest.approx((x.mean(), y.mean()))
    assert (row.difference, row.difference_low, row.difference_high) == pytest.approx(
        (x.mean() - y.mean(), t.low, t.high)
    )
    assert row.percent == pytest.approx(100 * (x.mean() - y.mean()) / y.mean())
    assert (row.p, row.p_t) == (sign_flip_test(x, y).pvalue, t.pvalue)
    assert row.p_wilcoxon == wilcoxon_signed_rank(x, y).pvalue
    assert row.shapiro_p == shapiro_on_differences(x, y).pvalue
    assert row.smallest_p == 2 / 2**8
    assert (row.d_z, row.hedges_g_z, row.d_av) == (cohen_d_z(x, y), hedges_g_z(x, y), cohen_d_av(x, y))
    assert row.d_z_low < row.d_z < row.d_z_high
    assert row.d_av_low < row.d_av < row.d_av_high
    assert row.cliffs_delta == cliffs_delta(x, y) == 1.0
    assert math.isnan(row.cliffs_low)
    assert "cliffs_delta interval not estimable" in row.note
    assert row.probability_of_improvement == 1.0
    assert row.effect_label == "large, a higher"
    assert list(result.decision) == ["a better", "undecided"]


def test_direction_turns_the_decision_and_the_probability():
    scores = study()
    higher, lower = (compare(scores, [family(better=b)], draws=500).iloc[0] for b in ("higher", "lower"))
    assert (higher.decision, lower.decision) == ("a better", "b better")
    assert (higher.probability_of_improvement, lower.probability_of_improvement) == (1.0, 0.0)
    assert higher.difference == lower.difference
    assert higher.effect_label == lower.effect_label


@pytest.mark.parametrize("correction,function", [("holm", holm), ("bonferroni", bonferroni), ("bh", bh)])
def test_family_is_corrected_over_its_metrics_and_pairs(correction, function):
    result = compare(
        study(), [family(all_pairs(ALGORITHMS), ("return", "steps"), correction=correction)], draws=500
    )
    assert len(result) == 6
    np.testing.assert_array_equal(result.p_corrected, function(result.p))
    assert set(result.correction) == {correction}


def test_families_are_corrected_apart_and_environments_apart():
    scores = pd.concat([study(), study(seed=1).assign(environment="hard")])
    primary = family([("ppo", "rule")])
    secondary = Family("secondary", ("steps",), {"steps": "lower"}, all_pairs(ALGORITHMS), "bh", ("hard",))
    result = compare(scores, [primary, secondary], draws=500)
    assert list(result.environment) == ["default", "hard", "hard", "hard", "hard"]
    assert list(result.family) == ["primary", "primary", "secondary", "secondary", "secondary"]
    first = result[result.family == "primary"]
    np.testing.assert_array_equal(first.p_corrected, first.p)


def test_a_design_that_cannot_succeed_says_so():
    five = compare(study(n=5), [family()], draws=500)
    assert set(five.smallest_p) == {0.0625}
    assert all("cannot succeed" in note and "0.125 > 0.05" in note for note in five.note)
    assert set(five.decision) == {"undecided"}
    eight = compare(study(n=8), [family()], draws=500)
    assert not any("cannot succeed" in note for note in eight.note)
    ten_pairs = family([(f"x{i}", "rule") for i in range(8)] + [("ppo", "rule"), ("dqn", "rule")])
    assert "cannot" not in compare(study(n=8), [ten_pairs], draws=500).note.iloc[-1]  # eight cannot be tested


def test_only_the_corrected_p_decides():
    """Six of six seeds agree: p = .031, but over two comparisons .062, and no data could do better."""
    scores = table(
        *(score(a, s, v + s) for a, v in {"ppo": 1.0, "dqn": 2.0, "rule": 0.0}.items() for s in range(6))
    )
    alone = compare(scores, [family([("ppo", "rule")])], draws=500)
    assert alone.decision[0] == "a better"
    both = compare(scores, [family()], draws=500)
    assert list(both.p) == [0.03125, 0.03125]
    assert list(both.p_corrected) == [0.0625, 0.0625]
    assert list(both.decision) == ["undecided", "undecided"]
    assert "after holm over 2 comparisons 0.0625 > 0.05" in both.note[0]


def test_unequal_seeds_are_paired_by_seed_and_the_rest_is_reported():
    scores = table(
        *(score("a", s, v) for s, v in {0: 1.0, 1: 5.0, 2: 3.0, 9: 100.0}.items()),
        *(score("b", s, v) for s, v in {2: 2.5, 1: 4.0, 0: 0.0, 7: -100.0}.items()),
    )
    row = one(scores)
    assert (row.n, row.unpaired_seeds) == (3, 2)
    assert (row.mean_a, row.mean_b) == pytest.approx((3.0, 6.5 / 3))
    assert "one side only: 2 of 5 seeds" in row.note


def test_a_crash_on_one_side_leaves_the_pair_out_and_names_it():
    scores = two_sides([1.0, 2, 4, 3], [0.5, 1, 9, 2.2])
    scores.loc[(scores.algorithm == "b") & (scores.seed == 2), ["value", "status"]] = [math.nan, "crashed"]
    row = one(scores)
    assert (row.n, row.unpaired_seeds) == (3, 1)
    assert "b: 1 of 4 seeds missing (2: crashed)" in row.note
    assert row.difference > 0


NOT_TESTABLE = {
    "no common seed": table(score("a", 0, 1.0), score("b", 1, 2.0)),
    "n = 1": two_sides([1.0], [2.0]),
    "all 4 differences are zero": two_sides([140.0] * 4, [140.0] * 4),
    "b: no scores": table(score("a", 0, 1.0), score("a", 1, 2.0)),
    "2 of 2 seeds missing": two_sides([1.0, 2.0], [math.nan, math.nan], status="ok"),
}


@pytest.mark.parametrize("words", NOT_TESTABLE)
def test_not_testable_is_a_row_with_words_and_nan(words):
    row = one(NOT_TESTABLE[words])
    assert row.decision == "not testable"
    assert row.note.startswith("not testable")
    assert words in row.note
    assert math.isnan(row.p)
    assert math.isnan(row.p_corrected)
    assert math.isnan(row.d_z)
    assert math.isnan(row.probability_of_improvement)
    assert row.effect_label == "undefined"


def test_a_test_that_cannot_be_made_stays_outside_the_family():
    scores = pd.concat([study(), table(score("extra", 0, 1.0))])
    pairs = [("ppo", "rule"), ("extra", "rule")]
    with_extra = compare(scores, [family(pairs)], draws=500)
    assert list(with_extra.decision) == ["a better", "not testable"]
    assert with_extra.p_corrected[0] == with_extra.p[0]


def test_constant_difference_is_testable_but_has_no_effect_size_and_no_interval():
    row = one(two_sides(np.arange(8) + 0.3, np.arange(8) + 0.1))
    assert row.decision == "a better"
    assert row.p == 2 / 2**8
    assert math.isnan(row.difference_low)
    assert math.isnan(row.d_z)
    assert "zero variance" in row.note


def test_percent_of_nothing_is_undefined():
    row = one(two_sides([1.0, 2, 3], [-1.0, 0.0, 1.0]))
    assert math.isnan(row.percent)
    assert row.difference == pytest.approx(2.0)
    assert one(two_sides([-1.0, -2, -4], [-20.0, -21, -22])).percent > 0
    around_zero = one(two_sides([5.0, 6, 7], [-0.2, 0.1, 0.3]))
    assert math.isnan(around_zero.percent)
    assert around_zero.difference == pytest.approx(5.93, abs=0.01)


def test_same_bytes_for_any_row_order_and_any_company():
    scores = study(n=18)
    families = [family(all_pairs(ALGORITHMS), ("return", "steps"))]
    whole = compare(scores, families, draws=500)
    shuffled = scores.sample(frac=1, random_state=3)
    pd.testing.assert_frame_equal(compare(shuffled, families, draws=500), whole, check_exact=True)
    pd.testing.assert_frame_equal(summarise(shuffled), summarise(scores), check_exact=True)
    alone = compare(scores, [family([("ppo", "dqn")], ("steps",))], draws=500)
    own = [c for c in COMPARISON_COLUMNS if c not in ("p_corrected", "decision", "note")]
    among = whole.query("metric == 'steps' and algorithm_a == 'ppo' and algorithm_b == 'dqn'")
    pd.testing.assert_frame_equal(
        among[own].reset_index(drop=True), alone[own], check_exact=True, check_dtype=False
    )


def test_the_seed_is_used_and_the_global_generator_is_not():
    scores = study(n=18)
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    a, b = (compare(scores, [family()], seed=s, draws=500) for s in (1, 2))
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002
    assert a.cliffs_low[1] != b.cliffs_low[1]
    assert not np.array_equal(a.p, b.p)
    np.testing.assert_array_equal(a.p_t, b.p_t)


def test_exchanging_sides_mirrors_the_row():
    scores = study(n=18)
    a, b = (compare(scores, [family([pair])], draws=500).iloc[0] for pair in (("ppo", "dqn"), ("dqn", "ppo")))
    assert (a.p, a.p_t, a.p_wilcoxon, a.p_corrected) == pytest.approx(
        (b.p, b.p_t, b.p_wilcoxon, b.p_corrected)
    )
    for stem in ("difference", "d_z", "d_av"):
        mirrored = (-b[stem], -b[f"{stem}_high"], -b[f"{stem}_low"])
        assert (a[stem], a[f"{stem}_low"], a[f"{stem}_high"]) == pytest.approx(mirrored)
    assert {a.decision, b.decision} == {"a better", "b better"}


def test_the_input_is_not_changed():
    scores = study()
    before = scores.copy()
    summarise(scores)
    compare(scores, [family()], draws=500)
    pd.testing.assert_frame_equal(scores, before)


def test_empty_table_gives_empty_tables_with_their_columns():
    empty = table()
    assert tuple(summarise(empty).columns) == SUMMARY_COLUMNS
    result = compare(empty, [family()])
    assert tuple(result.columns) == COMPARISON_COLUMNS
    assert len(result) == 0


BAD_TABLES = {
    "lacks the columns value": study().drop(columns="value"),
    "several studies": table(score("a", 0, 1.0), score("a", 1, 1.0, study="t")),
    "two values for .* seed 0": table(score("a", 0, 1.0), score("a", 0, 2.0)),
    "rows without policy_mode": table(score("a", 0, 1.0, mode=None)),
}


@pytest.mark.parametrize("words", BAD_TABLES)
@pytest.mark.parametrize("function", [summarise, lambda s: compare(s, [family()])])
def test_tables_that_would_mix_or_double_runs_are_refused(function, words):
    with pytest.raises(ValueError, match=words):
        function(BAD_TABLES[words])


def test_several_policy_modes_are_summarised_apart_and_not_compared():
    scores = pd.concat([study(), study(seed=1).assign(policy_mode="sampled")])
    assert len(summarise(scores)) == 12
    with pytest.raises(ValueError, match="several policy modes"):
        compare(scores, [family()])
    mixed = pd.concat([study().query("algorithm == 'rule'"), study().query("algorithm != 'rule'")])
    mixed.loc[mixed.algorithm == "rule", "policy_mode"] = "fixed"
    assert compare(mixed, [family()], draws=500).decision[0] == "a better"


@pytest.mark.parametrize(
    "arguments,words",
    [
        (("f", ("m",), {"m": "up"}, (("a", "b"),)), "higher or lower"),
        (("f", ("m",), {}, (("a", "b"),)), "higher or lower"),
        (("f", ("m",), {"m": "lower"}, (("a", "a"),)), "two different algorithms"),
        (("f", ("m",), {"m": "lower"}, (("a", "b"), ("b", "a"))), "compared twice"),
        (("f", ("m", "m"), {"m": "lower"}, (("a", "b"),)), "listed twice"),
        (("f", ("m",), {"m": "lower"}, (("a", "b"),), "tukey"), "holm, bonferroni or bh"),
    ],
)
def test_families_are_checked_when_declared(arguments, words):
    with pytest.raises(ValueError, match=words):
        Family(*arguments)


def test_two_families_of_one_name_are_refused():
    with pytest.raises(ValueError, match="different names"):
        compare(study(), [family(), family()])


def test_pairs_of_a_family():
    assert all_pairs(["a", "b", "c"]) == (("a", "b"), ("a", "c"), ("b", "c"))
    assert against_baseline(["a", "rule", "c"], "rule") == (("a", "rule"), ("c", "rule"))


def test_importing_costs_neither_scipy_stats_nor_statsmodels():
    code = (
        "import sys, seedbed.statistics.study_tables; "
        "print([m for m in ('scipy.stats', 'statsmodels', 'torch', 'matplotlib') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
