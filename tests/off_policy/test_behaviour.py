import numpy as np
import pytest

from seedbed.algorithms.epsilon_soft import EpsilonSoftPolicy, epsilon_soft
from seedbed.artifacts import ArtifactError, SeedbedError, read_table, write_table
from seedbed.environments.interview import MockInterview
from seedbed.evaluation import evaluate
from seedbed.off_policy.behaviour import log_behaviour, target_distribution
from seedbed.off_policy.importance import per_decision
from seedbed.off_policy.log_table import (
    BEHAVIOUR_COLUMNS,
    EVENT_COLUMNS,
    behaviour_table,
    event_table,
    log_from_table,
)
from seedbed.off_policy.study_tables import off_policy_tables, seen_from
from seedbed.seeding import Purpose
from seedbed.study import OffPolicyPlan, StatisticsSettings

ARRAYS = ("observation", "mask", "action", "reward", "distribution", "length", "terminated")


def rule(dynamics, epsilon, seeds=(0,)):
    return epsilon_soft("rule_based", {}, epsilon, dynamics, list(seeds))


@pytest.fixture(scope="module")
def short():
    return MockInterview("tiny", horizon=10)


@pytest.fixture(scope="module")
def ending():
    """Long enough, and easy enough to master or to quit, that episodes end early."""
    return MockInterview("tiny", horizon=25, critical_frustration=30)


def test_soft_probabilities_are_those_of_the_actions(ending):
    """200,000 decisions at one observation: each action's share is within 5 standard errors."""
    policy = rule(ending, 0.4)
    observation = np.zeros((1, 200_000, *ending.spec.observation_shape), np.float32)
    mask = np.ones((1, 200_000, ending.spec.actions), bool)
    mask[..., 20:] = False
    first = np.ones((1, 200_000), bool)
    uniforms = np.random.default_rng(0).random((1, 200_000, policy.uniforms))
    action, _ = policy.act(observation, mask, uniforms, None, first)
    p = policy.probabilities(observation[:, :1], mask[:, :1], None, first[:, :1])[0, 0]
    share = np.bincount(action[0], minlength=ending.spec.actions) / 200_000
    assert p.sum() == pytest.approx(1)
    assert p.max() == pytest.approx(0.6 + 0.4 / 20)
    assert (p[20:] == 0).all()
    assert (np.abs(share - p) <= 5 * np.sqrt(p * (1 - p) / 200_000)).all()


def test_the_log_is_what_evaluation_sees(ending):
    """Same streams, same episodes: rewards and lengths equal those of the evaluation's step table."""
    policy = rule(ending, 0.3, seeds=(3, 4))
    logs = log_behaviour(policy, ending, 30)
    steps = evaluate(policy, ending, Purpose.BEHAVIOUR, 30, lanes=7, log_steps=True).steps
    for seed, log in zip((3, 4), logs, strict=True):
        table = behaviour_table(log, seed)
        expected = steps[steps.seed == seed].reset_index(drop=True)
        for name in ("episode", "t", "action", "reward", "terminated", "item", "gain"):
            assert table[name].tolist() == expected[name].tolist(), name
    assert {True, False} == set(np.concatenate([log.terminated for log in logs]).tolist())


def test_probabilities_are_logged_after_masking(ending):
    (log,) = log_behaviour(rule(ending, 0.3), ending, 40)
    alive = np.arange(25) < log.length[:, None]
    assert not log.mask[:, :-1][alive].all()
    assert (log.distribution[alive][~log.mask[:, :-1][alive]] == 0).all()
    assert log.distribution[alive].sum(-1) == pytest.approx(1)
    assert (log.probability[alive] > 0).all()
    assert target_distribution(log, rule(ending, 0.3))[:, :-1][alive] == pytest.approx(
        log.distribution[alive]
    )


def test_tables_hold_the_whole_log(ending, tmp_path):
    (log,) = log_behaviour(rule(ending, 0.3), ending, 20)
    write_table(tmp_path / "log.parquet", behaviour_table(log, 0), BEHAVIOUR_COLUMNS)
    table = read_table(tmp_path / "log.parquet", BEHAVIOUR_COLUMNS)
    again = log_from_table(table, 25)
    for name in ARRAYS:
        assert np.array_equal(getattr(log, name), getattr(again, name)), name
    assert np.array_equal(log.probability, again.probability)
    for broken in (table.iloc[1:], table.iloc[:-1], table.iloc[::-1]):
        with pytest.raises(ArtifactError, match="not whole episodes"):
            log_from_table(broken, 25)
    with pytest.raises(ArtifactError, match=r"lack the columns \['mask'\]"):
        log_from_table(table.drop(columns="mask"), 25)


def test_events_say_what_the_learner_met(short):
    (log,) = log_behaviour(rule(short, 0.6), short, 100)
    steps = behaviour_table(log, 0)
    events = event_table(steps)
    assert list(events) == list(EVENT_COLUMNS)
    assert len(events) == 2 * len(steps)
    assert set(events.event) == {"question_shown", "answered", "content_shown", "content_completed"}
    assert steps.gated.any()
    shown = events[::2].reset_index(drop=True)
    done = events[1::2].reset_index(drop=True)
    assert (shown.event.isin(["question_shown", "content_shown"])).all()
    assert (shown[["episode", "t"]] == done[["episode", "t"]]).all(axis=None)
    assert (done.event == np.where(steps.is_question, "answered", "content_completed")).all()
    assert (done.correct == steps.correct).all()
    assert done.gain.tolist() == steps.gain.tolist()
    assert done.response_time.isna().tolist() == (~steps.is_question).tolist()
    assert event_table(steps.drop(columns="is_question")).empty


