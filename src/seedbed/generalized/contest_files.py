"""The files of a secret evaluation: one way to write each, so that no bit can change unseen."""

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

from seedbed.artifacts import SeedbedError, atomic, read_json, write_text


class Contest:
    """The folder of a secret evaluation.

    ``sealed/`` is the evaluator's own: ``contest.yaml``, which a person writes, and ``seal.json``.
    ``public/`` is for everybody.
    """

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.sealed, self.public = self.folder / "sealed", self.folder / "public"
        self.request, self.seal = self.sealed / "contest.yaml", self.sealed / "seal.json"
        self.commitment, self.tuning = self.public / "commitment.json", self.public / "tuning.json"
        self.freeze, self.agents = self.public / "freeze.json", self.public / "agents"
        self.results, self.reveal = self.public / "results.json", self.public / "reveal.json"


def text_of(value: Any) -> str:
    """The one way to write a value into a file: JSON with sorted keys, ASCII; NaN is refused."""
    return json.dumps(value, indent=1, sort_keys=True, allow_nan=False, ensure_ascii=True) + "\n"


def write_public(path: Path, value: Any) -> None:
    """Write a file once; the same value again changes nothing.

    Raises:
        SeedbedError: it is there with another content.
    """
    text = text_of(value)
    if path.exists():
        if path.read_text(encoding="utf-8") != text:
            raise SeedbedError(
                f"{path} is there and says something else. What was published stands; a change takes a new "
                "contest."
            )
        return
    write_text(path, text)


def write_sealed(path: Path, value: Any) -> None:
    """Write a file that only its owner can read, never over another one.

    Raises:
        SeedbedError: it is there.
    """
    with atomic(path) as temporary:
        temporary.touch(mode=0o600)
        temporary.write_text(text_of(value), encoding="utf-8")
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise SeedbedError(f"{path} is there already, and a seal is never written over.") from None


def close_to_others(folder: Path) -> None:
    """Give a folder mode 0700.

    Raises:
        SeedbedError: it is not the caller's, or a link.
    """
    try:
        if folder.is_symlink():
            raise SeedbedError(
                f"{folder} is a link. Put the sealed files into a folder of the contest's own."
            )
        folder.chmod(0o700)
    except OSError as error:
        raise SeedbedError(f"{folder} cannot be closed to others: {error.strerror}.") from None


def required(path: Path, step: str) -> Any:
    """What a file of an earlier step says.

    Raises:
        SeedbedError: it is not there, naming the step, or damaged.
    """
    if not path.exists():
        raise SeedbedError(f"{path} is missing. Run first: seedbed secret {step} {path.parents[1]}")
    return read_json(path)


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes, hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def source_files(folder: Path) -> dict[str, str]:
    """Each file below an agent's folder, with its mode (as git writes it) and SHA-256.

    ``__pycache__`` does not count.

    Raises:
        SeedbedError: the folder is missing, or holds a link or something else that is no file.
    """
    if not folder.is_dir():
        raise SeedbedError(f"{folder} is no folder. An agent is a folder with its sources and agent.json.")
    files = {}
    for path in sorted(folder.rglob("*")):
        if "__pycache__" in path.relative_to(folder).parts or (path.is_dir() and not path.is_symlink()):
            continue
        if path.is_symlink() or not path.is_file():
            raise SeedbedError(
                f"{path} is a link or no plain file. An agent's folder holds plain files only."
            )
        mode = "100755" if path.stat().st_mode & 0o100 else "100644"
        files[path.relative_to(folder).as_posix()] = f"{mode} {file_hash(path)}"
    return files


def copy_sources(folder: Path, target: Path) -> None:
    """A copy of an agent's folder; whole or not at all."""
    partial = target.with_name(f".{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(folder, partial, ignore=shutil.ignore_patterns("__pycache__"))
    os.replace(partial, target)


def differences(now: dict[str, str], then: dict[str, str]) -> list[str]:
    """Which files differ between two source trees, in words."""
    return [
        f"{name} was {'added' if name not in then else 'removed' if name not in now else 'changed'}"
        for name in sorted(now.keys() | then.keys())
        if now.get(name) != then.get(name)
    ]
