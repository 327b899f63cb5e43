"""The three domains behind one compiled face, for kernels and dynamics alike."""

from types import ModuleType
from typing import NamedTuple

import numpy as np

from seedbed.compiled import compiled
from seedbed.environments.generalized import acrobot, mountain_car, puddle_world
from seedbed.environments.generalized.random_numbers import NOISE, START, uniform
from seedbed.environments.generalized.transforms import observed

DOMAINS: dict[str, ModuleType] = {
    "mountain_car": mountain_car,
    "acrobot": acrobot,
    "puddle_world": puddle_world,
}
"""Each has LOW and HIGH (its variables' ranges), ACTIONS, VARIANTS (the first is the default) and
NOISE_PER_STEP. The order is part of compiled code: append only."""
MOUNTAIN_CAR, ACROBOT, PUDDLE_WORLD = range(3)

mountain_car_transition, mountain_car_start = mountain_car.transition, mountain_car.start
acrobot_transition, acrobot_start = acrobot.transition, acrobot.start
puddle_world_transition, puddle_world_start = puddle_world.transition, puddle_world.start


class World(NamedTuple):
    """An environment as compiled code takes it; arrays have one entry per variable."""

    domain: int
    """index of DOMAINS"""
    variant: int
    """index of the domain's VARIANTS"""
    noise: float
    """half width of the uniform noise, as a fraction of what one action does"""
    random_start: bool
    centre: np.ndarray
    per_half_width: np.ndarray
    curve: np.ndarray
    """indices of CURVES, int64"""
    slope: np.ndarray
    shift: np.ndarray


@compiled(inline=True)
def transition(domain, variant, a, b, c, d, action, u, v):
    """One step from state (a, b, c, d), unused variables 0, under noise (u, v).

    Returns the four variables, reward, terminated. Noise is that of the domain's own ``transition``.
    """
    if domain == MOUNTAIN_CAR:
        a, b, reward, terminated = mountain_car_transition(a, b, action, u, variant)
    elif domain == ACROBOT:
        a, b, c, d, reward, terminated = acrobot_transition(a, b, c, d, action, u, variant)
    else:
        a, b, reward, terminated = puddle_world_transition(a, b, action, u, v, variant)
    return a, b, c, d, reward, terminated


@compiled(inline=True)
def start(domain, random, u1, u2, u3, u4):
    """First state, four variables, from numbers in [0, 1)."""
    c, d = 0.0, 0.0
    if domain == MOUNTAIN_CAR:
        a, b = mountain_car_start(random, u1, u2)
    elif domain == ACROBOT:
        a, b, c, d = acrobot_start(random, u1, u2, u3, u4)
    else:
        a, b = puddle_world_start(random, u1, u2)
    return a, b, c, d


@compiled
def begin_episode(world, states, state):
    """Write an episode's first state into ``state`` [4]; a random one draws four numbers from START."""
    u1 = u2 = u3 = u4 = 0.5
    if world.random_start:
        u1, u2 = uniform(states, START), uniform(states, START)
        u3, u4 = uniform(states, START), uniform(states, START)
    state[0], state[1], state[2], state[3] = start(world.domain, world.random_start, u1, u2, u3, u4)


@compiled(inline=True)
def advance(world, states, state, action):
    """Move ``state`` [4] by one step; noise, if there is any, takes two numbers from NOISE.

    Returns reward, terminated.
    """
    u = v = 0.0
    if world.noise > 0.0:
        u = world.noise * (2.0 * uniform(states, NOISE) - 1.0)
        v = world.noise * (2.0 * uniform(states, NOISE) - 1.0)
    state[0], state[1], state[2], state[3], reward, terminated = transition(
        world.domain, world.variant, state[0], state[1], state[2], state[3], action, u, v
    )
    return reward, terminated


@compiled(inline=True)
def see(world, state, observation):
    """Write what is seen of ``state`` [4] into ``observation`` [variables]."""
    for i in range(world.centre.size):
        observation[i] = observed(
            state[i], world.centre[i], world.per_half_width[i], world.curve[i], world.slope[i], world.shift[i]
        )
