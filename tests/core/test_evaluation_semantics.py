"""docs/evaluation-semantics.md: tests for some of its sentences, and its examples."""

import re
import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pandas as pd
import pytest
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv

from seedbed.algorithms.ppo import PPO
from seedbed.algorithms.uniform_random import UniformRandomPolicy
from seedbed.artifacts import EPISODE_COLUMNS, STEP_COLUMNS, write_table
from seedbed.environments.cart_pole import CartPole
from seedbed.environments.external import GymnasiumEnvironment, VectorEnvironment
from seedbed.environments.goal_grid import GoalGrid
from seedbed.environments.interview import MockInterview
from seedbed.evaluation import evaluate
from seedbed.metrics.base import score
from seedbed.metrics.episodes import METRICS
from seedbed.seeding import Purpose
from seedbed.statistics.intervals import proportion_interval
from seedbed.training import CurvePlan, train

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/evaluation-semantics.md"
PLACES = {
    "CartPole-v1": lambda **options: GymnasiumEnvironment("CartPole-v1", **options),
    "Acrobot-v1": lambda **options: GymnasiumEnvironment("Acrobot-v1", horizon=40, **options),
    "MountainCarContinuous-v0": lambda **options: GymnasiumEnvironment(
        "MountainCarContinuous-v0", horizon=40, **options
    ),
    "GoalGrid": GoalGrid,
    "MockInterview": lambda: MockInterview("tiny"),
}


def network(environment, seeds=(0, 7)):
    """A policy that has learned a little."""
    return train(PPO(lanes=2, rollout=8, hidden=(16,)), environment, seeds, 16, None).policy


def randomly(environment, seeds=(0, 7)):
    """A policy that takes any action."""
    return UniformRandomPolicy(seeds, environment)


def files(folder, policy, environment, lanes):
    """The bytes of episode and step table, over all modes of a policy."""
    written = []
    for mode in policy.modes:
        run = evaluate(policy.in_mode(mode), environment, Purpose.TEST, 9, lanes=lanes, log_steps=True)
        for table, columns in ((run.episodes, EPISODE_COLUMNS), (run.steps, STEP_COLUMNS)):
            write_table(folder / "table.parquet", table, columns)
            written.append((folder / "table.parquet").read_bytes())
    return written


WHO_WHERE = [
    *((name, randomly) for name in PLACES),
    *((name, network) for name in PLACES if name != "MountainCarContinuous-v0"),
]


@pytest.mark.parametrize(
    ("name", "makes"),
    [
        pytest.param(name, makes, marks=[pytest.mark.slow] if (name, makes) == ("GoalGrid", network) else [])
        for name, makes in WHO_WHERE
    ],
)
def test_table_files_are_the_same_bytes_for_1_2_3_and_8_lanes(name, makes, tmp_path):
    environment = PLACES[name]()
    policy = makes(environment)
    expected = files(tmp_path, policy, environment, 1)
    assert len(set(expected)) == len(expected)
    for lanes in (2, 3, 8):
        assert files(tmp_path, policy, environment, lanes) == expected


@pytest.mark.parametrize("lanes", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("name", "makes"),
    [
        pytest.param(name, makes, marks=[pytest.mark.slow] if makes is network else [])
        for name, makes in WHO_WHERE
        if name.endswith(("v0", "v1"))
    ],
)
def test_table_files_are_the_same_bytes_in_processes(name, makes, lanes, tmp_path):
    policy = makes(PLACES[name]())
    expected = files(tmp_path, policy, PLACES[name](), lanes)
    assert files(tmp_path, policy, PLACES[name](vectorisation="async"), lanes) == expected


@pytest.mark.parametrize("name", ["CartPole-v1", "GoalGrid", "MockInterview"])
def test_training_is_the_same_bits_with_and_without_evaluation(name, tmp_path):
    left = []
    for curve in (None, CurvePlan(320, 3, 2)):
        run = train(PPO(lanes=4, rollout=16, hidden=(16,)), PLACES[name](), [2, 5], 800, curve)
        run.policy.save(tmp_path / "policy.safetensors")
        write_table(tmp_path / "episodes.parquet", run.episodes, EPISODE_COLUMNS)
        assert len(run.episodes) > 5
        assert run.curve.empty == (curve is None)
        left.append([(tmp_path / file).read_bytes() for file in ("policy.safetensors", "episodes.parquet")])
    assert left[0] == left[1]


