"""Stable-Baselines3's classes, trained inside a rule, and its saved models."""

import threading

import gymnasium
import numpy as np
import pytest
import stable_baselines3
from stable_baselines3.common.vec_env import DummyVecEnv

from seedbed.algorithms.global_generators import GlobalGenerators
from seedbed.algorithms.model_policy import ModelPolicy
from seedbed.algorithms.row_policy import PolicyError
from seedbed.artifacts import SeedbedError
from seedbed.environments.external import GymnasiumEnvironment
from seedbed.environments.gymnasium_lanes import reset_seed
from seedbed.environments.interview import MockInterview
from seedbed.evaluation import evaluate
from seedbed.registry import ALGORITHMS, make
from seedbed.seeding import Purpose
from seedbed.training import CurvePlan, train

POLE = GymnasiumEnvironment("CartPole-v1", horizon=40)
PENDULUM = GymnasiumEnvironment("Pendulum-v1", horizon=20)
SMALL = {"net_arch": [16]}


def sb3(model, **fields):
    return make("sb3", {"model": model} | fields, ALGORITHMS, "algorithm")


class Seeded(gymnasium.Wrapper):
    """The episodes that Seedbed's lanes show to one seed, one after the other."""

    def __init__(self, env, seed):
        super().__init__(env)
        self._seed, self._episode = seed, -1

    def reset(self, *, seed=None, options=None):
        self._episode += 1
        return self.env.reset(seed=reset_seed(Purpose.TRAINING, self._seed, self._episode))


@pytest.mark.parametrize(
    "model, environment, arguments",
    [
        ("PPO", POLE, {"n_steps": 64, "batch_size": 32, "n_epochs": 2}),
        ("PPO", PENDULUM, {"n_steps": 64, "batch_size": 32, "n_epochs": 2}),
        ("DQN", POLE, {"learning_starts": 20, "batch_size": 8, "target_update_interval": 16}),
        ("TD3", PENDULUM, {"learning_starts": 100, "batch_size": 8, "action_noise": 0.1}),
    ],
    ids=["PPO", "PPO truncated", "DQN", "TD3"],
)
def test_the_library_alone_learns_the_same_bits(model, environment, arguments):
    """Same episodes and generators, the library's own loop: ends, truncations and resets are told alike."""
    algorithm = sb3(model, arguments=arguments | {"policy_kwargs": SMALL})
    ours = train(algorithm, environment, [3, 5], 128, CurvePlan(64, 1, 1)).policy
    noise = arguments.pop("action_noise", None)
    if noise:
        arguments["action_noise"] = stable_baselines3.common.noise.NormalActionNoise(
            np.zeros(1), noise * np.ones(1)
        )
    with GlobalGenerators(5) as generators:
        envs = DummyVecEnv([lambda: Seeded(environment.make(), 5)])
        theirs = getattr(stable_baselines3, model)(
            "MlpPolicy", envs, seed=generators.number, device="cpu", policy_kwargs=SMALL, **arguments
        )
        theirs.learn(128)
    expected = theirs.policy.state_dict()
    assert set(ours.models[1]) == set(expected)
    for name, tensor in expected.items():
        assert ours.models[1][name].tobytes() == tensor.numpy().tobytes(), name


@pytest.mark.parametrize(
    "model, environment, arguments",
    [
        ("A2C", POLE, {"n_steps": 8, "use_sde": False}),
        ("A2C", PENDULUM, {"n_steps": 8, "use_sde": True}),
        ("DDPG", PENDULUM, {"learning_starts": 50, "batch_size": 8}),
    ],
)
def test_bits_do_not_depend_on_the_block(model, environment, arguments, tmp_path):
    algorithm = sb3(model, lanes=2, arguments=arguments | {"policy_kwargs": SMALL})
    algorithm.check(environment, [0, 1], 128)
    before = np.random.get_state(legacy=False)["state"]["key"].tobytes()  # noqa: NPY002
    both = train(algorithm, environment, [0, 1], 128, CurvePlan(50, 2, 2))
    assert np.random.get_state(legacy=False)["state"]["key"].tobytes() == before  # noqa: NPY002
    alone = train(algorithm, environment, [1], 128, None)
    for name, array in alone.policy.models[0].items():
        assert array.tobytes() == both.policy.models[1][name].tobytes(), name
    assert sorted(both.curve.steps.unique()) == [0, 50, 100, 128]
    assert both.episodes.seed.nunique() == 2
    both.policy.save(tmp_path / "policy.safetensors")
    policy = ModelPolicy.load(tmp_path / "policy.safetensors", environment)
    for mode in policy.modes:
        tables = [
            evaluate(policy.in_mode(mode), environment, Purpose.TEST, 8, lanes=n, log_steps=True).steps
            for n in (1, 2, 3, 8)
        ]
        assert all(tables[0].equals(other) for other in tables[1:])


