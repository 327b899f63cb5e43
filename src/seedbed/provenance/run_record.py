"""What one job did and what it took: times, memory, steps, machine and code, for ``run.json``.

All of it is measured, so none of it is reproducible: it stands apart from results and triggers no rerun.
"""

import re
import resource
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from seedbed.provenance.code import code
from seedbed.provenance.machine import hardware, software

PROJECT = Path(__file__).parents[3]
OTHER = "other"
"""The phase outside all named ones: reading, building, writing."""


class Stopwatch:
    """Wall time, CPU time and memory of a process, from its making on, phase by phase.

    A phase within another interrupts it: each moment counts once, for the innermost phase.
    """

    def __init__(self) -> None:
        self.started = datetime.now(UTC)
        self._phases: dict[str, dict[str, Any]] = {}
        self._open = [OTHER]
        self._last = _clocks()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time what happens inside under this name; times of one name add up."""
        self._charge()
        self._open.append(name)
        try:
            yield
        finally:
            self._charge()
            self._open.pop()

    def phases(self) -> dict[str, dict[str, Any]]:
        """Phase -> wall_s and cpu_s (all threads, no children), peak_memory_bytes and gpu_peak_memory_bytes.

        A peak is the process's high-water mark at the end of the phase, so it may be an earlier phase's.
        """
        self._charge()
        return {name: dict(phase) for name, phase in self._phases.items()}

    def _charge(self) -> None:
        now = _clocks()
        phase = self._phases.setdefault(self._open[-1], {"wall_s": 0.0, "cpu_s": 0.0})
        phase["wall_s"] += now[0] - self._last[0]
        phase["cpu_s"] += now[1] - self._last[1]
        phase["peak_memory_bytes"] = peak_memory_bytes()
        phase["gpu_peak_memory_bytes"] = gpu_peak_memory_bytes()
        self._last = now


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def peak_memory_bytes() -> int:
    """High-water mark of this process's resident memory, in bytes, without its children."""
    try:
        # Linux's ru_maxrss begins at the peak of the process that started this one by a direct exec.
        return int(re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024
    except (OSError, TypeError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def gpu_peak_memory_bytes() -> int | None:
    """Most memory that torch held in tensors on all GPUs, in bytes; None if it has not used one."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return None
    return sum(torch.cuda.max_memory_allocated(device) for device in range(torch.cuda.device_count()))


def run_record(
    job: str,
    settings: Mapping[str, Any],
    watch: Stopwatch,
    *,
    steps: int,
    model_calls: int = 0,
    evaluation_steps: int | None = None,
    device: Mapping[str, Any] | None = None,
    exit_status: int = 0,
) -> dict[str, Any]:
    """The document of ``run.json`` or ``evaluation.json``.

    Args:
        job: "training" or "evaluation"; the phase of this name did the work.
        settings: the resolved configuration; has "study", "block", "seeds", and the labels
            ["environment"]["label"] and ["algorithm"]["label"].
        watch: started with the job.
        steps: environment steps in the job's phase, over all seeds.
        model_calls: predictions of a learned model in the job's phase, over all seeds.
        evaluation_steps: environment steps of evaluations during training.
        device: where networks were trained and what was switched there; None where there was no choice.
        exit_status: 0 unless the job failed.
    """
    counted = {"evaluation": {"steps": evaluation_steps}, job: {"steps": steps, "model_calls": model_calls}}
    phases = []
    for name, measured in watch.phases().items():
        count = {"steps": None, "model_calls": None} | counted.get(name, {})
        rate = count["steps"] / measured["wall_s"] if count["steps"] and measured["wall_s"] > 0 else None
        phases.append({"phase": name, **measured, **count, "steps_per_s": rate})
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "job": job,
        "study": settings["study"],
        "environment": settings["environment"]["label"],
        "algorithm": settings["algorithm"]["label"],
        "block": settings["block"],
        "seeds": list(settings["seeds"]),
        "configuration": dict(settings),
        "started": watch.started.isoformat(timespec="milliseconds"),
        "finished": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "exit_status": exit_status,
        "phases": phases,
        "total": {
            "wall_s": sum(phase["wall_s"] for phase in phases),
            "cpu_s": sum(phase["cpu_s"] for phase in phases),
            "children_cpu_s": children.ru_utime + children.ru_stime,
            "peak_memory_bytes": peak_memory_bytes(),
            "gpu_peak_memory_bytes": gpu_peak_memory_bytes(),
        },
        "device": None if device is None else dict(device),
        "hardware": hardware(),
        "software": software(),
        "code": code(PROJECT, hash_changes=False),
    }
