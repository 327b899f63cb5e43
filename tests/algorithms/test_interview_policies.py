"""Fixed policies of the mock interview: what they do, step by step, and what they earn.

The tables at the end were measured with another simulator. Means must agree within 4 standard errors of the
difference plus the rounding of the table; of its 140 values a right program misses one with a probability of
about 1 %, and with fixed streams always or never. Question bank and content are drawn per episode, as there.
"""

import numpy as np
import pytest
from pydantic import ValidationError

from seedbed.algorithms.interview_reference import (
    ABILITY_GRID,
    AbilityFilter,
    blueprint_distances,
    nearest_difficulty,
    response_curves,
)
from seedbed.algorithms.interview_rules import (
    HEURISTICS,
    FixedHeuristic,
    FixedHeuristicPolicy,
    RuleBased,
    RuleBasedFixed,
)
from seedbed.algorithms.planner_index import PlannerIndex, PlannerIndexPolicy
from seedbed.algorithms.uniform_random import UniformRandom, UniformRandomPolicy
from seedbed.environments.cart_pole import CartPole
from seedbed.environments.interview import MockInterview
from seedbed.environments.interview_content import PRESETS
from seedbed.environments.lanes import DynamicsLanes
from seedbed.evaluation import evaluate
from seedbed.seeding import Purpose


def policy_of(algorithm, dynamics, seeds=(0,)):
    if isinstance(algorithm, UniformRandom):
        return UniformRandomPolicy(seeds, dynamics)
    return algorithm.policy_class(list(seeds), dynamics, vars(algorithm))


def decide(algorithm, dynamics, uniform=0.0, mask=None, memory=None, first=False, **observed):
    """One decision on a made-up observation: mastery, frustration, seconds."""
    k = dynamics.constants.learning_outcomes
    observation = np.zeros((1, 1, *dynamics.spec.observation_shape), np.float32)
    observation[..., :k] = observed.get("mastery", 0.3)
    observation[..., k] = observed.get("frustration", 0.0)
    observation[..., k + 1] = observed.get("seconds", 30.0) / 120
    action, memory = policy_of(algorithm, dynamics).act(
        observation, mask, np.full((1, 1, 1), uniform), memory, np.full((1, 1), first)
    )
    return int(action[0, 0]), memory


class TestRuleBased:
    DYNAMICS = MockInterview("as_specified", learning_outcomes=3)

    @pytest.mark.parametrize(
        "mastery, action",
        [
            ([0.3, 0.2, 0.2], 3),
            ([0.39, 0.39, 0.38], 6),
            ([0.41, 0.5, 0.5], 1),
            ([0.9, 0.9, 0.69], 7),
            ([0.71, 0.9, 0.9], 2),
        ],
    )
    def test_asks_about_the_lowest_outcome_in_the_band_of_its_mastery(self, mastery, action):
        assert decide(RuleBased(), self.DYNAMICS, mastery=mastery)[0] == action

    @pytest.mark.parametrize(
        "frustration, seconds, uniform, action",
        [
            (0.69, 59.9, 0.0, 0),
            (0.70, 30.0, 0.0, 9 + 2),
            (0.70, 30.0, 0.5, 9 + 5),
            (0.60, 60.0, 0.0, 9 + 0),
            (0.60, 60.0, 0.5, 9 + 1),
            (0.61, 90.0, 0.4, 9 + 2),
        ],
    )
    def test_content(self, frustration, seconds, uniform, action):
        observed = {"frustration": np.float32(frustration), "seconds": seconds}
        assert decide(RuleBased(), self.DYNAMICS, uniform, **observed)[0] == action

    def test_seconds_are_compared_with_seconds(self):
        scaled = MockInterview("as_specified", response_time_scale=240)
        k = scaled.constants.learning_outcomes
        observation = np.full((1, 1, k + 2), 0.3, np.float32)
        observation[..., k], observation[..., k + 1] = 0, 61 / 240
        action, _ = policy_of(RuleBased(), scaled).act(observation, None, np.zeros((1, 1, 1)), None, None)
        assert action[0, 0] >= 3 * k

    def test_the_two_traps_and_their_repair(self):
        for seconds, frustration in ((90.0, 0.0), (30.0, 0.8)):
            observed = {"seconds": seconds, "frustration": frustration}
            trapped = [decide(RuleBased(), self.DYNAMICS, uniform, **observed)[0] for uniform in (0.0, 0.5)]
            assert trapped == ([9, 10] if frustration < 0.6 else [11, 14])
            assert decide(RuleBasedFixed(), self.DYNAMICS, 0.0, **observed)[0] == 9
        action, memory = decide(RuleBasedFixed(), self.DYNAMICS, seconds=90.0)
        assert action == 9
        action, memory = decide(RuleBasedFixed(), self.DYNAMICS, seconds=90.0, memory=memory)
        assert action == 0
        assert decide(RuleBasedFixed(), self.DYNAMICS, seconds=90.0, memory=memory)[0] == 9

    def test_masks_are_respected(self):
        mask = np.ones((1, 1, 27), bool)
        mask[..., 9:] = False
        assert decide(RuleBased(), self.DYNAMICS, mask=mask, frustration=0.9)[0] == 0
        mask[..., 0:9:3] = False
        assert decide(RuleBased(), self.DYNAMICS, mask=mask)[0] == 1


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(
    "algorithm",
    [RuleBased(), RuleBasedFixed(), PlannerIndex(), *(FixedHeuristic(kind=kind) for kind in HEURISTICS)],
    ids=lambda algorithm: getattr(algorithm, "kind", type(algorithm).__name__),
)
def test_every_policy_acts_everywhere(preset, algorithm, tmp_path):
    masked = {"blueprint_mask": True} if preset == "as_trained" else {}
    dynamics = MockInterview(
        preset, learning_outcomes=3, horizon=80 if preset == "as_trained" else 25, **masked
    )
    policy = policy_of(algorithm, dynamics, (4, 9))
    policy.save(tmp_path / "policy.safetensors")
    policy = type(policy).load(tmp_path / "policy.safetensors", dynamics)
    assert policy.mode in policy.modes
    lanes, memory = DynamicsLanes(dynamics, Purpose.TEST, [4, 9], 5), None
    generator = np.random.default_rng(0)
    for _ in range(dynamics.spec.horizon + 5):
        seen = lanes.state if policy.needs_state else lanes.observation
        uniforms = generator.random((2, 5, policy.uniforms))
        probabilities = policy.probabilities(seen, lanes.mask, memory, lanes.first)
        action, memory = policy.act(seen, lanes.mask, uniforms, memory, lanes.first)
        np.testing.assert_allclose(probabilities.sum(-1), 1)
        assert (np.take_along_axis(probabilities, action[..., None], -1) > 0).all()
        if lanes.mask is not None:
            assert np.take_along_axis(lanes.mask, action[..., None], -1).all()
            assert (probabilities <= lanes.mask).all()
        lanes.step(action)


