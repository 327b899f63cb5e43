"""Synthetic but realistic tables of a study: learners, a baseline and many references."""

import contextlib
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from seedbed.algorithms.shortest_path import ShortestPathPolicy
from seedbed.algorithms.uniform_random import UniformRandomPolicy
from seedbed.artifacts import SCORE_COLUMNS, STEP_COLUMNS, write_table
from seedbed.environments.goal_grid import GoalGrid
from seedbed.evaluation import evaluate
from seedbed.figures.tables import Tables
from seedbed.figures.walks import read_walks
from seedbed.metrics.base import load_metrics, score
from seedbed.seeding import Purpose
from seedbed.statistics.curves import band
from seedbed.statistics.incidence import incidence_table
from seedbed.statistics.plan import rates_of
from seedbed.statistics.reliability import RELIABILITY_COLUMNS, reliability_table
from seedbed.statistics.study_tables import Family, all_pairs, compare, summarise
from seedbed.study import Study

HORIZON = 140
SKILL = {  # how good each algorithm is, 0 to 1
    "rule_based": 0.3,
    "ppo": 0.75,
    "dqn": 0.5,
    "pets": 0.62,
    "random": 0.1,
    "rule_based_fixed": 0.42,
    "easy_only": 0.35,
    "video_blueprint": 0.9,
    "planner_index": 0.95,
    "video_only": 0.88,
    "hard_only": 0.0,
    "round_robin": 0.2,
    "alternate": 0.45,
}
TITLES = {
    "rule_based": "rule-based",
    "ppo": "PPO",
    "dqn": "DQN",
    "pets": "PETS",
    "rule_based_fixed": "rule-based, repaired",
    "easy_only": "easy questions",
    "video_blueprint": "video and blueprint",
    "planner_index": "planner index",
}
UGLY = "Costs $5 & 100%_of <b>x</b> $y^2$ — a title that goes on and on for longer than anybody would like"


def make_study(algorithms=SKILL, environments=("default",), seeds=8, ugly=False) -> Study:
    def role(label):
        learner = label in ("ppo", "dqn", "pets") or label.startswith("learner")
        return "baseline" if label == "rule_based" else "learner" if learner else "reference"

    titles = {label: UGLY if ugly else TITLES.get(label) for label in algorithms}
    return Study.model_validate(
        {
            "name": "synthetic",
            "title": UGLY if ugly else "Synthetic study",
            "question": "Which?",
            "environments": {
                name: {"environment": "MockInterview", "title": UGLY if ugly else "mock interview"}
                for name in environments
            },
            "algorithms": {
                label: {"algorithm": "random", "role": role(label), "title": titles[label]}
                for label in algorithms
            },
            "seeds": list(range(seeds)),
            "metrics": ["episodes", "interview"],
            "evaluation": {"curve": {"every": 5000, "episodes": 50}, "test": {"episodes": 40}},
            "statistics": {
                "primary": dict.fromkeys(environments, "restricted_time_to_mastery"),
                "secondary": [
                    "return",
                    "post_content_gain",
                    "blueprint_adherence",
                    "mastery_incidence",
                    "question_accuracy",
                    "final_mastery",
                ],
                "baseline": "rule_based",
            },
        }
    )


def _values(skill, generator):
    """One seed's scores for a skill in [0, 1]; names as in the metric sets; None is missing."""

    def noise(scale):
        return scale * generator.normal()

    easy = np.clip(0.5 - 0.3 * skill + noise(0.02), 0, 1)
    hard = np.clip(0.3 - 0.1 * skill + noise(0.02), 0, 1 - easy)
    scores = {
        "return": 20 + 80 * skill + noise(4),
        "restricted_time_to_mastery": min(140, 141 - 60 * skill + noise(3)),
        "mastery_incidence": float(np.clip(1.3 * skill - 0.1 + noise(0.04), 0, 1)),
        "final_mastery": 0.4 + 0.4 * min(1, skill * 1.2) + noise(0.01),
        "post_content_gain": 0.05 + 0.1 * skill + noise(0.004),
        "blueprint_adherence": 70 + 28 * skill + noise(1),
        "question_accuracy": 0.55 + 0.25 * skill + noise(0.01),
        "difficulty_share_easy": easy,
        "difficulty_share_medium": 1 - easy - hard,
        "difficulty_share_hard": hard,
    }
    effects = {"video": 0.07, "PPT": 0.056, "text": 0.037, "blog": 0.048, "article": 0.042, "handout": 0.037}
    for name, effect in effects.items():
        scores[f"post_content_gain_{name}"] = effect * (1 + skill) + noise(0.003)
    return scores


