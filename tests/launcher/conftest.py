"""A small checkout: the real launcher, with tiny wheels for packages, so that it builds in seconds."""

import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# What the environment's programs do here: say how they were called.
PROGRAMS = """
import json, os, sys

def report():
    print(json.dumps({"program": os.path.basename(sys.argv[0]), "arguments": sys.argv[1:], "cwd": os.getcwd(),
                      "prefix": sys.prefix, "first_in_path": os.environ["PATH"].split(os.pathsep)[0],
                      "pythonpath": os.environ.get("PYTHONPATH"),
                      "threads": os.environ.get("OMP_NUM_THREADS")}))
"""

# Builds the project in the small checkout without setuptools; waits as long as there is a file `wait`.
BACKEND = """
import pathlib, time, zipfile

def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    pathlib.Path("building").touch()
    while pathlib.Path("wait").exists():
        time.sleep(0.02)
    name = "seedbed-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory, name), "w") as wheel:
        info = "seedbed-0.1.0.dist-info"
        wheel.writestr(info + "/METADATA", "Metadata-Version: 2.1\\nName: seedbed\\nVersion: 0.1.0\\n")
        wheel.writestr(info + "/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(info + "/entry_points.txt", "[console_scripts]\\nseedbed = programs:report\\n")
        wheel.writestr(info + "/RECORD", "")
    return name
"""


def write_programs_wheel(folder: Path) -> None:
    """A wheel `programs` with a snakemake and a pytest that only report their call."""
    folder.mkdir()
    with zipfile.ZipFile(folder / "programs-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("programs.py", PROGRAMS)
        wheel.writestr("pytest.py", "import programs\nprograms.report()\n")
        wheel.writestr("programs-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: programs\nVersion: 1\n")
        wheel.writestr(
            "programs-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(
            "programs-1.dist-info/entry_points.txt", "[console_scripts]\nsnakemake = programs:report\n"
        )
        wheel.writestr("programs-1.dist-info/RECORD", "")


def small_checkout(folder: Path) -> Path:
    """A checkout in `folder` that ./run can build without network."""
    shutil.copytree(ROOT / "src/seedbed/provenance", folder / "src/seedbed/provenance")
    shutil.copy2(ROOT / "run", folder / "run")
    (folder / "backend.py").write_text(BACKEND)
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        '[project]\nname = "seedbed"\nversion = "0.1.0"\n'
    )
    write_programs_wheel(folder / "wheels")
    (folder / "requirements.lock").write_text("--no-index\n--find-links wheels\nprograms==1\n")
    return folder


def newcomer_environment(**changes: str) -> dict[str, str]:
    """This process's variables as a newcomer's shell has them, with `changes`."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "PYTEST_", "OMP_", "PYTHON"))}
    inside = str(ROOT / ".venv")
    clean["PATH"] = os.pathsep.join(p for p in clean["PATH"].split(os.pathsep) if not p.startswith(inside))
    return clean | changes


def run_launcher(checkout: Path, *arguments: str, **options) -> subprocess.CompletedProcess[str]:
    """./run with `arguments`, waited for."""
    options = {"env": newcomer_environment(), "timeout": 120, "cwd": checkout} | options
    return subprocess.run(
        [checkout / "run", *arguments], capture_output=True, text=True, check=False, **options
    )


@pytest.fixture(scope="session")
def launch():
    return run_launcher


@pytest.fixture(scope="session")
def environment():
    return newcomer_environment


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return small_checkout(tmp_path / "a checkout")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout whose environment is there; tests leave it as they find it."""
    checkout = small_checkout(tmp_path_factory.mktemp("built") / "a checkout")
    result = run_launcher(checkout)
    assert result.returncode == 0, result.stderr
    return checkout
