"""Agents and functions of somebody else, for tests."""

import random

import numpy as np


def toward(observation):
    """Push the pole's cart to the side it leans to."""
    return int(observation[2] > 0)


def swing(observation):
    """Push the car on where it moves."""
    return np.array([np.sign(observation[1])], np.float32)


def drawn(observation, mask, uniform):
    """One of the allowed actions."""
    allowed = np.nonzero(mask)[0]
    return allowed[int(uniform * len(allowed))]


def two(observation):
    return np.array([0, 1])


def half(observation):
    return 0.5


def nan(observation):
    return np.array([np.nan])


def far(observation):
    return 7


def nothing(observation):
    return None


def failing(observation):
    raise KeyError("weights")


CALLS = []


def counting(observation):
    CALLS.append(1)
    return len(CALLS) % 2


NOT_A_FUNCTION = 3


class LinearSarsa:
    """Semi-gradient Sarsa(0) over a linear function, epsilon-greedy; draws from global generators too."""

    def __init__(self, spec, seed, rate=0.01, epsilon=0.1):
        self.rate, self.epsilon, self.actions = rate, epsilon, spec.actions
        size = int(np.prod(spec.observation_shape)) + 1
        self.weights = 0.01 * np.random.standard_normal((spec.actions, size))  # noqa: NPY002
        self.steps = np.array(0)

    def _values(self, observation):
        return self.weights @ np.append(np.clip(observation.ravel(), -10, 10), 1.0)

    def act(self, observation, mask, uniform):
        values = self._values(observation)
        if mask is not None:
            values = np.where(mask, values, -np.inf)
        if uniform is None or uniform >= self.epsilon:
            return int(values.argmax())
        allowed = np.nonzero(np.isfinite(values))[0]
        return int(allowed[int(uniform / self.epsilon * len(allowed))])

    def learn(self, observation, action, reward, terminated, truncated, next_observation):
        target = reward + (0 if terminated else 0.9 * self._values(next_observation).max())
        error = np.clip(target - self._values(observation)[action], -1, 1)
        noise = 1 + 0.01 * random.random()
        self.weights[action] += (
            noise * self.rate * error * np.append(np.clip(observation.ravel(), -10, 10), 1)
        )
        self.steps = self.steps + 1

    def state(self):
        return {"weights": self.weights, "steps": self.steps}

    def restore(self, state):
        self.weights, self.steps = state["weights"], state["steps"]


class Forgetful(LinearSarsa):
    restore = None
    state = None


class Witness:
    """Writes down what it is told to learn."""

    modes = ("greedy",)
    told = []  # noqa: RUF012

    def __init__(self, spec, seed):
        self.seed = seed

    def act(self, observation, mask, uniform):
        return 0

    def learn(self, *told):
        Witness.told.append((self.seed, *told))

    def state(self):
        return {}

    def restore(self, state):
        pass


class Diverging(Witness):
    def learn(self, *told):
        self.seed = np.nan

    def state(self):
        return {"weights": np.array([self.seed], float)}


class Pusher(Witness):
    """An action that is an array."""

    modes = ("sampled",)
    uniforms = 2

    def act(self, observation, mask, uniform):
        return np.array([uniform[0] - uniform[1]], np.float32)


class OutOfRange(Witness):
    def act(self, observation, mask, uniform):
        return 99
