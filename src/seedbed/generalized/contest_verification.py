"""What anybody can check of a secret evaluation after its reveal, from ``public/`` alone."""

import json
import random
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seedbed.artifacts import SeedbedError
from seedbed.generalized import secret
from seedbed.generalized.contest import SCHEMA, compare, opaque_name, published, run_trial, trial_row
from seedbed.generalized.contest_files import Contest, differences, file_hash, source_files, text_of
from seedbed.generalized.external_trial import AgentFailure, Totals
from seedbed.generalized.isolation import WAYS, isolation

RERUNS = 5
KEYS = {
    "commitment.json": {"schema", "commitment", "merkle_root"},
    "freeze.json": {"schema", "commitment", "agents"},
    "results.json": {
        *("schema", "commitment", "freeze", "beacon", "isolation", "trials", "failures", "comparisons")
    },
    "reveal.json": {"schema", "document", "nonce", "files"},
}


@dataclass(frozen=True)
class Verification:
    """findings: what is wrong, in words. rerun: (agent, position) of the trials that were run again."""

    findings: list[str]
    rerun: list[tuple[str, int]]


def verify(folder: str | Path, reruns: int | None = RERUNS) -> Verification:
    """Hold everything published against the commitment and against itself.

    Recomputed are the commitment, the environments and their proofs, hashes of agents and files, scores and
    comparisons; and a random part of the trials, which must come out with the same bits, and each failure
    again. On another platform than the evaluator's, the last bits of cosines may differ.

    Args:
        folder: the contest's; ``sealed/`` is not needed.
        reruns: number of trials to run again; None for all; with 0 no agent runs.

    Raises:
        SeedbedError: agents cannot be isolated here.
    """
    contest, findings = Contest(folder), []
    steps = (contest.commitment, contest.tuning, contest.freeze, contest.results, contest.reveal)
    contents = {path.name: _read(path, findings) for path in steps}
    if findings:
        return Verification(findings, [])
    try:
        rerun = _check(contest, contents, findings, reruns)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        findings.append(f"What was published cannot be replayed: {type(error).__name__}: {error}.")
        rerun = []
    return Verification(findings, rerun)


def _check(contest: Contest, contents: Mapping[str, Any], findings: list[str], reruns: int | None):
    public, released, frozen, results, revealed = contents.values()
    document, nonce = revealed["document"], revealed["nonce"]
    for name, path in (
        (p.name, p) for p in (contest.commitment, contest.tuning, contest.freeze, contest.results)
    ):
        if revealed["files"].get(name) != file_hash(path):
            findings.append(f"{name} is not the file whose hash reveal.json holds.")
    if len(revealed["files"]) != 4:
        findings.append("reveal.json holds hashes of other files than it should.")
    findings += secret.verify(public, document, nonce, released=released)
    if not secret.opens(public["commitment"], nonce, document):
        return []  # nothing below would mean anything
    if public != published(document, nonce):
        findings.append("commitment.json says more or other than the sealed document.")
    if released != secret.release_tuning(document):
        findings.append("tuning.json does not hold the sealed tuning environments in their order.")
    _check_agents(contest, frozen, public, findings)
    rows = _check_results(contest, document, frozen, results, findings)
    findings += [
        f"{name} has another schema than {SCHEMA}." for name in KEYS if contents[name]["schema"] != SCHEMA
    ]
    return _rerun(contest, document, results, rows, findings, reruns)


def _check_agents(contest: Contest, frozen, public, findings: list[str]) -> None:
    if frozen["commitment"] != public["commitment"]:
        findings.append("freeze.json belongs to another commitment.")
    for name, files in frozen["agents"].items():
        try:
            changed = differences(source_files(contest.agents / name), files)
        except SeedbedError as error:
            changed = [str(error)]
        findings += [f"agents/{name} is not what was frozen: {change}." for change in changed]


def _check_results(contest: Contest, document, frozen, results, findings: list[str]) -> list[dict[str, Any]]:
    """Hold results.json against everything but new trials; returns its rows."""
    if results["commitment"] != frozen["commitment"] or results["freeze"] != file_hash(contest.freeze):
        findings.append("results.json belongs to another commitment or freeze.")
    if results["isolation"] not in WAYS:
        findings.append(f"results.json names the isolation '{results['isolation']}', which is none.")
    rows, failed = results["trials"], {failure["agent"]: failure for failure in results["failures"]}
    expected = [
        (agent, position)
        for agent in frozen["agents"]
        for position in range(failed.get(agent, {"position": document["test"]})["position"])
    ]
    if [(row["agent"], row["position"]) for row in rows] != expected:
        findings.append("results.json does not hold each trial of each agent once, in order.")
    for number, row in enumerate(rows):
        totals = Totals(*(row[name] for name in Totals._fields))
        if row != trial_row(row["agent"], row["position"], opaque_name(document, row["position"]), totals):
            findings.append(f"results.json: trial {number} has another score or environment than it should.")
    if results["comparisons"] != json.loads(text_of(compare(rows, results["failures"], document["plan"]))):
        findings.append("results.json: the comparisons do not follow from the trials.")
    return rows


def _rerun(contest: Contest, document, results, rows, findings: list[str], reruns: int | None):
    try:
        environments = secret.sealed_test_environments(document, results["beacon"])
    except SeedbedError as error:
        findings.append(f"results.json: {error}")
        return []
    number = len(rows) if reruns is None else min(reruns, len(rows))
    chosen = sorted(random.SystemRandom().sample(range(len(rows)), number))
    if findings or reruns == 0:
        return []  # agents that are not the frozen ones are not worth a trial
    way, plan = isolation(), document["plan"]
    told = [opaque_name(document, position) for position in range(len(environments))]

    def again(name: str, position: int):
        return run_trial(contest, name, environments[position], told[position], way, plan)

    for index in chosen:
        row = rows[index]
        name, position = row["agent"], row["position"]
        try:
            if trial_row(name, position, told[position], again(name, position)) != row:
                findings.append(
                    f"results.json: trial {index} ({name}, environment {position}) comes out otherwise."
                )
        except AgentFailure as failure:
            findings.append(f"Agent '{name}' {failure} in environment {position}, where it has a result.")
    for failure in results["failures"]:
        name, position = failure["agent"], failure["position"]
        with suppress(AgentFailure):
            again(name, position)
            findings.append(f"Agent '{name}' comes through environment {position}, which is said to end it.")
    return [(rows[index]["agent"], rows[index]["position"]) for index in chosen]


def _read(path: Path, findings: list[str]) -> Any:
    """A published file's content; None, and a finding, if it is not as it would have been written."""
    try:
        text = path.read_bytes().decode("ascii")
        value = json.loads(text)
        if text_of(value) == text:
            if path.name in KEYS and (not isinstance(value, dict) or value.keys() != KEYS[path.name]):
                findings.append(f"{path.name} has other keys than it should.")
            return value
        findings.append(f"{path.name} is not written as Seedbed writes it: something in it was changed.")
    except FileNotFoundError:
        findings.append(f"{path.name} is missing.")
    except (OSError, ValueError, RecursionError) as error:
        findings.append(f"{path.name} cannot be read: {error}.")
    return None
