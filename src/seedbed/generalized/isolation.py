"""Agents of others in a process that sees nothing but its own folder, programs and two pipes.

Two ways, both of Linux alone:

* ``namespaces and user``: for root. A file system of its own that holds the agent's folder, /usr and Python,
  read-only but for the folder; no network, no process but its own, no capabilities, and user 65534.
* ``namespaces``: the same for anybody whom the kernel grants user namespaces, under the caller's own user.
"""

import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from seedbed.artifacts import SeedbedError

WAYS = ("namespaces and user", "namespaces")
USER = 65534
"""nobody, in most systems"""
_INSIDE = "/agent"
_NAMESPACES = ("--net", "--ipc", "--uts", "--pid", "--mount", "--mount-proc", "--fork", "--kill-child")
_ROOT = """
set -e
root=$1 work=$2 places=$3
shift 3
ulimit -c 0
mount -t tmpfs -o mode=755 none "$root"
IFS=:
for place in $places; do
  if [ -L "$place" ]; then
    mkdir -p "$root$(dirname "$place")"
    cp -P "$place" "$root$place"
  elif [ -d "$place" ]; then
    mkdir -p "$root$place"
    mount -o rbind "$place" "$root$place"
    mount -o remount,bind,ro "$root$place"
  fi
done
mkdir -p "$root/proc" "$root/dev" "$root/tmp" "$root/agent"
for device in null zero urandom; do
  : > "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mount --bind "$work" "$root/agent"
mount -t proc proc "$root/proc"
mount -o remount,bind,ro "$root"
chroot "$root" "$@" || exit $?
exit 0
"""
# The shell stays as first process, as nobody's signal reaches it but its parent's: its end ends all others.


def visible_places() -> tuple[str, ...]:
    """What an agent in namespaces sees of the machine: programs, libraries, this Python and its packages."""
    system = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
    return tuple(dict.fromkeys((*system, os.path.realpath(sys.base_prefix), sys.base_prefix, sys.prefix)))


@functools.cache
def isolation() -> str:
    """The strictest of WAYS that works here.

    Raises:
        SeedbedError: none does.
    """
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    for way in WAYS if root else ("namespaces",):
        with tempfile.TemporaryDirectory() as empty, suppress(OSError), _folder(Path(empty), way) as folder:
            command = _command(way, folder, [sys.executable, "-c", "import json"])
            if subprocess.run(command, capture_output=True, **_options(folder)).returncode == 0:
                return way
    raise SeedbedError(
        "Agents cannot be kept from reading what is sealed on this machine. That takes Linux, and root or "
        "user namespaces with util-linux (unshare, setpriv): run as root, or where they are allowed."
    )


@contextmanager
def isolated(source: Path, command: Sequence[str], way: str, errors: Any = subprocess.DEVNULL):
    """Start a command in a copy of a folder; yields the process, and kills it at last.

    Args:
        source: the folder, copied.
        command: run in the copy. What it inherits is PATH, a home, and three pipes.
        way: one of WAYS.
        errors: where its standard error goes.
    """
    with _folder(source, way) as folder:
        process = subprocess.Popen(
            _command(way, folder, command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
            **_options(folder),
        )
        try:
            yield process
        finally:
            kill(process)
            for stream in (process.stdin, process.stdout):
                with suppress(OSError):
                    stream.close()
            process.wait()


def kill(process: subprocess.Popen) -> None:
    """End an isolated process: in namespaces with all that it started, else with its session."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def _folder(source: Path, way: str):
    """A folder with ``work``, the copy, and ``root``, where the agent's file system will be."""
    folder = Path(tempfile.mkdtemp(prefix="seedbed-agent-"))
    try:
        (folder / "root").mkdir()
        shutil.copytree(source, folder / "work")
        folder.chmod(0o755)
        if "user" in way.split():
            for path in (folder / "work", *(folder / "work").rglob("*")):
                os.chown(path, USER, USER)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _command(way: str, folder: Path, command: Sequence[str]) -> list[str]:
    identity = ["--user", "--map-root-user"]
    drop = ["--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
    if way == "namespaces and user":
        identity = []
        drop = [f"--reuid={USER}", f"--regid={USER}", "--clear-groups", *drop]
    places = ":".join(visible_places())
    start = ["sh", "-c", _ROOT, "sh", str(folder / "root"), str(folder / "work"), places]
    enter = ["setpriv", *drop, "--", "env", "-C", _INSIDE, *command]
    return ["unshare", *identity, *_NAMESPACES, *start, *enter]


def _options(folder: Path) -> dict:
    """What a child is started with: nothing of this process's surroundings."""
    path = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    environment = {
        "PATH": path,
        "HOME": _INSIDE,
        "TMPDIR": _INSIDE,
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return {"cwd": folder / "work", "env": environment, "close_fds": True}
