"""Time to an event: cumulative incidence when something competes, Kaplan-Meier otherwise.

Quitting is not censoring. An episode that ended by quitting will never master, so it competes with mastery;
treating it as censored claims what would happen "if nobody quit". Censored means: still going at the step
limit. Codes: 0 censored, 1 the event of interest, 2 a competing event.

Intervals here treat the rows as independent. Episodes of one trained policy are not: for a claim about
training, take one curve or one restricted mean per seed and a t interval over the seeds.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from seedbed.statistics.intervals import Interval, check_confidence, wilson_bounds

CENSORED, EVENT, COMPETING = 0, 1, 2


@dataclass(frozen=True)
class CumulativeIncidence:
    """Share with the event by each time [k] at which one occurred; median None means "not reached".

    followed_to: the time up to which the curve is known (inf when nobody was still going at the end).
    """

    times: np.ndarray
    incidence: np.ndarray
    standard_error: np.ndarray
    low: np.ndarray
    high: np.ndarray
    median: float | None
    n: int
    n_events: int
    n_competing: int
    n_censored: int
    followed_to: float
    note: str
    _all_times: np.ndarray
    _all_events: np.ndarray
    _confidence: float

    def at(self, time: float) -> Interval:
        """Share with the event by `time`, with its pointwise interval; NaN beyond what was followed."""
        if self.n == 0 or time > self.followed_to:
            note = f"not estimable: followed to {self.followed_to:g} only" if self.n else self.note
            return Interval(math.nan, math.nan, math.nan, self.n, note=note)
        k = int(np.searchsorted(self.times, time, side="right")) - 1
        share, error = (float(self.incidence[k]), float(self.standard_error[k])) if k >= 0 else (0.0, 0.0)
        size = _effective_size(share, error, self._all_times, self._all_events, time)
        return Interval(share, *wilson_bounds(share, size, self._confidence), self.n, error)


@dataclass(frozen=True)
class KaplanMeier:
    """Share still without the event after each event time [k]; median None means "not reached"."""

    times: np.ndarray
    survival: np.ndarray
    standard_error: np.ndarray
    low: np.ndarray
    high: np.ndarray
    median: float | None
    n: int
    n_events: int
    note: str


@dataclass(frozen=True)
class RestrictedMean:
    """Mean time spent without the event up to the horizon; who never has it counts with the horizon."""

    estimate: float
    horizon: float
    n: int
    n_events: int
    note: str = ""


@dataclass(frozen=True)
class LogRankResult:
    """statistic: chi-squared with 1 degree of freedom; expected_a: events expected in a if alike."""

    statistic: float
    pvalue: float
    df: int
    observed_a: int
    expected_a: float
    note: str = ""


def _checked(times, events) -> tuple[np.ndarray, np.ndarray]:
    times, events = np.asarray(times, float), np.asarray(events)
    if times.ndim != 1 or times.shape != events.shape:
        raise ValueError(
            f"times and events need one axis and one length, got {times.shape} and {events.shape}"
        )
    bad = np.flatnonzero(~np.isfinite(times) | (times < 0))
    if bad.size:
        raise ValueError(
            f"row {bad[0]}: {times[bad[0]]} is not a time; without the event, give the last time followed "
            f"and code {CENSORED}"
        )
    if not np.all(np.isin(events, (CENSORED, EVENT, COMPETING))):
        raise ValueError("events must be 0 (censored), 1 (event of interest) or 2 (competing event)")
    return times, events.astype(int)


def _life_table(times, events) -> tuple[np.ndarray, ...]:
    """Distinct times [k] with any event, number at risk, events of interest, events of any kind."""
    distinct = np.unique(times[events != CENSORED])
    ordered = np.sort(times)
    at_risk = times.size - np.searchsorted(ordered, distinct, side="left")
    own = np.array([np.sum((times == t) & (events == EVENT)) for t in distinct], float)
    every = np.array([np.sum((times == t) & (events != CENSORED)) for t in distinct], float)
    return distinct, at_risk.astype(float), own, every


def _effective_size(share, error, times, events, time) -> float:
    """Trials that a plain share would need to be as precise (Rothman 1978), so that Wilson bounds apply.

    Without censoring it is n. Where the share is 0 or 1 its variance says nothing: then the number
    of rows whose state at `time` is known.
    """
    if error > 0:
        return share * (1 - share) / error**2
    return float(np.sum((times >= time) | (events != CENSORED)))


def _first_reaching_half(times, incidence) -> float | None:
    reached = np.flatnonzero(incidence >= 0.5 - 1e-12)  # a product-limit half may be .5 minus a rounding
    return float(times[reached[0]]) if reached.size else None


def _bounds(shares, errors, times, confidence, all_times, all_events) -> tuple[np.ndarray, np.ndarray]:
    bounds = [
        wilson_bounds(min(max(s, 0.0), 1.0), _effective_size(s, e, all_times, all_events, t), confidence)
        for s, e, t in zip(shares, errors, times, strict=True)
    ]
    low, high = np.array(bounds).reshape(-1, 2).T
    return low, high


def cumulative_incidence(times, events, confidence: float = 0.95) -> CumulativeIncidence:
    """Aalen-Johansen estimate of the share with the event by each time, in the presence of competing events.

    times [n], events [n] in {0, 1, 2}; at equal times, events come before censorings. Variance by the delta
    method (Marubini and Valsecchi 1995, equation 10.12), pointwise Wilson bounds with the effective size
    of Rothman (1978): without censoring it is the plain share with its Wilson interval.
    """
    times, events = _checked(times, events)
    check_confidence(confidence)
    t, at_risk, own, every = _life_table(times, events)
    before = np.concatenate(([1.0], np.cumprod(1 - every / at_risk)))[:-1] if t.size else np.empty(0)
    curve = np.minimum(np.cumsum(before * own / at_risk), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        general = np.where(at_risk > every, every / (at_risk * (at_risk - every)), 0.0)
    rise = np.maximum(curve[:, None] - curve, 0.0)  # F(t_j) - F(t_i); zero for i >= j
    upto = np.tri(t.size)
    variance = (
        rise**2 @ general
        + upto @ (before**2 * own * (at_risk - own) / at_risk**3)
        - 2 * rise @ (before * own / at_risk**2)
    )
    shown = own > 0
    share, error = curve[shown], np.sqrt(np.maximum(variance[shown], 0.0))
    error = np.where((share > 0) & (share < 1), error, 0.0)
    low, high = _bounds(share, error, t[shown], confidence, times, events)
    return CumulativeIncidence(
        times=t[shown],
        incidence=share,
        standard_error=error,
        low=low,
        high=high,
        median=_first_reaching_half(t[shown], share),
        n=times.size,
        n_events=int(np.sum(events == EVENT)),
        n_competing=int(np.sum(events == COMPETING)),
        n_censored=int(np.sum(events == CENSORED)),
        followed_to=_followed_to(times, events),
        note=_no_event_note(times, events),
        _all_times=times,
        _all_events=events,
        _confidence=confidence,
    )


def _followed_to(times, events) -> float:
    if times.size == 0:
        return math.nan
    last = float(times.max())
    return last if np.any(events[times == last] == CENSORED) else math.inf


def _no_event_note(times, events) -> str:
    if times.size == 0:
        return "not estimable: no row at all"
    if not np.any(events == EVENT):
        return f"time to the event is not estimable: none of {times.size} had it"
    return ""


def kaplan_meier(times, events, confidence: float = 0.95) -> KaplanMeier:
    """Kaplan-Meier (1958) product-limit curve, times [n], events [n] in {0, 1}, Greenwood's errors.

    Refuses competing events (ValueError): with them it overstates who gets there. Bounds as in
    `cumulative_incidence`.
    """
    times, events = _checked(times, events)
    if np.any(events == COMPETING):
        raise ValueError("Kaplan-Meier knows no competing events (code 2); use cumulative_incidence")
    curve = cumulative_incidence(times, events, confidence)
    t, at_risk, own, _ = _life_table(times, events)
    survival = np.cumprod(1 - own / at_risk)
    with np.errstate(divide="ignore", invalid="ignore"):
        hazard = np.cumsum(np.where(at_risk > own, own / (at_risk * (at_risk - own)), 0.0))
    errors = survival * np.sqrt(hazard)
    low, high = 1 - curve.high, 1 - curve.low
    return KaplanMeier(t, survival, errors, low, high, curve.median, times.size, curve.n_events, curve.note)


def restricted_mean(times, events, horizon: float) -> RestrictedMean:
    """Area under 1 - incidence up to horizon > 0; without competing events, under the Kaplan-Meier curve.

    A row that quits never has the event and so counts with the whole horizon, not with the time at which it
    quit. NaN when the curve is not known up to the horizon.
    """
    times, events = _checked(times, events)
    if not horizon > 0:
        raise ValueError(f"horizon must be positive, got {horizon}")
    curve = cumulative_incidence(times, events)
    if curve.n == 0 or curve.followed_to < horizon:
        note = curve.note if curve.n == 0 else f"not estimable: followed to {curve.followed_to:g} only"
        return RestrictedMean(math.nan, horizon, curve.n, curve.n_events, note)
    inside = curve.times < horizon
    edges = np.concatenate(([0.0], curve.times[inside], [horizon]))
    heights = 1 - np.concatenate(([0.0], curve.incidence[inside]))
    note = "no event by the horizon: the mean is the horizon by definition" if not inside.any() else ""
    return RestrictedMean(float(np.sum(np.diff(edges) * heights)), horizon, curve.n, curve.n_events, note)


def log_rank(times_a, events_a, times_b, events_b) -> LogRankResult:
    """Log-rank test (Mantel 1966) of two groups; competing events count as leaving the risk set.

    So it compares the rates among those still there, not the shares that ever get there. NaN, "not
    testable", when a group is empty or nobody has the event.
    """
    (ta, ea), (tb, eb) = _checked(times_a, events_a), _checked(times_b, events_b)
    pooled, codes = np.concatenate((ta, tb)), np.concatenate((ea, eb))
    observed = int(np.sum(ea == EVENT))
    note = "not testable: a group is empty" if min(ta.size, tb.size) == 0 else ""
    if not note and not np.any(codes == EVENT):
        note = "not testable: no event in either group"
    if note:
        return LogRankResult(math.nan, math.nan, 1, observed, math.nan, note)
    distinct = np.unique(pooled[codes == EVENT])
    deaths = np.array([np.sum((pooled == t) & (codes == EVENT)) for t in distinct], float)
    risk_a = ta.size - np.searchsorted(np.sort(ta), distinct, side="left")
    risk = pooled.size - np.searchsorted(np.sort(pooled), distinct, side="left")
    share = risk_a / risk
    expected = float(np.sum(deaths * share))
    several = risk > 1
    variance = np.sum((deaths * share * (1 - share) * (risk - deaths))[several] / (risk - 1)[several])
    if not variance > 0:
        note = "not testable: the groups were never at risk together"
        return LogRankResult(math.nan, math.nan, 1, observed, expected, note)
    statistic = float((observed - expected) ** 2 / variance)
    return LogRankResult(statistic, float(special.chdtrc(1, statistic)), 1, observed, expected)