@pytest.mark.parametrize("algorithm", [RuleBased(), FixedHeuristic(kind="likeliest_answer"), PlannerIndex()])
def test_bits_depend_on_neither_lanes_nor_other_seeds(algorithm):
    dynamics = MockInterview("tiny")
    together = evaluate(
        policy_of(algorithm, dynamics, (1, 2)), dynamics, Purpose.TEST, 10, lanes=8, log_steps=True
    )
    for seed in (1, 2):
        alone = evaluate(
            policy_of(algorithm, dynamics, (seed,)), dynamics, Purpose.TEST, 10, lanes=3, log_steps=True
        )
        rows = together.steps[together.steps["seed"] == seed].reset_index(drop=True)
        assert rows.equals(alone.steps)


class TestBelief:
    def test_curves_are_means_of_the_three_parameter_logistic(self):
        constants = PRESETS["as_specified"]
        curves = response_curves(constants)
        generator = np.random.default_rng(0)
        for difficulty in range(3):
            a, b, c = (
                generator.uniform(*limits, 200_000)
                for limits in (
                    constants.item_discrimination[difficulty],
                    constants.item_difficulty[difficulty],
                    constants.item_guessing,
                )
            )
            for right, point in ((0, 40), (30, 55)):
                ability = ABILITY_GRID[point] + 0.02 * right
                p = c + (1 - c) / (1 + np.exp(-a * (ability - b)))
                error = 4 * p.std() / np.sqrt(len(p))
                assert curves[right, difficulty, point] == pytest.approx(p.mean(), abs=error)

    def test_posterior_is_bayes_rule(self):
        constants = PRESETS["as_specified"]
        ability, belief = AbilityFilter(constants), None
        answers = [-1, 1, 4, -1, 3, 5, 0]
        for t, answer in enumerate(answers):
            belief = ability.update(belief, np.array([answer]), np.array([t == 0]))
        weight, right = np.exp(-(ABILITY_GRID**2) / 2), 0
        for difficulty, correct in ((0, 1), (2, 0), (1, 1), (2, 1), (0, 0)):
            p = ability.curves[right, difficulty]
            weight = weight * (p if correct else 1 - p)
            right += correct
        expected = (ability.curves[right] * weight).sum(-1) / weight.sum()
        np.testing.assert_allclose(ability.predict(belief)[0], expected, rtol=1e-12)

    def test_a_new_episode_begins_with_the_prior(self):
        ability = AbilityFilter(PRESETS["tiny"])
        start = ability.update(None, np.array([-1]), np.array([True]))
        later = ability.update(start, np.array([5]), np.array([False]))
        again = ability.update(later, np.array([5]), np.array([True]))
        np.testing.assert_array_equal(ability.predict(again), ability.predict(start))
        assert ability.predict(later)[0, 2] > ability.predict(start)[0, 2]

    def test_planner_beliefs_come_true(self):
        """Among the planner's questions, answers are right as often as it expects."""
        dynamics = MockInterview("default", bank="per_episode")
        policy = policy_of(PlannerIndex(), dynamics)
        lanes, memory = DynamicsLanes(dynamics, Purpose.TEST, [0], 400), None
        ability, expected, right = AbilityFilter(dynamics.constants), [], []
        for _ in range(60):
            action, memory = policy.act(lanes.state, lanes.mask, None, memory, lanes.first)
            p = ability.predict(memory)
            step = lanes.step(action)
            asked = step.facts["is_question"]
            difficulty = step.facts["difficulty"][asked].astype(int)
            expected.append(p[asked][np.arange(len(difficulty)), difficulty])
            right.append(step.facts["correct"][asked])
        expected, right = np.concatenate(expected), np.concatenate(right)
        error = np.sqrt((expected * (1 - expected)).sum()) / len(right)
        assert right.mean() == pytest.approx(expected.mean(), abs=4 * error)


