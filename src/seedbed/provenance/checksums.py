"""Checksums of results in the format of ``sha256sum -c``, and their verification."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from seedbed.artifacts import ArtifactError, atomic, sha256

_MEASURED_NAMES = {"run.json", "evaluation.json"}
_MEASURED_STEMS = {
    *("checklist", "checksums", "code", "cost", "costs", "deterministic", "hardware", "software"),
    *("report_inputs", "ro-crate-metadata"),
}
_MEASURED_FOLDERS = (("results", "benchmarks"), ("results", "logs"))
_ESCAPES = {b"\\": b"\\\\", b"\n": b"\\n", b"\r": b"\\r"}


class Problem(NamedTuple):
    """What is wrong with one file: ``kind`` is "missing", "changed" or "extra"."""

    kind: str
    path: str
    message: str


def is_deterministic(path: str | Path) -> bool:
    """Whether a file, given relative to the project, must be equal bit for bit when all is run again.

    Everything is, except what is measured or describes the machine, the code and the moment, and what quotes
    such facts: run records (run.json, evaluation.json), any file called cost, costs, hardware, software,
    code, checklist, checksums, deterministic or ro-crate-metadata with any suffix, logs and benchmarks, and
    the report itself (results/report), which quotes times. Figures and the other tables are.
    """
    path = Path(path)
    return not (
        path.parts[:2] == ("results", "report")
        or path.name in _MEASURED_NAMES
        or path.name.partition(".")[0] in _MEASURED_STEMS
        or path.parts[:2] in _MEASURED_FOLDERS
    )


def write_checksums(path: str | Path, files: Iterable[str | Path], root: str | Path) -> None:
    """Write the SHA-256 of each file, one line each, sorted by path; ``sha256sum -c`` accepts it in ``root``.

    Args:
        path: target, such as results/provenance/checksums.sha256.
        files: absolute, or relative to root.
        root: the project's folder; paths are written relative to it.

    Raises:
        ArtifactError: a file is missing, or lies outside root.
    """
    digests = {}
    for file in files:
        name = _relative(file, Path(root))
        try:
            digests[name] = sha256(Path(root, name))
        except OSError as error:
            raise ArtifactError(f"{file} cannot be read for its checksum: {error.strerror}.") from None
    _write(path, digests)


def write_deterministic(path: str | Path, checksums: str | Path) -> None:
    """Write those lines of a file with checksums whose files are deterministic, in the same format.

    Raises:
        ArtifactError: the file with the checksums is missing or malformed.
    """
    digests = read_checksums(checksums)
    _write(path, {name: digest for name, digest in digests.items() if is_deterministic(name)})


def _write(path: str | Path, digests: dict[str, str]) -> None:
    lines = []
    for raw, digest in sorted((os.fsencode(name), digest.encode()) for name, digest in digests.items()):
        escaped = re.sub(rb"[\\\n\r]", lambda match: _ESCAPES[match[0]], raw)
        lines.append((b"\\" if escaped != raw else b"") + digest + b"  " + escaped + b"\n")
    with atomic(path) as temporary:
        temporary.write_bytes(b"".join(lines))


def read_checksums(path: str | Path) -> dict[str, str]:
    """Path -> SHA-256, from a file in the format of ``sha256sum``.

    Raises:
        ArtifactError: the file is missing, or a line is malformed.
    """
    try:
        lines = Path(path).read_bytes().split(b"\n")
    except OSError as error:
        raise ArtifactError(f"{path} cannot be read: {error.strerror}.") from None
    unescape = {escaped: raw for raw, escaped in _ESCAPES.items()}
    digests = {}
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        match = re.fullmatch(rb"(\\?)([0-9a-fA-F]{64}) [ *](.+)", line)
        try:
            name = match[3]
            if match[1]:
                name = re.sub(rb"\\.", lambda pair: unescape[pair[0]], name)
        except (KeyError, TypeError):
            raise ArtifactError(f"{path}, line {number} is not a line of sha256sum.") from None
        digests[os.fsdecode(name)] = match[2].decode().lower()
    return digests


def verify(path: str | Path, root: str | Path, present: Iterable[str | Path] = ()) -> list[Problem]:
    """Hold files against their checksums.

    Args:
        path: the file with the checksums.
        root: the project's folder.
        present: files that ought to be listed, such as ``result_files``; others among them are extra.

    Returns:
        Problems sorted by path; none if all is well.

    Raises:
        ArtifactError: the file with the checksums is missing or malformed.
    """
    root = Path(root)
    digests = read_checksums(path)
    problems = []
    for name, expected in digests.items():
        try:
            if sha256(root / name) != expected:
                problems.append(Problem("changed", name, f"{name} is not the file whose checksum was taken"))
        except OSError as error:
            reason = (
                "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
            )
            problems.append(Problem("missing", name, f"{name} {reason}"))
    for name in sorted({_relative(file, root) for file in present} - set(digests)):
        problems.append(Problem("extra", name, f"{name} has no checksum"))
    return sorted(problems, key=lambda problem: problem.path)


def result_files(root: str | Path) -> list[Path]:
    """All files below root/results that ``checksums.sha256`` covers, relative to root, sorted.

    Not covered are logs, hidden files, results/README.md, and what is made from the checksums themselves.
    """
    root = Path(root)
    own = {Path("results/README.md")} | {
        Path("results/provenance", name)
        for name in ("checksums.sha256", "deterministic.sha256", "checklist.md", "checklist.json")
    }
    found = (path.relative_to(root) for path in (root / "results").rglob("*") if path.is_file())
    return sorted(
        path
        for path in found
        if path not in own
        and path.parts[:2] not in _MEASURED_FOLDERS
        and not any(part.startswith(".") for part in path.parts)
    )


def _relative(file: str | Path, root: Path) -> str:
    try:
        name = os.path.relpath(os.path.join(root, file), root)
    except ValueError:
        name = os.pardir
    if name.split(os.sep)[0] == os.pardir:
        raise ArtifactError(
            f"{file} lies outside the project's folder {root}; checksums cover what is inside."
        )
    return name
