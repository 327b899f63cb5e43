import json
import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from seedbed.off_policy.diagnostics import effective_sample_size, overlap, verdict
from seedbed.off_policy.doubly_robust import (
    direct_method,
    doubly_robust,
    least_on_simplex,
    magic,
    partial_returns,
    weighted_doubly_robust,
)
from seedbed.off_policy.estimates import ESTIMATORS, MODELLING, WEIGHING, estimate_all
from seedbed.off_policy.fitted_q import Features, additive_features, fitted_q_evaluation
from seedbed.off_policy.importance import (
    importance_sampling,
    per_decision,
    weighted_importance_sampling,
    weighted_per_decision,
)
from seedbed.off_policy.intervals import resample_counts
from seedbed.off_policy.trajectories import ActionValues, Trajectories

REFERENCE = Path(__file__).parents[1] / "reference/statistics/off_policy_evaluation.json"
CASES = {case["name"]: case for case in json.loads(REFERENCE.read_text())["cases"]}
FULL = ["tabular_h3", "far_policy_low_ess"]


class Chain:
    """A tabular decision process, solved exactly by dynamic programming."""

    def __init__(self, inputs):
        self.transition = np.array(inputs["transition_s_a_s2"])
        self.reward = np.array(inputs["reward_s_a"])
        self.start = np.array(inputs["initial"])
        self.horizon, self.discount = inputs["horizon"], inputs["gamma"]

    def action_values(self, policy):
        """Q_t(s, a), [T, S, A], by backward induction."""
        values = np.zeros((self.horizon + 1, *self.reward.shape))
        for t in reversed(range(self.horizon)):
            after = (policy * values[t + 1]).sum(-1)
            values[t] = self.reward + self.discount * self.transition @ after
        return values[:-1]

    def value(self, policy):
        return float(self.start @ (policy * self.action_values(policy)[0]).sum(-1))

    def simulate(self, policy, episodes, generator):
        """States [N, T + 1], actions [N, T], rewards [N, T] under a policy."""

        def draw(probabilities):
            return (generator.random(episodes)[:, None] >= probabilities.cumsum(-1)[:, :-1]).sum(-1)

        states = [draw(np.tile(self.start, (episodes, 1)))]
        actions = []
        for _ in range(self.horizon):
            actions.append(draw(policy[states[-1]]))
            states.append(draw(self.transition[states[-1], actions[-1]]))
        states, actions = np.stack(states, 1), np.stack(actions, 1)
        return states, actions, self.reward[states[:, :-1], actions]


def logged(states, actions, rewards, length, behaviour, target, discount):
    before = states[:, :-1]
    return Trajectories(rewards, behaviour[before, actions], target[before, actions], length, discount)


def one_hot(states, actions, target):
    """Tabular features: one per state and action."""
    count, choices = target.shape
    taken = np.eye(count * choices)[states[:, :-1] * choices + actions]
    expected = np.eye(count)[states][..., None] * target[states][..., None, :]
    return Features(taken, expected.reshape(*states.shape, -1))


def from_case(case):
    """Log, states and actions of a reference case; padding after the end holds what must not matter."""
    inputs = case["inputs"]
    rows = inputs["trajectories_s_a_r_s2"]
    length = np.array([len(row) for row in rows])
    shape = len(rows), length.max()
    states, actions = np.zeros((shape[0], shape[1] + 1), int), np.zeros(shape, int)
    rewards = np.full(shape, 77.0)
    for i, row in enumerate(rows):
        for t, (s, a, r, s2) in enumerate(row):
            states[i, t], actions[i, t], rewards[i, t], states[i, t + 1] = s, a, r, s2
    behaviour, target = np.array(inputs["behaviour"]), np.array(inputs["target"])
    log = logged(states, actions, rewards, length, behaviour, target, inputs["gamma"])
    return log, states, actions, target


def true_values(chain, target, states, actions):
    q = chain.action_values(target)
    t = np.arange(chain.horizon)
    state = (target * q).sum(-1)[t, states[:, :-1]]
    return ActionValues(q[t, states[:, :-1], actions], state)


def standard_error(values):
    return values.std(ddof=1) / math.sqrt(len(values))


def leave_each(log):
    return np.eye(len(log.reward))  # counts of one episode at a time: the estimator's value of each episode


