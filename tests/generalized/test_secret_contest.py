"""A secret evaluation from seal to verification: whatever is changed, at any step, is found and named."""

import json
import os
import shutil
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seedbed.artifacts import SeedbedError
from seedbed.generalized import contest, contest_verification, secret
from seedbed.generalized.contest_files import Contest, file_hash, text_of
from seedbed.generalized.contest_verification import verify
from seedbed.generalized.isolation import isolation

try:
    isolation()
except SeedbedError as error:
    pytest.skip(str(error), allow_module_level=True)

pytestmark = pytest.mark.slow
REQUEST = """
sampler: {domains: [mountain_car, puddle_world], noise_high: 0.25}
tuning: 2
test: 3
plan: {steps: 300, draws: 100}
"""
WANDERER = """
import random


class Agent:
    def __init__(self, environment, observations, actions, stay):
        self.random, self.actions, self.stay, self.action = random.Random(environment), actions, stay, 0

    def act(self, observation, reward, end):
        print("no action")
        if end or self.random.random() > self.stay:
            self.action = self.random.randrange(self.actions)
        return self.action
"""
PUSHER = {"command": ["sh", "-c", "while read -r line; do echo 2; done"]}
NAMES = ("commitment", "tuning", "freeze", "results", "reveal")


def make_contest(folder, request=REQUEST):
    (folder / "sealed").mkdir(parents=True)
    (folder / "sealed/contest.yaml").write_text(request)
    return folder


def make_agents(folder):
    wanderer, pusher = folder / "wanderer", folder / "pusher"
    wanderer.mkdir(parents=True)
    (wanderer / "wandering.py").write_text(WANDERER)
    content = {"agent": "wandering:Agent", "configuration": {"stay": 0.9}}
    (wanderer / "agent.json").write_text(json.dumps(content))
    pusher.mkdir()
    (pusher / "agent.json").write_text(json.dumps(PUSHER))
    return [wanderer, pusher]


@pytest.fixture(scope="module")
def agents(tmp_path_factory):
    return make_agents(tmp_path_factory.mktemp("agents"))


@pytest.fixture(scope="module")
def frozen(tmp_path_factory, agents):
    """A contest up to the freeze."""
    folder = make_contest(tmp_path_factory.mktemp("frozen") / "contest")
    contest.seal(folder)
    contest.release_tuning(folder)
    contest.freeze(folder, agents)
    return folder


@pytest.fixture(scope="module")
def held(tmp_path_factory, frozen):
    """A contest with all its steps."""
    folder = tmp_path_factory.mktemp("held") / "contest"
    shutil.copytree(frozen, folder)
    contest.evaluate(folder)
    contest.reveal(folder)
    return folder


@pytest.fixture
def copy(tmp_path, held):
    """A copy of the published part of a whole contest."""
    shutil.copytree(held / "public", tmp_path / "contest/public")
    return tmp_path / "contest"


@pytest.fixture
def started(tmp_path, frozen):
    """A copy of a contest up to the freeze."""
    shutil.copytree(frozen, tmp_path / "contest")
    return tmp_path / "contest"


def change(path, edit):
    """Edit a published file as somebody would who knows how it is written."""
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(text_of(content))


def test_an_honest_contest_holds_and_every_trial_comes_out_again(copy):
    result = verify(copy, None)
    assert result.findings == []
    assert result.rerun == [(agent, i) for agent in ("pusher", "wanderer") for i in range(3)]
    results = json.loads((copy / "public/results.json").read_text())
    assert [row["agent_x"] for row in results["comparisons"]] == ["pusher"]
    assert len({row["environment"] for row in results["trials"]}) == 3
    assert results["failures"] == []


def test_steps_done_again_change_nothing(held, agents):
    public = {path: path.read_bytes() for path in (held / "public").rglob("*.json")}
    contest.seal(held)
    contest.release_tuning(held)
    contest.freeze(held, agents)
    contest.evaluate(held)
    contest.reveal(held)
    assert {path: path.read_bytes() for path in (held / "public").rglob("*.json")} == public


