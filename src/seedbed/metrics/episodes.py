"""Metrics that every environment has: from the episode table alone."""

import numpy as np
import pandas as pd

from seedbed.metrics.base import Metric, Value, mean_of, missing


def _mean_return(episodes: pd.DataFrame, steps: pd.DataFrame | None) -> float:
    return float(episodes["return"].to_numpy().mean())


def _mean_length(episodes: pd.DataFrame, steps: pd.DataFrame | None) -> float:
    return float(episodes["length"].to_numpy().mean())


def _success_rate(episodes: pd.DataFrame, steps: pd.DataFrame | None) -> float:
    return float(episodes["success"].to_numpy().mean())


def _truncation_rate(episodes: pd.DataFrame, steps: pd.DataFrame | None) -> float:
    return float((episodes["truncated"] & ~episodes["terminated"]).to_numpy().mean())


def _return_sd(episodes: pd.DataFrame, steps: pd.DataFrame | None) -> Value:
    if len(episodes) < 2:
        return missing("one episode: no spread")
    return Value(float(episodes["return"].to_numpy().std(ddof=1)), len(episodes))


def _steps_to_success(episodes: pd.DataFrame, steps: pd.DataFrame | None) -> Value:
    lengths = episodes["length"].to_numpy()[episodes["success"].to_numpy()]
    return Value(float(np.median(lengths)), lengths.size) if lengths.size else missing("no success")


def _return_where(success: bool, reason: str):
    def mean_return(episodes: pd.DataFrame, steps: pd.DataFrame | None) -> Value:
        return mean_of(episodes["return"].to_numpy()[episodes["success"].to_numpy() == success], reason)

    return mean_return


METRICS = (
    Metric(
        "return", "Return", "reward", "higher", 1, "Undiscounted return, mean over episodes.", _mean_return
    ),
    Metric(
        "episode_length",
        "Episode length",
        "steps",
        "none",
        1,
        "Steps of an episode, however it ended, mean over episodes.",
        _mean_length,
    ),
    Metric(
        "success_rate",
        "Success rate",
        "",
        "higher",
        3,
        "Share of all episodes that end in success.",
        _success_rate,
        rate=True,
    ),
    Metric(
        "return_sd",
        "SD of return between episodes",
        "reward",
        "none",
        1,
        "Standard deviation (n - 1) of the return between the episodes of one seed, not between seeds.",
        _return_sd,
    ),
    Metric(
        "steps_to_success",
        "Steps to success, successful episodes",
        "steps",
        "lower",
        1,
        "Median length of the successful episodes alone; blind to failures: read it beside the success rate.",
        _steps_to_success,
    ),
    Metric(
        "truncation_rate",
        "Truncation rate",
        "",
        "none",
        3,
        "Share of all episodes cut by the step limit without an end of their own.",
        _truncation_rate,
        rate=True,
    ),
    Metric(
        "return_of_successes",
        "Return of successful episodes",
        "reward",
        "none",
        1,
        "Mean return of the successful episodes.",
        _return_where(True, "no success"),
    ),
    Metric(
        "return_of_failures",
        "Return of failed episodes",
        "reward",
        "none",
        1,
        "Mean return of the failed episodes.",
        _return_where(False, "no failure"),
    ),
)
