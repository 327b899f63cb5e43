"""The open methodology: tune on some environments of a generalized environment, test on others.

Whiteson, Tanner, Taylor and Stone (2011): each agent's configuration is chosen on tuning environments, by the
best mean score or by Copeland's vote, and the chosen ones meet on test environments, matched.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from seedbed.algorithms.sarsa_tiles import STEPS, Configuration, SarsaTiles
from seedbed.environments.generalized.documents import EnvironmentDocument, covering_ranges
from seedbed.generalized.trials import AGENTS, gather, run_trials, score_matrix
from seedbed.seeding import Purpose
from seedbed.statistics.copeland import best_mean, copeland
from seedbed.statistics.equivalence import paired_equivalence_test
from seedbed.statistics.intervals import bootstrap_interval, proportion_interval
from seedbed.statistics.paired import paired_t_test, sign_test
from seedbed.statistics.unpaired import student_t_test, welch_t_test

READINGS = ("score", "completed_score")
METHODS = ("mean", "copeland")
MARGIN = 0.05
"""Differences below this share of the second agent's mean score do not matter."""


@dataclass(frozen=True)
class OpenResult:
    """Tables of one open methodology: TRIAL_COLUMNS, ``choose``'s, TRIAL_COLUMNS, ``compare``'s."""

    tuning: pd.DataFrame
    picks: pd.DataFrame
    test: pd.DataFrame
    comparisons: pd.DataFrame


def choose(tuning: pd.DataFrame) -> pd.DataFrame:
    """Each agent's configurations, by best mean and by Copeland's vote, under both readings of the score.

    Args:
        tuning: trials of all configurations in all tuning environments.

    Returns:
        agent, reading, method, configuration, tuning_mean (of many noisy means the best: biased upward),
        tied (configurations with the top value; of them Copeland takes the best mean, then the first),
        condorcet (whether it beats each other one), condorcet_exists, median_of_all (the mean score of the
        median configuration: what tuning is worth), diverged (share of all trials).

    Raises:
        SeedbedError: as ``score_matrix``.
    """
    rows = []
    for agent in sorted(tuning["agent"].unique()):
        diverged = float(tuning.loc[tuning["agent"] == agent, "diverged"].mean())
        for reading in READINGS:
            scores, indices = score_matrix(tuning, agent, reading)
            mean, vote = best_mean(scores), copeland(scores)
            for method, result in (("mean", mean), ("copeland", vote)):
                rows.append(
                    {
                        "agent": agent,
                        "reading": reading,
                        "method": method,
                        "configuration": int(indices[result.chosen]),
                        "tuning_mean": float(mean.means[result.chosen]),
                        "tied": len(result.winners),
                        "condorcet": vote.condorcet == result.chosen,
                        "condorcet_exists": vote.condorcet is not None,
                        "median_of_all": float(np.median(mean.means)),
                        "diverged": diverged,
                    }
                )
    return pd.DataFrame(rows)


def run_test(
    picks: pd.DataFrame,
    configurations: Mapping[int, Configuration],
    environments: Sequence[EnvironmentDocument],
    agents: Mapping[str, SarsaTiles] = AGENTS,
    *,
    wide: Mapping[str, np.ndarray] | None = None,
    steps: int = STEPS,
    seed: int = 0,
) -> pd.DataFrame:
    """The chosen configurations' trials in the test environments, each once; arguments as ``run_trials``."""
    parts = []
    for agent, chosen in picks.groupby("agent")["configuration"]:
        mine = {index: configurations[index] for index in sorted(set(chosen))}
        parts.append(
            run_trials(mine, environments, {agent: agents[agent]}, wide=wide, steps=steps, seed=seed)
        )
    return gather(parts)


