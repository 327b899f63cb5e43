"""PETS: plans are the best ones, masks hold, decisions depend on nothing but their own, files."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seedbed.algorithms.ensemble import Ensemble
from seedbed.algorithms.pets import PETS, latest_pace
from seedbed.algorithms.pets_policy import PETSPolicy
from seedbed.algorithms.planning import Choices, Planner, PlannerSettings
from seedbed.algorithms.uniform_random import UniformRandomPolicy
from seedbed.artifacts import ArtifactError
from seedbed.environments.cart_pole import CartPole
from seedbed.environments.interview import MockInterview
from seedbed.environments.lanes import DynamicsLanes
from seedbed.evaluation import evaluate
from seedbed.seeding import Purpose
from seedbed.training import train


class Ladder:
    """A known world in a planner's head: x moves by the action less 1, under noise, and ``pay`` is paid.

    It ends at x >= 5; content, action 2, is forbidden where x >= 3.
    """

    masked = True

    def __init__(self, pay, ends=True):
        self.pay, self.ends, self.actions = pay, ends, []

    def step(self, observation, action, noise):
        x = observation[..., 0] + action - 1 + 0.1 * noise[..., 0]
        allowed = np.take_along_axis(self.action_mask(observation), action[..., None], -1)
        assert allowed.all()
        return x[..., None], self.pay(x, action), (x >= 5).astype(np.float32) * self.ends

    def action_mask(self, observation):
        mask = np.ones((*observation.shape[:-1], 3), bool)
        mask[..., 2] = observation[..., 0] < 3
        return mask


def planner_of(imagination, worth=None, table=None, **changes):
    chosen = {"horizon": 5, "population": 80, "iterations": 4, "particles": 4} | changes
    table = np.arange(3) if table is None else table
    return Planner(PlannerSettings(**chosen), Choices(table), imagination, 2, 1, worth)


def plan_once(planner, x, mask, seed):
    """One lane's action and plan."""
    mask = None if mask is None else mask[None]
    action, plan = planner(x[None], mask, planner.fresh()[None], [np.random.default_rng(seed)])
    return action[0], plan[0]


def best_first(pay, start, horizon, gamma):
    """First action of the best sequence without noise, by trying all."""
    best, first = -np.inf, None
    for sequence in itertools.product(range(3), repeat=horizon):
        x, total, weight = start, 0.0, 1.0
        for action in sequence:
            if action == 2 and x >= 3:
                break
            x = x + action - 1
            total += weight * pay(x, action)
            weight *= gamma * (x < 5)
        else:
            if total > best:
                best, first = total, sequence[0]
    return first


@pytest.mark.parametrize("propagation", ["TS1", "TSinf"])
@pytest.mark.parametrize("start", [0.0, 2.2, 4.4])
def test_it_finds_what_trying_everything_finds(start, propagation):
    def pay(x, action):  # a small reward at hand, a large one three steps away, a price for moving
        return 1.0 * (np.abs(x - 0.0) < 0.4) + 5.0 * (np.abs(x - 3.2) < 0.4) - 0.1 * (action != 1)

    planner = planner_of(Ladder(pay), propagation=propagation)
    x = np.array([start])
    mask = planner.imagination.action_mask(x)
    action, _ = plan_once(planner, x, mask, 0)
    assert action == best_first(pay, start, 5, 0.99)


@pytest.mark.parametrize("propagation", ["TS1", "TSinf"])
def test_lanes_planned_together_are_planned_alone(propagation):
    planner = planner_of(Ladder(lambda x, action: np.cos(3 * x) - 0.1 * action), propagation=propagation)
    x = np.linspace(0, 4.9, 6)[:, None]
    mask = planner.imagination.action_mask(x)
    plans = np.random.default_rng(0).normal(size=(6, *planner.fresh().shape)).astype(np.float32)
    together = planner(x, mask, plans, [np.random.default_rng(lane) for lane in range(6)])
    for lane in range(6):
        one = slice(lane, lane + 1)
        alone = planner(x[one], mask[one], plans[one], [np.random.default_rng(lane)])
        np.testing.assert_array_equal(together[0][one], alone[0])
        np.testing.assert_array_equal(together[1][one], alone[1])


