"""A2C: its update against an ordinary one, bootstrapping, masks, budgets, exact seeds, learning."""

import numpy as np
import pytest
import torch
from learners import Quiet, ordinary
from pydantic import ValidationError
from scipy import stats

from seedbed.algorithms.a2c import A2C
from seedbed.algorithms.interview_rules import HEURISTICS, FixedHeuristicPolicy
from seedbed.algorithms.networks import Learner, StackedMLP
from seedbed.algorithms.uniform_random import UniformRandomPolicy
from seedbed.environments.base import Spec
from seedbed.environments.cart_pole import CartPole
from seedbed.environments.goal_grid import GoalGrid
from seedbed.environments.interview import MockInterview
from seedbed.environments.lanes import DynamicsLanes, LaneStep
from seedbed.evaluation import evaluate
from seedbed.seeding import BlockStreams, Purpose
from seedbed.training import CurvePlan, train


class TapedLanes:
    """Lanes that show what was drawn beforehand, whatever is done, and remember it; see ``Lanes``."""

    def __init__(self, generator, seeds, lanes, inputs, actions, steps):
        shape = (len(seeds), lanes)
        self.spec = Spec(np.zeros(inputs, np.float32), np.ones(inputs, np.float32), actions, 9, 0, 0)
        self.seeds, self.lanes, self.shape, self.at = seeds, lanes, shape, 0
        self.shown = generator.random((steps + 1, *shape, inputs), np.float32)
        self.following = generator.random((steps, *shape, inputs), np.float32)
        self.masks = generator.random((steps + 1, *shape, actions)) < 0.6
        self.masks[..., 1] = True
        self.reward = generator.normal(size=(steps, *shape))
        self.terminated, self.truncated = generator.random((2, steps, *shape)) < 0.2
        self.actions = []

    observation = property(lambda self: self.shown[self.at])
    mask = property(lambda self: self.masks[self.at])

    def step(self, action):
        self.actions.append(action.copy())
        at, filler = self.at, np.zeros(self.shape, np.int64)
        self.at += 1
        return LaneStep(
            self.observation,
            self.mask,
            self.reward[at],
            self.terminated[at],
            self.truncated[at],
            self.following[at],
            None,
            filler,
            filler,
            np.ones(self.shape, bool),
            {},
        )


@pytest.mark.parametrize("max_norm", [None, 0.05])
def test_the_update_is_an_ordinary_a2c_update(max_norm):
    seeds, lanes_count, steps = [4, 9], 3, 10
    algorithm = A2C(
        lanes=lanes_count, hidden=(16,), max_gradient_norm=max_norm, learning_rate=0.01, reward_scale=0.5
    )
    lanes = TapedLanes(np.random.default_rng(1), seeds, lanes_count, 5, 6, steps)
    policy = algorithm.train(lanes, seeds, steps * lanes_count, Quiet())

    networks = {"policy": StackedMLP((5, 16, 6), "tanh", 0.01), "value": StackedMLP((5, 16, 1), "tanh")}
    start = Learner(networks, seeds, 0.01)  # the same parameters to begin with
    uniforms = BlockStreams(Purpose.EXPLORATION, seeds, (lanes_count,))
    uniforms = np.stack([uniforms.uniforms() for _ in range(steps)])
    for row in range(2):
        actor, critic = (ordinary(start.layers[name], row, torch.nn.Tanh) for name in networks)
        parameters = [*actor.parameters(), *critic.parameters()]
        optimiser = torch.optim.Adam(parameters, 0.01, eps=1e-5)
        for begin, end in ((0, 4), (4, 8), (8, 10)):  # the last update sums what is left of the budget
            loss = 0.0
            for t, lane in np.ndindex(end - begin, lanes_count):
                t = t + begin
                observation = torch.from_numpy(lanes.shown[t, row, lane])
                allowed = torch.from_numpy(lanes.masks[t, row, lane])
                distribution = torch.distributions.Categorical(
                    logits=actor(observation).masked_fill(~allowed, -1e9)
                )
                cumulative = distribution.probs.detach().cumsum(0).numpy()
                action = int(np.searchsorted(cumulative, uniforms[t, row, lane], side="right"))
                assert action == lanes.actions[t][row, lane]
                value = critic(observation)[0]
                target = 0.5 * lanes.reward[t, row, lane]
                if not lanes.terminated[t, row, lane]:
                    target += 0.99 * critic(torch.from_numpy(lanes.following[t, row, lane]))[0].item()
                error = target - value
                loss = loss - distribution.log_prob(torch.tensor(action)) * error.detach()
                loss = loss + 0.25 * error**2 - 0.01 * distribution.entropy()
            loss = loss / ((end - begin) * lanes_count)
            for group in optimiser.param_groups:
                group["lr"] = 0.01 * (1 - begin / steps)
            optimiser.zero_grad()
            loss.backward()
            if max_norm is not None:
                assert torch.nn.utils.clip_grad_norm_(parameters, max_norm) > max_norm
            optimiser.step()
        linears = [module for module in actor if isinstance(module, torch.nn.Linear)]
        learned = policy.network.layers(policy.parameters)
        for (weight, bias), linear in zip(learned, linears, strict=True):
            torch.testing.assert_close(weight[row], linear.weight.T, atol=1e-4, rtol=0)
            torch.testing.assert_close(bias[row, 0], linear.bias, atol=1e-4, rtol=0)