def compare(
    test: pd.DataFrame,
    picks: pd.DataFrame,
    *,
    margin: float = MARGIN,
    seed: int = 0,
    draws: int = 9_999,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Chosen agents against each other on the same test environments.

    Compared are all pairs of agents under each method, and each agent's two methods with each other, under
    both readings.

    Returns:
        reading; agent_x, method_x, configuration_x, mean_x and the same of y; n; difference (of means) with
        its bootstrap interval (BCa); p_student (two-sided, unpaired, one variance: as printed in the
        paper), p_student_greater, p_welch, p_paired; wins, losses, ties of x; p_sign_greater and p_sign (ties
        dropped); win_rate of x without ties, with its Wilson interval; margin (``margin`` times |mean_y|),
        p_equivalence (two one-sided tests); note: why something is NaN.
    """
    rows = []
    for reading in READINGS:
        agents = sorted(picks["agent"].unique())
        pairs = [((x, method), (y, method)) for method in METHODS for x, y in combinations(agents, 2)]
        pairs += [((agent, "copeland"), (agent, "mean")) for agent in agents]
        for x, y in pairs:
            (first, left), (second, right) = (picked_scores(test, picks, *each, reading) for each in (x, y))
            stream = np.random.SeedSequence(int(Purpose.STATISTICS), spawn_key=(seed, len(rows)))
            rows.append(
                {
                    "reading": reading,
                    "agent_x": x[0],
                    "method_x": x[1],
                    "configuration_x": first,
                    "agent_y": y[0],
                    "method_y": y[1],
                    "configuration_y": second,
                }
                | matched_statistics(left, right, margin, stream, draws, confidence)
            )
            if x[0] == y[0] and first == second:
                rows[-1]["note"] = "both methods chose this configuration"
    return pd.DataFrame(rows)


def picked_scores(
    test: pd.DataFrame, picks: pd.DataFrame, agent: str, method: str = "mean", reading: str = READINGS[0]
) -> tuple[int, np.ndarray]:
    """The configuration that a method chose for an agent, and its test scores [n], by position."""
    rows = picks[(picks["agent"] == agent) & (picks["method"] == method) & (picks["reading"] == reading)]
    configuration = int(rows["configuration"].iloc[0])
    mine = test[(test["agent"] == agent) & (test["configuration"] == configuration)]
    return configuration, mine.sort_values("position")[reading].to_numpy(float)


def matched_statistics(
    x: np.ndarray, y: np.ndarray, margin: float, stream, draws: int, confidence: float = 0.95
) -> dict:
    """All of a comparison's numbers, from matched scores [n]."""
    width = margin * abs(float(y.mean()))
    sign, greater = sign_test(x, y), sign_test(x, y, alternative="greater")
    decided = sign.statistic + sign.losses
    rate = proportion_interval(sign.statistic, decided, confidence=confidence) if decided else None
    paired = paired_t_test(x, y)
    interval = bootstrap_interval(x - y, np.mean, seed=stream, draws=draws, confidence=confidence)
    equivalence = paired_equivalence_test(x, y, low=-width, high=width) if width > 0 else None
    return {
        "n": x.size,
        "mean_x": float(x.mean()),
        "mean_y": float(y.mean()),
        "difference": float((x - y).mean()),
        "difference_low": interval.low,
        "difference_high": interval.high,
        "p_student": student_t_test(x, y).pvalue,
        "p_student_greater": student_t_test(x, y, alternative="greater").pvalue,
        "p_welch": welch_t_test(x, y).pvalue,
        "p_paired": paired.pvalue,
        "wins": sign.statistic,
        "losses": sign.losses,
        "ties": sign.ties,
        "p_sign_greater": greater.pvalue,
        "p_sign": sign.pvalue,
        "win_rate": sign.win_rate_excluding_ties,
        "win_rate_low": rate.low if rate else np.nan,
        "win_rate_high": rate.high if rate else np.nan,
        "margin": width,
        "p_equivalence": equivalence.pvalue if equivalence else np.nan,
        "note": paired.note,
    }


def open_methodology(
    configurations: Mapping[int, Configuration],
    tuning: Sequence[EnvironmentDocument],
    test: Sequence[EnvironmentDocument],
    agents: Mapping[str, SarsaTiles] = AGENTS,
    *,
    steps: int = STEPS,
    seed: int = 0,
    margin: float = MARGIN,
) -> OpenResult:
    """The whole methodology in one process; a pipeline calls its parts.

    Args:
        configurations: what each agent is tuned among, by index.
        tuning, test: environments of one generalized environment, from separate streams.
        agents: by name.
        steps, seed: of all trials.
        margin: as ``compare``.

    Raises:
        ValueError: an environment is in both sets, or one of them is empty.
    """
    shared = {environment.hash for environment in tuning} & {environment.hash for environment in test}
    if shared or not tuning or not test:
        raise ValueError(
            f"tuning and test environments are two sets without common members; "
            f"got {len(tuning)} and {len(test)}, {len(shared)} in both"
        )
    wide = covering_ranges([*tuning, *test])
    tuned = run_trials(configurations, tuning, agents, wide=wide, steps=steps, seed=seed)
    picks = choose(tuned)
    tested = run_test(picks, configurations, test, agents, wide=wide, steps=steps, seed=seed)
    return OpenResult(tuned, picks, tested, compare(tested, picks, margin=margin, seed=seed))
