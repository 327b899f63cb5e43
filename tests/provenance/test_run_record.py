"""Times of phases add up and do not overlap; memory is this process's own; shares are called shares."""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from seedbed.artifacts import read_table, write_table
from seedbed.provenance import run_record as records
from seedbed.provenance.costs import COST_COLUMNS, costs
from seedbed.provenance.run_record import Stopwatch, run_record

SETTINGS = {
    "study": "s",
    "environment": {"label": "e", "arguments": {}},
    "algorithm": {"label": "a", "budget": 50},
    "block": "seeds-0-3",
    "seeds": [0, 1, 2, 3],
}


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is told to go on: (wall, cpu) seconds."""
    now = [100.0, 10.0]
    monkeypatch.setattr(records, "_clocks", lambda: tuple(now))

    def go(wall: float, cpu: float) -> None:
        now[0] += wall
        now[1] += cpu

    return go


def times(watch: Stopwatch) -> dict[str, tuple[float, float]]:
    return {name: (phase["wall_s"], phase["cpu_s"]) for name, phase in watch.phases().items()}


def test_an_inner_phase_interrupts_the_outer_one(clock):
    watch = Stopwatch()
    clock(1, 0.5)
    with watch.phase("training"):
        clock(10, 9)
        for _ in range(2):
            with watch.phase("evaluation"):
                clock(2, 1)
            clock(4, 4)
    clock(8, 0.25)
    assert times(watch) == {"other": (9, 0.75), "training": (18, 17), "evaluation": (4, 2)}


def test_a_phase_that_fails_is_charged_and_closed(clock):
    watch = Stopwatch()
    with contextlib.suppress(KeyError), watch.phase("training"):
        clock(3, 2)
        raise KeyError
    clock(1, 1)
    assert times(watch) == {"other": (1, 1), "training": (3, 2)}


def test_real_clocks_tell_sleep_from_work():
    watch = Stopwatch()
    with watch.phase("sleep"):
        time.sleep(0.05)
    with watch.phase("work"):
        start = time.process_time()
        while time.process_time() - start < 0.05:
            pass
    found = times(watch)
    assert found["sleep"][0] >= 0.05
    assert found["sleep"][1] < 0.04
    assert found["work"][1] >= 0.05


MEASURE = "from seedbed.provenance.run_record import *\n"


def measured(program: str, launcher: str = "") -> dict:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    command = [sys.executable, "-c", launcher + MEASURE + program]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def test_peak_memory_counts_what_was_freed_again():
    peaks = measured(
        "before = peak_memory_bytes()\nx = b'x' * 200_000_000\ndel x\nprint([before, peak_memory_bytes()])"
    )
    assert 180e6 < peaks[1] - peaks[0] < 260e6


def test_peak_memory_is_not_inherited_from_the_process_that_started_this_one():
    inner = MEASURE + "print(peak_memory_bytes())"
    large = "import subprocess, sys\nx = b'x' * 400_000_000\n"
    peak = measured(f"subprocess.run([sys.executable, '-c', {inner!r}])", large)
    assert peak < 200e6


def test_peak_memory_without_proc_takes_kilobytes_on_linux_and_bytes_on_macos(monkeypatch):
    def unreadable(*_, **__):
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", unreadable)
    monkeypatch.setattr(records.resource, "getrusage", lambda who: SimpleNamespace(ru_maxrss=5000))
    for platform, expected in {"linux": 5000 * 1024, "darwin": 5000}.items():
        monkeypatch.setattr(sys, "platform", platform)
        assert records.peak_memory_bytes() == expected


def test_gpu_memory_is_asked_only_of_a_torch_that_uses_a_gpu(monkeypatch):
    cuda = SimpleNamespace(
        is_initialized=lambda: False, device_count=lambda: 2, max_memory_allocated=lambda device: 100 + device
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    assert records.gpu_peak_memory_bytes() is None
    cuda.is_initialized = lambda: True
    assert records.gpu_peak_memory_bytes() == 201
    monkeypatch.delitem(sys.modules, "torch")
    assert records.gpu_peak_memory_bytes() is None


def example(clock) -> dict:
    watch = Stopwatch()
    clock(1, 1)
    with watch.phase("training"):
        clock(8, 4)
        with watch.phase("evaluation"):
            clock(2, 2)
    return run_record(
        "training", SETTINGS, watch, steps=200, model_calls=12, evaluation_steps=30, device={"used": "cuda"}
    )


def test_a_record_is_json_and_holds_what_was_given_and_measured(clock):
    record = json.loads(json.dumps(example(clock), allow_nan=False))
    names = ("job", "study", "environment", "algorithm", "block", "seeds", "exit_status")
    assert [record[name] for name in names] == ["training", "s", "e", "a", "seeds-0-3", [0, 1, 2, 3], 0]
    assert record["configuration"] == SETTINGS
    assert record["started"] <= record["finished"]
    assert record["started"].endswith("+00:00")
    counts = {
        phase["phase"]: (phase["steps"], phase["steps_per_s"], phase["model_calls"])
        for phase in record["phases"]
    }
    assert counts == {"other": (None, None, None), "training": (200, 25, 12), "evaluation": (30, 15, None)}
    assert (record["total"]["wall_s"], record["total"]["cpu_s"]) == (11, 7)
    assert record["device"] == {"used": "cuda"}
    assert set(record["hardware"]) >= {"cpu", "memory_bytes", "gpus"}
    assert set(record["software"]) >= {"python", "torch", "packages"}
    assert set(record["code"]) >= {"commit", "dirty"}


def test_an_instant_without_steps_has_no_rate(clock):
    watch = Stopwatch()
    with watch.phase("evaluation"):
        pass
    record = run_record("evaluation", SETTINGS, watch, steps=10)
    assert [phase["steps_per_s"] for phase in record["phases"]] == [None, None]


def test_the_cost_table_gives_whole_blocks_and_shares(clock, tmp_path):
    record = example(clock)
    write_table(tmp_path / "costs.parquet", costs([record, record]), COST_COLUMNS)
    table = read_table(tmp_path / "costs.parquet", COST_COLUMNS)
    assert list(table) == list(COST_COLUMNS)
    assert list(table["phase"]) == ["other", "training", "evaluation"] * 2
    row = table.iloc[1]
    assert (row["wall_s"], row["cpu_s"], row["steps"], row["model_calls"], row["seeds"]) == (8, 4, 200, 12, 4)
    assert (row["wall_s_per_seed"], row["cpu_s_per_seed"], row["steps_per_seed"]) == (2, 1, 50)
    assert (row["steps_per_s"], row["model_calls_per_seed"]) == (25, 3)
    assert row["peak_memory_bytes"] > 0
    assert table["gpu_peak_memory_bytes"].isna().all()
    assert pd.isna(table.iloc[0]["steps"])
    assert pd.isna(table.iloc[0]["steps_per_seed"])


def test_no_records_make_an_empty_table():
    table = costs([])
    assert len(table) == 0
    assert list(table) == list(COST_COLUMNS)