def test_an_end_stops_the_rewards_and_the_value_after_the_horizon():
    def pay(x, action):
        return np.where(x >= 5, 3.0, 1.0)

    start = np.array([4.5])
    for ends in (True, False):  # 3 once and no more, or 3 at every step; staying below pays 1
        planner = planner_of(Ladder(pay, ends))
        planner.imagination.action_mask = lambda x: np.ones((*x.shape[:-1], 3), bool)
        action, _ = plan_once(planner, start, None, 1)
        assert (action == 2) != ends
    planner = planner_of(Ladder(lambda x, action: 0.0 * x), worth=lambda x: np.full(len(x), 7.0))
    number = np.array([[2, 0]] + 4 * [[1, 1]])
    planner.imagination.action_mask = lambda x: np.ones((*x.shape[:-1], 3), bool)
    noise = np.zeros((5, 4, 1), np.float32)
    order = np.tile(np.arange(4)[:, None], (5, 1, 1))
    score, _ = planner._score(start[None], None, number[:, None], noise[:, :, None], order)
    np.testing.assert_allclose(score, [[0.0, 7.0 * 0.99**5]], rtol=1e-6)


def test_a_value_at_the_horizon_shows_what_lies_beyond_it():
    near = lambda x, action: 0.1 * (x < 0.5)  # noqa: E731
    blind = planner_of(Ladder(near), horizon=2)
    seeing = planner_of(Ladder(near), horizon=2, worth=lambda x: 3.0 * x[:, 0])
    start = np.array([0.0])
    assert plan_once(blind, start, None, 0)[0] != 2
    assert plan_once(seeing, start, None, 0)[0] == 2


def test_an_uncertainty_penalty_prefers_the_sure_thing():
    class Gamble(Ladder):
        def step(self, observation, action, noise):
            reward = np.where(action == 0, 1.2 + 3 * noise[..., 0], 1.0)
            return observation, reward, np.zeros(action.shape, np.float32)

    for penalty, expected in ((0.0, 0), (1.0, 1)):
        planner = planner_of(Gamble(None), horizon=1, particles=400, uncertainty_penalty=penalty)
        mask = np.array([True, True, False])
        action, _ = plan_once(planner, np.zeros(1), mask, 3)
        assert action == expected


def test_a_plan_moves_on_by_a_step_and_is_worth_something():
    def pay(x, action):
        return 5.0 * (np.abs(x - 3) < 0.5)

    planner = planner_of(Ladder(pay))
    _, plan = plan_once(planner, np.zeros(1), None, 0)
    assert plan.shape == planner.fresh().shape
    np.testing.assert_array_equal(plan[:2].argmax(-1), [2, 2])  # two more steps up are wanted
    np.testing.assert_array_equal(plan[-1], 0)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_a_forbidden_combination_becomes_an_allowed_one_near_it(seed):
    generator = np.random.default_rng(seed)
    dynamics = MockInterview("tiny")
    choices = Choices(dynamics.knowledge.action_table)
    chosen = choices.draw(np.zeros((1, 15)), generator.random((1, 20, 4)))
    number = choices.number(chosen)[0]
    mask = generator.random((20, 36)) < generator.choice([0.05, 0.5])
    mask[np.arange(20), generator.integers(36, size=20)] = True
    action = choices.permitted(number, mask)
    assert mask[np.arange(20), action].all()
    wanted = dynamics.knowledge.action_table[tuple(chosen[0].T)]
    kept = mask[np.arange(20), wanted]
    np.testing.assert_array_equal(action[kept], wanted[kept])
    np.testing.assert_array_equal(choices.permitted(number, None), wanted)
    capped = np.tile(np.arange(36) < 12, (20, 1))  # no content: the question with the same other choices
    _, difficulty, _, outcome = chosen[0].T
    np.testing.assert_array_equal(choices.permitted(number, capped), 3 * outcome + difficulty)


def test_every_action_can_be_chosen_and_shares_count_choices_that_matter():
    table = MockInterview("tiny").knowledge.action_table
    choices = Choices(table)
    drawn = choices.draw(np.zeros((1, 15)), np.random.default_rng(0).random((1, 4000, 4)))
    number = choices.number(drawn)
    assert set(choices.permitted(number, None).ravel()) == set(range(36))
    questions = drawn[:, drawn[0, :, 0] == 0]
    shares = choices.shares(questions, np.full((1, 15), 9.0), 1e-6)[0]
    np.testing.assert_allclose(np.exp(shares[:2]), [1, 0], atol=1e-5)
    np.testing.assert_allclose(np.exp(shares[2:5]), 1 / 3, atol=0.05)
    np.testing.assert_array_equal(shares[5:11], 9.0)  # no modality was shown: nothing is known of them


