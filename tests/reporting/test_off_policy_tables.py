"""Off-policy evaluation in the paper: real tables of a small plan, their words, and their traces."""

import json
import re

import pytest
from reporting_studies import SETTINGS, TEMPLATES, small_document, write_study

from seedbed.artifacts import read_table, write_table
from seedbed.off_policy.behaviour import data_sets, make_dynamics
from seedbed.off_policy.log_table import BEHAVIOUR_COLUMNS, behaviour_table
from seedbed.off_policy.study_tables import (
    COVERAGE_COLUMNS,
    ESTIMATE_COLUMNS,
    OVERLAP_COLUMNS,
    off_policy_tables,
)
from seedbed.reporting.off_policy_tables import NAMES, off_policy_claims
from seedbed.reporting.paper import write_paper
from seedbed.reporting.study_results import read_study_results
from seedbed.reporting.tables import study_tables, table_names
from seedbed.reporting.trace import trace
from seedbed.study import PaperSettings

PLAN = {
    "environment": {"environment": "MockInterview", "arguments": {"preset": "tiny", "horizon": 5}},
    "behaviour": {"algorithm": "rule_based", "epsilon": 0.3, "title": "rule <soft>"},
    "targets": {
        "near": {"algorithm": "rule_based", "epsilon": 0.2, "title": "near & dear"},
        "far": {"algorithm": "interview_heuristic", "arguments": {"kind": "video_lowest_blueprint"}},
    },
    "episodes": 60,
    "repetitions": 2,
    "truth_episodes": 200,
    "draws": 100,
}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    results = tmp_path_factory.mktemp("off_policy") / "results"
    plan = write_study(results, small_document(off_policy=PLAN)).off_policy
    (log,) = data_sets(plan, make_dynamics(plan), [0])
    folder = results / "interview/off_policy"
    tables = off_policy_tables(plan, log, SETTINGS)
    schemas = {"estimates": ESTIMATE_COLUMNS, "overlap": OVERLAP_COLUMNS, "coverage": COVERAGE_COLUMNS}
    for (name, schema), table in zip(schemas.items(), tables, strict=True):
        write_table(folder / f"{name}.parquet", table, schema)
    write_table(folder / "behaviour.parquet", behaviour_table(log, 0), BEHAVIOUR_COLUMNS)
    study = read_study_results("interview", results, SETTINGS)
    write_paper(PaperSettings(), [study], {}, TEMPLATES, results)
    return results, study


def test_tables_are_named_before_they_are_made(project):
    _, study = project
    assert list(study_tables(study)) == table_names(study.study)
    assert {"off_policy_data", "off_policy"} < set(table_names(study.study))


def test_every_estimator_stands_beside_the_truth(project):
    results, study = project
    table = study_tables(study)["off_policy"]
    rows = [row for row in table.rows if len(row.cells) > 1]
    assert [row.cells[0].text for row in rows] == [*NAMES.values()] * 2
    found = next(row for row in rows if row.key == "near/WPDIS")
    saved = read_table(results / "interview/off_policy/estimates.parquet")
    value = saved[(saved.target == "near") & (saved.estimator == "WPDIS")].estimate.iloc[0]
    assert found.cells[1].text == f"{value:.2f}"
    assert len(table.values) == 16


def test_a_refusal_is_noted_at_each_estimate_and_said_in_words(project):
    _, study = project
    table = study_tables(study)["off_policy"]
    notes = {row.key: row.cells[1].note for row in table.rows if len(row.cells) > 1}
    assert not any(note for key, note in notes.items() if key.startswith("near"))
    assert all(note for key, note in notes.items() if key.startswith("far"))
    said = {claim.identity.rpartition("/")[2]: claim.text for claim in off_policy_claims(study)}
    assert said["near"].startswith("near & dear: accepted: at least")
    assert "Weighted per-decision importance sampling says" in said["near"]
    assert said["far"].startswith("far: refused: none of the 60 episodes could be the target policy's.")
    assert "The true return is" in said["far"]
    data = {
        row.key: [cell.text for cell in row.cells[-2:]] for row in study_tables(study)["off_policy_data"].rows
    }
    assert data == {"near": ["accepted", "0"], "far": ["refused", "100"]}


def test_numbers_are_traced_to_the_behaviour_data(project):
    results, _ = project
    text = (results / "report/paper.md").read_text()
    register = json.loads((results / "report/trace.json").read_text())
    assert set(re.findall(r'trace="([^"]+)"', text)) == set(register)
    assert "rule \\<soft\\>" in text
    ours = [identity for identity in register if identity.startswith("interview/off_policy")]
    assert len(ours) > 40
    for identity in ours:
        steps = trace(identity, results)
        assert {"statistic", "behaviour data"} <= {step.what for step in steps}, identity
    last = trace("interview/off_policy/near/WPDIS/estimate", results)[-1]
    assert last.values["episodes"] == PLAN["episodes"]


def test_without_the_section_nothing_is_said(tmp_path):
    write_study(tmp_path, small_document())
    study = read_study_results("interview", tmp_path, SETTINGS)
    write_paper(PaperSettings(), [study], {}, TEMPLATES, tmp_path)
    assert "off-policy" not in (tmp_path / "report/paper.md").read_text().lower()
    assert "off_policy" not in table_names(study.study)
