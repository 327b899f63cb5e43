"""Evaluation: a set of episodes fixed before it starts -> episode table and step table.

The table has exactly one row per requested episode whatever finished first, and is the same, bit for bit, for
any number of lanes. Evaluation owns its environment and its random streams, so it changes nothing outside.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from seedbed.artifacts import EPISODE_COLUMNS, STEP_COLUMNS, SeedbedError
from seedbed.environments.base import Dynamics, Spec
from seedbed.environments.lanes import (
    EpisodeError,
    ExternalEnvironment,
    Lanes,
    LaneStep,
    make_lanes,
    succeeded,
)
from seedbed.seeding import ACTIONS_OF, Purpose, stream

if TYPE_CHECKING:
    import pandas as pd

    from seedbed.algorithms.base import Policy


DRAWN_AHEAD = 1024
"""Steps whose random numbers are drawn at once for a policy; changes speed and memory, never a result."""


class EvaluationError(SeedbedError):
    """An episode went wrong; the message names seed, episode and step."""


@dataclass(frozen=True)
class EvaluationState:
    """What is known of every requested episode so far; all arrays [S, E] (S seeds, E episodes)."""

    total: np.ndarray
    """Undiscounted return, float64, summed in the order of steps."""
    length: np.ndarray
    finished: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    success: np.ndarray
    final: dict[str, np.ndarray]
    """Last value of each fact that the environment marks final."""


def empty_state(spec: Spec, seeds: int, episodes: int) -> EvaluationState:
    """The state before any step."""
    shape = (seeds, episodes)
    flags = np.zeros((4, *shape), bool)
    return EvaluationState(
        np.zeros(shape),
        np.zeros(shape, np.int64),
        *flags,
        {fact.name: np.zeros(shape, fact.dtype) for fact in spec.facts if fact.final},
    )


def reduce(state: EvaluationState, step: LaneStep, spec: Spec, first: int = 0) -> EvaluationState:
    """The state after one more step of all lanes: pure, and the only place where episodes are counted.

    Args:
        state: so far.
        step: what the lanes gave; inactive lanes are ignored.
        spec: the environment's; it says what success is.
        first: number of the first episode.
    """
    rows = np.nonzero(step.active)
    where = (rows[0], step.episode[rows] - first)
    total, length = state.total.copy(), state.length.copy()
    total[where] += step.reward[rows]
    length[where] += 1
    ended = step.active & (step.terminated | step.truncated)
    state = replace(state, total=total, length=length)
    if not ended.any():
        return state
    rows = np.nonzero(ended)
    where = (rows[0], step.episode[rows] - first)
    values = {
        "finished": ended,
        "terminated": step.terminated,
        "truncated": step.truncated,
        "success": succeeded(step, spec),
    }
    changed = {}
    for name, value in values.items():
        changed[name] = getattr(state, name).copy()
        changed[name][where] = value[rows]
    final = {name: column.copy() for name, column in state.final.items()}
    for name, column in final.items():
        column[where] = step.facts[name][rows]
    return replace(state, **changed, final=final)


class Evaluation(NamedTuple):
    """The tables of one evaluation."""

    episodes: "pd.DataFrame"
    """``EPISODE_COLUMNS`` and final facts, sorted by seed and episode."""
    steps: "pd.DataFrame | None"
    """``STEP_COLUMNS``, ``action_<i>`` where actions are arrays (``action`` is then -1), and facts; sorted by
    seed, episode and t; None unless asked for."""
    decisions: int
    """Decisions the policy took, over all seeds."""
    fingerprints: np.ndarray | None
    """[S, E] uint64, equal where observations acted on, actions, rewards and ends are; None unless asked."""


def evaluate(
    policy: "Policy",
    environment: Dynamics | ExternalEnvironment,
    purpose: Purpose,
    episodes: int | Sequence[int],
    *,
    lanes: int,
    first: int = 0,
    log_steps: bool = False,
    fingerprints: bool = False,
) -> Evaluation:
    """Run a policy on a fixed set of episodes per seed.

    Args:
        policy: stacked over seeds, in the mode to be evaluated.
        environment: where it acts.
        purpose: EVALUATION, TEST or TUNING; the episodes and the policy's own randomness are its streams'.
        episodes: number of episodes per seed, or plain reset seeds, the same for all seeds.
        lanes: episodes side by side per seed, fewer where more are of no use to the policy (``most_lanes``);
            changes speed, never a result.
        first: number of the first episode, so that a set can be continued.
        log_steps: whether to keep the step table.
        fingerprints: whether to tell which episodes are the same from beginning to end.

    Raises:
        EvaluationError: policy or environment raised, or gave a reward or observation that is not finite.
    """
    count = episodes if isinstance(episodes, int) else len(episodes)
    lanes = min(lanes, count, getattr(policy, "most_lanes", lanes))
    try:
        running = make_lanes(environment, purpose, policy.seeds, lanes, episodes, first)
    except EpisodeError as error:
        raise EvaluationError(str(error)) from error
    with closing(running):
        return _evaluated(policy, running, purpose, range(first, first + count), log_steps, fingerprints)


def _evaluated(
    policy: "Policy", running: Lanes, purpose: Purpose, episodes: range, log_steps: bool, fingerprints: bool
) -> Evaluation:
    """Run the policy until no lane has an episode left."""
    spec, log, decisions, memory = running.spec, [], 0, None
    state = empty_state(spec, len(policy.seeds), len(episodes))
    prints = np.zeros(state.total.shape, np.uint64) if fingerprints else None
    block = min(spec.horizon, DRAWN_AHEAD)
    tape, sources = np.zeros((*running.active.shape, block, policy.uniforms)), {}
    rows = np.ix_(*map(np.arange, running.active.shape))
    while running.active.any():
        if policy.uniforms:
            for row, lane in np.argwhere((running.t % block == 0) & running.active).tolist():
                if running.first[row, lane]:
                    episode = int(running.episode[row, lane])
                    sources[row, lane] = stream(ACTIONS_OF[purpose], policy.seeds[row], episode)
                tape[row, lane] = sources[row, lane].random(tape.shape[2:])
        uniforms = tape[(*rows, running.t % block)]
        observation = running.observation
        seen = running.state if policy.needs_state else observation
        try:
            action, memory = policy.act(seen, running.mask, uniforms, memory, running.first)
            step = running.step(action)
        except EpisodeError as error:
            raise EvaluationError(str(error)) from error
        except Exception as error:
            raise EvaluationError(
                f"{type(error).__name__} in seeds {policy.seeds}, "
                f"episodes {running.episode[running.active]}, steps {running.t[running.active] + 1}: {error}"
            ) from error
        _check_finite(step, policy.seeds)
        state = reduce(state, step, spec, episodes.start)
        if prints is not None:
            where = np.nonzero(step.active)
            seen = (observation, action, step.reward, step.terminated, step.truncated)
            at = (where[0], step.episode[where] - episodes.start)
            prints[at] = fold(prints[at], [part[where] for part in seen])
        decisions += int(step.active.sum())
        if log_steps:
            log.append((step.active, action, step))
    return Evaluation(
        _episode_table(state, policy, episodes),
        _step_table(log, policy, spec) if log_steps else None,
        decisions,
        prints,
    )


def fold(prints: np.ndarray, parts: Sequence[np.ndarray]) -> np.ndarray:
    """Fingerprints [n] uint64 with one more step folded in: a polynomial hash modulo 2**64 of its numbers.

    Args:
        prints: so far; 0 before the first step.
        parts: arrays [n, ...], compared as float64.
    """
    numbers = np.concatenate([part.reshape(len(prints), -1).astype(np.float64) for part in parts], 1)
    words = (numbers + 0.0).view(np.uint64)  # + 0.0: -0.0 equals 0.0
    words = (words ^ words >> np.uint64(32)) * _ODD
    words ^= words >> np.uint64(29)
    weights = np.arange(1, words.shape[1] + 1, dtype=np.uint64) * _ODD | np.uint64(1)
    return (prints + np.uint64(1)) * np.uint64(0xBF58476D1CE4E5B9) + (words * weights).sum(1)


_ODD = np.uint64(0x9E3779B97F4A7C15)


def _check_finite(step: LaneStep, seeds: list[int]) -> None:
    axes = tuple(range(2, step.final_observation.ndim))
    finite = np.isfinite(step.reward) & np.isfinite(step.final_observation).all(axes)
    wrong = np.argwhere(step.active & ~finite)
    if len(wrong):
        row, lane = wrong[0]
        raise EvaluationError(
            f"Reward or observation is not finite in seed {seeds[row]}, episode {step.episode[row, lane]}, "
            f"step {step.t[row, lane]} (reward {step.reward[row, lane]})."
        )


def _episode_table(state: EvaluationState, policy: "Policy", numbers: range) -> "pd.DataFrame":
    import pandas as pd

    if not state.finished.all():
        row, episode = np.argwhere(~state.finished)[0]
        raise EvaluationError(f"Episode {numbers[episode]} of seed {policy.seeds[row]} did not finish.")
    seeds, episodes = state.total.shape
    columns = {
        "seed": np.repeat(policy.seeds, episodes),
        "policy_mode": policy.mode,
        "episode": np.tile(numbers, seeds),
        "return": state.total.ravel(),
        "length": state.length.ravel(),
        "terminated": state.terminated.ravel(),
        "truncated": state.truncated.ravel(),
        "success": state.success.ravel(),
    }
    final = {f"final_{name}": values.ravel() for name, values in state.final.items()}
    return pd.DataFrame(columns | final).astype(EPISODE_COLUMNS)


def _step_table(log: list, policy: "Policy", spec: Spec) -> "pd.DataFrame":
    import pandas as pd

    def column(value) -> np.ndarray:
        return np.concatenate([value(step, action)[active] for active, action, step in log])

    index = {
        "seed": column(lambda step, _: np.broadcast_to(np.array(policy.seeds)[:, None], step.t.shape)),
        "episode": column(lambda step, _: step.episode),
        "t": column(lambda step, _: step.t),
    }
    order = np.lexsort((index["t"], index["episode"], index["seed"]))
    action = column(lambda _, action: action)
    entries = {}
    if spec.action_array is not None:  # arrays have a column per entry, and no number of their own
        entries = {f"action_{i}": entry for i, entry in enumerate(action.reshape(len(order), -1).T)}
        action = np.full(len(order), -1)
    columns = index | {
        "policy_mode": np.full(len(order), policy.mode),
        "action": action,
        "reward": column(lambda step, _: step.reward),
        "terminated": column(lambda step, _: step.terminated),
        "truncated": column(lambda step, _: step.truncated),
    }
    columns |= entries
    for fact in spec.facts:
        columns[fact.name] = column(lambda step, _, name=fact.name: step.facts[name]).astype(fact.dtype)
    table = pd.DataFrame({name: values[order] for name, values in columns.items()})
    return table[[*STEP_COLUMNS, *entries, *(fact.name for fact in spec.facts)]].astype(STEP_COLUMNS)
