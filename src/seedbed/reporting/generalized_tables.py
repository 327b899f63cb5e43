"""Generalized environments in the paper: who beat whom, what was chosen, and what it cost."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any

from seedbed.generalized_study import GeneralizedStudy
from seedbed.reporting.formatting import MISSING, finite, general, interval, number, one_line, p_value, signed
from seedbed.reporting.generalized_results import GeneralizedResults
from seedbed.reporting.layout import Cell, Notes, Row, Table
from seedbed.reporting.trace import Source

if TYPE_CHECKING:
    import pandas as pd

METHODS = {"mean": "mean", "copeland": "Copeland"}
SERIES = {"forgets": "forgets all", "keeps_ranges": "keeps its ranges", "chooses": "chooses a configuration"}
COST = {
    "training_cpu_s": "Tuning: CPU time (s)",
    "training_steps_per_s": "steps/s",
    "evaluation_cpu_s": "Test: CPU time (s)",
    "evaluation_steps_per_s": "steps/s",
    "peak_memory_mb": "Peak memory (MB)",
}
DECIMALS = 1
"""Of scores."""
_ABOVE = "Columns as in the table of verdicts."
ROW_KEYS = ("label", "reading", "agent_x", "method_x", "agent_y", "method_y")
COMPARED = (
    *("mean_x", "mean_y", "n", "difference", "difference_low", "difference_high", "p_student", "p_welch"),
    *("p_paired", "wins", "losses", "ties", "p_sign", "p_equivalence"),
)


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


def verdict_table(results: GeneralizedResults) -> Table:
    """All pairs of agents in each generalized environment, under both ways of choosing."""
    caption = (
        "The tuned agents against each other on the same test environments, configurations chosen by the "
        "best tuning mean and by Copeland's vote. " + _explained(results)
    )
    return _compared(results, "verdicts", caption, _pairs(results, results.main, tuple(METHODS)))


def method_table(results: GeneralizedResults) -> Table:
    """Copeland's choice against the mean's, where they differ."""
    rows = [
        (label, row)
        for label in results.main
        for agent in results.agents(label)
        if (row := results.methods(label, agent))["configuration_x"] != row["configuration_y"]
    ]
    caption = f"Copeland's choice of a configuration against the mean's, where they differ. {_ABOVE}"
    return _compared(results, "methods", caption, rows)


def single_table(results: GeneralizedResults) -> Table:
    """The usual evaluation: tuned and tested in one environment."""
    caption = (
        "The usual evaluation for contrast: agents tuned and tested in one environment without noise and "
        f"transforms. B's range covers that environment alone, so that it is C's. {_ABOVE}"
    )
    return _compared(results, "single", caption, _pairs(results, results.single, ("mean",)))


def sensitivity_table(results: GeneralizedResults) -> Table:
    """Variations of environments, and variations of agents against what they vary and its rivals."""
    study = results.study
    rows = []
    for label, entry in study.environments.items():
        if entry.tuned_in:
            continue
        if entry.beside:
            rows += _pairs(results, [label], ("mean",))
        agents = study.algorithms_in(label)
        for name, agent in agents.items():
            if agent.beside:
                others = [agent.beside, *(o for o in results.agents(label) if agents[o].family == "C")]
                rows += [
                    (label, results.comparison(label, name, other))
                    for other in dict.fromkeys(others)
                    if other in agents
                ]
    caption = (
        "What a different choice where the paper leaves one would have changed; configurations chosen anew "
        f"by the best tuning mean. {_ABOVE}"
    )
    return _compared(results, "sensitivities", caption, rows)


def carried_table(results: GeneralizedResults) -> Table:
    """What was chosen elsewhere against what was chosen where both are tested."""
    study, rows, heading = results.study, [], None
    for row in results.carried.to_dict("records"):
        if row["label"] != heading:
            heading = row["label"]
            title = f"{study.title_of(row['rival'])}, with what was chosen in {study.title_of(row['origin'])}"
            rows.append(Row(heading, (Cell(one_line(title)),)))
        key = {name: row[name] for name in ("label", "origin", "rival", "agent")}
        table = f"{study.name}/statistics/carried.parquet"
        source = (Source(table, key, ("home_mean", *COMPARED)),)
        cells = (
            Cell(one_line(study.title_of(row["agent"]))),
            *(
                Cell(number(row[name], DECIMALS) if finite(row[name]) else MISSING, sources=source)
                for name in ("home_mean", "mean_x", "mean_y")
            ),
            *_difference_cells(row, source),
            Cell(verdict(results, row, "carried", "chosen"), sources=source),
        )
        rows.append(Row(f"{row['label']}/{row['agent']}", cells))
    return Table(
        name="carried",
        caption=(
            "Environment and uncertainty overfitting: configurations carried from elsewhere, B's range with "
            "them, against those chosen here, in the same test environments; all by the best mean. There: "
            f"test mean where they come from. {_ABOVE}"
        ),
        header=("Agent", "There", "Carried", "Chosen", "Difference", "t test", "Won", "Sign test", "Higher"),
        keys=("agent", "home", "carried", "chosen", "difference", "p_student", "wins", "p_sign", "verdict"),
        align="lrrrrrrrl",
        rows=tuple(rows),
        notes=(),
        values=results.carried,
    )


def _pairs(
    results: GeneralizedResults, labels: Iterable[str], methods: tuple[str, ...]
) -> Iterator[tuple[str, dict[str, Any]]]:
    for label in labels:
        for x, y in combinations(results.agents(label), 2):
            for method in methods:
                yield label, results.comparison(label, x, y, method)


def _explained(results: GeneralizedResults) -> str:
    level, margin = 100 * results.settings.confidence, 100 * results.study.margin
    return (
        f"Difference of mean scores with its {level:g} % bootstrap interval; two-sided p of Student's t "
        "test, below it of the paired one; trials won, lost (and tied) by the first, with the two-sided p "
        f"of the sign test; p of equality of the means within {margin:g} % of the second's. Not corrected "
        "for the number of tests."
    )


def _compared(
    results: GeneralizedResults, name: str, caption: str, rows: Iterable[tuple[str, Mapping[str, Any]]]
) -> Table:
    import pandas as pd

    notes, body, values, heading = Notes(), [], [], None
    for label, row in rows:
        if label != heading:
            heading = label
            body.append(Row(label, (Cell(one_line(results.study.title_of(label))),)))
        body.append(_comparison_row(results, row, notes))
        values.append(row)
    return Table(
        name=name,
        caption=caption,
        header=("Agents", "Chosen by", "Difference", "t test", "Won", "Sign test", "Equality", "Higher"),
        keys=("agents", "method", "difference", "p_student", "wins", "p_sign", "p_equivalence", "verdict"),
        align="llrrrrrl",
        rows=tuple(body),
        notes=tuple(notes.texts),
        values=pd.DataFrame(values, columns=list(results.comparisons.columns)),
    )


def comparison_source(results: GeneralizedResults, row: Mapping[str, Any]) -> Source:
    """Where a comparison stands."""
    table = f"{results.study.name}/statistics/comparisons.parquet"
    return Source(table, {name: row[name] for name in ROW_KEYS}, COMPARED)


def _comparison_row(results: GeneralizedResults, row: Mapping[str, Any], notes: Notes) -> Row:
    source, study = (comparison_source(results, row),), results.study
    x, y = (one_line(study.title_of(row[name])) for name in ("agent_x", "agent_y"))
    same = row["agent_x"] == row["agent_y"]
    methods = [METHODS[row[name]] for name in ("method_x", "method_y")]
    names = methods if same else [x, y]
    cells = (
        Cell(x if same else f"{x} − {y}"),
        Cell(" − ".join(methods) if same else methods[0], note=notes.letter(one_line(row["note"] or ""))),
        *_difference_cells(row, source),
        Cell(_p(row, "p_equivalence"), sources=source),
        Cell(verdict(results, row, *names), sources=source),
    )
    key = "/".join(row[name] for name in ROW_KEYS if name != "reading")
    return Row(key, cells)


def _p(row: Mapping[str, Any], column: str) -> str:
    return p_value(row[column]) if finite(row[column]) else MISSING


def _difference_cells(row: Mapping[str, Any], source: tuple[Source, ...]) -> Iterator[Cell]:
    """Difference with interval, t tests, wins and losses, and the sign test."""
    won = f"{general(int(row['wins']))}:{general(int(row['losses']))}"
    won += f" ({general(int(row['ties']))})" if row["ties"] else ""
    bounded = finite(row["difference_low"]) and finite(row["difference_high"])
    between = interval(row["difference_low"], row["difference_high"], DECIMALS) if bounded else ""
    told = signed(row["difference"], DECIMALS) if finite(row["difference"]) else MISSING
    yield Cell(told, between, sources=source)
    yield Cell(_p(row, "p_student"), _p(row, "p_paired"), sources=source)
    yield Cell(won, sources=source)
    yield Cell(_p(row, "p_sign"), sources=source)


def decisions(results: GeneralizedResults, row: Mapping[str, Any]) -> tuple[str, str]:
    """Who is higher by mean (Student's t) and who wins more (sign test): "x", "y" or ""."""
    alpha = results.settings.alpha
    mean = finite(row["p_student"]) and row["p_student"] <= alpha
    wins = finite(row["p_sign"]) and row["p_sign"] <= alpha
    return (
        ("x" if row["difference"] > 0 else "y") if mean else "",
        ("x" if row["wins"] > row["losses"] else "y") if wins else "",
    )


def verdict(results: GeneralizedResults, row: Mapping[str, Any], x: str, y: str) -> str:
    """Which of two, x or y, is higher, in a few words."""
    if row["ties"] == row["n"]:
        return "equal everywhere"
    names = {"x": x, "y": y}
    mean, wins = decisions(results, row)
    if mean == wins:
        return f"{names[mean]}, in both" if mean else "undecided"
    if mean and wins:
        return f"mean: {names[mean]}, wins: {names[wins]}"
    return f"{names[mean]}, in the mean only" if mean else f"{names[wins]}, in wins only"


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
