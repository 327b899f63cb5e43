"""Study-level statistics: the long score table in, one row per cell or per comparison out.

Score table: study, environment, algorithm, seed (int), policy_mode, metric, value (float, NaN when missing),
episodes (int), status ("ok" or the reason). One value per training seed. A row that is not ok, or whose value
is not finite, is missing: counted, named in the note, never taken as zero.

The same rows in another order give the same bytes, and the statistics of a comparison do not depend on what
else is compared (its corrected p does: that is what a family is).
"""

import hashlib
import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from seedbed.statistics.effects import effect_label, hedges_g_z, paired_effect, probability_of_improvement
from seedbed.statistics.intervals import Interval, check_confidence, mean_t_interval, sd_interval
from seedbed.statistics.multiplicity import adjust
from seedbed.statistics.paired import (
    paired_differences,
    paired_t_test,
    shapiro_on_differences,
    sign_flip_test,
    smallest_attainable_p,
    wilcoxon_signed_rank,
)
from seedbed.statistics.rates import rate_difference_interval, rate_interval

SCORE_COLUMNS = (
    "study",
    "environment",
    "algorithm",
    "seed",
    "policy_mode",
    "metric",
    "value",
    "episodes",
    "status",
)
SUMMARY_COLUMNS = (
    *("environment", "algorithm", "policy_mode", "metric", "n", "missing", "mean", "sd", "low", "high"),
    *("median", "q25", "q75", "minimum", "maximum", "range", "cv", "sd_low", "sd_high", "note"),
)
COMPARISON_COLUMNS = (
    *("environment", "family", "metric", "algorithm_a", "algorithm_b", "n", "unpaired_seeds"),
    *("mean_a", "mean_b", "difference", "difference_low", "difference_high", "percent"),
    *("p", "p_t", "p_wilcoxon", "shapiro_p", "smallest_p", "p_corrected", "correction"),
    *("d_z", "d_z_low", "d_z_high", "hedges_g_z", "d_av", "d_av_low", "d_av_high"),
    *("cliffs_delta", "cliffs_low", "cliffs_high", "probability_of_improvement", "effect_label"),
    *("better_is", "decision", "note"),
)
_SUMMARY_KEY = ["environment", "algorithm", "policy_mode", "metric"]


@dataclass(frozen=True)
class Family:
    """Comparisons corrected together, declared before the data are seen.

    Every metric with every pair (a, b) of algorithms, within one environment; environments None means all.
    better_is: metric -> "higher" or "lower". correction: "holm" or "bonferroni" (no false claim), "bh" (few).
    """

    name: str
    metrics: tuple[str, ...]
    better_is: Mapping[str, str]
    pairs: tuple[tuple[str, str], ...]
    correction: str = "holm"
    environments: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        where = f"family {self.name!r}: "
        if self.correction not in ("holm", "bonferroni", "bh"):
            raise ValueError(f"{where}correction must be holm, bonferroni or bh, got {self.correction!r}")
        for metric in self.metrics:
            if self.better_is.get(metric) not in ("higher", "lower"):
                raise ValueError(f"{where}better_is must say higher or lower for metric {metric!r}")
        if len(set(self.metrics)) < len(self.metrics):
            raise ValueError(f"{where}a metric is listed twice")
        seen = set()
        for pair in self.pairs:
            if len(pair) != 2 or pair[0] == pair[1]:
                raise ValueError(f"{where}a pair is two different algorithms, got {pair!r}")
            if frozenset(pair) in seen:
                raise ValueError(f"{where}{pair[0]} and {pair[1]} are compared twice")
            seen.add(frozenset(pair))


