"""Compiled code is cached, and never when a source of it has changed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core.errors import TypingError

from seedbed.compiled import compiled

PACKAGE = Path(__file__).parents[2] / "src/seedbed"
INNER = "from seedbed.compiled import compiled\n@compiled\ndef value():\n    return 1\n"
OUTER = (
    "from seedbed.compiled import compiled\nfrom seedbed.inner import value\n"
    "@compiled\ndef twice():\n    return 2 * value()\n"
)
PROGRAM = (
    "from seedbed.outer import twice\n"
    "print(twice(), sum(twice.stats.cache_hits.values()), sum(twice.stats.cache_misses.values()))\n"
)


@pytest.fixture
def package(tmp_path):
    """A small copy of the package: the compiler, a function, and one in another file that calls it."""
    (tmp_path / "seedbed").mkdir()
    for name in ("__init__.py", "compiled.py"):
        shutil.copy(PACKAGE / name, tmp_path / "seedbed" / name)
    (tmp_path / "seedbed/inner.py").write_text(INNER)
    (tmp_path / "seedbed/outer.py").write_text(OUTER)
    return tmp_path


def told(package, **variables):
    environment = (
        os.environ | {"PYTHONPATH": str(package), "NUMBA_CACHE_DIR": str(package / "cache")} | variables
    )
    run = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


def test_a_called_functions_edit_reaches_its_callers(package):
    assert told(package) == ["2", "0", "1"]
    assert told(package) == ["2", "1", "0"]
    (package / "seedbed/inner.py").write_text(INNER.replace("return 1", "return 3"))
    assert told(package) == ["6", "0", "1"]


def test_without_a_folder_to_write_it_compiles_all_the_same(package):
    (package / "file").write_text("")
    assert told(package, NUMBA_CACHE_DIR=str(package / "file")) == ["2", "0", "1"]
    assert not list(package.rglob("*.nbi"))  # nor does it leave code beside its sources


def test_an_inline_function_that_makes_an_array_is_refused():
    @compiled
    def made(n):
        return np.zeros(n).sum()

    @compiled(inline=True)
    def made_inline(n):
        return np.zeros(n).sum()

    assert made(3) == 0
    with pytest.raises(TypingError, match="zeros"):
        made_inline(3)
