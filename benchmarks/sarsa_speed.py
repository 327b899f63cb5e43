"""Steps per second of Sarsa(lambda) trials on one core, by domain, layout and decay, as a Markdown table.

    OMP_NUM_THREADS=1 python benchmarks/sarsa_speed.py

CPU time of whole trials of 70,000 steps, the best of a few; alpha 0.5, noise 0.25. Family A finds
its range by itself, C is told. `tiles` is how many were ever visited.
"""

import argparse
import time
from dataclasses import replace

from seedbed.algorithms.sarsa_tiles import STEPS, Configuration, SarsaTiles, Workspace, run
from seedbed.algorithms.tile_coding import make_coder
from seedbed.environments.generalized.samplers import TUNING, Sampler

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


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3, help="trials per row; the fastest counts")
    parser.add_argument("--domains", nargs="+", default=["mountain_car", "puddle_world", "acrobot"])
    options = parser.parse_args()
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
