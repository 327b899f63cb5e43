"""Distributions: every episode in an environment of its own, drawn by its stream and by nothing else."""

import math

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from seedbed.algorithms.uniform_random import UniformRandomPolicy
from seedbed.artifacts import SeedbedError
from seedbed.environments import distribution, distribution_lanes
from seedbed.environments.distribution import Distribution
from seedbed.environments.external import GymnasiumEnvironment
from seedbed.environments.interview import MockInterview
from seedbed.environments.lanes import EpisodeError, make_lanes
from seedbed.environments.parameter_ranges import ParameterRange
from seedbed.evaluation import EvaluationError, evaluate
from seedbed.registry import ENVIRONMENTS, make
from seedbed.seeding import Purpose, stream
from seedbed.study import Environment

INTERVIEW = {
    "environment": "MockInterview",
    "arguments": {"preset": "tiny", "horizon": 12},
    "parameters": {
        "effectiveness_scale": {"log_uniform": [0.5, 4]},
        "bank_seed": {"integers": [0, 2**32 - 1]},
        "response_time": {"choice": [[20, 5, 5], [40, 5, 5]]},
    },
    "train": 3,
}
CAR = {
    "environment": "MountainCar-v0",
    "arguments": {"horizon": 15},
    "parameters": {"kwargs.goal_velocity": {"uniform": [0, 0.05]}},
    "train": 2,
}
POLE = {
    "environment": "CartPole-v1",
    "parameters": {"kwargs.sutton_barto_reward": {"choice": [False, True]}},
}
BANKS = {
    "environment": "MockInterview",
    "arguments": {"preset": "tiny", "horizon": 12, "bank": "per_episode"},
    "start": "environment",
    "train": 3,
}


def tables(arguments, seeds=(0, 1), lanes=4, episodes=8, **options):
    environment = Distribution(**arguments)
    policy = UniformRandomPolicy(list(seeds), environment)
    return evaluate(policy, environment, Purpose.TEST, episodes, lanes=lanes, log_steps=True, **options)


def played(environment, seeds=(0, 1), **options):
    policy = UniformRandomPolicy(list(seeds), environment)
    return evaluate(policy, environment, Purpose.TEST, 8, lanes=4, log_steps=True, **options)


@pytest.mark.parametrize(
    "arguments", [INTERVIEW, CAR, POLE, BANKS], ids=["interview", "car", "pole", "banks"]
)
def test_tables_are_the_same_for_any_lanes_and_any_other_seeds(arguments):
    one = tables(arguments, lanes=1)
    for lanes in (2, 3, 8):
        other = tables(arguments, lanes=lanes)
        pd.testing.assert_frame_equal(other.episodes, one.episodes, check_exact=True)
        pd.testing.assert_frame_equal(other.steps, one.steps, check_exact=True)
    alone = tables(arguments, seeds=[1], lanes=3)
    for table, whole in ((alone.episodes, one.episodes), (alone.steps, one.steps)):
        expected = whole[whole["seed"] == 1].reset_index(drop=True)
        pd.testing.assert_frame_equal(table, expected, check_exact=True)
    rest = tables(arguments, episodes=5, first=3).episodes
    expected = one.episodes[one.episodes["episode"] >= 3].reset_index(drop=True)
    pd.testing.assert_frame_equal(rest, expected, check_exact=True)


