"""Designs that cannot decide say so: one seed, or nobody who reaches the goal."""

import pandas as pd
import pytest

pytestmark = pytest.mark.slow


def test_study_with_one_seed_reports_what_cannot_be_tested(checkout):
    checkout.configure("preset: one_seed")
    run = checkout.snakemake()
    assert run.returncode == 0, run.stdout
    comparisons = pd.read_parquet(checkout.folder / "results/small/statistics/comparisons.parquet")
    assert set(comparisons.decision) == {"not testable"}
    paper = (checkout.folder / "results/report/paper.md").read_text()
    assert "not testable" in paper
    assert "one seed" in paper.lower()


def test_study_in_which_nobody_masters_is_not_estimable(checkout):
    path = checkout.folder / "studies/small.yaml"
    path.write_text(path.read_text().replace("{preset: tiny}", "{preset: tiny, mastery_threshold: 1.0}"))
    run = checkout.snakemake()
    assert run.returncode == 0, run.stdout
    scores = pd.read_parquet(checkout.folder / "results/small/scores.parquet")
    times = scores[scores.metric == "restricted_time_to_mastery"]
    assert set(times.status) == {"all censored: not reached"}
    assert times.value.isna().all()
    assert "not estimable" in (checkout.folder / "results/report/paper.md").read_text()
