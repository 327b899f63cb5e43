"""Facts agree with what the system says elsewhere; what cannot be known is None, never an error."""

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from seedbed.provenance import machine


def test_hardware_agrees_with_psutil():
    facts = json.loads(json.dumps(machine.hardware()))
    assert facts["cpu"]
    assert facts["logical_cores"] == psutil.cpu_count()
    assert facts["physical_cores"] == psutil.cpu_count(logical=False)
    assert facts["memory_bytes"] == pytest.approx(psutil.virtual_memory().total, rel=0.01)


@pytest.fixture
def only_tools(tmp_path, monkeypatch):
    """The programs given, and no others, are found."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def install(**programs: str) -> None:
        for name, text in programs.items():
            path = tmp_path / name.replace("_", "-")
            path.write_text(f"#!/bin/sh\n{text}\n")
            path.chmod(0o755)

    return install


def test_gpus_and_their_driver(only_tools):
    only_tools(
        nvidia_smi='echo "NVIDIA H200, 570.86.15, 143771"\necho "Grid, with comma, 1, 2"\necho "B, 1, [N/A]"'
    )
    assert machine.hardware()["gpus"] == [
        {"name": "NVIDIA H200", "driver": "570.86.15", "memory_bytes": 143771 * 2**20},
        {"name": "B", "driver": "1", "memory_bytes": None},
    ]


def test_no_gpu_tools_mean_none_found_and_failing_ones_mean_unknown(only_tools):
    assert machine.hardware()["gpus"] == []
    only_tools(nvidia_smi="exit 9")
    assert machine.hardware()["gpus"] is None


def test_macos_asks_sysctl(only_tools, monkeypatch):
    only_tools(
        sysctl='case "$2" in machdep.cpu.brand_string) echo "Apple M3";; hw.physicalcpu) echo 8;; '
        "hw.memsize) echo 17179869184;; *) exit 1;; esac"
    )
    monkeypatch.setattr(sys, "platform", "darwin")
    facts = machine.hardware()
    assert (facts["cpu"], facts["physical_cores"], facts["memory_bytes"]) == ("Apple M3", 8, 2**34)


def test_arm_takes_the_model_from_lscpu(only_tools, monkeypatch):
    only_tools(
        lscpu='if [ "$1" ]; then printf "# core,socket\\n0,0\\n1,0\\n1,0\\n"; exit; fi; '
        'echo "Model name:  Neoverse-N1"'
    )
    monkeypatch.setattr(machine, "_cpuinfo", lambda: [{"processor": "0"}, {"processor": "1"}])
    facts = machine.hardware()
    assert (facts["cpu"], facts["physical_cores"]) == ("Neoverse-N1", 2)


def test_nothing_that_is_unknown_is_an_error(only_tools, monkeypatch):
    def unreadable(*_, **__):
        raise OSError

    monkeypatch.setattr(Path, "read_text", unreadable)
    monkeypatch.setattr(os, "sysconf", unreadable)
    monkeypatch.setattr(platform, "processor", lambda: "")
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    facts = json.loads(json.dumps(machine.hardware()))
    unknown = {"cpu", "physical_cores", "memory_bytes", "usable_cores"}
    assert {key for key, value in facts.items() if value is None} == unknown


def test_software_names_versions_and_switches(monkeypatch):
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    monkeypatch.delenv("MKL_CBWR", raising=False)
    facts = json.loads(json.dumps(machine.software(torch=False)))
    assert facts["python"] == platform.python_version()
    assert facts["torch"] is None
    assert facts["environment_variables"]["PYTHONHASHSEED"] == "7"
    assert facts["environment_variables"]["MKL_CBWR"] is None
    assert facts["packages"]["numpy"] == importlib.metadata.version("numpy")
    assert "blas" in facts["numpy_blas"]


def test_direct_dependencies_are_those_declared(monkeypatch):
    declared = [
        "numpy==2.4.6",
        "PyYAML>=6",
        "typing_extensions; python_version > '3'",
        "absent ; extra == 'x'",
    ]
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: declared)
    assert set(machine.packages()) == {"numpy", "pyyaml", "typing-extensions"}


@pytest.mark.parametrize("declared", [None, [], importlib.metadata.PackageNotFoundError("seedbed")])
def test_all_distributions_stand_in_for_undeclared_dependencies(monkeypatch, declared):
    def requires(name):
        if isinstance(declared, Exception):
            raise declared
        return declared

    monkeypatch.setattr(importlib.metadata, "requires", requires)
    assert {"numpy", "pytest", "hypothesis"} <= set(machine.packages())


def test_torch_is_described_once_imported_and_never_imported_unasked():
    program = """
import json, sys
from seedbed.provenance import machine
before, absent = machine.software()["torch"], "torch" not in sys.modules
import torch
torch.use_deterministic_algorithms(True)
torch.set_num_threads(1)
print(json.dumps([before, absent, machine.software()["torch"], torch.__version__]))
"""
    source = str(Path(__file__).parents[2] / "src")
    environment = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)
    before, absent, facts, version = json.loads(run.stdout)
    assert before is None
    assert absent
    assert facts["version"] == version
    assert (facts["deterministic_algorithms"], facts["threads"]) == (True, 1)
    assert facts["cpu_capability"]
