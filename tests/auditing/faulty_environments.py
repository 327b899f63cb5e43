"""A clean environment, and others that differ from it by one planted fault each.

Most faults begin in the third step, which is later than Gymnasium's checker looks.
"""

import multiprocessing
import time

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit

LATE = 3


class Walk(gymnasium.Env):
    """A walk that chance pushes, until it is 2 away from the middle, its success, or 30 steps are over."""

    observation_space = spaces.Box(-4, 4, (2,), np.float32)
    action_space = spaces.Discrete(3)

    def __init__(self):
        self.place, self.t = 0.0, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.t = self.np_random.uniform(-1, 1), 0
        return self.seen(), {}

    def push(self):
        return self.np_random.uniform(-0.5, 0.5)

    def seen(self):
        return np.array([self.place, self.t / 30], np.float32)

    def step(self, action):
        self.t += 1
        self.place += 0.3 * (action - 1) + self.push()
        away, late = bool(abs(self.place) > 2), self.t >= 30
        return self.seen(), -abs(self.place), away, late, {"away": away}


class RaisesForAnAction(Walk):
    """One action of its space is none."""

    def step(self, action):
        return super().step([0, 1][action])


class RewardThatIsNoNumber(Walk):
    """0 / 0."""

    def step(self, action):
        seen, reward, *rest = super().step(action)
        return seen, np.nan if self.t == LATE else reward, *rest


class OutsideItsSpace(Walk):
    """Its space says less than it returns, from the third step on."""

    observation_space = spaces.Box(-4, LATE / 40, (2,), np.float32)

    def seen(self):
        return np.minimum(super().seen(), LATE / 40 if self.t < LATE else 1)


class WholeNumbersAsFlags(Walk):
    """0 and 1 in place of False and True."""

    def step(self, action):
        seen, reward, terminated, *rest = super().step(action)
        return seen, reward, int(terminated), *rest


class SharedBuffer(Walk):
    """Always returns the same array."""

    def __init__(self):
        super().__init__()
        self.buffer = np.zeros(2, np.float32)

    def seen(self):
        self.buffer[:] = super().seen()
        return self.buffer


class RingOfBuffers(Walk):
    """Returns one of eight arrays in turn: Gymnasium's checker looks at four calls."""

    def __init__(self):
        super().__init__()
        self.buffers, self.calls = np.zeros((8, 2), np.float32), 0

    def seen(self):
        self.calls += 1
        self.buffers[self.calls % 8] = super().seen()
        return self.buffers[self.calls % 8]


class ChangesItsAction(Walk):
    """Clips the array that it is given."""

    action_space = spaces.Box(-1, 1, (1,), np.float32)

    def step(self, action):
        if self.t >= LATE:
            action *= 0.5
        return super().step(1 + float(action[0]))


class GeneratorOfItsOwn(Walk):
    """Seeds a generator, but not Gymnasium's."""

    def reset(self, *, seed=None, options=None):
        if seed is not None or not hasattr(self, "generator"):
            self.generator = np.random.default_rng(seed)
        self.place, self.t = self.generator.uniform(-1, 1), 0
        return self.seen(), {}

    def push(self):
        return self.generator.uniform(-0.5, 0.5)


class IgnoresItsSeed(Walk):
    """Starts by chance, whatever the seed."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = np.random.default_rng().uniform(-1, 1)
        return self.seen(), {}


class ReadsTheClock(Walk):
    """Time in its rewards."""

    def step(self, action):
        seen, reward, *rest = super().step(action)
        return seen, reward + time.perf_counter_ns() * (self.t >= LATE), *rest


class DrawsGlobally(Walk):
    """numpy's global generator."""

    def push(self):
        return np.random.uniform(-0.5, 0.5) if self.t >= LATE else super().push()  # noqa: NPY002


class SeedsGlobally(Walk):
    """Seeds numpy's global generator for everybody."""

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            np.random.seed(seed % 2**32)  # noqa: NPY002
        return super().reset(seed=seed)


class Leaks(Walk):
    """What happened in earlier episodes makes it heavier."""

    weight = 1.0

    def push(self):
        self.weight += 0.01 * (self.t >= LATE)
        return super().push() / (self.weight if self.t >= LATE else 1)


class LowBits(Walk):
    """Uses 16 bits of its seed."""

    def reset(self, *, seed=None, options=None):
        return super().reset(seed=None if seed is None else seed % 2**16)


class MergedFlags(gymnasium.Wrapper):
    """A step limit that looks like an end of the episode's own."""

    def step(self, action):
        seen, reward, terminated, truncated, info = self.env.step(action)
        return seen, reward, terminated or truncated, False, info


def merged_flags():
    """A walk of at most 8 steps, seen through ``MergedFlags``."""
    return MergedFlags(TimeLimit(Walk(), 8))


class HidesTheLimit(gymnasium.Wrapper):
    """Goes on beyond the step limit."""

    def step(self, action):
        seen, reward, _, _, info = self.env.step(action)
        return seen, reward, False, False, info


def hidden_limit():
    """A walk that was to be cut after 8 steps."""
    return HidesTheLimit(TimeLimit(Walk(), 8))


class SharedWorld(Walk):
    """All instances of a process move the same thing."""

    world = np.zeros(1)

    @property
    def place(self):
        return self.world[0]

    @place.setter
    def place(self, value):
        self.world[0] = value


class RankInItsSeed(Walk):
    """Adds the number of its process to its seed, as many training scripts do."""

    def reset(self, *, seed=None, options=None):
        rank = sum(multiprocessing.current_process()._identity)
        return super().reset(seed=None if seed is None else seed + rank)


class SeedsAnew(Walk):
    """A reset without a seed takes one from the operating system."""

    def reset(self, *, seed=None, options=None):
        return super().reset(seed=np.random.SeedSequence().entropy % 2**63 if seed is None else seed)


class OrderOfASet(Walk):
    """Winds blow in the order of a set."""

    winds = tuple({"north", "east", "south", "west", "calm", "storm", "breeze", "gale"})

    def push(self):
        return super().push() + 0.02 * len(self.winds[self.t % 8])


class Certain(Walk):
    """Nothing is left to chance."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0.5
        return self.seen(), {}

    def push(self):
        return 0.05


class RarelyAnother(LowBits):
    """One start in sixteen is another, by 16 bits of the seed."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0.5 if self.np_random.random() < 15 / 16 else -0.5
        return self.seen(), {}

    def push(self):
        return 0.05


class HalfShort(Walk):
    """Half of all episodes take 3 steps and fail, half take 30 and succeed."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.lasts = 0, 30 if self.np_random.random() < 0.5 else 3
        return self.seen(), {}

    def step(self, action):
        self.t += 1
        ended = self.t >= self.lasts
        return self.seen(), 1.0, ended, False, {"away": ended and self.lasts == 30}
