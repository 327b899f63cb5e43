"""Any Gymnasium environment: the same table for any number of lanes, and episodes counted right."""

import random

import gymnasium
import numpy as np
import pandas as pd
import pytest
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv

from seedbed.algorithms.base import StatelessPolicy
from seedbed.algorithms.uniform_random import UniformRandomPolicy
from seedbed.environments.cart_pole import CartPole
from seedbed.environments.external import GymnasiumEnvironment, VectorEnvironment, ignores_seed
from seedbed.environments.gymnasium_env import DynamicsVectorEnv
from seedbed.environments.gymnasium_lanes import reset_seed
from seedbed.environments.lanes import EpisodeError, make_lanes
from seedbed.evaluation import EvaluationError, evaluate
from seedbed.registry import ENVIRONMENTS, make
from seedbed.seeding import Purpose, stream

TABULAR = spaces.Dict({"room": spaces.Discrete(3, start=1), "place": spaces.Box(-1, 99, (2,), np.float32)})


class Toy(gymnasium.Env):
    """Half of all episodes last 3 steps and fail, half last 5 and succeed, drawn at the reset.

    The reward of step t is 10 ** (t - 1), so that a sum shows which steps it is of.
    """

    observation_space = spaces.Box(0, 99, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, trouble="", at=2, fate="seeded"):
        self.trouble, self.at, self.fate, self.resets = trouble, at, fate, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.resets += 1
        long = {
            "seeded": lambda: self.np_random.random() < 0.5,
            "global": lambda: random.random() < 0.5,
            "carried": lambda: self.resets % 2 == 0,
        }[self.fate]()
        self.t, self.lasts = 0, 5 if long else 3
        if self.trouble == "reset raises":
            raise OSError("no such level")
        return self._seen(), {}

    def _seen(self):
        return np.array([self.t, self.lasts], np.float32)

    def step(self, action):
        assert self.t < self.lasts, "stepped beyond the end"
        self.t += 1
        reward, seen = 10.0 ** min(self.t - 1, 9), self._seen()
        if self.t == self.at:
            if self.trouble == "raises":
                raise KeyError("the simulator fell over")
            if self.trouble == "reward":
                reward = np.nan
            if self.trouble == "observation":
                seen[0] = np.inf
            if self.trouble == "shape":
                seen = seen[:1]
        ended = self.t == self.lasts and self.trouble != "never ends"
        self.lasts += self.trouble == "never ends"
        info = {"is_success": self.lasts == 5} if ended else {}
        return seen, reward, ended, False, info


class Mixed(Toy):
    """A dictionary as observation."""

    observation_space = TABULAR

    def _seen(self):
        return {"room": np.int64(1 + self.t % 3), "place": np.array([self.t, self.lasts], np.float32)}


class Numbered(Toy):
    """A number from 1 as observation, and actions -1, 0 and 1, reported as reward."""

    observation_space = spaces.Discrete(9, start=1)
    action_space = spaces.Discrete(3, start=-1)

    def _seen(self):
        return 1 + self.t

    def step(self, action):
        seen, _, *rest = super().step(action)
        return seen, float(action), *rest


class Several(Toy):
    """Two choices at once, of 2 and of 3."""

    action_space = spaces.MultiDiscrete([2, 3])

    def step(self, action):
        seen, _, *rest = super().step(action)
        return seen, float(action @ [10, 1]), *rest


class Doubled(gymnasium.RewardWrapper):
    """Twice the reward."""

    def reward(self, reward):
        return 2 * reward


class Linear(StatelessPolicy):
    """Discrete: whether the sum of the observation's entries is positive; arrays: their sine, in bounds."""

    def act(self, observation, mask, uniforms, memory, first):
        score = observation.reshape(*first.shape, -1).astype(float).sum(-1)
        array = self.dynamics.spec.action_array
        if array is None:
            return (score > 0).astype(np.int64), None
        share = (1 + np.sin(50 * score)) / 2
        shape = (*first.shape, *[1] * array.low.ndim)
        return array.low + share.reshape(shape) * (array.high - array.low), None


def run(environment, policy=UniformRandomPolicy, seeds=(0, 7), episodes=6, lanes=2):
    return evaluate(
        policy(seeds, environment), environment, Purpose.TEST, episodes, lanes=lanes, log_steps=True
    )


def same(one, other):
    pd.testing.assert_frame_equal(one.episodes, other.episodes, check_exact=True)
    pd.testing.assert_frame_equal(one.steps, other.steps, check_exact=True)
    assert one.decisions == other.decisions == len(one.steps)


