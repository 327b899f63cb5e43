"""Traces: every printed number leads back to its runs, and what is gone is named."""

import json

import numpy as np
import pytest
from reporting_studies import SETTINGS, TEMPLATES, small_document, write_study

from seedbed.artifacts import EPISODE_COLUMNS, ArtifactError, read_table, sha256, write_arrays, write_table
from seedbed.reporting.paper import write_paper
from seedbed.reporting.study_results import read_study_results
from seedbed.reporting.trace import Register, Source, trace
from seedbed.study import PaperSettings

SOURCE = (Source("s/costs.parquet", {"algorithm": "ppo"}, ("wall_s",)),)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Results with a paper, and runs of PPO whose episodes make its scores."""
    import pandas as pd

    results = tmp_path_factory.mktemp("traced") / "results"
    write_study(results, small_document())
    for block, seeds in (("seeds-0-3", range(4)), ("seeds-4-7", range(4, 8))):
        folder = results / "interview/tiny/ppo" / block
        rows = [
            (seed, mode, episode, 1.0, 10, True, False, True)
            for seed in seeds
            for mode in ("greedy", "sampled")
            for episode in range(3)
        ]
        write_table(
            folder / "episodes.parquet", pd.DataFrame(rows, columns=list(EPISODE_COLUMNS)), EPISODE_COLUMNS
        )
        write_arrays(folder / "policy.safetensors", {"seeds": np.array(seeds)}, {"policy": "PPO"})
    write_paper(PaperSettings(), [read_study_results("interview", results, SETTINGS)], {}, TEMPLATES, results)
    return results


def test_every_entry_resolves_to_the_row_it_names(project):
    register = json.loads((project / "report/trace.json").read_text())
    assert len(register) > 100
    tables = {}
    for identity, entry in register.items():
        assert entry["text"], identity
        for source in entry["sources"]:
            path = project / source["table"]
            if path.suffix == ".json":
                value = json.loads(path.read_text())
                for part in source["row"]["key"].split("/"):
                    value = value[int(part)] if isinstance(value, list) else value[part]
                continue
            table = tables.setdefault(path, read_table(path))
            assert set(source["columns"]) <= set(table.columns), identity
            for column, wanted in source["row"].items():
                table = table[table[column] == wanted]
            assert len(table) == 1 or "costs" in source["table"], identity


def test_every_id_in_the_text_is_in_the_register_and_the_other_way_round(project):
    import re

    text = (project / "report/paper.md").read_text()
    register = json.loads((project / "report/trace.json").read_text())
    assert set(re.findall(r'trace="([^"]+)"', text)) == set(register)


def test_the_way_of_a_table_cell_ends_at_policies_with_hashes(project):
    steps = trace("interview/main_tiny/ppo/return", project)
    kinds = [step.what for step in steps]
    assert kinds[0] == "printed"
    assert kinds.count("score") == 2 * 8  # PPO and the baseline that its stars stand against
    assert {"statistic", "episodes", "policy"} <= set(kinds)
    for step in steps:
        assert step.sha256 == sha256(project / step.file)
    summary = next(step for step in steps if step.what == "statistic" and "mean" in step.values)
    values = [
        step.values["value"] for step in steps if step.what == "score" and step.values["algorithm"] == "ppo"
    ]
    assert np.mean(values) == pytest.approx(summary.values["mean"], rel=1e-12)
    assert {step.file for step in steps if step.what == "policy"} == {
        "interview/tiny/ppo/seeds-0-3/policy.safetensors",
        "interview/tiny/ppo/seeds-4-7/policy.safetensors",
    }
    assert all(step.values["episodes"] == 3 for step in steps if step.what == "episodes")


def test_a_declared_number_leads_to_the_study(project):
    steps = trace("interview/declared/study/evaluation/test/episodes", project)
    assert [(step.what, step.file) for step in steps[1:]] == [("declared", "interview/study.json")]
    assert steps[1].values == {"study/evaluation/test/episodes": 200}
    assert "study/evaluation/test/episodes = 200" in str(steps[1])


def test_an_unknown_id_is_answered_with_near_ones(project):
    with pytest.raises(ArtifactError, match=r"Did you mean one of: .*interview/main_tiny/ppo/return"):
        trace("main_tiny/ppo", project)
    with pytest.raises(ArtifactError, match=r"trace\.json lists all"):
        trace("nothing like it", project)


def test_a_missing_file_on_the_way_is_named(project, tmp_path):
    import shutil

    copy = tmp_path / "results"
    shutil.copytree(project, copy)
    (copy / "interview/statistics/summary.parquet").unlink()
    with pytest.raises(ArtifactError, match=r"summary\.parquet is missing"):
        trace("interview/main_tiny/ppo/return", copy)


def test_one_id_names_one_number():
    register = Register()
    assert register.mark("a b/é", "1", SOURCE) == '[1]{trace="a-b/-"}'
    register.mark("a b/é", "1", SOURCE)
    with pytest.raises(ValueError, match="trace id a-b/-"):
        register.mark("a b/é", "2", SOURCE)


def test_text_without_sources_stays_bare():
    register = Register()
    assert register.mark("x", "a_b", ()) == "a\\_b"
    assert register.entries == {}
