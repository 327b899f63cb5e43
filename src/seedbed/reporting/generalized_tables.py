"""Tables of a generalized study: comparisons, what was chosen, series, and what it cost."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from seedbed.generalized_study import GeneralizedStudy
from seedbed.reporting.formatting import MISSING, finite, general, interval, number, one_line, p_value, signed
from seedbed.reporting.generalized_comparisons import (
    DECIMALS,
    METHODS,
    carried_table,
    method_table,
    sensitivity_table,
    single_table,
    verdict_table,
)
from seedbed.reporting.generalized_results import GeneralizedResults
from seedbed.reporting.layout import Cell, Notes, Row, Table
from seedbed.reporting.trace import Source

if TYPE_CHECKING:
    import pandas as pd

SERIES = {"forgets": "forgets all", "keeps_ranges": "keeps its ranges", "chooses": "chooses a configuration"}
COST = {
    "training_cpu_s": "Tuning: CPU time (s)",
    "training_steps_per_s": "steps/s",
    "evaluation_cpu_s": "Test: CPU time (s)",
    "evaluation_steps_per_s": "steps/s",
    "peak_memory_mb": "Peak memory (MB)",
}


def generalized_table_names(study: GeneralizedStudy) -> list[str]:
    """Names of a study's tables, without reading a result."""
    entries = study.environments.values()
    names = ["verdicts", "choices", "methods"]
    if any(entry.single for entry in entries):
        names.append("single")
    if study.carried:
        names.append("carried")
    variations = [*(e for e in entries if not e.tuned_in), *study.algorithms.values()]
    if any(entry.beside for entry in variations):
        names.append("sensitivities")
    return [*names, *(["series"] if study.meta else []), "cost"]


def generalized_tables(results: GeneralizedResults) -> dict[str, Table]:
    """All tables of a study by name, in the order of ``generalized_table_names``."""
    return {name: MAKERS[name](results) for name in generalized_table_names(results.study)}


def choice_table(results: GeneralizedResults) -> Table:
    """What each agent was tuned to, and its scores."""
    import pandas as pd

    rows, values, notes = [], [], Notes()
    for label, entry in results.study.environments.items():
        if entry.tuned_in:
            continue
        rows.append(Row(label, (Cell(one_line(results.study.title_of(label))),)))
        for agent in results.study.algorithms_in(label):
            picks = [results.pick(label, agent, method) for method in METHODS]
            values += picks
            same = picks[0]["configuration"] == picks[1]["configuration"]
            for pick in picks[:1] if same else picks:
                by = "both" if same else METHODS[pick["method"]]
                rows.append(_choice_row(results, pick, by, picks[1], notes))
    study = results.study
    return Table(
        name="choices",
        caption=(
            f"Configurations chosen among the tuning trials, and their scores in {general(study.test)} test "
            "trials. Configuration: alpha, lambda, tilings × cells, groups of variables. Untuned: tuning "
            "mean of the median configuration. Tuning: mean of the chosen one, the best of many, so biased "
            "upward. Bias: tuning less test mean, with Welch's interval. Median: with quartiles. Hung: test "
            "trials without a completed episode."
        ),
        header=("Agent", "Chosen by", "Configuration", "Untuned", "Tuning", "Test", "Bias", "Median", "Hung"),
        keys=("agent", "method", "configuration", "untuned", "tuning", "test", "bias", "median", "hung"),
        align="lllrrrrrr",
        rows=tuple(rows),
        notes=tuple(notes.texts),
        values=pd.DataFrame(values, columns=list(results.picks.columns)),
    )


def _choice_row(results, pick: Mapping[str, Any], by: str, vote: Mapping[str, Any], notes: Notes) -> Row:
    key = {name: pick[name] for name in ("label", "agent", "reading", "method")}

    def cell(text: str, *columns: str, below: str = "", note: str = "") -> Cell:
        table = f"{results.study.name}/statistics/picks.parquet"
        return Cell(text, below, note=note, sources=(Source(table, key, columns),))

    def score(name: str) -> str:
        return number(pick[name], DECIMALS) if finite(pick[name]) else MISSING

    configuration = (
        f"{pick['alpha']:g}, {pick['lambda']:g}, {pick['tilings']} × {pick['cells']}, {pick['layout']}"
    )
    bias = signed(pick["tuning_bias"], DECIMALS) if finite(pick["tuning_bias"]) else MISSING
    bounds = pick["tuning_bias_low"], pick["tuning_bias_high"]
    around = interval(*bounds, DECIMALS) if all(map(finite, bounds)) else ""
    settled = pick["method"] == "copeland" or by == "both"
    note = "Copeland: beats every other configuration" if settled and vote["condorcet"] else ""
    if settled and vote["tied"] > 1:
        note = f"Copeland: {general(int(vote['tied']))} configurations share the top of the vote"
    cells = (
        Cell(one_line(results.study.title_of(pick["agent"]))),
        cell(by, "tied", "condorcet", note=notes.letter(note)),
        cell(configuration, "configuration", "alpha", "lambda", "tilings", "cells", "layout"),
        cell(score("median_of_all"), "median_of_all"),
        cell(score("tuning_mean"), "tuning_mean"),
        cell(score("test_mean"), "test_mean", "sd", "n"),
        cell(bias, "tuning_bias", "tuning_bias_low", "tuning_bias_high", below=around),
        cell(score("median"), "median", "q25", "q75", below=interval(pick["q25"], pick["q75"], DECIMALS)),
        cell(general(int(pick["without_episode"])), "without_episode"),
    )
    return Row(f"{pick['label']}/{pick['agent']}/{pick['method']}", cells)