def test_published_files_tell_nothing_before_the_reveal(held):
    document = json.loads((held / "sealed/seal.json").read_text())["document"]
    secrets = [document["master_seed"], json.loads((held / "sealed/seal.json").read_text())["nonce"]]
    secrets += [environment.hash for environment in secret.sealed_test_environments(document)]
    for name in NAMES[:-1]:
        text = (held / f"public/{name}.json").read_text()
        assert not [value for value in secrets if value in text]


def test_only_the_owner_reads_what_is_sealed(held):
    assert stat.S_IMODE((held / "sealed").stat().st_mode) == 0o700
    assert stat.S_IMODE((held / "sealed/seal.json").stat().st_mode) == 0o600


@given(st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_one_bit_anywhere_is_found_and_named(copy, data):
    paths = sorted(path for path in (copy / "public").rglob("*") if path.is_file())
    path = data.draw(st.sampled_from(paths), label="file")
    content = path.read_bytes()
    bit = data.draw(st.integers(0, 8 * len(content) - 1), label="bit")
    flipped = bytearray(content)
    flipped[bit // 8] ^= 1 << bit % 8
    try:
        path.write_bytes(flipped)
        findings = verify(copy, 0).findings
    finally:
        path.write_bytes(content)
    names = [path.name]
    if path.name == "reveal.json":  # a changed opening shows as a commitment that it does not open
        names += ["revealed document", *(f"{name}.json" for name in NAMES)]
    assert any(name in finding for name in names for finding in findings), findings


def test_a_seed_that_was_not_sealed_does_not_open_the_commitment(copy):
    def other_seed(content):
        seed = content["document"]["master_seed"]
        content["document"]["master_seed"] = ("0" if seed[0] != "0" else "1") + seed[1:]

    change(copy / "public/reveal.json", other_seed)
    assert verify(copy, 0).findings == ["The revealed document and nonce are not what was committed to."]


def test_a_changed_tuning_environment_is_named(copy):
    def noisier(content):
        content[1]["environment"] = content[1]["environment"].replace('"noise":0.', '"noise":0.1')

    change(copy / "public/tuning.json", noisier)
    findings = verify(copy, 0).findings
    assert "Tuning environment 1 as released is not under the Merkle root." in findings


@pytest.mark.parametrize(
    "edit, says",
    [
        (lambda r: r["trials"][1].update(score=0.0), "trial 1 has another score"),
        (lambda r: r["trials"][2].update(environment="0" * 16), "trial 2 has another score or environment"),
        (lambda r: r["trials"].pop(), "each trial of each agent once"),
        (lambda r: r["comparisons"][0].update(p_sign=0.01), "comparisons do not follow"),
        (lambda r: r.update(freeze="0" * 64), "another commitment or freeze"),
        (lambda r: r.update(isolation="trust"), "isolation 'trust'"),
        (lambda r: r.update(beacon="heads"), "takes no beacon"),
    ],
)
def test_results_that_do_not_follow_are_found_even_if_all_hashes_fit(copy, edit, says):
    results, reveal = copy / "public/results.json", copy / "public/reveal.json"
    change(results, edit)
    change(reveal, lambda content: content["files"].update({"results.json": file_hash(results)}))
    findings = verify(copy, 0 if "beacon" not in says else 1).findings
    assert any(says in finding for finding in findings), findings


def test_an_invented_trial_shows_when_it_is_run_again(copy):
    """The evaluator forges a trial and all that follows from it: only the trial itself can tell."""
    results, reveal = copy / "public/results.json", copy / "public/reveal.json"
    plan = json.loads(reveal.read_text())["document"]["plan"]

    def forge(content):
        row = content["trials"][4]
        row["total_reward"] -= 1.0
        row["score"] = row["total_reward"] / max(1, row["episodes"])
        content["comparisons"] = contest.compare(content["trials"], [], plan)

    change(results, forge)
    change(reveal, lambda content: content["files"].update({"results.json": file_hash(results)}))
    assert verify(copy, 0).findings == []
    assert verify(copy, None).findings == [
        "results.json: trial 4 (wanderer, environment 1) comes out otherwise."
    ]


def test_an_agent_changed_after_the_freeze_is_refused(started):
    path = started / "public/agents/wanderer/wandering.py"
    path.write_text(path.read_text().replace("> self.stay", ">= self.stay"))
    with pytest.raises(SeedbedError, match=r"'wanderer' is not what was frozen: wandering.py was changed"):
        contest.evaluate(started)
    assert not (started / "public/results.json").exists()


def test_a_new_version_of_a_frozen_agent_is_refused(started, tmp_path):
    later = make_agents(tmp_path / "later")
    (later[1] / "more.py").write_text("")
    with pytest.raises(SeedbedError, match=r"'pusher' was frozen, then more.py was added"):
        contest.freeze(started, later)
    shutil.copytree(later[0], tmp_path / "newcomer")
    with pytest.raises(SeedbedError, match="'newcomer' is not among them"):
        contest.freeze(started, [tmp_path / "newcomer"])


def test_a_changed_seal_is_refused(started):
    seal = started / "sealed/seal.json"
    change(seal, lambda content: content["document"].update(test=4))
    for step in (contest.release_tuning, contest.evaluate, contest.reveal):
        with pytest.raises(SeedbedError, match=r"is not what .*commitment.json commits to"):
            step(started)


def test_a_seal_is_never_written_over(started):
    seal, request = started / "sealed/seal.json", started / "sealed/contest.yaml"
    before = seal.read_bytes()
    (started / "public/commitment.json").unlink()
    contest.seal(started)  # publishes the same commitment
    request.write_text(REQUEST.replace("test: 3", "test: 4"))
    with pytest.raises(SeedbedError, match="changed after the seal"):
        contest.seal(started)
    assert seal.read_bytes() == before


def test_results_stand(held, tmp_path):
    shutil.copytree(held, tmp_path / "contest")
    change(tmp_path / "contest/public/results.json", lambda content: content.update(freeze="0" * 64))
    with pytest.raises(SeedbedError, match="another freeze"):
        contest.evaluate(tmp_path / "contest")
    (tmp_path / "contest/public/results.json").unlink()
    with pytest.raises(SeedbedError, match="tests nobody any more"):
        contest.evaluate(tmp_path / "contest")


def test_a_step_names_the_step_that_is_missing(tmp_path, agents):
    folder = tmp_path / "contest"
    with pytest.raises(SeedbedError, match=r"sealed/contest.yaml is missing"):
        contest.seal(folder)
    make_contest(folder)
    with pytest.raises(SeedbedError, match=r"secret seal .*contest"):
        contest.release_tuning(folder)
    contest.seal(folder)
    with pytest.raises(SeedbedError, match="secret release_tuning"):
        contest.freeze(folder, agents)
    contest.release_tuning(folder)
    with pytest.raises(SeedbedError, match="secret freeze"):
        contest.evaluate(folder)
    with pytest.raises(SeedbedError, match="secret evaluate"):
        contest.reveal(folder)
    assert "freeze.json is missing." in verify(folder).findings


@pytest.mark.parametrize(
    "text, says",
    [
        ("sampler: {noise_high: 1}", "needs domains"),
        ("sampler: {domains: [pendulum]}", "domains are different ones of"),
        ("sampler: {domains: [acrobot], colour: red}", "colour"),
        ("sampler: {domains: [acrobot]}\ntests: 3", "tests: Extra"),
        ("sampler: {domains: [acrobot]}\nplan: {alpha: 2}", "plan.alpha"),
        ("sampler: [", "contest.yaml"),
    ],
)
def test_a_wrong_request_is_refused_before_anything_is_sealed(tmp_path, text, says):
    make_contest(tmp_path / "contest", text)
    with pytest.raises(SeedbedError, match=says):
        contest.seal(tmp_path / "contest")
    assert not (tmp_path / "contest/sealed/seal.json").exists()


def test_a_beacon_takes_part(tmp_path, agents):
    folder = make_contest(
        tmp_path / "contest", REQUEST.replace("draws: 100", "draws: 100, beacon: lottery of May")
    )
    contest.seal(folder)
    contest.release_tuning(folder)
    contest.freeze(folder, agents[1:])
    with pytest.raises(SeedbedError, match="needs the beacon"):
        contest.evaluate(folder)
    contest.evaluate(folder, "7 12 33")
    with pytest.raises(SeedbedError, match="another beacon"):
        contest.evaluate(folder, "7 12 34")
    contest.reveal(folder)
    assert verify(folder, None).findings == []
    results, reveal = folder / "public/results.json", folder / "public/reveal.json"
    change(results, lambda content: content.update(beacon="7 12 34"))
    change(reveal, lambda content: content["files"].update({"results.json": file_hash(results)}))
    assert any("comes out otherwise" in finding for finding in verify(folder, None).findings)


@pytest.mark.parametrize(
    "content, says",
    [
        ({"command": ["sh", "-c", "echo help >&2; exit 3"]}, r"(?s)ended with status 3 in a tuning.*help"),
        ({"command": ["sh", "-c", "read -r line; echo 9"]}, r"answered '9\\n', not an action below"),
        ({"command": ["sh", "-c", "read -r line; echo -1"]}, "not an action below"),
        ({"agent": "wandering"}, "module:Class"),
        ({"agent": "a:B", "command": ["x"]}, "either agent"),
    ],
)
def test_unfit_agents_are_not_frozen(started, tmp_path, content, says):
    shutil.rmtree(started / "public/agents")
    (started / "public/freeze.json").unlink()
    (tmp_path / "unfit").mkdir()
    (tmp_path / "unfit/agent.json").write_text(json.dumps(content))
    with pytest.raises(SeedbedError, match=says):
        contest.freeze(started, [tmp_path / "unfit"])
    assert not (started / "public/freeze.json").exists()


def test_links_are_no_sources(started, tmp_path):
    (tmp_path / "linking").mkdir()
    (tmp_path / "linking/agent.json").write_text(json.dumps(PUSHER))
    os.symlink(started / "sealed/seal.json", tmp_path / "linking/seal.json")
    with pytest.raises(SeedbedError, match="is a link"):
        contest.freeze(started, [tmp_path / "linking"])


def test_an_agent_that_breaks_off_in_the_test_is_out(tmp_path, agents):
    """It survives the rehearsal, then ends at step 250; the others are tested all the same."""
    quitter = tmp_path / "quitter"
    quitter.mkdir()
    loop = "i=0; while read -r line; do i=$((i+1)); [ $i -le 250 ] || exit 5; echo 0; done"
    (quitter / "agent.json").write_text(json.dumps({"command": ["sh", "-c", loop]}))
    folder = make_contest(tmp_path / "contest")
    contest.seal(folder)
    contest.release_tuning(folder)
    contest.freeze(folder, [quitter, *agents])
    results = contest.evaluate(folder)
    assert results["failures"] == [{"agent": "quitter", "position": 0, "reason": "ended with status 5"}]
    assert [(row["agent_x"], row["agent_y"]) for row in results["comparisons"]] == [("pusher", "wanderer")]
    contest.reveal(folder)
    assert verify(folder, 1).findings == []


def test_an_agent_that_is_said_to_fail_and_does_not_is_found(copy):
    results, reveal = copy / "public/results.json", copy / "public/reveal.json"

    def disqualify(content):
        content["trials"] = content["trials"][:3]
        content["failures"] = [{"agent": "wanderer", "position": 0, "reason": "ended with status 1"}]
        content["comparisons"] = []

    change(results, disqualify)
    change(reveal, lambda content: content["files"].update({"results.json": file_hash(results)}))
    assert verify(copy, 1).findings == [
        "Agent 'wanderer' comes through environment 0, which is said to end it."
    ]


def test_the_seal_keeps_to_one_version_of_the_sampler(started, monkeypatch):
    monkeypatch.setattr(secret, "sampler_source", lambda: "0" * 64)
    with pytest.raises(SeedbedError, match="version that sealed"):
        contest.evaluate(started)


def test_files_are_all_there_is(held):
    assert {path.name for path in (held / "public").iterdir()} == {
        "agents",
        *(f"{name}.json" for name in NAMES),
    }
    assert Contest(held).seal.parent == Path(held) / "sealed"
    assert contest_verification.RERUNS > 0
