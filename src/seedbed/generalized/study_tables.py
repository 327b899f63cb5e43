"""Statistics of a generalized study: what was chosen, how it did, who beat whom, and the series."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from seedbed.generalized.grid import full_grid
from seedbed.generalized.meta import meta_scores
from seedbed.generalized.methodology import compare, matched_statistics, picked_scores
from seedbed.seeding import Purpose
from seedbed.statistics.intervals import bootstrap_interval
from seedbed.statistics.paired import paired_t_test, sign_test
from seedbed.statistics.unpaired import welch_t_test

QUANTILES = {"q05": 0.05, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95}
REFERENCE = "forgets"
"""The agent of the series that the others are compared with."""


def picks_table(
    label: str, picks: pd.DataFrame, tuning: pd.DataFrame, test: pd.DataFrame, confidence: float
) -> pd.DataFrame:
    """What was chosen in one environment label, and its scores in tuning and test.

    Returns:
        ``choose``'s columns with the configuration spelt out; of the test: n, test_mean, sd, quantiles,
        without_episode (trials in which no episode was completed), test_growths (mean), test_diverged;
        tuning_bias (tuning mean - test mean) with its Welch interval; where choices of another environment
        are tested, its tuning counts. A missing ``completed_score`` is left out of all.
    """
    grid, rows = full_grid(), []
    for pick in picks.to_dict("records"):
        configuration = grid[pick["configuration"]]
        trials, tuned = (
            table[(table.agent == pick["agent"]) & (table.configuration == pick["configuration"])]
            for table in (test, tuning)
        )
        scores = trials[pick["reading"]].dropna().to_numpy(float)
        bias = welch_t_test(tuned[pick["reading"]].dropna(), scores, confidence=confidence)
        rows.append(
            {"label": label}
            | pick
            | {
                "alpha": configuration.alpha,
                "lambda": configuration.lambda_,
                "tilings": configuration.tilings,
                "cells": configuration.cells,
                "layout": configuration.layout,
                "n": scores.size,
                "test_mean": float(scores.mean()) if scores.size else np.nan,
                "sd": float(scores.std(ddof=1)) if scores.size > 1 else np.nan,
                **{
                    name: float(np.quantile(scores, share)) if scores.size else np.nan
                    for name, share in QUANTILES.items()
                },
                "without_episode": int((trials.episodes == 0).sum()),
                "test_growths": float(trials.growths.mean()),
                "test_diverged": int(trials.diverged.sum()),
                "tuning_bias": bias.mean_difference,
                "tuning_bias_low": bias.low,
                "tuning_bias_high": bias.high,
            }
        )
    return pd.DataFrame(rows)


def comparison_table(
    picks: Mapping[str, pd.DataFrame],
    test: Mapping[str, pd.DataFrame],
    *,
    margin: float,
    seed: int,
    draws: int,
    confidence: float,
) -> pd.DataFrame:
    """``compare``'s rows of each environment label."""
    parts = []
    for label, chosen in picks.items():
        table = compare(test[label], chosen, margin=margin, seed=seed, draws=draws, confidence=confidence)
        table.insert(0, "label", label)
        parts.append(table)
    return pd.concat(parts, ignore_index=True)


def carried_table(
    carried: Mapping[str, tuple[str, str]],
    picks: Mapping[str, pd.DataFrame],
    test: Mapping[str, pd.DataFrame],
    *,
    margin: float,
    seed: int,
    draws: int,
    confidence: float,
) -> pd.DataFrame:
    """What an agent loses that was fitted to one environment, or one distribution, and tested in another.

    Whiteson, Tanner, Taylor and Stone (2011) define it as environment and uncertainty overfitting; family
    B's range is part of the fit.

    Args:
        carried: label -> (where the choices were made, the label whose own choices are their rivals).
        picks, test: of all labels.

    Returns:
        One row per label and agent, choices by the mean score: configuration_x (carried), configuration_y
        (chosen in the rival label), home_mean (test mean where the choice was made), and
        ``matched_statistics`` of carried against chosen, in the same test environments.
    """
    rows = []
    for label, (origin, rival) in carried.items():
        for agent in sorted(picks[label]["agent"].unique()):
            (x, here), (y, there), (_, home) = (
                picked_scores(test[place], picks[place], agent) for place in (label, rival, origin)
            )
            stream = np.random.SeedSequence(int(Purpose.STATISTICS), spawn_key=(seed, len(rows)))
            row = {"label": label, "origin": origin, "rival": rival, "agent": agent}
            row |= {"configuration_x": x, "configuration_y": y, "home_mean": float(home.mean())}
            rows.append(row | matched_statistics(here, there, margin, stream, draws, confidence))
    return pd.DataFrame(rows)


def meta_table(trials: pd.DataFrame, *, seed: int, draws: int, confidence: float) -> pd.DataFrame:
    """One row per agent of the series; the unit is the series, over whose environments scores are averaged.

    Returns:
        agent, n, mean, growths (mean per environment), difference to REFERENCE with its bootstrap interval,
        wins, losses, ties, p_sign and p_paired (two-sided); NaN for REFERENCE itself.
    """
    scores = meta_scores(trials)
    growths = trials.groupby("agent")["growths"].mean()
    rows = []
    for number, agent in enumerate(dict.fromkeys(trials.agent)):
        x, y = scores[agent].to_numpy(float), scores[REFERENCE].to_numpy(float)
        row = {"agent": agent, "n": x.size, "mean": float(x.mean()), "growths": float(growths[agent])}
        if agent != REFERENCE:
            stream = np.random.SeedSequence(int(Purpose.STATISTICS), spawn_key=(seed, number))
            interval = bootstrap_interval(x - y, np.mean, confidence=confidence, seed=stream, draws=draws)
            sign = sign_test(x, y)
            row |= {
                "difference": float((x - y).mean()),
                "difference_low": interval.low,
                "difference_high": interval.high,
                "wins": sign.statistic,
                "losses": sign.losses,
                "ties": sign.ties,
                "p_sign": sign.pvalue,
                "p_paired": paired_t_test(x, y).pvalue,
            }
        rows.append(row)
    return pd.DataFrame(rows)
