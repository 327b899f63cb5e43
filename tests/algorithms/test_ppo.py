"""PPO: its update against an ordinary one, masks, budgets, exact seeds, files, learning."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from learners import Quiet, ordinary
from pydantic import ValidationError
from scipy import stats

from seedbed.algorithms.categorical_policy import CategoricalPolicy
from seedbed.algorithms.interview_rules import HEURISTICS, FixedHeuristicPolicy
from seedbed.algorithms.networks import Learner, StackedMLP
from seedbed.algorithms.ppo import PPO, Rollout, generalized_advantages
from seedbed.algorithms.uniform_random import UniformRandomPolicy
from seedbed.artifacts import ArtifactError
from seedbed.environments.cart_pole import CartPole
from seedbed.environments.interview import MockInterview
from seedbed.environments.lanes import DynamicsLanes
from seedbed.evaluation import evaluate
from seedbed.seeding import Purpose, stream
from seedbed.training import CurvePlan, train


def advantage_by_definition(reward, value, next_value, terminated, ended, gamma, lam, t):
    """Eq. 16 of Schulman et al. 2016 for one lane: a discounted sum of errors until the episode ends."""
    total = 0.0
    for k in range(t, len(reward)):
        error = reward[k] + gamma * (0.0 if terminated[k] else next_value[k]) - value[k]
        total += (gamma * lam) ** (k - t) * error
        if ended[k]:
            break
    return total


@given(st.integers(0, 2**32 - 1))
def test_advantages_are_those_of_the_definition(seed):
    generator = np.random.default_rng(seed)
    reward, value, next_value = generator.normal(size=(3, 2, 7, 3))
    terminated, truncated = generator.random((2, 2, 7, 3)) < 0.2
    arrays = reward, value, next_value, terminated, terminated | truncated
    advantage = generalized_advantages(*arrays, 0.9, 0.8)
    for s, t, lane in np.ndindex(2, 7, 3):
        rows = [array[s, :, lane] for array in arrays]
        assert advantage[s, t, lane] == pytest.approx(advantage_by_definition(*rows, 0.9, 0.8, t))


def test_a_truncated_episode_bootstraps_and_a_terminated_one_does_not():
    reward, value, next_value = np.ones((1, 2, 2)), np.full((1, 2, 2), 3.0), np.full((1, 2, 2), 10.0)
    terminated, ended = np.zeros((1, 2, 2), bool), np.zeros((1, 2, 2), bool)
    terminated[0, 0, 0] = ended[0, 0, :] = True
    advantage = generalized_advantages(reward, value, next_value, terminated, ended, 0.5, 1.0)
    np.testing.assert_array_equal(advantage[0, 0], [1 - 3, 1 + 5 - 3])


def random_rollout(generator, seeds, length, lanes, inputs, actions):
    shape = (seeds, length, lanes)
    mask = generator.random((*shape, actions)) < 0.6
    mask[..., 1] = True
    scores = np.where(mask, generator.random((*shape, actions)), -1)
    terminated, truncated = generator.random((2, *shape)) < 0.1
    return Rollout(
        observation=generator.random((*shape, inputs), np.float32),
        mask=mask,
        action=scores.argmax(-1),
        log_probability=np.log(generator.uniform(0.1, 0.5, shape)).astype(np.float32),
        reward=generator.normal(size=shape),
        next_observation=generator.random((*shape, inputs), np.float32),
        terminated=terminated,
        ended=terminated | truncated,
    )


@pytest.mark.parametrize("value_clip", [None, 0.1])
def test_the_update_is_an_ordinary_ppo_update(value_clip):
    seeds, algorithm = [4, 9], PPO(epochs=2, minibatches=3, value_clip=value_clip, max_gradient_norm=0.3)
    networks = {"policy": StackedMLP((5, 16, 6), "tanh", 0.5), "value": StackedMLP((5, 16, 1), "tanh")}
    learner = Learner(networks, seeds, 0.01, 1e-5, algorithm.max_gradient_norm)
    rollout = random_rollout(np.random.default_rng(1), 2, 9, 4, 5, 6)
    peers = [[ordinary(learner.layers[name], row, torch.nn.Tanh) for name in networks] for row in range(2)]
    algorithm._update(rollout, learner, [stream(Purpose.MINIBATCHES, seed) for seed in seeds])

    for row, (seed, (policy, value)) in enumerate(zip(seeds, peers, strict=True)):
        parameters = [*policy.parameters(), *value.parameters()]
        optimiser = torch.optim.Adam(parameters, 0.01, eps=1e-5)
        data = [torch.from_numpy(np.ascontiguousarray(array[row])) for array in rollout]
        observation, mask, action, old, reward, following, terminated, ended = data
        with torch.no_grad():
            values, next_values = value(observation).squeeze(-1), value(following).squeeze(-1)
        advantage = torch.zeros(9, 4, dtype=torch.float64)
        for t, lane in np.ndindex(9, 4):
            columns = (array[:, lane] for array in (reward, values, next_values, terminated, ended))
            advantage[t, lane] = advantage_by_definition(*columns, 0.99, 0.95, t)
        target = (advantage + values).float().flatten()
        advantage, values, old, action = (x.flatten() for x in (advantage.float(), values, old, action))
        observation, mask = observation.flatten(0, 1), mask.flatten(0, 1)
        order = stream(Purpose.MINIBATCHES, seed)
        for _ in range(2):
            for rows in np.array_split(order.permutation(36), 3):
                logits = policy(observation[rows]).masked_fill(~mask[rows], -1e9)
                chosen = torch.distributions.Categorical(logits=logits)
                ratio = (chosen.log_prob(action[rows]) - old[rows]).exp()
                a = advantage[rows]
                a = (a - a.mean()) / (a.std(correction=0) + 1e-8)
                loss = -torch.min(ratio * a, ratio.clamp(0.8, 1.2) * a).mean()
                v = value(observation[rows]).squeeze(-1)
                errors = (v - target[rows]) ** 2
                if value_clip is not None:
                    near = values[rows] + (v - values[rows]).clamp(-value_clip, value_clip)
                    errors = torch.max(errors, (near - target[rows]) ** 2)
                loss = loss + 0.5 * 0.5 * errors.mean() - 0.01 * chosen.entropy().mean()
                optimiser.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(parameters, 0.3)
                optimiser.step()
        for name, peer in (("policy", policy), ("value", value)):
            linears = [module for module in peer if isinstance(module, torch.nn.Linear)]
            for (weight, bias), linear in zip(learner.layers[name], linears, strict=True):
                torch.testing.assert_close(weight[row], linear.weight.T, atol=1e-4, rtol=0)
                torch.testing.assert_close(bias[row, 0], linear.bias, atol=1e-4, rtol=0)


class MaskWitness(DynamicsLanes):
    """Lanes that count steps with actions the mask forbids."""

    forbidden = 0

    def step(self, action):
        self.forbidden += int((~np.take_along_axis(self.mask, action[..., None], -1)).sum())
        return super().step(action)


def test_forbidden_actions_are_never_taken():
    lanes = MaskWitness(MockInterview("tiny"), Purpose.TUNING, [1001, 1002], 8)
    policy = PPO(rollout=50).train(lanes, lanes.seeds, 2000, Quiet())
    assert lanes.forbidden == 0
    assert not lanes.mask.all()
    for mode in policy.modes:
        acting = policy.in_mode(mode)
        lanes = MaskWitness(MockInterview("tiny"), Purpose.TUNING, [1001, 1002], 8)
        generator = np.random.default_rng(0)
        for _ in range(100):
            uniforms = generator.random((2, 8, acting.uniforms))
            probabilities = acting.probabilities(lanes.observation, lanes.mask, None, lanes.first)
            assert (probabilities[~lanes.mask] == 0).all()
            np.testing.assert_allclose(probabilities.sum(-1), 1, atol=1e-12)
            action, _ = acting.act(lanes.observation, lanes.mask, uniforms, None, lanes.first)
            assert np.take_along_axis(probabilities, action[..., None], -1).all()
            lanes.step(action)
        assert lanes.forbidden == 0


def test_the_budget_is_hit_exactly_and_the_policy_is_seen_at_its_points():
    recorder = Quiet(0, 400, 1000)
    algorithm = PPO(lanes=4, rollout=100, hidden=(16,))
    lanes = DynamicsLanes(CartPole(), Purpose.TUNING, [1001, 1002], 4)
    policy = algorithm.train(lanes, lanes.seeds, 1000, recorder)
    assert recorder.steps == 1000
    assert [steps for steps, _ in recorder.logged] == [400, 800, 1000]
    assert [steps for steps, _ in recorder.evaluated] == [0, 400, 1000]
    assert torch.equal(recorder.evaluated[-1][1].parameters, policy.parameters)
    assert not torch.equal(recorder.evaluated[0][1].parameters, recorder.evaluated[1][1].parameters)
    for _, scalars in recorder.logged:
        assert set(scalars) == {"approx_kl", "clip_fraction", "entropy", "explained_variance"}
        assert all(np.shape(values) == (2,) and np.isfinite(values).all() for values in scalars.values())
    with pytest.raises(ValueError, match="Choose 1000 steps"):
        algorithm.train(lanes, lanes.seeds, 1002, recorder)


@pytest.mark.parametrize(
    "changes",
    [{"lanes": 1, "rollout": 1}, {"lanes": 3, "rollout": 7, "minibatches": 5}, {"hidden": (), "epochs": 1}],
)
def test_odd_sizes_work(changes):
    algorithm = PPO(**changes)
    policy = train(algorithm, CartPole(), [1001, 1002], 10 * algorithm.lanes, None).policy
    assert torch.isfinite(policy.parameters).all()


@pytest.mark.parametrize(
    "wrong", [{"lanes": 0}, {"gamma": 1.1}, {"hidden": (0,)}, {"activation": "sine"}, {"clip": 0.2}]
)
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(ValidationError):
        PPO(**wrong)


def dynamics_of(name):
    return CartPole() if name == "CartPole" else MockInterview(name)


def what_remains(name, block, budget, changes):
    """Per seed: final parameters, curve and diagnostics."""
    plan = CurvePlan(every=budget // 2, episodes=4, lanes=4)
    run = train(PPO(**changes), dynamics_of(name), block, budget, plan)
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
        ("CartPole", 600, {"hidden": (64, 64), "rollout": 15}),
        ("tiny", 600, {"rollout": 15}),
        ("as_specified", 200, {"rollout": 5}),
        pytest.param("CartPole", 5000, {"hidden": (64, 64)}, marks=pytest.mark.slow),
        pytest.param("CartPole", 5000, {"lanes": 1, "rollout": 250}, marks=pytest.mark.slow),
        pytest.param("tiny", 6000, {"lanes": 6, "activation": "relu"}, marks=pytest.mark.slow),
        pytest.param("as_specified", 5000, {}, marks=pytest.mark.slow),
        pytest.param("default", 5000, {"activation": "silu"}, marks=pytest.mark.slow),
    ],
)
def test_a_seed_does_not_depend_on_its_block(name, budget, changes):
    twenty = [[*range(1020, 1039), 1007]] if budget >= 5000 else []
    expected = what_remains(name, BLOCKS[0], budget, changes)[1007]
    for block in BLOCKS[1:] + twenty:
        for whole, alone in zip(what_remains(name, block, budget, changes)[1007], expected, strict=True):
            np.testing.assert_array_equal(whole, alone, err_msg=f"block {block}")


def test_looking_changes_nothing():
    algorithm, seeds = PPO(rollout=25, hidden=(16,)), [1001, 1002]
    curve = CurvePlan(every=200, episodes=3, lanes=2)
    seen = train(algorithm, CartPole(), seeds, 1000, curve).policy
    assert torch.equal(seen.parameters, train(algorithm, CartPole(), seeds, 1000, None).policy.parameters)


@pytest.fixture
def policy():
    """A policy of three seeds that is far from uniform."""
    network = StackedMLP((MockInterview("tiny").spec.observation_shape[0], 32, 36), "tanh", 3.0)
    learner = Learner({"policy": network}, [1001, 1002, 1003], 1e-3)
    return CategoricalPolicy([1001, 1002, 1003], network.sizes, "tanh", learner.parameters)


def questions(seeds, lanes):
    dynamics = DynamicsLanes(MockInterview("tiny"), Purpose.TUNING, list(range(seeds)), lanes)
    return dynamics.observation, dynamics.mask, dynamics.first


def test_acting_depends_on_neither_lanes_nor_seeds(policy):
    observation, mask, first = questions(3, 50)
    for mode in policy.modes:
        acting = policy.in_mode(mode)
        uniforms = np.random.default_rng(0).random((3, 50, acting.uniforms))
        everything, _ = acting.act(observation, mask, uniforms, None, first)
        chances = acting.probabilities(observation, mask, None, first)
        for rows, lanes in ((slice(0, 3), 1), (slice(1, 2), 1), (slice(1, 2), 7), (slice(2, 3), 50)):
            part = acting.of(policy.seeds[rows])
            given_ = observation[rows, :lanes], mask[rows, :lanes]
            action, _ = part.act(*given_, uniforms[rows, :lanes], None, first[rows, :lanes])
            np.testing.assert_array_equal(action, everything[rows, :lanes])
            np.testing.assert_array_equal(
                part.probabilities(*given_, None, first[rows, :lanes]), chances[rows, :lanes]
            )


def test_drawn_actions_have_their_probabilities(policy):
    sampled = policy.in_mode("sampled")
    observation, mask, first = (np.repeat(array[:, :1], 2000, 1) for array in questions(3, 1))
    uniforms = np.tile((np.arange(2000) + 0.5) / 2000, (3, 1))[..., None]
    action, _ = sampled.act(observation, mask, uniforms, None, first)
    chances = sampled.probabilities(observation, mask, None, first)[:, 0]
    for row in range(3):
        frequencies = np.bincount(action[row], minlength=36) / 2000
        np.testing.assert_allclose(frequencies, chances[row], atol=2 / 2000)
    greedy, _ = policy.act(observation, mask, uniforms[..., :0], None, first)
    np.testing.assert_array_equal(greedy[:, 0], chances.argmax(-1))


def test_a_policy_survives_its_file_and_blocks_come_apart_and_together(policy, tmp_path):
    path, dynamics = tmp_path / "policy.safetensors", MockInterview("tiny")
    policy.save(path)
    loaded = CategoricalPolicy.load(path, dynamics)
    assert (loaded.seeds, loaded.activation, loaded.sizes) == (policy.seeds, "tanh", policy.sizes)
    assert torch.equal(loaded.parameters, policy.parameters)
    parts = [loaded.of([1003]), loaded.of([1001, 1002])]
    joined = CategoricalPolicy.concatenate(parts)
    assert joined.seeds == [1003, 1001, 1002]
    joined.of(policy.seeds).save(tmp_path / "again.safetensors")
    assert path.read_bytes() == (tmp_path / "again.safetensors").read_bytes()
    with pytest.raises(ValueError, match="no parts"):
        CategoricalPolicy.concatenate([loaded, parts[0]])
    with pytest.raises(ValueError, match="not \\[5\\]"):
        loaded.of([5])
    with pytest.raises(ValueError, match="not 'curious'"):
        loaded.in_mode("curious")
    with pytest.raises(ArtifactError, match="this environment has"):
        CategoricalPolicy.load(path, MockInterview("default"))
    UniformRandomPolicy([1], dynamics).save(tmp_path / "random.safetensors")
    with pytest.raises(ArtifactError, match="UniformRandomPolicy"):
        CategoricalPolicy.load(tmp_path / "random.safetensors", dynamics)


def mean_return(policy, episodes):
    table = evaluate(policy, MockInterview("tiny"), Purpose.TUNING, episodes, lanes=episodes).episodes
    return table.groupby("seed")["return"].mean().to_numpy()


def test_it_learns_the_small_interview():
    dynamics, seeds = MockInterview("tiny"), [1001, 1002, 1003, 1004, 1005]
    random = mean_return(UniformRandomPolicy([1000], dynamics), 500).item()
    kinds = [kind for kind, rule in HEURISTICS.items() if not {"most_effective", "likeliest"} & set(rule)]
    options = {"relief_frustration": 0.4}
    rules = [FixedHeuristicPolicy([1000], dynamics, {"kind": kind, **options}) for kind in kinds]
    best = max(mean_return(rule, 500).item() for rule in rules)
    policy = train(PPO(), dynamics, seeds, 8000, None).policy.in_mode("sampled")
    returns = mean_return(policy, 100)
    lower = returns.mean() - stats.t.ppf(0.975, 4) * stats.sem(returns)
    assert lower > random + 0.2 * (best - random)
