"""The constant policy: one action, and none that the environment does not have."""

import numpy as np
import pytest

from seedbed.algorithms.constant import Constant, ConstantPolicy
from seedbed.artifacts import SeedbedError
from seedbed.environments.cart_pole import CartPole
from seedbed.environments.external import GymnasiumEnvironment
from seedbed.evaluation import evaluate
from seedbed.registry import ALGORITHMS, make
from seedbed.seeding import Purpose
from seedbed.training import train


def actions(environment, action):
    policy = train(Constant(action), environment, [0, 1], 0, None).policy
    return evaluate(policy, environment, Purpose.TEST, 3, lanes=2, log_steps=True).steps


def test_every_step_takes_the_action():
    for action in (0, 1):
        assert set(actions(CartPole(), action)["action"]) == {action}


def test_arrays_are_taken_whole_or_filled_with_one_number():
    pendulum = GymnasiumEnvironment("Pendulum-v1", horizon=4)
    assert set(actions(pendulum, [1.5])["action_0"]) == set(actions(pendulum, 1.5)["action_0"]) == {1.5}


@pytest.mark.parametrize("action", [2, -1, 0.5, [0]])
def test_actions_that_are_none_are_refused(action):
    with pytest.raises(ValueError, match="this environment's are whole numbers, 0 to 1"):
        ConstantPolicy([0], CartPole(), {"action": action})


@pytest.mark.parametrize("action", [2.5, [0.0, 0.0], float("nan")])
def test_arrays_out_of_bounds_or_shape_are_refused(action):
    with pytest.raises(ValueError, match=r"arrays of shape \[1\] between \[-2.0\] and \[2.0\]"):
        ConstantPolicy([0], GymnasiumEnvironment("Pendulum-v1"), {"action": action})


def test_a_forbidden_action_is_an_error():
    policy = ConstantPolicy([4, 9], CartPole(), {"action": 1})
    mask = np.ones((2, 3, 2), bool)
    first = np.zeros((2, 3), bool)
    assert policy.act(None, mask, None, None, first)[0].tolist() == [[1, 1, 1], [1, 1, 1]]
    mask[1, 2, 1] = False
    with pytest.raises(SeedbedError, match="forbids action 1 in an episode of seed 9"):
        policy.act(None, mask, None, None, first)


def test_it_is_its_own_file(tmp_path):
    policy = ConstantPolicy([0, 1], CartPole(), {"action": 1})
    policy.save(tmp_path / "policy.safetensors")
    again = ConstantPolicy.load(tmp_path / "policy.safetensors", CartPole())
    assert again.probabilities(None, None, None, np.zeros((2, 1), bool)).tolist() == [[[0, 1]], [[0, 1]]]


def test_a_truth_value_is_no_action():
    with pytest.raises(SeedbedError, match="refuses its arguments"):
        make("constant", {"action": True}, ALGORITHMS, "algorithm")
