"""One run at a time in a checkout, and what to do with the lock that a killed run leaves.

Snakemake's own locks are files: they outlive a killed run and say nothing of who held them. Beside them the
Snakefile's ``onstart`` takes an flock, which ends with its process whatever happens to that process. So a
Snakemake lock whose flock is free was left behind. Only the standard library is used, and nothing of this
package: ``./run`` calls this file before the environment exists.
"""

import atexit
import datetime
import errno
import fcntl
import os
import shutil
import socket
import sys
from pathlib import Path
from typing import TextIO

RUN_LOCK = Path(".snakemake/run.lock")
ENVIRONMENT_LOCK_DESCRIPTOR = 9  # opened by ./run on .snakemake/environment.lock and kept through its exec
NO_LOCKS_HERE = {errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL}

_held: dict[Path, TextIO] = {}  # open files; closing one would give its lock back


class RunInProgress(RuntimeError):
    """Another process runs the workflow in this checkout."""


def hold(path: str | os.PathLike[str] = RUN_LOCK) -> None:
    """Takes the exclusive lock on `path` until this process ends; a second call in it does nothing.

    Children inherit no lock, so a job that outlives its run does not keep the next run out.

    Raises:
        RunInProgress: another process has it; the message names its id, host and start.
    """
    path = Path(path).absolute()
    if path in _held:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    file = open(path, "a+", encoding="utf-8")  # noqa: SIM115 (stays open for the life of the process)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise RunInProgress(
            f"The workflow is already running in {path.parent.parent}: {_holder(path)}.\n"
            "Wait until that run has ended, or end it (Ctrl-C in its terminal), then start again."
        ) from None
    except OSError as error:
        if error.errno not in NO_LOCKS_HERE:
            raise
        _say(f"{path.parent} is on a file system without locks: let only one run work here at a time")
    file.truncate(0)
    file.write(f"{os.getpid()} {socket.gethostname()} {datetime.datetime.now():%Y-%m-%d %H:%M:%S}\n")
    file.flush()
    _held[path] = file
    atexit.register(file.truncate, 0)  # a record found beside a free lock was left by a killed run


def release_stale(root: Path) -> None:
    """Removes Snakemake's locks in `root` if their run is gone; names its jobs that still work."""
    locks = root / ".snakemake" / "locks"
    if not locks.is_dir():
        return
    path = root / RUN_LOCK
    with open(path, "a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say(f"the workflow is already running in {root}: {_holder(path)}")
            return
        except OSError as error:
            if error.errno in NO_LOCKS_HERE:  # nobody can tell here: Snakemake's own message says what to do
                return
            raise
        record = path.read_text(encoding="utf-8").split()
        if len(record) > 1 and record[1] != socket.gethostname():
            _say(
                f"a run on host {record[1]} (process {record[0]}) left its lock in {root}, and whether it "
                "still works cannot be seen from here. If it has ended: ./run --unlock, then start again."
            )
            return
        shutil.rmtree(locks, ignore_errors=True)
        file.truncate(0)
    _say("removed the lock of a run that was killed; what it had not finished is made again")
    survivors = orphans(root)
    if survivors:
        _say(
            "jobs of that run still work; they cannot harm this one (files are replaced whole), only slow it:"
        )
        for pid, command in survivors:
            _say(f"  process {pid}: {command}   (to end it: kill {pid})")


def orphans(root: Path) -> list[tuple[int, str]]:
    """Own processes that run a workflow script in `root`: (process id, command), innermost only.

    Read from /proc; empty where there is none.
    """
    found: dict[int, tuple[int, str]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if entry.stat().st_uid != os.getuid() or not os.path.samefile(entry / "cwd", root):
                continue
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue  # ended meanwhile, or not ours to read
        if "workflow_scripts/" in command:
            found[int(entry.name)] = (parent, command[:200])
    parents = {parent for parent, _ in found.values()}
    return sorted((pid, command) for pid, (_, command) in found.items() if pid not in parents)


def lock_environment(mode: str, root: Path) -> None:
    """`shared`: nobody rebuilds .venv while it is used. `exclusive`: only this process uses or builds it.

    The lock is on an open file of ./run, so it lives as long as ./run and the program that ./run becomes.
    """
    operation = {"shared": fcntl.LOCK_SH, "exclusive": fcntl.LOCK_EX}[mode]
    reason = "that builds the environment" if mode == "shared" else "before the environment can be rebuilt"
    try:
        _wait(ENVIRONMENT_LOCK_DESCRIPTOR, operation, f"waiting for another ./run of this checkout {reason}")
        if mode == "exclusive" and (root / RUN_LOCK).exists():  # a snakemake that was started without ./run
            with open(root / RUN_LOCK, "a", encoding="utf-8") as file:
                message = f"waiting for the workflow's end ({_holder(root / RUN_LOCK)}) {reason}"
                _wait(file.fileno(), fcntl.LOCK_EX, message)
    except OSError as error:
        if error.errno not in NO_LOCKS_HERE:
            raise


def _wait(descriptor: int, operation: int, message: str) -> None:
    try:
        fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        _say(message)
        fcntl.flock(descriptor, operation)


def _holder(path: Path) -> str:
    record = path.read_text(encoding="utf-8").split(maxsplit=2)
    if len(record) < 3:
        return "another process"
    return f"process {record[0]} on {record[1]}, since {record[2].strip()}"


def _say(text: str) -> None:
    print(f"run: {text}", file=sys.stderr, flush=True)


def main(arguments: list[str]) -> None:
    """`release-stale`, or `environment shared|exclusive`; both for the checkout in the working directory."""
    if arguments == ["release-stale"]:
        release_stale(Path.cwd())
    elif len(arguments) == 2 and arguments[0] == "environment":
        lock_environment(arguments[1], Path.cwd())
    else:
        sys.exit("usage: run_lock.py release-stale | environment shared|exclusive")


if __name__ == "__main__":
    main(sys.argv[1:])