SAVED = {
    "PPO": ("CartPole-v1", {"n_steps": 32, "batch_size": 32}, {"net_arch": {"pi": [8], "vf": [16]}}),
    "A2C": ("MountainCarContinuous-v0", {}, {"activation_fn": "ReLU"}),
    "DQN": ("Acrobot-v1", {"learning_starts": 20}, {"net_arch": [24, 8]}),
    "SAC": ("MountainCarContinuous-v0", {"learning_starts": 20}, {"net_arch": [16]}),
    "TD3": ("Pendulum-v1", {"learning_starts": 20}, {"net_arch": [16], "n_critics": 3}),
    "DDPG": ("Pendulum-v1", {"learning_starts": 20}, {"net_arch": [16]}),
}


def saved(name, path, steps=64):
    """A model that the library trained and saved by itself."""
    import torch

    identifier, arguments, network = SAVED[name]
    if "activation_fn" in network:
        network = network | {"activation_fn": getattr(torch.nn, network["activation_fn"])}
    with GlobalGenerators(0):
        model = getattr(stable_baselines3, name)(
            "MlpPolicy", identifier, seed=0, device="cpu", policy_kwargs=network, **arguments
        )
        model.learn(steps)
    model.save(path)
    return model


def from_zip(path, name, **arguments):
    fields = {"path": str(path), "sb3": name, "policy_kwargs": SAVED[name][2]} | arguments
    return make("policy_file", fields, ALGORITHMS, "algorithm")


@pytest.mark.parametrize("name", SAVED)
def test_a_saved_model_acts_as_in_its_library(name, tmp_path):
    theirs = saved(name, tmp_path / "model.zip")
    environment = GymnasiumEnvironment(SAVED[name][0])
    algorithm = from_zip(tmp_path / "model.zip", name)
    algorithm.check(environment, [0], 0)
    train(algorithm, environment, [0], 0, None).policy.save(tmp_path / "policy.safetensors")
    (tmp_path / "model.zip").unlink()
    policy = ModelPolicy.load(tmp_path / "policy.safetensors", environment)
    shape = environment.spec.observation_shape
    seen = np.random.default_rng(1).normal(size=(1, 200, *shape)).astype(np.float32)
    action, _ = policy.act(seen, None, np.zeros((1, 200, 0)), None, np.ones((1, 200), bool))
    expected, _ = theirs.predict(seen[0], deterministic=True)
    if environment.spec.action_array is None:
        assert np.array_equal(action[0], expected)
    else:
        assert action[0] == pytest.approx(expected, abs=1e-5)
        assert action.std() > 0


def test_a_dict_of_observations_is_its_flat_vector(tmp_path):
    """MultiInputPolicy over a Dict is MlpPolicy over the vector that Seedbed makes of it."""
    environment = GymnasiumEnvironment(f"{__name__}:Parts")
    with GlobalGenerators(0):
        model = stable_baselines3.PPO("MultiInputPolicy", Parts(), n_steps=32, batch_size=32, device="cpu")
        model.learn(32)
    model.save(tmp_path / "model.zip")
    fields = {"path": str(tmp_path / "model.zip"), "sb3": "PPO"}
    policy = train(make("policy_file", fields, ALGORITHMS, "algorithm"), environment, [0], 0, None).policy
    env = Parts()
    for number in range(50):
        observation, _ = env.reset(seed=number)
        flat = gymnasium.spaces.flatten(env.observation_space, observation).astype(np.float32)
        ours, _ = policy.act(flat[None, None], None, np.zeros((1, 1, 0)), None, np.ones((1, 1), bool))
        assert ours[0, 0] == model.predict(observation, deterministic=True)[0]


