"""Everything the report reads of one study, and the few questions it asks of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed.artifacts import SCORE_COLUMNS, ArtifactError, read_json, read_table
from seedbed.study import StatisticsSettings, Study

if TYPE_CHECKING:
    import pandas as pd

    from seedbed.metrics.base import Metric

ROLES = ("learner", "baseline", "reference")


class ReportError(ArtifactError):
    """The report cannot be made; the message says what is missing and where."""


@dataclass(frozen=True)
class StudyResults:
    """One study with its tables.

    Args:
        study: the study as it was run.
        resolved: ``study.json``: sizes of environments, every hyper-parameter.
        metrics: name -> title, unit, direction and decimals.
        settings: confidence, alpha, draws and seed of the statistics.
        scores, costs, summary, comparisons: the tables of those names.
        efficiency: the table of sample efficiency.
        runs: run records of training, of the blocks in the cost table; none for imported runs.
        off_policy: the tables "estimates", "overlap" and "coverage"; none without that section.
    """

    study: Study
    resolved: Mapping[str, Any]
    metrics: Mapping[str, "Metric"]
    settings: StatisticsSettings
    scores: "pd.DataFrame"
    costs: "pd.DataFrame"
    summary: "pd.DataFrame"
    comparisons: "pd.DataFrame"
    efficiency: "pd.DataFrame"
    runs: tuple[Mapping[str, Any], ...] = ()
    off_policy: Mapping[str, "pd.DataFrame"] = field(default_factory=dict)

    def algorithms(self, environment: str) -> list[str]:
        """Labels of one environment's algorithms: learners, then the baseline, then references."""
        entries = self.study.algorithms_in(environment)
        return sorted(entries, key=lambda label: ROLES.index(entries[label].role))

    def tested(self, environment: str) -> list[str]:
        """Labels of the algorithms that are compared: learners and the baseline."""
        entries = self.study.algorithms_in(environment)
        return [label for label in self.algorithms(environment) if entries[label].role != "reference"]

    @cached_property
    def _summaries(self) -> dict[tuple[str, ...], dict[str, Any]]:
        keys = ("environment", "algorithm", "policy_mode", "metric")
        return {tuple(row[name] for name in keys): row for row in self.summary.to_dict("records")}

    @cached_property
    def _families(self) -> dict[tuple[str, str], list[dict[str, Any]]]:
        families: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for row in self.comparisons.to_dict("records"):
            families.setdefault((row["environment"], row["family"]), []).append(row)
        return families

    @cached_property
    def _reasons(self) -> dict[tuple[str, ...], str]:
        lost = self.scores[self.scores.status != "ok"]
        keys = ["environment", "algorithm", "policy_mode", "metric"]
        return {key: str(part.mode().iloc[0]) for key, part in lost.groupby(keys)["status"]}

    @cached_property
    def _modes(self) -> dict[tuple[str, str], list[str]]:
        modes: dict[tuple[str, str], set[str]] = {}
        for environment, algorithm, mode, _ in self._summaries:
            modes.setdefault((environment, algorithm), set()).add(mode)
        return {key: sorted(found) for key, found in modes.items()}

    def modes(self, environment: str, algorithm: str) -> list[str]:
        """The policy modes that an algorithm was evaluated in."""
        return self._modes.get((environment, algorithm), [])

    def mode(self, environment: str, algorithm: str) -> str:
        """The policy mode behind tables and tests: its only one, or the one that the study chooses."""
        modes = self.modes(environment, algorithm)
        return modes[0] if len(modes) == 1 else self.study.statistics.policy_mode

    def main_metrics(self, environment: str) -> list[str]:
        """The primary metric and the secondary ones, in the order that the study gives them."""
        plan = self.study.statistics
        primary = plan.primary[environment]
        return [primary, *(name for name in plan.secondary if name != primary)]

    def summary_row(
        self, environment: str, algorithm: str, metric: str, mode: str | None = None
    ) -> dict[str, Any] | None:
        """The summary of one metric, in the mode behind the tables unless another is given; None without."""
        mode = mode or self.mode(environment, algorithm)
        return self._summaries.get((environment, algorithm, mode, metric))

    def family(self, environment: str, family: str) -> list[dict[str, Any]]:
        """The comparisons of one family in one environment, in the order of the table."""
        return self._families.get((environment, family), [])

    def families(self, environment: str) -> list[str]:
        """Names of the families of comparisons in one environment."""
        return [family for where, family in self._families if where == environment]

    def reason(self, environment: str, algorithm: str, metric: str, mode: str | None = None) -> str:
        """Why a metric has no value: the commonest status of its scores, in words."""
        mode = mode or self.mode(environment, algorithm)
        return self._reasons.get((environment, algorithm, mode, metric), "no scores")


def read_study_results(name: str, results: str | Path, settings: StatisticsSettings) -> StudyResults:
    """Read what the pipeline made of one study, below ``results/<name>/``.

    Raises:
        ArtifactError: a file is missing, damaged or lacks a column.
    """
    from seedbed.metrics.base import load_metrics

    folder = Path(results) / name
    resolved = read_json(folder / "study.json")
    study = Study.model_validate(resolved["study"])
    costs = read_table(folder / "costs.parquet")
    blocks = costs[["environment", "algorithm", "block"]].drop_duplicates()
    judged = ("estimates", "overlap", "coverage") if study.off_policy else ()
    runs = [folder / Path(*block) / "run.json" for block in blocks.itertuples(index=False)]
    return StudyResults(
        study=study,
        resolved=resolved,
        metrics=load_metrics(study.metrics),
        settings=settings,
        scores=read_table(folder / "scores.parquet", SCORE_COLUMNS),
        costs=costs,
        summary=read_table(folder / "statistics/summary.parquet"),
        comparisons=read_table(folder / "statistics/comparisons.parquet"),
        efficiency=read_table(folder / "statistics/sample_efficiency.parquet"),
        runs=tuple(read_json(path) for path in runs if path.is_file()),
        off_policy={name: read_table(folder / f"off_policy/{name}.parquet") for name in judged},
    )
