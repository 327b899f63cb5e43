"""Weights of tiles: one 64-byte record per tile, at its own place or in an exact hash table, and TRANSPLANT.

A record holds four weights (float64), the times of the last visit with each action (uint32) and the tile's
number plus 1 (int64), all in one cache line. What a tile-action pair is worth is weight + update[time],
see ``sarsa_kernel``. There are no collisions: two tiles never share a record.
"""

from typing import NamedTuple

import numpy as np

from seedbed.algorithms.tile_coding import Coder, U
from seedbed.compiled import compiled

MOST_ACTIONS = 4
WORDS = 8  # of a record, 8 bytes each: weights 0-3, times 4-5, key 6
TIMES, FIRST_TIME = 16, 8
KEY = 6
FULLEST = 0.7  # share of the hash table's slots in use beyond which a larger one is needed
HASH = np.uint64(0x9E3779B97F4A7C15)


class Memory(NamedTuple):
    """Views on one buffer, and the list of records in use."""

    weights: np.ndarray
    """float64"""
    times: np.ndarray
    """uint32"""
    keys: np.ndarray
    """int64"""
    touched: np.ndarray
    """uint32, records in use in the order of their first use"""
    counts: np.ndarray
    """int64: records in use, hash slots in use, whether the table was too small"""
    traces: np.ndarray
    """float64 [records * 4], accumulating traces at the last visit; one entry where none are needed"""
    moving: np.ndarray
    """float64 [records, 5], space for a transplant: weights and tile number"""
    slots: int
    """size of the hash table, a power of 2"""
    shift: np.uint64

    def share(self, slots: int, traces: bool) -> "Memory":
        """The same memory with a hash table of ``slots``, which must fit in."""
        return self._replace(
            traces=self.traces if traces else self.traces[:1],
            slots=slots,
            shift=np.uint64(64 - (slots.bit_length() - 1)),
        )