class Parts(gymnasium.Env):
    """Observations in parts, one of them a choice."""

    observation_space = gymnasium.spaces.Dict(
        {"where": gymnasium.spaces.Box(-1, 1, (3,)), "which": gymnasium.spaces.Discrete(4)}
    )
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        where = self.np_random.uniform(-1, 1, 3).astype(np.float32)
        return {"where": where, "which": self.np_random.integers(4)}, {}

    def step(self, action):
        return *self.reset()[:1], float(action), True, False, {}


def test_weights_that_do_not_fit_are_named(tmp_path):
    saved("PPO", tmp_path / "model.zip", 32)
    algorithm = from_zip(tmp_path / "model.zip", "PPO", policy_kwargs={})
    with pytest.raises(
        PolicyError, match=r"seed 4: the weights do not fit a PPO network .*policy_kwargs \{\}.*net"
    ):
        algorithm.check(POLE, [4], 0)
    with pytest.raises(PolicyError, match=r"has the shape \[8, 4\], not \[8, 6\]"):
        from_zip(tmp_path / "model.zip", "PPO").check(GymnasiumEnvironment("Acrobot-v1"), [4], 0)
    with pytest.raises(
        PolicyError, match=r"do not fit a DQN network .*: q_net.q_net.0.weight is missing; .* and"
    ):
        from_zip(tmp_path / "model.zip", "DQN").check(POLE, [4], 0)


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"model": "PPPO"}, "'A2C', 'DDPG', 'DQN', 'PPO', 'SAC' or 'TD3'"),
        ({"model": "PPO", "policy": "CnnPolicy"}, "'MlpPolicy' or 'MultiInputPolicy'"),
        (
            {"model": "PPO", "arguments": {"n_step": 64}},
            "arguments: PPO takes no n_step from a study; it takes ba",
        ),
        ({"model": "PPO", "arguments": {"seed": 1}}, "PPO takes no seed from a study"),
        ({"model": "PPO", "arguments": {"policy_kwargs": {"arch": 1}}}, "policy_kwargs: PPO has no arch"),
    ],
)
def test_bad_fields(fields, message):
    with pytest.raises(SeedbedError, match=message):
        make("sb3", fields, ALGORITHMS, "algorithm")


@pytest.mark.parametrize(
    "model, environment, arguments, budget, message",
    [
        ("DQN", PENDULUM, {}, 100, "DQN chooses Discrete actions; these are Box"),
        ("SAC", POLE, {}, 100, r"SAC chooses Box actions; these are Discrete\(2\)"),
        (
            "PPO",
            POLE,
            {"n_steps": 64},
            100,
            r"100 steps is not a multiple of 64 steps \(n_steps\) of 1 lanes",
        ),
        ("DQN", POLE, {"train_freq": [1, "episode"]}, 100, "train_freq counts episodes"),
        ("DQN", POLE, {}, 101, r"101 steps is not a multiple of 4 steps \(train_freq\)"),
        ("PPO", POLE, {"n_steps": "many"}, 64, "PPO refuses its arguments"),
        (
            "PPO",
            MockInterview(preset="tiny"),
            {},
            2048,
            "forbids actions, and Stable-Baselines3's classes know no",
        ),
    ],
)
def test_what_cannot_be_trained_is_refused_before(model, environment, arguments, budget, message):
    algorithm = sb3(model, arguments=arguments)
    with pytest.raises(ValueError, match=message):
        algorithm.check(environment, [0], budget)


def test_an_error_in_the_library_ends_all_seeds():
    """It notices this argument in its first update only."""
    algorithm = sb3("PPO", arguments={"n_steps": 64, "gamma": "high"})
    before = threading.active_count()
    with pytest.raises(Exception, match=r"can't multiply|ufunc"):
        train(algorithm, POLE, [0, 1, 2], 128, None)
    assert threading.active_count() == before


def test_images_are_refused():
    class Picture(Parts):
        observation_space = gymnasium.spaces.Box(0, 255, (8, 8, 3), np.uint8)

        def reset(self, *, seed=None, options=None):
            return np.zeros((8, 8, 3), np.uint8), {}

    with pytest.raises(ValueError, match="Observations are images"):
        sb3("PPO").check(GymnasiumEnvironment(Picture), [0], 2048)
