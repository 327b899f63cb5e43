"""Ways to get the tables of the interview study wrong that no single function shows: each comes out right."""

import os
import runpy
from argparse import Namespace
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import seedbed.evaluation
from seedbed import job
from seedbed.algorithms.interview_rules import RuleBased
from seedbed.algorithms.uniform_random import UniformRandom, UniformRandomPolicy
from seedbed.artifacts import EPISODE_COLUMNS, SCORE_COLUMNS, STEP_COLUMNS, write_table
from seedbed.environments.interview import MockInterview
from seedbed.evaluation import EvaluationError, evaluate
from seedbed.metrics.base import load_metrics, score
from seedbed.metrics.interview import CRITICAL_FRUSTRATION, MASTERY, STEP_LIMIT
from seedbed.seeding import Purpose
from seedbed.statistics.paired import sign_flip_test
from seedbed.statistics.study_tables import Family, compare, summarise

ROOT = Path(__file__).parents[2]
HORIZON = 40
METRICS = load_metrics(["episodes", "interview"])
FAMILY = Family("f", ("return",), {"return": "higher"}, (("a", "b"),))


def scored(episodes, steps, algorithm="a", horizon=HORIZON):
    return score("s", "e", algorithm, episodes, steps, METRICS.values(), horizon=horizon)


def compared(x, y):
    """The comparison of two algorithms on the same seeds, in a metric of which more is better."""
    rows = [
        ("s", "e", name, seed, "m", "return", value, 9, "ok")
        for name, values in (("a", x), ("b", y))
        for seed, value in enumerate(values)
    ]
    return compare(pd.DataFrame(rows, columns=list(SCORE_COLUMNS)), [FAMILY], draws=500).iloc[0]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Episode and step table of an evaluation in which some master, some quit and some run out of time."""
    folder, environment = tmp_path_factory.mktemp("evaluation"), MockInterview("tiny")
    assert environment.spec.horizon == HORIZON
    policy = UniformRandomPolicy([0, 1], environment)
    run = evaluate(policy, environment, Purpose.TEST, 40, lanes=7, log_steps=True)
    write_table(folder / "episodes.parquet", run.episodes, EPISODE_COLUMNS)
    write_table(folder / "steps.parquet", run.steps, STEP_COLUMNS)
    return pd.read_parquet(folder / "episodes.parquet"), pd.read_parquet(folder / "steps.parquet")


def test_the_score_table_is_what_the_episode_file_sums_to(files):
    """Row by row, in plain Python; None becomes neither the length nor 0, and nobody is left out."""
    episodes, steps = files
    assert set(episodes.final_end_reason) == {MASTERY, STEP_LIMIT, CRITICAL_FRUSTRATION}
    sums, counts = defaultdict(float), defaultdict(int)
    for row in episodes.to_dict("records"):
        mastered = row["final_end_reason"] == MASTERY
        for name, value in {
            "return": row["return"],
            "episode_length": row["length"],
            "success_rate": float(row["success"]),
            "mastery_incidence": float(mastered),
            "quit_rate": float(row["final_end_reason"] == CRITICAL_FRUSTRATION),
            "restricted_time_to_mastery": row["length"] if mastered else HORIZON,
            "final_mastery": row["final_mean_mastery"],
        }.items():
            sums[row["seed"], name] += value
            counts[row["seed"], name] += 1
    table = scored(episodes, steps).set_index(["seed", "metric"])
    assert set(counts.values()) == {40}
    for key, total in sums.items():
        assert table.loc[key, "value"] == pytest.approx(total / 40, rel=1e-12), key
        assert table.loc[key, "episodes"] == 40


def test_time_to_mastery_counts_steps_from_1_by_the_state_after_them(files):
    """The first t after which mean mastery is reached is the episode's last; its state is the final one."""
    episodes, steps = files
    threshold = MockInterview("tiny").constants.mastery_threshold
    assert steps.groupby(["seed", "episode"])["t"].min().eq(1).all()
    reached = steps[steps.mean_mastery >= threshold].groupby(["seed", "episode"])["t"].min()
    mastered = episodes[episodes.final_end_reason == MASTERY].set_index(["seed", "episode"])
    assert reached.sort_index().equals(mastered["length"].rename("t").sort_index())
    last = steps.groupby(["seed", "episode"]).last()
    for fact in ("mean_mastery", "frustration"):
        final = episodes.set_index(["seed", "episode"])[f"final_{fact}"]
        np.testing.assert_array_equal(last[fact], final)


def test_a_policy_that_learns_nothing_differs_between_seeds_and_repeats_within_one(files):
    """SD over seeds holds the luck of the learners met, so it is not the stability of training."""
    environment, rule = MockInterview("tiny"), RuleBased()
    policy = rule.policy_class([0, 1, 2, 3], environment, vars(rule))
    first, again = (
        evaluate(policy, environment, Purpose.TEST, 10, lanes=5, log_steps=True) for _ in range(2)
    )
    pd.testing.assert_frame_equal(first.episodes, again.episodes, check_exact=True)
    means = first.episodes.groupby("seed")["return"].mean()
    assert means.nunique() == 4
    summary = summarise(scored(first.episodes, first.steps)).set_index("metric")
    assert summary.loc["return", "sd"] == pytest.approx(means.std(ddof=1))
    within = first.episodes.groupby("seed")["return"].std(ddof=1).mean()
    assert summary.loc["return_sd", "mean"] == pytest.approx(within)


