"""Which figures a study has: names only, so that the workflow can ask without loading matplotlib."""

from seedbed.generalized_study import GeneralizedStudy
from seedbed.layout import Blocks, block_files
from seedbed.registry import ENVIRONMENTS, location
from seedbed.study import Study

GENERAL = ("learning_curves", "bars", "pairwise_tests")
OF_METRIC_SET = {
    "interview": ("mastery_incidence", "gain_by_modality", "difficulty_mix"),
    "goal": ("success_incidence",),
    "model": ("reliability",),
}
OF_GENERALIZED = ("box_plots",)
OF_ENVIRONMENT = {"GoalGrid": ("trajectories",)}


def figure_names(study: Study | GeneralizedStudy) -> tuple[str, ...]:
    """Names of a study's figures, in order: the general ones, then those of metric sets and environments.

    A study with several environments has each figure once for each that it is made for, as
    ``<figure>-<environment>``.
    """
    if isinstance(study, GeneralizedStudy):
        return OF_GENERALIZED
    kinds = GENERAL + tuple(kind for names in study.metrics for kind in OF_METRIC_SET.get(names, ()))
    shown = [(kind, environment) for kind in kinds for environment in study.environments]
    shown += [
        (kind, environment)
        for name, own in OF_ENVIRONMENT.items()
        for kind in own
        for environment in _environments(study, name)
    ]
    several = len(study.environments) > 1
    return tuple(f"{kind}-{environment}" if several else kind for kind, environment in shown)


def kind_of(name: str) -> str:
    """The figure behind a name, such as "bars" behind "bars-default"; its caption bears that name."""
    return name.partition("-")[0]


def followed(study: Study) -> list[str]:
    """Environments of which example trajectories are drawn."""
    return _environments(study, "GoalGrid")


def followed_steps(study: Study, divided: Blocks) -> list[str]:
    """The step tables that example trajectories are read from: each algorithm's block of the first seed."""
    first = {
        environment: {
            algorithm: {
                name: seeds for name, seeds in blocks.items() if study.seeds_in(environment)[0] in seeds
            }
            for algorithm, blocks in divided[environment].items()
        }
        for environment in followed(study)
    }
    return block_files(study.name, first, "steps.parquet")


def _environments(study: Study, name: str) -> list[str]:
    """Labels of a study's environments of one registered kind, also where it is named by its module."""
    wanted = ENVIRONMENTS[name]
    return [
        label
        for label, entry in study.environments.items()
        if location(entry.environment, ENVIRONMENTS, "environment") == wanted
    ]
