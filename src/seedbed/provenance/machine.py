"""What a job runs on: hardware and software as JSON-able facts. What is unknown is None, never an error."""

import contextlib
import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

SWITCHES = (
    "MKL_CBWR",
    "ATEN_CPU_CAPABILITY",
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_VISIBLE_DEVICES",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "PYTHONHASHSEED",
)
"""Environment variables that may change results or speed."""


def hardware() -> dict[str, Any]:
    """Processor, memory in bytes, GPUs with driver, platform.

    ``gpus`` is [] without NVIDIA's tools and None if they are there but fail. ``usable_cores`` counts the
    logical cores this process may run on, as a cluster grants fewer than the node has.
    """
    return {
        "node": platform.node() or None,
        "platform": platform.platform(),
        "architecture": platform.machine() or None,
        "cpu": _cpu_model(),
        "physical_cores": _physical_cores(),
        "logical_cores": os.cpu_count(),
        "usable_cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "memory_bytes": _memory_bytes(),
        "gpus": _gpus(),
    }


def software(torch: bool | None = None) -> dict[str, Any]:
    """Python, torch, BLAS, thread counts, determinism switches and the versions of all direct dependencies.

    Args:
        torch: whether to import torch for its facts; None asks it only if the process has it already.
    """
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "compiler": platform.python_compiler(),
        "numpy_blas": _numpy_blas(),
        "torch": _torch(torch),
        "environment_variables": {name: os.environ.get(name) for name in SWITCHES},
        "packages": packages(),
    }


def packages() -> dict[str, str]:
    """Installed version of each direct dependency of seedbed; of all distributions if none is declared."""
    try:
        required = importlib.metadata.requires("seedbed")
    except importlib.metadata.PackageNotFoundError:
        required = None
    if not required:
        found = ((each.metadata["Name"], each.version) for each in importlib.metadata.distributions())
        return dict(sorted((normalised(name), version) for name, version in found if name))
    versions = {}
    for name in sorted({normalised(re.match(r"[\w.-]+", line)[0]) for line in required}):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):  # an extra that is not installed
            versions[name] = importlib.metadata.version(name)
    return versions


def normalised(name: str) -> str:
    """A distribution's name as package indices compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _output(*command: str) -> str | None:
    """What a command prints; None if it is missing, fails or takes longer than 20 s."""
    try:
        run = subprocess.run(
            command,
            capture_output=True,
            timeout=20,
            stdin=subprocess.DEVNULL,
            env=os.environ | {"LC_ALL": "C"},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return run.stdout.decode(errors="replace").strip() if run.returncode == 0 else None


def _cpuinfo() -> list[dict[str, str]]:
    """Linux's description of each logical core."""
    try:
        text = Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return []
    blocks = (re.findall(r"^([^\t:]+)\s*: (.*)$", block, re.M) for block in text.strip().split("\n\n"))
    return [{key.strip(): value.strip() for key, value in block} for block in blocks]


def _cpu_model() -> str | None:
    if sys.platform == "darwin":
        return _output("sysctl", "-n", "machdep.cpu.brand_string")
    for core in _cpuinfo():
        if "model name" in core:
            return core["model name"]
    listed = re.search(r"^Model name:\s*(.+)$", _output("lscpu") or "", re.M)  # ARM has no name in cpuinfo
    return listed[1].strip() if listed else platform.processor() or None


def _physical_cores() -> int | None:
    if sys.platform == "darwin":
        return _integer(_output("sysctl", "-n", "hw.physicalcpu"))
    cores = {(core.get("physical id"), core["core id"]) for core in _cpuinfo() if "core id" in core}
    if cores:
        return len(cores)
    listed = re.findall(r"^(\d+),(\d*)$", _output("lscpu", "-p=CORE,SOCKET") or "", re.M)
    return len(set(listed)) or None


def _memory_bytes() -> int | None:
    if sys.platform == "darwin":
        return _integer(_output("sysctl", "-n", "hw.memsize"))
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _gpus() -> list[dict[str, Any]] | None:
    if not shutil.which("nvidia-smi"):
        return []
    query = _output(
        "nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader,nounits"
    )
    if query is None:
        return None
    rows = [
        [field.strip() for field in line.split(",")] for line in query.splitlines() if line.count(",") == 2
    ]
    mebibytes = [_integer(memory) for _, _, memory in rows]
    return [
        {"name": name, "driver": driver, "memory_bytes": size if size is None else size * 2**20}
        for (name, driver, _), size in zip(rows, mebibytes, strict=True)
    ]


def _integer(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


def _numpy_blas() -> str | None:
    try:
        import numpy

        blas = numpy.show_config(mode="dicts")["Build Dependencies"]["blas"]
        return f"{blas['name']} {blas.get('version', '')}".strip()
    except (ImportError, KeyError, TypeError):
        return None


def _torch(wanted: bool | None) -> dict[str, Any] | None:
    if wanted is False or (wanted is None and "torch" not in sys.modules):
        return None
    try:
        import torch
    except ImportError:
        return None
    build = torch.__config__.show()
    mkl = re.search(r"(?:oneAPI|Intel\(R\)) [^\n]*Math Kernel Library[^\n]*", build)
    onednn = re.search(r"MKL-DNN (v[\d.]+)", build)
    return {
        "version": torch.__version__,
        "cuda": torch.version.cuda,
        "blas": (re.search(r"BLAS_INFO=(\w+)", build) or [None, None])[1],
        "mkl": mkl[0].strip() if mkl else None,
        "onednn": onednn[1] if onednn else None,
        "cpu_capability": _asked(torch.backends.cpu.get_cpu_capability),
        "threads": torch.get_num_threads(),
        "interop_threads": torch.get_num_interop_threads(),
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "cudnn_deterministic": torch.backends.cudnn.deterministic,
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "cudnn": _asked(torch.backends.cudnn.version),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
    }


def _asked(question) -> Any:
    try:
        return question()
    except (AttributeError, RuntimeError):
        return None