def all_pairs(algorithms: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Every pair of algorithms once, in the order given."""
    return tuple(itertools.combinations(algorithms, 2))


def against_baseline(algorithms: Iterable[str], baseline: str) -> tuple[tuple[str, str], ...]:
    """Every other algorithm against the baseline, which comes second."""
    return tuple((a, baseline) for a in algorithms if a != baseline)


def _checked(scores: pd.DataFrame) -> pd.DataFrame:
    """The table sorted, with missing values as NaN; ValueError for what would mix or count runs twice."""
    absent = [c for c in SCORE_COLUMNS if c not in scores.columns]
    if absent:
        raise ValueError(f"the score table lacks the columns {', '.join(absent)}")
    table = scores.loc[:, list(SCORE_COLUMNS)].copy()
    studies = sorted(table["study"].astype(str).unique())
    if len(studies) > 1:
        raise ValueError(f"the score table holds several studies ({', '.join(studies)}): give one at a time")
    key = [*_SUMMARY_KEY, "seed"]
    blank = [c for c in key if table[c].isna().any()]
    if blank:
        raise ValueError(
            f"the score table has rows without {', '.join(blank)}: name every row's cell and seed"
        )
    table = table.sort_values(key, kind="stable", ignore_index=True)
    twice = table[table.duplicated(key)]
    if len(twice):
        cell = ", ".join(f"{k} {twice.iloc[0][k]}" for k in key)
        raise ValueError(f"the score table has two values for {cell}: keep one value per training seed")
    value = table["value"].astype(float)
    table["value"] = value.where((table["status"] == "ok") & np.isfinite(value))
    return table


def _missing_note(cell: pd.DataFrame) -> str:
    """ "2 of 10 seeds missing (3: crashed; 5: value is not finite)", or "" when all are there."""
    lost = cell[cell["value"].isna()]
    if lost.empty:
        return ""
    reasons = [
        f"{seed}: {status if status != 'ok' else 'value is not finite'}"
        for seed, status in zip(lost["seed"], lost["status"], strict=True)
    ]
    shown = "; ".join(reasons[:5]) + (f"; {len(reasons) - 5} more" if len(reasons) > 5 else "")
    return f"{len(lost)} of {len(cell)} seeds missing ({shown})"


def _words(*parts: str) -> str:
    return "; ".join(dict.fromkeys(filter(None, parts)))


def summarise(scores: pd.DataFrame, confidence: float = 0.95, rates: Collection[str] = ()) -> pd.DataFrame:
    """One row per (environment, algorithm, policy_mode, metric), columns SUMMARY_COLUMNS.

    mean with its t interval (low, high), or that of ``rates.rate_interval`` for the metrics in `rates`; sd
    with ddof 1 and its chi-square interval; quartiles by linear interpolation; cv = sd / mean, NaN
    unless the mean is positive and its interval excludes 0. n counts the values used, missing the others.
    ValueError: columns lacking, several studies, a seed twice.
    """
    check_confidence(confidence)
    rows = []
    for key, cell in _checked(scores).groupby(_SUMMARY_KEY, sort=True):
        there = cell.dropna(subset="value")
        values, episodes = there["value"].to_numpy(), there["episodes"].to_numpy()
        if key[-1] in rates:
            mean = rate_interval(values, episodes, confidence)
        else:
            mean = mean_t_interval(values, confidence)
        missing = len(cell) - values.size
        rows.append((*key, *_summary(values, mean, missing, _missing_note(cell), confidence)))
    return pd.DataFrame(rows, columns=list(SUMMARY_COLUMNS))


def _summary(values: np.ndarray, mean: Interval, missing: int, note: str, confidence: float) -> tuple:
    sd = sd_interval(values, confidence)
    nan = math.nan
    minimum, q25, median, q75, maximum = (
        (float(q) for q in np.quantile(values, (0, 0.25, 0.5, 0.75, 1))) if values.size else (nan,) * 5
    )
    away_from_zero = mean.estimate > 0 and not mean.low <= 0
    cv = sd.estimate / mean.estimate if away_from_zero else nan
    numbers = (values.size, missing, mean.estimate, sd.estimate, mean.low, mean.high)
    spread = (median, q25, q75, minimum, maximum, maximum - minimum, cv, sd.low, sd.high)
    return (*numbers, *spread, _words(mean.note, note))


def compare(
    scores: pd.DataFrame,
    families: Sequence[Family],
    confidence: float = 0.95,
    alpha: float = 0.05,
    seed: int = 0,
    draws: int = 10_000,
    rates: Collection[str] = (),
) -> pd.DataFrame:
    """One row per (environment, family, metric, pair), columns COMPARISON_COLUMNS; a minus b, paired by seed.

    p: sign flip (exact to 16 seeds, `draws` patterns beyond); p_corrected: within (environment, family), over
    the tests that could be made; smallest_p: the smallest p that n seeds can give. difference_low, _high:
    paired t, or ``rates.rate_difference_interval`` for the metrics in `rates`. Effects have the intervals of
    ``effects.paired_effect`` (`draws` resamples where it is a bootstrap). effect_label is d_av on
    Cohen's scale; probability_of_improvement is of a being the better one, by better_is. decision:
    "a better", "b better", "undecided" or "not testable", from p_corrected <= alpha and the sign of the
    difference.

    ValueError: columns lacking, several studies, a seed twice, families of one name, an algorithm evaluated
    in several policy modes (choose one for each before comparing).
    """
    check_confidence(confidence)
    check_confidence(1 - alpha)
    names = [f.name for f in families]
    if len(set(names)) < len(names):
        raise ValueError(f"families need different names, got {', '.join(names)}")
    table = _checked(scores)
    modes = table.groupby(["environment", "algorithm", "metric"])["policy_mode"].nunique()
    if (modes > 1).any():
        environment, algorithm, metric = modes.index[modes > 1][0]
        raise ValueError(
            f"{algorithm} in {environment} has {metric} in several policy modes: keep one before comparing"
        )
    cells = dict(iter(table.groupby(["environment", "algorithm", "metric"])))
    study = str(table["study"].iloc[0]) if len(table) else ""
    rows = []
    for environment in sorted(table["environment"].unique()):
        for family in families:
            if family.environments is not None and environment not in family.environments:
                continue
            group = [
                _comparison(cells, study, environment, metric, pair, family, confidence, seed, draws)
                | _rate_difference(cells, environment, metric, pair, confidence, rates)
                for metric in family.metrics
                for pair in family.pairs
            ]
            rows += _decide(group, family, alpha)
    return pd.DataFrame(rows, columns=list(COMPARISON_COLUMNS))


def _stream(seed: int, purpose: str, *names: str) -> np.random.SeedSequence:
    """Random stream of one statistic of one comparison, the same whatever else is computed."""
    digest = hashlib.sha256("\x1f".join((purpose, *names)).encode()).digest()
    return np.random.SeedSequence([seed, *np.frombuffer(digest, "<u4").tolist()])


def _comparison(cells, study, environment, metric, pair, family, confidence, seed, draws) -> dict:
    """All columns but those that the family decides (p_corrected, decision)."""
    sides = [cells.get((environment, name, metric)) for name in pair]
    kept = [
        pd.Series(dtype=float) if cell is None else cell.set_index("seed")["value"].dropna() for cell in sides
    ]
    common = kept[0].index.intersection(kept[1].index).sort_values()
    x, y = (values.loc[common].to_numpy(float) for values in kept)
    unpaired = len(kept[0]) + len(kept[1]) - 2 * len(common)
    lost = [
        f"{name}: " + ("no scores" if cell is None else _missing_note(cell))
        for name, cell in zip(pair, sides, strict=True)
        if cell is None or _missing_note(cell)
    ]
    if unpaired:
        lost.append(f"left out, scored on one side only: {unpaired} of {len(common) + unpaired} seeds")
    row = {
        "environment": environment,
        "family": family.name,
        "metric": metric,
        "algorithm_a": pair[0],
        "algorithm_b": pair[1],
        "n": len(common),
        "unpaired_seeds": unpaired,
        "mean_a": float(x.mean()) if x.size else math.nan,
        "mean_b": float(y.mean()) if y.size else math.nan,
        "correction": family.correction,
        "better_is": family.better_is[metric],
        "effect_label": "undefined",
        "smallest_p": smallest_attainable_p(len(common), "sign_flip", draws=draws),
    }
    # the stream forgets which side is a: exchanging the sides then mirrors every result
    names = (study, environment, metric, *sorted(pair))
    row |= _paired_statistics(x, y, lambda purpose: _stream(seed, purpose, *names), confidence, draws)
    if row["better_is"] == "lower":
        row["probability_of_improvement"] = 1 - row["probability_of_improvement"]
    row["note"] = _words(row["note"], *lost)
    return row


def _rate_difference(cells, environment, metric, pair, confidence, rates) -> dict:
    """Bounds of a difference of rates over the common seeds; nothing for other metrics or one seed."""
    sides = [cells.get((environment, name, metric)) for name in pair]
    if metric not in rates or any(side is None for side in sides):
        return {}
    x, y = (side.dropna(subset="value").set_index("seed") for side in sides)
    common = x.index.intersection(y.index).sort_values()
    if len(common) < 2:
        return {}
    columns = [side.loc[common, name].to_numpy(float) for name in ("value", "episodes") for side in (x, y)]
    interval = rate_difference_interval(*columns, confidence)
    return {"difference_low": interval.low, "difference_high": interval.high}


def _paired_statistics(x, y, stream, confidence, draws) -> dict:
    """Tests and effects of x, y [n]; a test that cannot be made is left out, and so comes out as NaN."""
    pairs = paired_differences(x, y)
    if not x.size:
        return {"note": "not testable: no common seed with a score on both sides", **_no_effects()}
    difference, base = float(np.mean(pairs.values)), mean_t_interval(y, confidence)
    row = {
        "difference": difference,
        "percent": 100 * difference / abs(base.estimate) if _away_from_zero(base, x) else math.nan,
        "probability_of_improvement": probability_of_improvement(x, y),
    }
    if pairs.obstacle or not np.any(pairs.values):
        reason = pairs.obstacle or f"not testable: all {x.size} differences are zero"
        return row | _no_effects() | {"note": reason}
    t = paired_t_test(x, y, confidence=confidence)
    effects = {
        name: paired_effect(x, y, name, seed=stream(name), confidence=confidence, draws=draws)
        for name in ("d_z", "d_av", "cliffs_delta")
    }
    d_z, d_av, cliffs = effects.values()
    row |= {
        "difference_low": t.low,
        "difference_high": t.high,
        "p": sign_flip_test(x, y, seed=stream("sign_flip"), draws=draws).pvalue,
        "p_t": t.pvalue,
        "p_wilcoxon": wilcoxon_signed_rank(x, y).pvalue,
        "shapiro_p": shapiro_on_differences(x, y).pvalue,
        "hedges_g_z": hedges_g_z(x, y),
        "effect_label": effect_label(d_av.estimate),
    }
    for column, effect in (("d_z", d_z), ("d_av", d_av), ("cliffs_delta", cliffs)):
        stem = column.replace("cliffs_delta", "cliffs")
        row |= {column: effect.estimate, f"{stem}_low": effect.low, f"{stem}_high": effect.high}
    unbounded = [f"{name} interval {e.note}" for name, e in effects.items() if math.isnan(e.low) and e.note]
    return row | {"note": _words(t.note, *unbounded)}


def _away_from_zero(base: Interval, x: np.ndarray) -> bool:
    """Whether a mean can stand for 100 %: it is no rounding beside x, and its interval has not both signs."""
    scale = max(abs(base.estimate), float(np.abs(x).max()))
    return abs(base.estimate) > 1e-12 * scale and not base.low <= 0 <= base.high


def _no_effects() -> dict:
    return {"probability_of_improvement": math.nan, "effect_label": "undefined"}


def _decide(group: list[dict], family: Family, alpha: float) -> list[dict]:
    """Correct the family's p-values, decide, and say so where the design cannot succeed."""
    p = [row.get("p", math.nan) for row in group]
    corrected = adjust(p, family.correction).pvalues
    # every correction here grows with each p, so correcting the floors gives the floor of the corrected
    possible = [math.nan if math.isnan(q) else row["smallest_p"] for q, row in zip(p, group, strict=True)]
    floors = adjust(possible, family.correction)
    for row, value, floor in zip(group, corrected, floors.pvalues, strict=True):
        row["p_corrected"] = float(value)
        if math.isnan(value):
            row["decision"] = "not testable"
            continue
        higher = row["difference"] > 0
        a_leads = higher if row["better_is"] == "higher" else not higher
        decided = value <= alpha and row["difference"] != 0
        row["decision"] = ("a better" if a_leads else "b better") if decided else "undecided"
        if floor > alpha:
            hopeless = (
                f"cannot succeed: with n = {row['n']} the smallest attainable p is {row['smallest_p']:.3g}, "
                f"after {family.correction} over {floors.family_size} "
                f"comparison{'s' * (floors.family_size != 1)} {floor:.3g} > {alpha:g}"
            )
            row["note"] = _words(hopeless, row["note"])
    return group
