"""The tree of random streams: (purpose, seed, episode) -> generator.

Every random number of a study comes from one of these streams, so no stream depends on how work is split
over lanes, blocks or jobs, and global generators are never touched.
"""

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


ACTIONS_OF = {
    Purpose.TUNING: Purpose.TUNING_ACTIONS,
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
