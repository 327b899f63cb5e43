"""Metrics: pure functions of one training seed's evaluation, and the score table made of them.

The unit is the training seed: a metric turns all evaluation episodes of one (seed, policy mode) into one
value. What cannot be computed is missing, with the reason in words: never 0, never 100, never a shorter
denominator.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from seedbed.artifacts import SCORE_COLUMNS, ArtifactError
from seedbed.registry import METRICS, load

CURVE_SCORE_COLUMNS = SCORE_COLUMNS | {"steps": "int64"}
"""A score at one point of a learning curve, ``steps`` environment steps of its seed into training."""


class Value(NamedTuple):
    """What a metric gives for one seed.

    Args:
        value: the score; NaN exactly where ``status`` is not "ok".
        episodes: number of episodes that entered the value.
        status: "ok", or why there is no value.
    """

    value: float
    episodes: int
    status: str = "ok"


def missing(reason: str) -> Value:
    """No value, and why."""
    return Value(math.nan, 0, reason)


def mean_of(values: np.ndarray, reason: str) -> Value:
    """Mean over the episodes that have a value; values [n] float, NaN where an episode has none.

    Args:
        reason: status if no episode has a value.
    """
    present = values[~np.isnan(values)]
    return Value(float(present.mean()), present.size) if present.size else missing(reason)


@dataclass(frozen=True)
class Metric:
    """One number per training seed.

    Args:
        name: key in tables and studies.
        title: name in text and figures.
        unit: unit of the value; "" for a pure number. Rates and shares are fractions in [0, 1] without a
            unit unless the unit says "%".
        better: which direction is better; "none" where neither is.
        decimals: digits after the point in tables.
        description: one sentence on what it is and over what it averages.
        function: maps the episodes and steps of one (seed, policy mode) to a ``Value``, or to a float that
            all episodes entered. Episodes are sorted by number and have a column ``horizon``, the largest
            step limit of the environment; steps are None unless ``needs_steps``.
        needs_steps: whether the function reads the step table; such metrics have no learning curve.
        reached: for a time until an event, the metric that says how often the event happens; see ``collect``.
        rate: whether it is the share of all episodes that have a property; its intervals then count episodes.

    Raises:
        ValueError: better is none of the three.
    """

    name: str
    title: str
    unit: str
    better: Literal["higher", "lower", "none"]
    decimals: int
    description: str
    function: Callable[[pd.DataFrame, pd.DataFrame | None], "Value | float"]
    needs_steps: bool = False
    reached: str = ""
    rate: bool = False

    def __post_init__(self) -> None:
        if self.better not in ("higher", "lower", "none"):
            raise ValueError(
                f"metric {self.name}: better is 'higher', 'lower' or 'none', not {self.better!r}"
            )


def load_metrics(names: Iterable[str]) -> dict[str, Metric]:
    """The metrics of some metric sets, by metric name, in order.

    Raises:
        SeedbedError: there is no such set.
        ValueError: two different metrics share a name.
    """
    metrics: dict[str, Metric] = {}
    for name in names:
        for metric in load(name, METRICS, "metric set"):
            if metrics.setdefault(metric.name, metric) is not metric:
                raise ValueError(f"metric set '{name}': another set already has a metric '{metric.name}'")
    return metrics


def episode_rows(episodes: pd.DataFrame, steps: pd.DataFrame) -> np.ndarray:
    """For each step [m] the row of its episode in ``episodes`` (sorted by episode)."""
    return np.searchsorted(episodes["episode"].to_numpy(), steps["episode"].to_numpy())


def score(
    study: str,
    environment: str,
    algorithm: str,
    episodes: pd.DataFrame,
    steps: pd.DataFrame | None,
    metrics: Iterable[Metric],
    *,
    horizon: int,
) -> pd.DataFrame:
    """One row per seed, policy mode and metric.

    Args:
        study, environment, algorithm: labels for the rows.
        episodes: episode table (EPISODE_COLUMNS and final facts).
        steps: step table of the same episodes; None leaves out metrics that need it.
        metrics: what to compute.
        horizon: largest step limit of any episode of the environment (``spec.horizon``).

    Returns:
        Table of SCORE_COLUMNS, sorted by seed, policy mode and order of the metrics.

    Raises:
        ArtifactError: no episodes, repeated episodes, or a step table that is not that of the episodes.
    """
    metrics = _distinct(metrics)
    parts = None if steps is None else dict(iter(steps.groupby(["seed", "policy_mode"], sort=False)))
    rows = []
    for key, group in _evaluations(episodes, ["seed", "policy_mode"], horizon):
        part = None
        if parts is not None:
            part = parts.pop(key, None)
            _check_steps(group, part, f"seed {key[0]}, {key[1]}")
        for metric in metrics:
            if not metric.needs_steps or part is not None:
                rows.append((study, environment, algorithm, *key, metric.name, *_apply(metric, group, part)))
    if parts:
        raise ArtifactError(f"The step table has {_names(parts)}, of which there are no episodes.")
    return pd.DataFrame(rows, columns=list(SCORE_COLUMNS)).astype(SCORE_COLUMNS)


def curve_scores(
    study: str,
    environment: str,
    algorithm: str,
    curve: pd.DataFrame,
    metrics: Iterable[Metric],
    *,
    horizon: int,
) -> pd.DataFrame:
    """Scores along training: as ``score``, once per value of ``steps``, for metrics that need no step table.

    Args:
        curve: episode table with a column ``steps``, the environment steps of its seed so far.

    Returns:
        Table of CURVE_SCORE_COLUMNS, sorted by seed, policy mode, steps and order of the metrics; without
        rows if the curve has none, as for an algorithm that learns nothing.
    """
    metrics = [metric for metric in _distinct(metrics) if not metric.needs_steps]
    rows = []
    if len(curve):
        for key, group in _evaluations(curve, ["seed", "policy_mode", "steps"], horizon):
            for metric in metrics:
                value = _apply(metric, group, None)
                rows.append((study, environment, algorithm, *key[:2], metric.name, *value, key[2]))
    return pd.DataFrame(rows, columns=list(CURVE_SCORE_COLUMNS)).astype(CURVE_SCORE_COLUMNS)


def collect(tables: Sequence[pd.DataFrame], metrics: Iterable[Metric]) -> pd.DataFrame:
    """All scores of a study in one sorted table; times to an event that never happens anywhere go missing.

    A seed in which nobody reaches the event keeps its value, the horizon: dropping it would favour the slow.
    But where no episode of any algorithm in an environment reaches it, every value is the horizon and says
    nothing: its status becomes "all censored: not reached".

    Raises:
        ArtifactError: no table, or a score that appears twice.
    """
    if not tables:
        raise ArtifactError("There are no scores to collect; the study has no measured runs.")
    table = pd.concat(tables, ignore_index=True)
    keys = ["study", "environment", "algorithm", "policy_mode", "seed", "metric"]
    keys += ["steps"] if "steps" in table else []
    twice = table[table.duplicated(keys)]
    if len(twice):
        raise ArtifactError(f"The score {dict(twice.iloc[0][keys])} appears twice; each seed is one run.")
    for metric in metrics:
        if not metric.reached:
            continue
        rate = table[table["metric"] == metric.reached].groupby("environment")["value"].max()
        never = table["environment"].isin(rate.index[rate == 0])
        rows = never & (table["metric"] == metric.name) & (table["status"] == "ok")
        table.loc[rows, "value"] = math.nan
        table.loc[rows, "episodes"] = 0
        table.loc[rows, "status"] = "all censored: not reached"
    return table.sort_values(keys, kind="stable", ignore_index=True)


def _distinct(metrics: Iterable[Metric]) -> list[Metric]:
    metrics = list(metrics)
    names = [metric.name for metric in metrics]
    if len(set(names)) < len(names):
        raise ValueError(f"metrics {sorted({n for n in names if names.count(n) > 1})} are given twice")
    return metrics


def _evaluations(
    episodes: pd.DataFrame, keys: list[str], horizon: int
) -> Iterator[tuple[tuple, pd.DataFrame]]:
    """Each evaluation with its key, episodes sorted, with the column ``horizon``."""
    if not len(episodes):
        raise ArtifactError(
            "The episode table has no rows: nothing was evaluated, so there is nothing to score."
        )
    longest = int(episodes["length"].max())
    if longest > horizon:
        raise ArtifactError(
            f"An episode has {longest} steps, but the environment's horizon is given as {horizon}."
        )
    if (episodes["length"] < 1).any():
        raise ArtifactError("An episode has no step; an evaluation logs only episodes that were run.")
    ordered = episodes.sort_values([*keys, "episode"], kind="stable", ignore_index=True)
    if ordered.duplicated([*keys, "episode"]).any():
        row = ordered[ordered.duplicated([*keys, "episode"])].iloc[0]
        raise ArtifactError(
            f"Episode {row['episode']} of {dict(row[keys])} appears twice in the episode table."
        )
    yield from ordered.assign(horizon=horizon).groupby(keys, sort=True)


def _check_steps(episodes: pd.DataFrame, steps: pd.DataFrame | None, what: str) -> None:
    """A step table must tell the same story as the episode table: same episodes, lengths and returns."""
    if steps is None:
        raise ArtifactError(f"{what}: there are episodes but no steps. Evaluate again.")
    rows, numbers = episode_rows(episodes, steps), episodes["episode"].to_numpy()
    known = rows < numbers.size
    if not known.all() or not np.array_equal(numbers[rows], steps["episode"].to_numpy()):
        raise ArtifactError(
            f"{what}: the step table has episodes that the episode table lacks. Evaluate again."
        )
    lengths = np.bincount(rows, minlength=numbers.size)
    returns = np.bincount(rows, steps["reward"].to_numpy(), numbers.size)
    wrong = lengths != episodes["length"].to_numpy()
    wrong |= ~np.isclose(returns, episodes["return"].to_numpy(), rtol=1e-9, atol=1e-6)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ArtifactError(
            f"{what}, episode {numbers[at]}: the step table has {lengths[at]} steps with a return of "
            f"{returns[at]:g}, the episode table {episodes['length'].iloc[at]} with "
            f"{episodes['return'].iloc[at]:g}. Delete both and evaluate again."
        )


def _apply(metric: Metric, episodes: pd.DataFrame, steps: pd.DataFrame | None) -> Value:
    try:
        result = metric.function(episodes, steps)
    except KeyError as error:
        raise ArtifactError(
            f"The metric '{metric.name}' needs the column {error}, which this environment's tables lack. "
            f"Take its metric set out of the study's `metrics`."
        ) from None
    if not isinstance(result, Value):
        result = Value(float(result), len(episodes))
    if result.status == "ok" and not math.isfinite(result.value):
        return missing("undefined" if math.isnan(result.value) else "not finite")
    if result.status != "ok" and not math.isnan(result.value):
        raise ValueError(
            f"metric {metric.name}: a value of {result.value} cannot have status {result.status!r}"
        )
    return result


def _names(keys: Iterable[tuple]) -> str:
    return "; ".join(f"seed {seed}, {mode}" for seed, mode in keys)
