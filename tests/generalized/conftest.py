"""A small generalized study, and what its jobs and its analysis make."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from seedbed.artifacts import write_json
from seedbed.generalized.study_trials import resolve_generalized
from seedbed.generalized_study import GeneralizedStudy
from seedbed.study import StatisticsSettings

ROOT = Path(__file__).parents[2]
WIDE = {"noise_high": 1, "scale_low": 0.01, "scale_high": 100, "shift_low": -100, "shift_high": 100}
SMALL = {
    "kind": "generalized",
    "name": "ranges",
    "title": "Ranges",
    "question": "Who knows its range?",
    "environments": {
        "car": {"domains": ["mountain_car"]},
        "both": {"domains": ["mountain_car", "puddle_world"], "title": "both & more"},
        "alone": {"domains": ["puddle_world"], "single": True},
        "open": {"domains": ["puddle_world"], "variants": {"puddle_world": "open"}, "beside": "both"},
        "water": {"domains": ["puddle_world"], "beside": "both"},
        "fitted": {"domains": ["puddle_world"], "tuned_in": "alone", "beside": "water"},
        "wide": {"domains": ["mountain_car"], "sampler": WIDE, "beside": "car"},
        "narrow": {"domains": ["mountain_car"], "sampler": WIDE, "tuned_in": "car", "beside": "wide"},
    },
    "algorithms": {
        "A": {"family": "A"},
        "B": {"family": "B"},
        "C": {"family": "C"},
        "A_exact": {"family": "A", "growth": 0, "beside": "A", "environments": ["car", "wide"]},
    },
    "configurations": 5,
    "tuning": 3,
    "test": 5,
    "steps": 2000,
    "meta": {
        "domains": ["puddle_world"],
        "environment": "both",
        "agent": "A",
        "arms": 2,
        "series": 3,
        "length": 2,
    },
}
SETTINGS = StatisticsSettings(draws=1000)


def run_jobs(project: Path, study: GeneralizedStudy) -> None:
    """All jobs of a study as the workflow runs them, in a folder; those of trials within this process."""
    from seedbed.artifacts import write_table
    from seedbed.generalized import study_trials
    from seedbed.generalized.trials import TRIAL_COLUMNS, gather
    from seedbed.provenance.run_record import Stopwatch, run_record

    results = project / "results" / study.name
    write_json(results / "study.json", resolve_generalized(study), sort_keys=False)

    def record(path, label, block, job):
        settings = study_trials.trial_settings(study, label, block, job)
        write_json(path, run_record(job, settings, Stopwatch(), steps=1))

    tuning = {}
    for label, algorithms in study.blocks().items():
        plan, parts = study.plan(label), []
        for name, numbers in algorithms["all"].items():
            parts.append(study_trials.tune(plan, label, *numbers))
            write_table(results / label / "all" / name / "trials.parquet", parts[-1], TRIAL_COLUMNS)
            record(results / label / "all" / name / "run.json", label, name, "training")
        if parts:
            tuning[label] = gather(parts)
        picks, trials = study_trials.test(plan, label, tuning[study.environments[label].tuned_in or label])
        write_table(results / label / "all/test/picks.parquet", picks, {})
        write_table(results / label / "all/test/trials.parquet", trials, TRIAL_COLUMNS)
        record(results / label / "all/test/evaluation.json", label, "test", "evaluation")
    if study.meta:
        plan = study.plan(study.meta.environment, meta=True)
        trials = study_trials.meta(plan, tuning[study.meta.environment])
        write_table(results / "meta/trials.parquet", trials, study_trials.META_COLUMNS)
        record(results / "meta/evaluation.json", "meta", "series", "evaluation")
    program = [sys.executable, ROOT / "workflow_scripts/analyse_generalized.py"]
    given = ["--plan", study.model_dump_json(), "--settings", json.dumps(SETTINGS.model_dump())]
    subprocess.run([*program, *given], cwd=project, check=True, capture_output=True)


@pytest.fixture(scope="session")
def small():
    """The small study's document."""
    return json.loads(json.dumps(SMALL))


@pytest.fixture(scope="session")
def run_study():
    """A function: run all jobs of a study in a folder."""
    return run_jobs


@pytest.fixture(scope="session")
def ran(tmp_path_factory, small):
    """The project folder in which the small study ran, and the study."""
    study, project = GeneralizedStudy.model_validate(small), tmp_path_factory.mktemp("ranges")
    run_jobs(project, study)
    return project, study