def _score_rows(study, environment, algorithm, scores, steps=None):
    for seed, values in enumerate(scores):
        for metric, value in values.items():
            absent = _absent(algorithm, metric)
            row = ["synthetic", environment, algorithm, seed, "sampled", metric]
            row += [np.nan, 0, absent] if absent else [value, 40, "ok"]
            yield row if steps is None else [*row, steps]


def _absent(algorithm, metric):
    of_questions = metric.startswith(("question", "blueprint", "difficulty"))
    if algorithm == "video_only" and of_questions:
        return "no question asked"
    if algorithm in ("easy_only", "hard_only") and metric.startswith("post_content_gain"):
        return "no content shown"
    return ""


def _episodes(skill, seeds, generator):
    count = (seeds, 40)
    success = generator.random(count) < np.clip(1.3 * skill - 0.1, 0, 1)
    leave = ~success & (generator.random(count) < 0.6 - 0.4 * skill)
    length = np.where(success, 120 - 50 * skill + generator.normal(0, 9, count), 140)
    length = np.clip(np.where(leave, generator.integers(15, 120, count), length), 5, 139).astype(int)
    cut = ~success & ~leave
    return pd.DataFrame(
        {
            "seed": np.repeat(np.arange(seeds), 40),
            "policy_mode": "sampled",
            "episode": np.tile(np.arange(40), seeds),
            "length": np.where(cut, HORIZON, length).ravel(),
            "success": success.ravel(),
            "terminated": ~cut.ravel(),
            "truncated": cut.ravel(),
        }
    )


def _forecasts(skill, seeds, generator):
    """Episode and step table of one learner whose model is too sure of itself; steps 20 per episode."""
    count = (seeds, 40)
    labels = {"seed": np.repeat(np.arange(seeds), 40), "policy_mode": "sampled"}
    chance = generator.beta(3, 1.5, (*count, 20))
    foretold = np.clip(chance + 0.3 * (chance - 0.5) * (1.2 - skill), 0, 1)
    correct = np.where(generator.random(chance.shape) < 0.7, generator.random(chance.shape) < chance, -1)
    known = np.where(correct < 0, np.nan, foretold)
    steps = {name: np.repeat(column, 20) if name == "seed" else column for name, column in labels.items()}
    steps = pd.DataFrame(steps | {"correct": correct.ravel(), "forecast_event": known.ravel()})
    success = generator.beta(4 * skill, 1.5, count)
    told = np.where(np.arange(40) < 20, generator.binomial(10, success) / 10, np.nan)
    happened = generator.random(count) < success
    episodes = pd.DataFrame(labels | {"success": happened.ravel(), "forecast_success": told.ravel()})
    return episodes, steps


def make_tables(study: Study, skill=None, pairs=True) -> Tables:
    """All tables of a study, through the real statistics."""
    generator, modelling = np.random.default_rng(5), np.random.default_rng(6)
    seeds, rows, points, incidence, reliability = len(study.seeds), [], [], [], []
    for environment in study.environments:
        for label, algorithm in study.algorithms.items():
            level = (skill or SKILL).get(label, generator.random())
            rows += _score_rows(study, environment, label, [_values(level, generator) for _ in range(seeds)])
            incidence.append(
                incidence_table(environment, label, _episodes(level, seeds, generator), horizon=HORIZON)
            )
            if label == "pets" or label.startswith("learner"):
                made = _forecasts(max(level, 0.1), seeds, modelling)
                reliability.append(reliability_table(environment, label, *made))
            if algorithm.role == "learner":
                last = 30_000 if label == "dqn" else 50_000
                for step in range(0, last + 1, 5_000):
                    now = 0.1 + (level - 0.1) * (1 - np.exp(-3 * step / last))
                    made = [_values(now, generator) for _ in range(seeds)]
                    made = [{m: v[m] for m in ("return", "final_mastery")} for v in made]
                    points += _score_rows(study, environment, label, made, step)
    scores = pd.DataFrame(rows, columns=list(SCORE_COLUMNS)).astype(SCORE_COLUMNS)
    curves = pd.DataFrame(points, columns=[*SCORE_COLUMNS, "steps"])
    tested = [name for name, a in study.algorithms.items() if a.role != "reference"]
    primary = next(iter(study.statistics.primary.values()))
    better = {name: metric.better for name, metric in load_metrics(study.metrics).items()}
    families = [Family("pairs", (primary,), better, all_pairs(tested))] if pairs else []
    return Tables(
        scores,
        summarise(scores),
        compare(scores, families, draws=200),
        band(curves),
        pd.concat(incidence, ignore_index=True),
        pd.concat(reliability, ignore_index=True),
    )