@pytest.mark.parametrize("name", FULL)
def test_every_number_of_a_reference_case(name):
    case = CASES[name]
    expected = dict(case["expected"])
    log, states, actions, target = from_case(case)
    chain = Chain(case["inputs"])
    fitted = fitted_q_evaluation(log, one_hot(states, actions, target))
    true = true_values(chain, target, states, actions)
    seen = overlap(log)
    found = {
        "true_value": chain.value(target),
        "true_behaviour_value": chain.value(np.array(case["inputs"]["behaviour"])),
        "IS": importance_sampling(log),
        "WIS": weighted_importance_sampling(log),
        "PDIS": per_decision(log),
        "WPDIS": weighted_per_decision(log),
        "FQE_tabular": direct_method(log, fitted),
        "DM_with_fqe_q": direct_method(log, fitted),
        "DR_with_fqe_q": doubly_robust(log, fitted),
        "WDR_with_fqe_q": weighted_doubly_robust(log, fitted),
        "DR_with_true_q": doubly_robust(log, true),
        "WDR_with_true_q": weighted_doubly_robust(log, true),
        "effective_sample_size_trajectories": seen.effective,
        "max_weight": seen.largest_weight,
        "max_weight_share": seen.largest_share,
        "mean_weight": seen.mean_weight,
        "standard_error_IS": standard_error(importance_sampling(log, leave_each(log))),
        "standard_error_PDIS": standard_error(per_decision(log, leave_each(log))),
        "standard_error_DR_fqe": standard_error(doubly_robust(log, fitted, leave_each(log))),
        "behaviour_mean_return": log.returns.mean(),
    }
    wrong = expected.pop("wrong_ess_over_all_steps")
    assert set(found) == set(expected)
    for key, value in expected.items():
        assert found[key] == pytest.approx(value, rel=case["rel_tol"], abs=1e-9), key
    assert float(effective_sample_size(log.weight.ravel())) == pytest.approx(wrong, rel=1e-6)
    assert seen.effective_by_step[-1] == pytest.approx(seen.effective)
    assert seen.effective < wrong


def test_variable_lengths_by_hand():
    case = CASES["variable_length_by_hand"]
    log, *_ = from_case(case)
    seen = overlap(log)
    found = {
        "IS": importance_sampling(log),
        "WIS": weighted_importance_sampling(log),
        "PDIS": per_decision(log),
        "WPDIS": weighted_per_decision(log),
        "effective_sample_size_trajectories": seen.effective,
        "max_weight": seen.largest_weight,
        "behaviour_mean_return": log.returns.mean(),
    }
    assert set(found) == set(case["expected"])
    for key, value in case["expected"].items():
        assert found[key] == pytest.approx(value, rel=case["rel_tol"], abs=1e-9), key


def test_refusal_is_in_words():
    near, far = (overlap(from_case(CASES[name])[0]) for name in FULL)
    assert verdict(near).accepted
    assert "at least 21.6 effective episodes of 40" in verdict(near).reason
    refused = verdict(far)
    assert not refused.accepted
    assert "only 1.3 effective episodes of 50 at step 8, at least 10 are needed" in refused.reason
    assert "nothing checks it" in verdict(far, weighted=False).reason
    assert not verdict(near, least_effective=30).accepted


@pytest.fixture(scope="module")
def small():
    """Many small data sets of the first reference process, and the exact value."""
    inputs = CASES["tabular_h3"]["inputs"]
    chain, target, behaviour = Chain(inputs), np.array(inputs["target"]), np.array(inputs["behaviour"])
    generator = np.random.default_rng(5)
    states, actions, rewards = chain.simulate(behaviour, 40_000, generator)
    length = np.full(len(states), chain.horizon)
    log = logged(states, actions, rewards, length, behaviour, target, chain.discount)
    return chain, target, log, states, actions


def test_unbiased_estimators_meet_dynamic_programming(small):
    """The mean over 40,000 episodes is within 4 standard errors of the exact value."""
    chain, target, log, states, actions = small
    true = true_values(chain, target, states, actions)
    wrong = ActionValues(0.5 * true.taken + 1, 0.5 * true.state + 1)  # any model: DR stays unbiased
    truth = chain.value(target)
    each = {
        "IS": log.weight[:, -1] * log.returns,
        "PDIS": (log.weight * log.discounted_reward).sum(1),
    }
    for name, model in {"DR": true, "DR, wrong model": wrong}.items():
        after = np.pad(model.state[:, 1:], ((0, 0), (0, 1)))
        td = log.reward + log.discount * after - model.taken
        each[name] = model.state[:, 0] + (log.discounts * log.weight * td).sum(1)
        assert each[name].mean() == pytest.approx(doubly_robust(log, model), rel=1e-12)
    assert each["IS"].mean() == pytest.approx(importance_sampling(log), rel=1e-12)
    assert each["PDIS"].mean() == pytest.approx(per_decision(log), rel=1e-12)
    for name, values in each.items():
        assert abs(values.mean() - truth) < 4 * standard_error(values), name


