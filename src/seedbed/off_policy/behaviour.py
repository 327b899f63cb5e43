"""Behaviour data: episodes of a policy with the probability of each action as it was when it was taken."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from seedbed.algorithms.epsilon_soft import EpsilonSoftPolicy, epsilon_soft
from seedbed.environments.base import Dynamics
from seedbed.environments.lanes import DynamicsLanes
from seedbed.registry import ENVIRONMENTS, make
from seedbed.seeding import ACTIONS_OF, Purpose, stream

if TYPE_CHECKING:
    from seedbed.algorithms.base import Policy
    from seedbed.study import FixedPolicy, OffPolicyPlan


@dataclass(frozen=True)
class BehaviourLog:
    """N logged episodes of at most T steps; what is after an episode's end is 0, masks True.

    Observations and masks are those before each step, and one more: after the last step.
    """

    observation: np.ndarray
    """[N, T + 1, d] float32"""
    mask: np.ndarray
    """[N, T + 1, actions] bool"""
    action: np.ndarray
    """[N, T] int64"""
    reward: np.ndarray
    """[N, T] float64"""
    distribution: np.ndarray
    """[N, T, actions]: the behaviour policy's probability of every action, after masking"""
    length: np.ndarray
    """[N] int64"""
    terminated: np.ndarray
    """[N] bool: the episode reached an end of its own, so nothing more could be earned"""
    facts: dict[str, np.ndarray] = field(default_factory=dict)
    """name -> [N, T]"""

    @property
    def probability(self) -> np.ndarray:
        """Of the action taken, [N, T]; 1 after the end."""
        taken = np.take_along_axis(self.distribution, self.action[..., None], -1)[..., 0]
        return np.where(np.arange(taken.shape[1]) < self.length[:, None], taken, 1.0)


def log_behaviour(policy: "Policy", dynamics: Dynamics, episodes: int) -> list[BehaviourLog]:
    """Let a policy act and log what evaluating another one needs; one log per seed of the policy.

    Args:
        policy: the behaviour policy, stacked over the seeds of the data sets; it sees observations.
        dynamics: where it acts; actions are discrete.
        episodes: number of episodes per data set.
    """
    purpose = Purpose.BEHAVIOUR
    running = DynamicsLanes(dynamics, purpose, policy.seeds, episodes, episodes)  # a lane runs one episode
    spec, shape = dynamics.spec, (len(policy.seeds), episodes)
    tapes = np.zeros((*shape, spec.horizon, policy.uniforms))
    if policy.uniforms:
        for row, seed in enumerate(policy.seeds):
            for episode in range(episodes):
                generator = stream(ACTIONS_OF[purpose], seed, episode)
                tapes[row, episode] = generator.random(tapes.shape[2:])
    horizon = spec.horizon
    observation = np.zeros((*shape, horizon + 1, *spec.observation_shape), np.float32)
    mask = np.ones((*shape, horizon + 1, spec.actions), bool)
    action, reward = np.zeros((*shape, horizon), np.int64), np.zeros((*shape, horizon))
    distribution = np.zeros((*shape, horizon, spec.actions))
    length, terminated = np.zeros(shape, np.int64), np.zeros(shape, bool)
    facts = {fact.name: np.zeros((*shape, horizon), fact.dtype) for fact in spec.facts}
    observation[..., 0, :] = running.observation
    if running.mask is not None:
        mask[..., 0, :] = running.mask
    memory = None
    for t in range(horizon):
        rows = running.active.copy()
        if not rows.any():
            break
        given = running.observation, running.mask
        distribution[rows, t] = policy.probabilities(*given, memory, running.first)[rows]
        chosen, memory = policy.act(*given, tapes[:, :, t], memory, running.first)
        step = running.step(chosen)
        action[rows, t], reward[rows, t] = chosen[rows], step.reward[rows]
        observation[rows, t + 1] = step.final_observation[rows]
        if step.final_mask is not None:
            mask[rows, t + 1] = step.final_mask[rows]
        length[rows] = step.t[rows]
        terminated[rows] = step.terminated[rows]
        for name, column in facts.items():
            column[rows, t] = step.facts[name][rows]
    return [
        BehaviourLog(
            observation[row],
            mask[row],
            action[row],
            reward[row],
            distribution[row],
            length[row],
            terminated[row],
            {name: column[row] for name, column in facts.items()},
        )
        for row in range(len(policy.seeds))
    ]


def target_distribution(log: BehaviourLog, policy: "Policy") -> np.ndarray:
    """What a target policy of one seed would have done at each logged observation, [N, T + 1, actions].

    Its memory follows the logged observations.
    """
    episodes, points = log.mask.shape[:2]
    found, memory = np.zeros(log.mask.shape), None
    uniforms = np.zeros((1, episodes, policy.uniforms))
    for t in range(points):
        first = np.full((1, episodes), t == 0)
        given = log.observation[None, :, t], log.mask[None, :, t]
        found[:, t] = policy.probabilities(*given, memory, first)[0]
        _, memory = policy.act(*given, uniforms, memory, first)
    return found


def make_dynamics(plan: "OffPolicyPlan") -> Dynamics:
    """The plan's environment."""
    return make(plan.environment.environment, plan.environment.arguments, ENVIRONMENTS, "environment")


def make_policy(entry: "FixedPolicy", dynamics: Dynamics, seeds: list[int]) -> EpsilonSoftPolicy:
    """One of the plan's policies."""
    return epsilon_soft(entry.algorithm, entry.arguments, entry.epsilon, dynamics, seeds)


def data_sets(plan: "OffPolicyPlan", dynamics: Dynamics, seeds: list[int]) -> list[BehaviourLog]:
    """The plan's data sets of those seeds; seed 0 is the one that is logged."""
    return log_behaviour(make_policy(plan.behaviour, dynamics, seeds), dynamics, plan.episodes)
