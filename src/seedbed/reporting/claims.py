"""Sentences about differences, made only where the statistics carry them.

A claim needs its decision, n, difference with interval, corrected p and effect with interval; without one of
them no claim is made, and the sentence says why. That no difference was found is never said to be equality.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seedbed.reporting.formatting import (
    NO_BREAK,
    finite,
    interval,
    listed,
    number,
    one_line,
    p_equals,
    several,
    signed,
    with_unit,
)
from seedbed.reporting.study_results import StudyResults
from seedbed.reporting.trace import Source

if TYPE_CHECKING:
    from seedbed.metrics.base import Metric

REQUIRED = {
    "difference": "a difference",
    "difference_low": "an interval of the difference",
    "difference_high": "an interval of the difference",
    "p_corrected": "a corrected p-value",
    "d_av": "an effect d_av",
    "d_av_low": "an interval of d_av",
    "d_av_high": "an interval of d_av",
}
"""The columns that a claim needs, and what they are."""
NEGATIVE = ("difference", "difference_low", "difference_high", "p_corrected")
"""Those that are needed to say that no difference could be shown."""
CORRECTIONS = {"holm": "Holm", "bh": "Benjamini-Hochberg", "bonferroni": "Bonferroni"}
DECIDED = ("a better", "b better", "undecided")


@dataclass(frozen=True)
class Claim:
    """One sentence in plain text, with the row that carries it."""

    identity: str
    text: str
    sources: tuple[Source, ...]


def missing_support(row: Mapping) -> list[str]:
    """What a statement about this comparison needs and it lacks, in words; [] if it carries one."""
    needed = NEGATIVE if row["decision"] == "undecided" else REQUIRED
    lacking = [REQUIRED[name] for name in needed if not finite(row[name])]
    lacking += [] if row["n"] >= 2 else ["a second seed"]
    lacking += [] if row["decision"] in DECIDED else ["a decision"]
    return list(dict.fromkeys(lacking))


def reason(note: str) -> str:
    """A note of the comparisons table without what it says of effects, whose gaps the tables show."""
    parts = (part for part in one_line(note).split("; ") if " interval not estimable" not in part)
    text = "; ".join(parts).removeprefix("not testable: ")
    return re.sub(r"after (holm|bh|bonferroni) over", lambda m: f"after {CORRECTIONS[m[1]]} over", text)


def hopeless(row: Mapping) -> str:
    """Why no data could have made this comparison significant; "" if they could."""
    first = reason(row["note"]).split("; ")[0]
    return first.removeprefix("cannot succeed: ") if first.startswith("cannot succeed: ") else ""


def difference_unit(metric: "Metric") -> str:
    """The unit of a difference; that of percentages is the percentage point."""
    return "percentage points" if metric.unit == "%" else metric.unit


def effect_size(row: Mapping) -> str:
    """The effect in one word; its direction is in the decision."""
    return one_line(row["effect_label"]).split(",")[0]


def evidence(row: Mapping, metric: "Metric", confidence: float) -> str:
    """Difference with percentage and interval, corrected p, effect with interval and n, of a comparison."""
    unit = with_unit(difference_unit(metric))
    percent = f", {signed(row['percent'], 1)}{NO_BREAK}%" if finite(row["percent"]) else ""
    low, high = (signed(row[name], metric.decimals) for name in ("difference_low", "difference_high"))
    correction = CORRECTIONS.get(row["correction"], row["correction"])
    effect = "d_av not estimable"
    if finite(row["d_av"]):
        known = finite(row["d_av_low"]) and finite(row["d_av_high"])
        bounds = interval(row["d_av_low"], row["d_av_high"]) if known else "with no estimable interval"
        effect = f"d_av = {number(row['d_av'])} {bounds} ({effect_size(row)})"
    return (
        f"{signed(row['difference'], metric.decimals)}{unit}{percent}, "
        f"{100 * confidence:g}{NO_BREAK}% interval {low} to {high}, "
        f"{p_equals(row['p_corrected'])} after {correction} correction, {effect}, "
        f"n{NO_BREAK}={NO_BREAK}{several(int(row['n']), 'seed')}"
    )


def comparison_sentence(
    row: Mapping, metric: "Metric", titles: Mapping[str, str], confidence: float = 0.95
) -> str:
    """What one row of the comparisons table says, as one sentence of plain text.

    Args:
        row: a row of comparisons.parquet; the difference is a minus b.
        metric: of the row: title, unit, direction, decimals.
        titles: algorithm label -> name in the text.
        confidence: level of the intervals in the row.
    """
    a, b = titles[row["algorithm_a"]], titles[row["algorithm_b"]]
    what = in_sentence(metric.title)
    if row["decision"] == "not testable":
        why = reason(row["note"]) or "the test could not be made"
        return f"In {what}, {a} and {b} could not be compared: {why}."
    lacking = missing_support(row)
    if lacking:
        return f"In {what}, nothing is claimed about {a} and {b}: the comparison lacks {listed(lacking)}."
    if row["decision"] == "undecided":
        size = max(abs(row["difference_low"]), abs(row["difference_high"]))
        largest = number(size, metric.decimals) + with_unit(difference_unit(metric))
        never = f", and these tests could not have shown any: {hopeless(row)}" if hopeless(row) else ""
        return (
            f"In {what}, no difference could be shown between {a} and {b} "
            f"({evidence(row, metric, confidence)}); a difference of {largest} is not excluded{never}."
        )
    better, worse = (a, b) if row["decision"] == "a better" else (b, a)
    return (
        f"In {what}, where {row['better_is']} is better, {better} is better than {worse} "
        f"({a} minus {b}: {evidence(row, metric, confidence)})."
    )


def interpretation(row: Mapping, titles: Mapping[str, str]) -> str:
    """The decision in a few words, for a table: who is better and how large the effect is."""
    if row["decision"] == "not testable":
        return "not testable"
    if missing_support(row):
        return "no claim"
    if row["decision"] == "undecided":
        return "no difference shown"
    better = titles[row["algorithm_a"] if row["decision"] == "a better" else row["algorithm_b"]]
    return f"{better} better ({effect_size(row)})"


def in_sentence(title: str) -> str:
    """A title inside a sentence: its first letter small, unless the word is a name or an abbreviation."""
    first = title.split(" ")[0]
    return title if len(first) > 1 and first[1:] != first[1:].lower() else title[:1].lower() + title[1:]


def titles_of(results: StudyResults) -> dict[str, str]:
    """Label -> name in the text, of algorithms and environments."""
    labels = [*results.study.algorithms, *results.study.environments]
    return {label: one_line(results.study.title_of(label)) for label in labels}


def comparison_source(results: StudyResults, row: Mapping) -> Source:
    """Where a comparison stands, and the scores behind it."""
    sides = (row["algorithm_a"], row["algorithm_b"])
    return Source(
        f"{results.study.name}/statistics/comparisons.parquet",
        {name: row[name] for name in ("environment", "family", "metric", "algorithm_a", "algorithm_b")},
        ("n", *REQUIRED, "percent", "effect_label", "decision"),
        tuple(
            {
                "environment": row["environment"],
                "algorithm": label,
                "policy_mode": results.mode(row["environment"], label),
                "metric": row["metric"],
            }
            for label in sides
        ),
    )


def claims(results: StudyResults, environment: str, family: str) -> list[Claim]:
    """One sentence per comparison of a family, in the order of the table."""
    titles, confidence = titles_of(results), results.settings.confidence
    made = []
    for row in results.family(environment, family):
        identity = (
            f"{results.study.name}/claim/{environment}/{family}/{row['metric']}/"
            f"{row['algorithm_a']}-against-{row['algorithm_b']}"
        )
        sentence = comparison_sentence(row, results.metrics[row["metric"]], titles, confidence)
        made.append(Claim(identity, sentence, (comparison_source(results, row),)))
    return made


def key_finding(results: StudyResults, environment: str) -> Claim:
    """What the primary comparisons of one environment say together, with all their evidence."""
    titles = titles_of(results)
    plan = results.study.statistics
    metric = results.metrics[plan.primary[environment]]
    rows = results.family(environment, "primary")
    sources = tuple(comparison_source(results, row) for row in rows)
    where = f"In {titles[environment]}, {in_sentence(metric.title)}"
    identity = f"{results.study.name}/finding/{environment}"
    if not rows:
        return Claim(identity, f"{where}: no algorithm was declared for comparison with the baseline.", ())
    groups = _grouped(rows, metric, titles, results.settings.confidence)
    baseline = titles[plan.baseline]
    endings = {
        "better": f"better than {baseline}",
        "worse": f"worse than {baseline}",
        "undecided": f"no difference from {baseline} could be shown",
        "not testable": "not testable",
    }
    parts = [f"{endings[kind]}: {listed(groups[kind])}" for kind in endings if groups[kind]]
    never = list(dict.fromkeys(hopeless(row) for row in rows if hopeless(row)))
    if never:
        parts.append(f"these tests could not have shown any difference: {listed(never)}")
    return Claim(identity, f"{where} ({metric.better} is better): {'; '.join(parts)}.", sources)


def _grouped(
    rows: list[dict[str, Any]], metric: "Metric", titles: Mapping[str, str], confidence: float
) -> dict[str, list[str]]:
    """Algorithms a by what was decided about them, each with its evidence in brackets."""
    groups: dict[str, list[str]] = {"better": [], "worse": [], "undecided": [], "not testable": []}
    kinds = {"a better": "better", "b better": "worse", "undecided": "undecided"}
    for row in rows:
        lacking = missing_support(row)
        kind = "not testable" if lacking else kinds[row["decision"]]
        why = reason(row["note"]) or f"without {listed(lacking)}"
        words = why if lacking else evidence(row, metric, confidence)
        groups[kind].append(f"{titles[row['algorithm_a']]} ({words})")
    return groups