def test_consistent_estimators_meet_dynamic_programming(small):
    """On 40,000 episodes, within 4 standard errors over 20 parts (the parts' bias is far smaller)."""
    chain, target, log, states, actions = small
    truth = chain.value(target)
    features = one_hot(states, actions, target)
    found = {name: [] for name in ESTIMATORS}
    for part in np.split(np.arange(len(states)), 20):
        rows = Trajectories(
            log.reward[part], log.behaviour[part], log.target[part], log.length[part], log.discount
        )
        own = Features(features.taken[part], features.expected[part])
        values = fitted_q_evaluation(rows, own)
        for name, rule in WEIGHING.items():
            found[name].append(rule(rows))
        for name, rule in MODELLING.items():
            found[name].append(rule(rows, values))
        counts = resample_counts(len(part), 20, np.random.default_rng(1))
        found["MAGIC"].append(magic(rows, values, weighted_doubly_robust(rows, values, counts)).estimate)
    for name, values in found.items():
        values = np.array(values)
        assert abs(values.mean() - truth) < 4 * standard_error(values), name
    assert np.std(found["WDR"]) < np.std(found["WPDIS"]) < np.std(found["IS"])


def test_own_policy_gives_the_mean_return(small):
    """Evaluating the behaviour policy itself, every weight is 1 and every importance estimate the mean."""
    *_, log, _, _ = small
    same = Trajectories(log.reward, log.behaviour, log.behaviour, log.length, log.discount)
    for name, rule in WEIGHING.items():
        assert rule(same) == pytest.approx(log.returns.mean(), rel=1e-12), name
    assert overlap(same).effective == len(log.reward)


def test_what_was_never_seen_is_worth_nothing_and_bad_features_are_refused():
    log, states, actions, target = from_case(CASES["tabular_h3"])
    features = one_hot(states, actions, target)
    wider = Features(
        *(np.pad(part, ((0, 0), (0, 0), (0, 2))) for part in (features.taken, features.expected))
    )
    assert fitted_q_evaluation(log, wider).taken == pytest.approx(fitted_q_evaluation(log, features).taken)
    shrunk = fitted_q_evaluation(log, features, ridge=1e9)
    assert np.abs(shrunk.state).max() < 1e-6
    with pytest.raises(ValueError, match="ridge must not be negative"):
        fitted_q_evaluation(log, features, ridge=-1)
    with pytest.raises(ValueError, match="features have shapes"):
        fitted_q_evaluation(log, Features(features.taken, features.expected[:, :-1]))


def test_counts_are_resamples():
    """Counting an episode twice equals having it twice, for every estimator and the regression."""
    log, states, actions, target = from_case(CASES["tabular_h3"])
    index = np.random.default_rng(2).integers(0, len(log.reward), len(log.reward))
    counts = np.bincount(index, minlength=len(log.reward))
    features = one_hot(states, actions, target)
    values = fitted_q_evaluation(log, features, np.stack([counts, counts]))
    repeated = Trajectories(
        log.reward[index], log.behaviour[index], log.target[index], log.length[index], log.discount
    )
    own = fitted_q_evaluation(repeated, Features(features.taken[index], features.expected[index]))
    for name, rule in WEIGHING.items():
        assert rule(log, counts) == pytest.approx(rule(repeated), rel=1e-12), name
    for name, rule in MODELLING.items():
        twice = rule(log, values, np.stack([counts, counts]))
        assert twice == pytest.approx(np.full(2, rule(repeated, own)), rel=1e-9), name


