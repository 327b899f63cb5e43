"""Secret evaluations by their verb: the steps in order, each refusing what cannot be."""

import json
import subprocess
import sys

import pytest

from seedbed.artifacts import SeedbedError
from seedbed.generalized.isolation import isolation

try:
    isolation()
except SeedbedError as error:
    pytest.skip(str(error), allow_module_level=True)

REQUEST = "sampler: {domains: [mountain_car]}\ntuning: 1\ntest: 2\nplan: {steps: 60, draws: 100}\n"


@pytest.fixture
def held(tmp_path):
    """``secret(STEP, ...)`` in a contest of two agents that repeat an action."""
    (tmp_path / "contest/sealed").mkdir(parents=True)
    (tmp_path / "contest/sealed/contest.yaml").write_text(REQUEST)
    for action in (0, 2):
        (tmp_path / f"always-{action}").mkdir()
        script = f"while read -r line; do echo {action}; done"
        content = {"command": ["sh", "-c", script]}
        (tmp_path / f"always-{action}/agent.json").write_text(json.dumps(content))

    def secret(*arguments):
        command = [sys.executable, "-m", "seedbed.cli", "secret", arguments[0], "contest", *arguments[1:]]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    return secret


def test_the_steps_in_order_and_a_bit_that_was_changed(held, tmp_path):
    early = held("evaluate")
    assert early.returncode == 1
    assert early.stderr.startswith("Error: ")
    sealed = held("seal")
    assert sealed.returncode == 0, sealed.stderr
    assert len(sealed.stdout.strip()) == 64
    assert held("seal").stdout == sealed.stdout  # what is sealed stays
    for step in (
        ("release_tuning",),
        ("freeze", "--agents", "always-0", "always-2"),
        ("evaluate",),
        ("reveal",),
        ("verify", "--reruns", "-1"),
    ):
        run = held(*step)
        assert run.returncode == 0, (step, run.stderr)
    assert "everything holds; 4 trials were run again" in run.stderr
    results = tmp_path / "contest/public/results.json"
    results.write_bytes(results.read_bytes().replace(b"-60.0", b"-59.0", 1))
    run = held("verify")
    assert run.returncode == 1
    assert "results.json" in run.stdout
