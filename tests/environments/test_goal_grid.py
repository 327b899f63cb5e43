"""The goal grid: small cases by hand, distances, rewards that telescope, maps that cannot be, difficulty."""

import warnings
from collections import deque

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

from seedbed.algorithms.shortest_path import ShortestPath, ShortestPathPolicy
from seedbed.algorithms.uniform_random import UniformRandomPolicy
from seedbed.artifacts import SeedbedError
from seedbed.environments.cart_pole import CartPole
from seedbed.environments.goal_grid import DOWN, LEFT, MOVES, RIGHT, STAY, UP, GoalGrid, GoalState
from seedbed.environments.lanes import DynamicsLanes
from seedbed.evaluation import evaluate
from seedbed.registry import ENVIRONMENTS, make
from seedbed.seeding import Purpose

SMALL = """
..#..
..#..
..+..
..#..
..#..
"""
"""Cells: columns 0, 1, 3, 4 of five rows, and the door at column 2, row 2."""


def at(grid, x, y):
    return int(np.flatnonzero((grid.position == (x, y)).all(1))[0])


def state_of(grid, walker, goal, held=0):
    cell, goal = at(grid, *walker), at(grid, *goal)
    return GoalState(*map(np.array, (cell, goal, held, grid.distance[cell, goal])))


def walk(grid, state, *actions):
    """Transitions of a walk; it must not end before its last step."""
    transitions = []
    for action in actions:
        assert not (transitions and transitions[-1].terminated)
        transitions.append(grid.step(state, np.array(action), np.empty(0)))
        state = transitions[-1].state
    return transitions


def test_a_small_map_by_hand():
    grid = GoalGrid(map=SMALL, minimum_distance=1)
    assert len(grid.position) == 21
    assert grid.distance[at(grid, 0, 0), at(grid, 4, 0)] == 8  # down to the door, through it, and up again
    assert grid.distance[at(grid, 1, 0), at(grid, 3, 0)] == 6
    assert grid.distance[at(grid, 0, 0), at(grid, 1, 4)] == 5
    assert grid.distance.max() == 8
    state = state_of(grid, (1, 1), (3, 2))
    # a wall on the right, the outside on no side; the door is two steps away, the goal three
    steps = walk(grid, state, RIGHT, STAY, UP, DOWN, DOWN, RIGHT, RIGHT)
    np.testing.assert_allclose(
        [float(step.reward) for step in steps], [-0.01, -0.01, -1.01, 0.99, 0.99, 0.99, 5.99], atol=1e-12
    )
    facts = {name: [step.facts[name].item() for step in steps] for name in steps[0].facts}
    assert facts == {
        "x": [1, 1, 1, 1, 1, 2, 3],
        "y": [1, 1, 0, 1, 2, 2, 2],
        "distance": [3, 3, 4, 3, 2, 1, 0],
        "shortest": [3] * 7,
        "moved": [False, False, True, True, True, True, True],
        "reached": [False] * 6 + [True],
    }
    assert [bool(step.terminated) for step in steps] == [False] * 6 + [True]


def test_the_observation_by_hand():
    grid = GoalGrid(map=SMALL, minimum_distance=1, hold=2)
    column, row = np.eye(5), np.eye(5)
    seen = grid.observe(state_of(grid, (1, 0), (4, 2), held=1))
    blocked = [1, 0, 0, 1]  # up is outside, down is free, left is free, right is wall
    expected = [*column[1], *row[0], *blocked, *column[4], *row[2], 3 / 4, 2 / 4, 1 / 2]
    np.testing.assert_array_equal(seen, np.array(expected, np.float32))
    assert seen.shape == grid.spec.observation_shape


@pytest.mark.parametrize("hold", [1, 2, 3, 4])
def test_the_goal_must_be_held(hold):
    grid = GoalGrid(map=SMALL, minimum_distance=1, hold=hold)
    start = state_of(grid, (3, 0), (4, 0))
    *_, last = walk(grid, start, RIGHT, *[STAY] * (hold - 1))
    assert last.terminated
    assert last.reward == pytest.approx(5 - 0.01 + (hold == 1))
    if hold > 1:  # a blocked move is a step on the goal too; leaving it starts the count anew
        assert walk(grid, start, RIGHT, *[UP] * (hold - 1))[-1].terminated
        again = walk(grid, start, RIGHT, LEFT, RIGHT, *[STAY] * (hold - 1))
        assert [int(step.state.held) for step in again] == [1, 0, *range(1, hold + 1)]
        assert again[-1].terminated


