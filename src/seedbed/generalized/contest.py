"""A secret evaluation from the seal to the reveal: each step is a function of the contest's folder.

A step refuses to run before its predecessors. Done again, it finds the same bytes or refuses; nothing that
was sealed or published is written over. ``contest_verification`` is everybody's last step.
"""

import hashlib
import hmac
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from seedbed.artifacts import SeedbedError
from seedbed.environments.generalized.documents import read_document
from seedbed.environments.generalized.samplers import Sampler
from seedbed.generalized import secret
from seedbed.generalized.contest_files import (
    Contest,
    close_to_others,
    copy_sources,
    differences,
    file_hash,
    required,
    source_files,
    write_public,
    write_sealed,
)
from seedbed.generalized.external_trial import AgentFailure, agent_command, run_external
from seedbed.generalized.isolation import isolation, visible_places
from seedbed.generalized.methodology import matched_statistics
from seedbed.seeding import Purpose
from seedbed.statistics.multiplicity import holm

SCHEMA = "seedbed.secret_evaluation/1"
REHEARSAL = 200
"""Steps in a tuning environment that an agent must survive to be frozen."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
Count = Annotated[int, Field(ge=1)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Plan(_Model):
    """What is run and reported, fixed by the seal. The score is total reward per completed episode."""

    steps: int = Field(70_000, ge=1, lt=2**32, description="Steps of a trial.")
    seed: int = Field(0, ge=0, lt=2**32, description="Of all trials.")
    alpha: float = Field(0.05, gt=0, lt=1, description="Error rate of all pairs together (Holm).")
    margin: float = Field(0.05, ge=0, description="Share of a mean score that does not matter.")
    draws: int = Field(9_999, ge=100, description="Bootstrap draws.")
    seconds: float = Field(3_600, gt=0, description="After which a trial is too slow.")
    beacon: str | None = Field(None, description="Which public value, of when, takes part in the test.")
    note: str = Field("", description="Anything else.")


class Request(_Model):
    """``sealed/contest.yaml``."""

    sampler: dict[str, Any] = Field(description="Arguments of Sampler.")
    tuning: Count = 25
    test: int = Field(100, ge=2)
    plan: Plan = Plan()


def seal(folder: str | Path) -> dict[str, str]:
    """Seal what ``sealed/contest.yaml`` asks for and publish the commitment.

    Returns:
        What is published: commitment and merkle_root.

    Raises:
        SeedbedError: the request is wrong, or another one was sealed.
    """
    contest = Contest(folder)
    request, sampler = _request(contest)
    close_to_others(contest.sealed)
    if not contest.seal.exists():
        sealed = secret.seal(
            sampler,
            request.plan.model_dump(mode="json"),
            tuning=request.tuning,
            test=request.test,
            beacon=request.plan.beacon is not None,
        )
        write_sealed(contest.seal, {"document": sealed.document, "nonce": sealed.nonce})
    document, nonce = _sealed(contest)
    same = (
        secret.sealed_sampler(document) == sampler
        and document["plan"] == request.plan.model_dump(mode="json")
        and (document["tuning"], document["test"]) == (request.tuning, request.test)
    )
    if not same:
        raise SeedbedError(
            f"{contest.request} was changed after the seal. A change needs a new contest's folder."
        )
    public = published(document, nonce)
    write_public(contest.commitment, public)
    return public


def release_tuning(folder: str | Path) -> None:
    """Publish the tuning environments, each with the proof that it belongs to the seal."""
    contest = Contest(folder)
    document = _kept_seal(contest)[0]
    write_public(contest.tuning, secret.release_tuning(document))


def freeze(folder: str | Path, agents: Sequence[str | Path]) -> dict[str, Any]:
    """Take copies of the agents and publish their hashes; no agent changes from now on.

    Args:
        folder: the contest's.
        agents: folders with sources and ``agent.json``; the folder's name is the agent's.

    Raises:
        SeedbedError: an agent is unfit or breaks off in a tuning environment, or others were frozen before.
    """
    contest, sources = Contest(folder), [Path(agent) for agent in agents]
    released = required(contest.tuning, "release_tuning")
    names = [source.resolve().name for source in sources]
    if not names or len(set(names)) < len(names) or not all(map(_NAME.fullmatch, names)):
        raise SeedbedError(
            f"Agents are folders of different names, of letters, digits, '.', '_', '-'; got {names}."
        )
    way = isolation()
    environment = read_document(released[0]["environment"], f"{contest.tuning}: environment 0")
    for name, source in zip(names, sources, strict=True):
        files, copy = source_files(source), contest.agents / name
        agent_command(source)
        if copy.exists():
            changed = differences(files, source_files(copy))
            if changed:
                raise SeedbedError(
                    f"Agent '{name}' was frozen, then {'; '.join(changed)}. It takes a new contest."
                )
            continue
        if contest.freeze.exists():
            raise SeedbedError(f"{contest.freeze} closes the list of agents; '{name}' is not among them.")
        _rehearse(name, source, environment, way)
        contest.agents.mkdir(parents=True, exist_ok=True)
        copy_sources(source, copy)
    others = sorted(
        {path.name for path in contest.agents.iterdir() if _NAME.fullmatch(path.name)} - set(names)
    )
    if others:
        raise SeedbedError(
            f"{contest.agents} also holds {', '.join(others)}, frozen before. Name all agents."
        )
    frozen = {
        "schema": SCHEMA,
        "commitment": required(contest.commitment, "seal")["commitment"],
        "agents": {name: source_files(contest.agents / name) for name in sorted(names)},
    }
    write_public(contest.freeze, frozen)
    return frozen


def evaluate(
    folder: str | Path, beacon: str | None = None, progress: Callable[[str], object] | None = None
) -> dict[str, Any]:
    """Run the frozen agents in the test environments and publish the results; once published, they stand.

    Args:
        folder: the contest's.
        beacon: the public value that the plan names, from after the freeze.
        progress: told about each trial that is over.

    Raises:
        SeedbedError: the seal, its commitment or an agent is not what it was, or agents cannot be isolated.
    """
    contest = Contest(folder)
    document, nonce = _kept_seal(contest)
    frozen = required(contest.freeze, "freeze")
    identity = {
        "schema": SCHEMA,
        "commitment": secret.commitment(nonce, document),
        "freeze": file_hash(contest.freeze),
        "beacon": beacon,
    }
    if contest.results.exists():
        return _standing(contest, identity)
    if contest.reveal.exists():
        raise SeedbedError(f"{contest.reveal} is there: what is revealed tests nobody any more.")
    close_to_others(contest.sealed)
    for name, files in frozen["agents"].items():
        changed = differences(source_files(contest.agents / name), files)
        if changed:
            raise SeedbedError(f"Agent '{name}' is not what was frozen: {'; '.join(changed)}.")
    way, plan = isolation(), document["plan"]
    place = contest.folder.resolve()
    if any(place.is_relative_to(Path(path).resolve()) for path in visible_places()):
        raise SeedbedError(f"{contest.folder} lies among programs that agents can see. Move it elsewhere.")
    environments = secret.sealed_test_environments(document, beacon)
    trials, failures = [], []
    for name in frozen["agents"]:
        for position, environment in enumerate(environments):
            told = opaque_name(document, position)
            try:
                totals = run_trial(contest, name, environment, told, way, plan)
            except AgentFailure as failure:
                failures.append({"agent": name, "position": position, "reason": str(failure)})
                break  # a broken agent is out
            trials.append(trial_row(name, position, told, totals))
            if progress is not None:
                progress(f"{name}: {position + 1} of {len(environments)}")
    result = {
        **identity,
        "isolation": way,
        "trials": trials,
        "failures": failures,
        "comparisons": compare(trials, failures, plan),
    }
    write_public(contest.results, result)
    return result


def reveal(folder: str | Path) -> None:
    """Publish the sealed document with its nonce, and the hashes of all that was published before."""
    contest = Contest(folder)
    document, nonce = _kept_seal(contest)
    required(contest.results, "evaluate")
    steps = (contest.commitment, contest.tuning, contest.freeze, contest.results)
    files = {path.name: file_hash(path) for path in steps}
    write_public(contest.reveal, {"schema": SCHEMA, "document": document, "nonce": nonce, "files": files})


def published(document: Mapping[str, Any], nonce: str) -> dict[str, str]:
    """What ``commitment.json`` says."""
    return {
        "schema": SCHEMA,
        "commitment": secret.commitment(nonce, document),
        "merkle_root": document["merkle_root"],
    }


def opaque_name(document: Mapping[str, Any], position: int) -> str:
    """What agents are told of a test environment: 16 hexadecimal digits that hang on the master seed."""
    key = bytes.fromhex(document["master_seed"])
    return hmac.new(key, f"name|{position}".encode(), hashlib.sha256).hexdigest()[:16]


def run_trial(
    contest: Contest, name: str, environment, told: str, way: str, plan: Mapping[str, Any], **options
):
    """One trial of a frozen agent, as ``run_external``."""
    settings = {key: plan[key] for key in ("steps", "seed", "seconds")} | options
    return run_external(contest.agents / name, environment, told, way, **settings)


def trial_row(name: str, position: int, told: str, totals) -> dict[str, Any]:
    """A trial as results.json holds it."""
    row = {"agent": name, "position": position, "environment": told}
    return row | totals._asdict() | {"score": totals.score}


def compare(
    trials: Sequence[Mapping[str, Any]], failures: Sequence[Mapping[str, Any]], plan: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """All pairs of agents that came through, matched by environment.

    Returns:
        agent_x, agent_y, ``matched_statistics`` (None where there is no number), p_sign_holm (over all
        pairs), and better: the one of more wins if p_sign_holm is at most alpha, else None.
    """
    out = {failure["agent"] for failure in failures}
    scores: dict[str, list[float]] = {}
    for row in sorted(trials, key=lambda row: (row["agent"], row["position"])):
        if row["agent"] not in out:
            scores.setdefault(row["agent"], []).append(row["score"])
    rows = []
    for x, y in combinations(scores, 2):
        stream = np.random.SeedSequence(int(Purpose.STATISTICS), spawn_key=(plan["seed"], len(rows)))
        numbers = matched_statistics(
            np.array(scores[x]), np.array(scores[y]), plan["margin"], stream, plan["draws"]
        )
        rows.append({"agent_x": x, "agent_y": y} | numbers)
    corrected = holm([row["p_sign"] for row in rows]) if rows else []
    for row, p in zip(rows, corrected, strict=True):
        winner = row["agent_x"] if row["wins"] > row["losses"] else row["agent_y"]
        row |= {"p_sign_holm": p, "better": winner if p <= plan["alpha"] else None}
    return [{key: _plain(value) for key, value in row.items()} for row in rows]


def _plain(value: Any) -> Any:
    """A number as JSON has it; None for NaN and infinities."""
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _request(contest: Contest) -> tuple[Request, Sampler]:
    path = contest.request
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        request = Request.model_validate(content)
        default = Sampler(("mountain_car",)).parameters()
        unknown = sorted(set(request.sampler) - set(default))
        if unknown or "domains" not in request.sampler:
            raise ValueError(
                f"sampler needs domains, and takes {', '.join(default)}; got {list(request.sampler)}"
            )
        return request, secret.sealed_sampler({"sampler": default | request.sampler})
    except FileNotFoundError:
        raise SeedbedError(
            f"{path} is missing. Write there what is to be sealed; docs/secret.md shows it."
        ) from None
    except ValidationError as error:
        lines = [f"  {'.'.join(map(str, p['loc'])) or 'the whole'}: {p['msg']}" for p in error.errors()]
        raise SeedbedError("\n".join([f"{path} is not valid:", *lines])) from None
    except (OSError, ValueError, TypeError, yaml.YAMLError) as error:
        raise SeedbedError(f"{path}: {error}") from None


def _sealed(contest: Contest) -> tuple[dict[str, Any], str]:
    """The sealed document and its nonce."""
    content = required(contest.seal, "seal")
    try:
        return content["document"], content["nonce"]
    except (KeyError, TypeError):
        raise SeedbedError(
            f"{contest.seal} is no seal. Restore it from a copy: nothing else opens the commitment."
        ) from None


def _kept_seal(contest: Contest) -> tuple[dict[str, Any], str]:
    """As ``_sealed``, if it is what was published and can still be replayed."""
    document, nonce = _sealed(contest)
    public = required(contest.commitment, "seal")
    if public != published(document, nonce):
        raise SeedbedError(
            f"{contest.seal} is not what {contest.commitment} commits to. One of them was changed."
        )
    if document["sampler_source"] != secret.sampler_source():
        raise SeedbedError(
            f"The sampler's sources are not those of {contest.seal}. Go on with the version that sealed."
        )
    return document, nonce


def _standing(contest: Contest, identity: Mapping[str, Any]) -> dict[str, Any]:
    """Results that are there, if they are of this commitment, freeze and beacon."""
    results = required(contest.results, "evaluate")
    other = [key for key, value in identity.items() if results.get(key) != value]
    if other:
        raise SeedbedError(
            f"{contest.results} is there with another {' and '.join(other)}. The test was held, and results "
            f"stand; another one takes a new contest."
        )
    return results


def _rehearse(name: str, source: Path, environment, way: str) -> None:
    """A few steps in a tuning environment, so that what is broken shows before the freeze."""
    with tempfile.TemporaryFile() as errors:
        try:
            run_external(source, environment, "rehearsal", way, steps=REHEARSAL, seconds=60, errors=errors)
        except AgentFailure as failure:
            errors.seek(0)
            said = errors.read()[-1000:].decode(errors="replace").strip()
            raise SeedbedError(
                f"Agent '{name}' {failure} in a tuning environment. It said:\n{said}"
            ) from None