@pytest.mark.parametrize("vectorisation", ["sync", "async"])
@pytest.mark.parametrize("policy", [UniformRandomPolicy, Linear])
@pytest.mark.parametrize(
    ("name", "horizon"), [("CartPole-v1", None), ("Acrobot-v1", 40), ("MountainCarContinuous-v0", 40)]
)
def test_same_tables_for_any_number_of_lanes(name, horizon, policy, vectorisation):
    expected = run(GymnasiumEnvironment(name, horizon=horizon), policy, lanes=1)
    assert expected.episodes["return"].nunique() > 1 or name == "Acrobot-v1"
    environment = GymnasiumEnvironment(name, horizon=horizon, vectorisation=vectorisation)
    for lanes in (1, 2, 3, 8):
        same(run(environment, policy, lanes=lanes), expected)


def test_seeds_do_not_depend_on_their_neighbours():
    environment = GymnasiumEnvironment("CartPole-v1")
    together = run(environment, seeds=[1, 3, 9]).steps
    alone = run(environment, seeds=[3], lanes=5).steps
    pd.testing.assert_frame_equal(
        together[together.seed == 3].reset_index(drop=True), alone, check_exact=True
    )


def test_reset_seeds_are_63_bits_of_the_episodes_stream():
    seeds = [reset_seed(Purpose.TEST, seed, episode) for seed in range(20) for episode in range(50)]
    assert len(set(seeds)) == 1000
    assert 2**62 < max(seeds) < 2**63
    assert all(reset_seed(Purpose.TEST, 3, episode, 32) < 2**32 for episode in range(50))
    lanes = make_lanes(GymnasiumEnvironment("CartPole-v1"), Purpose.TEST, [5], 2, 9)
    for episode in range(2):
        expected = np.random.default_rng(reset_seed(Purpose.TEST, 5, episode)).uniform(-0.05, 0.05, 4)
        assert (lanes.observation[0, episode] == expected.astype(np.float32)).all()


def test_cart_pole_is_ours_bit_by_bit():
    seeds = [3, 2**62 + 5, 11, 0]
    ours, theirs = CartPole(), GymnasiumEnvironment("CartPole-v1")
    assert theirs.spec.horizon == ours.spec.horizon == 500
    assert (theirs.spec.observation_high == ours.spec.observation_high).all()
    for policy in (UniformRandomPolicy, Linear):
        same(run(ours, policy, episodes=seeds), run(theirs, policy, episodes=seeds, lanes=3))


@pytest.mark.parametrize("lanes", range(1, 17))
def test_no_bias_to_short_episodes(lanes):
    """The first to finish would be failures nearly all."""
    environment = GymnasiumEnvironment(Toy, success="is_success")
    episodes = run(environment, seeds=[0], episodes=300, lanes=lanes).episodes
    assert len(episodes) == 300
    assert set(episodes.length) == {3, 5}
    assert (episodes.success == (episodes.length == 5)).all()
    assert (episodes["return"] == np.where(episodes.length == 5, 11111, 111)).all()
    assert abs(int(episodes.success.sum()) - 150) < 4 * np.sqrt(75), "within 4 standard errors of one half"


def test_steps_of_lanes_with_more_lanes_than_episodes():
    lanes = make_lanes(GymnasiumEnvironment(Toy, success="is_success"), Purpose.TEST, [0, 1], 3, 2)
    assert lanes.active.tolist() == [[True, True, False]] * 2
    taken = np.zeros(2, int)
    while lanes.active.any():
        before, step = lanes.observation, lanes.step(np.zeros((2, 3), int))
        assert (step.final_observation[step.active][:, 0] == before[step.active][:, 0] + 1).all()
        assert (step.t[step.active] == step.final_observation[step.active][:, 0]).all()
        assert (step.observation[step.active & lanes.first & lanes.active][:, 0] == 0).all()
        assert not (step.terminated | step.truncated)[~step.active].any()
        taken += step.active.sum(1)
    assert set(taken) <= {6, 8, 10}


def test_endless_stream_begins_the_next_episode_lanes_ascending():
    class Short(Toy):
        def _seen(self):
            self.lasts = 1
            return super()._seen()

    lanes = make_lanes(GymnasiumEnvironment(Short), Purpose.TRAINING, [0], 3)
    seen = [lanes.step(np.zeros((1, 3), int)).episode[0].tolist() for _ in range(3)]
    assert seen == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


