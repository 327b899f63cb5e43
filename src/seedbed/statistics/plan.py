"""From a study's declared plan to what is computed: which rows count, what is corrected together."""

from collections.abc import Mapping

import pandas as pd

from seedbed.metrics.base import Metric
from seedbed.statistics.study_tables import Family, against_baseline, all_pairs, compare
from seedbed.study import StatisticsSettings, Study


def in_declared_mode(table: pd.DataFrame, policy_mode: str) -> pd.DataFrame:
    """Rows in the mode that the study declares, and all rows of policies that have one mode only."""
    modes = table.groupby(["environment", "algorithm"])["policy_mode"].transform("nunique")
    return table[(modes == 1) | (table["policy_mode"] == policy_mode)]


def rates_of(metrics: Mapping[str, Metric]) -> frozenset[str]:
    """Names of the metrics that are shares of episodes; their intervals are those of ``statistics.rates``."""
    return frozenset(name for name, metric in metrics.items() if metric.rate)


def families(study: Study, environment: str, metrics: Mapping[str, Metric]) -> list[Family]:
    """The families of comparisons in one environment, as declared before any data were seen.

    "primary": learners against the baseline on the primary metric. "pairs": all pairs of learners and
    baseline on it; both have the declared correction. "secondary": learners against the baseline on other
    metrics that have a better direction, corrected by Benjamini-Hochberg.
    """
    plan, entries = study.statistics, study.algorithms_in(environment)
    tested = [label for label, entry in entries.items() if entry.role != "reference"]
    primary = plan.primary[environment]
    others = tuple(name for name in plan.secondary if name != primary and metrics[name].better != "none")
    better = {name: metrics[name].better for name in (primary, *others)}
    learners = against_baseline(tested, plan.baseline)
    return [
        Family("primary", (primary,), better, learners, plan.primary_correction),
        Family("pairs", (primary,), better, all_pairs(tested), plan.primary_correction),
        Family("secondary", others, better, learners, correction="bh"),
    ]


def comparisons(
    scores: pd.DataFrame, study: Study, metrics: Mapping[str, Metric], settings: StatisticsSettings
) -> pd.DataFrame:
    """All declared comparisons of a study, one row each; see ``study_tables.compare``."""
    unscored = sorted(set(study.environments) - set(scores["environment"]))
    if unscored:
        raise ValueError(f"there is no score at all for the environments {', '.join(unscored)}")
    chosen = in_declared_mode(scores, study.statistics.policy_mode)
    return pd.concat(
        [
            compare(
                chosen[chosen["environment"] == environment],
                families(study, environment, metrics),
                settings.confidence,
                settings.alpha,
                settings.seed,
                settings.draws,
                rates_of(metrics),
            )
            for environment in study.environments
        ],
        ignore_index=True,
    )