@pytest.mark.parametrize("name", [name for name in PLACES if name != "MountainCarContinuous-v0"])
def test_every_policy_meets_the_same_episodes(name):
    """The first observations are those of the episodes, in their order, whoever acts."""
    seen = []
    for makes in (randomly, network):
        environment = PLACES[name]()
        policy, first = makes(environment, [7]), []

        class Watched(type(policy)):
            def act(self, observation, mask, uniforms, memory, new, first=first):
                if new.item():
                    first.append(observation.ravel().tolist())
                return super().act(observation, mask, uniforms, memory, new)

        policy.__class__ = Watched
        evaluate(policy, environment, Purpose.TEST, 6, lanes=1)
        seen.append(first)
    assert seen[0] == seen[1]
    assert len(seen[0]) == 6
    assert len({tuple(one) for one in seen[0]}) == 6


class HalfShort(gymnasium.Env):
    """Half of all episodes take 3 steps and fail, half take 20 to 30 and succeed, by chance at the reset."""

    observation_space = spaces.Box(0, 99, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, hopeless=False):
        self.hopeless = hopeless

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        long = self.np_random.random() < 0.5
        self.t, self.lasts = 0, 20 + int(self.np_random.integers(11)) if long else 3
        return np.array([self.t], np.float32), {}

    def step(self, action):
        self.t += 1
        ended = self.t == self.lasts
        won = ended and self.lasts >= 20 and not self.hopeless
        return np.array([self.t], np.float32), 1.0, ended, False, {"is_success": won}


def half_short(num_envs, mode, **arguments):
    """So many of them, which reset in a mode."""
    return SyncVectorEnv([lambda: HalfShort(**arguments)] * num_envs, autoreset_mode=mode)


def measured(mode, lanes, **arguments):
    """Episode table and scores of 60 episodes."""
    environment = VectorEnvironment(half_short, {"mode": mode, **arguments}, success="is_success")
    policy = UniformRandomPolicy([0], environment)
    episodes = evaluate(policy, environment, Purpose.TEST, 60, lanes=lanes).episodes
    table = score("s", "e", "a", episodes, None, METRICS, horizon=30)
    return episodes, table.set_index("metric")


@pytest.mark.parametrize("lanes", range(1, 17))
@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_half_short_failures_and_half_long_successes_are_counted_as_such(mode, lanes):
    """First N to finish would be failures almost all; a median over all episodes would lie below 20."""
    episodes, table = measured(mode, lanes)
    assert episodes["episode"].tolist() == list(range(60))
    assert set(episodes.length) - {3} <= set(range(20, 31))
    assert (episodes.success == (episodes.length >= 20)).all()
    assert (episodes["return"] == episodes.length).all()
    count = int(episodes.success.sum())
    interval = proportion_interval(count, 60, confidence=0.999)
    assert interval.low <= 0.5 <= interval.high
    assert table.loc["success_rate", "value"] == count / 60
    lengths = sorted(episodes.length[episodes.success])
    middle = (lengths[(count - 1) // 2] + lengths[count // 2]) / 2
    assert table.loc["steps_to_success", "value"] == middle >= 20
    assert table.loc["steps_to_success", "episodes"] == count


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_without_a_success_there_is_no_median(mode):
    episodes, table = measured(mode, 4, hopeless=True)
    assert len(episodes) == 60
    assert table.loc["success_rate", "value"] == 0
    assert np.isnan(table.loc["steps_to_success", "value"])
    assert table.loc["steps_to_success", "status"] == "no success"


def test_evaluation_leaves_global_generators_and_the_policy_alone(tmp_path):
    environment = CartPole()
    policy = network(environment)
    policy.save(tmp_path / "before")
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    one = evaluate(policy, environment, Purpose.TEST, 5, lanes=2).episodes
    policy.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002
    np.random.seed(3)  # noqa: NPY002
    pd.testing.assert_frame_equal(evaluate(policy, environment, Purpose.TEST, 5, lanes=2).episodes, one)


def shown():
    """Commands of the page and what they print."""
    blocks = re.findall(r"(?s)```console\n\$ (.*?)\n(.*?)```", PAGE.read_text())
    assert len(blocks) == 2
    return blocks


@pytest.mark.parametrize("place", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_examples_of_the_page_are_what_is_printed(place):
    line, expected = shown()[place]
    program, *arguments = line.split()
    assert program == "./run"
    run = subprocess.run(
        [sys.executable, "-m", "seedbed.cli", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert run.stdout == expected
    assert run.returncode == place, "the first is clean, the second is not"