def test_dictionaries_are_flattened_and_numbers_one_hot():
    steps = make_lanes(GymnasiumEnvironment(Mixed), Purpose.TEST, [0], 1, 1)
    low = steps.spec.observation_low
    assert low.shape == (5,)
    assert low.dtype == np.float32
    seen = steps.observation[0, 0]
    flat = spaces.flatten(TABULAR, {"room": 1, "place": np.array([0, seen.max()], np.float32)})
    assert (seen == flat).all()
    lanes = make_lanes(GymnasiumEnvironment(Numbered), Purpose.TEST, [0], 1, 1)
    step = lanes.step(np.array([[2]]))
    assert step.reward.item() == 1, "our action 2 is the third, theirs is called 1"
    assert step.final_observation.argmax() == 1
    assert step.final_observation.sum() == 1


@pytest.mark.parametrize("toy", [Toy, Mixed, Numbered, Several])
def test_any_space_gives_the_same_tables(toy):
    one, other = (run(GymnasiumEnvironment(toy), lanes=lanes) for lanes in (1, 3))
    same(one, other)


def test_several_discrete_choices_are_drawn_evenly_and_logged():
    environment = GymnasiumEnvironment(Several)
    assert environment.spec.actions == 0
    assert environment.spec.action_shape == (2,)
    steps = run(environment, episodes=300).steps
    assert (steps.reward == 10 * steps.action_0 + steps.action_1).all()
    shares = steps.groupby(["action_0", "action_1"]).size() / len(steps)
    assert len(shares) == 6
    assert (abs(shares - 1 / 6) < 0.04).all()


def test_arguments_of_a_study_reach_the_environment():
    arguments = {
        "id": "CartPole-v1",
        "kwargs": {"sutton_barto_reward": True},
        "wrappers": ["gymnasium.wrappers:FlattenObservation"],
        "horizon": 7,
    }
    environment = make("Gymnasium", arguments, ENVIRONMENTS, "environment")
    episodes = run(environment, Linear).episodes
    assert set(episodes["return"]) == {0.0}, "that reward is 0 until the pole falls"
    assert episodes.truncated.all()
    assert (episodes.length == 7).all()
    doubled = GymnasiumEnvironment(Toy, wrappers=[Doubled, Doubled])
    assert set(run(doubled).episodes["return"]) <= {4 * 111.0, 4 * 11111.0}


def test_class_is_named_by_its_place():
    place = "gymnasium.envs.classic_control.cartpole:CartPoleEnv"
    named, registered = (GymnasiumEnvironment(name, horizon=30) for name in (place, "CartPole-v1"))
    assert named.spec.horizon == 30
    same(run(named), run(registered))


@pytest.mark.parametrize("vectorisation", ["sync", "async"])
@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        ("raises", r"In seed 6, episode 0, step 2: KeyError: 'the simulator fell over' \(raised in .*, line"),
        ("reward", r"In seed 6, episode 0, step 2: the reward is not finite \(nan\)"),
        ("observation", "In seed 6, episode 0, step 2: the observation is not finite"),
        ("shape", r"In seed 6, episode 0, step 2: ValueError: The observation's shape is \(1,\)"),
        ("reset raises", "In seed 6, episode 0, step 0: OSError: no such level"),
        ("never ends", "In seed 6, episode 0, step 50: the episode has not ended after 50 steps"),
    ],
)
def test_trouble_names_seed_episode_and_step(trouble, message, vectorisation, monkeypatch):
    monkeypatch.setattr("seedbed.environments.external.HARD_LIMIT", 50)
    environment = GymnasiumEnvironment(Toy, {"trouble": trouble}, vectorisation=vectorisation)
    with pytest.raises(EvaluationError, match=message):
        run(environment, seeds=[6])


def test_long_episodes_read_their_stream_to_the_end():
    class Long(Toy):
        def _seen(self):
            self.lasts = 2500
            return super()._seen()

    one, other = (run(GymnasiumEnvironment(Long), episodes=3, lanes=lanes) for lanes in (1, 2))
    same(one, other)
    for (seed, episode), steps in one.steps.groupby(["seed", "episode"]):
        drawn = stream(Purpose.TEST_ACTIONS, seed, episode).random(2500)
        assert (steps.action == (2 * drawn).astype(int)).all()


def test_trouble_in_training_is_named_too():
    lanes = make_lanes(GymnasiumEnvironment(Toy, {"trouble": "reward"}), Purpose.TRAINING, [6], 1)
    lanes.step(np.zeros((1, 1), int))
    with pytest.raises(EpisodeError, match="seed 6, episode 0, step 2: the reward is not finite"):
        lanes.step(np.zeros((1, 1), int))