def test_blueprint_distances():
    distances = blueprint_distances(np.array([[0, 0, 0], [1, 2, 1]]), (0.2, 0.6, 0.2))
    np.testing.assert_allclose(distances[0], [1.6, 0.8, 1.6])
    np.testing.assert_allclose(distances[1], [0.4, 0.0, 0.4], atol=1e-15)


def test_nearest_difficulty_prefers_the_easier():
    allowed = np.array([[1, 0, 1], [0, 1, 0], [0, 0, 1], [1, 1, 1]], bool)
    np.testing.assert_array_equal(nearest_difficulty(np.array([1, 2, 0, 2]), allowed), [0, 1, 2, 2])


def test_errors():
    with pytest.raises(ValueError, match="acts in the mock interview only, not in CartPole"):
        PlannerIndexPolicy([0], CartPole(), vars(PlannerIndex()))
    for arguments in ({"kind": "best"}, {"relief": 1}, {"relief_frustration": 2}):
        with pytest.raises(ValidationError):
            FixedHeuristic(**arguments)
    with pytest.raises(ValidationError):
        PlannerIndex(blueprint_weight=-1)
    with pytest.raises(ValueError, match="acts 'greedy' only"):
        FixedHeuristicPolicy([0], MockInterview("tiny"), {"kind": "easy_only"}).in_mode("sampled")


AS_SPECIFIED = """
policy                 | return         | steps | quit | mastery     | right | shown | gain | blueprint | f
random                 | 30.76 (16.15)  | 118.0 | .319 | .438 (.060) | .577  | .661  | .048 | 81.8      | .234
random + gate          | 30.85 (16.05)  | 118.5 | .313 | .440        | .580  | .662  | .048 | 81.9      | .233
rule                   | 98.68 (42.80)  | 125.0 | .147 | .430 (.066) | .810  | .114  | .051 | 48.6      | .096
rule + gate            | 101.62 (39.41) | 129.2 | .112 | .435        | .817  | .109  | .070 | 48.7      | .084
video_lowest_easy      | 26.00 (0.88)   | 140   | 0    | .626 (.020) | -     | 1     | .073 | -         | 0
easy_only              | 110.67 (34.26) | 129.8 | .101 | .420 (.045) | .828  | 0     | -    | 46.7      | .093
hard_only              | 14.23 (36.75)  | 24.2  | .905 | .306        | .328  | 0     | -    | 46.7      | .477
alternate_easy_video   | 70.43 (8.79)   | 140   | 0    | .534 (.024) | .799  | .5    | .080 | 46.7      | .014
most_effective_content | 26.0 (0.9)     | 140   | 0    | .629 (.019) | -     | 1     | .074 | -         | 0
likeliest_answer       | 117.0 (19.2)   | 140   | 0    | .435 (.027) | .845  | -     | -    | 62.7      | -
"""
"""40 000 episodes each. How often likeliest_answer shows video depends on its threshold, not given."""

