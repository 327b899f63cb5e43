"""Claims: exactly what the statistics carry, negative results too, and nothing without its evidence."""

import math

import numpy as np
import pandas as pd
import pytest

from seedbed.artifacts import SCORE_COLUMNS
from seedbed.metrics.base import Metric
from seedbed.reporting.claims import REQUIRED, comparison_sentence, in_sentence, interpretation, key_finding
from seedbed.statistics.study_tables import Family, compare

TITLES = {"ppo": "PPO", "rule": "Rule"}
PAUSE = "\u00a0"


def metric(better="lower", unit="steps"):
    return Metric("time", "Time to mastery", unit, better, 1, "", lambda episodes, steps: 0.0)


def row_of(ppo, rule, better="lower", draws=1000, **changes):
    rows = [
        ("s", "e", name, seed, "greedy", "time", value, 10, "ok" if value == value else "crashed")
        for name, values in (("ppo", ppo), ("rule", rule))
        for seed, value in enumerate(values)
    ]
    scores = pd.DataFrame(rows, columns=list(SCORE_COLUMNS))
    family = Family("primary", ("time",), {"time": better}, (("ppo", "rule"),))
    return compare(scores, [family], draws=draws).iloc[0].to_dict() | changes


STEADY = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
SHIFT = np.array([9.0, 10.0, 11.0, 10.0, 9.5, 10.5, 9.0, 11.0])


def test_a_known_effect_gives_exactly_this_sentence():
    """Differences of mean 10 and SD sqrt(5 / 7); t(7, .975) = 2.364624; two-sided sign flip 2 / 2^8."""
    row = row_of(100 + STEADY - SHIFT, 100 + STEADY)
    half = 2.364624 * math.sqrt(float(np.var(SHIFT, ddof=1)) / 8)
    assert row["difference"] == pytest.approx(-10.0)
    assert row["p_corrected"] == pytest.approx(2 / 256)
    assert row["difference_low"] == pytest.approx(-10 - half, abs=1e-5)
    effect = f"{row['d_av']:.2f} [{row['d_av_low']:.2f},{PAUSE}{row['d_av_high']:.2f}]".replace("-", "−")
    assert comparison_sentence(row, metric(), TITLES) == (
        f"In time to mastery, where lower is better, PPO is better than Rule (PPO minus Rule: "
        f"−10.0{PAUSE}steps, −9.7{PAUSE}%, 95{PAUSE}% interval −{10 + half:.1f} to −{10 - half:.1f}, "
        f"p{PAUSE}={PAUSE}0.008 after Holm correction, d_av = {effect} (large), "
        f"n{PAUSE}={PAUSE}8{PAUSE}seeds)."
    )


def test_the_same_numbers_mean_worse_where_higher_is_better():
    row = row_of(100 + STEADY - SHIFT, 100 + STEADY, better="higher")
    sentence = comparison_sentence(row, metric("higher"), TITLES)
    assert sentence.startswith(
        "In time to mastery, where higher is better, Rule is better than PPO (PPO minus Rule: −10.0"
    )
    assert interpretation(row, TITLES) == "Rule better (large)"


def test_no_difference_is_never_called_equality():
    row = row_of(100 + STEADY, 100 + STEADY + np.array([1, -1, 2, -2, 1, -1, 2, -2.0]))
    sentence = comparison_sentence(row, metric(), TITLES)
    size = max(abs(row["difference_low"]), abs(row["difference_high"]))
    assert sentence.startswith("In time to mastery, no difference could be shown between PPO and Rule (")
    assert sentence.endswith(f"; a difference of {size:.1f}{PAUSE}steps is not excluded.")
    assert not any(word in sentence for word in ("equal", "same", "better than", "no effect"))
    assert interpretation(row, TITLES) == "no difference shown"


def test_null_scores_give_no_claim_of_a_difference():
    """Of 10 independent null comparisons at 5 %, four or more are decided about once in a thousand times."""
    generator = np.random.default_rng(1)
    decided = [
        "is better than"
        in comparison_sentence(row_of(*generator.normal(100, 5, (2, 8)), draws=200), metric(), TITLES)
        for _ in range(10)
    ]
    assert sum(decided) < 4


def test_what_cannot_be_tested_says_why():
    sentence = comparison_sentence(row_of([1.0], [2.0]), metric(), TITLES)
    assert sentence == "In time to mastery, PPO and Rule could not be compared: n = 1, needs at least 2."
    nothing = row_of([math.nan, math.nan], [1.0, 2.0])
    assert "no common seed with a score on both sides" in comparison_sentence(nothing, metric(), TITLES)
    assert interpretation(nothing, TITLES) == "not testable"


@pytest.mark.parametrize("column", REQUIRED)
def test_without_its_evidence_no_difference_is_claimed(column):
    row = row_of(100 + STEADY - SHIFT, 100 + STEADY, **{column: math.nan})
    sentence = comparison_sentence(row, metric(), TITLES)
    assert sentence == (
        f"In time to mastery, nothing is claimed about PPO and Rule: the comparison lacks {REQUIRED[column]}."
    )
    assert interpretation(row, TITLES) == "no claim"


def test_three_seeds_cannot_decide_and_the_sentence_says_so():
    """Sign flip of 3 pairs: the smallest two-sided p is 2 / 2^3 = 0.25."""
    row = row_of([90.0, 92.0, 91.0], [100.0, 101.0, 103.0])
    sentence = comparison_sentence(row, metric(), TITLES)
    assert "no difference could be shown between PPO and Rule" in sentence
    assert sentence.endswith(
        "is not excluded, and these tests could not have shown any: "
        "with n = 3 the smallest attainable p is 0.25, after Holm over 1 comparison 0.25 > 0.05."
    )
    assert "resamples" not in sentence


def test_differences_of_percentages_are_percentage_points():
    row = row_of(100 + STEADY - SHIFT, 100 + STEADY)
    assert f"−10.0{PAUSE}percentage points" in comparison_sentence(row, metric(unit="%"), TITLES)


def test_a_percentage_of_nothing_is_left_out():
    row = row_of(STEADY - SHIFT, STEADY, percent=math.nan)
    assert f"steps, 95{PAUSE}% interval" in comparison_sentence(row, metric(), TITLES)


def test_titles_within_a_sentence():
    assert in_sentence("Time to mastery") == "time to mastery"
    assert in_sentence("SD of return") == "SD of return"
    assert in_sentence("IQM") == "IQM"


def test_key_finding_names_every_learner_once_with_its_evidence(interview):
    _, results = interview
    claim = key_finding(results, "default")
    for title in ("PPO (", "DQN (", "PPO, wide ("):
        assert claim.text.count(title) == 1
    assert claim.text.count("after Holm correction") == 3
    assert len(claim.sources) == 3
    assert all(source.row["family"] == "primary" for source in claim.sources)
