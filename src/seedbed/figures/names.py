"""Which figures a study has: names only, so that the workflow can ask without loading matplotlib."""

from seedbed.study import Study

GENERAL = ("learning_curves", "bars", "pairwise_tests")
OF_METRIC_SET = {"interview": ("mastery_incidence", "gain_by_modality", "difficulty_mix")}


def figure_names(study: Study) -> tuple[str, ...]:
    """Names of a study's figures, in order: the general ones, then those of its metric sets."""
    return GENERAL + tuple(name for names in study.metrics for name in OF_METRIC_SET.get(names, ()))