def allocate(records: int, traces: bool) -> Memory:
    """Empty memory: records of tiles that have one of their own, then the slots of a hash table."""
    raw = np.zeros(records * WORDS + WORDS)
    buffer = raw[(-raw.ctypes.data % 64) // 8 :][: records * WORDS]  # records lie on cache lines
    return Memory(
        buffer,
        buffer.view(np.uint32),
        buffer.view(np.int64),
        np.zeros(records, np.uint32),
        np.zeros(3, np.int64),
        np.zeros(records * MOST_ACTIONS if traces else 1),
        np.empty((records, MOST_ACTIONS + 1)),
        2,
        np.uint64(63),
    )


@compiled
def clear(memory):
    """Empty all records in use."""
    for i in range(memory.counts[0]):
        record = np.int64(memory.touched[i]) * WORDS
        for word in range(WORDS):
            memory.keys[record + word] = 0
    for i in range(memory.counts.size):
        memory.counts[i] = 0


@compiled(inline=True)
def claim(memory, record, key):
    """Give an empty record to a tile."""
    memory.keys[record * WORDS + KEY] = key
    memory.touched[memory.counts[0]] = record
    memory.counts[0] += 1


@compiled(inline=True)
def probe(memory, dense_tiles, tile):
    """The record of a tile in the hash table, claimed if it has none."""
    slot = np.int64((np.uint64(tile) * HASH) >> memory.shift)
    key = np.int64(tile) + 1
    while True:
        record = dense_tiles + slot
        found = memory.keys[record * WORDS + KEY]
        if found == key:
            return record
        if found == 0:
            claim(memory, record, key)
            memory.counts[1] += 1
            return record
        slot = (slot + 1) & (memory.slots - 1)


@compiled(inline=True)
def find(memory, coder, tile, record, first):
    """Write the records of ``tile[first : first + features]`` into ``record`` (uint32, same place)."""
    for f in range(coder.dense_features):
        record[U(first) + U(f)] = tile[U(first) + U(f)]
    for f in range(coder.dense_features, coder.features):
        record[U(first) + U(f)] = probe(memory, coder.dense_tiles, tile[U(first) + U(f)])
    if memory.counts[1] > FULLEST * memory.slots:
        memory.counts[2] = 1


@compiled
def cell_maps(low, high, new_low, new_high, coder):
    """Where the centres of old cells lie in new ranges, and how many fall into each new cell.

    Returns:
        maps, counts: [variables, tilings, cells] int64.
    """
    cells, n = coder.cells, coder.tilings
    width = cells - (n - 1.0) / n
    maps = np.zeros((low.size, n, cells), np.int64)
    counts = np.zeros((low.size, n, cells), np.int64)
    for i in range(low.size):
        for k in range(n):
            for cell in range(cells):
                centre = low[i] + (cell + 0.5 - coder.offsets[i, k]) * ((high[i] - low[i]) / width)
                y = (centre - new_low[i]) * (width / (new_high[i] - new_low[i])) + coder.offsets[i, k]
                new = np.int64(min(max(y, 0.0), cells - 1.0))
                maps[i, k, cell] = new
                counts[i, k, new] += 1
    return maps, counts


@compiled
def transplant(memory, coder, update, low, high, new_low, new_high):
    """Move all weights to new ranges: TRANSPLANT of Whiteson, Tanner, Taylor and Stone (2011), fig. 1.

    Each tile's weight goes to the tile of the same tiling that holds its centre; where several meet, they
    are averaged over all the tiles that meet there, visited or not. Tiles that nothing reaches weigh 0.
    Pending updates are applied first, and no trace is left. Only tiles in use are looked at.
    """
    maps, counts = cell_maps(low, high, new_low, new_high, coder)
    number = memory.counts[0]
    accumulating = memory.traces.size > 1
    for i in range(number):
        record = np.int64(memory.touched[i])
        for action in range(MOST_ACTIONS):
            pending = update[memory.times[record * TIMES + FIRST_TIME + action]]
            if accumulating:
                pending *= memory.traces[record * MOST_ACTIONS + action]
            memory.moving[i, action] = memory.weights[record * WORDS + action] + pending
        memory.moving[i, MOST_ACTIONS] = memory.keys[record * WORDS + KEY] - 1
        for word in range(WORDS):
            memory.keys[record * WORDS + word] = 0
    memory.counts[0], memory.counts[1] = 0, 0
    for i in range(number):
        tile, share = moved(np.int64(memory.moving[i, MOST_ACTIONS]), coder, maps, counts)
        if tile < coder.dense_tiles:
            record = tile
            if memory.keys[record * WORDS + KEY] == 0:
                claim(memory, record, tile + 1)
        else:
            record = probe(memory, coder.dense_tiles, tile)
        for action in range(MOST_ACTIONS):
            memory.weights[record * WORDS + action] += memory.moving[i, action] / share


@compiled(inline=True)
def moved(tile, coder, maps, counts):
    """Where a tile goes, and how many tiles go there: counts factorise over variables."""
    group = coder.sizes.size - 1
    while tile < coder.first_tile[group]:
        group -= 1
    stride, cells = np.uint32(coder.tiles_per_tiling[group]), np.uint32(coder.cells)
    within = np.uint32(tile - coder.first_tile[group])
    k = within // stride
    new_tile, share, place = coder.first_tile[group] + np.int64(k * stride), 1, 1
    within -= np.uint32(k * stride)
    for m in range(coder.sizes[group] - 1, -1, -1):
        variable = coder.members[group, m]
        rest = np.uint32(within // cells)
        new = maps[variable, k, within - np.uint32(rest * cells)]
        new_tile += new * place
        share *= counts[variable, k, new]
        place *= coder.cells
        within = rest
    return new_tile, share


def tile_weights(memory: Memory, coder: Coder, update: np.ndarray) -> dict[int, np.ndarray]:
    """What each tile in use is worth now, tile number -> [4]; unused actions are 0."""
    found = {}
    for record in memory.touched[: memory.counts[0]].astype(np.int64):
        pending = update[memory.times[record * TIMES + FIRST_TIME :][:MOST_ACTIONS]]
        if memory.traces.size > 1:
            pending = pending * memory.traces[record * MOST_ACTIONS :][:MOST_ACTIONS]
        weights = memory.weights[record * WORDS :][:MOST_ACTIONS] + pending
        found[int(memory.keys[record * WORDS + KEY]) - 1] = weights
    return found
