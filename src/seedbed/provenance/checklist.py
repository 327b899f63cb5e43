"""The reproducibility checklist: seven items, each ticked only from files that prove it.

Nothing is asked of a person and nothing is assumed: an item names the files it rests on, with their SHA-256,
or says what is missing.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed.artifacts import ArtifactError, read_json, sha256
from seedbed.generalized_study import TOGETHER, GeneralizedStudy
from seedbed.provenance.checksums import verify
from seedbed.provenance.machine import normalised

if TYPE_CHECKING:
    from seedbed.study import Study

_SHA256 = re.compile(r"[0-9a-f]{64}")
_SHOWN = 4
"""Files or gaps of one item that the page shows; checklist.json has all."""


@dataclass(frozen=True)
class Evidence:
    """Where the evidence should lie. Paths are relative to ``root`` or absolute; none of them need exist.

    Args:
        root: the project's folder.
        seeds: JSON, see ``seed_plan``.
        runs: every job's run.json and evaluation.json, listed from the studies, not from what is there.
        configuration: the resolved configuration.
        studies: config.yaml and the studies' files, as a person wrote them.
        lock: requirements with one exact version (==) each.
        software: JSON of ``machine.software``.
        content: JSON, {study: {environment: {name: SHA-256}}}; {} for an environment without fixed content.
        checksums: result files with their SHA-256, as sha256sum writes them.
        code: JSON of ``code.code``.
        hardware: JSON of ``machine.hardware``.
        logs: every job's log, listed from the workflow.
    """

    root: Path
    seeds: Path
    runs: tuple[Path, ...]
    configuration: Path
    studies: tuple[Path, ...]
    lock: Path
    software: Path
    content: Path
    checksums: Path
    code: Path
    hardware: Path
    logs: tuple[Path, ...]


@dataclass(frozen=True)
class Item:
    """One line of the checklist.

    Args:
        name: what is claimed.
        missing: what is lacking, in words; the item is ticked if there is nothing.
        evidence: file relative to the project -> SHA-256.
        note: what the evidence says, in a few words.
    """

    name: str
    missing: tuple[str, ...]
    evidence: Mapping[str, str]
    note: str

    @property
    def ticked(self) -> bool:
        """Whether all evidence is there."""
        return not self.missing


def seed_plan(studies: Iterable["Study | GeneralizedStudy"]) -> dict[str, Any]:
    """The document of seeds.json: each study's seeds, and its cells as environment, algorithm and seeds.

    Where jobs of a cell have seeds of their own, "jobs" lists them by kind of job, each job's seeds in turn.
    """
    return {
        study.name: _generalized_seeds(study)
        if isinstance(study, GeneralizedStudy)
        else {
            "seeds": study.seeds,
            "pilot_seeds": study.pilot_seeds,
            "cells": [
                {"environment": cell, "algorithm": name, "seeds": study.seeds_in(cell)}
                for cell in study.environments
                for name in study.algorithms_in(cell)
            ],
        }
        for study in studies
    }


def _generalized_seeds(study: GeneralizedStudy) -> dict[str, Any]:
    cells = []
    for label, algorithms in study.blocks().items():
        seeds = study.seeds(label)
        jobs = {"training": seeds["training"] * len(algorithms[TOGETHER]), "evaluation": seeds["evaluation"]}
        distinct = sorted({seed for some in jobs.values() for seed in some})
        cells.append({"environment": label, "algorithm": TOGETHER, "seeds": distinct, "jobs": jobs})
    return {"seeds": [study.seed], "pilot_seeds": [], "cells": cells}


def checklist(evidence: Evidence) -> list[Item]:
    """The seven items in fixed order. A file that is missing or damaged unticks an item; it never raises."""
    checks = (
        ("Seeds recorded", _seeds),
        ("Configuration files", _configuration),
        ("Environment version pinned", _environment),
        ("Data checksums", _data),
        ("Code version", _code),
        ("Hardware", _hardware),
        ("Complete logs", _logs),
    )
    return [_item(name, check, evidence) for name, check in checks]


class _Desk:
    """What one item looks at: files read, what is missing. Each file is read once and hashed."""

    def __init__(self, root: Path):
        self.root = root
        self.missing: list[str] = []
        self.hashes: dict[str, str] = {}

    def name(self, path: Path) -> str:
        path = self.root / path
        return path.relative_to(self.root).as_posix() if self.root in path.parents else str(path)

    def file(self, path: Path) -> Path | None:
        """The path of a file that is there and not empty; otherwise None, and the gap is noted."""
        name, full = self.name(path), self.root / path
        try:
            if full.stat().st_size == 0:
                self.missing.append(f"{name} is empty")
                return None
            self.hashes[name] = sha256(full)
            return full
        except OSError:
            self.missing.append(f"{name} is missing")
            return None

    def document(self, path: Path) -> dict[str, Any] | None:
        """The JSON object in a file; otherwise None, and the gap is noted."""
        full = self.file(path)
        if full is None:
            return None
        try:
            document = read_json(full)
        except ArtifactError:
            document = None
        if not isinstance(document, dict):
            self.missing.append(f"{self.name(path)} is damaged")
            return None
        return document

    def runs(self, evidence: Evidence) -> dict[str, dict[str, Any]]:
        """The readable run records by file name. Others are missing seeds, which that item says."""
        quiet = _Desk(self.root)
        documents = {quiet.name(path): quiet.document(path) for path in evidence.runs}
        self.hashes |= quiet.hashes
        return {name: document for name, document in documents.items() if document is not None}


def _item(name: str, check: Callable[[_Desk, Evidence], str], evidence: Evidence) -> Item:
    desk = _Desk(Path(evidence.root).absolute())
    try:
        note = check(desk, evidence)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        note = ""
        desk.missing.append(f"a file is not of the expected form ({type(error).__name__}: {error})")
    return Item(name, tuple(desk.missing), dict(sorted(desk.hashes.items())), note)


def _seeds(desk: _Desk, evidence: Evidence) -> str:
    plan = desk.document(evidence.seeds)
    records = [record for path in evidence.runs if (record := desk.document(path)) is not None]
    if plan is None:
        return ""
    ran: dict[tuple[str, str, str], dict[str, list[int]]] = {}
    for record in records:
        key = (record["study"], record["environment"], record["algorithm"])
        ran.setdefault(key, {}).setdefault(record["job"], []).extend(record["seeds"])
    for study, planned in plan.items():
        for cell in planned["cells"]:
            environment, algorithm = cell["environment"], cell["algorithm"]
            jobs = ran.pop((study, environment, algorithm), {})
            for job in ("training", "evaluation"):
                seeds = sorted(cell.get("jobs", {}).get(job, cell["seeds"]))
                if sorted(jobs.get(job, [])) != seeds:
                    desk.missing.append(
                        f"{study}/{environment}/{algorithm}: the {job} jobs recorded seeds "
                        f"{sorted(jobs.get(job, []))}, the study has {seeds}"
                    )
    desk.missing += [f"{'/'.join(key)} ran, but {desk.name(evidence.seeds)} has no such cell" for key in ran]
    if not plan:
        desk.missing.append(f"{desk.name(evidence.seeds)} names no study")
    return "; ".join(f"{study}: {len(planned['seeds'])} seeds" for study, planned in plan.items())


def _configuration(desk: _Desk, evidence: Evidence) -> str:
    for path in (evidence.configuration, *evidence.studies):
        desk.file(path)
    if not evidence.studies:
        desk.missing.append("no configuration or study file is named")
    return "as written and as resolved"


def _environment(desk: _Desk, evidence: Evidence) -> str:
    lock, software = desk.file(evidence.lock), desk.document(evidence.software)
    if lock is None or software is None:
        return ""
    pins = {}
    for line in lock.read_text(encoding="utf-8").splitlines():
        requirement = re.split(r"(?:^|\s)#|;", line)[0].strip()
        if not requirement or requirement.startswith("-"):
            continue
        pin = re.fullmatch(r"([\w.-]+)(?:\[[^\]]*\])?\s*==\s*([\w.!+-]+)(?:\s+--hash=.*|\s*\\)?", requirement)
        if pin:
            pins[normalised(pin[1])] = pin[2]
        else:
            desk.missing.append(f"{desk.name(evidence.lock)} does not pin one version: {requirement}")
    if not pins:
        desk.missing.append(f"{desk.name(evidence.lock)} pins nothing")
    installed = {desk.name(evidence.software): software}
    installed |= {name: record["software"] for name, record in desk.runs(evidence).items()}
    for name, facts in installed.items():
        versions = {normalised(package): version for package, version in facts["packages"].items()}
        # Torch's builds for CPU and CUDA differ in a suffix that the lock leaves open.
        other = [
            f"{package} {versions[package]} instead of {pin}"
            for package, pin in sorted(pins.items())
            if package in versions and versions[package] != pin and versions[package].partition("+")[0] != pin
        ]
        if other:
            desk.missing.append(f"{name} was made with {', '.join(other)}")
        if not set(versions) & set(pins):
            desk.missing.append(f"{name} records no version of a pinned package")
    return f"{len(pins)} packages pinned, Python {software['python']}"


def _data(desk: _Desk, evidence: Evidence) -> str:
    content, checksums = desk.document(evidence.content), desk.file(evidence.checksums)
    if content is not None:
        name = desk.name(evidence.content)
        ran = {(record["study"], record["environment"]) for record in desk.runs(evidence).values()}
        desk.missing += [
            f"{name} lacks {study}/{environment}"
            for study, environment in sorted(ran)
            if environment not in content.get(study, {})
        ]
        if not content:
            desk.missing.append(f"{name} names no environment")
        for study, environments in content.items():
            for environment, digests in environments.items():
                desk.missing += [
                    f"{name}: {study}/{environment}/{part} is not a SHA-256"
                    for part, digest in digests.items()
                    if not _SHA256.fullmatch(str(digest))
                ]
    if checksums is None:
        return ""
    try:
        desk.missing += [problem.message for problem in verify(checksums, desk.root)]
    except ArtifactError as error:
        desk.missing.append(str(error))
    return f"{len(checksums.read_bytes().splitlines())} result files"


def _code(desk: _Desk, evidence: Evidence) -> str:
    facts = desk.document(evidence.code)
    commits = set()
    dirty = []
    for name, record in desk.runs(evidence).items():
        version = record["code"]
        commits.add(version["commit"])
        if version["commit"] is None:
            desk.missing.append(f"{name} has no commit: {version['reason']}")
        elif version["dirty"] is not False:
            dirty.append(name)
    if dirty:
        desk.missing.append(
            f"{len(dirty)} jobs ran from a checkout with uncommitted changes, such as {dirty[0]}; commit, "
            f"then run again with --forceall"
        )
    if facts is None:
        return ""
    if facts["commit"] is None:
        desk.missing.append(f"no commit is known: {facts['reason']}")
        return ""
    if facts["dirty"] is not False:
        changes = facts["changes"] or []
        desk.missing.append(
            f"the checkout has uncommitted changes in {len(changes)} files, such as {', '.join(changes[:3])}"
        )
    others = commits - {facts["commit"], None}
    earlier = f"; jobs ran at {', '.join(sorted(others))} too" if others else ""
    return f"commit {facts['commit']}{earlier}"


def _hardware(desk: _Desk, evidence: Evidence) -> str:
    machines = {desk.name(evidence.hardware): desk.document(evidence.hardware)}
    machines |= {name: record["hardware"] for name, record in desk.runs(evidence).items()}
    seen = set()
    for name, facts in machines.items():
        if facts is None:
            continue
        unknown = [key for key in ("cpu", "logical_cores", "memory_bytes", "gpus") if facts[key] is None]
        if unknown:
            desk.missing.append(f"{name} does not know {', '.join(unknown)}")
        gpus = [gpu["name"] for gpu in facts["gpus"] or []]
        seen.add(", ".join([f"{facts['cpu']}, {facts['logical_cores']} cores", *gpus]))
    return "; ".join(sorted(seen))


def _logs(desk: _Desk, evidence: Evidence) -> str:
    for path in evidence.logs:
        desk.file(path)
    if not evidence.logs:
        desk.missing.append("no log is named")
    return f"{len(evidence.logs)} logs"


def as_json(items: Iterable[Item]) -> list[dict[str, Any]]:
    """The document of checklist.json: all files with their hashes, all that is missing."""
    return [
        {
            "item": item.name,
            "ticked": item.ticked,
            "missing": list(item.missing),
            "note": item.note,
            "evidence": dict(item.evidence),
        }
        for item in items
    ]


def as_markdown(items: Iterable[Item]) -> str:
    """The page checklist.md: a task list; of long lists the beginning, and how many more there are."""
    lines = []
    for item in items:
        note = f" ({_plain(item.note)})" if item.ticked and item.note else ""
        lines.append(f"- [{'x' if item.ticked else ' '}] **{item.name}**{note}")
        lines += _shortened([f"    - missing: {_plain(gap)}" for gap in item.missing], "gaps")
        files = item.evidence.items()
        lines += _shortened([f"    - `{name}` SHA-256 `{digest}`" for name, digest in files], "files")
    return "\n".join(lines) + "\n"


def _shortened(lines: list[str], what: str) -> list[str]:
    if len(lines) <= _SHOWN + 1:
        return lines
    return [*lines[:_SHOWN], f"    - and {len(lines) - _SHOWN} more {what}, all in checklist.json"]


def _plain(text: str) -> str:
    """One line of text in which Markdown sees no marks."""
    return re.sub(r"([\\`*_\[\]<>])", r"\\\1", " ".join(text.split()))
