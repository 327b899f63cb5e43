"""Studies with made-up scores, their statistics computed by the real functions, in the pipeline's files."""

from pathlib import Path

import numpy as np
import pandas as pd

from seedbed.artifacts import SCORE_COLUMNS, write_json, write_table
from seedbed.metrics.base import load_metrics
from seedbed.provenance.costs import COST_COLUMNS, costs
from seedbed.statistics.plan import comparisons
from seedbed.statistics.sample_efficiency import EFFICIENCY_COLUMNS, sample_efficiency
from seedbed.statistics.study_tables import summarise
from seedbed.study import StatisticsSettings, Study

TEMPLATES = Path(__file__).parents[2] / "report"
SETTINGS = StatisticsSettings(draws=1000)
REFERENCES = {
    "random": {"algorithm": "random", "title": "random"},
    **{
        label: {"algorithm": "interview_heuristic", "arguments": {"kind": "easy_only"}, "title": title}
        for label, title in {
            "easy_only": "easy questions",
            "hard_only": "hard questions",
            "video_random": "video at random",
            "video_lowest": "video, lowest outcome",
            "video_blueprint": "video and blueprint",
            "alternate": "alternating",
        }.items()
    },
    "rule_based_fixed": {"algorithm": "rule_based_fixed", "title": "rule-based, repaired"},
    "planner_index": {"algorithm": "planner_index", "title": "planner index"},
}
RUN = {
    "hardware": {
        "cpu": "A processor @ 2.00GHz",
        "usable_cores": 2,
        "logical_cores": 2,
        "memory_bytes": 8_000_000_000,
        "gpus": [],
        "platform": "Linux-6.1-x86_64",
        "node": "n",
    },
    "software": {
        "python": "3.11.9",
        "packages": {"torch": "2.13.0", "numpy": "2.4.6"},
        "environment_variables": {"OMP_NUM_THREADS": "1"},
    },
    "code": {"commit": "0123456789abcdef0123456789abcdef01234567", "dirty": False},
}


def study_document(**changes) -> dict:
    """A study like the interview's; keyword arguments replace its keys."""
    learners = {
        "ppo": {"algorithm": "ppo", "title": "PPO", "budget": 50_000},
        "dqn": {"algorithm": "dqn", "title": "DQN", "budget": 30_000, "arguments": {"gamma": 0.95}},
        "ppo_wide": {"algorithm": "ppo", "title": "PPO, wide", "budget": 50_000},
    }
    references = {label: {**entry, "role": "reference"} for label, entry in REFERENCES.items()}
    baseline = {"rule_based": {"algorithm": "rule_based", "role": "baseline", "title": "rule-based"}}
    return {
        "name": "interview",
        "title": "Adaptive mock-interview tutoring",
        "question": "Which way of choosing questions and content brings learners to mastery soonest?",
        "environments": {
            "default": {
                "environment": "MockInterview",
                "arguments": {"preset": "default"},
                "title": "mock interview",
            },
            "tiny": {
                "environment": "MockInterview",
                "arguments": {"preset": "tiny"},
                "title": "tiny interview",
            },
        },
        "algorithms": learners | baseline | references,
        "seeds": list(range(8)),
        "pilot_seeds": [1000, 1001],
        "metrics": ["episodes", "interview"],
        "evaluation": {"curve": {"every": 5000, "episodes": 50}, "test": {"episodes": 200}},
        "statistics": {
            "baseline": "rule_based",
            "primary": {"default": "restricted_time_to_mastery", "tiny": "restricted_time_to_mastery"},
            "secondary": [
                "return",
                "post_content_gain",
                "blueprint_adherence",
                "mastery_incidence",
                "question_accuracy",
                "content_rate",
                "final_mastery",
                "mean_frustration",
            ],
        },
    } | changes


def made_up_scores(study: Study, missing=()) -> pd.DataFrame:
    """Scores of every metric: a level per algorithm and metric, shared seed effects, small noise."""
    metrics = load_metrics(study.metrics)
    generator = np.random.default_rng(5)
    rows = []
    for environment in study.environments:
        seeds = study.seeds_in(environment)
        luck = generator.normal(size=len(seeds))
        for index, label in enumerate(study.algorithms_in(environment)):
            modes = ("greedy", "sampled") if study.algorithms[label].role == "learner" else ("greedy",)
            for mode in modes:
                for number, (name, metric) in enumerate(metrics.items()):
                    scale = {"": 0.5, "%": 80, "mastery": 0.1}.get(metric.unit, 90)
                    level = scale * (1 + 0.08 * ((3 * index + number) % 5 - 2))
                    values = level + scale * (0.02 * luck + 0.03 * generator.normal(size=len(luck)))
                    values = np.clip(values, 0, 1) if metric.unit == "" else values
                    for seed, value in zip(seeds, values, strict=True):
                        lost = (environment, label, seed, name) in missing
                        rows.append(
                            (
                                study.name,
                                environment,
                                label,
                                seed,
                                mode,
                                name,
                                np.nan if lost else value,
                                0 if lost else 200,
                                "no question asked" if lost else "ok",
                            )
                        )
    return pd.DataFrame(rows, columns=list(SCORE_COLUMNS)).astype(SCORE_COLUMNS)


