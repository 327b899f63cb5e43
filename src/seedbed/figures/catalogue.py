"""Every figure by name: pure functions of the statistics tables and the study."""

from collections.abc import Callable

from matplotlib.figure import Figure

from seedbed.figures.bars import bars
from seedbed.figures.difficulty_mix import difficulty_mix
from seedbed.figures.gain_by_modality import gain_by_modality
from seedbed.figures.incidence import mastery_incidence, success_incidence
from seedbed.figures.learning_curves import learning_curves
from seedbed.figures.names import kind_of
from seedbed.figures.pairwise_tests import pairwise_tests
from seedbed.figures.reliability import reliability
from seedbed.figures.tables import Tables
from seedbed.figures.trajectories import trajectories
from seedbed.study import Study

FIGURES: dict[str, Callable[[Tables, Study], Figure]] = {
    "learning_curves": learning_curves,
    "bars": bars,
    "pairwise_tests": pairwise_tests,
    "mastery_incidence": mastery_incidence,
    "gain_by_modality": gain_by_modality,
    "difficulty_mix": difficulty_mix,
    "success_incidence": success_incidence,
    "trajectories": trajectories,
    "reliability": reliability,
}


def draw(name: str, tables: Tables, study: Study) -> Figure:
    """One of ``figure_names(study)``; marks of algorithms are the same in all environments.

    A figure of one environment has the seeds that run there.

    Raises:
        KeyError: there is no such figure or environment.
    """
    kind, environment = kind_of(name), name.partition("-")[2]
    shown = [environment] if environment else list(study.environments)
    if len(shown) == 1:
        only = {"environments": {shown[0]: study.environments[shown[0]]}, "seeds": study.seeds_in(shown[0])}
        study = study.model_copy(update=only)
    return FIGURES[kind](tables, study)
