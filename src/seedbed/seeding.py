"""The tree of random streams: (purpose, seed, episode) -> generator.

Every random number of a study comes from one of these streams, so no stream depends on how work is split
over lanes, blocks or jobs, and global generators are never touched.
"""

from collections.abc import Iterator
from enum import IntEnum

import numpy as np


class Purpose(IntEnum):
    """What a stream is for. Append only: a number, once used, keeps its meaning."""

    TRAINING = 1
    """Episodes an algorithm learns from."""
    TUNING = 2
    """Episodes on which hyper-parameters are compared."""
    EVALUATION = 3
    """Episodes behind learning curves."""
    TEST = 4
    """Episodes behind the final tables."""
    INITIALISATION = 5
    """Network parameters."""
    EXPLORATION = 6
    """Actions while learning."""
    MINIBATCHES = 7
    """Order of samples within an update."""
    REPLAY = 8
    """Draws from a replay buffer."""
    EVALUATION_ACTIONS = 9
    TEST_ACTIONS = 10
    TUNING_ACTIONS = 11
    CONTENT = 12
    """Fixed material of an environment, such as a question bank."""
    STATISTICS = 13
    """Resampling."""
    BEHAVIOUR = 14
    """Episodes that are logged for off-policy evaluation."""
    BEHAVIOUR_ACTIONS = 15
    MODEL = 16
    """Bootstrap samples, batches and roll-outs of a learned model."""
    FORECAST = 17
    """Episodes that a learned model imagines beside those of an evaluation."""
    ENVIRONMENTS = 18
    """Environments of a distribution that training takes place in."""


ACTIONS_OF = {
    Purpose.TUNING: Purpose.TUNING_ACTIONS,
    Purpose.BEHAVIOUR: Purpose.BEHAVIOUR_ACTIONS,
    Purpose.EVALUATION: Purpose.EVALUATION_ACTIONS,
    Purpose.TEST: Purpose.TEST_ACTIONS,
}
"""The stream of a policy's own randomness that belongs to a stream of evaluation episodes."""


def stream(purpose: Purpose, seed: int, episode: int | None = None) -> np.random.Generator:
    """The PCG64 generator of one purpose, seed and, where it matters, episode.

    Raises:
        ValueError: seed or episode outside [0, 2**32); larger numbers would alias smaller ones.
    """
    key = (seed,) if episode is None else (seed, episode)
    if not all(0 <= number < 2**32 for number in key):
        raise ValueError(f"Seeds and episodes lie in [0, 2**32), got {key}.")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy=int(purpose), spawn_key=key)))


def streams(purpose: Purpose, seed: int, episodes: range) -> Iterator[np.random.Generator]:
    """The streams of several episodes one after the other, each the same as ``stream``'s, four times as fast.

    All are one object that is set anew: draw from one before asking for the next.

    Raises:
        ValueError: as ``stream``.
    """
    if not len(episodes):
        return
    generator = stream(purpose, seed, max(episodes[0], episodes[-1]))
    state = generator.bit_generator.state
    for words in _seed_words(purpose, seed, np.arange(episodes.start, episodes.stop, episodes.step)):
        high, low, sequence_high, sequence_low = words
        increment = ((sequence_high << 64 | sequence_low) << 1 | 1) % _2_128
        initial = ((increment + (high << 64 | low)) * _PCG_MULTIPLIER + increment) % _2_128
        state["state"] = {"state": initial, "inc": increment}
        generator.bit_generator.state = state
        yield generator


_2_128 = 1 << 128
_PCG_MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645
_POOL = 4


def _seed_words(purpose: int, seed: int, episodes: np.ndarray) -> list[list[int]]:
    """What ``SeedSequence(purpose, spawn_key=(seed, episode)).generate_state(4, uint64)`` gives, per episode.

    numpy guarantees this algorithm (O'Neill's seed_seq_fe) for all its versions; a test holds it to that.
    """
    multiplier = _Multiplier(0x43B0D7E5, 0x931E8875)

    def hashed(value):
        value = (value ^ multiplier.value) * multiplier.step() & _WORD
        return value ^ value >> 16

    def mixed(one, other):
        value = one * 0xCA01F9DD - other * 0x4973F715 & _WORD
        return value ^ value >> 16

    pool = [hashed(np.full(episodes.shape, word, np.uint64)) for word in (int(purpose), 0, 0, 0)]
    for source in range(_POOL):
        for target in range(_POOL):
            if source != target:
                pool[target] = mixed(pool[target], hashed(pool[source]))
    for word in (np.full(episodes.shape, seed, np.uint64), episodes.astype(np.uint64)):
        pool = [mixed(part, hashed(word)) for part in pool]
    multiplier = _Multiplier(0x8B51F9DD, 0x58F38DED)
    halves = [hashed(pool[word % _POOL]) for word in range(8)]
    return np.stack(
        [low | high << 32 for low, high in zip(halves[::2], halves[1::2], strict=True)], 1
    ).tolist()


_WORD = 0xFFFFFFFF


class _Multiplier:
    """The constant of a hash, which changes with every use."""

    def __init__(self, value: int, factor: int):
        self.value, self._factor = value, factor

    def step(self) -> int:
        self.value = self.value * self._factor & _WORD
        return self.value


class BlockStreams:
    """One generator per seed, read in blocks: a step costs a slice instead of a call per seed.

    Args:
        purpose: the streams' purpose.
        seeds: one stream per seed, [S].
        shape: shape of one seed's draw per step.
        block: steps drawn at once. Part of the stream's definition: another value gives other numbers
            only in so far as the last block is drawn to its end.
    """

    def __init__(self, purpose: Purpose, seeds: list[int], shape: tuple[int, ...], block: int = 256):
        self._generators = [stream(purpose, seed) for seed in seeds]
        self._buffer = np.empty((len(seeds), block, *shape), np.float32)
        self._next = block

    def uniforms(self) -> np.ndarray:
        """The next uniforms in [0, 1), [S, *shape] float32."""
        if self._next == self._buffer.shape[1]:
            for row, generator in zip(self._buffer, self._generators, strict=True):
                generator.random(out=row, dtype=np.float32)
            self._next = 0
        self._next += 1
        return self._buffer[:, self._next - 1]
