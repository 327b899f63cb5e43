"""The tables of a study, and writing them."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from seedbed.artifacts import write_text
from seedbed.generalized_study import GeneralizedStudy
from seedbed.reporting.comparison_tables import comparisons_table, pairs_table
from seedbed.reporting.cost_table import cost_table
from seedbed.reporting.efficiency_table import efficiency_table
from seedbed.reporting.generalized_tables import generalized_table_names
from seedbed.reporting.layout import Table, to_csv, to_latex, to_markdown
from seedbed.reporting.metric_tables import main_table, modes_table, panels, secondary_table
from seedbed.reporting.off_policy_tables import OFF_POLICY_TABLES, off_policy_data_table, off_policy_table
from seedbed.reporting.study_results import StudyResults
from seedbed.study import Study

FORMS = {"csv": to_csv, "md": to_markdown, "tex": to_latex}


def table_names(study: Study | GeneralizedStudy) -> list[str]:
    """Names of a study's tables, without reading a result: ``results/<study>/tables/<name>.{csv,md,tex}``."""
    if isinstance(study, GeneralizedStudy):
        return generalized_table_names(study)
    names = []
    for environment in study.environments:
        names += [f"main_{environment}", f"pairs_{environment}", f"secondary_{environment}"]
        names += [
            f"secondary_{environment}_{panel + 1}" for panel in range(1, len(panels(study, environment)))
        ]
        names += [f"modes_{environment}", f"comparisons_{environment}"]
        names += [f"efficiency_{environment}"] if study.statistics.sample_efficiency else []
    return [*names, *(OFF_POLICY_TABLES if study.off_policy else ()), "cost"]


def study_tables(results: StudyResults) -> dict[str, Table]:
    """All tables of a study by name, in the order of ``table_names``."""
    return {table.name: table for table in _tables(results)}


def _tables(results: StudyResults) -> Iterator[Table]:
    for environment in results.study.environments:
        yield main_table(results, environment)
        yield pairs_table(results, environment)
        for panel in range(len(panels(results.study, environment))):
            yield secondary_table(results, environment, panel)
        yield modes_table(results, environment)
        yield comparisons_table(results, environment)
        if results.study.statistics.sample_efficiency:
            yield efficiency_table(results, environment)
    if results.study.off_policy:
        yield off_policy_data_table(results)
        yield off_policy_table(results)
    yield cost_table(results)


def tabulate(results: StudyResults, folder: str | Path) -> None:
    """Write every table as ``<name>.csv`` (full precision), ``.md`` and ``.tex`` (booktabs).

    Args:
        results: of the study.
        folder: ``results/<study>/tables``.
    """
    write_tables(study_tables(results), folder)


def write_tables(tables: Mapping[str, Table], folder: str | Path) -> None:
    """As ``tabulate``, of tables by name."""
    for name, table in tables.items():
        for suffix, form in FORMS.items():
            write_text(Path(folder) / f"{name}.{suffix}", form(table))
