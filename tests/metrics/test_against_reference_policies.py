"""Metrics of a real evaluation against numbers from independent simulators of the same study."""

import json
import math
from pathlib import Path

import pytest

from seedbed.algorithms.uniform_random import UniformRandomPolicy
from seedbed.environments.interview import MockInterview
from seedbed.evaluation import evaluate
from seedbed.metrics.base import load_metrics, score
from seedbed.metrics.interview import MODALITIES
from seedbed.seeding import Purpose

REFERENCE = Path(__file__).parents[1] / "reference" / "interview" / "policies.json"
SAME_NAME = ("return", "question_accuracy", "content_rate", "mean_frustration", "post_content_gain")
OTHER_NAME = {
    "episode_length": "length",
    "final_mastery": "final_mean_mastery",
    "blueprint_adherence": "blueprint_adherence_percent_episodes_with_questions",
}
EPISODES = 900


def random_policy(**arguments):
    """Mean of each metric over three seeds of 300 episodes."""
    dynamics = MockInterview(**arguments)
    policy = UniformRandomPolicy([0, 1, 2], dynamics)
    run = evaluate(policy, dynamics, Purpose.TEST, EPISODES // 3, lanes=100, log_steps=True)
    metrics = load_metrics(["episodes", "interview"]).values()
    table = score("s", "e", "random", run.episodes, run.steps, metrics, horizon=dynamics.spec.horizon)
    return table.groupby("metric")["value"].mean()


def test_random_policy_as_specified():
    means = random_policy(preset="as_specified", bank="per_episode")
    reference = json.loads(REFERENCE.read_text())["policies"]["uniform_random"]
    names = dict(zip(SAME_NAME, SAME_NAME, strict=True)) | OTHER_NAME
    names |= {name: name for name in (f"post_content_gain_{modality}" for modality in MODALITIES)}
    for metric, name in names.items():
        expected = reference[name]
        error = expected["sd"] * math.sqrt(1 / EPISODES + 1 / expected["n"])
        assert abs(means[metric] - expected["mean"]) < 4 * error, metric
    assert means["quit_rate"] == pytest.approx(reference["fraction_critical_frustration"], abs=4 * 0.018)
    assert means["mastery_incidence"] == 0
    assert means["restricted_time_to_mastery"] == 140


def test_random_policy_in_the_default_preset():
    """Measured over 20 000 episodes by another program: .494 master, .428 quit, restricted mean 129.9."""
    means = random_policy(preset="default")
    share = 4 * math.sqrt(0.25 / EPISODES)
    assert means["mastery_incidence"] == pytest.approx(0.494, abs=share)
    assert means["quit_rate"] == pytest.approx(0.428, abs=share)
    assert means["restricted_time_to_mastery"] == pytest.approx(129.9, abs=4 * 13 / math.sqrt(EPISODES))
    assert means["blueprint_adherence"] == pytest.approx(81.7, abs=4 * 6 / math.sqrt(EPISODES))
