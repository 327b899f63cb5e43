"""Compare hyper-parameters on tuning seeds: one Markdown row per variant.

    python benchmarks/tune.py ppo default 50000 "" "gamma=0.95" "lanes=16 rollout=125"
    python benchmarks/tune.py dqn CartPole 30000 "n_step=1 dueling=false"
    python benchmarks/tune.py a2c GoalGrid 500000 --score success "" "lanes=32"

A variant lists what differs from the defaults; "" is the defaults. Seeds start at 1000, so no seed of a study
is ever tuned on; policies are compared on the episodes of the TUNING stream.
"""

import argparse
import json
import os
import time

os.environ["OMP_NUM_THREADS"] = "1"
import seedbed  # isort: skip  # noqa: F401

import numpy as np
import torch
from scipy import stats

from seedbed.environments.cart_pole import CartPole
from seedbed.environments.goal_grid import GoalGrid
from seedbed.environments.interview import MockInterview
from seedbed.registry import ALGORITHMS, load
from seedbed.seeding import Purpose
from seedbed.training import CurvePlan, train

FIRST_SEED = 1000


def overrides(variant: str) -> dict:
    """The text "gamma=0.9 hidden=[64,64]" as {"gamma": 0.9, "hidden": [64, 64]}; values are JSON."""
    return {name: json.loads(value) for name, _, value in (part.partition("=") for part in variant.split())}


def lower_bound(values: np.ndarray) -> float:
    """Lower end of the two-sided 95 % t-interval for the mean."""
    return values.mean() - stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)


def row(options: argparse.Namespace, variant: str) -> str:
    """Train one variant; scores of the policy at equally spaced points of the budget."""
    named = {"CartPole": CartPole, "GoalGrid": GoalGrid}
    name = options.environment
    dynamics = named[name]() if name in named else MockInterview(name)
    algorithm = load(options.algorithm, ALGORITHMS, "algorithm")(**overrides(variant))
    seeds = range(FIRST_SEED, FIRST_SEED + options.seeds)
    plan = CurvePlan(options.budget // options.points, options.episodes, options.episodes)
    start = time.process_time()
    curve = train(algorithm, dynamics, seeds, options.budget, plan, curve_purpose=Purpose.TUNING).curve
    seconds = time.process_time() - start
    scores = curve.groupby(["policy_mode", "steps", "seed"])[options.score].mean()
    cells = [variant or "(defaults)"]
    for mode in ("greedy", "sampled"):
        if mode not in scores.index.get_level_values("policy_mode"):
            cells.append("-")
            continue
        means = scores[mode].groupby("steps").mean().iloc[1:]
        final = scores[mode].loc[curve.steps.max()].to_numpy()
        digits = 3 if options.score == "success" else 1
        values = " / ".join(f"{value:.{digits}f}" for value in means)
        cells.append(f"{values} (> {lower_bound(final):.{digits}f})")
    return "| " + " | ".join([*cells, f"{seconds:.0f}"]) + " |"


def main() -> None:
    """Print the table."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("algorithm", help="a registered name, such as ppo")
    parser.add_argument("environment", help="CartPole, GoalGrid, or a preset of the mock interview")
    parser.add_argument("budget", type=int, help="environment steps per seed")
    parser.add_argument("variants", nargs="*", default=[""], help='such as "gamma=0.9 n_step=1"')
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--episodes", type=int, default=100, help="tuning episodes per seed and point")
    parser.add_argument("--points", type=int, default=5, help="evaluations on the way")
    parser.add_argument("--score", choices=["return", "success"], default="return", help="mean over episodes")
    options = parser.parse_intermixed_args()
    torch.set_num_threads(1)
    steps = " / ".join(str((i + 1) * options.budget // options.points) for i in range(options.points))
    what = f"{options.algorithm}, {options.environment}, {options.seeds} seeds; {options.score}"
    print(f"{what} at {steps} steps")
    print("(> lower 95 % t-bound of the last)\n")
    print("| differs in | greedy | sampled | CPU s |\n|---|---|---|---|", flush=True)
    for variant in options.variants:
        print(row(options, variant), flush=True)


if __name__ == "__main__":
    main()
