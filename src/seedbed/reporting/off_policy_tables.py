"""Off-policy evaluation in the paper: what the data can carry, the estimates beside the truth, and words."""

from typing import TYPE_CHECKING, Any

from seedbed.reporting.claims import Claim
from seedbed.reporting.formatting import (
    MISSING,
    finite,
    general,
    interval,
    number,
    one_line,
)
from seedbed.reporting.layout import Cell, Notes, Row, Table
from seedbed.reporting.study_results import StudyResults
from seedbed.reporting.trace import Source

if TYPE_CHECKING:
    import pandas as pd

OFF_POLICY_TABLES = ("off_policy_data", "off_policy")
NAMES = {
    "IS": "importance sampling (IS)",
    "WIS": "weighted IS",
    "PDIS": "per-decision IS",
    "WPDIS": "weighted per-decision IS",
    "FQE": "direct method, fitted Q",
    "DR": "doubly robust",
    "WDR": "weighted doubly robust",
    "MAGIC": "MAGIC",
}
DECIMALS = 2
"""Of returns and their errors."""
SPOKEN, SPOKEN_NAME = "WPDIS", "weighted per-decision importance sampling"
"""The estimator whose value is said in words."""


def target_title(results: StudyResults, label: str) -> str:
    """How text and tables call a target policy."""
    return one_line(results.study.off_policy.targets[label].title or label)


def behaviour_title(results: StudyResults) -> str:
    """How text and tables call the behaviour policy."""
    return one_line(results.study.off_policy.behaviour.title or "the behaviour policy")


def off_policy_data_table(results: StudyResults) -> Table:
    """One row per target policy: true return, effective episodes at the weakest step, weights, verdict."""
    rows, chosen = [], []
    refused = results.off_policy["coverage"].groupby("target").refused.first()
    for label in results.study.off_policy.targets:
        row = _weakest_step(results, label)
        chosen.append(row)
        key = {"target": label, "t": row["t"]}

        def cell(text: str, *columns: str, below: str = "", key: dict = key) -> Cell:
            return Cell(text, below, sources=(_source(results, "overlap", key, *columns),))

        share = f"{100 * row['largest_share']:.0f}" if finite(row["largest_share"]) else MISSING
        bounds = interval(row["truth_low"], row["truth_high"], DECIMALS)
        verdict = "accepted" if row["accepted"] else "refused"
        cells = (
            Cell(target_title(results, label)),
            cell(number(row["truth"], DECIMALS), "truth", "truth_low", "truth_high", below=bounds),
            cell(f"{row['effective']:.1f}", "effective"),
            cell(general(int(row["t"])), "t"),
            cell(share, "largest_share"),
            cell(_weight(row["mean_weight"]), "mean_weight"),
            cell(verdict, "accepted", "verdict"),
            Cell(f"{100 * refused[label]:.0f}", sources=(_refused_source(results, label),)),
        )
        rows.append(Row(label, cells))
    plan = results.study.off_policy
    header = ("Target policy", "True return", "Effective episodes", "at step")
    return Table(
        name="off_policy_data",
        caption=(
            f"What {general(plan.episodes)} episodes of the behaviour policy ({behaviour_title(results)}) "
            "say of other policies. True return: mean over episodes of the target policy itself, with its "
            f"{100 * results.settings.confidence:g} % interval. Effective episodes: at the step with the "
            f"fewest; below {plan.least_effective:g} the data are refused. Largest share, mean weight (1 is "
            "expected): of the weights of whole episodes. Last column: how many of the repeated data sets "
            "are refused."
        ),
        header=(*header, "Largest share (%)", "Mean weight", "Verdict", "Refused (%)"),
        keys=("target", "truth", "effective", "t", "largest_share", "mean_weight", "verdict", "refused"),
        align="lrrrrrlr",
        rows=tuple(rows),
        notes=(),
        values=_frame(chosen, results.off_policy["overlap"]),
    )


