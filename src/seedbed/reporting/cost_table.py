"""What the runs cost: time, speed, memory and model calls, training apart from evaluation."""

from typing import TYPE_CHECKING

from seedbed.reporting.formatting import MISSING, general, number, one_line
from seedbed.reporting.layout import Cell, Notes, Row, Table
from seedbed.reporting.study_results import StudyResults
from seedbed.reporting.trace import Source

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = {
    "training_wall_s": "Training: wall time (s)",
    "training_cpu_s": "CPU time (s)",
    "training_steps_per_s": "steps/s",
    "evaluation_wall_s": "Evaluation: wall time (s)",
    "evaluation_cpu_s": "CPU time (s)",
    "evaluation_steps_per_s": "steps/s",
    "peak_memory_mb": "Peak memory (MB)",
    "model_calls": "Model calls",
}


def cost_table(results: StudyResults) -> Table:
    """One row per environment and algorithm; times and model calls are the blocks' totals / their seeds."""
    import pandas as pd

    notes = Notes()
    rows, values = [], []
    several = len(results.study.environments) > 1
    for environment in results.study.environments:
        if several:
            title = one_line(results.study.title_of(environment))
            rows.append(Row(f"{environment}", (Cell(title),)))
        for label in results.algorithms(environment):
            costs = results.costs
            costs = costs[(costs.environment == environment) & (costs.algorithm == label)]
            measured = _measured(costs)
            values.append({"environment": environment, "algorithm": label, **measured})
            key = {"environment": environment, "algorithm": label}
            source = Source(
                f"{results.study.name}/costs.parquet", key, ("block", "job", "phase", "wall_s", "cpu_s")
            )
            cells = [Cell(one_line(results.study.title_of(label)))]
            if costs.empty:
                cells[0] = Cell(cells[0].text, note=notes.letter("no cost was recorded"))
            for name in COLUMNS:
                text = _text(name, measured[name])
                cells.append(Cell(text, sources=() if text == MISSING else (source,)))
            rows.append(Row(f"{environment}/{label}", tuple(cells)))
    return Table(
        name="cost",
        caption=(
            "Cost per training seed. Seeds of a block run together, so times and model calls are a block's "
            "divided by its seeds, not measured for each alone; steps/s is the block's. Training is without "
            "the evaluations along it; evaluation is all of them. Peak memory is the largest of any block."
        ),
        header=("Algorithm", *COLUMNS.values()),
        keys=("algorithm", *COLUMNS),
        align="l" + "r" * len(COLUMNS),
        rows=tuple(rows),
        notes=tuple(notes.texts),
        values=pd.DataFrame(values, columns=["environment", "algorithm", *COLUMNS]),
    )


def _measured(costs: "pd.DataFrame") -> dict[str, float | None]:
    values: dict[str, float | None] = dict.fromkeys(COLUMNS)
    seeds = costs.drop_duplicates("block").seeds.sum()
    if not seeds:
        return values
    for phase in ("training", "evaluation"):
        part = costs[costs.phase == phase]
        if part.empty:
            continue
        wall, steps = float(part.wall_s.sum()), part.steps.dropna().sum()
        values[f"{phase}_wall_s"] = wall / seeds
        values[f"{phase}_cpu_s"] = float(part.cpu_s.sum()) / seeds
        values[f"{phase}_steps_per_s"] = float(steps) / wall if steps and wall > 0 else None
    peaks = costs.peak_memory_bytes.dropna()
    values["peak_memory_mb"] = float(peaks.max()) / 1e6 if len(peaks) else None
    calls = costs.model_calls.dropna()
    values["model_calls"] = float(calls.sum()) / seeds if len(calls) else None
    return values


def _text(name: str, value: float | None) -> str:
    if value is None:
        return MISSING
    if name.endswith("_s") and not name.endswith("per_s"):
        return number(value, 2 if value < 10 else 1)
    return general(round(value))
