"""Which figures a study has: names only, so that the workflow can ask without loading matplotlib."""

from seedbed.study import Study

GENERAL = ("learning_curves", "bars", "pairwise_tests")
OF_METRIC_SET = {"interview": ("mastery_incidence", "gain_by_modality", "difficulty_mix")}


def figure_names(study: Study) -> tuple[str, ...]:
    """Names of a study's figures, in order: the general ones, then those of its metric sets.

    A study with several environments has each figure once for each, as ``<figure>-<environment>``.
    """
    kinds = GENERAL + tuple(kind for names in study.metrics for kind in OF_METRIC_SET.get(names, ()))
    if len(study.environments) == 1:
        return kinds
    return tuple(f"{kind}-{environment}" for kind in kinds for environment in study.environments)


def kind_of(name: str) -> str:
    """The figure behind a name, such as "bars" behind "bars-default"; its caption bears that name."""
    return name.partition("-")[0]
