"""Cumulative incidence of success and of quitting over the steps of an episode, mean over seeds.

Quitting competes with success: who has quit never succeeds. An episode cut by its step limit is over as well,
so at the horizon a curve ends at the share of all episodes that succeed.
"""

import numpy as np
import pandas as pd

from seedbed.statistics.intervals import check_confidence
from seedbed.statistics.rates import rate_interval
from seedbed.statistics.survival import CENSORED, COMPETING, EVENT, cumulative_incidence

INCIDENCE_COLUMNS = {
    "environment": "string",
    "algorithm": "string",
    "policy_mode": "string",
    "t": "int64",
    "n": "int64",
    "incidence": "float64",
    "low": "float64",
    "high": "float64",
    "quit": "float64",
    "note": "string",
}
NOBODY = "no episode of any seed succeeds"


def incidence_table(
    environment: str, algorithm: str, episodes: pd.DataFrame, *, horizon: int, confidence: float = 0.95
) -> pd.DataFrame:
    """Share of episodes that have succeeded, and that have quit, by each step t = 0..horizon.

    Args:
        environment, algorithm: labels for the rows.
        episodes: episode table of all seeds; success counts at its last step, quitting is an end that is
            neither success nor the step limit.
        horizon: largest step limit of any episode.
        confidence: level of the pointwise intervals over seeds; see ``rates.rate_interval``.

    Returns:
        Table of INCIDENCE_COLUMNS; n is the number of seeds; bounds are NaN for one seed.
        Where nobody succeeds the curve is 0 throughout and ``note`` says so.

    Raises:
        ValueError: an episode is longer than the horizon.
    """
    check_confidence(confidence)
    if len(episodes) and episodes["length"].max() > horizon:
        longest = episodes["length"].max()
        raise ValueError(f"{algorithm}: an episode has {longest} steps, more than the horizon {horizon}")
    grid, rows = np.arange(horizon + 1), []
    for mode, group in episodes.groupby("policy_mode", sort=True):
        parts = [part for _, part in group.groupby("seed", sort=True)]
        counts = np.array([len(part) for part in parts])
        success = np.array([seed_incidence(part, grid, "success") for part in parts])
        quitting = np.array([seed_incidence(part, grid, "quit") for part in parts])
        note = "" if success.any() else NOBODY
        for t, reached, left in zip(grid, success.T, quitting.T, strict=True):
            mean = rate_interval(np.clip(reached, 0, 1), counts, confidence)  # products round beyond 1
            estimates = (reached.size, mean.estimate, mean.low, mean.high, float(left.mean()))
            rows.append((environment, algorithm, mode, t, *estimates, note))
    return pd.DataFrame(rows, columns=list(INCIDENCE_COLUMNS)).astype(INCIDENCE_COLUMNS)


def seed_incidence(episodes: pd.DataFrame, grid: np.ndarray, event: str) -> np.ndarray:
    """Share of one seed's episodes with the event by each step of grid [g] -> [g].

    Args:
        episodes: episode table of one seed and policy mode.
        grid: steps, increasing; the last is the horizon.
        event: "success" or "quit"; the other one competes.
    """
    codes = end_codes(episodes, event, int(grid[-1]))
    curve = cumulative_incidence(episodes["length"].to_numpy(), codes)
    shares = np.concatenate(([0.0], curve.incidence))
    return shares[np.searchsorted(curve.times, grid, side="right")]


def end_codes(episodes: pd.DataFrame, event: str, horizon: int) -> np.ndarray:
    """How each episode ended [n]: 1 the event, 0 the step limit at the horizon, 2 anything else."""
    success = episodes["success"].to_numpy(bool)
    cut = episodes["truncated"].to_numpy(bool) & ~success
    happened = {"success": success, "quit": ~success & ~cut}[event]
    at_horizon = cut & (episodes["length"].to_numpy() == horizon)
    return np.where(happened, EVENT, np.where(at_horizon, CENSORED, COMPETING))