def series_table(results: GeneralizedResults) -> Table:
    """The agents of the series against the one that forgets."""
    rows = []
    for row in results.meta.to_dict("records"):
        source = (
            Source(
                f"{results.study.name}/statistics/meta.parquet",
                {"agent": row["agent"]},
                ("n", "mean", "growths", "difference", "difference_low", "difference_high", "wins", "losses"),
            ),
        )
        told = finite(row["difference"])
        won = f"{general(int(row['wins']))}:{general(int(row['losses']))}" if told else ""
        won += f" ({general(int(row['ties']))})" if told and row["ties"] else ""
        cells = (
            Cell(SERIES[row["agent"]]),
            Cell(number(row["mean"], DECIMALS), sources=source),
            Cell(number(row["growths"], DECIMALS), sources=source),
            Cell(
                signed(row["difference"], DECIMALS) if told else "",
                interval(row["difference_low"], row["difference_high"], DECIMALS)
                if told and finite(row["difference_low"])
                else "",
                sources=source if told else (),
            ),
            Cell(p_value(row["p_paired"]) if finite(row["p_paired"]) else ""),
            Cell(won, sources=source if told else ()),
            Cell(p_value(row["p_sign"]) if finite(row["p_sign"]) else ""),
        )
        rows.append(Row(row["agent"], cells))
    plan = results.study.meta
    return Table(
        name="series",
        caption=(
            f"Agent {one_line(results.study.title_of(plan.agent))} in {general(plan.series)} series of "
            f"{general(plan.length)} environments, each series from a family of its own. The unit is the "
            "series: mean score over its environments. Differences, wins and tests (paired t, sign) are "
            "against the agent that forgets; not corrected for the number of tests."
        ),
        header=("What it does", "Mean", "Growths", "Difference", "t test", "Won", "Sign test"),
        keys=("agent", "mean", "growths", "difference", "p_paired", "wins", "p_sign"),
        align="lrrrrrr",
        rows=tuple(rows),
        notes=(),
        values=results.meta,
    )


def cost_table(results: GeneralizedResults) -> Table:
    """One row per environment label and one for the series: all jobs together."""
    import pandas as pd

    rows, values = [], []
    for label in [*results.study.environments, *(["meta"] if results.study.meta else [])]:
        part = results.costs[results.costs.environment == label]
        measured = {"environment": label, **_measured(part)}
        values.append(measured)
        source = Source(
            f"{results.study.name}/costs.parquet",
            {"environment": label},
            ("block", "job", "phase", "cpu_s", "steps"),
        )
        title = "series" if label == "meta" else one_line(results.study.title_of(label))
        cells = [Cell(title)]
        for name in COST:
            value = measured[name]
            text = MISSING if value is None else general(round(value))
            cells.append(Cell(text, sources=() if value is None else (source,)))
        rows.append(Row(label, tuple(cells)))
    return Table(
        name="cost",
        caption=(
            "Cost of all agents and trials together, in sums over jobs; steps/s is per core. Where numba's "
            "cache was empty, compiling is in it. Peak memory is the largest of any job."
        ),
        header=("Environment", *COST.values()),
        keys=("environment", *COST),
        align="l" + "r" * len(COST),
        rows=tuple(rows),
        notes=(),
        values=pd.DataFrame(values, columns=["environment", *COST]),
    )


def _measured(costs: "pd.DataFrame") -> dict[str, float | None]:
    values: dict[str, float | None] = dict.fromkeys(COST)
    for phase in ("training", "evaluation"):
        part = costs[costs.phase == phase]
        cpu, steps = float(part.cpu_s.sum()), float(part.steps.dropna().sum())
        if len(part):
            values[f"{phase}_cpu_s"] = cpu
            values[f"{phase}_steps_per_s"] = steps / cpu if steps and cpu > 0 else None
    peaks = costs.peak_memory_bytes.dropna()
    values["peak_memory_mb"] = float(peaks.max()) / 1e6 if len(peaks) else None
    return values


MAKERS = {
    "verdicts": verdict_table,
    "choices": choice_table,
    "methods": method_table,
    "single": single_table,
    "carried": carried_table,
    "sensitivities": sensitivity_table,
    "series": series_table,
    "cost": cost_table,
}
"""All tables that a study can have, in their order in the paper."""
