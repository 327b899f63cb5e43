"""Example trajectories: what is drawn is what was walked, and no episode is chosen by its result."""

import dataclasses

import numpy as np
import pytest

from seedbed.artifacts import ArtifactError
from seedbed.environments.goal_grid import GoalGrid
from seedbed.figures.catalogue import draw
from seedbed.figures.names import figure_names, followed, followed_steps
from seedbed.figures.walks import FOLLOWED, walked
from seedbed.seeding import Purpose, stream


def test_the_first_episodes_of_the_first_seed_are_followed_by_every_algorithm(walks):
    tables, _, _ = walks
    assert set(tables.walks["seed"]) == {3}
    kept = tables.walks.groupby("algorithm")["episode"].unique()
    assert list(kept.index) == ["oracle", "random", "walker"]
    assert all(list(numbers) == list(range(FOLLOWED)) for numbers in kept)
    starts = tables.walks[tables.walks["t"] == 0]
    places = starts.groupby("episode")[["x", "y", "goal_x", "goal_y", "shortest"]].nunique()
    assert (places == 1).all(axis=None)  # the same start and goal for all


def test_a_replay_has_the_logged_length_places_and_end(walks):
    tables, _, logs = walks
    for (label, episode), walk in tables.walks.groupby(["algorithm", "episode"]):
        log = logs[label][(logs[label]["seed"] == 3) & (logs[label]["episode"] == episode)]
        assert list(walk["t"]) == [0, *log["t"]]
        assert list(walk["x"].iloc[1:]) == list(log["x"])
        assert list(walk["y"].iloc[1:]) == list(log["y"])
        end = walk.iloc[-1]
        assert end["success"] == log["reached"].iloc[-1]
        assert ((end["x"], end["y"]) == (end["goal_x"], end["goal_y"])) == end["success"]
        moves = walk[["x", "y"]].diff().abs().sum(axis=1)
        assert list(moves.iloc[1:]) == list(log["moved"])


def test_the_oracle_walks_the_shortest_path(walks):
    tables, _, _ = walks
    oracle = tables.walks[tables.walks["algorithm"] == "oracle"]
    assert (oracle.groupby("episode")["t"].max() == oracle.groupby("episode")["shortest"].first()).all()
    assert oracle["success"].all()


def test_walks_from_reset_seeds_are_followed_too(tmp_path, synthetic, walks):
    study = synthetic.goal_study(list(range(100, 112)))
    tables, logs = synthetic.goal_tables(study, tmp_path)
    first = tables.walks.query("algorithm == 'oracle' and episode == 1")
    assert list(first["x"].iloc[1:]) == list(logs["oracle"].query("seed == 3 and episode == 1")["x"])
    assert not tables.walks.equals(walks[0].walks)


def test_a_log_that_the_environment_contradicts_is_refused(walks):
    _, study, logs = walks
    grid = GoalGrid(**study.environments["rooms"].arguments)
    log = logs["oracle"].query("seed == 3 and episode == 0")
    assert len(walked(grid, log, stream(Purpose.TEST, 3, 0))) == len(log) + 1
    with pytest.raises(ArtifactError, match=r"Episode 0 of seed 3, step 1: by the step table"):
        walked(grid, log, stream(Purpose.TEST, 4, 0))
    moved = log.assign(x=np.where(log["t"] == 2, 0, log["x"]), y=np.where(log["t"] == 2, 0, log["y"]))
    with pytest.raises(ArtifactError, match=r"step 2: by the step table .* column 0, row 0"):
        walked(grid, moved, stream(Purpose.TEST, 3, 0))


def test_only_goal_grids_are_followed_also_by_their_module(walks, usual):
    _, study, _ = walks
    assert followed(usual[1]) == []
    rooms = study.environments["rooms"]
    own = rooms.model_copy(update={"environment": "seedbed.environments.goal_grid:GoalGrid"})
    other = rooms.model_copy(update={"environment": "CartPole", "arguments": {}})
    mixed = study.model_copy(update={"environments": {"rooms": own, "pole": other}})
    assert followed(mixed) == ["rooms"]
    assert [name for name in figure_names(mixed) if name.startswith("traj")] == ["trajectories-rooms"]
    divided = {
        name: {"random": {"seeds-3-4": [3, 4], "seed-5": [5]}, "oracle": {"seeds-3-5": [3, 4, 5]}}
        for name in mixed.environments
    }
    assert followed_steps(mixed, divided) == [
        "results/walks/rooms/random/seeds-3-4/steps.parquet",
        "results/walks/rooms/oracle/seeds-3-5/steps.parquet",
    ]


def test_one_map_per_algorithm_and_episode_with_the_walk_from_start_to_end(walks):
    tables, study, _ = walks
    figure = draw("trajectories", tables, study)
    assert len(figure.axes) == 3 * FOLLOWED
    walk = tables.walks.query("algorithm == 'walker' and episode == 0")
    line, goal, start = figure.axes[0].lines[:3]
    drift = line.get_xdata() - walk["x"]
    assert drift.iloc[0] == 0
    assert (drift.diff().dropna() > 0).all()
    assert drift.max() < 0.5  # it stays in its cell
    np.testing.assert_allclose(line.get_ydata() - walk["y"], drift)
    assert (goal.get_xdata()[0], goal.get_ydata()[0]) == tuple(walk[["goal_x", "goal_y"]].iloc[0])
    assert (start.get_xdata()[0], start.get_ydata()[0]) == tuple(walk[["x", "y"]].iloc[0])
    crosses = {axes: sum(line.get_marker() == "x" for line in axes.lines) for axes in figure.axes}
    assert sum(crosses.values()) == (~tables.walks.query("t == 0")["success"]).sum()


def test_an_algorithm_without_a_followed_episode_keeps_its_column_empty(walks):
    tables, study, _ = walks
    some = tables.walks[tables.walks["algorithm"] != "random"]
    figure = draw("trajectories", dataclasses.replace(tables, walks=some), study)
    assert len(figure.axes) == 3 * FOLLOWED
    assert sum(not axes.lines for axes in figure.axes) == FOLLOWED
    assert "no episode" in {text.get_text() for text in figure.texts}
