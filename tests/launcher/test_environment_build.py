"""When ./run builds its environment, and what an interruption, a move or a second ./run does to that."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # each builds at least one environment

BUILDING = "building the environment"


def start(checkout: Path, variables: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [checkout / "run"],
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A job in the background of a shell ignores it, and all that it starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.02)


def test_a_moved_checkout_is_built_anew(checkout: Path, tmp_path: Path, launch) -> None:
    assert launch(checkout).returncode == 0
    moved = checkout.rename(tmp_path / "moved elsewhere")
    result = launch(moved)
    assert BUILDING in result.stderr
    assert json.loads(result.stdout)["prefix"] == str(moved / ".venv")
    assert launch(moved).stderr == ""


def test_changed_requirements_are_installed_from_the_base(checkout: Path, launch, environment) -> None:
    assert launch(checkout).returncode == 0
    with open(checkout / "requirements.lock", "a") as lock:
        lock.write("# changed\n")
    active = f"{checkout}/.venv/bin{os.pathsep}{environment()['PATH']}"
    result = launch(checkout, env=environment(PATH=active, VIRTUAL_ENV=f"{checkout}/.venv"))
    assert result.returncode == 0, result.stderr
    assert BUILDING in result.stderr
    assert f"{checkout}/.venv/bin" not in (checkout / ".venv/pyvenv.cfg").read_text()


def test_a_changed_pyproject_keeps_the_packages(checkout: Path, launch) -> None:
    assert launch(checkout).returncode == 0
    with open(checkout / "pyproject.toml", "a") as project:
        project.write('description = "changed"\n')
    result = launch(checkout)
    assert result.returncode == 0
    assert BUILDING not in result.stderr
    assert "the environment is complete" in result.stderr


def test_a_pyproject_that_does_not_build_costs_no_package(checkout: Path, launch) -> None:
    assert launch(checkout).returncode == 0
    good = (checkout / "pyproject.toml").read_text()
    (checkout / "pyproject.toml").write_text("[project\n")
    result = launch(checkout)
    assert result.returncode == 1
    assert "installing Seedbed itself failed" in result.stderr
    (checkout / "pyproject.toml").write_text(good)
    result = launch(checkout)
    assert result.returncode == 0
    assert BUILDING not in result.stderr


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_build_is_made_anew(checkout: Path, how: signal.Signals, launch, environment) -> None:
    (checkout / "wait").touch()
    first = start(checkout, environment())
    wait_for(checkout / "building")
    os.killpg(first.pid, how)
    _, messages = first.communicate(timeout=30)
    assert first.returncode == (-signal.SIGKILL if how == signal.SIGKILL else 130)
    assert how == signal.SIGKILL or "interrupted" in messages
    (checkout / "wait").unlink()
    result = launch(checkout)
    assert result.returncode == 0, result.stderr
    assert "the environment is complete" in result.stderr
    assert launch(checkout).stderr == ""


def test_a_build_that_outlives_its_launcher_is_waited_for(checkout: Path, launch, environment) -> None:
    (checkout / "wait").touch()
    first = start(checkout, environment())
    wait_for(checkout / "building")
    first.kill()  # the launcher alone: pip goes on and keeps the lock
    second = start(checkout, environment())
    assert "waiting for another ./run" in second.stderr.readline()
    (checkout / "wait").unlink()
    first.communicate(timeout=30)
    second.communicate(timeout=60)
    assert second.returncode == 0
    assert launch(checkout).stderr == ""


def test_pips_settings_do_not_move_the_packages(checkout: Path, tmp_path: Path, launch, environment) -> None:
    result = launch(checkout, env=environment(PIP_USER="1", PIP_TARGET=str(tmp_path / "elsewhere")))
    assert result.returncode == 0, result.stderr
    assert not (tmp_path / "elsewhere").exists()


def test_a_half_removed_environment_is_not_taken_for_whole(checkout: Path, launch) -> None:
    assert launch(checkout).returncode == 0
    for stamp in (checkout / ".venv").glob("*.stamp"):
        stamp.unlink()
    shutil.rmtree(checkout / ".venv/bin")
    assert BUILDING in launch(checkout).stderr


def test_an_environment_whose_python_is_gone_is_built_anew(checkout: Path, launch) -> None:
    assert launch(checkout).returncode == 0
    for program in (checkout / ".venv/bin").glob("python*"):
        program.unlink()
        program.symlink_to("/nowhere/python")
    result = launch(checkout)
    assert result.returncode == 0, result.stderr
    assert BUILDING in result.stderr


def test_two_at_once_build_once(checkout: Path, environment) -> None:
    runs = [start(checkout, environment()), start(checkout, environment())]
    results = [run.communicate(timeout=120) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], results
    assert sum(BUILDING in messages for _, messages in results) == 1


def test_an_environment_in_use_is_not_rebuilt(checkout: Path, launch, environment) -> None:
    """A run that still works keeps its packages; the rebuild waits for its end."""
    assert launch(checkout).returncode == 0
    program = next((checkout / ".venv").glob("lib/python3*/site-packages/programs.py"))
    program.write_text(
        "import pathlib, time\n"
        "def report():\n"
        "    pathlib.Path('working').touch()\n"
        "    while pathlib.Path('work').exists(): time.sleep(0.02)\n"
        "    import programs\n"
    )
    (checkout / "work").touch()
    first = start(checkout, environment())
    wait_for(checkout / "working")
    with open(checkout / "requirements.lock", "a") as lock:
        lock.write("# changed\n")
    second = start(checkout, environment())
    assert "waiting for another ./run" in second.stderr.readline()
    assert program.exists()
    (checkout / "work").unlink()
    first.communicate(timeout=30)
    _, messages = second.communicate(timeout=60)
    assert (first.returncode, second.returncode) == (0, 0)
    assert BUILDING in messages
