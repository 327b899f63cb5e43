"""What figures are drawn from: the tables of one study, and the rows of it that a figure shows."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

import pandas as pd

from seedbed.metrics.base import Metric, load_metrics
from seedbed.study import Study


@dataclass(frozen=True)
class Tables:
    """The score table of a study and its statistics; any may have no rows.

    Args:
        scores, summary, comparisons, curves, incidence, reliability: as the stages before wrote them.
        confidence: level of the intervals in them.
        walks: example trajectories, of ``walks.WALK_COLUMNS``; None for a study without.
    """

    scores: pd.DataFrame
    summary: pd.DataFrame
    comparisons: pd.DataFrame
    curves: pd.DataFrame
    incidence: pd.DataFrame
    reliability: pd.DataFrame
    confidence: float = 0.95
    walks: pd.DataFrame | None = None

    @property
    def percent(self) -> str:
        """The level of the intervals in words, such as "95 %"."""
        return f"{100 * self.confidence:g} %"


def metrics_of(study: Study) -> dict[str, Metric]:
    """The study's metrics, by name."""
    return load_metrics(study.metrics)


def kinds_of_interval(rates: Collection[bool]) -> str:
    """What intervals over seeds are called, given whether the metrics shown are rates."""
    if True not in rates:
        return "t intervals"
    wilson = "Wilson intervals at the effective number of episodes"
    return f"t intervals (rates: {wilson})" if False in rates else wilson


def axis_label(metric: Metric) -> str:
    """Title and unit, such as "Return (reward)"."""
    return f"{metric.title} ({metric.unit})" if metric.unit else metric.title


def algorithms_in_order(study: Study, environment: str) -> list[str]:
    """Labels of an environment's algorithms: learners, then the baseline, then references."""
    rank = {"learner": 0, "baseline": 1, "reference": 2}
    present = study.algorithms_in(environment)
    return sorted(present, key=lambda label: rank[present[label].role])


def rows_of(table: pd.DataFrame, study: Study, environment: str) -> pd.DataFrame:
    """Rows of one environment, each algorithm in one policy mode: the study's, or the only one it has."""
    rows = table[table["environment"] == environment]
    wanted = rows["policy_mode"] == study.statistics.policy_mode
    has_wanted = rows["algorithm"].isin(rows.loc[wanted, "algorithm"])
    rows = rows[wanted | ~has_wanted]
    modes = rows.groupby("algorithm")["policy_mode"].nunique()
    if (modes > 1).any():
        raise ValueError(
            f"{modes.index[modes > 1][0]} in {environment} has several policy modes, none of them "
            f"'{study.statistics.policy_mode}' (statistics.policy_mode)"
        )
    return rows


def cell(rows: pd.DataFrame, algorithm: str, metric: str) -> pd.DataFrame:
    """Rows of one algorithm and metric."""
    return rows[(rows["algorithm"] == algorithm) & (rows["metric"] == metric)]


def why_missing(scores: pd.DataFrame) -> str:
    """The commonest reason why values of a cell are missing; "no run" if there is not even a row."""
    reasons = Counter(scores.loc[scores["status"] != "ok", "status"])
    return min(reasons, key=lambda reason: (-reasons[reason], reason)) if reasons else "no run"
