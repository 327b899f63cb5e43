"""Audits: each planted fault is found by the check that is for it, and clean environments pass."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from seedbed.artifacts import SeedbedError
from seedbed.auditing.audit import CHECKS, audit
from seedbed.auditing.subject import Subject
from seedbed.environments.gymnasium_env import DynamicsVectorEnv

ROOT, HERE = Path(__file__).parents[2], Path(__file__).parent
WALK = {"success": "away"}
FAULTS = {
    "RaisesForAnAction": {"episodes"},
    "hidden_limit": {"episodes"},
    "RewardThatIsNoNumber": {"finite numbers"},
    "OutsideItsSpace": {"observation space"},
    "WholeNumbersAsFlags": {"rewards and flags"},
    "SharedBuffer": {"returned arrays", "gymnasium checker"},
    "RingOfBuffers": {"returned arrays"},
    "ChangesItsAction": {"returned arrays"},
    "GeneratorOfItsOwn": {"gymnasium checker"},
    "IgnoresItsSeed": {"equal seeds", "gymnasium checker"},
    "ReadsTheClock": {"equal seeds"},
    "DrawsGlobally": {"global generators"},
    "SeedsGlobally": {"global generators"},
    "Leaks": {"earlier episodes"},
    "LowBits": {"distinct seeds"},
    "merged_flags": {"step limit"},
    "SharedWorld": {"lanes"},
    "RankInItsSeed": {"processes"},
    "SeedsAnew": {"autoreset modes"},
    "OrderOfASet": {"fresh process"},
}
"""Planted fault -> the checks that do not hold."""
QUICK = [check for check in CHECKS if check.name != "fresh process"]


@pytest.fixture(autouse=True)
def _faulty_environments_can_be_imported(monkeypatch):
    monkeypatch.syspath_prepend(str(HERE))


def findings(name, arguments=WALK, checks=QUICK, episodes=10):
    return {found.check: found for found in audit(Subject(name, arguments, episodes), checks)}


def wrong(found):
    return {name for name, finding in found.items() if finding.holds is False}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_found_by_its_check_and_no_other(fault):
    checks = CHECKS if fault == "OrderOfASet" else QUICK
    found = findings(f"faulty_environments:{fault}", checks=checks)
    assert wrong(found) == FAULTS[fault]
    assert all(found[name].detail and found[name].remedy for name in FAULTS[fault])


def test_a_success_that_is_never_told_is_found():
    found = findings("faulty_environments:Walk", {"success": "won"})
    assert wrong(found) == {"success"}
    assert "no 'won'; booleans there: away" in found["success"].detail


def test_no_check_is_passed_by_everything():
    """Every check but the probe, which judges nothing, is what some planted fault alone breaks."""
    alone = {name for names in [*FAULTS.values(), {"success"}] if len(names) == 1 for name in names}
    assert alone == {check.name for check in CHECKS} - {"bias probe"}


def test_what_rests_on_a_check_that_fails_is_not_judged():
    found = findings("faulty_environments:ReadsTheClock")
    for check in CHECKS:
        if "equal seeds" in check.rests_on and check in QUICK:
            assert found[check.name].holds is None
            assert found[check.name].detail == "says nothing until 'equal seeds' holds"
    assert found["returned arrays"].holds


def test_a_clean_environment_passes_every_check():
    found = findings("faulty_environments:Walk")
    assert {name for name, finding in found.items() if finding.holds is not True} == {"bias probe"}


def test_a_deterministic_environment_is_no_fault_but_said():
    found = findings("faulty_environments:Certain")
    assert wrong(found) == set()
    assert found["distinct seeds"].holds is None
    assert "n_eff = 1" in found["distinct seeds"].detail


def test_too_few_different_episodes_are_no_verdict_on_seeds():
    finding = findings("faulty_environments:RarelyAnother")["distinct seeds"]
    assert finding.holds is None
    assert finding.detail == "2 different episodes from 64 seeds are too few to tell"


def test_the_probe_shows_the_bias_to_short_episodes():
    """The truth is .5 and 16.5 steps; what finishes first is short and fails."""
    said = findings("faulty_environments:HalfShort")["bias probe"].detail
    ours, naive = map(float, said.split("success rate ")[1].split(" and "))
    assert abs(ours - 0.5) < 4 * (0.25 / 40) ** 0.5, "within 4 standard errors"
    assert naive < 0.1


@pytest.mark.parametrize("name", ["CartPole", "MockInterview", "GoalGrid"])
def test_our_own_environments_pass(name):
    arguments = {"preset": "tiny"} if name == "MockInterview" else {}
    assert wrong(findings(name, arguments, episodes=4)) == set()


def vectors(num_envs, mode="Disabled"):
    """CartPole as a vector environment."""
    from seedbed.environments.cart_pole import CartPole

    return DynamicsVectorEnv(CartPole(), num_envs, mode)


@pytest.mark.parametrize(("mode", "expected"), [("Disabled", set()), ("NextStep", {"lanes"})])
def test_a_vector_environment_is_judged_by_how_it_resets(mode, expected):
    """One that begins its episodes by itself has others for another number of lanes."""
    found = findings("GymnasiumVector", {"id": vectors, "kwargs": {"mode": mode}})
    assert wrong(found) == expected
    assert "resets in mode" in found["returned arrays"].detail
    assert {name for name, finding in found.items() if finding.holds} >= {"episodes", "equal seeds"}


def command(*arguments):
    run = [sys.executable, "-m", "seedbed.cli", "audit", *arguments]
    return subprocess.run(run, capture_output=True, text=True, cwd=HERE, check=False)


def test_the_verb_prints_a_table_and_exits_by_what_it_found():
    run = command(
        "--environment", "faulty_environments:DrawsGlobally", "--environment-argument", "success=away"
    )
    assert run.returncode == 1
    assert "global generators  DOES NOT HOLD  " in run.stdout
    assert "-> Draw from self.np_random" in run.stdout
    assert run.stderr.splitlines()[-1] == "8 of 9 hold; these do not: global generators"


def test_the_verbs_json_has_stable_keys():
    run = command("--environment", "faulty_environments:Walk", "--episodes", "3", "--json")
    assert run.returncode == 0
    (only,) = run.stdout.splitlines()
    document = json.loads(only)
    assert list(document) == ["environment", "arguments", "episodes", "holds", "findings"]
    assert document["holds"] is True
    assert [finding["check"] for finding in document["findings"]] == [check.name for check in CHECKS]
    assert all(list(finding) == ["check", "holds", "detail", "remedy"] for finding in document["findings"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("CartPoll-v1", "There is no environment 'CartPoll-v1'"),
        ("no_such_module:Env", "cannot be found"),
        ("faulty_environments:Nothing", "no environment called 'Nothing'"),
        ("faulty_environments:MergedFlags", "cannot be made"),
    ],
)
def test_what_cannot_be_made_is_an_error(name, message):
    with pytest.raises(SeedbedError, match=message):
        list(audit(Subject(name, {}, 3)))


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_the_verb_names_each_fault(fault):
    run = command(
        "--environment", f"faulty_environments:{fault}", "--environment-argument", "success=away", "--json"
    )
    assert run.returncode == 1
    found = json.loads(run.stdout)["findings"]
    assert {finding["check"] for finding in found if finding["holds"] is False} == FAULTS[fault]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *("CartPole-v1", "Acrobot-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1"),
        *(
            "FrozenLake-v1",
            "Taxi-v4",
            "Blackjack-v1",
            "CliffWalking-v1",
            "CartPole",
            "MockInterview",
            "GoalGrid",
        ),
    ],
)
def test_the_verb_passes_clean_environments(name):
    limited = ["--environment-argument", "horizon=100"] if "-v" in name else []
    run = command("--environment", name, *limited)
    assert run.returncode == 0, run.stdout + run.stderr
