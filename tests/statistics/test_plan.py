"""The declared plan is what is computed: families, their corrections, primary metrics, seeds for tuning."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from seedbed.artifacts import SCORE_COLUMNS
from seedbed.metrics.base import load_metrics
from seedbed.statistics.multiplicity import bh, bonferroni, holm
from seedbed.statistics.plan import comparisons, families
from seedbed.study import StatisticsSettings
from seedbed.study_files import load_study

STUDY = Path(__file__).parents[2] / "studies/interview.yaml"
CORRECTIONS = {"holm": holm, "bonferroni": bonferroni, "bh": bh}


@pytest.fixture
def study():
    """The shipped study: five learners, a baseline and references."""
    return load_study(STUDY, "paper")


def with_correction(study, correction):
    changed = study.statistics.model_copy(update={"primary_correction": correction})
    return study.model_copy(update={"statistics": changed})


def scores(study, metrics):
    """Made-up scores of every algorithm and metric."""
    generator = np.random.default_rng(4)
    rows = [
        ("interview", "default", label, seed, "sampled", name, generator.normal(k, 3), 50, "ok")
        for k, label in enumerate(study.algorithms)
        for seed in range(8)
        for name in metrics
    ]
    return pd.DataFrame(rows, columns=list(SCORE_COLUMNS))


def test_families_are_those_declared_and_references_are_in_none(study):
    found = {family.name: family for family in families(study, "default", load_metrics(study.metrics))}
    learners = ("ppo", "dqn", "sac", "pets", "mbpo")
    assert found["primary"].pairs == tuple((name, "rule_based") for name in learners)
    assert len(found["pairs"].pairs) == 15
    assert {name for family in found.values() for pair in family.pairs for name in pair} == {
        *learners,
        "rule_based",
    }
    assert found["primary"].metrics == found["pairs"].metrics == ("restricted_time_to_mastery",)
    assert "content_rate" not in found["secondary"].metrics  # neither direction is better
    assert "restricted_time_to_mastery" not in found["secondary"].metrics
    assert [family.correction for family in found.values()] == ["holm", "holm", "bh"]


@pytest.mark.parametrize("correction", ["holm", "bonferroni"])
def test_families_have_the_correction_that_was_declared(study, correction):
    """What the report calls the correction is what was computed."""
    metrics = load_metrics(study.metrics)
    only = study.model_copy(update={"environments": {"default": study.environments["default"]}})
    table = comparisons(
        scores(study, ["restricted_time_to_mastery", "return"]),
        with_correction(only, correction),
        metrics,
        StatisticsSettings(draws=1000),
    )
    for name, family in table.groupby("family"):
        declared = "bh" if name == "secondary" else correction
        assert set(family.correction) == {declared}
        np.testing.assert_array_equal(family.p_corrected, CORRECTIONS[declared](family.p))


def test_each_environment_of_the_shipped_study_has_one_primary_metric(study):
    """As specified nobody masters in time, so its time to mastery could not be tested."""
    assert study.statistics.primary == {"default": "restricted_time_to_mastery", "as_specified": "return"}
    for preset in ("smoke", "quick", "paper"):
        shipped = load_study(STUDY, preset)
        assert set(shipped.statistics.primary) >= set(shipped.environments)
        assert shipped.pilot_seeds
        assert not set(shipped.pilot_seeds) & set(shipped.seeds)


def test_resampling_takes_ten_thousand_draws_unless_told_otherwise():
    assert StatisticsSettings().draws == 10_000
    with pytest.raises(ValueError, match="draws"):
        StatisticsSettings(draws=999)