@pytest.mark.parametrize("arguments", [INTERVIEW, CAR], ids=["interview", "car"])
def test_evaluation_alternates_between_training_environments_and_fresh_ones(arguments):
    table, environment = tables(arguments, episodes=40).episodes, Distribution(**arguments)
    numbers = table["final_training_environment"]
    seen = table["episode"] % 2 == 0
    assert (numbers[seen] == table["episode"][seen] // 2 % arguments["train"]).all()
    assert (numbers[~seen] == -1).all()
    for name, declared in environment.parameters.items():
        column = table[f"final_parameter_{name}"]
        if declared.choice is None:
            low, high = declared.ends()
            assert column.between(low, high).all()
            assert column[~seen].nunique() == (~seen).sum()
        for seed in (0, 1):
            known = [
                declared.number(declared.point(values[name])) for values in environment.training_values(seed)
            ]
            rows = seen & (table["seed"] == seed)
            assert column[rows].tolist() == [known[number] for number in numbers[rows]]
    assert environment.training_values(0) != environment.training_values(1)


@pytest.mark.parametrize("arguments", [INTERVIEW, CAR, BANKS], ids=["interview", "car", "banks"])
def test_training_takes_place_in_the_training_environments_alone(arguments):
    environment = Distribution(**arguments)
    together = make_lanes(environment, Purpose.TRAINING, [0, 5], 4)
    alone = make_lanes(environment, Purpose.TRAINING, [5], 4)
    numbers = set()
    for _ in range(60):
        step, single = together.step(np.zeros((2, 4), np.int64)), alone.step(np.zeros((1, 4), np.int64))
        assert np.array_equal(step.observation[1:], single.observation)
        assert np.array_equal(step.reward[1:], single.reward)
        ended = step.terminated | step.truncated
        numbers |= set(step.facts["training_environment"][ended].tolist())
    together.close()
    alone.close()
    assert numbers == set(range(arguments["train"]))


@pytest.mark.parametrize("arguments", [INTERVIEW, CAR], ids=["interview", "car"])
def test_how_many_environments_are_kept_changes_nothing(arguments, monkeypatch):
    before = tables(arguments).steps
    monkeypatch.setattr(distribution, "KEPT", 1)
    monkeypatch.setattr(distribution_lanes, "OPEN", 1)
    pd.testing.assert_frame_equal(tables(arguments).steps, before, check_exact=True)


def test_without_training_environments_all_are_fresh():
    table = tables(INTERVIEW | {"train": None}).episodes
    assert (table["final_training_environment"] == -1).all()
    assert table["final_parameter_bank_seed"].nunique() == len(table)
    assert Distribution(**INTERVIEW | {"train": None}).training_values(0) == []


@pytest.mark.parametrize("arguments", [INTERVIEW, CAR, BANKS], ids=["interview", "car", "banks"])
def test_fresh_episodes_do_not_depend_on_how_many_environments_train(arguments):
    fresh = [tables(arguments | {"train": train}).episodes for train in (1, 3, None)]
    fresh = [table[table["episode"] % 2 == 1] for table in fresh]
    pd.testing.assert_frame_equal(fresh[0], fresh[1], check_exact=True)
    pd.testing.assert_frame_equal(fresh[0], fresh[2], check_exact=True)


@pytest.mark.parametrize(
    "identifier, name, values",
    [("MountainCar-v0", "goal_velocity", [0, 0.07]), ("CartPole-v1", "sutton_barto_reward", [False, True])],
)
def test_a_gymnasium_episode_is_that_of_the_plain_environment_with_the_drawn_arguments(
    identifier, name, values
):
    """The parameter is what differs, and the reset seed is the one of the plain environment."""
    parameters = {f"kwargs.{name}": {"choice": values}}
    drawn = played(Distribution(identifier, {"horizon": 60}, parameters, train=2))
    for value in values:
        plain = played(GymnasiumEnvironment(id=identifier, kwargs={name: value}, horizon=60))
        rows = drawn.episodes[f"final_parameter_kwargs.{name}"] == value
        assert rows.any()
        columns = plain.episodes.columns
        pd.testing.assert_frame_equal(drawn.episodes[columns][rows], plain.episodes[rows], check_exact=True)


def test_a_distribution_over_nothing_is_the_environment_itself():
    arguments = {"preset": "tiny", "bank": "per_episode"}
    drawn = played(Distribution("MockInterview", arguments))
    plain = played(MockInterview(**arguments))
    columns = plain.episodes.columns
    pd.testing.assert_frame_equal(drawn.episodes[columns], plain.episodes, check_exact=True)
    pd.testing.assert_frame_equal(drawn.steps[plain.steps.columns], plain.steps, check_exact=True)


def first_observations(arguments, episodes):
    lanes = make_lanes(Distribution(**arguments), Purpose.TEST, [4], episodes, episodes)
    first = lanes.observation[0].copy()
    lanes.close()
    return first


@pytest.mark.parametrize("arguments", [BANKS, CAR | {"start": "environment"}], ids=["banks", "car"])
def test_a_start_of_the_environment_is_equal_in_all_its_episodes(arguments):
    train = arguments["train"]
    first = first_observations(arguments, 8 * train)
    seen, fresh = first[::2], first[1::2]
    assert len(np.unique(seen, axis=0)) == train
    assert np.array_equal(seen[:train], seen[train : 2 * train])
    assert len(np.unique(fresh, axis=0)) == len(fresh)
    other = first_observations(arguments | {"start": "episode"}, 8 * train)
    assert len(np.unique(other, axis=0)) == len(other)


def test_the_steps_of_two_episodes_from_one_start_differ():
    table = tables(BANKS | {"train": 1}, seeds=[0], episodes=20).steps
    seen = table[table["episode"] % 2 == 0]
    assert seen[seen["t"] == 1]["reward"].nunique() > 1


def correlated(generator):
    low = generator.random()
    return {"ability_gain": low / 10, "question_gain": low}


def escaping(generator):
    return {"ability_gain": 0.05, "question_gain": 1.5}


def test_a_sampler_may_tie_parameters_together():
    ranges = {"ability_gain": {"uniform": [0, 0.1]}, "question_gain": {"uniform": [0, 1]}}
    arguments = {"environment": "MockInterview", "arguments": {"preset": "tiny"}, "parameters": ranges}
    table = tables(arguments | {"sampler": correlated}).episodes
    assert np.allclose(
        10 * table["final_parameter_ability_gain"], table["final_parameter_question_gain"], rtol=1e-15
    )
    assert table["final_parameter_ability_gain"].nunique() == len(table)
    with pytest.raises(ValueError, match=r"leaves its family: question_gain = 1\.5.*uniform \[0\.0, 1\.0\]"):
        Distribution(**arguments, sampler=escaping)
    with pytest.raises(ValueError, match="declared parameters are ability_gain"):
        Distribution(**arguments, sampler=lambda generator: {"ability_gain": 0.01})
    with pytest.raises(ValueError, match="leaves its family: ability_gain = nan"):
        Distribution(**arguments, sampler=lambda generator: escaping(generator) | {"ability_gain": math.nan})
    with pytest.raises(ValueError, match="other values for an equal generator"):
        Distribution(**arguments, sampler=lambda generator: correlated(np.random.default_rng()))
    with pytest.raises(ValueError, match="raised ZeroDivisionError"):
        Distribution(**arguments, sampler=lambda generator: 1 / 0)
    with pytest.raises(ValueError, match="cannot be imported: ModuleNotFoundError"):
        Distribution(**arguments, sampler="no_such_module:draw")


@pytest.mark.parametrize("arguments", [INTERVIEW, CAR], ids=["interview", "car"])
def test_a_sampler_that_fails_late_is_told_with_seed_and_episode(arguments):
    name = "bank_seed" if "bank_seed" in arguments["parameters"] else "kwargs.goal_velocity"
    declared = {name: arguments["parameters"][name]}
    calls = []

    def late(generator):
        calls.append(1)
        return {name: 0 if len(calls) <= 34 else -1}

    environment = Distribution(**arguments | {"parameters": declared, "sampler": late, "train": None})
    with pytest.raises(EpisodeError, match=r"seed 7, episode \d+: .*leaves its family.* = -1"):
        make_lanes(environment, Purpose.TEST, [7], 2, 60)
    with pytest.raises(EvaluationError, match="seed 7, episode"):
        played(environment, [7])


@pytest.mark.parametrize(
    "declared, message",
    [
        ({"uniform": [2, 1]}, "lower end 2.0 is not below the upper end 1.0"),
        ({"uniform": [1, 1]}, "not below"),
        ({"uniform": [0, math.nan]}, "finite"),
        ({"uniform": [0, math.inf]}, "finite"),
        ({"log_uniform": [0, 1]}, "no logarithm"),
        ({"integers": [3, 2]}, "not below"),
        ({"integers": [0.5, 2]}, "integer"),
        ({"integers": [0, 2**60]}, "less than or equal"),
        ({"choice": []}, "at least 1 item"),
        ({"choice": [1.0, math.nan]}, "nan is no value to choose"),
        ({}, "give one of uniform"),
        ({"uniform": [0, 1], "choice": [1]}, "give one of uniform"),
        ({"normal": [0, 1]}, "Extra inputs"),
        ({"uniform": 3}, "valid tuple"),
    ],
)
def test_ranges_that_cannot_be_are_refused(declared, message):
    with pytest.raises(ValidationError, match=message):
        ParameterRange(**declared)
    with pytest.raises(SeedbedError, match=r"parameters\.kwargs\.goal_velocity"):
        make(
            "Distribution",
            CAR | {"parameters": {"kwargs.goal_velocity": declared}},
            ENVIRONMENTS,
            "environment",
        )


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"parameters": {"kindness": {"uniform": [0, 1]}}}, "no argument kindness"),
        (
            {"parameters": {"question_gain": {"uniform": [0, 1.5]}}},
            "question_gain = 1.5.*less than or equal to 1",
        ),
        ({"parameters": {"bank": {"choice": ["fixed", "none"]}}}, "bank = none"),
        (
            {"parameters": {"learning_outcomes": {"choice": [4, 5]}}},
            "equal spaces.*4}.*5}.*actions 36 and 45",
        ),
        ({"arguments": {}, "parameters": {"horizon": {"integers": [10, 20]}}}, "step limit"),
        ({"arguments": {"preset": "tiny", "bank_seed": 1}}, "bank_seed is in both"),
        ({"parameters": {"preset.x": {"uniform": [0, 1]}}}, "leads into the argument 'tiny'"),
        ({"train": 0}, "greater than or equal to 1"),
        ({"start": "always"}, "'episode' or 'environment'"),
        ({"environment": "Interview"}, "Interview cannot be made with bank_seed = "),
        ({"environment": "Distribution", "arguments": CAR, "parameters": {}}, "makes its episodes by itself"),
        ({"parametres": {}}, "parametres"),
    ],
)
def test_distributions_that_cannot_be_are_refused_before_anything_runs(changes, message):
    with pytest.raises(SeedbedError, match=rf"(?s){message}"):
        make("Distribution", INTERVIEW | changes, ENVIRONMENTS, "environment")


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"parameters": {"kwargs.gravity": {"uniform": [0, 1]}}}, "kwargs.gravity = .*unexpected keyword"),
        ({"arguments": {"vectorisation": "async"}}, "'async' cannot change"),
        ({"arguments": {"success": "training_environment"}}, "training_environment would name two columns"),
    ],
)
def test_distributions_over_gymnasium_that_cannot_be_are_refused(changes, message):
    with pytest.raises(ValueError, match=rf"(?s){message}"):
        Distribution(**CAR | changes)


