"""The simulator against an independent one: exact one-step expectations and statistics of four policies.

A comparison passes within 4 standard errors of the difference (two-sided tail 6e-5). There are about 300
comparisons with exact expectations and 300 with the other simulator's samples, so a right simulator would
fail one of them with a probability of about 4 %; the streams are fixed, so it does so always or never.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from seedbed.algorithms.interview_rules import FixedHeuristicPolicy
from seedbed.algorithms.uniform_random import UniformRandomPolicy
from seedbed.environments.interview import MockInterview
from seedbed.environments.interview_content import DIFFICULTIES, MODALITIES
from seedbed.evaluation import evaluate
from seedbed.seeding import Purpose, stream

REFERENCE = Path(__file__).parents[1] / "reference" / "interview"
LEARNERS = 20_000
EPISODES = 1000
STANDARD_ERRORS = 4
ROUNDING = 1e-9

POLICIES = {
    "uniform_random": None,
    "easy_question_round_robin": "easy_round_robin",
    "medium_question_round_robin": "medium_round_robin",
    "video_round_robin": "video_round_robin",
}


def read(name):
    return json.loads((REFERENCE / name).read_text())


def deviation_error(values):
    """Standard error of the sample standard deviation, from the fourth moment."""
    centred = values - values.mean()
    variance = np.mean(centred**2)
    spread = max(np.mean(centred**4) - variance**2, 0)
    return np.sqrt(spread / len(values)) / (2 * np.sqrt(variance)) if variance > 0 else 0.0


@pytest.fixture(scope="module")
def one_outcome():
    return MockInterview("as_specified", learning_outcomes=1, bank="per_episode")


@pytest.fixture(scope="module")
def learners(one_outcome):
    generator = stream(Purpose.TEST, 0)
    return one_outcome.initial(np.array([one_outcome.draw(generator)[0] for _ in range(LEARNERS)]))


class TestOneStep:
    """States of the reference, met by many learners with a question bank and content of their own."""

    @pytest.mark.parametrize("number", range(48))
    def test_expectations(self, one_outcome, learners, number):
        dynamics, n = one_outcome, LEARNERS
        row = read("one_step_expectations.json")["rows"][number]
        before = round(100 * row["frustration"])
        state = learners._replace(
            mastery=np.full((n, 1), row["mastery"]),
            ability=np.full(n, row.get("ability", 0.0)),
            frustration=np.full(n, before),
        )
        if row["action"] == "question":
            action = dynamics.question(np.zeros(n, np.int64), DIFFICULTIES.index(row["difficulty"]))
        else:
            action = dynamics.content(np.zeros(n, np.int64), MODALITIES.index(row["modality"]))
        generator = stream(Purpose.TEST, 1, number)
        noise = np.column_stack([generator.random((n, 2)), generator.standard_normal(n)])
        result = dynamics.step(state, action, noise)
        samples = {
            "p_correct": result.facts["correct"] == 1,
            "expected_reward": result.reward,
            "expected_mastery_gain": result.facts["gain"],
            "p_zero_gain": result.facts["gain"] == 0,
            "expected_frustration_after": result.facts["frustration"],
            "p_critical_frustration_after": result.facts["frustration"] >= 0.95,
            "expected_ability_change": result.state.ability - state.ability,
        }
        compared = 0
        for name, sample in samples.items():
            if name in row:
                # A rare event has its error from the exact probability: none may have been seen.
                spread = np.sqrt(row[name] * (1 - row[name])) if name.startswith("p_") else sample.std()
                tolerance = STANDARD_ERRORS * spread / np.sqrt(n) + ROUNDING
                assert sample.mean() == pytest.approx(row[name], abs=tolerance), name
                compared += 1
        tolerance = STANDARD_ERRORS * deviation_error(result.reward) + ROUNDING
        assert result.reward.std() == pytest.approx(row["sd_reward"], abs=tolerance)
        assert compared == (6 if row["action"] == "question" else 5)


def episode_statistics(steps):
    """Values per episode under the names of the reference, NaN where a quantity does not exist."""
    groups = steps.groupby("episode", sort=True)
    first, last = groups.first(), groups.last()

    def mean_where(condition, column):
        return steps[column].where(condition).groupby(steps["episode"]).mean().to_numpy()

    question, content = steps["is_question"], ~steps["is_question"]
    asked = groups["is_question"].sum()
    shares = np.array(
        [((steps["difficulty"] == d).groupby(steps["episode"]).sum() / asked) for d in range(3)]
    )
    initial = first["mean_mastery"] - first["gain"] / 30
    right = (steps["correct"] == 1).astype(float)
    frame = steps.assign(right=right)
    values = {
        "return": groups["reward"].sum(),
        "length": groups.size(),
        "initial_mean_mastery": initial,
        "final_mean_mastery": last["mean_mastery"],
        "mean_mastery_gain": last["mean_mastery"] - initial,
        "content_rate": content.groupby(steps["episode"]).mean(),
        "post_content_gain": mean_where(content, "gain"),
        "blueprint_adherence_percent_episodes_with_questions": 100
        * (1 - np.abs(shares - np.array([[0.2], [0.6], [0.2]])).sum(0) / 3),
        "mean_frustration": groups["frustration"].mean(),
        "final_frustration": last["frustration"],
        "final_ability": last["ability"],
        "question_accuracy": frame["right"].where(question).groupby(steps["episode"]).mean(),
        "initial_ability": first["ability"] - 0.02 * (first["correct"] == 1),
        "end_reason": last["end_reason"],
    }
    for d, name in enumerate(DIFFICULTIES):
        chosen = frame["right"].where(steps["difficulty"] == d)
        values[f"question_accuracy_{name}"] = chosen.groupby(steps["episode"]).mean()
    for m, name in enumerate(MODALITIES):
        values[f"post_content_gain_{name}"] = mean_where(steps["modality"] == m, "gain")
    return {name: np.asarray(value, np.float64) for name, value in values.items()}


def return_components(steps):
    """Contribution of each reward term to each episode's return."""
    question = steps["is_question"]
    change = np.array([-0.08, -0.05, 0.02, -0.03, 0.0, 0.05])
    nominal = np.where(question, 0.0, change[steps["modality"]])
    terms = {
        "correct": 1.0 * (steps["correct"] == 1),
        "question_gain": 0.5 * steps["gain"] * question,
        "question_frustration": -0.3 * steps["frustration"] * question,
        "content_gain": 2.0 * steps["gain"] * ~question,
        "content_engagement": -0.5 * nominal,
    }
    terms = {name: np.asarray(term, np.float64) for name, term in terms.items()}
    np.testing.assert_allclose(sum(terms.values()), steps["reward"], atol=1e-12)
    return {name: np.bincount(steps["episode"], weights=term) for name, term in terms.items()}


