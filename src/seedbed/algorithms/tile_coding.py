"""Tile coding: layouts of tilings over groups of variables, and the tiles of an observation."""

from itertools import combinations
from typing import NamedTuple

import numpy as np

from seedbed.compiled import compiled

LAYOUTS = ("stripes", "joint", "factorial")
"""Groups of variables with tilings of their own: each variable; all together; all non-empty subsets."""
DENSE_TILES = 131_072
"""Groups with at most this many tiles have a record per tile; larger ones share a hash table."""
MOST_VARIABLES = 4
U = np.uint64
"""Of indices in inner loops: signed ones might count from the end, and allowing for that costs a third."""


class Coder(NamedTuple):
    """A layout as compiled code takes it. Features are numbered group by group, tilings within."""

    tilings: int
    cells: int
    features: int
    """active per observation: tilings times groups"""
    offsets: np.ndarray
    """[variables, tilings] displacement in cells, in [0, 1)"""
    sizes: np.ndarray
    """[groups] number of variables, ascending"""
    members: np.ndarray
    """[groups, 4] the variables"""
    first_tile: np.ndarray
    """[groups]"""
    tiles_per_tiling: np.ndarray
    """[groups] cells ** size"""
    tiles: int
    dense_features: int
    """leading features whose tile has a record of its own"""
    dense_tiles: int
    """leading tiles that do"""


def groups_of(layout: str, variables: int) -> list[tuple[int, ...]]:
    """Groups of variables of a layout, small groups first.

    Raises:
        ValueError: there is no such layout, or the number of variables is not 1 to 4.
    """
    if layout not in LAYOUTS:
        raise ValueError(f"layout is one of {', '.join(LAYOUTS)}, got {layout!r}")
    if not 1 <= variables <= MOST_VARIABLES:
        raise ValueError(f"tile coding here takes 1 to {MOST_VARIABLES} variables, got {variables}")
    sizes = {"stripes": [1], "joint": [variables], "factorial": range(1, variables + 1)}[layout]
    return [group for size in sizes for group in combinations(range(variables), size)]


def make_coder(layout: str, variables: int, tilings: int, cells: int, dense: int = DENSE_TILES) -> Coder:
    """Tilings of ``cells`` cells per variable over each group of a layout.

    Tiling k is displaced by frac(k (2 i + 1) / tilings) of a cell along variable i.

    Raises:
        ValueError: as ``groups_of``; tilings or cells below 1; more than 2**31 tiles.
    """
    if tilings < 1 or cells < 1:
        raise ValueError(f"tilings and cells are at least 1, got {tilings} and {cells}")
    groups = groups_of(layout, variables)
    tiles = np.array([tilings * cells ** len(group) for group in groups])
    if tiles.sum() >= 2**31:
        raise ValueError(f"{tiles.sum()} tiles are more than 2**31; take fewer cells or tilings")
    small = int(np.searchsorted(tiles, dense, side="right"))
    tiling, variable = np.arange(tilings), np.arange(variables)[:, None]
    return Coder(
        tilings,
        cells,
        tilings * len(groups),
        (tiling * (2 * variable + 1) % tilings) / tilings,
        np.array([len(group) for group in groups]),
        np.array([(*group, *[0] * (MOST_VARIABLES - len(group))) for group in groups]),
        np.cumsum(tiles) - tiles,
        tiles // tilings,
        int(tiles.sum()),
        tilings * small,
        int(tiles[:small].sum()),
    )


@compiled
def set_scale(low, high, coder, scale):
    """Cells per unit of each variable, such that every displaced tiling covers [low, high]."""
    for i in range(low.size):
        scale[i] = (coder.cells - (coder.tilings - 1.0) / coder.tilings) / (high[i] - low[i])


@compiled(inline=True)
def locate(observation, low, scale, coder, cell, tile, first):
    """Write the tile numbers of an observation into ``tile[first : first + features]`` (uint32).

    ``cell`` [variables * tilings] uint32 is working space. Outside the range, the edge's cell holds.
    """
    n, cells, last = U(coder.tilings), U(coder.cells), coder.cells - 1.0
    for i in range(low.size):
        x = (observation[i] - low[i]) * scale[i]
        own = U(i) * n
        for k in range(coder.tilings):
            y = x + coder.offsets[i, k]
            y = y if y > 0.0 else 0.0
            cell[own + U(k)] = np.int32(y if y < last else last)
    for group in range(coder.sizes.size):
        size, stride, base = coder.sizes[group], U(coder.tiles_per_tiling[group]), U(coder.first_tile[group])
        out = U(first) + U(group) * n
        a, b = U(coder.members[group, 0]) * n, U(coder.members[group, 1]) * n
        c, d = U(coder.members[group, 2]) * n, U(coder.members[group, 3]) * n
        if size == 1:
            for number in range(coder.tilings):
                k = U(number)
                tile[out + k] = base + k * stride + cell[a + k]
        elif size == 2:
            for number in range(coder.tilings):
                k = U(number)
                tile[out + k] = base + k * stride + cell[a + k] * cells + cell[b + k]
        elif size == 3:
            for number in range(coder.tilings):
                k = U(number)
                tile[out + k] = base + k * stride + (cell[a + k] * cells + cell[b + k]) * cells + cell[c + k]
        else:
            for number in range(coder.tilings):
                k = U(number)
                inner = (cell[a + k] * cells + cell[b + k]) * cells + cell[c + k]
                tile[out + k] = base + k * stride + inner * cells + cell[d + k]
