"""A generalized study in the workflow: alone, beside another, in other parts, and what reruns."""

import shutil
from pathlib import Path

import pandas as pd
import pytest

from seedbed.reporting.trace import trace

pytestmark = pytest.mark.slow

STUDY = Path(__file__).with_name("small_generalized.yaml")
ALONE = ("--config", "studies=[small_generalized]")


@pytest.fixture
def prepared(checkout):
    shutil.copy(STUDY, checkout.folder / "studies")
    return checkout


def tables(checkout):
    """Statistics, gathered trials, tables and figures: all that must not hang on how trials were divided."""
    files = checkout.files("results/small_generalized")
    kept = ("statistics", "tables", "figures")
    return {
        name: content
        for name, content in files.items()
        if (Path(name).parts[2] in kept or name.endswith(("/tuning.parquet", "/test.parquet")))
        and Path(name).stem != "cost"
    }


def test_it_runs_alone_is_traced_and_has_the_same_bytes_in_other_parts(prepared):
    run = prepared.snakemake(*ALONE)
    assert run.returncode == 0, run.stdout
    once = tables(prepared)
    assert any(name.endswith("verdicts.csv") for name in once)
    checklist = (prepared.folder / "results/provenance/checklist.md").read_text()
    assert "[x] **Seeds recorded**" in checklist
    assert "[x] **Data checksums**" in checklist
    assert "[x] **Complete logs**" in checklist
    steps = trace("small_generalized/claim/car/A/C", prepared.folder / "results")
    assert steps[-1].file == "small_generalized/test.parquet"
    html = (prepared.folder / "results/report/index.html").read_text()
    assert "Small generalized study" in html

    study = prepared.folder / "studies/small_generalized.yaml"
    text = study.read_text()
    study.write_text(text.replace("title: Small", "title: Little"))
    planned = prepared.planned(*ALONE)
    assert not planned & {"tune_generalized", "evaluate_generalized", "run_series"}
    assert "write_paper" in planned

    study.write_text(text.replace("tuning: 2", "tuning: 2\nconfigurations_per_job: 1"))
    run = prepared.snakemake(*ALONE)
    assert run.returncode == 0, run.stdout
    assert len(list((prepared.folder / "results/small_generalized/car/all").glob("part-*"))) == 4
    again = tables(prepared)
    assert {name for name in once if once[name] != again.get(name)} == set()


def test_it_runs_beside_another_study(prepared, finished):
    shutil.copytree(finished.folder / "results", prepared.folder / "results", dirs_exist_ok=True)
    shutil.copytree(finished.folder / ".snakemake", prepared.folder / ".snakemake")
    run = prepared.snakemake("--config", "studies=[small_generalized,small]")
    assert run.returncode == 0, run.stdout
    paper = (prepared.folder / "results/report/paper.md").read_text()
    assert "answers 2 questions" in paper
    assert "{#small_generalized-results}" in paper
    assert "{#small-results}" in paper
    assert not pd.read_parquet(prepared.folder / "results/small_generalized/statistics/meta.parquet").empty


def test_a_wrong_study_stops_before_any_trial(prepared):
    study = prepared.folder / "studies/small_generalized.yaml"
    study.write_text(study.read_text().replace("family: B", "family: Z"))
    run = prepared.snakemake(*ALONE, "-n")
    assert run.returncode != 0
    assert "studies/small_generalized.yaml" in run.stdout
    assert "algorithms.B.family" in run.stdout
