"""Which code a job ran: git commit, branch, tag, and a hash of what was not committed."""

import hashlib
import os
import subprocess
from pathlib import Path
from typing import Any


class _GitError(Exception):
    """Why git gives no answer, in words for a person."""


def code(root: str | Path, hash_changes: bool = True) -> dict[str, Any]:
    """The code version of the project below a folder.

    Args:
        root: the project's folder, where only what lies below it counts.
        hash_changes: whether to read what was not committed; a dirty flag alone is cheaper.

    Returns:
        commit, branch (None if detached), tags of the commit, dirty, changes (paths that differ from the
        commit or are untracked and not ignored) and changes_sha256: SHA-256 over ``git diff HEAD`` and names
        and contents of untracked files, None for a clean checkout. Without git or a commit all are None, and
        ``reason`` says why; otherwise ``reason`` is None.
    """
    facts = dict.fromkeys(("commit", "branch", "tags", "dirty", "changes", "changes_sha256", "reason"), None)
    root = Path(root)
    try:
        if not _git(root, "ls-files", "-z", "--", "."):
            raise _GitError(f"git tracks no file in {root.absolute().name}/")
        commit = _git(root, "rev-parse", "--verify", "--quiet", "HEAD", missing="").decode().strip()
        if not commit:
            raise _GitError("the repository has no commit yet")
        changed = _paths(_git(root, *_DIFF, "--name-only", "-z", "HEAD", "--", "."))
        untracked = _paths(_git(root, "ls-files", "--others", "--exclude-standard", "-z", "--", "."))
        changes_sha256 = None
        if hash_changes and (changed or untracked):
            changes_sha256 = _changes_sha256(root, untracked)
        return facts | {
            "commit": commit,
            "branch": _git(root, "symbolic-ref", "--short", "--quiet", "HEAD", missing="").decode().strip()
            or None,
            "tags": _git(root, "tag", "--points-at", "HEAD").decode().split(),
            "dirty": bool(changed or untracked),
            "changes": sorted(
                os.fsdecode(path).encode(errors="replace").decode() for path in changed + untracked
            ),
            "changes_sha256": changes_sha256,
        }
    except _GitError as error:
        return facts | {"reason": str(error)}


# A person's git settings must not change the hash of the same changes.
_DIFF = (
    *("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--binary", "--full-index"),
    *("--relative", "--src-prefix=a/", "--dst-prefix=b/", "--diff-algorithm=myers", "--indent-heuristic"),
    *("--unified=3", "--inter-hunk-context=0", "--submodule=short", "-O/dev/null"),
)


def _changes_sha256(root: Path, untracked: list[bytes]) -> str:
    """SHA-256, hexadecimal, over the diff and each untracked file's name and content."""
    total = hashlib.sha256(_git(root, *_DIFF, "HEAD", "--", "."))
    for name in sorted(untracked):
        total.update(b"\0" + name + b"\0" + _content(os.path.join(os.fsencode(root), name)))
    return total.hexdigest()


def _content(path: bytes) -> bytes:
    """Digest of a file's bytes, or of a link's target; empty for what cannot be read."""
    try:
        if os.path.islink(path):
            return hashlib.sha256(b"link " + os.readlink(path)).digest()
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError:
        return b""


def _paths(output: bytes) -> list[bytes]:
    return [path for path in output.split(b"\0") if path]


def _git(root: Path, *arguments: str, missing: str | None = None) -> bytes:
    """What git prints; ``missing`` if it exits with 1 and says nothing.

    Raises:
        _GitError: git is not installed, or refuses.
    """
    # A hook's GIT_DIR would point at another repository; optional locks would disturb a person's own git.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environment |= {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        run = subprocess.run(
            ["git", *arguments], cwd=root, env=environment, capture_output=True, stdin=subprocess.DEVNULL
        )
    except FileNotFoundError:
        raise _GitError(
            "git is not installed" if Path(root).is_dir() else f"there is no folder {root}"
        ) from None
    except OSError as error:
        raise _GitError(f"git cannot be run: {error.strerror}") from None
    if run.returncode == 1 and not run.stderr and missing is not None:
        return missing.encode()
    if run.returncode:
        lines = run.stderr.decode(errors="replace").strip().splitlines() or [f"exit status {run.returncode}"]
        if "not a git repository" in lines[0]:
            raise _GitError("the project is not in a git repository")
        raise _GitError(f"git {arguments[0]} failed: {lines[0]}")
    return run.stdout