def test_a_truncated_episode_bootstraps_and_a_terminated_one_does_not():
    algorithm = A2C(lanes=4, gamma=0.5, reward_scale=2)
    learner = Learner({"value": StackedMLP((5, 16, 1), "tanh")}, [3], 0.01)
    lanes = TapedLanes(np.random.default_rng(0), [3], 4, 5, 6, 1)
    lanes.terminated[0], lanes.truncated[0] = [[True, False, True, False]], [[False, True, True, False]]
    step = lanes.step(np.zeros((1, 4), int))
    with torch.no_grad():
        worth = learner.networks["value"](learner.layers["value"], torch.from_numpy(step.final_observation))
    promised = worth[0, :, 0].numpy() * [0, 1, 0, 1]
    expected = 2 * step.reward[0] + 0.5 * promised
    target, _ = algorithm._target(step, learner, torch.zeros((1, 4), dtype=torch.int64))
    np.testing.assert_allclose(target.numpy()[0], expected, rtol=1e-6)


class MaskWitness(DynamicsLanes):
    """Lanes that count steps with actions the mask forbids."""

    forbidden = 0

    def step(self, action):
        self.forbidden += int((~np.take_along_axis(self.mask, action[..., None], -1)).sum())
        return super().step(action)


def test_forbidden_actions_are_never_taken():
    lanes = MaskWitness(MockInterview("tiny"), Purpose.TUNING, [1001, 1002], 8)
    policy = A2C(lanes=8).train(lanes, lanes.seeds, 4000, Quiet())
    assert lanes.forbidden == 0
    assert not lanes.mask.all()
    assert torch.isfinite(policy.parameters).all()


def test_the_budget_is_hit_exactly_and_the_policy_is_seen_at_its_points():
    recorder = Quiet(0, 480, 1000)
    algorithm = A2C(lanes=4, update_every=10, hidden=(16,))
    lanes = DynamicsLanes(CartPole(), Purpose.TUNING, [1001, 1002], 4)
    policy = algorithm.train(lanes, lanes.seeds, 1000, recorder)
    assert recorder.steps == 1000
    assert [steps for steps, _ in recorder.evaluated] == [0, 480, 1000]
    assert torch.equal(recorder.evaluated[-1][1].parameters, policy.parameters)
    assert not torch.equal(recorder.evaluated[0][1].parameters, recorder.evaluated[1][1].parameters)
    assert [steps for steps, _ in recorder.logged] == [1000]
    for _, scalars in recorder.logged:
        assert set(scalars) == {"entropy", "td_error", "value"}
        assert all(np.shape(values) == (2,) and np.isfinite(values).all() for values in scalars.values())
    with pytest.raises(ValueError, match="Choose 1000 steps"):
        algorithm.train(lanes, lanes.seeds, 1002, recorder)


@pytest.mark.parametrize(
    "wrong",
    [{"lanes": 0}, {"gamma": 1.1}, {"hidden": (0,)}, {"hidden": (10,)}, {"activation": "sine"}, {"clip": 1}],
)
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(ValidationError):
        A2C(**wrong)