def test_success_that_info_does_not_tell_is_an_error():
    environment = GymnasiumEnvironment(Toy, success="won")
    with pytest.raises(EvaluationError, match="ended, but info has no 'won'; it has is_success"):
        run(environment)


def test_truncated_episodes_succeed_only_where_the_environment_says_so():
    class Timed(Toy):
        def step(self, action):
            seen, reward, ended, _, info = super().step(action)
            return seen, reward, False, ended, info

    for counts in (False, True):
        environment = GymnasiumEnvironment(Timed, success="is_success", truncated_success=counts)
        episodes = run(environment, episodes=20).episodes
        assert episodes.truncated.all()
        assert (episodes.success == (counts & (episodes.length == 5))).all()


@pytest.mark.parametrize(
    ("name", "action", "message"),
    [
        ("CartPole-v1", 2, r"Action 2 of seed 4, episode 0, step 1 is not in \[0, 2\)"),
        ("CartPole-v1", -1, r"Action -1 of seed 4"),
        ("CartPole-v1", 0.5, "whole numbers as actions, not float64"),
        ("MountainCarContinuous-v0", [1.5], r"Action \[1.5\] of seed 4, episode 0, step 1 is not in \[\[-1"),
        ("MountainCarContinuous-v0", [np.nan], r"Action \[nan\] of seed 4"),
        ("MountainCarContinuous-v0", 0.5, r"shape \(1, 1\); these lanes take \(1, 1, 1\)"),
    ],
)
def test_actions_out_of_bounds_are_refused(name, action, message):
    lanes = make_lanes(GymnasiumEnvironment(name), Purpose.TEST, [4], 1, 1)
    with pytest.raises(ValueError, match=message):
        lanes.step(np.array([[action]]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"id": "CartPoll-v1"}, "CartPoll-v1 cannot be made.*NameNotFound"),
        ({"id": "CartPole-v1", "kwargs": {"colour": "red"}}, "cannot be made.*colour"),
        ({"id": "CartPole-v1", "wrappers": ["gymnasium.wrappers:NoWrapper"]}, "NoWrapper"),
        ({"id": "CartPole-v1", "wrappers": ["gymnasium.wrappers:NormalizeObservation"]}, "carries statis"),
        ({"id": "CartPole-v1", "vectorisation": "threads"}, "vectorisation"),
        ({"id": "CartPole-v1", "horizon": 0}, "horizon"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(Exception, match="(?s)" + message):
        make("Gymnasium", arguments, ENVIRONMENTS, "environment")


def test_spaces_without_a_fixed_size_are_refused():
    class Words(Toy):
        observation_space = spaces.Sequence(spaces.Discrete(5))

    class Tools(Toy):
        action_space = spaces.Dict({"hand": spaces.Discrete(2)})

    for toy, message in ((Words, "no fixed size"), (Tools, "not understood")):
        with pytest.raises(ValueError, match=message):
            GymnasiumEnvironment(toy)


def test_learning_does_not_depend_on_processes_or_other_seeds():
    from seedbed.algorithms.ppo import PPO
    from seedbed.training import CurvePlan, train

    ppo, curve = PPO(lanes=4, rollout=16, hidden=(16,)), CurvePlan(128, 3, 3)

    def learned(seeds, **arguments):
        return train(ppo, GymnasiumEnvironment("CartPole-v1", **arguments), seeds, 256, curve)

    expected = learned([2, 5])
    assert set(expected.curve.steps) == {0, 128, 256}
    assert len(expected.episodes) > 10
    processes, alone = learned([2, 5], vectorisation="async"), learned([5])
    for name in ("curve", "episodes"):
        table = getattr(expected, name)
        pd.testing.assert_frame_equal(getattr(processes, name), table, check_exact=True)
        pd.testing.assert_frame_equal(
            getattr(alone, name), table[table.seed == 5].reset_index(drop=True), check_exact=True
        )


def vector(num_envs, mode, **arguments):
    return SyncVectorEnv([lambda: Toy(**arguments)] * num_envs, autoreset_mode=mode)


@pytest.mark.parametrize("lanes", [1, 2, 5])
@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_each_autoreset_mode_is_counted_right(mode, lanes):
    environment = VectorEnvironment(vector, {"mode": mode}, success="is_success")
    result = run(environment, episodes=40, lanes=lanes)
    episodes = result.episodes
    assert len(episodes) == 80
    assert set(episodes.length) == {3, 5}, "not 4 and 6"
    assert (episodes["return"] == np.where(episodes.length == 5, 11111, 111)).all()
    assert (episodes.success == (episodes.length == 5)).all()
    assert result.decisions == len(result.steps) == episodes.length.sum()
    assert abs(int(episodes.success.sum()) - 40) < 4 * np.sqrt(20)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_final_observation_is_before_the_reset_in_each_mode(mode):
    environment = VectorEnvironment(vector, {"mode": mode})
    lanes = make_lanes(environment, Purpose.TEST, [0], 3, 10)
    ends = 0
    while lanes.active.any():
        step = lanes.step(np.zeros((1, 3), int))
        taken = step.active
        assert (step.final_observation[taken][:, 0] == step.t[taken]).all()
        assert (lanes.observation[lanes.first & lanes.active][:, 0] == 0).all()
        ended = taken & (step.terminated | step.truncated)
        assert (step.final_observation[ended][:, 0] == step.final_observation[ended][:, 1]).all()
        ends += int(ended.sum())
    assert ends == 10


def test_disabled_vector_environment_has_the_episodes_of_single_ones():
    one = run(VectorEnvironment(vector, {"mode": "Disabled"}, success="is_success"), lanes=3)
    same(one, run(GymnasiumEnvironment(Toy, success="is_success")))


def test_our_vector_environment_has_the_episodes_of_our_lanes():
    environment = VectorEnvironment(lambda num_envs: DynamicsVectorEnv(CartPole(), num_envs, "Disabled"))
    seeds = [3, 2**62 + 5, 11, 0, 8]
    same(run(environment, episodes=seeds, lanes=3), run(CartPole(), episodes=seeds))


def test_endless_stream_of_an_environment_that_resets_in_the_same_step():
    lanes = make_lanes(VectorEnvironment(vector, {"mode": "SameStep"}), Purpose.TRAINING, [0, 4], 2)
    total, episodes = np.zeros((2, 2)), []
    for _ in range(60):
        step = lanes.step(np.zeros((2, 2), int))
        assert step.active.all()
        total += step.reward
        ended = step.terminated
        assert set(total[ended]) <= {111.0, 11111.0}
        assert (step.final_observation[..., 0] == step.t).all()
        assert (step.observation[ended][:, 0] == 0).all()
        assert (lanes.first == ended).all()
        total[ended] = 0
        episodes += step.episode[0][ended[0]].tolist()
    assert sorted(episodes) == list(range(len(episodes)))


def test_gymnasiums_own_vector_environments_are_counted_right():
    """CartPole's resets in the next step and has rewards of 1, so a return is its length."""
    result = run(VectorEnvironment("CartPole-v1", horizon=500), episodes=20, lanes=3)
    assert (result.episodes["return"] == result.episodes.length).all()
    single = run(GymnasiumEnvironment("CartPole-v1"), episodes=20).episodes
    assert 0.5 < result.episodes.length.mean() / single.length.mean() < 2


def test_vector_environment_that_does_not_say_how_it_resets_is_refused():
    def silent(num_envs):
        envs = vector(num_envs, "NextStep")
        envs.metadata = {}
        return envs

    with pytest.raises(ValueError, match=r"does not say how it resets .* None\), so the rewards of an epis"):
        VectorEnvironment(silent)


def test_what_a_mode_cannot_do_is_refused():
    environment = VectorEnvironment(vector, {"mode": "NextStep"})
    with pytest.raises(ValueError, match="Train on the environment in DISABLED or SAME_STEP"):
        make_lanes(environment, Purpose.TRAINING, [0], 2)
    with pytest.raises(ValueError, match="Plain reset seeds need the autoreset mode DISABLED"):
        make_lanes(environment, Purpose.TEST, [0], 2, [5, 6])
    with pytest.raises(ValueError, match="a first episode other than 0"):
        make_lanes(environment, Purpose.TEST, [0], 2, 2, 1)


@pytest.mark.parametrize("fate", ["global", "carried"])
def test_environments_that_ignore_their_seed_are_found(fate):
    environment = GymnasiumEnvironment(Toy, {"fate": fate})
    assert any(ignores_seed(environment, seed) for seed in range(20))


@pytest.mark.parametrize("name", [Toy, Mixed, Numbered, Several, "MountainCarContinuous-v0", "FrozenLake-v1"])
def test_environments_that_heed_their_seed_are_not_accused(name):
    environment = GymnasiumEnvironment(name)
    assert not any(ignores_seed(environment, seed) for seed in range(5))
