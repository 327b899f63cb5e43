"""``seedbed evaluate``: what it prints, writes and refuses."""

import importlib.metadata
import json
import subprocess
import sys

import gymnasium
import numpy as np
import pandas as pd
import pytest
import torch

from seedbed.algorithms.categorical_policy import CategoricalPolicy
from seedbed.artifacts import EPISODE_COLUMNS, SeedbedError, read_table
from seedbed.environments.cart_pole import CartPole
from seedbed.evaluating import run
from seedbed.evaluating.run import Request, evaluate_policy
from seedbed.evaluation import evaluate
from seedbed.seeding import Purpose

NUMBER = {float, type(None)}
SCHEMA = {
    "schema": {int},
    "environment": {str},
    "environment_version": {str, type(None)},
    "environment_arguments": {dict},
    "policy": {str},
    "policy_arguments": {dict},
    "algorithm": {str, type(None)},
    "policy_sha256": {str},
    "greedy": {bool},
    "device": {str},
    "seeds": {list},
    "first_episode": {int},
    "reset_seeds": {bool},
    "max_steps": {int, type(None)},
    "episodes": {int},
    "n_eff": {int},
    "success_rate": NUMBER,
    "success_rate_low": NUMBER,
    "success_rate_high": NUMBER,
    "confidence": {float},
    "median_steps_to_goal": NUMBER,
    "steps_p50_success": NUMBER,
    "mean_return": NUMBER,
    "std_return": NUMBER,
    "return_mean_success": NUMBER,
    "return_mean_fail": NUMBER,
    "dist_at_end_p50": NUMBER,
    "terminated": {int},
    "truncated": {int},
}
"""A change here is a new ``schema`` number: people's programs read these."""


class Corridor(gymnasium.Env):
    """Five cells; action 1 leads right, to success in the last one. Nothing is random."""

    observation_space = gymnasium.spaces.Box(0, 4, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell = 0
        return np.array([self.cell], np.float32), {}

    def step(self, action):
        self.cell += int(action)
        there = self.cell == 4
        return np.array([self.cell], np.float32), -1.0, there, False, {"there": there}


CORRIDOR = {"id": Corridor, "success": "there", "horizon": 20}


@pytest.mark.parametrize("environment", ["CartPole-v1", "GoalGrid"])
def test_the_schema_of_the_line_is_stable(seedbed, environment):
    status, out, _ = seedbed("--policy", "random", "--environment", environment, "--episodes", 5)
    assert status == 0
    assert out.count("\n") == 1
    summary = json.loads(out)
    assert list(summary) == list(SCHEMA)
    for key, value in summary.items():
        assert type(value) in SCHEMA[key], key
    assert summary["schema"] == run.SCHEMA_VERSION == 1


@pytest.mark.parametrize("environment", ["CartPole-v1", "GoalGrid"])
def test_equal_bytes_for_any_number_of_lanes(seedbed, tmp_path, environment):
    written = []
    for lanes in (1, 2, 3, 8):
        table, steps = tmp_path / f"{lanes}.parquet", tmp_path / f"{lanes}.jsonl"
        out = seedbed(
            *("--policy", "random", "--environment", environment, "--episodes", 7, "--seed", 0, 4),
            *("--lanes", lanes, "--max-steps", 40, "--output", table, "--dump-trajectory", steps),
        )[1]
        written.append((out, table.read_bytes(), steps.read_bytes()))
    assert written[0][1] != b""
    assert all(other == written[0] for other in written)


def test_the_trajectory_tells_the_story_of_the_table(tmp_path):
    request = Request(
        policy="random",
        environment="GoalGrid",
        environment_arguments={"minimum_distance": 1},
        episodes=6,
        seeds=[2, 1],
        lanes=4,
        output=tmp_path / "episodes.parquet",
        dump_trajectory=tmp_path / "steps.jsonl",
    )
    summary = evaluate_policy(request)
    table = read_table(request.output, EPISODE_COLUMNS)
    rows = [json.loads(line) for line in request.dump_trajectory.read_text().splitlines()]
    assert [row["t"] for row in rows[:2]] == [1, 2]
    assert {"seed", "episode", "t", "action", "reward", "terminated", "truncated", "distance"} <= set(rows[0])
    steps = pd.DataFrame(rows)
    pd.testing.assert_frame_equal(steps, steps.sort_values(["seed", "episode", "t"], kind="stable"))
    groups = steps.groupby(["seed", "episode"])
    table = table.set_index(["seed", "episode"]).sort_index()
    assert (groups["t"].max() == table["length"]).all()
    assert (groups["distance"].last() == table["final_distance"]).all()
    assert np.allclose(groups["reward"].sum(), table["return"])
    assert summary["mean_return"] == table["return"].mean()
    assert summary["episodes"] == len(table) == 12


def test_actions_that_are_arrays_are_lists_of_their_shape(tmp_path):
    request = Request("random", "Pendulum-v1", episodes=1, max_steps=3, dump_trajectory=tmp_path / "t.jsonl")
    evaluate_policy(request)
    rows = [json.loads(line) for line in request.dump_trajectory.read_text().splitlines()]
    assert [len(row["action"]) for row in rows] == [1, 1, 1]
    assert not any(key.startswith("action_") for key in rows[0])


@pytest.mark.parametrize("environment", ["GoalGrid", "CartPole-v1"])
@pytest.mark.parametrize("reset_seeds", [False, True])
def test_a_set_can_be_continued(tmp_path, environment, reset_seeds):
    def episodes(first, count):
        path = tmp_path / f"{first}-{count}.parquet"
        evaluate_policy(
            Request(
                "random", environment, episodes=count, seed_offset=first, reset_seeds=reset_seeds, output=path
            )
        )
        return read_table(path)

    whole = episodes(0, 10)
    parts = pd.concat([episodes(0, 4), episodes(4, 6)], ignore_index=True)
    pd.testing.assert_frame_equal(whole, parts, check_exact=True)


def test_a_policys_file_meets_the_episodes_of_the_final_table(policy_file, tmp_path):
    request = Request(
        str(policy_file), "CartPole", episodes=8, mode="sampled", output=tmp_path / "episodes.parquet"
    )
    summary = evaluate_policy(request)
    policy = CategoricalPolicy.load(policy_file, CartPole()).in_mode("sampled")
    expected = evaluate(policy, CartPole(), Purpose.TEST, 8, lanes=40).episodes
    pd.testing.assert_frame_equal(read_table(request.output, EPISODE_COLUMNS), expected, check_exact=True)
    assert summary["seeds"] == [3, 5]
    assert summary["greedy"] is False
    assert summary["algorithm"] is None, "PPO and A2C write the same files"
    assert evaluate_policy(Request(str(policy_file), "CartPole", {"algorithm": "ppo"}))["algorithm"] == "ppo"


def test_a_seed_of_a_file_plays_as_in_company(policy_file, tmp_path):
    def episodes(seeds):
        path = tmp_path / "episodes.parquet"
        evaluate_policy(Request(str(policy_file), "CartPole-v1", episodes=5, seeds=seeds, output=path))
        return read_table(path)

    both = episodes(None)
    alone = both[both["seed"] == 5].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, episodes([5]), check_exact=True)


