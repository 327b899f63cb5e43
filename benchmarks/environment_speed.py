"""Steps per second of the mock interview on one core: the transition alone, and whole lanes with resets.

    OMP_NUM_THREADS=1 python benchmarks/environment_speed.py --lanes 64 256 1024

CPU time, not wall time. Actions are uniform and drawn beforehand; content above its cap becomes a question.
"""

import argparse
import time

import numpy as np

from seedbed.environments.interview import MockInterview
from seedbed.environments.interview_content import PRESETS
from seedbed.environments.lanes import DynamicsLanes
from seedbed.seeding import Purpose


def transition_speed(dynamics: MockInterview, lanes: int, steps: int) -> float:
    """Transitions per CPU second of ``Dynamics.step`` on [1, lanes] learners in mid-episode."""
    generator = np.random.default_rng(0)
    running = DynamicsLanes(dynamics, Purpose.TRAINING, [0], lanes)
    actions = generator.integers(0, dynamics.spec.actions, (steps + 20, 1, lanes))
    for action in actions[:20]:
        running.step(action)
    noise = generator.random((1, lanes, dynamics.spec.step_noise))
    start = time.process_time()
    for action in actions[20:]:
        dynamics.step(running.state, action, noise)
    return steps * lanes / (time.process_time() - start)


def lanes_speed(dynamics: MockInterview, lanes: int, steps: int) -> float:
    """Environment steps per CPU second of ``DynamicsLanes``, with noise, resets, observations and masks."""
    questions = 3 * dynamics.constants.learning_outcomes
    actions = np.random.default_rng(0).integers(0, dynamics.spec.actions, (steps + 200, 1, lanes))
    running = DynamicsLanes(dynamics, Purpose.TRAINING, [0], lanes)
    for number, action in enumerate(actions):
        if number == 200:  # by now the lanes are at different steps of their episodes
            start = time.process_time()
        if running.mask is not None:
            content_allowed = running.mask[..., -1]
            action = np.where(content_allowed | (action < questions), action, action % questions)
        running.step(action)
    return steps * lanes / (time.process_time() - start)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--presets", nargs="+", default=["as_specified", "default"], choices=list(PRESETS))
    parser.add_argument("--lanes", nargs="+", type=int, default=[256])
    parser.add_argument("--steps", type=int, default=2000, help="steps of all lanes that are timed")
    arguments = parser.parse_args()
    print("| preset | lanes | transition, M steps/s | lanes, M steps/s |\n|---|---|---|---|")
    for preset in arguments.presets:
        for lanes in arguments.lanes:
            dynamics = MockInterview(preset)
            transition = transition_speed(dynamics, lanes, arguments.steps) / 1e6
            whole = lanes_speed(dynamics, lanes, arguments.steps) / 1e6
            print(f"| {preset} | {lanes} | {transition:.2f} | {whole:.2f} |", flush=True)


if __name__ == "__main__":
    main()