def test_more_episodes_of_the_same_seeds_are_no_more_evidence(build):
    """Three seeds of 2 or of 40 episodes: n is 3, and no p below 1/4 can come of it."""
    for episodes in (2, 40):
        tables = []
        for algorithm, gain in {"a": 5.0, "b": 0.0}.items():
            for seed in range(3):
                ends = [(build.LIMIT, [build.question(reward=gain + seed)])] * episodes
                tables.append(scored(*build.evaluation(*ends, seed=seed), algorithm))
        row = compare(pd.concat(tables), [FAMILY], draws=500).iloc[0]
        assert row.n == 3
        assert row.p == row.smallest_p == 0.25
        assert "cannot succeed" in row.note
        assert row.decision == "undecided"


def test_normality_is_shown_and_never_chooses_the_test():
    for differences, rejected in (
        (1 + norm.ppf((np.arange(12) + 0.5) / 12), False),
        (np.r_[np.linspace(-0.1, 0.2, 11), 30], True),
    ):
        row = compared(differences, np.zeros(12))
        assert (row.shapiro_p < 0.05) == rejected
        assert row.p_corrected == row.p == sign_flip_test(differences, np.zeros(12)).pvalue


def test_words_are_of_d_av_which_does_not_grow_with_the_correlation():
    """Seeds differ by 1, algorithms by 0.3 on nearly every seed: a small effect, although d_z is above 2."""
    seeds = norm.ppf((np.arange(12) + 0.5) / 12)
    row = compared(seeds + 0.3 + 0.1 * np.resize([1, -1], 12), seeds)
    assert row.d_z > 2
    assert 0.2 < row.d_av < 0.5
    assert row.effect_label == "small, a higher"


def test_masked_questions_meet_the_blueprint_whoever_asks():
    """So adherence there is no merit of a policy, and the metric says so."""
    adherence = {}
    for masked in (False, True):
        environment = MockInterview("default", blueprint_mask=masked)
        policy = UniformRandom().policy_class([0], environment)
        run = evaluate(policy, environment, Purpose.TEST, 10, lanes=10, log_steps=True)
        table = scored(run.episodes, run.steps, horizon=environment.spec.horizon).set_index("metric")
        adherence[masked] = table.loc["blueprint_adherence", "value"]
    assert adherence[True] > 99 > 90 > adherence[False]
    assert "any policy is near 100" in METRICS["blueprint_adherence"].description


def test_a_gain_shrinks_as_mastery_rises_and_the_relative_gain_does_not(build):
    """Content that gives a fifth of what is left, to a learner who knows little and to one who knows much."""
    by_mastery = {}
    for before in (0.2, 0.8):
        shown = [build.content(gain=0.2 * (1 - before), before=before)]
        table = scored(*build.evaluation((build.LIMIT, shown * 3))).set_index("metric")
        by_mastery[before] = table["value"]
    assert by_mastery[0.2]["post_content_gain"] == pytest.approx(0.16)
    assert by_mastery[0.8]["post_content_gain"] == pytest.approx(0.04)
    for values in by_mastery.values():
        assert values["relative_content_gain"] == pytest.approx(0.2)


def test_units_are_steps_percent_percentage_points_and_fractions():
    units = {name: metric.unit for name, metric in METRICS.items()}
    assert {name for name, unit in units.items() if unit == "steps"} == {
        "episode_length",
        "steps_to_success",
        "restricted_time_to_mastery",
        "time_to_mastery_median",
    }
    assert {name for name, unit in units.items() if unit == "%"} == {
        "blueprint_adherence",
        "blueprint_pooled",
    }
    assert {name for name, unit in units.items() if unit == "percentage points"} == {"blueprint_deviation"}
    rates = {name for name, metric in METRICS.items() if metric.rate}
    assert rates == {"success_rate", "truncation_rate", "mastery_incidence", "quit_rate"}
    assert {units[name] for name in (*rates, "question_accuracy", "content_rate")} == {""}


def test_a_job_that_fails_leaves_no_record_to_be_counted(tmp_path, monkeypatch):
    """So times of failed jobs are in no cost table."""

    def fails(*_, **__):
        raise EvaluationError("Seed 0, episode 0, step 1: broken.")

    environment = MockInterview("tiny")
    UniformRandomPolicy([0], environment).save(tmp_path / "policy.safetensors")
    settings = (
        '{"study": "s", "block": "seed-0", "seeds": [0], "episodes": 2, "lanes": 2, "forecast": null,'
        ' "environment": {"label": "e", "environment": "MockInterview", "arguments": {"preset": "tiny"}},'
        ' "algorithm": {"label": "a", "algorithm": "random"}}'
    )
    outputs = {name: tmp_path / f"{name}.out" for name in ("episodes", "steps", "run")}
    arguments = Namespace(settings=settings, policy=tmp_path / "policy.safetensors", **outputs)
    main = runpy.run_path(str(ROOT / "workflow_scripts/evaluate.py"))["main"]
    with monkeypatch.context() as patched:
        patched.setattr(seedbed.evaluation, "evaluate", fails)
        with pytest.raises(EvaluationError, match="broken"):
            main(arguments)
    assert not any(path.exists() for path in outputs.values())
    main(arguments)
    assert all(path.exists() for path in outputs.values())


def test_jobs_run_on_one_thread_unless_told_otherwise(monkeypatch):
    names, seen = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), []
    for name in names:
        monkeypatch.setenv(name, "5")
    monkeypatch.delenv("MKL_NUM_THREADS")
    monkeypatch.setattr("sys.argv", ["job"])
    job.run(lambda _: seen.extend(os.environ[name] for name in names), job.parser("A job."))
    assert seen == ["5", "1", "5"]