DEFAULT = """
policy                 | return      | success | quit | time         | restricted | gain | blueprint
random                 | 47.1 (28.5) | .494    | .428 | 119.9 (10.7) | 130        | .088 | 81.7
rule                   | 61.0 (32.2) | .488    | .312 | 122.5 (13.5) | 131        | .099 | 84.8
easy_only              | 49.7 (17.7) | .667    | .075 | 127.8 (7.8)  | 132        | .157 | 46.7
video_random_blueprint | 91.3 (10.7) | 1       | 0    | 96.9 (11.6)  | 96.9       | .124 | 99.4
video_lowest_easy      | 91.4 (6.0)  | 1       | 0    | 76.8 (6.4)   | 76.8       | .146 | 46.7
video_lowest_blueprint | 98.9 (8.8)  | 1       | 0    | 82.9 (9.1)   | 82.9       | .145 | 99.3
planner                | 101.5 (8.0) | 1       | 0    | -            | -          | -    | -
"""
"""20 000 episodes each, 1500 of the planner and of video_random_blueprint. The planner's weights, which trade
time against blueprint at nearly equal return, are not given."""

TINY = """
policy                 | return | success | time
random                 | 15.7   | .64     | -
rule                   | 14.2   | .27     | -
video_lowest_blueprint | 27.3   | 1       | 23.0 (3.6)
"""
"""Number of episodes not given: taken as 20 000."""


def rows(table):
    """(name, {metric: cell}) of a table written with bars."""
    header, *lines = ([cell.strip() for cell in line.split("|")] for line in table.strip().splitlines())
    return [(cells[0], dict(zip(header[1:], cells[1:], strict=True))) for cells in lines]


CASES = [
    pytest.param(preset, name, cells, id=f"{preset}-{name}")
    for preset, table in (("as_specified", AS_SPECIFIED), ("default", DEFAULT), ("tiny", TINY))
    for name, cells in rows(table)
]
ALGORITHMS = {
    "random": UniformRandom(),
    "rule": RuleBased(),
    "planner": PlannerIndex(),
}


def measure(algorithm, dynamics, episodes):
    """Values per episode of every metric of the tables, NaN where there is none."""
    tables = evaluate(
        policy_of(algorithm, dynamics), dynamics, Purpose.TEST, episodes, lanes=500, log_steps=True
    )
    steps, episode = tables.steps, tables.steps["episode"].to_numpy()

    def total(values):
        return np.bincount(episode, weights=np.asarray(values, np.float64))

    question = steps["is_question"].to_numpy()
    length, asked = total(np.ones(len(steps))), total(question)
    with np.errstate(invalid="ignore"):
        shares = np.array([total(steps["difficulty"] == d) for d in range(3)]) / asked
        reason = tables.episodes["final_end_reason"].to_numpy()
        return {
            "return": tables.episodes["return"].to_numpy(),
            "steps": length,
            "success": (reason == 1).astype(float),
            "quit": (reason == 3).astype(float),
            "mastery": tables.episodes["final_mean_mastery"].to_numpy(),
            "right": total(steps["correct"] == 1) / asked,
            "shown": 1 - asked / length,
            "gain": total(steps["gain"] * ~question) / (length - asked),
            "blueprint": 100 * (1 - np.abs(shares - [[0.2], [0.6], [0.2]]).sum(0) / 3),
            "f": total(steps["frustration"]) / length,
            "time": np.where(reason == 1, length, np.nan),
            "restricted": np.where(reason == 1, length, dynamics.constants.horizon),
        }


@pytest.mark.slow
@pytest.mark.parametrize("preset, name, cells", CASES)
def test_tables(preset, name, cells):
    name, _, gate = name.partition(" + ")
    gated = {"fail_streak_gate": 3} if gate else {}
    dynamics = MockInterview(preset, bank="per_episode", **gated)
    algorithm = ALGORITHMS.get(name) or FixedHeuristic(kind=name)
    episodes = 1000 if preset == "as_specified" else 3000
    reference = 40_000 if preset == "as_specified" else 20_000
    if name in ("planner", "video_random_blueprint"):
        reference = 1500
    measured = measure(algorithm, dynamics, episodes)
    for metric, cell in cells.items():
        if cell == "-":
            continue
        mean, _, spread = cell.rstrip(")").partition(" (")
        values = measured[metric][~np.isnan(measured[metric])]
        share = reference * len(values) / episodes
        rounding = 0.5 * 10.0 ** -len(mean.partition(".")[2]) + 1e-9
        error = values.std() * np.sqrt(1 / len(values) + 1 / share)
        assert values.mean() == pytest.approx(float(mean), abs=4 * error + rounding), metric
        if spread:
            fourth = np.mean((values - values.mean()) ** 4) / values.var() ** 2
            error = values.std() * np.sqrt((fourth - 1) / 4 * (1 / len(values) + 1 / share))
            rounding = 0.5 * 10.0 ** -len(spread.partition(".")[2]) + 1e-9
            assert values.std() == pytest.approx(float(spread), abs=4 * error + rounding), f"{metric}: SD"