@pytest.fixture(scope="module", params=list(POLICIES))
def case(request):
    """Reference entry, step table and episode statistics of one policy."""
    dynamics = MockInterview("as_specified", bank="per_episode")
    kind = POLICIES[request.param]
    policy = UniformRandomPolicy([0], dynamics)
    if kind:
        policy = FixedHeuristicPolicy([0], dynamics, {"kind": kind})
    steps = evaluate(policy, dynamics, Purpose.TEST, EPISODES, lanes=250, log_steps=True).steps
    return read("policies.json")["policies"][request.param], steps, episode_statistics(steps)


class TestPolicies:
    def close(self, value, spread, reference, name, n=None, reference_n=3000, reference_spread=None):
        """Within 4 standard errors of a difference of two means with these standard deviations."""
        n = n or EPISODES
        reference_spread = spread if reference_spread is None else reference_spread
        error = np.sqrt(spread**2 / n + reference_spread**2 / reference_n)
        assert value == pytest.approx(reference, abs=STANDARD_ERRORS * error + ROUNDING), name

    def test_means_and_deviations(self, case):
        reference, _, values = case
        for name, entry in reference.items():
            if not (isinstance(entry, dict) and "se" in entry) or name.startswith("time_to_mastery"):
                continue
            sample = values[name][~np.isnan(values[name])]
            if entry["n"] == 0:
                assert len(sample) == 0, name
                continue
            share, expected = len(sample) / EPISODES, entry["n"] / 3000
            pooled = (len(sample) + entry["n"]) / (EPISODES + 3000)
            self.close(share, np.sqrt(pooled * (1 - pooled)), expected, f"{name}: n")
            spread = sample.std(ddof=1)
            self.close(
                sample.mean(),
                spread,
                entry["mean"],
                name,
                n=len(sample),
                reference_n=entry["n"],
                reference_spread=entry["sd"],
            )
            error = deviation_error(sample) * np.sqrt(1 + len(sample) / entry["n"])
            assert spread == pytest.approx(entry["sd"], abs=STANDARD_ERRORS * error + ROUNDING), f"{name}: sd"

    def test_ends(self, case):
        reference, _, values = case
        for reason, name in enumerate(("mastery", "step_limit", "critical_frustration"), 1):
            expected = reference[f"fraction_{name}"]
            share = (values["end_reason"] == reason).mean()
            pooled = (share * EPISODES + expected * 3000) / (EPISODES + 3000)
            self.close(share, np.sqrt(pooled * (1 - pooled)), expected, name)

    def test_quantiles(self, case):
        reference, _, values = case
        for name in ("return", "length", "final_mean_mastery"):
            for level, quantile in reference[f"{name}_quantiles"].items():
                level = float(level)
                error = np.sqrt(level * (1 - level) * (1 / EPISODES + 1 / 3000))
                tolerance = STANDARD_ERRORS * error + 1 / 3000
                assert (values[name] < quantile - ROUNDING).mean() <= level + tolerance, (name, level)
                assert (values[name] <= quantile + ROUNDING).mean() >= level - tolerance, (name, level)

    def test_return_components(self, case):
        reference, steps, _ = case
        for name, component in return_components(steps).items():
            self.close(component.mean(), component.std(), reference["return_components_mean"][name], name)

    def test_correlation_of_return_and_initial_ability(self, case):
        reference, _, values = case
        returns, ability = ((values[name] - values[name].mean()) for name in ("return", "initial_ability"))
        r = (returns * ability).mean() / (returns.std() * ability.std())
        # Standard error by the influence function: the return is far from normal.
        x, y = returns / returns.std(), ability / ability.std()
        influence = x * y - r * (x**2 + y**2) / 2
        self.close(r, influence.std(), reference["correlation_return_initial_ability"], "correlation")

    def test_curves(self, case):
        reference, steps, _ = case
        table = steps.pivot(index="episode", columns="t", values="mean_mastery").reindex(
            columns=range(1, 141)
        )
        filled = table.ffill(axis=1)
        for point in reference["curve"]:
            mastery, expected = filled[point["step"]].to_numpy(), point["mean_mastery_all_learners"]
            self.close(
                mastery.mean(), mastery.std(), expected["mean"], point, reference_spread=expected["sd"]
            )
            reached = table[point["step"]].notna().mean()
            pooled = (reached * EPISODES + point["p_reached_step"] * 3000) / (EPISODES + 3000)
            self.close(reached, np.sqrt(pooled * (1 - pooled)), point["p_reached_step"], point)
