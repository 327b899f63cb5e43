"""Intervals of rates, shares of episodes, where the training seed is the unit and the bounds stay possible.

A t interval over seeds leaves [0, 1] where seeds are few or the rate is extreme, and there is none where all
seeds have the same rate. Wilson's interval over all episodes never does, but takes episodes of one seed for
independent of their policy. So Wilson's interval is taken at the effective number of episodes.

What no interval over these seeds can know is the kind of seed that none of them is: where all of a few seeds
succeed always, seeds that fail altogether may still exist.
"""

import math

import numpy as np

from seedbed.statistics.intervals import Interval, as_sample, check_confidence, obstacle, wilson_bounds
from seedbed.statistics.ties import is_constant


def effective_episodes(rates, episodes) -> float:
    """As many independent episodes would give a mean rate of the same variance; see ``rate_interval``.

    Args:
        rates [s]: one rate per seed, at least two; episodes [s] or one number: how many are behind each.
    """
    rates, episodes = _checked(rates, episodes)
    most = rates.size**2 / float((1 / episodes).sum())
    if is_constant(rates):
        return most
    mean = float(rates.mean())
    return min(most, mean * (1 - mean) * rates.size / float(rates.var(ddof=1)))


def rate_interval(rates, episodes, confidence: float = 0.95) -> Interval:
    """Wilson interval of the mean rate over seeds at the effective number of episodes; NaN for one seed.

    With S seeds of mean p and variance v (S - 1), the mean has the variance v / S that p (1 - p) / n would
    give for n = S p (1 - p) / v independent episodes: all episodes over the design effect (Korn and Graubard
    1998, Survey Methodology 24:193). Episodes of one policy are independent, so the design effect is at least
    1 and n at most S^2 / sum(1 / episodes), all of them where seeds have equally many; that is n where the
    seeds do not differ. Wilson's bounds at n (Franco et al. 2019, J. Surv. Stat. Methodol. 7:334) are taken
    with the quantile of t with S - 1 degrees of freedom for that of the normal, since v is estimated.

    Args:
        rates [s]: share of its episodes in which something happened, one per seed, in [0, 1].
        episodes: [s] or one number, how many episodes are behind each rate.

    Returns:
        The mean and bounds in [0, 1]; NaN, with a note, for fewer than two seeds or a missing rate.

    Raises:
        ValueError: a rate outside [0, 1], or fewer than one episode.
    """
    check_confidence(confidence)
    rates, episodes = _checked(rates, episodes)
    note = obstacle(rates)
    if note:
        known = rates.size and np.all(np.isfinite(rates))
        mean = float(rates.mean()) if known else math.nan
        return Interval(mean, math.nan, math.nan, rates.size, note=note)
    mean, n = float(rates.mean()), effective_episodes(rates, episodes)
    low, high = wilson_bounds(mean, n, confidence, rates.size - 1)
    return Interval(mean, low, high, rates.size, math.sqrt(mean * (1 - mean) / n))


def rate_difference_interval(x, y, episodes_x, episodes_y, confidence: float = 0.95) -> Interval:
    """Interval of the mean difference of rates x - y [s], paired by seed; NaN for one seed.

    Square-and-add (Newcombe 1998, Stat. Med. 17:2635; Zou and Donner 2008, Stat. Med. 27:1693): from the
    intervals of both rates and the correlation r of the seeds' rates,
    low = d - sqrt((x - low_x)^2 - 2 r (x - low_x) (high_y - y) + (high_y - y)^2), high likewise.
    The bounds stay in [-1, 1]; r is 0 where the seeds of a side do not differ.

    Raises:
        ValueError: as ``rate_interval``, or x and y differ in length.
    """
    x, y = as_sample(x), as_sample(y)
    if x.shape != y.shape:
        raise ValueError(f"pairs need equally many rates on both sides, got {x.size} and {y.size}")
    first, second = rate_interval(x, episodes_x, confidence), rate_interval(y, episodes_y, confidence)
    difference, note = first.estimate - second.estimate, first.note or second.note
    if note:
        return Interval(difference, math.nan, math.nan, x.size, note=note)
    r = 0.0 if is_constant(x) or is_constant(y) else float(np.clip(np.corrcoef(x, y)[0, 1], -1, 1))

    def reach(one: float, other: float) -> float:
        return math.sqrt(max(0.0, one * one - 2 * r * one * other + other * other))

    low = difference - reach(first.estimate - first.low, second.high - second.estimate)
    high = difference + reach(first.high - first.estimate, second.estimate - second.low)
    return Interval(difference, max(-1.0, low), min(1.0, high), x.size)


def _checked(rates, episodes) -> tuple[np.ndarray, np.ndarray]:
    """Rates and episodes as float64 [s]."""
    rates = as_sample(rates)
    episodes = np.broadcast_to(np.asarray(episodes, float), rates.shape)
    outside = (rates < 0) | (rates > 1)  # a missing rate is neither
    if outside.any():
        raise ValueError(f"a rate lies in [0, 1], got {rates[outside][0]:g}")
    if not (episodes[np.isfinite(rates)] >= 1).all():
        raise ValueError("every rate needs at least one episode behind it")
    return rates, episodes
