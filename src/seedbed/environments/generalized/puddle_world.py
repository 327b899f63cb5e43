"""Puddle World (Sutton 1996), as in RL-Library: the penalties of overlapping puddles add up."""

import math

from seedbed.compiled import compiled

LOW, HIGH = (0.0, 0.0), (1.0, 1.0)
ACTIONS = 4
VARIANTS = ("closed", "open")
"""Whether a point on the far walls is in the goal corner; RL-Library's rectangle is half open."""
STEP, GOAL, RADIUS, PENALTY = 0.05, 0.95, 0.1, 400.0
START = (0.2, 0.5)
NOISE_PER_STEP = 2


@compiled(inline=True)
def puddle_penalty(x, y):
    """Reward for standing in the puddles at (x, y): -400 per unit of depth, at most -40 per puddle.

    The puddles are all points within 0.1 of the segments (.1, .75)-(.45, .75) and (.45, .4)-(.45, .8).
    """
    beside = x - min(0.45, max(0.1, x))
    distance_1 = math.sqrt(beside * beside + (y - 0.75) * (y - 0.75))
    beside = y - min(0.8, max(0.4, y))
    distance_2 = math.sqrt(beside * beside + (x - 0.45) * (x - 0.45))
    return -PENALTY * (max(0.0, RADIUS - distance_1) + max(0.0, RADIUS - distance_2))


@compiled(inline=True)
def in_goal(x, y, variant):
    """Whether (x, y) lies in the goal corner."""
    inside = x >= GOAL and y >= GOAL
    return inside and (variant == 0 or (x < 1.0 and y < 1.0))


@compiled(inline=True)
def transition(x, y, action, noise_x, noise_y, variant):
    """One step of 0.05 along +x, -x, +y or -y (action 0 to 3), ``noise`` in steps per axis, clipped.

    Returns x, y, reward, terminated. Reward: -1, or 0 at the goal, plus the penalty at the new position.
    """
    if action == 0:
        x += STEP
    elif action == 1:
        x -= STEP
    elif action == 2:
        y += STEP
    else:
        y -= STEP
    x = min(1.0, max(0.0, x + STEP * noise_x))
    y = min(1.0, max(0.0, y + STEP * noise_y))
    terminated = in_goal(x, y, variant)
    return x, y, puddle_penalty(x, y) - (0.0 if terminated else 1.0), terminated


@compiled(inline=True)
def start(random, u, v):
    """First position; u, v uniform in [0, 1) where the start is random, which never lies in the goal."""
    if not random:
        return START
    return GOAL * u, GOAL * v