def distances_from(grid, start):
    """Breadth-first search as in a textbook, on positions."""
    free = set(map(tuple, grid.position.tolist()))
    found, queue = {start: 0}, deque([start])
    while queue:
        x, y = queue.popleft()
        for dx, dy in MOVES.tolist():
            there = (x + dx, y + dy)
            if there in free and there not in found:
                found[there] = found[x, y] + 1
                queue.append(there)
    return [found[tuple(place)] for place in grid.position.tolist()]


@pytest.mark.parametrize("arguments", [{}, {"map": SMALL}, {"map": ".+.\n#+#\n#.#\n..."}])
def test_distances_are_those_of_a_plain_search(arguments):
    grid = GoalGrid(minimum_distance=1, **arguments)
    for cell, place in enumerate(grid.position.tolist()):
        np.testing.assert_array_equal(grid.distance[cell], distances_from(grid, tuple(place)))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_returns_telescope(seed, hold):
    grid = GoalGrid(map=SMALL, minimum_distance=2, hold=hold, horizon=20)
    lanes = DynamicsLanes(grid, Purpose.TUNING, [seed], 16, episodes=16)
    generator, total, ended = np.random.default_rng(seed), np.zeros(16), {}
    while lanes.active.any():
        step = lanes.step(generator.integers(0, 5, (1, 16)))
        total += step.reward[0] * step.active[0]
        for lane in np.flatnonzero(step.active[0] & (step.terminated | step.truncated)[0]):
            ended[lane] = {name: fact[0, lane] for name, fact in step.facts.items()}
            ended[lane]["t"] = step.t[0, lane]
    assert len(ended) == 16
    for lane, facts in ended.items():
        gained = facts["shortest"] - facts["distance"] + 5 * facts["reached"] - 0.01 * facts["t"]
        assert total[lane] == pytest.approx(gained, abs=1e-9)
        assert facts["reached"] or facts["t"] == 20


def test_starts_and_goals_have_their_distribution():
    grid = GoalGrid(map="...#\n#.+.", minimum_distance=2)
    floor = [at(grid, *place) for place in ((0, 0), (1, 0), (2, 0), (1, 1), (3, 1))]
    pairs = {(start, goal) for start in floor for goal in floor if grid.distance[start, goal] >= 2}
    state = grid.initial(np.random.default_rng(0).random((20_000, 2)))
    found = set(zip(state.cell.tolist(), state.goal.tolist(), strict=True))
    assert found == pairs
    goals, counts = np.unique(state.goal, return_counts=True)
    np.testing.assert_allclose(counts / 20_000, 1 / len(goals), atol=0.015)
    for goal in goals:
        starts, counts = np.unique(state.cell[state.goal == goal], return_counts=True)
        np.testing.assert_allclose(counts / counts.sum(), 1 / len(starts), atol=0.03)
    np.testing.assert_array_equal(state.shortest, grid.distance[state.cell, state.goal])


def test_a_step_is_the_same_alone_and_in_a_batch():
    grid, generator = GoalGrid(hold=2), np.random.default_rng(0)
    noise = generator.random((3, 5, 2))
    state, action = grid.initial(noise), generator.integers(0, 5, (3, 5))
    before = [part.copy() for part in state]
    batch = grid.step(state, action, np.empty((3, 5, 0)))
    for part, kept in zip(state, before, strict=True):
        np.testing.assert_array_equal(part, kept)
    assert not any(np.shares_memory(old, new) for old in state for new in batch.state)
    for index in np.ndindex(3, 5):
        first = grid.initial(noise[index])
        alone = grid.step(first, action[index], np.empty(0))
        for one, many in zip(alone.state, batch.state, strict=True):
            assert one.shape == ()
            assert one == many[index]
        assert alone.reward == batch.reward[index]
        assert alone.terminated == batch.terminated[index]
        for name, fact in alone.facts.items():
            assert (fact.dtype, fact.shape) == (batch.facts[name].dtype, ())
            assert fact == batch.facts[name][index]
        np.testing.assert_array_equal(grid.observe(alone.state), grid.observe(batch.state)[index])
    assert {fact.name: fact.dtype for fact in grid.spec.facts} == {
        name: str(fact.dtype) for name, fact in batch.facts.items()
    }