def made_up_curves(study: Study) -> pd.DataFrame:
    """Curves of every metric that rise from 0 to 10,000 steps; one point for what does not learn."""
    parts = []
    for environment in study.environments:
        for index, label in enumerate(study.algorithms_in(environment)):
            learns = study.algorithms[label].role == "learner"
            for steps in (0, 5000, 10_000) if learns else (0,):
                rows = {"environment": environment, "algorithm": label, "seed": study.seeds, "steps": steps}
                values = index + steps / 1000 + 0.1 * np.array(study.seeds)
                rows |= {"study": study.name, "policy_mode": "sampled", "value": values, "status": "ok"}
                for name in load_metrics(study.metrics):
                    parts.append(pd.DataFrame(rows | {"metric": name, "episodes": 50}))
    return pd.concat(parts, ignore_index=True)


def run_records(study: Study) -> list[dict]:
    """Run records of training and evaluation, blocks of four seeds."""
    records = []
    for environment in study.environments:
        for label in study.algorithms_in(environment):
            for block, seeds in study.blocks(environment, label, 4).items():
                for job in ("training", "evaluation"):
                    phase = {
                        "wall_s": 12.5 * len(seeds),
                        "cpu_s": 12.0 * len(seeds),
                        "steps": 1000 * len(seeds),
                        "model_calls": 0,
                        "steps_per_s": 80.0,
                        "peak_memory_bytes": 300_000_000,
                        "gpu_peak_memory_bytes": None,
                    }
                    records.append(
                        {
                            "study": study.name,
                            "environment": environment,
                            "algorithm": label,
                            "block": block,
                            "job": job,
                            "seeds": seeds,
                            "phases": [{"phase": job, **phase}],
                            **RUN,
                        }
                    )
    return records


def write_study(results: Path, document: dict, scores=None, hyperparameters=None, sizes=None) -> Study:
    """Write everything that the report reads of a study, and small stand-ins for its runs."""
    study = Study.model_validate(document)
    folder = results / study.name
    scores = made_up_scores(study) if scores is None else scores
    size = sizes or {
        "observation_shape": [23],
        "actions": 135,
        "horizon": 140,
        "content": {"questions": "ab" * 32},
    }
    given = {
        "ppo": {"lanes": 8, "gamma": 0.99, "learning_rate": 3e-4, "hidden": [128, 128]},
        "dqn": {"lanes": 8, "gamma": 0.95},
    } | (hyperparameters or {})
    write_json(
        folder / "study.json",
        {
            "study": study.model_dump(mode="json"),
            "environments": dict.fromkeys(study.environments, size),
            "algorithms": {
                environment: {
                    label: given.get(entry.algorithm, {})
                    for label, entry in study.algorithms_in(environment).items()
                }
                for environment in study.environments
            },
        },
    )
    write_table(folder / "scores.parquet", scores, SCORE_COLUMNS)
    records = run_records(study)
    write_table(folder / "costs.parquet", costs(records), COST_COLUMNS)
    for record in records:
        block = folder / record["environment"] / record["algorithm"] / record["block"]
        write_json(block / ("run.json" if record["job"] == "training" else "evaluation.json"), record)
    summary, compared = _statistics(study, scores)
    write_table(folder / "statistics/summary.parquet", summary, {})
    write_table(folder / "statistics/comparisons.parquet", compared, {})
    efficiency = sample_efficiency(made_up_curves(study), study.statistics.sample_efficiency)
    write_table(folder / "statistics/sample_efficiency.parquet", efficiency, EFFICIENCY_COLUMNS)
    return study


_KNOWN: dict[tuple[str, str], tuple[pd.DataFrame, pd.DataFrame]] = {}


def _statistics(study: Study, scores: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Summary and comparisons; computed once for equal input, as many tests share their study."""
    key = (study.model_dump_json(), scores.to_csv())
    if key not in _KNOWN:
        compared = comparisons(scores, study, load_metrics(study.metrics), SETTINGS)
        _KNOWN[key] = (summarise(scores), compared)
    return _KNOWN[key]


def draw_placeholders(results: Path, study: str, names: list[str]) -> None:
    """Small figures under the names given."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder = results / study / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.hashsalt": "seedbed"}):
        for name in names:
            figure, axes = plt.subplots(figsize=(6, 3))
            axes.plot([0, 1, 2], [1, 3, 2], label=name)
            axes.legend()
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
            figure.savefig(folder / f"{name}.pdf", metadata={"CreationDate": None})
            plt.close(figure)


def small_document(**changes) -> dict:
    """A study of one learner, the baseline and one reference, in one environment."""
    document = study_document()
    document["environments"] = {"tiny": document["environments"]["tiny"]}
    document["statistics"]["primary"] = {"tiny": "restricted_time_to_mastery"}
    document["statistics"]["secondary"] = ["return", "post_content_gain", "blueprint_adherence"]
    kept = ("ppo", "rule_based", "random")
    document["algorithms"] = {label: document["algorithms"][label] for label in kept}
    return document | changes
