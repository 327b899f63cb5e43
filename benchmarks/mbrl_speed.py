"""A decision of PETS against mbrl-lib's, at equal sizes: CPU milliseconds, alternating in one process.

    python -m venv benchmarks/.mbrl && benchmarks/.mbrl/bin/pip install -r requirements.lock
    benchmarks/.mbrl/bin/pip install --no-deps mbrl==0.2.0 hydra-core==1.3.8 omegaconf==2.4.0 antlr4-python3-runtime==4.9.3
    OMP_NUM_THREADS=1 PYTHONPATH=src benchmarks/.mbrl/bin/python benchmarks/mbrl_speed.py

mbrl-lib has no discrete actions: it plans four numbers where ours plans four choices, with a learned reward. Both
have five members of equal layers, five particles that change their member at each step, and the same population,
horizon and iterations. One thread; models are not trained, which changes no cost.
"""  # noqa: E501

import argparse
import os
import time

os.environ["OMP_NUM_THREADS"] = "1"
import seedbed  # isort: skip  # noqa: F401

import gymnasium
import numpy as np
import omegaconf
import torch
from mbrl.models import GaussianMLP, ModelEnv, OneDTransitionRewardModel
from mbrl.planning import TrajectoryOptimizer

from seedbed.algorithms.ensemble import EnsembleSettings
from seedbed.algorithms.pets import PETS
from seedbed.environments.interview import MockInterview
from seedbed.environments.lanes import DynamicsLanes
from seedbed.seeding import Purpose
from seedbed.training import train

SIZES = ((64, 100, 8, 3), (128, 200, 10, 3))
"""Width of two hidden layers, population, horizon, iterations."""
MEMBERS = PARTICLES = 5


class Spaces:
    """What mbrl-lib reads of an environment: the interview's observations, four numbers as action."""

    def __init__(self, observed: int):
        self.observation_space = gymnasium.spaces.Box(-1, 1, (observed,), np.float32)
        self.action_space = gymnasium.spaces.Box(-1, 1, (4,), np.float32)


def peer(observed: int, width: int, population: int, horizon: int, iterations: int):
    """A decision of mbrl-lib's trajectory optimiser."""
    network = GaussianMLP(
        observed + 4, observed + 1, device="cpu", num_layers=2, ensemble_size=MEMBERS, hid_size=width,
        propagation_method="random_model",
    )  # fmt: skip
    model = OneDTransitionRewardModel(network, target_is_delta=True, normalize=True, learned_rewards=True)
    environment = ModelEnv(
        Spaces(observed), model, lambda action, x: torch.zeros(len(x), 1, dtype=torch.bool), None,
        generator=torch.Generator(),
    )  # fmt: skip
    settings = {
        "_target_": "mbrl.planning.CEMOptimizer", "num_iterations": iterations, "elite_ratio": 0.1,
        "population_size": population, "alpha": 0.1, "device": "cpu", "lower_bound": "???",
        "upper_bound": "???", "return_mean_elites": False, "clipped_normal": False,
    }  # fmt: skip
    optimiser = TrajectoryOptimizer(omegaconf.OmegaConf.create(settings), [-1] * 4, [1] * 4, horizon)
    seen = np.zeros(observed, np.float32)

    def decide():
        with torch.no_grad():
            optimiser.optimize(lambda plans: environment.evaluate_action_sequences(plans, seen, PARTICLES))

    return decide


def ours(dynamics: MockInterview, width: int, population: int, horizon: int, iterations: int):
    """A decision of our PETS."""
    algorithm = PETS(
        learning_starts=300,
        model=EnsembleSettings(members=MEMBERS, hidden=(width, width), rounds=1, batches=5),
        planner={
            "population": population,
            "horizon": horizon,
            "iterations": iterations,
            "particles": PARTICLES,
        },
    )
    policy = train(algorithm, dynamics, [0], 300, None).policy
    lanes = DynamicsLanes(dynamics, Purpose.TUNING, [0], 1)
    uniforms = np.full((1, 1, policy.uniforms), 0.5)
    return lambda: policy.act(lanes.observation, lanes.mask, uniforms, None, lanes.first)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--presets", nargs="+", default=["as_specified", "default"])
    parser.add_argument("--decisions", type=int, default=60, help="of each, alternating")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print("| preset | model | population | horizon | iterations | ours, ms | mbrl-lib, ms | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    for preset in options.presets:
        dynamics = MockInterview(preset)
        for size in SIZES:
            sides = ours(dynamics, *size), peer(dynamics.spec.observation_shape[0], *size)
            times = np.empty((options.decisions, 2))
            for row in times:
                for side, decide in enumerate(sides):
                    start = time.process_time()
                    decide()
                    row[side] = 1e3 * (time.process_time() - start)
            mine, other = np.median(times, 0)
            ratio = np.median(times[:, 1] / times[:, 0])
            cells = f"{size[0]}x{size[0]} | " + " | ".join(map(str, size[1:]))
            print(f"| {preset} | {cells} | {mine:.1f} | {other:.1f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
