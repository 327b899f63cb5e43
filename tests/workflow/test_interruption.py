"""Ctrl-C and kill -9 in mid training: the next run ends in the right result, and nothing is half-written."""

import os
import signal
import time
from pathlib import Path

import pytest


def wait_for_training(checkout, process):
    """Until a training job is at work; its process ids."""
    for _ in range(600):
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    command = Path(f"/proc/{entry}/cmdline").read_text()
                    folder = os.readlink(f"/proc/{entry}/cwd")
                except OSError:
                    continue
                if "workflow_scripts/train.py" in command and folder == str(checkout.folder):
                    found.append(int(entry))
        if found:
            return found
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.1)
    raise AssertionError("no training began")


def partial(checkout):
    return [name for name in checkout.files() if name.endswith(".partial")]


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_run_is_completed_by_the_next(finished, checkout, how):
    target = "small_scores"
    process = checkout.start(target)
    wait_for_training(checkout, process)
    time.sleep(1)
    os.killpg(process.pid, how)
    process.communicate()
    again = checkout.snakemake(target)
    if how == signal.SIGKILL:
        assert "LockException" in again.stdout
        assert checkout.snakemake("--unlock").returncode == 0
        again = checkout.snakemake(target)
    assert again.returncode == 0, again.stdout
    name = "results/small/scores.parquet"
    assert (checkout.folder / name).read_bytes() == (finished.folder / name).read_bytes()
    assert partial(checkout) == []


def test_second_run_beside_the_first_is_refused(checkout):
    process = checkout.start("small_policies")
    wait_for_training(checkout, process)
    beside = checkout.snakemake("small_policies", "--nolock")
    assert beside.returncode != 0
    assert "already running" in beside.stdout
    os.killpg(process.pid, signal.SIGINT)
    process.communicate()
