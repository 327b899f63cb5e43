"""Trials as a table: any part of the work gives the same rows, in any order, on any number of cores."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from seedbed.algorithms.sarsa_tiles import STEPS, Configuration, SarsaTiles, Workspace, run
from seedbed.algorithms.tile_coding import MOST_VARIABLES
from seedbed.artifacts import SeedbedError
from seedbed.environments.generalized.documents import EnvironmentDocument

KEYS = ("agent", "configuration", "environment", "seed", "steps")
TRIAL_COLUMNS = {
    "agent": "string",
    "configuration": "int64",
    "environment": "string",
    "domain": "string",
    "position": "int64",
    "seed": "int64",
    "steps": "int64",
    "episodes": "int64",
    "total_reward": "float64",
    "completed_reward": "float64",
    "score": "float64",
    "completed_score": "float64",
    "growths": "int64",
    "diverged": "bool",
    **{f"{end}_{i}": "float64" for i in range(MOST_VARIABLES) for end in ("low", "high")},
}
"""One row per trial. ``configuration``: index in the grid; ``environment``: the document's hash, ``position``
its place in its set; ``score`` and ``completed_score``: the two readings of "average reward per completed
episode"; ``low_i``, ``high_i``: the final range, NaN beyond the domain's variables."""

AGENTS = {family: SarsaTiles(family) for family in ("A", "B", "C")}
"""The paper's families: adaptive range, wide range, exact range."""


def run_trials(
    configurations: Mapping[int, Configuration],
    environments: Sequence[EnvironmentDocument],
    agents: Mapping[str, SarsaTiles] = AGENTS,
    *,
    wide: Mapping[str, np.ndarray] | None = None,
    steps: int = STEPS,
    seed: int = 0,
    first_position: int = 0,
    progress: Callable[[int], object] | None = None,
) -> pd.DataFrame:
    """One trial of each agent with each configuration in each environment.

    Args:
        configurations: by their index in the grid.
        environments: some or all of a set.
        agents: by their name in tables.
        wide: ranges of family B per domain, over all environments of the experiment: tuning and test.
        steps: of each trial.
        seed: of all trials; agents and configurations meet the same luck in an environment.
        first_position: place of the first environment in its set.
        progress: called with the number of trials that are over, once per trial.

    Returns:
        Table of TRIAL_COLUMNS, sorted as ``gather`` does.

    Raises:
        ValueError: as ``sarsa_tiles.run``.
    """
    workspace, rows = Workspace(), []
    for name, agent in agents.items():
        for index, configuration in configurations.items():
            for position, environment in enumerate(environments, first_position):
                known = None if wide is None else wide.get(environment.domain)
                record = run(configuration, environment, agent, workspace, steps, seed, known)
                ranges = {f"low_{i}": low for i, low in enumerate(record.low)}
                ranges |= {f"high_{i}": high for i, high in enumerate(record.high)}
                rows.append(
                    {
                        "agent": name,
                        "configuration": index,
                        "environment": environment.hash,
                        "domain": environment.domain,
                        "position": position,
                        "seed": seed,
                        "steps": steps,
                        "episodes": record.episodes,
                        "total_reward": record.total_reward,
                        "completed_reward": record.completed_reward,
                        "score": record.score,
                        "completed_score": record.completed_score,
                        "growths": record.growths,
                        "diverged": record.diverged,
                    }
                    | ranges
                )
                if progress is not None:
                    progress(len(rows))
    return gather([pd.DataFrame(rows, columns=list(TRIAL_COLUMNS))])


def gather(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """One table of many parts, sorted by agent, configuration and position.

    Raises:
        SeedbedError: a trial is there twice.
    """
    table = pd.concat(list(tables), ignore_index=True).astype(TRIAL_COLUMNS)
    twice = table.duplicated(list(KEYS))
    if twice.any():
        first = table.loc[twice.idxmax(), list(KEYS)].to_dict()
        raise SeedbedError(f"A trial is there twice: {first}. Gather each part once.")
    return table.sort_values(["agent", "configuration", "position", "environment"], ignore_index=True)


def score_matrix(trials: pd.DataFrame, agent: str, reading: str = "score") -> tuple[np.ndarray, np.ndarray]:
    """Scores [environments, configurations] of one agent, and the configurations' indices, ascending.

    Environments are in the order of their positions. A missing score counts as -inf: an agent that completed
    no episode is worse than all that did.

    Raises:
        SeedbedError: the agent has no trials, or a configuration lacks an environment.
    """
    part = trials[trials["agent"] == agent]
    if part.empty:
        known = ", ".join(sorted(trials["agent"].unique()))
        raise SeedbedError(f"There are no trials of agent '{agent}', only of {known}.")
    table = part.pivot(index=["position", "environment"], columns="configuration", values=reading)
    counted = part.pivot(index=["position", "environment"], columns="configuration", values="steps")
    if counted.isna().any(axis=None):
        index = counted.columns[counted.isna().any()][0]
        raise SeedbedError(f"Configuration {index} of agent '{agent}' lacks trials. Run all parts first.")
    return table.fillna(-np.inf).to_numpy(float), table.columns.to_numpy(np.int64)
