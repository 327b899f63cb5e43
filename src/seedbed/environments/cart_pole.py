"""CartPole-v1 (Barto, Sutton and Anderson 1983) as pure dynamics, equal to Gymnasium's to the bit."""

import math
from typing import NamedTuple

import numpy as np

from seedbed.environments.base import Spec, Transition

GRAVITY = 9.8
CART_MASS = 1.0
POLE_MASS = 0.1
TOTAL_MASS = POLE_MASS + CART_MASS
HALF_LENGTH = 0.5
POLE_MOMENT = POLE_MASS * HALF_LENGTH
FORCE = 10.0
TIME_STEP = 0.02
ANGLE_LIMIT = 12 * 2 * math.pi / 360
POSITION_LIMIT = 2.4
START = 0.05


class CartPoleState(NamedTuple):
    """Leading shape [...], float64: the Euler step's four variables."""

    position: np.ndarray
    """metres"""
    velocity: np.ndarray
    """metres per second"""
    angle: np.ndarray
    """radians from upright"""
    angular_velocity: np.ndarray
    """radians per second"""


class CartPole:
    """A pole on a cart: push left (0) or right (1), +1 per step until it falls or 500 steps are over.

    Random numbers are four per episode: the state at its start, uniform in [-0.05, 0.05].
    """

    def __init__(self):
        high = np.array([2 * POSITION_LIMIT, np.inf, 2 * ANGLE_LIMIT, np.inf], np.float32)
        self.spec = Spec(-high, high, actions=2, horizon=500, initial_noise=4, step_noise=0)

    def draw(self, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """The start of one episode [4]; its steps take no noise, [500, 0]."""
        return generator.uniform(-START, START, 4), np.empty((self.spec.horizon, 0))

    def initial(self, noise: np.ndarray) -> CartPoleState:
        """First state, from noise [..., 4]."""
        return CartPoleState(*(noise[..., i].copy() for i in range(4)))

    def observe(self, state: CartPoleState) -> np.ndarray:
        """The state itself, [..., 4] float32."""
        return np.stack(state, -1).astype(np.float32)

    def action_mask(self, state: CartPoleState) -> np.ndarray:
        """Both actions always, [..., 2] bool."""
        return np.ones((*np.shape(state.angle), 2), bool)

    def limit(self, state: CartPoleState) -> np.ndarray:
        """500 steps, [...] int64."""
        return np.full(np.shape(state.angle), self.spec.horizon)

    def step(self, state: CartPoleState, action: np.ndarray, noise: np.ndarray) -> Transition:
        """One Euler step of 0.02 s under a push of 10 N; operations in the order of Gymnasium's."""
        x, x_dot, theta, theta_dot = state
        force = np.where(np.asarray(action) == 1, FORCE, -FORCE)
        cosine, sine = np.cos(theta), np.sin(theta)
        push = (force + POLE_MOMENT * np.square(theta_dot) * sine) / TOTAL_MASS
        angular = (GRAVITY * sine - cosine * push) / (
            HALF_LENGTH * (4.0 / 3.0 - POLE_MASS * np.square(cosine) / TOTAL_MASS)
        )
        linear = push - POLE_MOMENT * angular * cosine / TOTAL_MASS
        after = CartPoleState(
            x + TIME_STEP * x_dot,
            x_dot + TIME_STEP * linear,
            theta + TIME_STEP * theta_dot,
            theta_dot + TIME_STEP * angular,
        )
        fallen = (np.abs(after.position) > POSITION_LIMIT) | (np.abs(after.angle) > ANGLE_LIMIT)
        return Transition(after, np.ones(np.shape(fallen)), fallen, {})

    def content_checksums(self) -> dict[str, str]:
        """Nothing is fixed by a draw."""
        return {}