ENVIRONMENTS = {"CartPole": CartPole, "GoalGrid": GoalGrid}


def what_remains(name, block, budget, changes):
    """Per seed: final parameters, curve and diagnostics."""
    plan = CurvePlan(every=budget // 2, episodes=4, lanes=4)
    dynamics = ENVIRONMENTS[name]() if name in ENVIRONMENTS else MockInterview(name)
    run = train(A2C(**changes), dynamics, block, budget, plan)
    tables = run.curve, run.diagnostics, run.episodes
    return {
        seed: [
            run.policy.parameters[row].numpy(),
            *(table[table.seed == seed].to_numpy() for table in tables),
        ]
        for row, seed in enumerate(block)
    }


BLOCKS = [[1007], [1007, 1001], [1001, 1007], [1002, 1007, 1001], [1001, 1002, 1003, 1004, 1007]]


@pytest.mark.parametrize(
    "name, budget, changes",
    [
        ("GoalGrid", 1600, {}),
        ("CartPole", 200, {"lanes": 1}),
        ("tiny", 800, {"lanes": 5}),
        pytest.param("GoalGrid", 40_000, {}, marks=pytest.mark.slow),
        pytest.param("GoalGrid", 8000, {"lanes": 1, "activation": "relu"}, marks=pytest.mark.slow),
        pytest.param("GoalGrid", 40_000, {"hidden": (128, 128), "lanes": 32}, marks=pytest.mark.slow),
        pytest.param("default", 16_000, {"activation": "silu"}, marks=pytest.mark.slow),
    ],
)
def test_a_seed_does_not_depend_on_its_block(name, budget, changes):
    twenty = [[*range(1020, 1039), 1007]] if budget >= 5000 else []
    expected = what_remains(name, BLOCKS[0], budget, changes)[1007]
    for block in BLOCKS[1:] + twenty:
        for whole, alone in zip(what_remains(name, block, budget, changes)[1007], expected, strict=True):
            np.testing.assert_array_equal(whole, alone, err_msg=f"block {block}")


def test_looking_changes_nothing():
    algorithm, seeds = A2C(hidden=(16,)), [1001, 1002]
    curve = CurvePlan(every=320, episodes=3, lanes=2)
    seen = train(algorithm, CartPole(), seeds, 1600, curve).policy
    assert torch.equal(seen.parameters, train(algorithm, CartPole(), seeds, 1600, None).policy.parameters)


def lower_bound(values):
    return values.mean() - stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)


def mean_of(column, policy, dynamics, episodes):
    table = evaluate(policy, dynamics, Purpose.TUNING, episodes, lanes=episodes).episodes
    return table.groupby("seed")[column].mean().to_numpy()


def test_it_learns_the_small_interview():
    dynamics, seeds = MockInterview("tiny"), [1001, 1002, 1003, 1004, 1005]
    random = mean_of("return", UniformRandomPolicy([1000], dynamics), dynamics, 500).item()
    kinds = [kind for kind, rule in HEURISTICS.items() if not {"most_effective", "likeliest"} & set(rule)]
    options = {"relief_frustration": 0.4}
    rules = [FixedHeuristicPolicy([1000], dynamics, {"kind": kind, **options}) for kind in kinds]
    best = max(mean_of("return", rule, dynamics, 500).item() for rule in rules)
    policy = train(A2C(), dynamics, seeds, 16_000, None).policy.in_mode("sampled")
    assert lower_bound(mean_of("return", policy, dynamics, 100)) > random + 0.2 * (best - random)


def test_it_learns_to_reach_goals():
    rooms = "\n".join(["....#....", "....#....", "....+....", "....#....", "....#...."])
    dynamics = GoalGrid(map=rooms, horizon=30, minimum_distance=4)
    random = mean_of("success", UniformRandomPolicy([1000], dynamics), dynamics, 500).item()
    policy = train(A2C(), dynamics, [1001, 1002, 1003, 1004, 1005], 48_000, None).policy.in_mode("sampled")
    assert random < 0.2
    assert lower_bound(mean_of("success", policy, dynamics, 100)) > 0.5