@pytest.fixture(scope="session")
def synthetic():
    """``study(...)`` and ``tables(study, ...)``, the same of goal grids, and the names above."""
    goal = {"goal_study": make_goal_study, "goal_tables": make_goal_tables}
    return SimpleNamespace(study=make_study, tables=make_tables, **goal, SKILL=SKILL, UGLY=UGLY)


@pytest.fixture(scope="session")
def usual(synthetic):
    """Three learners, a baseline, nine references, eight seeds: (tables, study)."""
    study = synthetic.study()
    return synthetic.tables(study), study


ROOMS = {
    "horizon": 30,
    "minimum_distance": 4,
    "map": "..#....\n..+....\n..#....\n######+\n.......\n",
}
GOAL_POLICIES = {"walker": UniformRandomPolicy, "random": UniformRandomPolicy, "oracle": ShortestPathPolicy}


def make_goal_study(reset_seeds=None) -> Study:
    roles = {"walker": "learner", "random": "baseline", "oracle": "reference"}
    test = {"episodes": 12} if reset_seeds is None else {"reset_seeds": reset_seeds, "episodes": 12}
    return Study.model_validate(
        {
            "name": "walks",
            "title": "Walks",
            "question": "Where to?",
            "environments": {"rooms": {"environment": "GoalGrid", "arguments": ROOMS, "title": "two rooms"}},
            "algorithms": {
                label: {"algorithm": "random", "role": role, "title": label} for label, role in roles.items()
            },
            "seeds": [3, 4, 5],
            "metrics": ["episodes", "goal"],
            "evaluation": {"curve": {"every": 1000, "episodes": 5}, "test": test},
            "statistics": {
                "primary": {"rooms": "success_rate"},
                "secondary": ["return", "optimality_ratio"],
                "baseline": "random",
            },
        }
    )


def make_goal_tables(study: Study, folder) -> tuple[Tables, dict[str, pd.DataFrame]]:
    """All tables of a study whose episodes were really walked, and the step table of each algorithm."""
    grid, test = GoalGrid(**ROOMS), study.evaluation.test
    metrics = load_metrics(study.metrics)
    blocks = {"rooms": {label: {"seeds-3-4": [3, 4], "seed-5": [5]} for label in GOAL_POLICIES}}
    logs, scores, incidence = {}, [], []
    for label, policy in GOAL_POLICIES.items():
        run = evaluate(
            policy(study.seeds, grid), grid, Purpose.TEST, test.reset_seeds or 12, lanes=4, log_steps=True
        )
        logs[label] = run.steps
        episodes = run.episodes.assign(policy_mode="sampled")
        steps = run.steps.assign(policy_mode="sampled")
        for block, seeds in blocks["rooms"][label].items():
            path = folder / "results" / study.name / "rooms" / label / block / "steps.parquet"
            write_table(path, steps[steps["seed"].isin(seeds)], STEP_COLUMNS)
        scores.append(score(study.name, "rooms", label, episodes, None, metrics.values(), horizon=30))
        incidence.append(incidence_table("rooms", label, episodes, horizon=30))
    with contextlib.chdir(folder):
        walks = read_walks(study, blocks)
    scores, rates = pd.concat(scores, ignore_index=True), rates_of(metrics)
    learned = scores[scores["algorithm"] == "walker"]
    curves = pd.concat([learned.assign(steps=0), learned.assign(steps=1000)])
    better = {name: metric.better for name, metric in metrics.items()}
    family = Family("pairs", ("success_rate",), better, all_pairs(["walker", "random"]))
    tables = Tables(
        scores,
        summarise(scores, rates=rates),
        compare(scores, [family], draws=200, rates=rates),
        band(curves, rates=rates),
        pd.concat(incidence, ignore_index=True),
        pd.DataFrame(columns=list(RELIABILITY_COLUMNS)).astype(RELIABILITY_COLUMNS),
        walks=walks,
    )
    return tables, logs


@pytest.fixture(scope="session")
def walks(tmp_path_factory):
    """Three policies that walked a goal grid: (tables, study, step tables by algorithm)."""
    study = make_goal_study()
    tables, logs = make_goal_tables(study, tmp_path_factory.mktemp("walks"))
    return tables, study, logs
