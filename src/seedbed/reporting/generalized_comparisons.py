"""Comparisons of a generalized study as tables: agent against agent, and one choice against another."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any

from seedbed.reporting.formatting import MISSING, finite, general, interval, number, one_line, p_value, signed
from seedbed.reporting.generalized_results import GeneralizedResults
from seedbed.reporting.layout import Cell, Notes, Row, Table
from seedbed.reporting.trace import Source

METHODS = {"mean": "mean", "copeland": "Copeland"}
DECIMALS = 1
"""Of scores."""
_ABOVE = "Columns as in the table of verdicts."
ROW_KEYS = ("label", "reading", "agent_x", "method_x", "agent_y", "method_y")
COMPARED = (
    *("mean_x", "mean_y", "n", "difference", "difference_low", "difference_high", "p_student", "p_welch"),
    *("p_paired", "wins", "losses", "ties", "win_rate_low", "win_rate_high", "p_sign", "p_equivalence"),
)


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
        "test, below it of the paired one; test trials that the first wins and loses (ties), below them "
        "Wilson's interval of its probability of winning; two-sided p of the sign test; p of equality of "
        f"the means within {margin:g} % of the second's. Not corrected for the number of tests."
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

    def between(name: str, decimals: int) -> str:
        low, high = row[f"{name}_low"], row[f"{name}_high"]
        return interval(low, high, decimals) if finite(low) and finite(high) else ""

    told = signed(row["difference"], DECIMALS) if finite(row["difference"]) else MISSING
    yield Cell(told, between("difference", DECIMALS), sources=source)
    yield Cell(_p(row, "p_student"), _p(row, "p_paired"), sources=source)
    yield Cell(won, between("win_rate", 2), sources=source)
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
