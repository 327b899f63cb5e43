"""Metrics of a distribution over environments: training ones, fresh ones, and the gap between them."""

import numpy as np
import pandas as pd

from seedbed.metrics.base import Metric, Value, mean_of, missing


def _seen(episodes: pd.DataFrame) -> np.ndarray:
    return episodes["final_training_environment"].to_numpy() >= 0


def _mean(column: str, seen: bool):
    reason = "no episode in a training environment" if seen else "no episode in a fresh environment"

    def mean(episodes: pd.DataFrame, steps: pd.DataFrame | None) -> Value:
        return mean_of(episodes[column].to_numpy(float)[_seen(episodes) == seen], reason)

    return mean


def _gap(column: str):
    def gap(episodes: pd.DataFrame, steps: pd.DataFrame | None) -> Value:
        sides = [_mean(column, seen)(episodes, steps) for seen in (True, False)]
        for side in sides:
            if side.status != "ok":
                return missing(side.status)
        return Value(sides[0].value - sides[1].value, sides[0].episodes + sides[1].episodes)

    return gap


METRICS = (
    Metric(
        "return_fresh",
        "Return in fresh environments",
        "reward",
        "higher",
        1,
        "Undiscounted return, mean over the episodes in environments drawn anew.",
        _mean("return", seen=False),
    ),
    Metric(
        "return_seen",
        "Return in training environments",
        "reward",
        "higher",
        1,
        "Undiscounted return, mean over new episodes in the environments of the seed's training.",
        _mean("return", seen=True),
    ),
    Metric(
        "return_gap",
        "Generalization gap of the return",
        "reward",
        "lower",
        1,
        "Mean return in training environments minus that in fresh ones, by the same frozen policy. A policy "
        "that learned nothing shows how much of it is the luck of the training environments.",
        _gap("return"),
    ),
    Metric(
        "success_fresh",
        "Success rate in fresh environments",
        "",
        "higher",
        3,
        "Share of the episodes in environments drawn anew that end in success.",
        _mean("success", seen=False),
        rate=True,
    ),
    Metric(
        "success_seen",
        "Success rate in training environments",
        "",
        "higher",
        3,
        "Share of new episodes in the environments of the seed's training that end in success.",
        _mean("success", seen=True),
        rate=True,
    ),
    Metric(
        "success_gap",
        "Generalization gap of the success rate",
        "",
        "lower",
        3,
        "Success rate in training environments minus that in fresh ones, by the same frozen policy.",
        _gap("success"),
    ),
)
