"""The summary of one evaluation: an episode table -> a few numbers under names that stay."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from seedbed.statistics.intervals import proportion_interval

if TYPE_CHECKING:
    import pandas as pd

CONFIDENCE = 0.95


def effective_episodes(fingerprints: np.ndarray) -> int:
    """How many episodes there are to learn from: 1 per seed whose episodes are all the same, else all.

    A deterministic policy in a deterministic environment repeats one episode; if it is the same for every
    seed, there is one in all. Episodes that differ are draws, each of which counts, even if two coincide.

    Args:
        fingerprints: [S, E], of a policy that draws no random numbers; see ``evaluation.Evaluation``.
    """
    if (fingerprints == fingerprints[0, 0]).all():
        return 1
    same = (fingerprints == fingerprints[:, :1]).all(1)
    return int(np.where(same, 1, fingerprints.shape[1]).sum())


def summarise(episodes: "pd.DataFrame", n_eff: int, has_success: bool) -> dict[str, Any]:
    """What an episode table says, in finite numbers or None.

    Args:
        episodes: table of ``EPISODE_COLUMNS`` and final facts; its rows are those requested, all of them.
        n_eff: see ``effective_episodes``.
        has_success: whether the environment has a condition of success; without one nothing fails either.

    Returns:
        "episodes", "n_eff"; "success_rate" with its Wilson (1927) interval, None where episodes repeat each
        other; "median_steps_to_goal" and "steps_p50_success", the same number, in steps; "mean_return",
        "std_return" (n - 1), "return_mean_success", "return_mean_fail", undiscounted; "dist_at_end_p50",
        median of the fact ``distance`` at the end; "terminated" and "truncated", numbers of episodes, some
        of which may be both.

    Raises:
        ValueError: the table has no rows.
    """
    count = len(episodes)
    if not count:
        raise ValueError("There are no episodes to summarise.")
    returns, lengths = episodes["return"].to_numpy(), episodes["length"].to_numpy()
    success = episodes["success"].to_numpy()
    rate = low = high = None
    if has_success:
        interval = proportion_interval(int(success.sum()), count, CONFIDENCE)
        rate = interval.estimate
        if n_eff == count:
            low, high = interval.low, interval.high
    steps = _number(np.median, lengths[success])
    distance = episodes["final_distance"].to_numpy() if "final_distance" in episodes else np.empty(0)
    return {
        "episodes": count,
        "n_eff": n_eff,
        "success_rate": rate,
        "success_rate_low": low,
        "success_rate_high": high,
        "confidence": CONFIDENCE,
        "median_steps_to_goal": steps,
        "steps_p50_success": steps,
        "mean_return": _number(np.mean, returns),
        "std_return": _number(lambda values: np.std(values, ddof=1), returns) if count > 1 else None,
        "return_mean_success": _number(np.mean, returns[success]),
        "return_mean_fail": _number(np.mean, returns[~success]) if has_success else None,
        "dist_at_end_p50": _number(np.median, distance),
        "terminated": int(episodes["terminated"].sum()),
        "truncated": int(episodes["truncated"].sum()),
    }


def _number(statistic, values: np.ndarray) -> float | None:
    """A statistic of values [n]; None without values, or where it is not finite."""
    with np.errstate(all="ignore"):
        value = float(statistic(values)) if values.size else math.nan
    return value if math.isfinite(value) else None


def describe(summary: dict[str, Any]) -> str:
    """A summary in a few lines for people."""
    acting = "greedy" if summary["greedy"] else "sampled"
    seeds = ", ".join(map(str, summary["seeds"]))
    lines = [
        f"{summary['policy']} ({acting}) in {summary['environment']}: {summary['episodes']} episodes, "
        f"seed{'s' * (len(summary['seeds']) > 1)} {seeds}",
        f"  return        {_shown(summary['mean_return'])}  SD {_shown(summary['std_return'])}",
    ]
    if summary["success_rate"] is None:
        lines.append("  success       the environment has no condition of success")
    else:
        interval = ""
        if summary["success_rate_low"] is not None:
            interval = f"  95 % [{summary['success_rate_low']:.3f}, {summary['success_rate_high']:.3f}]"
        lines.append(f"  success rate  {summary['success_rate']:.3f}{interval}")
        lines.append(f"  steps to it   {_shown(summary['median_steps_to_goal'])}  median of successes")
    lines.append(f"  ended         {summary['terminated']} terminated, {summary['truncated']} truncated")
    if summary["n_eff"] < summary["episodes"]:
        lines.append(f"  Policy and environment are deterministic: distinct episodes {summary['n_eff']}.")
    return "\n".join(lines)


def _shown(number: float | None) -> str:
    return "-" if number is None else f"{number:.6g}"