def test_padding_and_order_do_not_matter():
    log, states, actions, target = from_case(CASES["variable_length_by_hand"])
    features = one_hot(states, actions, target)
    stop = np.arange(states.shape[1]) >= log.length[:, None]
    features = Features(features.taken, np.where(stop[..., None], 0.0, features.expected))
    order = np.array([2, 0, 3, 1])
    other = Trajectories(
        np.where(log.alive, log.reward, -5.0)[order],
        np.where(log.alive, log.behaviour, 0.0)[order],
        np.where(log.alive, log.target, math.nan)[order],
        log.length[order],
        log.discount,
    )
    shuffled = Features(features.taken[order], features.expected[order])
    one = [fitted_q_evaluation(log, features), fitted_q_evaluation(other, shuffled)]
    assert one[0].state[order] == pytest.approx(one[1].state)
    assert (one[0].state[~log.alive] == 0).all()
    for rule in WEIGHING.values():
        assert rule(log) == pytest.approx(rule(other), rel=1e-12)
    for rule in MODELLING.values():
        assert rule(log, one[0]) == pytest.approx(rule(other, one[1]), rel=1e-9)


def test_partial_returns_lead_from_the_model_to_wdr():
    log, states, actions, target = from_case(CASES["tabular_h3"])
    values = fitted_q_evaluation(log, one_hot(states, actions, target))
    returns = partial_returns(log, values)
    assert returns.shape == (log.reward.shape[1] + 1,)
    assert returns[0] == pytest.approx(direct_method(log, values))
    weight = log.weight / log.weight.sum(0)
    after = log.reward[:, 0] + log.discount * values.state[:, 1] - values.taken[:, 0]
    assert returns[1] == pytest.approx(values.state[:, 0].mean() + weight[:, 0] @ after)
    assert returns[-1] == pytest.approx(CASES["tabular_h3"]["expected"]["WDR_with_fqe_q"], rel=1e-6)


def test_magic_follows_a_perfect_model_and_leaves_a_wrong_one():
    inputs = CASES["tabular_h3"]["inputs"]
    log, states, actions, target = from_case(CASES["tabular_h3"])
    counts = resample_counts(len(log.reward), 2_000, np.random.default_rng(0))
    true = true_values(Chain(inputs), target, states, actions)
    wrong = ActionValues(true.taken + 50, true.state + 50)
    good = magic(log, true, weighted_doubly_robust(log, true, counts))
    bad = magic(log, wrong, weighted_doubly_robust(log, wrong, counts))
    assert good.share.sum() == pytest.approx(1)
    assert (good.share >= 0).all()
    assert good.share[:2].sum() > 0.99
    assert bad.share[-1] > 0.9
    assert abs(bad.estimate - weighted_doubly_robust(log, wrong)) < 1


@pytest.mark.parametrize("seed", range(5))
def test_least_on_simplex_beats_a_grid(seed):
    root = np.random.default_rng(seed).normal(size=(3, 3))
    matrix = root @ root.T
    best = least_on_simplex(matrix)
    grid = np.array([(i, j, 60 - i - j) for i, j in product(range(61), repeat=2) if i + j <= 60]) / 60
    assert best.sum() == pytest.approx(1)
    assert (best >= 0).all()
    assert best @ matrix @ best <= np.einsum("ni,ij,nj->n", grid, matrix, grid).min() + 1e-12


def test_additive_features_hold_state_and_action():
    observation = np.arange(6.0).reshape(1, 3, 2)
    target = np.array([[[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]]])
    ended = np.array([[False, False, True]])
    found = additive_features(observation, np.array([[1, 0]]), target, ended)
    assert found.taken.tolist() == [[[1, 0, 1, 0, 1], [1, 2, 3, 1, 0]]]
    assert found.expected.tolist() == [[[1, 0, 1, 0.5, 0.5], [1, 2, 3, 1, 0], [0] * 5]]


def test_intervals_cover_the_exact_value(small):
    """50 data sets of 400 episodes: a 95 % interval covers in at least 41 (expected 47.5, SD 1.5)."""
    chain, target, log, states, actions = small
    truth, hits = chain.value(target), dict.fromkeys(ESTIMATORS, 0)
    features = one_hot(states, actions, target)
    for number, part in enumerate(np.split(np.arange(len(states) // 2), 50)):
        rows = Trajectories(
            log.reward[part], log.behaviour[part], log.target[part], log.length[part], log.discount
        )
        own = Features(features.taken[part], features.expected[part])
        generator = np.random.default_rng(number)
        for name, found in estimate_all(rows, own, ridge=1e-6, draws=200, generator=generator):
            hits[name] += found.low <= truth <= found.high
    assert all(41 <= count <= 50 for count in hits.values()), hits
