"""Seedbed's evaluation against Stable-Baselines3's ``evaluate_policy``: the same policy on CartPole.

    OMP_NUM_THREADS=1 python benchmarks/evaluation_speed.py --episodes 1000 --repeats 3

Stable-Baselines3 trains a PPO policy; both evaluate it greedily, on one thread. CPU time of this process
counts. The peer runs at each number of environments of ``--peer-environments``; the ratio is to its best.
Ours runs on the registered CartPole (equal to Gymnasium's to the bit) and, through the adapter, on its own.
"""

import argparse
import os
import time

os.environ["OMP_NUM_THREADS"] = "1"
import seedbed  # isort: skip  # noqa: F401

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

from seedbed.algorithms.categorical_policy import CategoricalPolicy
from seedbed.algorithms.networks import StackedMLP
from seedbed.environments.cart_pole import CartPole
from seedbed.environments.external import GymnasiumEnvironment
from seedbed.evaluation import evaluate
from seedbed.seeding import Purpose

SIZES = (4, 64, 64, 2)


def as_ours(model: PPO) -> CategoricalPolicy:
    """The peer's actor network as a policy of ours, for one seed."""
    actor = [*model.policy.mlp_extractor.policy_net, model.policy.action_net]
    linear = [layer for layer in actor if isinstance(layer, torch.nn.Linear)]
    network = StackedMLP(SIZES, "tanh")
    parameters = torch.zeros(1, network.size)
    with torch.no_grad():
        for (weight, bias), layer in zip(network.layers(parameters), linear, strict=True):
            weight[0].copy_(layer.weight.T)
            bias[0, 0].copy_(layer.bias)
    return CategoricalPolicy([0], SIZES, "tanh", parameters, mode="greedy")


def timed(evaluation) -> tuple[float, np.ndarray, np.ndarray]:
    """CPU seconds, returns and lengths of an evaluation."""
    start = time.process_time()
    returns, lengths = evaluation()
    return time.process_time() - start, np.asarray(returns), np.asarray(lengths)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--training-steps", type=int, default=30_000, help="what the policy has learned from")
    parser.add_argument("--peer-environments", type=int, nargs="+", default=[1, 8, 16, 32, 64, 128, 256])
    parser.add_argument("--lanes", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)

    model = PPO("MlpPolicy", make_vec_env("CartPole-v1", 8, seed=0), n_steps=256, seed=0, device="cpu")
    model.learn(options.training_steps)
    policy = as_ours(model)
    observed = np.random.default_rng(0).normal(size=(1, 64, 4)).astype(np.float32)
    action, _ = policy.act(observed, None, np.empty((1, 64, 0)), None, np.ones((1, 64), bool))
    assert (action[0] == model.predict(observed[0], deterministic=True)[0]).all(), "not the same policy"

    def ours(environment):
        def evaluation():
            table = evaluate(
                policy, environment, Purpose.TUNING, options.episodes, lanes=options.lanes
            ).episodes
            return table["return"], table["length"]

        return evaluation

    def peer(environments):
        vector = make_vec_env("CartPole-v1", environments, seed=1)
        return lambda: evaluate_policy(
            model, vector, options.episodes, deterministic=True, return_episode_rewards=True
        )

    names = {f"SB3, {number} environments": peer(number) for number in options.peer_environments}
    names |= {
        "Seedbed, CartPole": ours(CartPole()),
        "Seedbed, CartPole-v1 of Gymnasium": ours(GymnasiumEnvironment(id="CartPole-v1")),
    }
    rates = {name: [] for name in names}
    lengths = {}
    for _ in range(options.repeats):
        for name, evaluation in names.items():
            seconds, returns, steps = timed(evaluation)
            rates[name].append(steps.sum() / seconds)
            lengths[name] = f"{returns.mean():.1f} ± {returns.std(ddof=1) / len(returns) ** 0.5:.1f}"
    best = max((name for name in names if name.startswith("SB3")), key=lambda name: np.median(rates[name]))
    print("| evaluation | steps/s | against SB3's best | mean return |\n|---|---|---|---|")
    for name, rate in rates.items():
        ratio = np.median(np.array(rate) / np.array(rates[best]))
        print(f"| {name} | {np.median(rate):.0f} | {ratio:.2f} | {lengths[name]} |")


if __name__ == "__main__":
    main()
