"""Acrobot (Sutton 1996; Sutton and Barto 1998), in the three published variants of its dynamics."""

import math

from seedbed.compiled import compiled

PI = math.pi
LOW, HIGH = (-PI, -PI, -4 * PI, -9 * PI), (PI, PI, 4 * PI, 9 * PI)
ACTIONS = 3
VARIANTS = ("book", "nips", "rllib")
"""``book``: Sutton and Barto (1998); ``nips``: Sutton (1996), without the centripetal term; ``rllib``:
RL-Library, with the opposite sign of one term and joints that stop at half a turn."""
GRAVITY, TIME_STEP, SUBSTEPS = 9.8, 0.05, 4
START_SPREAD = 1.0
NOISE_PER_STEP = 1


@compiled(inline=True)
def transition(angle_1, angle_2, rate_1, rate_2, action, noise, variant):
    """Four Euler steps of 0.05 s under torque ``action - 1 + noise``, fewer if the tip rises above 1.

    Masses and lengths are 1, centres of mass at 0.5, moments of inertia 1. Rates move first and angles take
    the new rates. Returns both angles, both rates, reward, terminated; angles in [-pi, pi).
    """
    torque = action - 1.0 + noise
    sine_1, cosine_1 = math.sin(angle_1), math.cos(angle_1)
    sine_2, cosine_2 = math.sin(angle_2), math.cos(angle_2)
    terminated = False
    for _ in range(SUBSTEPS):
        sine_12 = sine_1 * cosine_2 + cosine_1 * sine_2
        d1 = 3.5 + cosine_2
        d2 = 1.25 + 0.5 * cosine_2
        gravity_2 = 0.5 * GRAVITY * sine_12
        coriolis = rate_1 * rate_2 * sine_2
        if variant == 2:
            coriolis = -coriolis
        gravity_1 = -0.5 * rate_2 * rate_2 * sine_2 - coriolis + 1.5 * GRAVITY * sine_1 + gravity_2
        ratio = d2 / d1
        force = torque + ratio * gravity_1 - gravity_2
        if variant != 1:
            force -= 0.5 * rate_1 * rate_1 * sine_2
        acceleration_2 = force / (1.25 - d2 * ratio)
        acceleration_1 = -(d2 * acceleration_2 + gravity_1) / d1
        rate_1 += TIME_STEP * acceleration_1
        rate_2 += TIME_STEP * acceleration_2
        angle_1 += TIME_STEP * rate_1
        angle_2 += TIME_STEP * rate_2
        sine_1, cosine_1 = math.sin(angle_1), math.cos(angle_1)
        sine_2, cosine_2 = math.sin(angle_2), math.cos(angle_2)
        if -(cosine_1 + cosine_1 * cosine_2 - sine_1 * sine_2) > 1.0:
            terminated = True
            break
    rate_1 = min(4 * PI, max(-4 * PI, rate_1))
    rate_2 = min(9 * PI, max(-9 * PI, rate_2))
    if variant == 2:
        angle_1, rate_1 = stopped(angle_1, rate_1)
        angle_2, rate_2 = stopped(angle_2, rate_2)
    else:
        angle_1 -= 2 * PI * math.floor((angle_1 + PI) / (2 * PI))
        angle_2 -= 2 * PI * math.floor((angle_2 + PI) / (2 * PI))
    return angle_1, angle_2, rate_1, rate_2, 0.0 if terminated else -1.0, terminated


@compiled(inline=True)
def stopped(angle, rate):
    """A joint that cannot turn beyond half a turn."""
    if angle > PI:
        return PI, 0.0
    if angle < -PI:
        return -PI, 0.0
    return angle, rate


@compiled(inline=True)
def start(random, u1, u2, u3, u4):
    """First angles and rates; u1 to u4 uniform in [0, 1) where the start is random."""
    if not random:
        return 0.0, 0.0, 0.0, 0.0
    return u1 - 0.5, u2 - 0.5, u3 - 0.5, u4 - 0.5
