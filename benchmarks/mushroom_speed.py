"""Steps per second of Sarsa(lambda) on Mountain Car against mushroom-rl's: CPU time, alternating in one process.

    python -m venv benchmarks/.mushroom && benchmarks/.mushroom/bin/pip install -r requirements.lock
    benchmarks/.mushroom/bin/pip install --no-deps mushroom-rl==1.10.2 opencv-python-headless==5.0.0.93 scikit-learn==1.9.1 joblib==1.6.0 threadpoolctl==3.8.0
    OMP_NUM_THREADS=1 PYTHONPATH=src benchmarks/.mushroom/bin/python benchmarks/mushroom_speed.py

Both learn in sarsa_speed.py's environment with noise 0.25, by the same compiled transition (mushroom-rl has no Mountain
Car of its own). Tiles lie the same, over the exact range (family C); lambda 0.9, epsilon 0.05, discount 1, the same step
size, no limit per episode. The peer is `SARSALambdaContinuous` on a `LinearApproximator` of `Tiles`: its traces
accumulate and none is dropped, so ours are measured both ways. A repeat is a trial of 70,000 steps of ours and a tenth of
a second of the peer's one learner, short, since work beside them slows the peer more than ours. Figures and `ratio` are
medians of the repeats; `fastest` is the ratio of the fastest repeats.
"""  # noqa: E501

import argparse
import os
import time
from dataclasses import replace
from functools import partial

os.environ["OMP_NUM_THREADS"] = "1"
import seedbed  # isort: skip  # noqa: F401

import numpy as np
from mushroom_rl.algorithms.value import SARSALambdaContinuous
from mushroom_rl.approximators.parametric import LinearApproximator
from mushroom_rl.core import Core, Environment, MDPInfo
from mushroom_rl.features import Features
from mushroom_rl.features.tiles import Tiles
from mushroom_rl.policy import EpsGreedy
from mushroom_rl.utils.parameters import Parameter
from mushroom_rl.utils.spaces import Box, Discrete

from seedbed.algorithms.sarsa_tiles import STEPS, Configuration, SarsaTiles, Workspace, run
from seedbed.environments.generalized.documents import EnvironmentDocument
from seedbed.environments.generalized.domains import advance, begin_episode, see
from seedbed.environments.generalized.samplers import TUNING, Sampler

ROWS = ((8, 8, 600), (32, 32, 150))
"""Tilings, cells per variable, steps of the peer in a repeat."""
LAMBDA = 0.9


class Peer(Environment):
    """An environment document as mushroom-rl takes it."""

    def __init__(self, document: EnvironmentDocument):
        self._world, self._states = document.world(), document.trial_seeds()
        self._state, self._seen = np.zeros(4), np.zeros(len(document.transforms))
        spaces = Box(*document.ranges), Discrete(document.actions)
        super().__init__(MDPInfo(*spaces, gamma=1.0, horizon=np.inf))

    def reset(self, state=None):
        """What is seen of an episode's first state."""
        begin_episode(self._world, self._states, self._state)
        see(self._world, self._state, self._seen)
        return self._seen

    def step(self, action):
        """What is seen next, reward, whether the episode has ended, nothing."""
        reward, terminated = advance(self._world, self._states, self._state, action[0])
        see(self._world, self._state, self._seen)
        return self._seen, reward, terminated, {}


def peer(document: EnvironmentDocument, configuration: Configuration, epsilon: float) -> Core:
    """A learner of mushroom-rl that knows nothing."""
    environment, tilings = Peer(document), configuration.tilings
    cells = [configuration.cells] * len(document.transforms)
    features = Features(tilings=Tiles.generate(tilings, cells, *document.ranges))
    actions = document.actions
    shapes = {"input_shape": (features.size,), "output_shape": (actions,), "n_actions": actions}
    agent = SARSALambdaContinuous(
        environment.info, EpsGreedy(Parameter(epsilon)), LinearApproximator,
        Parameter(configuration.alpha / tilings), configuration.lambda_, features, shapes,
    )  # fmt: skip
    return Core(agent, environment)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=40, help="of both, alternating")
    parser.add_argument("--alpha", type=float, default=0.5, help="share of an error that one step removes")
    options = parser.parse_args()
    document = replace(Sampler(("mountain_car",)).environments(TUNING, 0, 1)[0], noise=0.25)
    workspace = Workspace()
    print("| joint tiles | traces of ours | ours, M steps/s | mushroom-rl, steps/s | ratio | fastest |")
    print("|---|---|---|---|---|---|")
    for tilings, cells, steps in ROWS:
        configuration = Configuration(options.alpha, LAMBDA, tilings, cells, "joint")
        agents = [SarsaTiles("C", trace=trace) for trace in ("replacing", "accumulating")]
        core = peer(document, configuration, agents[0].epsilon)
        sides = [partial(run, configuration, document, agent, workspace, seed=1) for agent in agents]
        sides.append(partial(core.learn, n_steps=steps, n_steps_per_fit=1, quiet=True))
        for side in sides:
            side()  # compiles
        rates = np.empty((options.repeats, 3))
        for row in rates:
            for column, (side, taken) in enumerate(zip(sides, (STEPS, STEPS, steps), strict=True)):
                start = time.process_time()
                side()
                row[column] = taken / (time.process_time() - start)
        middle, fastest = np.median(rates, 0), rates.max(0)
        for column, agent in enumerate(agents):
            mine, other = middle[column] / 1e6, middle[2]
            ratio, best = np.median(rates[:, column] / rates[:, 2]), fastest[column] / fastest[2]
            print(
                f"| {tilings} of {cells}x{cells} | {agent.trace} | {mine:.2f} | {other:,.0f} "
                f"| {ratio:,.0f} | {best:,.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
