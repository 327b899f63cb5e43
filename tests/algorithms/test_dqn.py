"""DQN: values by definition, masks, exact seeds, files, learning."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
import torch
from learners import Quiet
from scipy import stats

from seedbed.algorithms.base import StatelessPolicy
from seedbed.algorithms.dqn import DQN
from seedbed.algorithms.q_policy import QNetwork, QPolicy, epsilon_greedy, masked_argmax
from seedbed.algorithms.uniform_random import UniformRandomPolicy
from seedbed.artifacts import ArtifactError
from seedbed.environments.base import Spec, Transition
from seedbed.environments.interview import MockInterview
from seedbed.environments.lanes import DynamicsLanes
from seedbed.evaluation import evaluate
from seedbed.seeding import Purpose
from seedbed.training import train


class Position(NamedTuple):
    """Where a walker is, and when; [...] int64."""

    place: np.ndarray
    time: np.ndarray


class Walk:
    """Action 2 pays 5 but is never allowed; what 0 and 1 pay can be chosen.

    Args:
        length: steps per episode.
        terminates: whether the end is one of its own or the step limit, unseen.
        pay: of actions 0, 1, 2.
    """

    def __init__(self, length: int, terminates: bool, pay=(0.0, 1.0, 5.0)):
        self.length, self.terminates, self.pay = length, terminates, np.array(pay)
        low, high = np.zeros(length + 1, np.float32), np.ones(length + 1, np.float32)
        self.spec = Spec(low, high, actions=3, horizon=length, initial_noise=0, step_noise=0, masked=True)

    def initial(self, noise):
        return Position(*np.zeros((2, *noise.shape[:-1]), np.int64))

    def observe(self, state):
        seen = state.time if self.terminates else np.zeros_like(state.time)
        return (np.arange(self.length + 1) == seen[..., None]).astype(np.float32)

    def action_mask(self, state):
        return np.broadcast_to(np.array([True, True, False]), (*state.time.shape, 3)).copy()

    def limit(self, state):
        return np.full(state.time.shape, self.length + (1 if self.terminates else 0))

    def step(self, state, action, noise):
        after = Position(state.place, state.time + 1)
        ended = (after.time >= self.length) & self.terminates
        return Transition(after, self.pay[action], ended, {})


QUICK = DQN(
    hidden=(32,), learning_rate=3e-3, gamma=0.5, reward_scale=1.0, learning_starts=100, steps_per_update=2,
    target_rate=0.1, batch_size=32, exploration_fraction=0.5, n_step=1,
)  # fmt: skip


def learned_values(algorithm, walk, budget=1200):
    """Values [2, 3, actions] of two seeds at the first three times of a walk."""
    lanes = DynamicsLanes(walk, Purpose.TRAINING, [5, 6], algorithm.lanes)
    policy = algorithm.train(lanes, [5, 6], budget, Quiet())
    time = np.arange(3)
    return policy.outputs(np.tile(walk.observe(Position(time, time)), (2, 1, 1))).numpy()


@pytest.mark.parametrize(
    "changes", [{}, {"double": False, "dueling": False, "prioritized": False, "huber": None}]
)
@pytest.mark.parametrize("terminates", [True, False])
def test_values_are_those_of_the_best_actions_and_only_true_ends_stop_them(terminates, changes):
    values = learned_values(replace(QUICK, **changes), Walk(3, terminates))
    # Paid 1 for ever is worth 1 / (1 - 0.5); before a true end only what is left counts; a limit is no end.
    best = np.array([1.75, 1.5, 1.0]) if terminates else np.full(3, 2.0)
    np.testing.assert_allclose(values[..., 1], np.tile(best, (2, 1)), atol=0.12)
    np.testing.assert_allclose(values[..., 0], np.tile(best - 1, (2, 1)), atol=0.15)


@pytest.mark.parametrize(
    "changes",
    [{}, {"lanes": 2, "target_rate": 1.0, "target_interval": 50}],
    ids=["soft", "hard"],
)
@pytest.mark.parametrize("terminates", [True, False])
def test_several_steps_are_cut_where_episodes_end(terminates, changes):
    values = learned_values(replace(QUICK, n_step=3, **changes), Walk(3, terminates, pay=(1.0, 1.0, 5.0)))
    expected = np.array([1.75, 1.5, 1.0]) if terminates else np.full(3, 2.0)
    np.testing.assert_allclose(values[..., :2], np.tile(expected[:, None], (2, 1, 2)), atol=0.12)


def test_forbidden_actions_are_never_taken_nor_hoped_for():
    seen = []

    class Watched(Walk):
        def step(self, state, action, noise):
            seen.append(action.copy())
            return super().step(state, action, noise)

    lanes = DynamicsLanes(Watched(4, False), Purpose.TRAINING, [1], 1)
    policy = QUICK.train(lanes, [1], 1500, Quiet())
    assert set(np.concatenate(seen).ravel()) == {0, 1}
    first = np.ones((1, 4), bool)
    observation, mask = np.zeros((1, 4, 5), np.float32), np.tile([True, True, False], (1, 4, 1))
    for mode in policy.modes:
        acting = policy.in_mode(mode)
        uniforms = np.random.default_rng(0).random((1, 4, acting.uniforms))
        assert (acting.act(observation, mask, uniforms, None, first)[0] < 2).all()
        probabilities = acting.probabilities(observation, mask, None, first)
        np.testing.assert_allclose(probabilities.sum(-1), 1)
        assert (probabilities[..., 2] == 0).all()


def test_a_forbidden_action_of_huge_value_does_not_enter_the_target(monkeypatch):
    initialise = QNetwork.initialise

    def with_a_lure(self, row, generator):
        initialise(self, row, generator)
        row[self.slots[-1][1] + 2] = 1000.0

    monkeypatch.setattr(QNetwork, "initialise", with_a_lure)
    values = learned_values(replace(QUICK, dueling=False), Walk(3, terminates=False))
    assert (values[..., 2] > 900).all()
    np.testing.assert_allclose(values[..., 1], 2.0, atol=0.12)


def test_dueling_values_are_those_of_the_plain_network_it_is_saved_as():
    generator = np.random.default_rng(0)
    for actions in (3, 40):
        network = QNetwork([6, 16, 16, actions], "relu", dueling=True)
        flat = torch.from_numpy(generator.standard_normal((2, network.size)).astype(np.float32))
        x = torch.from_numpy(generator.standard_normal((2, 9, 6)).astype(np.float32))
        layers = network.layers(flat)
        out = network(layers, x)
        q = out[..., -1:] + out[..., :-1] - out[..., :-1].mean(-1, keepdim=True)
        action = torch.from_numpy(generator.integers(actions, size=(2, 9)))
        tolerance = {"rtol": 1e-4, "atol": 1e-3}
        torch.testing.assert_close(
            network.chosen(layers, x, action), q.gather(2, action[..., None])[..., 0], **tolerance
        )
        policy = QPolicy([1, 2], [6, 16, 16, actions], "relu", network.plain(flat))
        torch.testing.assert_close(policy.outputs(x.numpy()), q, **tolerance)
        assert (network.advantages(layers, x).argmax(-1) == q.argmax(-1)).all()


def test_epsilon_greedy_explores_the_allowed_actions_alike():
    generator = np.random.default_rng(0)
    mask = np.tile(generator.random((1, 5)) < 0.7, (60_000, 1))
    mask[:, 2] = True
    for given in (mask, None):
        allowed = mask[0] if given is not None else np.ones(5, bool)
        taken = epsilon_greedy(np.full(60_000, 2), given, 5, generator.random((60_000, 2), np.float32), 0.4)
        expected = 0.6 * (np.arange(5) == 2) + 0.4 * allowed / allowed.sum()
        np.testing.assert_allclose(np.bincount(taken, minlength=5) / 60_000, expected, atol=0.01)
    edge = np.full((1, 2), np.float32(1 - 2**-24))
    assert epsilon_greedy(np.zeros(1, int), None, 270, edge, 1.0) == 269
    values = torch.tensor([[3.0, 9.0, 3.0]])
    assert masked_argmax(values, torch.tensor([[True, False, True]])) == 0


def run(preset, seeds, budget, **changes):
    """A trained policy, its parameters by seed, and the steps taken."""
    algorithm = DQN(learning_starts=200, **changes)
    recorder = Quiet(0, budget)
    lanes = DynamicsLanes(MockInterview(preset), Purpose.TRAINING, seeds, algorithm.lanes)
    policy = algorithm.train(lanes, seeds, budget, recorder)
    return dict(zip(seeds, policy.parameters.numpy(), strict=True)), recorder, policy


BLOCKS = [[1007], [1007, 1001], [1002, 1007, 1001], [1001, 1002, 1003, 1004, 1007]]


@pytest.mark.parametrize(
    ("preset", "budget", "changes"),
    [
        ("tiny", 600, {}),
        ("tiny", 600, {"lanes": 4, "steps_per_update": 4, "hidden": (48,), "batch_size": 25}),
        ("tiny", 400, {"dueling": False, "prioritized": False, "n_step": 1}),
        ("as_specified", 400, {}),
        pytest.param("tiny", 6000, {}, marks=pytest.mark.slow),
        pytest.param("as_specified", 5000, {}, marks=pytest.mark.slow),
        pytest.param("default", 5000, {"lanes": 2, "activation": "silu"}, marks=pytest.mark.slow),
    ],
)
def test_a_seed_does_not_depend_on_its_block(preset, budget, changes):
    twenty = [[*range(1020, 1039), 1007]] if budget >= 5000 else []
    results = [run(preset, block, budget, **changes)[0][1007] for block in BLOCKS + twenty]
    for block, parameters in zip(BLOCKS + twenty, results, strict=True):
        different = np.count_nonzero(parameters != results[0])
        assert different == 0, f"{different} parameters differ in the block {block}"


def test_training_takes_exactly_its_budget_and_looking_changes_nothing():
    _, recorder, policy = run("tiny", [1001, 1002], 600)
    assert recorder.steps == 600
    assert [steps for steps, _ in recorder.evaluated] == [0, 600]
    np.testing.assert_array_equal(recorder.evaluated[1][1].parameters, policy.parameters)
    assert not np.array_equal(recorder.evaluated[0][1].parameters, policy.parameters)
    unseen = train(DQN(learning_starts=200), MockInterview("tiny"), [1001, 1002], 600, None).policy
    np.testing.assert_array_equal(unseen.parameters, policy.parameters)


def test_a_buffer_smaller_than_the_budget_still_learns_from_every_step():
    parameters, recorder, _ = run("tiny", [1001], 800, buffer_size=300, steps_per_update=2)
    assert np.isfinite(parameters[1001]).all()
    assert recorder.logged[-1][1]["loss"].shape == (1,)


def test_acting_does_not_depend_on_lanes_or_seeds():
    _, _, policy = run("tiny", [1001, 1002, 1003], 300)
    observation = np.random.default_rng(0).random((3, 200, policy.sizes[0]), np.float32)
    everything = policy.outputs(observation).numpy()
    for lanes in (1, 3, 8, 50):
        np.testing.assert_array_equal(policy.outputs(observation[:, :lanes]).numpy(), everything[:, :lanes])
    alone = QPolicy([1002], policy.sizes, "relu", policy.parameters[1:2])
    np.testing.assert_array_equal(alone.outputs(observation[1:2, :1]).numpy(), everything[1:2, :1])


def test_a_policy_survives_its_file(tmp_path):
    _, _, policy = run("tiny", [1001, 1002], 300)
    path, dynamics = tmp_path / "policy.safetensors", MockInterview("tiny")
    policy.save(path)
    loaded = QPolicy.load(path, dynamics)
    assert (loaded.seeds, loaded.options, loaded.mode) == (policy.seeds, policy.options, "greedy")
    np.testing.assert_array_equal(loaded.parameters, policy.parameters)
    policy.save(tmp_path / "again.safetensors")
    assert path.read_bytes() == (tmp_path / "again.safetensors").read_bytes()
    with pytest.raises(ArtifactError, match="36 actions; this environment has"):
        QPolicy.load(path, MockInterview("default"))
    UniformRandomPolicy([1], dynamics).save(tmp_path / "random.safetensors")
    with pytest.raises(ArtifactError, match="holds the policy UniformRandomPolicy"):
        QPolicy.load(tmp_path / "random.safetensors", dynamics)
    path.write_bytes(b"\x80\x04not tensors")
    with pytest.raises(ArtifactError):
        QPolicy.load(path, dynamics)


@pytest.mark.parametrize(
    ("changes", "budget", "message"),
    [
        ({"lanes": 2, "steps_per_update": 2}, 1001, "multiple of lanes"),
        ({}, 500, "nothing would be learned"),
    ],
)
def test_a_budget_that_cannot_be_met_is_refused(changes, budget, message):
    algorithm = DQN(**changes)
    lanes = DynamicsLanes(MockInterview("tiny"), Purpose.TRAINING, [1], algorithm.lanes)
    with pytest.raises(ValueError, match=message):
        algorithm.train(lanes, [1], budget, Quiet())


@pytest.mark.parametrize(
    "changes",
    [
        {"gamma": 1.1},
        {"lanes": 3},
        {"hidden": ()},
        {"hidden": (0,)},
        {"alpha": -1},
        {"unknown": 1},
        {"activation": "silu", "hidden": (100,)},
    ],
)
def test_hyper_parameters_out_of_range_are_refused(changes):
    with pytest.raises(ValueError):
        DQN(**changes)


class VideoAndBlueprint(StatelessPolicy):
    """A good simple rule on the outcome of lowest mastery: video where content is allowed, else a question
    of the difficulty that lacks most against 20/60/20."""

    needs_state = True

    def act(self, observation, mask, uniforms, memory, first):
        state = observation
        outcome, outcomes = state.mastery.argmin(-1), state.mastery.shape[-1]
        asked = state.shown[..., :3]
        lacking = np.array([0.2, 0.6, 0.2]) * (asked.sum(-1, keepdims=True) + 1) - asked
        question, video = outcome * 3 + lacking.argmax(-1), outcomes * 3 + outcome * 6
        return np.where(mask[..., -1], video, question), None


def lower_bound(values):
    """Lower end of the two-sided 95 % t-interval for the mean."""
    return values.mean() - stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)


def seed_means(policy, dynamics, episodes=100):
    """Mean return of each seed's tuning episodes."""
    table = evaluate(policy, dynamics, Purpose.TUNING, episodes, lanes=episodes).episodes
    return table.groupby("seed")["return"].mean().to_numpy()


@pytest.mark.parametrize(
    ("preset", "budget"), [("tiny", 2500), pytest.param("default", 30_000, marks=pytest.mark.slow)]
)
def test_the_defaults_learn(preset, budget):
    seeds, dynamics = [1000, 1001, 1002, 1003, 1004], MockInterview(preset)
    chance = seed_means(UniformRandomPolicy(seeds, dynamics), dynamics).mean()
    reference = seed_means(VideoAndBlueprint(seeds, dynamics), dynamics).mean()
    policy = train(DQN(), dynamics, seeds, budget, None).policy
    assert lower_bound(seed_means(policy, dynamics)) > chance + 0.2 * (reference - chance)
