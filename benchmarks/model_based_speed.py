"""CPU milliseconds of what model-based learners do most: decisions of PETS, updates of SAC, fits, roll-outs.

    OMP_NUM_THREADS=1 python benchmarks/model_based_speed.py
    OMP_NUM_THREADS=1 python benchmarks/model_based_speed.py --profile

One seed, one thread, CPU time and not wall time, the median of ``--repeats``. Parameters are those of a model
fitted to 300 random steps; how good they are changes nothing.
"""

import argparse
import cProfile
import os
import pstats
import time
from collections.abc import Callable
from functools import partial

os.environ["OMP_NUM_THREADS"] = "1"
import seedbed  # isort: skip  # noqa: F401

import numpy as np
import torch

from seedbed.algorithms.ensemble import Ensemble, EnsembleSettings
from seedbed.algorithms.mbpo import MBPO, ImaginedSteps
from seedbed.algorithms.pets import PETS
from seedbed.algorithms.replay import Replay
from seedbed.algorithms.sac import SAC, SoftActorCritic
from seedbed.environments.interview import MockInterview
from seedbed.environments.interview_content import PRESETS
from seedbed.environments.lanes import DynamicsLanes
from seedbed.seeding import Purpose
from seedbed.training import train

STEPS = 300
PROFILED_STEPS = 2000
PROFILED = {
    "models fitted": ("ensemble.py", "fit"),
    "planned": ("planning.py", "__call__"),
    "- networks": ("world_model.py", "__call__"),
    "- rules that are known": ("interview_knowledge.py", "step"),
    "- what is allowed": ("planning.py", "permitted"),
    "- masks": ("interview_knowledge.py", "action_mask"),
    "environment": ("lanes.py", "step"),
}
"""Part of a training run -> file and function, with all that it calls; those with a dash are of the plan."""
PLANNERS = (((64, 64), 100, 8, 3, False), ((128, 128), 200, 10, 3, False), ((128, 128), 200, 10, 3, True))
"""Hidden widths, population, horizon, iterations, bfloat16."""


def milliseconds(work: Callable[[], object], count: int, repeats: int) -> float:
    """CPU milliseconds of one call, the median over ``repeats`` of the mean of ``count``."""
    work()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        for _ in range(count):
            work()
        times.append((time.process_time() - start) / count)
    return 1e3 * float(np.median(times))


def decisions(dynamics: MockInterview, planner: tuple, repeats: int) -> list[float]:
    """One decision of PETS with five members and particles: on one lane, and on ten of an evaluation."""
    hidden, population, horizon, iterations, bfloat16 = planner
    algorithm = PETS(
        learning_starts=STEPS,
        model=EnsembleSettings(hidden=hidden, rounds=1, batches=5),
        planner={
            "population": population, "horizon": horizon, "iterations": iterations, "bfloat16": bfloat16
        },
    )  # fmt: skip
    policy = train(algorithm, dynamics, [0], STEPS, None).policy
    costs = []
    for count in (1, policy.most_lanes):
        lanes = DynamicsLanes(dynamics, Purpose.TUNING, [0], count)
        act = partial(policy.act, uniforms=np.full((1, count, policy.uniforms), 0.5), memory=None)
        cost = milliseconds(
            lambda act=act, on=lanes: act(on.observation, on.mask, first=on.first), 5, repeats
        )
        costs.append(cost / count)
    return costs


def learning(dynamics: MockInterview, hidden: tuple, batch: int, repeats: int) -> tuple[float, float, float]:
    """An update of SAC, a batch of all five members of an ensemble, a roll-out step of 500 branches."""
    settings = MBPO(hidden=hidden, batch_size=batch, model={"hidden": hidden, "rounds": 1, "batches": 20})
    spec, seeds = dynamics.spec, [0]
    learner = SoftActorCritic(SAC(hidden=hidden, batch_size=batch), spec, seeds)
    replay = Replay(spec, 1, 1, STEPS, keep_masks=True)
    ensemble = Ensemble(settings.model, spec, dynamics.knowledge, seeds, 1, STEPS)
    lanes, generator = DynamicsLanes(dynamics, Purpose.TUNING, seeds, 1), np.random.default_rng(0)
    for _ in range(STEPS):
        observation, mask = lanes.observation, lanes.mask
        action = learner.draw(observation, mask, generator.random((1, 1), np.float32))
        step = lanes.step(action)
        replay.add(observation, action, step, mask)
        ensemble.add(observation, action, step)
    model = ensemble.fit()
    imagined = ImaginedSteps(settings, spec, dynamics.knowledge, seeds)
    draw = generator.random((1, batch))
    return (
        milliseconds(lambda: learner.update(replay.sample(draw)), 20, repeats),
        milliseconds(ensemble.fit, 1, repeats) / settings.model.batches,
        milliseconds(lambda: imagined.add(model, learner, replay, 1), 5, repeats),
    )


def profile(preset: str) -> None:
    """Print where the time of a training run of PETS goes."""
    algorithm = PETS(model=EnsembleSettings(hidden=(64, 64)))
    dynamics, profiler = MockInterview(preset), cProfile.Profile()
    train(algorithm, dynamics, [0], STEPS + algorithm.learning_starts, None)  # compiles
    profiler.runcall(train, algorithm, dynamics, [0], PROFILED_STEPS, None)
    spent = pstats.Stats(profiler)
    print(f"| {preset}: part of {PROFILED_STEPS} steps | share |\n|---|---|")
    for part, (file, function) in PROFILED.items():
        seconds = sum(
            own[3]
            for (path, _, name), own in spent.stats.items()
            if path.endswith(f"/{file}") and name == function
        )
        print(f"| {part} | {seconds / spent.total_tt:.0%} |")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--presets", nargs="+", default=["as_specified", "default"], choices=list(PRESETS))
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--profile", action="store_true", help="where the time of training goes, and no more")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.profile:
        for preset in options.presets:
            profile(preset)
        return
    print("| preset | model | population | horizon | iterations | ms per decision | on ten lanes |")
    print("|---|---|---|---|---|---|---|")
    for preset in options.presets:
        for planner in PLANNERS:
            hidden, population, horizon, iterations, bfloat16 = planner
            alone, together = decisions(MockInterview(preset), planner, options.repeats)
            network = "x".join(map(str, hidden)) + (" bfloat16" if bfloat16 else "")
            print(
                f"| {preset} | {network} | {population} | {horizon} | {iterations} | {alone:.1f} "
                f"| {together:.1f} |",
                flush=True,
            )
    print("\n| preset | networks | batch | SAC update, ms | ensemble batch, ms | 500 imagined steps, ms |")
    print("|---|---|---|---|---|---|")
    for preset in options.presets:
        for hidden, batch in (((128, 128), 256), ((64, 64), 128)):
            costs = learning(MockInterview(preset), hidden, batch, options.repeats)
            network = "x".join(map(str, hidden))
            cells = " | ".join(f"{cost:.1f}" for cost in costs)
            print(f"| {preset} | {network} | {batch} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
