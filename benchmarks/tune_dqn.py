"""Compare hyper-parameters of DQN on tuning seeds: one Markdown row per variant.

    python benchmarks/tune_dqn.py default 30000 "" "gamma=0.9" "n_step=1 dueling=false"

A variant lists what differs from the defaults; "" is the defaults. Seeds start at 1000, so no seed of a study is
ever tuned on; policies are compared on the episodes of the TUNING stream.
"""

import argparse
import json
import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from scipy import stats

import seedbed.algorithms.dqn as dqn
from seedbed.environments.interview import MockInterview
from seedbed.seeding import Purpose
from seedbed.training import CurvePlan, train

FIRST_SEED = 1000


def overrides(variant: str) -> dict:
    """ "gamma=0.9 hidden=[64,64]" -> {"gamma": 0.9, "hidden": [64, 64]}; values are JSON."""
    return {name: json.loads(value) for name, _, value in (part.partition("=") for part in variant.split())}


def lower_bound(values: np.ndarray) -> float:
    """Lower end of the two-sided 95 % t-interval for the mean."""
    return values.mean() - stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)


def row(preset: str, budget: int, variant: str, seeds: int, episodes: int, points: int) -> str:
    """Train one variant; returns of the greedy policy at equally spaced points of the budget."""
    dynamics, algorithm = MockInterview(preset), dqn.DQN(**overrides(variant))
    plan = CurvePlan(every=budget // points, episodes=episodes, lanes=episodes)
    start = time.process_time()
    run = train(
        algorithm, dynamics, range(FIRST_SEED, FIRST_SEED + seeds), budget, plan, curve_purpose=Purpose.TUNING
    )
    seconds = time.process_time() - start
    scores = run.curve.groupby(["policy_mode", "steps", "seed"])["return"].mean()
    greedy = [scores["greedy", steps].mean() for steps in sorted(set(run.curve.steps))[1:]]
    final = scores["greedy", budget].to_numpy()
    cells = [
        variant or "(defaults)",
        " / ".join(f"{value:.1f}" for value in greedy),
        f"{lower_bound(final):.1f}",
        " ".join(f"{value:.0f}" for value in sorted(final)),
        f"{scores['sampled', budget].mean():.1f}",
        f"{seconds:.0f}",
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("preset", help="preset of the mock interview, such as default or tiny")
    parser.add_argument("budget", type=int, help="environment steps per seed")
    parser.add_argument("variants", nargs="*", default=[""], help='such as "gamma=0.9 n_step=1"')
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--episodes", type=int, default=100, help="tuning episodes per seed and point")
    parser.add_argument("--points", type=int, default=3, help="evaluations on the way")
    options = parser.parse_args()
    torch.set_num_threads(1)
    steps = " / ".join(str((i + 1) * options.budget // options.points) for i in range(options.points))
    print(f"| differs in | greedy return at {steps} steps | lower 95 % | each seed | sampled | CPU s |")
    print("|---|---|---|---|---|---|", flush=True)
    for variant in options.variants:
        print(
            row(options.preset, options.budget, variant, options.seeds, options.episodes, options.points),
            flush=True,
        )


if __name__ == "__main__":
    main()
