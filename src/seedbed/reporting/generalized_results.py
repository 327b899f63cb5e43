"""Everything the report reads of one generalized study, and the few questions it asks of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed.artifacts import read_json, read_table
from seedbed.generalized_study import GeneralizedStudy
from seedbed.layout import block_files
from seedbed.study import StatisticsSettings

if TYPE_CHECKING:
    import pandas as pd

READING = "score"
"""The reading of the score that tables show: all that was earned over completed episodes."""


@dataclass(frozen=True)
class GeneralizedResults:
    """One generalized study with its tables.

    Args:
        study: the study as it was run.
        resolved: ``study.json``.
        settings: confidence and alpha of the statistics.
        picks, comparisons, carried, meta, costs: the tables of those names; ``carried`` and ``meta`` have no
            row where the study asks for none.
        runs: run records of the tuning jobs.
    """

    study: GeneralizedStudy
    resolved: Mapping[str, Any]
    settings: StatisticsSettings
    picks: "pd.DataFrame"
    comparisons: "pd.DataFrame"
    carried: "pd.DataFrame"
    meta: "pd.DataFrame"
    costs: "pd.DataFrame"
    runs: tuple[Mapping[str, Any], ...] = ()

    @property
    def main(self) -> list[str]:
        """Labels of the generalized environments, without variations and single environments."""
        entries = self.study.environments.items()
        return [label for label, entry in entries if not (entry.single or entry.beside)]

    @property
    def single(self) -> list[str]:
        """Labels of the single environments."""
        return [label for label, entry in self.study.environments.items() if entry.single]

    def agents(self, label: str) -> list[str]:
        """Labels of an environment's agents, without variations."""
        return [name for name, agent in self.study.algorithms_in(label).items() if agent.beside is None]

    def comparison(self, label: str, x: str, y: str, method: str = "mean") -> dict[str, Any]:
        """The row of two agents, chosen by one method; the agents in either order of the table."""
        rows = self._rows(label)
        rows = rows[(rows.method_x == method) & (rows.method_y == method)]
        found = rows[(rows.agent_x == x) & (rows.agent_y == y) | (rows.agent_x == y) & (rows.agent_y == x)]
        return found.iloc[0].to_dict()

    def methods(self, label: str, agent: str) -> dict[str, Any]:
        """The row of one agent's two choices: Copeland's against the mean's."""
        rows = self._rows(label)
        return rows[(rows.agent_x == agent) & (rows.agent_y == agent)].iloc[0].to_dict()

    def pick(self, label: str, agent: str, method: str) -> dict[str, Any]:
        """What a method chose for an agent."""
        rows = self.picks
        rows = rows[(rows.label == label) & (rows.agent == agent) & (rows.reading == READING)]
        return rows[rows.method == method].iloc[0].to_dict()

    def _rows(self, label: str) -> "pd.DataFrame":
        return self.comparisons[(self.comparisons.label == label) & (self.comparisons.reading == READING)]


def read_generalized_results(
    name: str, results: str | Path, settings: StatisticsSettings
) -> GeneralizedResults:
    """Read what the pipeline made of one generalized study, below ``results/<name>/``.

    Raises:
        ArtifactError: a file is missing or damaged.
    """
    folder = Path(results) / name
    resolved = read_json(folder / "study.json")
    study = GeneralizedStudy.model_validate(resolved["study"])
    picks = read_table(folder / "statistics/picks.parquet")
    runs = [Path(results, *Path(path).parts[1:]) for path in block_files(name, study.blocks(), "run.json")]
    return GeneralizedResults(
        study=study,
        resolved=resolved,
        settings=settings,
        picks=picks,
        comparisons=read_table(folder / "statistics/comparisons.parquet"),
        carried=read_table(folder / "statistics/carried.parquet") if study.carried else picks.iloc[:0],
        meta=read_table(folder / "statistics/meta.parquet") if study.meta else picks.iloc[:0],
        costs=read_table(folder / "costs.parquet"),
        runs=tuple(read_json(path) for path in runs if path.is_file()),
    )
