"""Choosing one of many candidates by scores on common tasks: by the mean, or by Copeland's vote.

Every task is a voter. Copeland (1951): a candidate beats another if more voters score it above than below;
its score is wins minus losses. Only the order of scores within a task counts, so that tasks with large scores
do not decide alone.
"""

from dataclasses import dataclass

import numpy as np

_CELLS_PER_CHUNK = 2**22


@dataclass(frozen=True)
class CopelandResult:
    """wins, losses, ties: [candidates] pairwise contests; winners: all with the top score, ascending.

    scores [candidates] is wins - losses; chosen is the winner with the best mean, the first of those;
    condorcet is the candidate that beats all others, None where there is none.
    """

    wins: np.ndarray
    losses: np.ndarray
    ties: np.ndarray
    winners: tuple[int, ...]
    chosen: int
    condorcet: int | None

    @property
    def scores(self) -> np.ndarray:
        return self.wins - self.losses


@dataclass(frozen=True)
class BestMeanResult:
    """means [candidates]; winners: all with the top mean, ascending; chosen is the first."""

    means: np.ndarray
    winners: tuple[int, ...]
    chosen: int


def as_scores(scores) -> np.ndarray:
    """Scores [voters, candidates] as float64, higher is better.

    -inf is a score, below all others; a missing one is not.

    Raises:
        ValueError: another shape, no voter or candidate, or a NaN.
    """
    scores = np.asarray(scores, float)
    if scores.ndim != 2 or 0 in scores.shape:
        raise ValueError(f"expected scores [voters, candidates], got an array of shape {scores.shape}")
    if np.isnan(scores).any():
        voter, candidate = np.argwhere(np.isnan(scores))[0]
        raise ValueError(f"candidate {candidate} has no score from voter {voter}; all need one from each")
    return scores


def pairwise_wins(scores) -> np.ndarray:
    """[i, j]: voters of scores [voters, candidates] that score i above j."""
    scores = as_scores(scores)
    candidates = scores.shape[1]
    counts = np.zeros((candidates, candidates), np.int32)
    step = max(1, _CELLS_PER_CHUNK // candidates)
    for start in range(0, candidates, step):
        rows = slice(start, start + step)
        for voter in scores:
            counts[rows] += voter[rows, None] > voter[None, :]
    return counts


def copeland(scores) -> CopelandResult:
    """Copeland's vote on scores [voters, candidates]; ValueError as ``as_scores``."""
    scores = as_scores(scores)
    above = pairwise_wins(scores)
    wins, losses = (above > above.T).sum(1), (above < above.T).sum(1)
    balance, candidates = wins - losses, scores.shape[1]
    winners = np.flatnonzero(balance == balance.max())
    chosen = int(winners[np.argmax(scores.mean(0)[winners])])
    condorcet = int(winners[0]) if wins[winners[0]] == candidates - 1 else None
    ties = candidates - 1 - wins - losses
    return CopelandResult(wins, losses, ties, tuple(winners.tolist()), chosen, condorcet)


def best_mean(scores) -> BestMeanResult:
    """The best mean of scores [voters, candidates]; ValueError as ``as_scores``."""
    means = as_scores(scores).mean(0)
    winners = np.flatnonzero(means == means.max())
    return BestMeanResult(means, tuple(winners.tolist()), int(winners[0]))
