"""Reliability diagrams: how often what learned models foretell with a probability comes true."""

import numpy as np
import pandas as pd

from seedbed.metrics.world_model import event_forecasts
from seedbed.statistics.intervals import check_confidence
from seedbed.statistics.rates import rate_interval

RELIABILITY_COLUMNS = {
    "environment": "string",
    "algorithm": "string",
    "policy_mode": "string",
    "event": "string",
    "bin": "int64",
    "count": "int64",
    "predicted": "float64",
    "observed": "float64",
    "low": "float64",
    "high": "float64",
    "n": "int64",
    "note": "string",
}
FORECAST_COLUMNS = ("seed", "policy_mode", "terminated", "correct", "forecast_event")
"""All that is read of a step table."""
BINS = 10


def reliability_table(
    environment: str, algorithm: str, episodes: pd.DataFrame, steps: pd.DataFrame, confidence: float = 0.95
) -> pd.DataFrame:
    """Predicted probabilities and observed shares by bin (DeGroot and Fienberg 1983).

    Args:
        environment, algorithm: labels for the rows.
        episodes: episode table of all seeds; ``forecast_success`` foretells its ``success``.
        steps: step table of all seeds; ``forecast_event`` foretells what ``metrics.world_model`` says.
        confidence: level of the intervals over seeds; see ``rates.rate_interval``. Predictions of one episode
            are not independent, which the seeds' spread shows and the interval so heeds.

    Returns:
        Table of RELIABILITY_COLUMNS, no rows without forecasts. ``event`` is "outcome" (of a step) or
        "success" (of an episode), with bins of the predictions of all seeds; see ``equal_mass``. ``count`` is
        how many are in a bin, ``n`` of how many seeds; ``predicted`` and ``observed`` are means over these
        seeds of the mean in each; bounds are NaN for one seed.

    Raises:
        ValueError: a probability outside [0, 1].
    """
    check_confidence(confidence)
    rows = []
    for event, forecasts in (("outcome", _outcomes(steps)), ("success", _successes(episodes))):
        if not forecasts["predicted"].between(0, 1).all():
            raise ValueError(f"{algorithm}: a predicted probability of the {event} is outside [0, 1]")
        for mode, group in forecasts.groupby("policy_mode", sort=True):
            group = group.assign(bin=equal_mass(group["predicted"].to_numpy()))
            for number, held in group.groupby("bin"):
                seeds = held.groupby("seed")
                means, counts = seeds[["predicted", "happened"]].mean(), seeds.size()
                share = rate_interval(means["happened"], counts, confidence)
                estimates = (means["predicted"].mean(), share.estimate, share.low, share.high)
                found = (number, len(held), *estimates, share.n, share.note)
                rows.append((environment, algorithm, mode, event, *found))
    return pd.DataFrame(rows, columns=list(RELIABILITY_COLUMNS)).astype(RELIABILITY_COLUMNS)


def equal_mass(predicted: np.ndarray, bins: int = BINS) -> np.ndarray:
    """The bin of each prediction [n], from 0: as equally many in each as equal predictions allow.

    Equal predictions share a bin, the one of their middle rank, so there may be fewer bins.
    """
    _, place, counts = np.unique(predicted, return_inverse=True, return_counts=True)
    middle = 2 * np.cumsum(counts) - counts
    return np.unique(middle * bins // (2 * len(predicted)), return_inverse=True)[1][place]


def _outcomes(steps: pd.DataFrame) -> pd.DataFrame:
    """Seed, policy mode, prediction and what happened, of the steps that have an outcome."""
    if "forecast_event" not in steps:
        return _NONE
    predicted, happened = event_forecasts(steps)
    known = steps.loc[steps["forecast_event"].notna(), ["seed", "policy_mode"]]
    return known.assign(predicted=predicted, happened=happened)


def _successes(episodes: pd.DataFrame) -> pd.DataFrame:
    """The same of the episodes that were imagined."""
    if "forecast_success" not in episodes:
        return _NONE
    known = episodes[episodes["forecast_success"].notna()]
    return known[["seed", "policy_mode"]].assign(
        predicted=known["forecast_success"].astype(float), happened=known["success"].astype(float)
    )


_NONE = pd.DataFrame({"seed": [], "policy_mode": [], "predicted": [], "happened": []})