def off_policy_table(results: StudyResults) -> Table:
    """One row per target policy and estimator: estimate of the logged data; bias, RMSE and coverage."""
    import pandas as pd

    plan, notes, rows = results.study.off_policy, Notes(), []
    estimates, coverage = results.off_policy["estimates"], results.off_policy["coverage"]
    both = estimates.merge(coverage, on=["target", "estimator"], validate="one_to_one")
    for label in plan.targets:
        rows.append(Row(label, (Cell(target_title(results, label)),)))
        for row in both[both.target == label].to_dict("records"):
            key = {"target": label, "estimator": row["estimator"]}
            told = _source(results, "estimates", key, "estimate", "low", "high", "verdict")
            repeated = _source(
                results, "coverage", key, "bias", "bias_low", "bias_high", "rmse", "coverage", "repetitions"
            )
            reason = "" if row["accepted"] else row["verdict"]
            cells = (
                Cell(NAMES[row["estimator"]]),
                _bounded(row, "estimate", "low", "high", told, notes.letter(one_line(row["note"] or reason))),
                _bounded(row, "bias", "bias_low", "bias_high", repeated),
                Cell(number(row["rmse"], DECIMALS) if finite(row["rmse"]) else MISSING, sources=(repeated,)),
                _bounded(row, "coverage", "coverage_low", "coverage_high", repeated, scale=100, decimals=0),
            )
            rows.append(Row(f"{label}/{row['estimator']}", cells))
    return Table(
        name="off_policy",
        caption=(
            f"Returns estimated from {general(plan.episodes)} episodes of the behaviour policy "
            f"({behaviour_title(results)}), with {100 * results.settings.confidence:g} % bootstrap intervals "
            "over episodes. Bias, root mean squared error and coverage of the intervals: against the true "
            f"return, over {general(plan.repetitions)} such data sets, refused ones included; below, their "
            "intervals (t, Wilson)."
        ),
        header=("Estimator", "Estimate", "Bias", "RMSE", "Coverage (%)"),
        keys=("estimator", "estimate", "bias", "rmse", "coverage"),
        align="lrrrr",
        rows=tuple(rows),
        notes=tuple(notes.texts),
        values=pd.DataFrame(both),
    )


def off_policy_claims(results: StudyResults) -> list[Claim]:
    """One sentence per target policy: the verdict, an estimate, and the truth beside it."""
    claims = []
    table = results.off_policy["estimates"]
    for label in results.study.off_policy.targets:
        row = table[(table.target == label) & (table.estimator == SPOKEN)].iloc[0].to_dict()
        if finite(row["low"]):
            says = "says" if row["accepted"] else "would have said"
            held = "holds" if row["low"] <= row["truth"] <= row["high"] else "misses"
            value = number(row["estimate"], DECIMALS)
            bounds = interval(row["low"], row["high"], DECIMALS)
            told = (
                f"{SPOKEN_NAME.capitalize()} {says} {value} {bounds}; the true return is "
                f"{number(row['truth'], DECIMALS)}, which the interval {held}."
            )
        else:
            told = f"{SPOKEN_NAME.capitalize()} has no interval ({one_line(row['note'])}). "
            told += f"The true return is {number(row['truth'], DECIMALS)}."
        key = {"target": label, "estimator": SPOKEN}
        source = _source(results, "estimates", key, "estimate", "low", "high", "truth", "verdict", "note")
        text = f"{target_title(results, label)}: {one_line(row['verdict'])}. {told}"
        claims.append(Claim(f"{results.study.name}/off_policy/{label}", text, (source,)))
    return claims


def _weakest_step(results: StudyResults, label: str) -> dict[str, Any]:
    rows = results.off_policy["overlap"]
    rows = rows[rows.target == label]
    return rows.loc[rows.effective.idxmin()].to_dict()


def _refused_source(results: StudyResults, label: str) -> Source:
    return _source(results, "coverage", {"target": label, "estimator": SPOKEN}, "refused", "repetitions")


def _weight(value: float) -> str:
    return f"<{0.01:.2f}" if 0 < value < 0.01 else number(value, DECIMALS)


def _bounded(row, name, low, high, source, note="", scale=1, decimals=DECIMALS) -> Cell:
    if not finite(row[name]):
        return Cell(MISSING, note=note)
    known = finite(row[low]) and finite(row[high])
    bounds = interval(scale * row[low], scale * row[high], decimals) if known else ""
    return Cell(number(scale * row[name], decimals), bounds, note=note, sources=(source,))


def _source(results: StudyResults, table: str, key: dict, *columns: str) -> Source:
    return Source(f"{results.study.name}/off_policy/{table}.parquet", key, columns)


def _frame(rows: list[dict[str, Any]], like: "pd.DataFrame") -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame(rows, columns=list(like.columns))
