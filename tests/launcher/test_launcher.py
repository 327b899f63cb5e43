"""./run: what it starts, where it works from, and what it says when something is missing."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def report(result: subprocess.CompletedProcess[str]) -> dict:
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


QUIET = ["--quiet", "rules"]


@pytest.mark.parametrize(
    "arguments, passed",
    [
        ([], ["--cores", "all", *QUIET]),
        (["-n"], ["--cores", "all", "-n"]),
        (["--quiet", "all"], ["--cores", "all", "--quiet", "all"]),
        (["--config", "preset=paper"], ["--cores", "all", "--config", "preset=paper", *QUIET]),
        (["interview_figures"], ["--cores", "all", "interview_figures", *QUIET]),
        (["--config", "name=two words"], ["--cores", "all", "--config", "name=two words", *QUIET]),
        (["--cores", "8", "--profile", "slurm"], ["--cores", "8", "--profile", "slurm", *QUIET]),
        (["--profile", "slurm"], ["--profile", "slurm", *QUIET]),
        (["-c4"], ["-c4", *QUIET]),
        (["--cores=3", "-n"], ["--cores=3", "-n"]),
        (["-j", "2"], ["-j", "2", *QUIET]),
    ],
)
def test_arguments_reach_snakemake(built: Path, arguments: list[str], passed: list[str], launch) -> None:
    call = report(launch(built, *arguments))
    assert (call["program"], call["arguments"]) == ("snakemake", passed)


def test_test_is_pytest(built: Path, launch) -> None:
    call = report(launch(built, "test", "-m", "slow"))
    assert (call["program"], call["arguments"], call["threads"]) == ("pytest.py", ["-m", "slow"], "1")


def launcher_verbs() -> list[str]:
    return re.search(r'^verbs="(.*)"', (ROOT / "run").read_text(), re.MULTILINE).group(1).split()


def test_verbs_are_the_command_line_tools(built: Path, launch) -> None:
    for verb in launcher_verbs():
        call = report(launch(built, verb, "--some", "a b"))
        assert (call["program"], call["arguments"]) == ("seedbed", [verb, "--some", "a b"])


def test_the_launcher_knows_every_verb() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "seedbed.cli", "--help"],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    verbs = re.findall(r"^    ([a-z][a-z-]*)(?:  |$)", shown.stdout, re.MULTILINE)
    assert sorted(launcher_verbs()) == sorted(verbs), (
        "the list `verbs` in ./run is to be that of the command line"
    )


def test_no_rule_is_called_as_a_verb() -> None:
    rules = [
        name
        for file in (ROOT / "Snakefile", *(ROOT / "rules").glob("*.smk"))
        for name in re.findall(r"^\s*(?:rule|checkpoint)\s+(\w+):", file.read_text(), re.MULTILINE)
    ]
    assert rules
    assert not set(rules) & {"test", *(verb.replace("-", "_") for verb in launcher_verbs())}


def test_works_from_anywhere_and_through_a_link(built: Path, tmp_path: Path, environment) -> None:
    link = tmp_path / "seedbed run"
    link.symlink_to(built / "run")
    for program in (built / "run", link):
        result = subprocess.run(
            [program, "-n"],
            cwd=tmp_path,
            env=environment(CDPATH="/"),
            capture_output=True,
            text=True,
            check=False,
        )
        call = report(result)
        assert call["cwd"] == str(built)
        assert call["prefix"] == str(built / ".venv")
        assert call["first_in_path"] == str(built / ".venv/bin")


def test_foreign_python_settings_do_not_reach_the_run(built: Path, launch, environment) -> None:
    call = report(launch(built, env=environment(PYTHONPATH="/nowhere", PYTHONHOME="/nowhere")))
    assert call["pythonpath"] is None


def test_a_second_call_builds_nothing(built: Path, launch) -> None:
    assert launch(built, "-n").stderr == ""


def test_help_needs_no_environment(checkout: Path, launch, environment) -> None:
    result = launch(checkout, "--help", env=environment(PATH="/usr/bin:/bin"))
    assert result.returncode == 0
    assert "./run test" in result.stdout
    assert not (checkout / ".venv").exists()


def tools_without_python(folder: Path) -> str:
    folder.mkdir()
    names = "bash env readlink dirname cat cmp sed head tail mkdir df awk grep rm cp tee"
    for name in names.split():
        (folder / name).symlink_to(shutil.which(name))
    return str(folder)


def test_without_python_it_says_what_to_install(checkout: Path, tmp_path: Path, launch, environment) -> None:
    path = tools_without_python(tmp_path / "tools")
    result = launch(checkout, env=environment(PATH=path))
    assert result.returncode == 1
    assert "no Python 3.11 or newer found in PATH" in result.stderr
    assert not (checkout / ".venv").exists()


def test_pythons_that_do_not_serve_are_named(checkout: Path, tmp_path: Path, launch, environment) -> None:
    path = tools_without_python(tmp_path / "tools")
    found = {"python3.12": "pyenv: python3.12: command not found", "python3": "is version 3.9"}
    for name, message in found.items():
        program = Path(path, name)
        program.write_text(f"#!/usr/bin/env bash\necho '{message}' >&2\nexit 127\n")
        program.chmod(0o755)
    result = launch(checkout, env=environment(PATH=path))
    assert result.returncode == 1
    assert f"{path}/python3.12: pyenv: python3.12: command not found" in result.stderr
    assert f"{path}/python3: is version 3.9" in result.stderr


def test_a_folder_that_cannot_be_written_is_named(checkout: Path, launch) -> None:
    (checkout / ".snakemake").write_text("in the way, for root too")
    result = launch(checkout)
    assert result.returncode == 1
    assert f"cannot write in {checkout}/.snakemake" in result.stderr


def test_an_incomplete_checkout_is_named(checkout: Path, launch) -> None:
    (checkout / "requirements.lock").unlink()
    result = launch(checkout)
    assert result.returncode == 1
    assert "no complete checkout" in result.stderr


def test_without_network_it_says_so_and_leaves_nothing(checkout: Path, launch, environment) -> None:
    (checkout / "requirements.lock").write_text("a-package-of-the-index==1\n")
    result = launch(checkout, env=environment(PIP_NO_INDEX="1"))
    assert result.returncode == 1
    assert "pip could not get a package" in result.stderr
    assert "Is there a network" in result.stderr
    assert not (checkout / ".venv").exists()


def test_without_disk_it_says_so_and_leaves_nothing(checkout: Path, tmp_path: Path, launch) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", small], capture_output=True
    )
    if not mounted or mounted.returncode != 0:
        pytest.skip("a full disk is made with a small tmpfs, and this user may not mount one")
    try:
        copy = small / "checkout"
        shutil.copytree(checkout, copy)
        result = launch(copy)
        assert result.returncode == 1
        assert "no space left" in result.stderr
        assert str(copy) in result.stderr
        assert not (copy / ".venv").exists()
    finally:
        subprocess.run(["umount", small], check=True)
