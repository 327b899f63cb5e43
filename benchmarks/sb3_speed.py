"""Seedbed's stacked seeds against Stable-Baselines3 running the same seeds one after the other.

    python benchmarks/sb3_speed.py ppo as_specified --seeds 20 --steps 10000
    python benchmarks/sb3_speed.py dqn CartPole --seeds 20 --steps 10000 --peer-seeds 5

Both learn on the same dynamics through the same lanes, with the same networks, lanes, updates and
hyper-parameters, on one thread; CPU time of this process counts. The final policies of both are evaluated on
the same new episodes. Needs stable-baselines3 beside Seedbed's own requirements.
"""

import argparse
import os
import time

os.environ["OMP_NUM_THREADS"] = "1"
import seedbed  # isort: skip  # noqa: F401

import numpy as np
import stable_baselines3
import torch
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

from seedbed.algorithms.base import StatelessPolicy
from seedbed.algorithms.ppo import PPO
from seedbed.environments.cart_pole import CartPole
from seedbed.environments.interview import MockInterview
from seedbed.environments.lanes import DynamicsLanes
from seedbed.evaluation import evaluate
from seedbed.seeding import Purpose
from seedbed.training import train

ACTIVATIONS = {"relu": torch.nn.ReLU, "tanh": torch.nn.Tanh, "silu": torch.nn.SiLU}
EPISODES = 100


class LanesVecEnv(VecEnv):
    """The lanes of one seed as a Stable-Baselines3 environment; rewards are multiplied by ``scale``."""

    def __init__(self, dynamics, seed: int, lanes: int, scale: float):
        if dynamics.spec.masked:
            raise SystemExit("Stable-Baselines3's PPO and DQN know no action masks; choose as_specified.")
        self._lanes, self._scale = DynamicsLanes(dynamics, Purpose.TUNING, [seed], lanes), scale
        spec = dynamics.spec
        observations = spaces.Box(spec.observation_low, spec.observation_high, dtype=np.float32)
        super().__init__(lanes, observations, spaces.Discrete(spec.actions))

    def reset(self):
        return self._lanes.observation[0]

    def step_async(self, actions):
        self._actions = actions

    def step_wait(self):
        step = self._lanes.step(self._actions[None])
        infos = [{} for _ in range(self.num_envs)]
        ended = (step.terminated | step.truncated)[0]
        for lane in np.flatnonzero(ended):
            infos[lane]["terminal_observation"] = step.final_observation[0, lane]
            infos[lane]["TimeLimit.truncated"] = bool((step.truncated & ~step.terminated)[0, lane])
        return step.observation[0], (self._scale * step.reward[0]).astype(np.float32), ended, infos

    def close(self):
        pass

    def get_attr(self, attr_name, indices=None):
        return [None] * self.num_envs

    def set_attr(self, attr_name, value, indices=None):
        raise AttributeError(attr_name)

    def env_method(self, method_name, *args, indices=None, **kwargs):
        raise AttributeError(method_name)

    def env_is_wrapped(self, wrapper_class, indices=None):
        return [False] * self.num_envs


class PeerPolicy(StatelessPolicy):
    """Trained Stable-Baselines3 models side by side, one per seed."""

    modes = ("greedy", "sampled")

    def __init__(self, seeds, dynamics, models, mode):
        super().__init__(seeds, dynamics)
        self.models, self.mode = models, mode

    def act(self, observation, mask, uniforms, memory, first):
        greedy = self.mode == "greedy"
        pairs = zip(self.models, observation, strict=True)
        return np.stack([model.predict(rows, deterministic=greedy)[0] for model, rows in pairs]), None


def make_peer_ppo(ours: PPO, environment: VecEnv, seed: int):
    """Stable-Baselines3's PPO with our hyper-parameters; its value loss lacks the factor 1/2."""
    rate = ours.learning_rate
    return stable_baselines3.PPO(
        "MlpPolicy", environment, device="cpu", seed=seed,
        learning_rate=(lambda left: rate * left) if ours.anneal_learning_rate else rate,
        n_steps=ours.rollout, batch_size=ours.rollout * ours.lanes // ours.minibatches,
        n_epochs=ours.epochs, gamma=ours.gamma, gae_lambda=ours.gae_lambda,
        clip_range=ours.clip_range, clip_range_vf=ours.value_clip,
        ent_coef=ours.entropy_coefficient, vf_coef=ours.value_coefficient / 2,
        max_grad_norm=ours.max_gradient_norm,
        policy_kwargs={
            "net_arch": {"pi": list(ours.hidden), "vf": list(ours.hidden)},
            "activation_fn": ACTIVATIONS[ours.activation],
        },
    )  # fmt: skip


