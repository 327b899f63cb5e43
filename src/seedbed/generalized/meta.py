"""The meta-generalized methodology: an agent lives through series of environments of hidden families.

In each meta-trial a generalized environment is drawn, then a series of environments from it. The agent may
keep what it learned from one environment of a series to the next (Whiteson, Tanner, Taylor and Stone 2011).
The environments of a series are not independent: the statistical unit is the meta-trial.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import pandas as pd

from seedbed.algorithms.sarsa_tiles import STEPS, Configuration, SarsaTiles, TrialRecord, Workspace, run
from seedbed.environments.generalized.samplers import MetaSampler


class Choice(NamedTuple):
    """How an agent meets an environment."""

    configuration: Configuration
    agent: SarsaTiles
    first_range: np.ndarray | None = None
    """[2, variables] for adaptive families; None: from the first observation"""


class MetaAgent(Protocol):
    """An agent that may learn across environments. It never sees their documents."""

    def begin_meta(self) -> None:
        """A new family of environments: what was kept from the last one is of no use."""
        ...

    def begin_environment(self, variables: int, actions: int) -> Choice:
        """The next environment, of so many observed variables and actions."""
        ...

    def end_environment(self, record: TrialRecord) -> None:
        """What the trial came to."""
        ...


class Forgetful:
    """Meets each environment as if it were the first.

    Args:
        configuration, agent: how.
    """

    def __init__(self, configuration: Configuration, agent: SarsaTiles | None = None):
        self._choice = Choice(configuration, agent or SarsaTiles("A"))

    def begin_meta(self) -> None:
        pass

    def begin_environment(self, variables: int, actions: int) -> Choice:
        return self._choice

    def end_environment(self, record: TrialRecord) -> None:
        pass


class RangeKeeper(Forgetful):
    """Begins with the smallest range that holds all it found in environments of this shape before."""

    def begin_meta(self) -> None:
        self._known: dict[tuple[int, int], np.ndarray] = {}

    def begin_environment(self, variables: int, actions: int) -> Choice:
        self._shape = variables, actions
        return self._choice._replace(first_range=self._known.get(self._shape))

    def end_environment(self, record: TrialRecord) -> None:
        found = np.array([record.low, record.high])
        known = self._known.get(self._shape, found)
        self._known[self._shape] = np.array([np.minimum(known[0], found[0]), np.maximum(known[1], found[1])])


class Bandit:
    """Tries each configuration once, then takes the one with the best mean score so far, per shape.

    Args:
        configurations: the arms.
        agent: what they share.
    """

    def __init__(self, configurations: Sequence[Configuration], agent: SarsaTiles | None = None):
        self._configurations, self._agent = tuple(configurations), agent or SarsaTiles("A")

    def begin_meta(self) -> None:
        self._scores: dict[tuple[int, int], list[list[float]]] = {}

    def begin_environment(self, variables: int, actions: int) -> Choice:
        self._arms = self._scores.setdefault((variables, actions), [[] for _ in self._configurations])
        untried = [arm for arm, scores in enumerate(self._arms) if not scores]
        self._arm = untried[0] if untried else int(np.argmax([np.mean(scores) for scores in self._arms]))
        return Choice(self._configurations[self._arm], self._agent)

    def end_environment(self, record: TrialRecord) -> None:
        self._arms[self._arm].append(record.score)


def run_meta(
    agents: Mapping[str, MetaAgent],
    sampler: MetaSampler,
    meta_trials: Sequence[int],
    *,
    environments: int = 10,
    steps: int = STEPS,
    seed: int = 0,
) -> pd.DataFrame:
    """Series of environments, the same for all agents.

    Args:
        agents: by name.
        sampler: of generalized environments.
        meta_trials: numbers of the meta-trials; any part gives the same rows.
        environments: per series.
        steps: per environment.
        seed: of the series and of all trials.

    Returns:
        agent, meta_trial, place (from 0), environment, domain, episodes, score, growths: one row per trial.
    """
    workspace, rows = Workspace(), []
    for name, agent in agents.items():
        for trial in meta_trials:
            agent.begin_meta()
            for place, environment in enumerate(sampler.series(seed, trial, environments)):
                choice = agent.begin_environment(len(environment.transforms), environment.actions)
                record = run(
                    choice.configuration,
                    environment,
                    choice.agent,
                    workspace,
                    steps,
                    seed,
                    first_range=choice.first_range,
                )
                agent.end_environment(record)
                rows.append(
                    {
                        "agent": name,
                        "meta_trial": trial,
                        "place": place,
                        "environment": environment.hash,
                        "domain": environment.domain,
                        "episodes": record.episodes,
                        "score": record.score,
                        "growths": record.growths,
                    }
                )
    return pd.DataFrame(rows)


def meta_scores(trials: pd.DataFrame) -> pd.DataFrame:
    """Mean score of each series, [meta_trial, agent]: independent between rows, matched within."""
    return trials.pivot_table(index="meta_trial", columns="agent", values="score", aggfunc="mean")