def test_draws_follow_their_logits():
    choices = Choices(np.arange(4))
    logits = np.log([[0.1, 0.2, 0.3, 0.4], [1.0, 1e-9, 1e-9, 1.0]])
    drawn = choices.draw(logits, np.random.default_rng(0).random((2, 20_000, 1)))
    for row, p in zip(drawn[..., 0], ([0.1, 0.2, 0.3, 0.4], [0.5, 0, 0, 0.5]), strict=True):
        np.testing.assert_allclose(np.bincount(row, minlength=4) / 20_000, p, atol=0.02)


def test_the_promise_of_the_goal_rises_with_progress_and_the_pace_is_that_of_the_latest_steps():
    dynamics = MockInterview("tiny")
    knowledge, c = dynamics.knowledge, dynamics.constants
    x = np.zeros((3, 12), np.float32)
    x[0, :4], x[1, :4], x[2, :4] = 0.8, 0.6, 0.1
    x[:, 10] = 0.5  # half of 40 steps are over
    promise = knowledge.promise(x, pace=0.02)
    np.testing.assert_allclose(promise, c.time_saved_bonus * np.array([20, 20 - 10, 0]), rtol=1e-5, atol=1e-5)
    assert not MockInterview("as_specified").knowledge.promise(np.zeros((2, 32), np.float32), 0.1).any()
    ensemble = Ensemble(PETS().model, dynamics.spec, knowledge, [1, 2], 1, 1500)
    zero = np.zeros((2, 1), bool)
    for number in range(1400):
        gain = np.array([0.0, 0.9 if number < 400 else 0.04], np.float32)[:, None, None]
        step = SimpleNamespace(
            final_observation=np.tile(gain, (1, 1, 12)), reward=np.zeros((2, 1)), terminated=zero,
            truncated=zero, facts={"correct": np.zeros((2, 1))},
        )  # fmt: skip
        ensemble.add(np.zeros((2, 1, 12), np.float32), np.zeros((2, 1), int), step)
    np.testing.assert_allclose(latest_pace(ensemble, knowledge), [1e-4, 0.04], rtol=1e-5)


SMALL = {
    "learning_starts": 100,
    "fit_every": 50,
    "model": {"members": 3, "elites": 2, "hidden": (32,), "rounds": 2, "batches": 10, "batch_size": 32},
    "planner": {"particles": 2, "horizon": 3, "population": 16, "iterations": 2},
}


@pytest.fixture(scope="module", params=["tiny", "as_specified", "CartPole"])
def trained(request):
    """A policy of the seeds 7, 1 and 3, its environment and the recorded run."""
    torch.set_num_threads(1)
    dynamics = CartPole() if request.param == "CartPole" else MockInterview(request.param, horizon=12)
    return train(PETS(**SMALL), dynamics, [7, 1, 3], 130, None), dynamics


@pytest.mark.parametrize("block", [[7], [1, 7], [1, 2, 3, 4, 7]])
def test_a_seed_does_not_depend_on_its_block(trained, block):
    run, dynamics = trained
    policy, row = train(PETS(**SMALL), dynamics, block, 130, None).policy, block.index(7)
    assert torch.equal(policy.world_model.parameters[row], run.policy.world_model.parameters[0])
    if run.policy.pace is not None:
        assert policy.pace[row] == run.policy.pace[0]


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["tiny", "default"])
def test_a_seed_does_not_depend_on_its_block_for_long(preset):
    algorithm = PETS(model={"hidden": (64, 64)})
    results = []
    for block in ([7], [1, 7, 3]):
        policy = train(algorithm, MockInterview(preset), block, 1500, None).policy
        results.append(policy.world_model.parameters[block.index(7)])
    assert torch.equal(*results)


def test_evaluation_does_not_depend_on_lanes(trained):
    run, dynamics = trained
    one, *others = (
        evaluate(run.policy, dynamics, Purpose.TUNING, 8, lanes=lanes).episodes for lanes in (1, 3, 8)
    )
    assert all(other.equals(one) for other in others)


