"""An item is ticked only from evidence: complete evidence ticks all, and each gap unticks its own item."""

import dataclasses
import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from seedbed.artifacts import sha256
from seedbed.provenance.checklist import Evidence, as_json, as_markdown, checklist, seed_plan
from seedbed.provenance.checksums import write_checksums

NAMES = (
    "Seeds recorded",
    "Configuration files",
    "Environment version pinned",
    "Data checksums",
    "Code version",
    "Hardware",
    "Complete logs",
)
SEEDS, CONFIGURATION, ENVIRONMENT, DATA, CODE, HARDWARE, LOGS = NAMES
CELL = {"environment": "e", "algorithm": "a", "seeds": [0, 1, 2, 3]}
RUN = "../s/e/a/seed-3/run.json"
CLEAN = {"commit": "c" * 40, "branch": "main", "tags": [], "dirty": False, "changes": [], "reason": None}
MACHINE = {"cpu": "A CPU", "logical_cores": 2, "memory_bytes": 2**33, "gpus": [{"name": "A GPU"}]}
SOFTWARE = {"python": "3.11.7", "packages": {"numpy": "2.4.6", "torch": "2.13.0+cpu", "Foo_Bar": "1.0"}}


def put(path: Path, content) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def edit(path: Path, change) -> None:
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


@pytest.fixture
def evidence(tmp_path) -> Evidence:
    """One study with one cell of seeds 0 to 3 in two blocks, all in order."""
    provenance = tmp_path / "results/provenance"
    runs, logs = [], []
    for block, seeds in {"seeds-0-2": [0, 1, 2], "seed-3": [3]}.items():
        for job, name in {"training": "run", "evaluation": "evaluation"}.items():
            record = {
                "job": job, "study": "s", "environment": "e", "algorithm": "a", "seeds": seeds,
                "hardware": MACHINE, "software": SOFTWARE, "code": CLEAN,
            }  # fmt: skip
            runs.append(put(tmp_path / f"results/s/e/a/{block}/{name}.json", record))
            logs.append(put(tmp_path / f"results/logs/s/e/a/{block}/{job}.log", "$ python\ndone\n"))
    data = put(tmp_path / "results/s/e/a/seed-3/episodes.parquet", "episodes")
    write_checksums(provenance / "checksums.sha256", [data], tmp_path)
    lock = "# all\nnumpy==2.4.6  # arrays\ntorch==2.13.0\nfoo-bar[x]==1.0 ; python_version > '3'\nabsent==1\n"
    return Evidence(
        root=tmp_path,
        seeds=put(provenance / "seeds.json", {"s": {"seeds": [0, 1, 2, 3], "cells": [CELL]}}),
        runs=tuple(runs),
        configuration=put(provenance / "configuration.yaml", "a: 1"),
        studies=(put(tmp_path / "config.yaml", "a: 1"), put(tmp_path / "studies/s.yaml", "name: s")),
        lock=put(tmp_path / "requirements.lock", lock),
        software=put(provenance / "software.json", SOFTWARE),
        content=put(provenance / "content.json", {"s": {"e": {"question_bank": "0" * 64}}}),
        checksums=provenance / "checksums.sha256",
        code=put(provenance / "code.json", CLEAN),
        hardware=put(provenance / "hardware.json", MACHINE),
        logs=tuple(logs),
    )


def unticked(evidence: Evidence) -> dict[str, str]:
    return {item.name: "; ".join(item.missing) for item in checklist(evidence) if not item.ticked}


def test_complete_evidence_ticks_all_seven(evidence):
    items = checklist(evidence)
    assert tuple(item.name for item in items) == NAMES
    assert [item.missing for item in items] == [()] * 7
    for item in items:
        assert item.evidence
        for name, digest in item.evidence.items():
            assert digest == sha256(evidence.root / name)


@pytest.mark.parametrize(
    "name, file",
    [
        (SEEDS, "results/provenance/seeds.json"),
        (SEEDS, "results/s/e/a/seed-3/run.json"),
        (SEEDS, "results/s/e/a/seed-3/evaluation.json"),
        (CONFIGURATION, "results/provenance/configuration.yaml"),
        (CONFIGURATION, "studies/s.yaml"),
        (ENVIRONMENT, "requirements.lock"),
        (ENVIRONMENT, "results/provenance/software.json"),
        (DATA, "results/provenance/content.json"),
        (DATA, "results/provenance/checksums.sha256"),
        (DATA, "results/s/e/a/seed-3/episodes.parquet"),
        (CODE, "results/provenance/code.json"),
        (HARDWARE, "results/provenance/hardware.json"),
        (LOGS, "results/logs/s/e/a/seed-3/training.log"),
    ],
)
def test_a_file_that_is_missing_or_empty_unticks_its_item_alone(evidence, name, file):
    for gap in ("missing", "empty"):
        if gap == "missing":
            (evidence.root / file).unlink()
        else:
            (evidence.root / file).write_text("")
        found = unticked(evidence)
        assert set(found) == {name}
        assert file in found[name]


