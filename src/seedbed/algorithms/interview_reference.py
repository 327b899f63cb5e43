"""What the fixed mock-interview policies share: masks, blueprint distances and a belief about ability."""

from typing import NamedTuple

import numpy as np

from seedbed.algorithms.base import StatelessPolicy
from seedbed.environments.interview import MockInterview
from seedbed.environments.interview_content import Constants

ABILITY_GRID = np.linspace(-4, 6, 101)
"""Values of the initial ability that the belief distinguishes."""


class InterviewPolicy(StatelessPolicy):
    """A fixed rule of the mock interview; random ones pick among ``choices`` equally likely alternatives.

    Raises:
        ValueError: the environment is not the mock interview.
    """

    choices = 1

    def __init__(self, seeds, dynamics, options=None):
        if not isinstance(dynamics, MockInterview):
            raise ValueError(
                f"{type(self).__name__} acts in the mock interview only, not in {type(dynamics).__name__}."
            )
        super().__init__(seeds, dynamics, options)

    def probabilities(self, observation, mask, memory, first) -> np.ndarray:
        """One over the number of choices for each; see ``Policy.probabilities``."""
        result = np.zeros((*first.shape, self.dynamics.spec.actions))
        for choice in range(self.choices):
            uniforms = np.full((*first.shape, 1), (choice + 0.5) / self.choices)
            action, _ = self.act(observation, mask, uniforms, memory, first)
            result[(*np.indices(first.shape), action)] += 1 / self.choices
        return result


def at_outcome(values: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    """values [..., K] at outcome [...]: [...]."""
    return np.take_along_axis(values, outcome[..., None], -1)[..., 0]


def allowed_difficulties(mask: np.ndarray | None, outcome: np.ndarray) -> np.ndarray:
    """Which difficulties may be asked on an outcome [...]: [..., 3] bool; all without a mask."""
    if mask is None:
        return np.ones((*outcome.shape, 3), bool)
    return np.take_along_axis(mask, 3 * outcome[..., None] + np.arange(3), -1)


def nearest_difficulty(wanted: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """The allowed difficulty [..., 3] nearest to the wanted one [...], the easier of two."""
    distance = np.abs(np.arange(3) - wanted[..., None])
    return np.argmin(np.where(allowed, distance, 9), -1)


def blueprint_distances(asked: np.ndarray, blueprint: tuple[float, float, float]) -> np.ndarray:
    """L1 distance to the wanted shares after asking each difficulty once more; asked [..., 3]: [..., 3]."""
    after = asked[..., None, :] + np.eye(3)
    shares = after / after.sum(-1, keepdims=True)
    return np.abs(shares - np.array(blueprint)).sum(-1)


class Belief(NamedTuple):
    """What the answers so far say about the ability at the start."""

    log_weight: np.ndarray
    """[..., 101] float64, unnormalised log posterior on ``ABILITY_GRID``"""
    correct: np.ndarray
    """[...] int64, right answers so far"""


class AbilityFilter:
    """Exact Bayesian filter of the initial ability; ability now = initial + gain x right answers.

    A difficulty's response curve is the mean of the three-parameter logistic over its distribution of items.
    """

    def __init__(self, constants: Constants):
        self.curves = response_curves(constants)
        """[right answers, difficulty, ability]: probability of a right answer"""
        self._log = np.log(np.stack([1 - self.curves, self.curves], 2))
        mean, deviation = constants.initial_ability
        self._prior = -0.5 * ((ABILITY_GRID - mean) / max(deviation, 1e-9)) ** 2

    def update(self, belief: Belief | None, answer: np.ndarray, first: np.ndarray) -> Belief:
        """Take in the last step's answer [...] as the state codes it; start anew where ``first``."""
        if belief is None:
            belief = Belief(np.zeros((*answer.shape, len(ABILITY_GRID))), np.zeros(answer.shape, np.int64))
        log_weight = np.where(first[..., None], self._prior, belief.log_weight)
        before = np.where(first, 0, np.minimum(belief.correct, len(self.curves) - 1))
        answered = (answer >= 0) & ~first
        difficulty, correct = np.divmod(np.where(answered, answer, 0), 2)
        log_weight = log_weight + np.where(answered[..., None], self._log[before, difficulty, correct], 0)
        return Belief(log_weight, before + correct)

    def predict(self, belief: Belief) -> np.ndarray:
        """Posterior mean probability of a right answer for each difficulty, [..., 3]."""
        weight = np.exp(belief.log_weight - belief.log_weight.max(-1, keepdims=True))
        curves = self.curves[np.minimum(belief.correct, len(self.curves) - 1)]
        return (curves * weight[..., None, :]).sum(-1) / weight.sum(-1, keepdims=True)


def response_curves(constants: Constants) -> np.ndarray:
    """Mean of the three-parameter logistic over the items of each difficulty.

    Returns:
        [horizon + 1, 3, 101] probability of a right answer after n right answers from each initial ability,
        by Gauss-Legendre quadrature over slope and location.
    """
    node, weight = np.polynomial.legendre.leggauss(8)
    guessing = sum(constants.item_guessing) / 2
    growth = constants.ability_gain * np.arange(constants.horizon + 1)
    ability = growth[:, None] + ABILITY_GRID
    curves = np.zeros((len(growth), 3, len(ABILITY_GRID)))
    for difficulty in range(3):
        (slope, slope_weight), (location, location_weight) = (
            ((low + high) / 2 + (high - low) / 2 * node, weight / 2)
            for low, high in (
                constants.item_discrimination[difficulty],
                constants.item_difficulty[difficulty],
            )
        )
        for a, wa in zip(slope, slope_weight, strict=True):
            for b, wb in zip(location, location_weight, strict=True):
                curves[:, difficulty] += wa * wb / (1 + np.exp(-a * (ability - b)))
    return guessing + (1 - guessing) * curves