def test_a_policy_survives_its_file(trained, tmp_path):
    run, dynamics = trained
    path = tmp_path / "policy.safetensors"
    run.policy.save(path)
    loaded = PETSPolicy.load(path, dynamics)
    assert (loaded.seeds, loaded.settings) == (run.policy.seeds, run.policy.settings)
    before, after = (evaluate(p, dynamics, Purpose.TUNING, 1, lanes=1) for p in (run.policy, loaded))
    assert after.episodes.equals(before.episodes)
    loaded.save(tmp_path / "again.safetensors")
    assert path.read_bytes() == (tmp_path / "again.safetensors").read_bytes()
    with pytest.raises(ArtifactError, match="Evaluate it where it was trained"):
        PETSPolicy.load(path, MockInterview("default"))
    UniformRandomPolicy([1], dynamics).save(tmp_path / "random.safetensors")
    with pytest.raises(ArtifactError, match="holds the policy UniformRandomPolicy"):
        PETSPolicy.load(tmp_path / "random.safetensors", dynamics)


def test_what_was_learned_and_computed_is_recorded(trained):
    run, _ = trained
    settings = run.policy.settings
    assert run.policy.model_calls == 2 * 3 * 16 * 2 == settings.model_calls
    names = {"model_loss", "validation_loss", "validation_error", "disagreement", "model_calls"}
    names |= {"event_brier"}
    assert set(run.diagnostics.name) - {"pace"} == names
    assert run.model_calls == 3 * 30 * settings.model_calls  # three seeds; the model came after 100 steps
    assert run.policy.in_mode("greedy") is run.policy
    with pytest.raises(ValueError, match="greedy"):
        run.policy.in_mode("sampled")


def test_a_decision_is_its_own_and_memory_ends_with_an_episode(trained):
    run, dynamics = trained
    policy, generator = run.policy, np.random.default_rng(0)
    observation = generator.random((3, 2, *dynamics.spec.observation_shape), np.float32)
    mask = np.ones((3, 2, dynamics.spec.actions), bool)
    uniforms, every = generator.random((3, 2, policy.uniforms)), np.ones((3, 2), bool)
    action, memory = policy.act(observation, mask, uniforms, None, every)
    again, _ = policy.act(observation, mask, uniforms, memory, every)
    np.testing.assert_array_equal(again, action)  # nothing is left of the plans
    before = memory.copy()
    policy.act(observation, mask, uniforms, memory, ~every)
    np.testing.assert_array_equal(memory, before)
    assert memory.any()


def test_forbidden_actions_are_never_taken():
    taken = []

    class Watched(MockInterview):
        def step(self, state, action, noise):
            if np.ndim(action):
                taken.append(np.take_along_axis(self.action_mask(state), action[..., None], -1))
            return super().step(state, action, noise)

    train(PETS(**SMALL), Watched("tiny"), [1001], 200, None)
    assert np.concatenate(taken).all()


def test_bfloat16_plans_about_the_same(trained):
    policy = trained[0].policy
    exact, rough = (policy.world_model.predictor(0, bfloat16) for bfloat16 in (False, True))
    seen = np.random.default_rng(0).random((2, 16, policy.world_model.shape.observed), np.float32)
    action = np.zeros((2, 16), np.int64)
    size = policy.world_model.scales["size"][0]
    for one, other in zip(exact(seen, action)[:2], rough(seen, action)[:2], strict=True):
        assert (np.abs(one - other)[..., : len(size)] < 0.1 * size).all()


@pytest.mark.parametrize(
    ("changes", "budget", "message"),
    [({"lanes": 2}, 501, "multiple of lanes"), ({}, 400, "no model would be")],
)
def test_a_budget_that_cannot_be_met_is_refused(changes, budget, message):
    algorithm = PETS(**changes)
    lanes = DynamicsLanes(MockInterview("tiny"), Purpose.TRAINING, [1], algorithm.lanes)
    with pytest.raises(ValueError, match=message):
        algorithm.train(lanes, [1], budget, None)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lanes": 3}, "multiple of lanes"),
        ({"planner": {"particles": 7}}, "multiple of model.elites"),
        ({"planner": {"elite_share": 0.0}}, "greater than 0"),
        ({"planner": {"propagation": "DS"}}, "TS1"),
        ({"model": {"members": 1}}, "greater than or equal to 2"),
        ({"unknown": 1}, "nexpected"),
    ],
)
def test_hyper_parameters_out_of_range_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        PETS(**changes)


@pytest.mark.slow
def test_it_learns():
    seeds, dynamics = [1000, 1001], MockInterview("tiny")
    algorithm = PETS(model={"hidden": (64, 64)})
    policy = train(algorithm, dynamics, seeds, 1500, None).policy
    learned, chance = (
        evaluate(p, dynamics, Purpose.TUNING, 50, lanes=50).episodes.groupby("seed")["return"].mean()
        for p in (policy, UniformRandomPolicy(seeds, dynamics))
    )
    assert (learned > chance + 5).all()
