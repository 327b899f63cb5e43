"""The 3,024 configurations that Whiteson, Tanner, Taylor and Stone (2011) tune among, and samples of them."""

from itertools import product

from seedbed.algorithms.sarsa_tiles import Configuration
from seedbed.algorithms.tile_coding import LAYOUTS, groups_of
from seedbed.seeding import Purpose, stream

ALPHAS = (2.0, 1.0, 0.75, 0.5, 0.25, 0.125, 0.06125)
LAMBDAS = (0.99, 0.95, 0.9, 0.75, 0.5, 0.25, 0.125, 0.06125, 0.0)
"""0.06125 as printed; 0.0625 is surely meant."""
TILINGS = (4, 8, 16, 32)
CELLS = (4, 8, 16, 32)
PER_SHAPE = len(ALPHAS) * len(LAMBDAS)
"""Configurations k PER_SHAPE to (k + 1) PER_SHAPE - 1 share layout, tilings and cells, and cost the same."""


def full_grid() -> list[Configuration]:
    """All configurations; a configuration's index is its name in tables."""
    shapes = product(LAYOUTS, TILINGS, CELLS, ALPHAS, LAMBDAS)
    return [
        Configuration(alpha, lambda_, tilings, cells, layout)
        for layout, tilings, cells, alpha, lambda_ in shapes
    ]


def size(configuration: Configuration, variables: int) -> tuple[int, int]:
    """Active features and tiles of a configuration for a domain with so many variables."""
    groups = groups_of(configuration.layout, variables)
    tiles = sum(configuration.tilings * configuration.cells ** len(group) for group in groups)
    return configuration.tilings * len(groups), tiles


def sample_grid(
    number: int,
    seed: int = 0,
    *,
    variables: int = 2,
    most_features: int | None = None,
    most_tiles: int | None = None,
) -> list[int]:
    """Indices of ``number`` configurations in random order, from one permutation per seed.

    Limits leave out the configurations beyond, for domains of so many variables, and keep the others' order:
    a sample with limits and one without have most in common.

    Raises:
        ValueError: fewer configurations than that are within the limits.
    """
    grid = full_grid()
    kept = []
    for index in stream(Purpose.CONTENT, seed).permutation(len(grid)).tolist():
        features, tiles = size(grid[index], variables)
        if features <= (most_features or features) and tiles <= (most_tiles or tiles):
            kept.append(index)
    if not 1 <= number <= len(kept):
        raise ValueError(f"{len(kept)} configurations are within the limits, got number = {number}")
    return kept[:number]