def test_a_study_reruns_when_the_environment_under_a_distribution_changes():
    modules = Environment(environment="Distribution", arguments=INTERVIEW).modules
    assert modules == [ENVIRONMENTS["Distribution"], ENVIRONMENTS["MockInterview"]]


def test_points_and_values_belong_to_each_other():
    generator = np.random.default_rng(0)
    for declared in (
        {"uniform": [-1, 1]},
        {"log_uniform": [1e-3, 10]},
        {"integers": [-2, 2]},
        {"choice": ["a", 2]},
    ):
        made = ParameterRange(**declared)
        points = [made.draw(generator) for _ in range(300)]
        assert all(made.point(made.value(point)) == point for point in points)
        assert set(made.ends()) <= set(points) or made.choice is made.integers is None
    assert ParameterRange(integers=(0, 3)).point(np.int64(2)) == 2
    assert isinstance(ParameterRange(uniform=(0, 3)).point(2), float)
    for wrong in (True, 1.0, "1", None, [1], math.nan, 4):
        with pytest.raises(ValueError, match="is not in integers"):
            ParameterRange(integers=(0, 3)).point(wrong)
    middle = np.median([ParameterRange(log_uniform=(0.01, 100)).draw(generator) for _ in range(2000)])
    assert 0.5 < middle < 2


