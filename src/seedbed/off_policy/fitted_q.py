"""Fitted Q evaluation: the value of the target policy, regressed backwards from the horizon.

Q is linear in features of state and action. One-hot features of a finite state space make it tabular, and
then equal to the value in the empirical model. All steps of all episodes enter every regression, so the
features should hold the time if the environment is not the same at all times.
"""

from dataclasses import dataclass

import numpy as np

from seedbed.off_policy.trajectories import ActionValues, Trajectories


@dataclass(frozen=True)
class Features:
    """Features phi(s, a) of the logged steps, p numbers each.

    Args:
        taken: phi(s_t, a_t), [N, T, p].
        expected: sum over a of target(a | s_t) phi(s_t, a) for t = 0..T, [N, T + 1, p]; zero where an
            episode is over and nothing more is earned. At step T it is the state's own unless it is terminal.
    """

    taken: np.ndarray
    expected: np.ndarray


def additive_features(
    observation: np.ndarray, action: np.ndarray, target: np.ndarray, over: np.ndarray
) -> Features:
    """phi(s, a) = (1, observation, one-hot action): state and action each add their part to Q.

    Args:
        observation: [N, T + 1, d], also the last one of each episode.
        action: [N, T] int64.
        target: [N, T + 1, actions], the target policy's distribution at each observation.
        over: [N, T + 1] bool, observations of episodes that are over.

    Returns:
        Features with p = 1 + d + actions.
    """
    one = np.ones((*observation.shape[:2], 1))
    expected = np.concatenate([one, observation, target], -1)
    taken = np.concatenate([expected[:, :-1, : -target.shape[-1]], np.eye(target.shape[-1])[action]], -1)
    return Features(taken, np.where(over[..., None], 0.0, expected))


def fitted_q_evaluation(
    log: Trajectories, features: Features, counts: np.ndarray | None = None, ridge: float = 0.0
) -> ActionValues:
    """Fitted Q evaluation (Le, Voloshin and Yue 2019, algorithm 3) with linear features, to the horizon.

    Q_k, the value of k steps to go, is the regression of r + gamma V_(k-1)(s') on phi(s, a) over all logged
    steps, with V_0 = 0; the value at step t is Q_(T-t).

    Args:
        log: the episodes.
        features: of the same episodes.
        counts: how often each episode counts, [..., N]; refits for every resample (Hao et al. 2021).
        ridge: squared-error penalty on each coefficient, as if seen in so many steps; with 0 the least-norm
            solution, so that what was never seen is worth 0.

    Raises:
        ValueError: the ridge is negative, or features and episodes differ in shape.
    """
    episodes, horizon = log.reward.shape
    if ridge < 0:
        raise ValueError(f"ridge must not be negative, got {ridge}")
    width = features.taken.shape[-1]
    if features.taken.shape != (episodes, horizon, width) or features.expected.shape != (
        episodes,
        horizon + 1,
        width,
    ):
        raise ValueError(
            f"features have shapes {features.taken.shape} and {features.expected.shape}, "
            f"the episodes {log.reward.shape}"
        )
    taken = np.where(log.alive[..., None], features.taken, 0.0)
    reward = np.where(log.alive, log.reward, 0.0)
    square = _summed(taken, taken, counts)
    ahead = log.discount * _summed(taken, features.expected[:, 1:], counts)
    earned = _summed(taken, reward[..., None], counts)
    if ridge:
        both = np.linalg.solve(square + ridge * np.eye(width), np.concatenate([earned, ahead], -1))
    else:
        both = np.linalg.pinv(square, hermitian=True) @ np.concatenate([earned, ahead], -1)
    now, later = both[..., 0], both[..., 1:]
    coefficients = np.zeros((horizon + 1, *now.shape))
    for steps in range(1, horizon + 1):
        coefficients[steps] = now + (later @ coefficients[steps - 1][..., None])[..., 0]
    to_go = np.moveaxis(coefficients[:0:-1], 0, -2)  # [..., T, p]: at step t there are T - t steps to go
    expected = np.where(log.alive[..., None], features.expected[:, :-1], 0.0)
    return ActionValues(_predicted(taken, to_go), _predicted(expected, to_go))


def _summed(left: np.ndarray, right: np.ndarray, counts: np.ndarray | None) -> np.ndarray:
    """Sum over episodes and steps of left [N, T, p] times right [N, T, q], [..., p, q]."""
    if counts is None:
        return left.reshape(-1, left.shape[-1]).T @ right.reshape(-1, right.shape[-1])
    per_episode = left.transpose(0, 2, 1) @ right
    summed = np.asarray(counts, float) @ per_episode.reshape(len(per_episode), -1)
    return summed.reshape(*summed.shape[:-1], *per_episode.shape[1:])


def _predicted(features: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """features [N, T, p] times the coefficients of each step [..., T, p]: [..., N, T]."""
    by_step = features.transpose(1, 0, 2) @ coefficients[..., None]
    return np.moveaxis(by_step[..., 0], -1, -2)