def test_saved_fixed_rules_are_policies_too(tmp_path):
    from seedbed.algorithms.uniform_random import UniformRandomPolicy

    UniformRandomPolicy([1, 2], CartPole()).save(tmp_path / "policy.safetensors")
    summary = evaluate_policy(
        Request(str(tmp_path / "policy.safetensors"), "CartPole", episodes=3, seeds=[2])
    )
    named = evaluate_policy(Request("random", "CartPole", episodes=3, seeds=[2]))
    assert summary["mean_return"] == named["mean_return"]
    assert summary["algorithm"] == "random"


def test_a_deterministic_run_is_one_episode():
    summary = evaluate_policy(
        Request("constant", "Gymnasium", {"action": 1}, CORRIDOR, episodes=30, seeds=[0, 1], lanes=3)
    )
    assert (summary["n_eff"], summary["success_rate"], summary["success_rate_low"]) == (1, 1.0, None)
    assert summary["median_steps_to_goal"] == 4
    drawn = evaluate_policy(Request("random", "Gymnasium", {}, CORRIDOR, episodes=30))
    assert drawn["n_eff"] == 30
    assert evaluate_policy(Request("constant", "CartPole", {"action": 1}, episodes=30))["n_eff"] == 30


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("CartPole", f"seedbed {importlib.metadata.version('seedbed')}"),
        ("seedbed.environments.cart_pole:CartPole", f"seedbed {importlib.metadata.version('seedbed')}"),
        ("CartPole-v1", f"gymnasium {gymnasium.__version__}"),
        ("gymnasium.envs.classic_control.cartpole:CartPoleEnv", f"gymnasium {gymnasium.__version__}"),
    ],
)
def test_environments_by_any_name_are_the_same_cart_pole(name, version):
    """Plain reset seeds give all of them the same starts."""
    summary = evaluate_policy(Request("constant", name, {"action": 0}, episodes=9, reset_seeds=True))
    assert summary["environment_version"] == version
    assert (summary["mean_return"], summary["n_eff"]) == (expected_return(), 9)


def expected_return():
    """Mean length of Gymnasium's own episodes, seeds 0-8, pushed left all the time."""
    env, lengths = gymnasium.make("CartPole-v1"), []
    for seed in range(9):
        env.reset(seed=seed)
        lengths.append(1 + next(t for t in range(500) if env.step(0)[2]))
    return np.mean(lengths)


def test_max_steps_truncates():
    summary = evaluate_policy(Request("constant", "GoalGrid", {"action": 0}, episodes=5, max_steps=7))
    assert (summary["truncated"], summary["success_rate"]) == (5, 0.0)
    assert summary["mean_return"] == pytest.approx(-0.07)


def test_without_a_gpu(seedbed, monkeypatch, policy_file):
    monkeypatch.setattr(run, "_has_gpu", lambda: False)
    given = ["--policy", policy_file, "--environment", "CartPole", "--episodes", 2]
    status, out, err = seedbed(*given, "--device", "cuda")
    assert (status, out) == (1, "")
    assert "no GPU" in err
    status, out, _ = seedbed(*given, "--device", "cuda", "--optional-device")
    assert status == 0
    assert json.loads(out) == {"skipped": "There is no GPU here that torch can use."}
    assert seedbed(*given, "--device", "auto") == seedbed(*given)


def test_a_policy_without_a_network_has_no_use_for_a_gpu(monkeypatch):
    monkeypatch.setattr(run, "_has_gpu", lambda: True)
    with pytest.raises(SeedbedError, match="UniformRandomPolicy has no network"):
        evaluate_policy(Request("random", "CartPole", device="cuda"))
    assert evaluate_policy(Request("random", "CartPole", device="auto", episodes=1))["device"] == "cpu"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_network_acts_on_a_gpu_as_on_the_cpu(policy_file):
    one, other = (
        evaluate_policy(Request(str(policy_file), "CartPole", episodes=20, device=device))
        for device in ("cpu", "cuda")
    )
    assert other["device"] == "cuda"
    assert other["mean_return"] == pytest.approx(one["mean_return"], rel=0.05)


def test_a_random_policy_needs_no_torch():
    code = (
        "import sys; from seedbed.evaluating.run import Request, evaluate_policy;"
        "evaluate_policy(Request('random', 'GoalGrid', episodes=1)); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
