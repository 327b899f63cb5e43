"""The generator inside compiled trials: splitmix64 (Steele, Lea and Flood 2014), one state per stream."""

import numpy as np

from seedbed.compiled import compiled

GAMMA = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
SHIFT_1, SHIFT_2, SHIFT_3, TO_53_BITS = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
UNIT = 1.0 / 9007199254740992.0

START, NOISE, AGENT = 0, 1, 2
"""The streams of a trial, as indices of its states: start states, transition noise, the agent's choices."""


@compiled(inline=True)
def uniform(states, stream):
    """The next number in [0, 1), 53 bits, of ``states[stream]`` (uint64), which moves on."""
    states[stream] += GAMMA
    z = states[stream]
    z = (z ^ (z >> SHIFT_1)) * MIX_1
    z = (z ^ (z >> SHIFT_2)) * MIX_2
    return np.float64((z ^ (z >> SHIFT_3)) >> TO_53_BITS) * UNIT
