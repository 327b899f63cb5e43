"""Example trajectories on a goal grid: which test episodes are followed, and where they led.

The step table holds positions after steps; start and goal come from the episode's own noise. The walk is
replayed from them, so what is drawn is what the environment does, and a log that says otherwise is found.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from seedbed.artifacts import STEP_COLUMNS, ArtifactError, read_table
from seedbed.figures.names import followed, followed_steps
from seedbed.layout import Blocks
from seedbed.registry import ENVIRONMENTS, make
from seedbed.seeding import Purpose, stream
from seedbed.study import Study

if TYPE_CHECKING:
    from seedbed.environments.goal_grid import GoalGrid

WALK_COLUMNS = {
    "environment": "string",
    "algorithm": "string",
    "policy_mode": "string",
    "seed": "int64",
    "episode": "int64",
    "t": "int64",
    "x": "int64",
    "y": "int64",
    "goal_x": "int64",
    "goal_y": "int64",
    "shortest": "int64",
    "success": "bool",
}
"""One row per position, t = 0 (the start) to the episode's length."""
FOLLOWED = 3
"""Episodes that are followed: the first ones of the first training seed, whatever came out of them."""


def read_walks(study: Study, divided: Blocks) -> pd.DataFrame | None:
    """The followed test episodes of every algorithm, from the step tables below ``results``.

    Returns:
        Table of WALK_COLUMNS; None for a study without goal grids.

    Raises:
        ArtifactError: a step table is missing, or does not tell what the environment does.
    """
    if not followed(study):
        return None
    tables = []
    for path in followed_steps(study, divided):
        environment, algorithm = Path(path).parts[-4:-2]
        grid = grid_of(study, environment)
        steps = read_table(path, STEP_COLUMNS)
        seed = study.seeds_in(environment)[0]
        wanted = (steps["seed"] == seed) & (steps["episode"] < FOLLOWED)
        for (mode, episode), part in steps[wanted].groupby(["policy_mode", "episode"], sort=True):
            walk = walked(grid, part, _generator(study, seed, int(episode)))
            labels = {"environment": environment, "algorithm": algorithm, "policy_mode": mode}
            tables.append(walk.assign(**labels, seed=seed, episode=episode))
    return pd.concat(tables, ignore_index=True)[list(WALK_COLUMNS)].astype(WALK_COLUMNS)


def walked(grid: "GoalGrid", steps: pd.DataFrame, generator: np.random.Generator) -> pd.DataFrame:
    """Positions along one episode, by replaying its actions.

    Args:
        grid: the environment.
        steps: the rows of the episode in the step table.
        generator: at the beginning of the episode's stream.

    Returns:
        t, x, y, goal_x, goal_y, shortest, success; one row per t = 0..length.

    Raises:
        ArtifactError: a logged position or end is not where the action leads.
    """
    steps = steps.sort_values("t")
    state = grid.initial(grid.draw(generator)[0])
    goal, shortest = grid.position[state.goal], int(state.shortest)
    places, success = [grid.position[state.cell]], False
    for row in steps.itertuples():
        state, _, terminated, _ = grid.step(state, np.array(row.action), np.empty(0))
        success = bool(terminated)
        places.append(grid.position[state.cell])
        if (*places[-1], success) != (row.x, row.y, row.terminated):
            raise ArtifactError(
                f"Episode {row.episode} of seed {row.seed}, step {row.t}: by the step table the walker is at "
                f"column {row.x}, row {row.y} (terminated: {row.terminated}), by the environment at column "
                f"{places[-1][0]}, row {places[-1][1]} (terminated: {success}). Evaluate again."
            )
    x, y = np.array(places).T
    return pd.DataFrame(
        {"t": np.arange(len(x)), "x": x, "y": y, "goal_x": goal[0], "goal_y": goal[1]}
    ).assign(shortest=shortest, success=success)


def grid_of(study: Study, environment: str) -> "GoalGrid":
    """The environment itself; it is named by the study, so other studies' figures do not depend on it."""
    entry = study.environments[environment]
    return make(entry.environment, entry.arguments, ENVIRONMENTS, "environment")


def _generator(study: Study, seed: int, episode: int) -> np.random.Generator:
    reset_seeds = study.evaluation.test.reset_seeds
    if not reset_seeds:
        return stream(Purpose.TEST, seed, episode)
    return np.random.default_rng(reset_seeds[episode])