@pytest.mark.parametrize("episode", [0, 1, 2, 3])
def test_an_interview_is_that_of_the_plain_environment_under_the_episode_s_noise(episode):
    """Played by hand: parameters first from their stream, then the noise from the episode's."""
    declared = {name: ParameterRange(**given) for name, given in INTERVIEW["parameters"].items()}
    generator = stream(Purpose.TEST, 9, episode)
    number = episode // 2 % INTERVIEW["train"] if episode % 2 == 0 else -1
    source = generator if number == -1 else stream(Purpose.ENVIRONMENTS, 9, number)
    values = {name: declared[name].value(declared[name].draw(source)) for name in sorted(declared)}
    plain = MockInterview(**INTERVIEW["arguments"], **values)
    initial, steps = plain.draw(generator)
    state, rewards = plain.initial(initial), []
    for noise in steps:
        moved = plain.step(state, np.int64(27), noise)
        state = moved.state
        rewards.append(float(moved.reward))
        if moved.terminated:
            break
    lanes = make_lanes(Distribution(**INTERVIEW), Purpose.TEST, [3, 9], 4, 4)
    found = []
    for _ in rewards:
        step = lanes.step(np.full((2, 4), 27))
        found.append(step.reward[1, episode])
    assert found == rewards
    assert (step.terminated | step.truncated)[1, episode]
    assert step.facts["training_environment"][1, episode] == number
