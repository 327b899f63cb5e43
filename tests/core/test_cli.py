"""The verbs: thin faces that say what they found and exit accordingly."""

import subprocess
import sys
from pathlib import Path

import pytest

from seedbed.provenance.checksums import write_checksums

ROOT = Path(__file__).parents[2]


def seedbed(*arguments, **options):
    command = [sys.executable, "-m", "seedbed.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, **options)


def test_schema_of_the_configuration_is_the_committed_one():
    expected = (ROOT / "config.schema.json").read_text()
    assert seedbed("schema").stdout == expected, "run: seedbed schema > config.schema.json"


@pytest.fixture
def listed(tmp_path):
    """Two files and their checksums."""
    (tmp_path / "results").mkdir()
    for name in ("a.parquet", "b.json"):
        (tmp_path / "results" / name).write_text(name)
    write_checksums(tmp_path / "sums", ["results/a.parquet", "results/b.json"], tmp_path)
    return tmp_path


def test_verify_accepts_what_is_unchanged(listed):
    run = seedbed("verify", "--checksums", listed / "sums", "--root", listed)
    assert run.returncode == 0
    assert run.stdout == ""
    assert "all 2 files are as their checksums say" in run.stderr


def test_verify_names_what_differs(listed):
    (listed / "results/a.parquet").write_text("tampered")
    (listed / "results/b.json").unlink()
    run = seedbed("verify", "--checksums", listed / "sums", "--root", listed)
    assert run.returncode == 1
    assert run.stdout.splitlines() == [
        "results/a.parquet is not the file whose checksum was taken",
        "results/b.json is missing",
    ]


def test_errors_are_messages(tmp_path):
    run = seedbed("verify", "--checksums", tmp_path / "nothing")
    assert run.returncode == 1
    assert run.stderr.startswith("Error: ")
    assert "Traceback" not in run.stderr
    run = seedbed("trace", "x", "--results", tmp_path)
    assert run.returncode == 1
    assert "trace.json is missing" in run.stderr
    assert seedbed("nonsense").returncode == 2
