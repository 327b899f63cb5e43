"""Steps per second of Sarsa(lambda) trials on one core, by domain, layout and decay, as a Markdown table.

    OMP_NUM_THREADS=1 python benchmarks/sarsa_speed.py
    OMP_NUM_THREADS=1 python benchmarks/sarsa_speed.py --sweep

CPU time of whole trials of 70,000 steps, the best of a few; alpha 0.5, noise 0.25. Family A finds
its range by itself, C is told. `tiles` is how many were ever visited.

With --sweep, what tuning among all 3,024 configurations in 25 environments would cost, from a stratified
sample of its trials: a few of each layout, tilings and cells, each in another environment.
"""

import argparse
import time
from dataclasses import replace

import numpy as np

from seedbed.algorithms.sarsa_tiles import STEPS, Configuration, SarsaTiles, Workspace, run
from seedbed.algorithms.tile_coding import make_coder
from seedbed.environments.generalized.documents import covering_ranges
from seedbed.environments.generalized.samplers import TUNING, Sampler
from seedbed.generalized.grid import PER_SHAPE, full_grid
from seedbed.generalized.trials import AGENTS

ROWS = [
    ("mountain_car", 4, 4, "stripes", 0.9, "C"),
    ("mountain_car", 8, 8, "joint", 0.9, "C"),
    ("mountain_car", 8, 8, "joint", 0.99, "C"),
    ("mountain_car", 8, 8, "joint", 0.9, "A"),
    ("mountain_car", 32, 32, "joint", 0.0, "C"),
    ("mountain_car", 32, 32, "joint", 0.9, "C"),
    ("mountain_car", 32, 32, "joint", 0.99, "C"),
    ("mountain_car", 32, 32, "joint", 0.9, "A"),
    ("mountain_car", 32, 32, "factorial", 0.9, "C"),
    ("puddle_world", 8, 8, "joint", 0.9, "C"),
    ("acrobot", 4, 4, "stripes", 0.9, "C"),
    ("acrobot", 16, 8, "joint", 0.9, "C"),
    ("acrobot", 8, 8, "factorial", 0.9, "C"),
    ("acrobot", 32, 32, "joint", 0.9, "C"),
    ("acrobot", 32, 32, "joint", 0.9, "A"),
    ("acrobot", 32, 32, "factorial", 0.9, "C"),
    ("acrobot", 32, 32, "factorial", 0.99, "C"),
]


def sweep(domains: list[str], per_shape: int) -> None:
    """Print core-hours of the whole sweep per domain and family, with standard errors."""
    grid, workspace, generator = full_grid(), Workspace(), np.random.default_rng(0)
    print("| domain | family | core-hours | +- | us per step |\n|---|---|---|---|---|")
    for domain in domains:
        environments = Sampler((domain,)).environments(TUNING, 0, 25)
        wide = covering_ranges(environments)[domain]
        for family, agent in AGENTS.items():
            run(grid[0], environments[0], agent, workspace, steps=10, wide=wide)  # compiles
            seconds = []
            for first in range(0, len(grid), PER_SHAPE):
                seconds.append([])
                for index in generator.choice(PER_SHAPE, per_shape, replace=False):
                    environment = environments[generator.integers(len(environments))]
                    start = time.process_time()
                    run(grid[first + index], environment, agent, workspace, wide=wide)
                    seconds[-1].append(time.process_time() - start)
            trials = PER_SHAPE * len(environments)  # of each shape
            hours = trials * np.mean(seconds, 1).sum() / 3600
            error = trials * np.sqrt((np.var(seconds, 1, ddof=1) / per_shape).sum()) / 3600
            micro = np.mean(seconds) / STEPS * 1e6
            print(f"| {domain} | {family} | {hours:.2f} | {error:.2f} | {micro:.2f} |", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3, help="trials per row (the fastest counts) or shape")
    parser.add_argument("--domains", nargs="+", default=["mountain_car", "puddle_world", "acrobot"])
    parser.add_argument("--sweep", action="store_true", help="the cost of the whole grid")
    options = parser.parse_args()
    if options.sweep:
        sweep(options.domains, options.repeats)
        return
    workspace = Workspace()
    print("| domain | tilings x cells, layout | lambda | family | features | tiles | M steps/s |")
    print("|---|---|---|---|---|---|---|")
    for domain, tilings, cells, layout, lambda_, family in ROWS:
        if domain not in options.domains:
            continue
        environment = replace(Sampler((domain,)).environments(TUNING, 0, 1)[0], noise=0.25)
        configuration, agent = Configuration(0.5, lambda_, tilings, cells, layout), SarsaTiles(family)
        run(configuration, environment, agent, workspace, seed=1)  # compiles, and finds the table's size
        fastest = float("inf")
        for _ in range(options.repeats):
            start = time.process_time()
            run(configuration, environment, agent, workspace, seed=1)
            fastest = min(fastest, time.process_time() - start)
        coder = make_coder(layout, len(environment.transforms), tilings, cells)
        visited = workspace.memory(coder, False).counts[0]
        print(
            f"| {domain} | {tilings}x{cells} {layout} | {lambda_} | {family} | {coder.features} "
            f"| {visited:,} | {STEPS / fastest / 1e6:.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
