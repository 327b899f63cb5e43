"""Tables of comparisons: the pairs of the main text, and all comparisons of the appendix."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from seedbed.reporting.claims import (
    CORRECTIONS,
    comparison_source,
    difference_unit,
    interpretation,
    missing_support,
    reason,
    titles_of,
)
from seedbed.reporting.formatting import (
    MISSING,
    NO_BREAK,
    finite,
    interval,
    listed,
    number,
    one_line,
    p_value,
    signed,
    with_unit,
)
from seedbed.reporting.layout import Cell, Notes, Row, Table
from seedbed.reporting.study_results import StudyResults

if TYPE_CHECKING:
    pass

FAMILIES = {
    "primary": "Primary metric, against the baseline",
    "pairs": "Primary metric, all pairs",
    "secondary": "Secondary metrics, against the baseline",
}


def pairs_table(results: StudyResults, environment: str) -> Table:
    """One row per pair on the primary metric: difference, corrected p, effect with interval, words."""
    family = "pairs" if results.family(environment, "pairs") else "primary"
    table = results.comparisons
    table = table[(table.environment == environment) & (table.family == family)]
    metric = results.metrics[results.study.statistics.primary[environment]]
    titles = titles_of(results)
    notes = Notes()
    rows = []
    for row in results.family(environment, family):
        note = notes.letter(_reason(row))
        source = (comparison_source(results, row),)
        cells = (
            Cell(_pair(row, titles)),
            _percent_cell(row, metric, source),
            Cell(p_value(row["p_corrected"]), sources=source)
            if finite(row["p_corrected"])
            else Cell(MISSING),
            _effect_cell(row, "d_av", source),
            Cell(str(int(row["n"])), sources=source),
            Cell(interpretation(row, titles), note=note, sources=source),
        )
        rows.append(Row(_key(row), cells))
    unit = with_unit(difference_unit(metric))
    corrected = " or ".join(CORRECTIONS.get(name, name) for name in dict.fromkeys(table.correction))
    caption = (
        f"Pairs of algorithms in {one_line(results.study.title_of(environment))}, on "
        f"{metric.title[:1].lower() + metric.title[1:]} ({metric.better} is better). Δ: first minus second, "
        f"in percent of the second, below it{unit or ' as such'} with its "
        f"{100 * results.settings.confidence:g} % interval; p after {corrected or 'no'} "
        f"correction over this table; d_av with its interval; n: seeds; –: not estimable."
    )
    return Table(
        name=f"pairs_{environment}",
        caption=caption,
        header=("Comparison", "Δ (%)", "p, corrected", "d_av", "n", "Interpretation"),
        keys=("comparison", "percent", "p_corrected", "d_av", "n", "interpretation"),
        align="lrrrrl",
        rows=tuple(rows),
        notes=tuple(notes.texts),
        values=table,
    )


def comparisons_table(results: StudyResults, environment: str) -> Table:
    """Every comparison of one environment, by family, with raw and corrected p and three effects."""
    table = results.comparisons[results.comparisons.environment == environment]
    titles = titles_of(results)
    notes = Notes()
    rows = []
    for family in results.families(environment):
        part = results.family(environment, family)
        words = FAMILIES.get(family, family)
        correction = CORRECTIONS.get(part[0]["correction"], part[0]["correction"])
        rows.append(Row(family, (Cell(f"{words} ({correction})"),)))
        for row in part:
            metric = results.metrics[row["metric"]]
            source = (comparison_source(results, row),)
            cells = (
                Cell(f"{_pair(row, titles)}: {metric.title[:1].lower() + metric.title[1:]}"),
                _difference_cell(row, metric, source),
                _p_cell(row, source),
                _effect_cell(row, "d_z", source),
                _effect_cell(row, "d_av", source),
                _effect_cell(row, "cliffs_delta", source, "cliffs"),
                Cell(
                    interpretation(row, titles),
                    f"n{NO_BREAK}={NO_BREAK}{int(row['n'])}",
                    sources=source,
                    note=notes.letter(_reason(row)),
                ),
            )
            rows.append(Row(f"{family}/{_key(row)}", cells))
    return Table(
        name=f"comparisons_{environment}",
        caption=(
            f"All comparisons in {one_line(results.study.title_of(environment))}, first minus second. "
            f"p: after correction, below it before correction; "
            f"{100 * results.settings.confidence:g} % intervals, uncorrected, below their "
            f"estimates (–: not estimable). The CSV file beside this table has every column."
        ),
        header=("Comparison: metric", "Δ", "p", "d_z", "d_av", "Cliff’s δ", "Decision"),
        keys=("comparison", "difference", "p", "d_z", "d_av", "cliffs_delta", "decision"),
        align="lrrrrrl",
        rows=tuple(rows),
        notes=tuple(notes.texts),
        values=table,
    )


def _pair(row: Mapping, titles: Mapping[str, str]) -> str:
    return f"{titles[row['algorithm_a']]} − {titles[row['algorithm_b']]}"


def _key(row: Mapping) -> str:
    return f"{row['metric']}/{row['algorithm_a']}-against-{row['algorithm_b']}"


def _reason(row: Mapping) -> str:
    """What a reader must know: why a comparison could not be made or decided, which seeds are missing."""
    lacking = missing_support(row)
    return reason(row["note"]) or (f"without {listed(lacking)}" if lacking else "")


def _bounds(row: Mapping, low: str, high: str, decimals: int) -> str:
    if not (finite(row[low]) and finite(row[high])):
        return ""
    return interval(row[low], row[high], decimals).replace(" ", NO_BREAK)


def _difference(row: Mapping, metric) -> str:
    bounds = _bounds(row, "difference_low", "difference_high", metric.decimals)
    return f"{signed(row['difference'], metric.decimals)}{NO_BREAK}{bounds or MISSING}"


def _percent_cell(row: Mapping, metric, source) -> Cell:
    if not finite(row["difference"]):
        return Cell(MISSING)
    percent = signed(row["percent"], 1) if finite(row["percent"]) else MISSING
    return Cell(percent, _difference(row, metric), sources=source)


def _difference_cell(row: Mapping, metric, source) -> Cell:
    if not finite(row["difference"]):
        return Cell(MISSING)
    bounds = _bounds(row, "difference_low", "difference_high", metric.decimals)
    return Cell(signed(row["difference"], metric.decimals), bounds or MISSING, sources=source)


def _p_cell(row: Mapping, source) -> Cell:
    if not finite(row["p_corrected"]):
        return Cell(MISSING)
    return Cell(p_value(row["p_corrected"]), p_value(row["p"]), sources=source)


def _effect_cell(row: Mapping, name: str, source, stem: str = "") -> Cell:
    stem = stem or name
    if not finite(row[name]):
        return Cell(MISSING)
    return Cell(number(row[name]), _bounds(row, f"{stem}_low", f"{stem}_high", 2) or MISSING, sources=source)
