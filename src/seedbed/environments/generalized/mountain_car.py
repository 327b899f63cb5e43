"""Mountain Car (Moore 1990; Sutton 1996), as Whiteson, Tanner, Taylor and Stone (2011) use it."""

import math

from seedbed.compiled import compiled

LOW, HIGH = (-1.2, -0.07), (0.6, 0.07)
ACTIONS = 3
VARIANTS = ("zero_at_goal", "minus_one_at_goal")
"""Reward of the step that reaches the goal: 0 as in RL-Library, or -1 as in Sutton (1996)."""
START = (-0.5, 0.0)
START_SPREAD = (0.25, 0.025)
"""Widths of the uniform distributions around START that a random start is drawn from."""
GOAL = 0.5
NOISE_PER_STEP = 1


@compiled(inline=True)
def transition(position, velocity, action, noise, variant):
    """One step: push left, not at all or right (action 0, 1, 2), ``noise`` in pushes.

    Returns position, velocity, reward, terminated. The slope is that of the old position, the new position
    takes the new velocity, and the left wall stops the car.
    """
    velocity += 0.001 * (action - 1) + 0.001 * noise - 0.0025 * math.cos(3.0 * position)
    velocity = min(0.07, max(-0.07, velocity))
    position = min(0.6, max(-1.2, position + velocity))
    if position == -1.2 and velocity < 0.0:
        velocity = 0.0
    terminated = position >= GOAL
    return position, velocity, 0.0 if terminated and variant == 0 else -1.0, terminated


@compiled(inline=True)
def start(random, u, v):
    """First position and velocity; u, v uniform in [0, 1) where the start is random."""
    if not random:
        return START
    return START[0] + START_SPREAD[0] * (u - 0.5), START[1] + START_SPREAD[1] * (v - 0.5)
