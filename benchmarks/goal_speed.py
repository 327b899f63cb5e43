"""Steps per second of the goal grid on one core: whole lanes with resets and observations.

    OMP_NUM_THREADS=1 python benchmarks/goal_speed.py --lanes 1024 8192

CPU time, not wall time. Actions are uniform and drawn beforehand.
"""

import argparse
import time

import numpy as np

from seedbed.environments.goal_grid import GoalGrid
from seedbed.environments.lanes import DynamicsLanes
from seedbed.seeding import Purpose


def lanes_speed(lanes: int, steps: int) -> float:
    """Environment steps per CPU second of ``DynamicsLanes``, with noise, resets and observations."""
    dynamics = GoalGrid()
    running = DynamicsLanes(dynamics, Purpose.TUNING, [0], lanes)
    generator = np.random.default_rng(0)
    running.t += generator.integers(0, dynamics.spec.horizon, running.t.shape)  # episodes end all the time
    actions = generator.integers(0, dynamics.spec.actions, (steps, 1, lanes))
    start = time.process_time()
    for action in actions:
        running.step(action)
    return steps * lanes / (time.process_time() - start)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--lanes", nargs="+", type=int, default=[64, 256, 1024, 8192])
    parser.add_argument("--steps", type=int, default=500, help="steps of all lanes that are timed")
    options = parser.parse_args()
    print("| lanes | M steps/s |\n|---|---|")
    for lanes in options.lanes:
        print(f"| {lanes} | {lanes_speed(lanes, options.steps) / 1e6:.2f} |", flush=True)


if __name__ == "__main__":
    main()
