"""``sha256sum -c`` judges the format; files that a rerun must repeat are told from those that it cannot."""

import os
import shutil
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seedbed.artifacts import ArtifactError
from seedbed.provenance.checksums import (
    is_deterministic,
    read_checksums,
    result_files,
    verify,
    write_checksums,
    write_deterministic,
)

UGLY = [
    *(
        "plain",
        "with space",
        " lead",
        "*star",
        "-dash",
        "quote'\"",
        "tab\t",
        "é",
        "back\\slash",
        "a\\n",
        "\\",
    ),
    *("trailing\\", "new\nline", "\n", "return\rhere", b"\xff\xfe".decode("utf-8", "surrogateescape")),
]


def fill(root, names) -> list:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.fsencode(name))
    return [root / name for name in names]


@pytest.mark.skipif(not shutil.which("sha256sum"), reason="the judge, GNU sha256sum, is not installed")
def test_sha256sum_accepts_and_writes_the_same(tmp_path):
    root = tmp_path / "root"
    names = sorted((f"results/{name}" for name in UGLY), key=os.fsencode)
    write_checksums(tmp_path / "sums", fill(root, names), root)
    run = subprocess.run(["sha256sum", "-c", "--strict", "--quiet", tmp_path / "sums"], cwd=root, check=False)
    assert run.returncode == 0
    written = subprocess.run(["sha256sum", "--", *names], cwd=root, capture_output=True, check=True).stdout
    assert (tmp_path / "sums").read_bytes() == written
    (root / names[0]).write_text("changed")
    run = subprocess.run(["sha256sum", "-c", "--status", tmp_path / "sums"], cwd=root, check=False)
    assert run.returncode == 1


FILE_NAMES = st.text(
    st.characters(blacklist_characters="/\0", blacklist_categories=["Cs"]), min_size=1
).filter(lambda name: name not in (".", "..") and len(name.encode()) < 250)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sets(FILE_NAMES, min_size=1, max_size=4))
def test_any_file_name_comes_back(tmp_path, names):
    root = tmp_path / "root"
    shutil.rmtree(root, ignore_errors=True)
    write_checksums(tmp_path / "sums", fill(root, names), root)
    assert set(read_checksums(tmp_path / "sums")) == names
    assert verify(tmp_path / "sums", root, os.listdir(root)) == []


def test_order_and_way_of_naming_do_not_matter(tmp_path):
    files = fill(tmp_path, ["results/b", "results/a"])
    write_checksums(tmp_path / "one", files, tmp_path)
    write_checksums(tmp_path / "two", ["results/a", "results/./b", "results/a"], tmp_path)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_missing_changed_and_extra_files_are_found(tmp_path):
    fill(tmp_path, ["results/a", "results/b", "results/c", "results/d"])
    write_checksums(tmp_path / "sums", ["results/a", "results/b", "results/c"], tmp_path)
    (tmp_path / "results/a").unlink()
    (tmp_path / "results/b").write_text("changed")
    problems = verify(tmp_path / "sums", tmp_path, result_files(tmp_path))
    assert [(problem.kind, problem.path) for problem in problems] == [
        ("missing", "results/a"),
        ("changed", "results/b"),
        ("extra", "results/d"),
    ]


def test_files_outside_the_project_and_missing_files_are_refused_and_nothing_is_written(tmp_path):
    root = tmp_path / "root"
    fill(root, ["a"])
    fill(tmp_path, ["outside"])
    for file in ("../outside", tmp_path / "outside", "absent"):
        with pytest.raises(ArtifactError, match=r"outside|absent"):
            write_checksums(root / "sums", ["a", file], root)
    assert os.listdir(root) == ["a"]


@pytest.mark.parametrize("line", ["nonsense", "ab  file", "0" * 64 + " file", "\\" + "0" * 64 + "  a\\x"])
def test_malformed_lines_are_named(tmp_path, line):
    (tmp_path / "sums").write_text(f"{'0' * 64}  good\n{line}\n")
    with pytest.raises(ArtifactError, match="line 2"):
        read_checksums(tmp_path / "sums")


def test_a_missing_list_is_named(tmp_path):
    with pytest.raises(ArtifactError, match="sums cannot be read"):
        verify(tmp_path / "sums", tmp_path)


BLOCK = "results/study/environment/ppo/seeds-0-3"


@pytest.mark.parametrize(
    "path, expected",
    [
        *((f"{BLOCK}/{name}", True) for name in (
            "policy.safetensors", "curve.parquet", "training.parquet", "episodes.parquet", "steps.parquet",
            "scores.parquet", "diagnostics.parquet", "curve_scores.parquet")),
        *((f"{BLOCK}/{name}", False) for name in ("run.json", "evaluation.json", "costs.parquet")),
        ("results/study/costs.parquet", False),
        ("results/study/tables/costs.tex", False),
        ("results/study/tables/summary.tex", True),
        ("results/study/statistics/comparisons.parquet", True),
        ("results/study/figures/curves.pdf", True),
        ("results/study/figures/curves.svg", True),
        ("results/report/trace.json", False),
        *((f"results/report/{name}", False) for name in ("paper.md", "paper.tex", "paper.pdf", "index.html")),
        *((f"results/provenance/{name}", False) for name in (
            "hardware.json", "software.json", "code.json", "checksums.sha256", "deterministic.sha256",
            "checklist.md", "checklist.json", "report_inputs.sha256", "ro-crate-metadata.json")),
        *((f"results/provenance/{name}", True) for name in (
            "configuration.yaml", "content.json", "seeds.json")),
        (f"results/logs/{BLOCK[8:]}/train.log", False),
        (f"results/logs/{BLOCK[8:]}/train.benchmark.tsv", False),
        ("results/study/environment/logs/seed-7/scores.parquet", True),
        ("results/study/environment/costs/seed-7/scores.parquet", True),
        ("results/study/environment/report/seed-7/curve.parquet", True),
    ],
)  # fmt: skip
def test_what_must_be_equal_on_a_rerun(path, expected):
    assert is_deterministic(path) is expected


def test_the_deterministic_list_is_a_part_of_all_checksums(tmp_path):
    names = ["results/s/scores.parquet", "results/s/costs.parquet", "results/s/a\\b\n.csv"]
    write_checksums(tmp_path / "sums", fill(tmp_path, names), tmp_path)
    write_deterministic(tmp_path / "deterministic", tmp_path / "sums")
    whole = set((tmp_path / "sums").read_bytes().splitlines())
    part = set((tmp_path / "deterministic").read_bytes().splitlines())
    assert part < whole
    assert set(read_checksums(tmp_path / "deterministic")) == {names[0], names[2]}


def test_result_files_leave_out_logs_hidden_files_and_what_is_made_of_checksums(tmp_path):
    kept = ["results/provenance/seeds.json", "results/s/e/a/seed-1/run.json", "results/s/scores.parquet"]
    left = ["results/README.md", "results/logs/s/x.log", "results/provenance/checksums.sha256",
            "results/provenance/checklist.md", "results/s/.scores.parquet.12.partial",
            "results/s/.snakemake_timestamp", "README.md"]  # fmt: skip
    fill(tmp_path, kept + left)
    assert [str(path) for path in result_files(tmp_path)] == kept