def test_policies_that_cannot_be_told_from_a_log_are_refused(short):
    for name, words in {"dqn": "learns", "planner_index": "hidden state"}.items():
        with pytest.raises(SeedbedError, match=words):
            epsilon_soft(name, {}, 0.1, short, [0])
    with pytest.raises(SeedbedError, match="refuses its arguments"):
        epsilon_soft("rule_based", {"patience": 3}, 0.1, short, [0])
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        EpsilonSoftPolicy(rule(short, 0).policy, 1.5)


def test_evaluating_the_behaviour_policy_gives_its_mean_return(ending):
    (log,) = log_behaviour(rule(ending, 0.3), ending, 50)
    episodes, features = seen_from(log, target_distribution(log, rule(ending, 0.3)))
    assert per_decision(episodes) == pytest.approx(log.reward.sum(1).mean(), rel=1e-9)
    assert features.expected.shape == (50, 26, 1 + 12 + 36)
    ends = np.flatnonzero(log.terminated)
    assert (features.expected[ends, log.length[ends]] == 0).all()
    cut = np.flatnonzero(~log.terminated)
    assert (features.expected[cut, log.length[cut], 0] == 1).all()


@pytest.fixture(scope="module")
def plan():
    return OffPolicyPlan.model_validate(
        {
            "environment": {"environment": "MockInterview", "arguments": {"preset": "tiny", "horizon": 10}},
            "behaviour": {"algorithm": "rule_based", "epsilon": 0.25},
            "targets": {
                "near": {"algorithm": "rule_based", "epsilon": 0.15},
                "far": {
                    "algorithm": "interview_heuristic",
                    "arguments": {"kind": "video_lowest_blueprint"},
                    "epsilon": 0.3,
                },
            },
            "episodes": 150,
            "repetitions": 6,
            "truth_episodes": 4000,
            "draws": 100,
        }
    )


@pytest.fixture(scope="module")
def tables(plan, short):
    (log,) = log_behaviour(rule(short, 0.25), short, 150)
    return off_policy_tables(plan, log, StatisticsSettings())


def test_study_tables_accept_near_and_refuse_far(tables):
    estimates, seen, coverage = tables
    accepted = estimates.groupby("target").accepted.agg(["all", "any"])
    assert accepted.loc["near", "all"]
    assert not accepted.loc["far", "any"]
    assert estimates[estimates.target == "far"].verdict.str.startswith("refused: only").all()
    assert coverage.set_index("target").refused.to_dict() == {"near": 0, "far": 1}
    assert len(seen) == 20
    assert seen.groupby("t").effective.first().loc[1] <= 150
    near = estimates[(estimates.target == "near") & estimates.estimator.isin(["WPDIS", "DR", "WDR"])]
    assert (near.low < near.truth).all()
    assert (near.truth < near.high).all()


def test_bias_and_coverage_are_those_of_the_repeated_estimates(tables, plan):
    estimates, _, coverage = tables
    assert (coverage.repetitions == plan.repetitions).all()
    far = coverage[(coverage.target == "far") & (coverage.estimator == "IS")].iloc[0]
    truth = estimates[estimates.target == "far"].truth.iloc[0]
    assert far.bias == pytest.approx(
        -truth, abs=0.1
    )  # no logged episode is like the target's: all weights vanish
    assert far.rmse == pytest.approx(-far.bias, abs=0.1)
    assert far.coverage == 0
    assert (coverage.rmse >= coverage.bias.abs() - 1e-12).all()


def test_an_episode_cut_before_the_horizon_earns_nothing_more():
    dynamics = MockInterview("tiny", horizon=8, shortest_limit=3)
    (log,) = log_behaviour(rule(dynamics, 0.3), dynamics, 40)
    assert not log.terminated.any()
    _, features = seen_from(log, target_distribution(log, rule(dynamics, 0.3)))
    left = features.expected[np.arange(40), log.length, 0]
    assert left.tolist() == (log.length == 8).astype(float).tolist()
    assert {0.0, 1.0} == set(left.tolist())


def test_the_first_repetition_is_the_logged_data(tables, plan, short):
    """The same tables again from the same log: equal bit for bit."""
    (log,) = log_behaviour(rule(short, 0.25), short, 150)
    again = off_policy_tables(plan.model_copy(update={"repetitions": 2}), log, StatisticsSettings())
    assert again[0].equals(tables[0])
    assert again[1].equals(tables[1])


def test_epsilon_zero_is_the_policy_itself(short):
    own, soft = rule(short, 0).policy, rule(short, 0)
    observation = np.random.default_rng(0).random((1, 50, *short.spec.observation_shape)).astype(np.float32)
    first, mask = np.ones((1, 50), bool), np.ones((1, 50, short.spec.actions), bool)
    uniforms = np.random.default_rng(1).random((1, 50, 3))
    chosen, _ = soft.act(observation, mask, uniforms, None, first)
    expected, _ = own.act(observation, mask, uniforms[..., 2:], None, first)
    assert np.array_equal(chosen, expected)
