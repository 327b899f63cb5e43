"""Metrics of goal-reaching environments, beside those of ``episodes`` (success rate, steps to success)."""

import numpy as np
import pandas as pd

from seedbed.metrics.base import Metric, Value, mean_of


def _optimality_ratio(episodes: pd.DataFrame, steps: pd.DataFrame | None) -> Value:
    reached = episodes[episodes["success"].to_numpy()]
    ratio = reached["final_shortest"].to_numpy() / reached["length"].to_numpy()
    return mean_of(ratio, "no success")


def _final_distance(episodes: pd.DataFrame, steps: pd.DataFrame | None) -> float:
    return float(np.median(episodes["final_distance"].to_numpy()))


METRICS = (
    Metric(
        "optimality_ratio",
        "Optimality ratio, successful episodes",
        "",
        "higher",
        3,
        "Shortest path from start to goal / steps taken, mean over the successful episodes; 1 is optimal.",
        _optimality_ratio,
    ),
    Metric(
        "final_distance",
        "Distance to the goal at the end",
        "steps",
        "lower",
        1,
        "Shortest path that is left when an episode ends, however it ended, median over episodes.",
        _final_distance,
    ),
)