def test_many_lanes_and_few_give_the_same_episodes():
    grid = GoalGrid(horizon=40)
    policy = UniformRandomPolicy([1000, 1001], grid)
    one, many = (evaluate(policy, grid, Purpose.TUNING, 30, lanes=lanes).episodes for lanes in (1, 8))
    assert one.equals(many)


def test_observations_stay_within_their_bounds():
    grid = GoalGrid(hold=3)
    lanes, generator = DynamicsLanes(grid, Purpose.TUNING, [1000], 8192), np.random.default_rng(0)
    for _ in range(20):
        seen = lanes.step(generator.integers(0, 5, (1, 8192))).final_observation
        assert (seen >= grid.spec.observation_low).all()
        assert (seen <= grid.spec.observation_high).all()


def test_gymnasium_finds_no_fault():
    environment = gymnasium.make("seedbed.environments.gymnasium_env:seedbed/GoalGrid-v0", hold=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(environment.unwrapped)


def test_the_default_is_hard_for_chance_and_solved_by_the_shortest_path():
    grid = GoalGrid()
    episodes = evaluate(UniformRandomPolicy([1000], grid), grid, Purpose.TUNING, 1000, lanes=250).episodes
    assert episodes["success"].mean() <= 0.2
    assert episodes["final_shortest"].median() >= 15
    assert episodes["final_shortest"].min() >= 8
    episodes = evaluate(ShortestPathPolicy([1000], grid), grid, Purpose.TUNING, 1000, lanes=250).episodes
    assert episodes["success"].all()
    assert (episodes["length"] == episodes["final_shortest"]).all()
    expected = episodes["final_shortest"] * 0.99 + 5
    np.testing.assert_allclose(episodes["return"], expected, atol=1e-9)


def test_the_shortest_path_holds_the_goal_and_knows_its_place(tmp_path):
    grid = GoalGrid(hold=4)
    lanes = DynamicsLanes(grid, Purpose.TUNING, [1000, 1001], 3)
    policy = ShortestPath().train(lanes, lanes.seeds, 0, Unwatched())
    episodes = evaluate(policy, grid, Purpose.TUNING, 50, lanes=50).episodes
    assert episodes["success"].all()
    assert (episodes["length"] == episodes["final_shortest"] + 3).all()
    action, _ = policy.act(lanes.state, None, np.empty((2, 3, 0)), None, lanes.first)
    chances = policy.probabilities(lanes.state, None, None, lanes.first)
    np.testing.assert_array_equal(chances.argmax(-1), action)
    assert (chances.sum(-1) == 1).all()
    policy.save(tmp_path / "policy.safetensors")
    assert ShortestPathPolicy.load(tmp_path / "policy.safetensors", grid).seeds == [1000, 1001]
    with pytest.raises(ValueError, match="in the goal grid only, not in CartPole"):
        ShortestPathPolicy([1], CartPole())


class Unwatched:
    """A recorder without a learning curve."""

    def due(self, steps):
        return False


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"map": ""}, "the map is empty"),
        ({"map": "...\n..\n"}, "row 2 of the map has 2 cells, row 1 has 3"),
        ({"map": "..x"}, r"row 1 of the map has \['x'\]"),
        ({"map": "###\n#.#"}, "two cells of floor at least"),
        ({"map": "+++\n#.#"}, "two cells of floor at least"),
        ({"map": "..#.."}, "no way leads from column 0, row 0 to column 3, row 0"),
        ({"map": "....."}, "No two cells of floor are 8 steps apart .* the most on this map is 4"),
        ({"hold": 0}, "hold"),
        ({"hold": 5}, "hold"),
        ({"horizon": 0}, "horizon"),
        ({"step_cost": -1}, "step_cost"),
        ({"minimum_distance": 0}, "minimum_distance"),
        ({"walls": 3}, "walls"),
    ],
)
def test_what_cannot_be_is_refused(arguments, message):
    with pytest.raises(SeedbedError, match=message):
        make("GoalGrid", arguments, ENVIRONMENTS, "environment")
