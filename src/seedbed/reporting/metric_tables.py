"""Tables of metrics: one row per algorithm (main, modes) or per metric (secondary)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from seedbed.reporting.claims import CORRECTIONS, hopeless, in_sentence
from seedbed.reporting.formatting import (
    MISSING,
    NO_BREAK,
    finite,
    interval,
    listed,
    number,
    one_line,
    several,
    spread,
)
from seedbed.reporting.layout import Cell, Notes, Row, Table
from seedbed.reporting.study_results import ROLES, StudyResults
from seedbed.reporting.trace import Source
from seedbed.study import Study

if TYPE_CHECKING:
    import pandas as pd

    from seedbed.metrics.base import Metric

MAIN = 4
"""Metrics side by side in the main table: the primary one and the first secondary ones."""
ABREAST = 6
"""Algorithms side by side in a table of secondary metrics."""
ARROWS = {"higher": "↑", "lower": "↓", "none": ""}


def panels(study: Study, environment: str) -> list[list[str]]:
    """Algorithms of one environment, in the fewest groups that fit side by side, equally full."""
    entries = study.algorithms_in(environment)
    labels = sorted(entries, key=lambda label: ROLES.index(entries[label].role))
    count = -(-len(labels) // -(-len(labels) // ABREAST))
    return [labels[first : first + count] for first in range(0, len(labels), count)]


def main_table(results: StudyResults, environment: str) -> Table:
    """One row per algorithm: mean ± SD over seeds, below it median and quartiles; references below a rule.

    Columns are the primary metric and the first secondary ones, and the SD over seeds of the return (or of
    the primary metric) with its interval. Stars: against the baseline after correction. Bold: not
    significantly worse than the best in the primary metric, after correction over all pairs.
    """
    names = results.main_metrics(environment)[:MAIN]
    spread_of = "return" if "return" in names else names[0]
    best = not_worse_than_best(results, environment)
    notes = Notes()
    rows = []
    for label in results.algorithms(environment):
        cells = [Cell(_title(results, label))]
        for name in names:
            bold = name == names[0] and label in best
            cells.append(_metric_cell(results, environment, label, name, notes, bold=bold))
        cells.append(_spread_cell(results, environment, label, spread_of, notes))
        rows.append((label, Row(label, tuple(cells))))
    metrics = [results.metrics[name] for name in names]
    header = ("Algorithm", *(_heading(metric) for metric in metrics))
    header += (f"SD over seeds: {in_sentence(_short(results.metrics[spread_of]))}",)
    return Table(
        name=f"main_{environment}",
        caption=_main_caption(results, environment, names),
        header=header,
        keys=("algorithm", *names, f"{spread_of}-sd"),
        align="l" + "r" * (len(names) + 1),
        rows=tuple(_with_references(results, environment, rows)),
        notes=tuple(notes.texts),
        values=_values(results, environment, results.algorithms(environment), names),
    )


def secondary_table(results: StudyResults, environment: str, panel: int) -> Table:
    """One row per further metric, one column per algorithm of a panel: mean, and ± SD below."""
    labels = panels(results.study, environment)[panel]
    rows_there = results.summary[results.summary.environment == environment]
    there = set(rows_there.metric)
    planned = results.main_metrics(environment)
    ordered = [*planned[MAIN:], *(name for name in results.metrics if name not in planned)]
    names = [name for name in ordered if name in there and name in results.metrics]
    notes = Notes()
    rows = []
    for name in names:
        cells = [Cell(_heading(results.metrics[name]))]
        for label in labels:
            cells.append(_metric_cell(results, environment, label, name, notes, stacked=True))
        rows.append(Row(name, tuple(cells)))
    compared = {row["metric"] for row in results.family(environment, "secondary")}
    tested = [in_sentence(results.metrics[name].title) for name in names if name in compared]
    caption = (
        f"Further metrics in {_title(results, environment)}: mean, below it ± SD over "
        f"{_seeds_of(results, environment)}. "
        + (
            f"{_stars_caption(results, names)} Tested: {listed(tested)}; others not."
            if tested
            else "Not tested."
        )
    )
    return Table(
        name=f"secondary_{environment}" + (f"_{panel + 1}" if panel else ""),
        caption=caption,
        header=("Metric", *(_title(results, label) for label in labels)),
        keys=("metric", *labels),
        align="l" + "r" * len(labels),
        rows=tuple(rows),
        notes=tuple(notes.texts),
        values=_values(results, environment, labels, names),
    )


def modes_table(results: StudyResults, environment: str) -> Table:
    """The main metrics of policies that act in more than one mode, one row per algorithm and mode."""
    names = results.main_metrics(environment)[:MAIN]
    notes = Notes()
    rows = []
    values = []
    for label in results.algorithms(environment):
        modes = results.modes(environment, label)
        for mode in modes if len(modes) > 1 else ():
            cells = [Cell(_title(results, label)), Cell(mode)]
            for name in names:
                cells.append(_metric_cell(results, environment, label, name, notes, mode=mode, starred=False))
            rows.append(Row(f"{label}-{mode}", tuple(cells)))
            values.append(_values(results, environment, [label], names, mode))
    header = ("Algorithm", "Mode", *(_heading(results.metrics[name]) for name in names))
    return Table(
        name=f"modes_{environment}",
        caption=(
            f"Policies that can act in several modes, in {_title(results, environment)}: mean ± SD over "
            f"{_seeds_of(results, environment)}, below it median and quartiles. Tests use the mode "
            f"{results.study.statistics.policy_mode}."
        ),
        header=header,
        keys=("algorithm", "mode", *names),
        align="ll" + "r" * len(names),
        rows=tuple(rows),
        notes=tuple(notes.texts),
        values=_joined(values, _values(results, environment, [], names)),
    )


def not_worse_than_best(results: StudyResults, environment: str) -> set[str]:
    """Tested algorithms that no corrected test shows to be worse than the best one in the primary metric.

    The best has the best mean. An algorithm is left out where no test against it was made or could
    have decided; without any such test nobody is marked.
    """
    primary = results.study.statistics.primary[environment]
    metric = results.metrics[primary]
    means = {}
    for label in results.tested(environment):
        row = results.summary_row(environment, label, primary)
        if row is not None and row["n"] >= 2 and metric.better != "none":
            means[label] = row["mean"] if metric.better == "higher" else -row["mean"]
    if not means:
        return set()
    best = max(means, key=means.__getitem__)
    kept = set()
    for row in results.family(environment, "pairs"):
        sides = (row["algorithm_a"], row["algorithm_b"])
        if best not in sides or row["decision"] == "not testable" or hopeless(row):
            continue
        other = sides[1] if sides[0] == best else sides[0]
        loses = row["decision"] == ("a better" if sides[0] == best else "b better")
        kept |= {best} if loses else {best, other}
    return kept


def stars(
    results: StudyResults, environment: str, algorithm: str, metric: str
) -> tuple[str, dict[str, Any] | None]:
    """Stars of an algorithm against the baseline after correction, and the comparison that gives them."""
    baseline = results.study.statistics.baseline
    for family in ("primary", "secondary"):
        for row in results.family(environment, family):
            if (row["metric"], row["algorithm_a"], row["algorithm_b"]) == (metric, algorithm, baseline):
                p = row["p_corrected"]
                return "*" * sum(finite(p) and p <= level for level in levels(results)), row
    return "", None


def levels(results: StudyResults) -> tuple[float, float, float]:
    """The corrected p-values that one, two and three stars stand for: alpha, alpha / 5 and alpha / 50."""
    alpha = results.settings.alpha
    return alpha, alpha / 5, alpha / 50


def _metric_cell(
    results: StudyResults,
    environment: str,
    algorithm: str,
    name: str,
    notes: Notes,
    *,
    bold: bool = False,
    stacked: bool = False,
    mode: str | None = None,
    starred: bool = True,
) -> Cell:
    """Mean ± SD with stars, and median [quartiles] below; stacked: mean, and ± SD below."""
    metric = results.metrics[name]
    row = results.summary_row(environment, algorithm, name, mode)
    if row is None or row["n"] == 0:
        return _missing_cell(results, environment, algorithm, name, notes, mode)
    sources = [summary_source(results, row, ("n", "mean", "sd", "median", "q25", "q75"))]
    marks = ""
    if starred:
        marks, comparison = stars(results, environment, algorithm, name)
        if comparison is not None:
            from seedbed.reporting.claims import comparison_source

            sources.append(comparison_source(results, comparison))
    mean = number(row["mean"], metric.decimals)
    known = finite(row["sd"])
    deviation = f"±{NO_BREAK}{spread(row['sd'], metric.decimals) if known else MISSING}"
    reason = "" if known else "one seed, so no SD"
    if row["missing"] > 0:
        reason = one_line(row["note"])
    if stacked:
        first, below = mean + marks, deviation
    else:
        first = f"{mean}{NO_BREAK}{deviation}{marks}"
        below = ""
        if row["n"] > 1:
            quartiles = interval(row["q25"], row["q75"], metric.decimals).replace(" ", NO_BREAK)
            below = f"{number(row['median'], metric.decimals)}{NO_BREAK}{quartiles}"
    return Cell(first, below, bold, notes.letter(reason), tuple(sources))


def _spread_cell(results: StudyResults, environment: str, algorithm: str, name: str, notes: Notes) -> Cell:
    metric = results.metrics[name]
    row = results.summary_row(environment, algorithm, name)
    if row is None or row["n"] == 0:
        return _missing_cell(results, environment, algorithm, name, notes)
    if not finite(row["sd"]):
        return Cell(MISSING, note=notes.letter("one seed, so no SD"))
    bounds = ""
    if finite(row["sd_low"]) and finite(row["sd_high"]):
        bounds = interval(row["sd_low"], row["sd_high"], metric.decimals).replace(" ", NO_BREAK)
    source = summary_source(results, row, ("n", "sd", "sd_low", "sd_high"))
    return Cell(spread(row["sd"], metric.decimals), bounds, sources=(source,))


def _missing_cell(
    results: StudyResults, environment: str, algorithm: str, name: str, notes: Notes, mode: str | None = None
) -> Cell:
    reason = one_line(results.reason(environment, algorithm, name, mode))
    known = {"censored": "not estimable", "not reached": "not reached"}
    text = next((words for sign, words in known.items() if sign in reason), MISSING)
    return Cell(text, note=notes.letter(reason))


def summary_source(results: StudyResults, row: dict[str, Any], columns: tuple[str, ...]) -> Source:
    """Where a row of the summary stands, and the scores behind it."""
    key = {name: row[name] for name in ("environment", "algorithm", "policy_mode", "metric")}
    return Source(f"{results.study.name}/statistics/summary.parquet", key, columns, (key,))


def _with_references(results: StudyResults, environment: str, rows: Sequence[tuple[str, Row]]) -> list[Row]:
    tested = results.tested(environment)
    references = [row for label, row in rows if label not in tested]
    heading = [Row("references", (Cell("References, not tested"),))] if references else []
    return [row for label, row in rows if label in tested] + heading + references


def _title(results: StudyResults, label: str) -> str:
    return one_line(results.study.title_of(label))


def _short(metric: "Metric") -> str:
    return metric.title.split(",")[0]


def _heading(metric: "Metric") -> str:
    unit = f" ({metric.unit})" if metric.unit else ""
    arrow = f"{NO_BREAK}{ARROWS[metric.better]}" if ARROWS[metric.better] else ""
    return f"{metric.title}{unit}{arrow}"


def _seeds_of(results: StudyResults, environment: str) -> str:
    return several(len(results.study.seeds_in(environment)), "training seed")


def _stars_caption(results: StudyResults, names: Sequence[str]) -> str:
    """What stars mean, if one of these metrics is tested against the baseline."""
    rows = results.comparisons
    rows = rows[rows.metric.isin(names) & (rows.algorithm_b == results.study.statistics.baseline)]
    if rows.empty:
        return ""
    marks = "; ".join(f"{'*' * (index + 1)} p ≤ {level:g}" for index, level in enumerate(levels(results)))
    corrections = [CORRECTIONS.get(name, name) for name in dict.fromkeys(rows.correction)]
    return (
        f"Against {_title(results, results.study.statistics.baseline)}, after {' or '.join(corrections)} "
        f"correction: {marks}."
    )


def _main_caption(results: StudyResults, environment: str, names: Sequence[str]) -> str:
    rows = [
        row
        for label in results.algorithms(environment)
        if (row := results.summary_row(environment, label, names[0])) is not None
    ]
    counts = sorted({int(row["n"]) for row in rows if row["n"] > 0})
    n = "no seed" if not counts else several(counts[-1], "seed")
    if len(counts) > 1:
        n = f"{counts[0]} to {n}"
    parts = [
        f"Main results in {_title(results, environment)}: mean ± SD over training seeds (n = {n}); below, "
        f"median and quartiles. Last column: SD with its {100 * results.settings.confidence:g} % interval.",
        "↑ higher is better, ↓ lower is better.",
        _stars_caption(results, names),
    ]
    if not_worse_than_best(results, environment):
        parts.append(
            "Bold, in the first metric: not significantly worse than the best one tested, after correction."
        )
    return " ".join(part for part in parts if part)


def _values(
    results: StudyResults,
    environment: str,
    labels: Sequence[str],
    names: Sequence[str],
    mode: str | None = None,
) -> "pd.DataFrame":
    """Rows of the summary at full precision, with the corrected p-value against the baseline."""
    rows = results.summary
    chosen = []
    for label in labels:
        for name in names:
            found = results.summary_row(environment, label, name, mode)
            if found is not None:
                _, comparison = stars(results, environment, label, name)
                p = None if comparison is None or mode else comparison["p_corrected"]
                chosen.append({**found, "p_corrected_against_baseline": p})
    import pandas as pd

    return pd.DataFrame(chosen, columns=[*rows.columns, "p_corrected_against_baseline"])


def _joined(tables: Sequence["pd.DataFrame"], empty: "pd.DataFrame") -> "pd.DataFrame":
    import pandas as pd

    return pd.concat(tables, ignore_index=True) if tables else empty
