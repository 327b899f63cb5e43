"""What ``seedbed evaluate`` refuses: in one sentence, with its configuration, leaving no file behind."""

import json

import pytest

from seedbed.arguments import nested
from seedbed.artifacts import SeedbedError
from seedbed.environments.cart_pole import CartPole


class Stubborn(CartPole):
    """Takes a step limit and does not keep it."""

    def __init__(self, horizon):
        super().__init__()


BAD = {
    "no lane": (["--lanes", 0], "--lanes is 0"),
    "no episode": (["--episodes", 0], "--episodes is 0"),
    "an offset before the first": (["--seed-offset", -1], "--seed-offset is -1"),
    "a seed twice": (["--seed", 1, 1], "give each seed once"),
    "a mode it has not": (["--greedy"], "acts sampled only"),
    "an unknown argument": (["--environment-argument", "horizom=9"], "horizom"),
    "an argument twice": (["--environment-argument", "a=1", "--environment-argument", "a=2"], "already has"),
    "no pair": (["--policy-argument", "action"], "no KEY=VALUE"),
    "a limit twice": (["--max-steps", 9, "--environment-argument", "horizon=9"], "give one of them"),
    "an unknown environment": (["--environment", "GoalGird"], "did you mean GoalGrid?"),
    "an unknown policy": (["--policy", "rendom"], "There is no algorithm 'rendom'"),
    "a learner": (["--policy", "ppo"], "comes out of training"),
    "another environment's policy": (
        ["--environment", "CartPole", "--policy", "shortest_path"],
        "goal grid only",
    ),
    "a fixed limit": (
        ["--environment", "CartPole", "--max-steps", 9],
        "without it, the limit is fixed",
    ),
    "a limit that cannot be kept": (
        ["--environment", f"{__name__}:Stubborn", "--max-steps", 9],
        "in spite of",
    ),
    "a vector environment's limit": (["--environment", "GymnasiumVector", "--max-steps", 9], "kwargs.NAME"),
    "a file that is missing": (["--policy", "nowhere/policy.safetensors"], "is missing"),
    "another tool's file that is missing": (["--policy", "nowhere/model.zip"], "does not exist"),
    "an output of no known kind": (["--output", "table.csv"], ".parquet or .json"),
    "an output that is a folder's file": (["--output", "/dev/null/a.json"], "no file can be written"),
    "a device for nothing": (["--optional-device"], "goes with --device cuda"),
}


@pytest.mark.parametrize(("arguments", "message"), BAD.values(), ids=BAD)
def test_what_cannot_be_is_refused(seedbed, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    given = {"--policy": "random", "--environment": "GoalGrid", "--output": "out.json"}
    for flag in given.keys() & set(arguments):
        del given[flag]
    status, out, err = seedbed(*(part for pair in given.items() for part in pair), *arguments)
    assert (status, out) == (1, "")
    first, *rest = err.splitlines()
    assert first.startswith("Error: ")
    assert message in first
    if rest:  # an argument that is no pair leaves nothing to be reproduced
        configuration = json.loads(rest[-1].removeprefix("Configuration: "))
        assert configuration["episodes"] == (0 if "--episodes" in arguments else 100)
    assert list(tmp_path.iterdir()) == []


def test_greedy_and_sampled_exclude_each_other(seedbed):
    status, _, err = seedbed("--policy", "random", "--environment", "CartPole", "--greedy", "--sampled")
    assert status == 2
    assert "not allowed with argument --greedy" in err


def test_a_files_seeds_are_named(seedbed, policy_file):
    status, _, err = seedbed("--policy", policy_file, "--environment", "CartPole", "--seed", 4)
    assert status == 1
    assert "has the seeds [3, 5], not [4]" in err


def test_a_file_that_does_not_fit_or_is_none_is_refused(seedbed, policy_file, tmp_path):
    status, _, err = seedbed("--policy", policy_file, "--environment", "GoalGrid")
    assert status == 1
    assert "was trained on 4 observed numbers and 2 actions" in err
    torn = tmp_path / "torn.safetensors"
    torn.write_bytes(policy_file.read_bytes()[:50])
    status, _, err = seedbed("--policy", torn, "--environment", "CartPole")
    assert status == 1
    assert "not a readable safetensors file" in err


def test_a_policy_that_fails_is_named_and_leaves_nothing(seedbed, tmp_path):
    status, out, err = seedbed(
        *("--policy", "constant", "--policy-argument", "action=20", "--environment", "MockInterview"),
        *("--environment-argument", "preset=tiny", "--environment-argument", "content_cap=0.1"),
        *("--output", tmp_path / "a.json", "--dump-trajectory", tmp_path / "b.jsonl"),
    )
    assert (status, out) == (1, "")
    assert "action mask forbids action 20" in err
    assert "episodes [0], steps" in err
    assert list(tmp_path.iterdir()) == []


def test_arguments_are_json_or_yaml_and_dots_lead_inwards():
    assert nested(["a=1e-3", "b.c=[1, 2]", "b.d=true", "name=PPO", "text=", "list=[x, y]"]) == {
        "a": 0.001,
        "b": {"c": [1, 2], "d": True},
        "name": "PPO",
        "text": None,
        "list": ["x", "y"],
    }
    for pair in ("a", "=1", "a.=1", ".a=1", "a=[1", "a=NaN", "a=2020-01-01"):
        with pytest.raises(SeedbedError, match="'"):
            nested([pair])
    with pytest.raises(SeedbedError, match="'a' already has a value"):
        nested(["a=1", "a.b=2"])