def make_peer_dqn(ours, environment: VecEnv, seed: int):
    """Stable-Baselines3's DQN with our hyper-parameters, as far as it has them."""
    return stable_baselines3.DQN(
        "MlpPolicy", environment, device="cpu", seed=seed, learning_rate=ours.learning_rate,
        buffer_size=ours.buffer_size, learning_starts=ours.learning_starts, batch_size=ours.batch_size,
        tau=ours.target_rate, gamma=ours.gamma, train_freq=ours.steps_per_update // ours.lanes,
        gradient_steps=ours.updates, target_update_interval=ours.target_interval * ours.steps_per_update,
        exploration_fraction=ours.exploration_fraction, exploration_final_eps=ours.epsilon,
        max_grad_norm=ours.max_gradient_norm,
        policy_kwargs={"net_arch": list(ours.hidden), "activation_fn": ACTIVATIONS[ours.activation]},
    )  # fmt: skip


def final_returns(policy, dynamics, mode: str) -> np.ndarray:
    """Mean return of each seed's final policy on new episodes."""
    table = evaluate(policy.in_mode(mode), dynamics, Purpose.TUNING, range(EPISODES), lanes=EPISODES).episodes
    return table.groupby("seed")["return"].mean().to_numpy()


def describe(returns: np.ndarray) -> str:
    error = returns.std(ddof=1) / len(returns) ** 0.5 if len(returns) > 1 else np.nan
    return f"{returns.mean():.1f} ± {error:.1f}"


def main() -> None:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("algorithm", choices=["ppo", "dqn", "dqn_full"], help="dqn_full: our DQN's defaults")
    parser.add_argument("environment", help="CartPole, or a preset of the mock interview without masks")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--steps", type=int, default=10_000, help="environment steps per seed")
    parser.add_argument("--peer-seeds", type=int, help="seeds that the peer runs, default all")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--lanes", type=int, help="overrides the default of the algorithm")
    options = parser.parse_args()

    torch.set_num_threads(1)
    small = options.environment == "CartPole"
    dynamics = CartPole() if small else MockInterview(preset=options.environment)
    settings = {"hidden": (64, 64) if small else (128, 128)}
    if options.lanes:
        settings["lanes"] = options.lanes
    if options.algorithm == "ppo":
        ours, make_peer = PPO(**settings), make_peer_ppo
    else:
        from seedbed.algorithms.dqn import DQN

        if options.algorithm == "dqn":
            settings |= {"double": False, "dueling": False, "prioritized": False, "n_step": 1}
        ours, make_peer = DQN(**settings), make_peer_dqn
    seeds = list(range(1000, 1000 + options.seeds))
    peer_seeds = seeds[: options.peer_seeds]

    def run_ours(budget: int):
        start = time.process_time()
        policy = train(ours, dynamics, seeds, budget, curve=None, purpose=Purpose.TUNING).policy
        return len(seeds) * budget / (time.process_time() - start), policy

    def run_peer(budget: int):
        start, models = time.process_time(), []
        for seed in peer_seeds:
            model = make_peer(ours, LanesVecEnv(dynamics, seed, ours.lanes, ours.reward_scale), seed)
            models.append(model.learn(budget))
        return len(peer_seeds) * budget / (time.process_time() - start), models

    print(ours)
    rates = []
    for repeat in range(options.repeats):
        rate, policy = run_ours(options.steps)
        peer_rate, models = run_peer(options.steps)
        rates.append((rate, peer_rate))
        print(f"repeat {repeat}: {rate:.0f} / {peer_rate:.0f} steps/s = {rate / peer_rate:.2f}", flush=True)
    ours_median, peer_median = np.median(rates, axis=0)
    ratio = np.median([rate / peer_rate for rate, peer_rate in rates])
    heads = "algorithm", "environment", "steps/s", "SB3", "ratio", "greedy return", "SB3", "sampled", "SB3"
    print("|", " | ".join(heads), "|")
    cells = [f"{options.algorithm} x {options.seeds}", f"{options.environment}, {options.steps} steps"]
    cells += [f"{ours_median:.0f}", f"{peer_median:.0f}", f"{ratio:.1f}"]
    for mode in ("greedy", "sampled"):
        cells.append(describe(final_returns(policy, dynamics, mode)))
        cells.append(describe(final_returns(PeerPolicy(peer_seeds, dynamics, models, mode), dynamics, mode)))
    print("|", " | ".join(cells), "|")


if __name__ == "__main__":
    main()
