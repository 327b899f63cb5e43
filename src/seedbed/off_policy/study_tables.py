"""The off-policy part of a study: estimates of logged data beside the truth, and how often they are right."""

import numpy as np
import pandas as pd

from seedbed.algorithms.epsilon_soft import EpsilonSoftPolicy
from seedbed.evaluation import evaluate
from seedbed.off_policy.behaviour import (
    BehaviourLog,
    data_sets,
    make_dynamics,
    make_policy,
    target_distribution,
)
from seedbed.off_policy.diagnostics import Overlap, overlap, verdict
from seedbed.off_policy.estimates import ESTIMATORS, Estimate, estimate_all
from seedbed.off_policy.fitted_q import Features, additive_features
from seedbed.off_policy.trajectories import Trajectories
from seedbed.seeding import Purpose, stream
from seedbed.statistics.intervals import mean_t_interval, proportion_interval
from seedbed.study import OffPolicyPlan, StatisticsSettings

ESTIMATE_COLUMNS = {
    "target": "string",
    "estimator": "string",
    "episodes": "int64",
    "estimate": "float64",
    "low": "float64",
    "high": "float64",
    "truth": "float64",
    "accepted": "bool",
    "verdict": "string",
    "note": "string",
}
"""One row per target and estimator, on the logged data; ``note`` says why a number is missing."""
OVERLAP_COLUMNS = {
    "target": "string",
    "t": "int64",
    "effective": "float64",
    "episodes": "int64",
    "largest_share": "float64",
    "largest_weight": "float64",
    "mean_weight": "float64",
    "zero_share": "float64",
    "uncovered": "float64",
    "behaviour_return": "float64",
    "truth": "float64",
    "truth_low": "float64",
    "truth_high": "float64",
    "truth_episodes": "int64",
    "accepted": "bool",
    "verdict": "string",
}
"""One row per target and step: the effective number of episodes by the weights up to step t; further columns
are of whole episodes and the same in all rows of a target."""
COVERAGE_COLUMNS = {
    "target": "string",
    "estimator": "string",
    "repetitions": "int64",
    "undefined": "int64",
    "bias": "float64",
    "bias_low": "float64",
    "bias_high": "float64",
    "rmse": "float64",
    "intervals": "int64",
    "coverage": "float64",
    "coverage_low": "float64",
    "coverage_high": "float64",
    "refused": "float64",
}
"""One row per target and estimator, over repeated data sets: ``undefined`` of them gave no estimate, coverage
is among the ``intervals`` that could be had, ``refused`` is the share of data sets that were."""
AT_ONCE = 20
"""Data sets that are simulated at once; changes memory, never a result."""


def seen_from(log: BehaviourLog, target: np.ndarray) -> tuple[Trajectories, Features]:
    """What the estimators take: the log with the probabilities of a target policy, and its features.

    Args:
        log: the episodes.
        target: [N, T + 1, actions], as ``target_distribution`` returns.
    """
    taken = np.take_along_axis(target[:, :-1], log.action[..., None], -1)[..., 0]
    points = np.arange(target.shape[1])
    # Cut at the horizon, an episode could have gone on; ended earlier, by whatever, it earns nothing more.
    could_go_on = ~log.terminated & (log.length == target.shape[1] - 1)
    over = points >= log.length[:, None] + could_go_on[:, None]
    features = additive_features(log.observation, log.action, target, over)
    return Trajectories(log.reward, log.probability, taken, log.length), features


def assess(
    log: BehaviourLog, policy: EpsilonSoftPolicy, plan: OffPolicyPlan, settings: StatisticsSettings, seed: int
) -> tuple[list[Estimate], Overlap]:
    """All estimates of one target policy from one data set, and the overlap.

    Args:
        log: the data set.
        policy: the target, of one seed.
        plan: bootstrap draws and ridge.
        settings: confidence, and the seed of all resampling.
        seed: of the data set, for the resampling.
    """
    target = target_distribution(log, policy)
    episodes, features = seen_from(log, target)
    estimates = estimate_all(
        episodes,
        features,
        ridge=plan.ridge,
        draws=plan.draws,
        generator=stream(Purpose.STATISTICS, settings.seed, seed),
        confidence=settings.confidence,
    )
    return estimates, overlap(episodes, log.distribution, target[:, :-1])


