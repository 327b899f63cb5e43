"""Metrics of learned models, from what they foretold of the test episodes (``algorithms.forecasts``).

A policy without a model, or a study that asks for no forecasts, has none of them: missing, with that reason.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd

from seedbed.metrics.base import Metric, Value, missing
from seedbed.metrics.calibration import brier_score, calibration, return_calibration

NO_MODEL = "no forecasts: the policy has no model of the environment, or none were asked for"
BINS = 10


def _ratio(error: str, no_change: str) -> Callable[[pd.DataFrame, pd.DataFrame | None], Value]:
    """Sum of errors over that of predicting no change."""

    def function(episodes: pd.DataFrame, steps: pd.DataFrame | None) -> Value:
        if error not in steps:
            return missing(NO_MODEL)
        known = steps[error].notna().to_numpy()
        if not known.any():
            return missing("no whole window: every episode is shorter")
        total = float(steps.loc[known, no_change].sum())
        if total == 0:
            return missing("nothing changed in any step")
        entered = steps.loc[known, "episode"].nunique()
        return Value(float(steps.loc[known, error].sum()) / total, entered)

    return function


def _disagreement(episodes: pd.DataFrame, steps: pd.DataFrame | None) -> Value:
    if "forecast_disagreement" not in steps:
        return missing(NO_MODEL)
    values = steps["forecast_disagreement"].to_numpy()
    return missing("one model only") if np.isnan(values).all() else Value(float(values.mean()), len(episodes))


def event_forecasts(steps: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Predicted probabilities of the environment's outcome and what happened, [n], where a step has one."""
    known = steps["forecast_event"].notna().to_numpy()
    outcome = steps["correct"] if "correct" in steps else steps["terminated"]
    return steps.loc[known, "forecast_event"].to_numpy(float), outcome[known].to_numpy(float)


def _event(score: Callable) -> Callable[[pd.DataFrame, pd.DataFrame | None], Value]:
    def function(episodes: pd.DataFrame, steps: pd.DataFrame | None) -> Value:
        if "forecast_event" not in steps:
            return missing(NO_MODEL)
        predicted, outcome = event_forecasts(steps)
        if not predicted.size:
            return missing("no step had the outcome")
        return Value(score(predicted, outcome), len(episodes))

    return function


def _imagined(function: Callable[[pd.DataFrame], float]) -> Callable:
    """A metric of the episodes that were imagined."""

    def metric(episodes: pd.DataFrame, steps: pd.DataFrame | None) -> Value:
        if "forecast_return" not in episodes:
            return missing(NO_MODEL)
        known = episodes[episodes["forecast_return"].notna()]
        if known.empty:
            return missing("no episode was imagined")
        return Value(function(known), len(known))

    return metric


def _coverage(episodes: pd.DataFrame) -> float:
    """Share of real returns between the smallest and the largest imagined one."""
    rank, particles = episodes["forecast_rank"].to_numpy(), episodes["forecast_particles"].to_numpy()
    return float(((rank > 0) & (rank < particles)).mean())


def _success_brier(episodes: pd.DataFrame, steps: pd.DataFrame | None) -> Value:
    if "forecast_success" not in episodes:
        return missing(NO_MODEL)
    known = episodes[episodes["forecast_success"].notna()]
    if known.empty:
        return missing("the model does not tell success from other ends")
    return Value(brier_score(known["forecast_success"], known["success"].astype(float)), len(known))


METRICS = (
    Metric(
        "model_error",
        "Model error, one step, against no change",
        "",
        "lower",
        3,
        "Squared error of the models' mean prediction of one step, in units of each entry's SD of changes, "
        "over that of predicting no change; 1 is no better than that. Sums over all test steps.",
        _ratio("forecast_error", "no_change_error"),
        needs_steps=True,
    ),
    Metric(
        "model_window_error",
        "Model error, several steps, against no change",
        "",
        "lower",
        3,
        "As for one step, after a window of steps with the actions taken; units are SDs of windows' changes.",
        _ratio("window_error", "window_no_change_error"),
        needs_steps=True,
    ),
    Metric(
        "model_disagreement",
        "Disagreement of the models",
        "SD",
        "none",
        3,
        "SD of the models' mean predictions, in units of each entry's SD of changes; mean over test steps.",
        _disagreement,
        needs_steps=True,
    ),
    Metric(
        "event_calibration_error",
        "Calibration error of p(correct)",
        "",
        "lower",
        3,
        "Expected calibration error of the predicted probability of a correct answer (of termination where "
        f"the environment names no outcome), {BINS} bins of equal mass over all test steps that have one.",
        _event(lambda predicted, outcome: calibration(predicted, outcome, BINS).expected_error),
        needs_steps=True,
    ),
    Metric(
        "event_brier",
        "Brier score of p(correct)",
        "",
        "lower",
        3,
        "Mean squared difference of the predicted probability and what happened, over the same steps.",
        _event(brier_score),
        needs_steps=True,
    ),
    Metric(
        "success_brier",
        "Brier score of p(success)",
        "",
        "lower",
        3,
        "Mean squared difference of the share of imagined episodes that succeed within the step limit and "
        "whether the real one did, over the episodes that were imagined.",
        _success_brier,
    ),
    Metric(
        "return_slope",
        "Slope of realised on foretold returns",
        "",
        "none",
        2,
        "Least-squares slope over the episodes that were imagined; 1 where forecasts are calibrated.",
        _imagined(lambda e: return_calibration(e["forecast_return"], e["return"]).slope),
    ),
    Metric(
        "return_bias",
        "Foretold minus realised return",
        "reward",
        "none",
        1,
        "Mean over the episodes that were imagined.",
        _imagined(lambda e: float((e["forecast_return"] - e["return"]).mean())),
    ),
    Metric(
        "return_coverage",
        "Coverage of imagined returns",
        "",
        "none",
        2,
        "Share of real returns between the smallest and largest of their n imagined ones; (n - 1) / (n + 1) "
        "is expected of calibrated forecasts.",
        _imagined(_coverage),
    ),
)
