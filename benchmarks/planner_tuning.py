"""Return of the planner index on tuning learners for each pair of its weights.

python benchmarks/planner_tuning.py --preset default --episodes 1000
"""

import argparse

from seedbed.algorithms.planner_index import PlannerIndex, PlannerIndexPolicy
from seedbed.environments.interview import MockInterview
from seedbed.evaluation import evaluate
from seedbed.seeding import Purpose

MASTERY_VALUES = (0.0, 3.0, 8.0)
BLUEPRINT_WEIGHTS = (0.2, 0.5, 1.0, 2.0, 3.0, 4.0)


def main() -> None:
    """Print one row per pair, on the same learners for all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--preset", default="default")
    parser.add_argument("--episodes", type=int, default=1000, help="tuning learners of seed 0")
    arguments = parser.parse_args()
    dynamics = MockInterview(arguments.preset)
    print("| mastery_value | blueprint_weight | return | SE | steps | successes |\n|---|---|---|---|---|---|")
    for mastery_value in MASTERY_VALUES:
        for blueprint_weight in BLUEPRINT_WEIGHTS:
            index = PlannerIndex(mastery_value=mastery_value, blueprint_weight=blueprint_weight)
            policy = PlannerIndexPolicy([0], dynamics, vars(index))
            table = evaluate(policy, dynamics, Purpose.TUNING, arguments.episodes, lanes=256).episodes
            returns, steps, successes = (table[name] for name in ("return", "length", "success"))
            cells = (
                f"{returns.mean():.2f} | {returns.sem():.2f} | {steps.mean():.1f} | {successes.mean():.3f}"
            )
            print(f"| {mastery_value:g} | {blueprint_weight:g} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
