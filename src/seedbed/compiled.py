"""numba's compiler for the inner loops, with a cache on disk that no edited source can make stale.

numba looks at the file of the compiled function alone, not at the files of the functions that it calls. Here
the cache's folder is named after the content of every file that uses this module.
"""

import hashlib
import os
from pathlib import Path

import numba

PACKAGE = Path(__file__).parent


def sources_digest(package: Path = PACKAGE) -> str:
    """SHA-256 over the names and contents of the package's files that compile something, 16 hex digits."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        content = path.read_bytes()
        if b"seedbed.compiled" in content or path == Path(__file__):
            digest.update(str(path.relative_to(package)).encode() + b"\0" + content + b"\0")
    return digest.hexdigest()[:16]


def cache_folder() -> Path | None:
    """Where compiled code is kept: under NUMBA_CACHE_DIR or the user's cache, None if that is read-only."""
    root = os.environ.get("NUMBA_CACHE_DIR")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = (Path(root) if root else home / "seedbed") / sources_digest()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return folder if os.access(folder, os.W_OK | os.X_OK) else None
    except OSError:
        return None


_CACHE = cache_folder()


def compiled(function=None, *, inline: bool = False):
    """Compile a function of scalars and arrays; ``inline`` copies it into its callers.

    Floating point stays as written (no reassociation), so that results do not depend on who calls. Inline
    functions do not count references, which had cost a trial's step half of its time: they must neither make
    nor return arrays (numba refuses the first).
    """
    if function is None:
        return lambda function: compiled(function, inline=inline)
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(_CACHE or "")
    try:
        cached = _CACHE is not None
        return numba.njit(cache=cached, error_model="numpy", forceinline=inline, _nrt=not inline)(function)
    finally:
        numba.config.CACHE_DIR = before
