"""The lock of a run: it ends with its process, whatever ends the process, and says who has it."""

import os
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from seedbed.provenance import run_lock

SOURCE = str(Path(run_lock.__file__).parent)
HOLD = f"import sys; sys.path.insert(0, {SOURCE!r}); import run_lock; run_lock.hold('.snakemake/run.lock')"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout in which a killed run left Snakemake's lock."""
    (tmp_path / ".snakemake/locks").mkdir(parents=True)
    (tmp_path / ".snakemake/locks/0.output.lock").write_text("results/report/paper.pdf\n")
    return tmp_path


def start(root: Path, code: str) -> subprocess.Popen[str]:
    """A process in `root` that has run `code`, and then waits to be ended."""
    code += "; print('ready', flush=True); sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    return process


def end(process: subprocess.Popen[str], how: signal.Signals = signal.SIGKILL) -> None:
    process.send_signal(how)
    process.communicate(timeout=10)


def test_a_second_run_is_refused_and_told_by_whom(root: Path) -> None:
    first = start(root, HOLD)
    try:
        with pytest.raises(run_lock.RunInProgress) as refused:
            run_lock.hold(root / run_lock.RUN_LOCK)
        assert f"process {first.pid} on {socket.gethostname()}" in str(refused.value)
        assert str(root) in str(refused.value)
    finally:
        end(first)


def test_a_killed_run_holds_nothing(root: Path) -> None:
    end(start(root, HOLD))
    end(start(root, HOLD))  # would fail before it is ready


def test_holding_twice_in_one_process_is_holding_once(root: Path) -> None:
    end(start(root, f"{HOLD}; run_lock.hold('.snakemake/run.lock')"))


def test_a_job_that_outlives_its_run_keeps_nobody_out(root: Path) -> None:
    sleeper = (
        "import subprocess; child = subprocess.Popen(['sleep', '60'], stdout=subprocess.DEVNULL); "
        "print(child.pid, file=open('child', 'w'))"
    )
    end(start(root, f"{HOLD}; {sleeper}"))
    try:
        end(start(root, HOLD))
    finally:
        os.kill(int((root / "child").read_text()), signal.SIGKILL)


def test_a_run_that_ended_leaves_no_record(root: Path) -> None:
    process = start(root, HOLD)
    process.communicate(timeout=10)
    assert process.returncode == 0
    assert (root / run_lock.RUN_LOCK).read_text() == ""


def test_the_lock_of_a_killed_run_is_removed(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    end(start(root, HOLD))
    run_lock.release_stale(root)
    assert not (root / ".snakemake/locks").exists()
    assert "removed the lock of a run that was killed" in capsys.readouterr().err
    run_lock.release_stale(root)
    assert capsys.readouterr().err == ""


def test_the_lock_of_a_live_run_stays(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = start(root, HOLD)
    try:
        run_lock.release_stale(root)
        assert (root / ".snakemake/locks/0.output.lock").exists()
        assert f"process {first.pid}" in capsys.readouterr().err
    finally:
        end(first)


def test_the_lock_of_another_host_stays(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / run_lock.RUN_LOCK).write_text("12 elsewhere.example 2026-01-01 00:00:00\n")
    run_lock.release_stale(root)
    assert (root / ".snakemake/locks/0.output.lock").exists()
    message = capsys.readouterr().err
    assert "elsewhere.example" in message
    assert "--unlock" in message


@pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="orphans are found in /proc")
def test_jobs_of_a_killed_run_are_named_and_live_on(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = root / "workflow_scripts/train policies.py"
    script.parent.mkdir()
    script.write_text("print('ready', flush=True)\nimport sys\nsys.stdin.read()\n")
    # As a job is: a shell around a script.
    call = f"{shlex.quote(sys.executable)} 'workflow_scripts/train policies.py'; true"
    job = subprocess.Popen(
        ["bash", "-c", call], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        job.stdout.readline()
        run_lock.release_stale(root)
        survivors = run_lock.orphans(root)
        assert len(survivors) == 1  # the script, not the shell around it
        pid, command = survivors[0]
        assert pid != job.pid
        assert command.endswith("workflow_scripts/train policies.py")
        assert f"process {pid}: {command}" in capsys.readouterr().err
        assert job.poll() is None
    finally:
        job.communicate(timeout=10)
    assert run_lock.orphans(root) == []


SNAKEFILE = """
from seedbed.provenance import run_lock
onstart:
    run_lock.hold()
rule all:
    input: "a.txt"
rule wait:
    output: "{name}.txt"
    shell: "touch {wildcards.name}.started; while [ -e wait ]; do sleep 0.05; done; touch {output}"
"""


@pytest.mark.slow
def test_snakemake_itself_is_kept_out_and_a_killed_one_is_cleared_away(tmp_path: Path) -> None:
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    (tmp_path / "wait").touch()
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--rerun-incomplete"]
    options = {"cwd": tmp_path, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    first = subprocess.Popen(command, **options)
    try:
        while not (tmp_path / "a.started").exists():
            assert first.poll() is None, first.stdout.read()
        other = subprocess.run([*command, "b.txt"], **options)  # other files: Snakemake itself lets it pass
        assert other.returncode == 1
        assert f"already running in {tmp_path}: process {first.pid}" in other.stdout
        assert not (tmp_path / "b.started").exists()
    finally:
        first.kill()
        (tmp_path / "wait").unlink()
        first.communicate(timeout=30)
    (tmp_path / ".snakemake/locks").mkdir(exist_ok=True)  # the refused one took all lock files with it
    (tmp_path / ".snakemake/locks/0.output.lock").write_text("a.txt\n")
    blocked = subprocess.run(command, **options)
    assert "Directory cannot be locked" in blocked.stdout
    run_lock.release_stale(tmp_path)
    again = subprocess.run(command, **options)
    assert again.returncode == 0, again.stdout
