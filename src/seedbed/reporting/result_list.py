"""All files that are made of a study before the report, listed from the study and never globbed."""

from seedbed.figures.names import figure_names
from seedbed.generalized_study import GeneralizedStudy
from seedbed.layout import (
    EVALUATED,
    MEASURED,
    STATISTICS,
    STUDY,
    TRAINED,
    Blocks,
    block_files,
    generalized_files,
    off_policy_files,
)
from seedbed.reporting.tables import table_names
from seedbed.study import Study

FIGURE_FORMATS = ("pdf", "svg", "png")
TABLE_FORMATS = ("csv", "md", "tex")


def figure_files(study: Study | GeneralizedStudy) -> list[str]:
    """Figures of a study in each format."""
    names = figure_names(study)
    return [f"results/{study.name}/figures/{name}.{form}" for name in names for form in FIGURE_FORMATS]


def table_files(study: Study | GeneralizedStudy) -> list[str]:
    """Tables of a study in each format."""
    names = table_names(study)
    return [f"results/{study.name}/tables/{name}.{form}" for name in names for form in TABLE_FORMATS]


def result_list(study: Study | GeneralizedStudy, divided: Blocks) -> list[str]:
    """Everything that is made of one study before the report, but logs."""
    if isinstance(study, GeneralizedStudy):
        return [*generalized_files(study), *figure_files(study), *table_files(study)]
    own = [*STUDY, *(f"statistics/{name}.parquet" for name in STATISTICS)]
    return [
        *block_files(study.name, divided, *TRAINED, *EVALUATED, *MEASURED),
        *(f"results/{study.name}/{name}" for name in own),
        *off_policy_files(study),
        *figure_files(study),
        *table_files(study),
    ]