@pytest.mark.parametrize(
    "name, file, change, says",
    [
        (SEEDS, "seeds.json", lambda d: d["s"]["cells"][0]["seeds"].append(4), "[0, 1, 2, 3, 4]"),
        (SEEDS, "seeds.json", lambda d: d["s"]["cells"].append(CELL | {"algorithm": "b"}), "s/e/b"),
        (SEEDS, "seeds.json", lambda d: d["s"]["cells"].clear(), "s/e/a ran"),
        (SEEDS, "seeds.json", lambda d: d.clear(), "names no study"),
        (SEEDS, RUN, lambda d: d.update(seeds=[2]), "training jobs"),
        (ENVIRONMENT, "software.json", lambda d: d["packages"].update(numpy="2.4.5"), "2.4.5"),
        (ENVIRONMENT, "software.json", lambda d: d.update(packages={}), "records no version"),
        (ENVIRONMENT, RUN,
         lambda d: d["software"]["packages"].update(torch="2.12.0+cpu"), "seed-3/run.json"),
        (DATA, "content.json", lambda d: d["s"]["e"].update(question_bank="abc"), "question_bank"),
        (DATA, "content.json", lambda d: d["s"].clear(), "lacks s/e"),
        (CODE, "code.json", lambda d: d.update(dirty=True, changes=["x.py"]), "uncommitted changes"),
        (CODE, "code.json", lambda d: d.update(commit=None, reason="no git"), "no git"),
        (CODE, RUN, lambda d: d["code"].update(dirty=True), "1 jobs"),
        (CODE, RUN,
         lambda d: d["code"].update(commit=None, reason="no git"), "run.json has no commit: no git"),
        (HARDWARE, "hardware.json", lambda d: d.update(cpu=None), "does not know cpu"),
        (HARDWARE, RUN, lambda d: d["hardware"].update(gpus=None), "does not know gpus"),
    ],
)  # fmt: skip
def test_evidence_that_disagrees_unticks_its_item_alone(evidence, name, file, change, says):
    edit(evidence.root / "results/provenance" / file, change)
    found = unticked(evidence)
    assert set(found) == {name}
    assert says in found[name]


def test_a_changed_result_unticks_the_checksums(evidence):
    put(evidence.root / "results/s/e/a/seed-3/episodes.parquet", "other")
    assert set(unticked(evidence)) == {DATA}


@pytest.mark.parametrize("line", ["numpy>=2", "numpy", "-r x.txt\nnumpy==2.*", "git+https://host/x"])
def test_a_lock_pins_exact_versions(evidence, line):
    put(evidence.root / "requirements.lock", f"torch==2.13.0\n{line}\n")
    assert set(unticked(evidence)) == {ENVIRONMENT}


def test_nothing_named_is_nothing_proved(evidence):
    empty = dataclasses.replace(evidence, logs=(), studies=())
    assert set(unticked(empty)) == {LOGS, CONFIGURATION}


@pytest.mark.parametrize("content", ["[1, 2]", "{", '{"a": 1}', "null", "\0"])
def test_damaged_evidence_never_raises(evidence, content):
    for file in (evidence.seeds, evidence.content, evidence.code, evidence.hardware, evidence.software):
        put(file, content)
    for file in evidence.runs:
        put(file, content)
    assert set(unticked(evidence)) >= set(NAMES) - {CONFIGURATION, LOGS}


def test_without_anything_no_item_is_ticked(evidence):
    shutil.rmtree(evidence.root)
    assert set(unticked(evidence)) == set(NAMES)


def test_jobs_of_an_earlier_commit_are_named(evidence):
    edit(evidence.runs[0], lambda d: d["code"].update(commit="b" * 40))
    (item,) = (item for item in checklist(evidence) if item.name == CODE)
    assert item.ticked
    assert "b" * 40 in item.note


def test_renderings(evidence):
    (evidence.root / "results/logs/s/e/a/seed-3/training.log").unlink()
    items = checklist(evidence)
    document = json.loads(json.dumps(as_json(items)))
    assert [entry["ticked"] for entry in document] == [True] * 6 + [False]
    page = as_markdown(items)
    assert page.count("- [x] **") == 6
    assert "- [ ] **Complete logs**\n    - missing: results/logs/s/e/a/seed-3/training.log is missing" in page
    assert f"`requirements.lock` SHA-256 `{sha256(evidence.lock)}`" in page


def test_long_lists_are_cut_on_the_page_and_whole_in_json(evidence):
    logs = tuple(Path(f"results/logs/{i}.log") for i in range(100))
    items = checklist(dataclasses.replace(evidence, logs=logs))
    assert "and 96 more gaps, all in checklist.json" in as_markdown(items)
    assert len(as_json(items)[-1]["missing"]) == 100


def test_the_plan_of_seeds_lists_the_cells_that_run():
    study = SimpleNamespace(
        name="s",
        seeds=[0, 1],
        pilot_seeds=[9],
        environments={"e": None, "f": None},
        algorithms_in=lambda environment: {"a": None} if environment == "e" else {"a": None, "b": None},
        seeds_in=lambda environment: [0, 1] if environment == "e" else [1],
    )
    cells = [
        {"environment": "e", "algorithm": "a", "seeds": [0, 1]},
        {"environment": "f", "algorithm": "a", "seeds": [1]},
        {"environment": "f", "algorithm": "b", "seeds": [1]},
    ]
    assert seed_plan([study]) == {"s": {"seeds": [0, 1], "pilot_seeds": [9], "cells": cells}}