def off_policy_tables(
    plan: OffPolicyPlan, logged: BehaviourLog, settings: StatisticsSettings
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Estimates and overlap of the logged data, and coverage over repeated data sets.

    The truth is the mean return of each target over episodes of its own, on the simulator. The repeated data
    sets are the logged one and others of the same size, from other streams.

    Returns:
        Tables of ``ESTIMATE_COLUMNS``, ``OVERLAP_COLUMNS`` and ``COVERAGE_COLUMNS``.
    """
    dynamics = make_dynamics(plan)
    policies = {label: make_policy(entry, dynamics, [0]) for label, entry in plan.targets.items()}
    truths = {label: _truth(policy, dynamics, plan, settings) for label, policy in policies.items()}
    found = {label: assess(logged, policy, plan, settings, 0) for label, policy in policies.items()}
    repeated = {label: [result] for label, result in found.items()}
    for start in range(1, plan.repetitions, AT_ONCE):
        seeds = list(range(start, min(start + AT_ONCE, plan.repetitions)))
        for seed, log in zip(seeds, data_sets(plan, dynamics, seeds), strict=True):
            for label, policy in policies.items():
                repeated[label].append(assess(log, policy, plan, settings, seed))
    estimates = [row for label in found for row in _estimate_rows(label, *found[label], truths[label], plan)]
    overlaps = [
        row for label in found for row in _overlap_rows(label, found[label][1], truths[label], plan, logged)
    ]
    coverage = [
        row
        for label in found
        for row in _coverage_rows(label, repeated[label], truths[label], plan, settings)
    ]
    return (
        pd.DataFrame(estimates).astype(ESTIMATE_COLUMNS),
        pd.DataFrame(overlaps).astype(OVERLAP_COLUMNS),
        pd.DataFrame(coverage).astype(COVERAGE_COLUMNS),
    )


def _truth(policy, dynamics, plan, settings):
    episodes = evaluate(policy, dynamics, Purpose.TEST, plan.truth_episodes, lanes=500).episodes
    return mean_t_interval(episodes["return"].to_numpy(), settings.confidence)


def _estimate_rows(label, estimates, seen, truth, plan):
    for name, interval in estimates:
        judged = verdict(seen, weighted=name != "FQE", least_effective=plan.least_effective)
        yield {
            "target": label,
            "estimator": name,
            "episodes": seen.episodes,
            "estimate": interval.estimate,
            "low": interval.low,
            "high": interval.high,
            "truth": truth.estimate,
            "accepted": judged.accepted,
            "verdict": judged.reason,
            "note": interval.note,
        }


def _overlap_rows(label, seen, truth, plan, logged):
    judged = verdict(seen, least_effective=plan.least_effective)
    for t, effective in enumerate(seen.effective_by_step, 1):
        yield {
            "target": label,
            "t": t,
            "effective": effective,
            "episodes": seen.episodes,
            "largest_share": seen.largest_share,
            "largest_weight": seen.largest_weight,
            "mean_weight": seen.mean_weight,
            "zero_share": seen.zero_share,
            "uncovered": seen.uncovered,
            "behaviour_return": logged.reward.sum(1).mean(),
            "truth": truth.estimate,
            "truth_low": truth.low,
            "truth_high": truth.high,
            "truth_episodes": truth.n,
            "accepted": judged.accepted,
            "verdict": judged.reason,
        }


def _coverage_rows(label, results, truth, plan, settings):
    refused = np.mean(
        [not verdict(seen, least_effective=plan.least_effective).accepted for _, seen in results]
    )
    for index, name in enumerate(ESTIMATORS):
        intervals = [estimates[index].interval for estimates, _ in results]
        values = np.array([interval.estimate for interval in intervals])
        errors = values[np.isfinite(values)] - truth.estimate
        bounded = [interval for interval in intervals if np.isfinite(interval.low)]
        hits = sum(interval.low <= truth.estimate <= interval.high for interval in bounded)
        bias = mean_t_interval(errors, settings.confidence)
        coverage = proportion_interval(hits, len(bounded), settings.confidence)
        yield {
            "target": label,
            "estimator": name,
            "repetitions": len(results),
            "undefined": len(values) - len(errors),
            "bias": bias.estimate,
            "bias_low": bias.low,
            "bias_high": bias.high,
            "rmse": float(np.sqrt(np.mean(errors**2))) if len(errors) else np.nan,
            "intervals": len(bounded),
            "coverage": coverage.estimate,
            "coverage_low": coverage.low,
            "coverage_high": coverage.high,
            "refused": refused,
        }
