"""Proximal policy optimisation (Schulman et al. 2017) over masked discrete actions, many seeds at once.

Reads like a single-file implementation whose arrays have one more leading axis: [seeds, time, lanes, ...].
Details follow "The 37 implementation details of PPO" (Huang et al. 2022) where the paper is silent.
"""

import math
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from seedbed.algorithms.base import Recorder
from seedbed.algorithms.categorical_policy import CategoricalPolicy
from seedbed.algorithms.devices import Device, host, on, torch_device
from seedbed.algorithms.networks import Learner, StackedMLP, check_widths
from seedbed.algorithms.sampling import inverse_cdf, log_probability_and_entropy, mask_logits
from seedbed.environments.lanes import Lanes
from seedbed.seeding import BlockStreams, Purpose, stream


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class PPO:
    """Hyper-parameters; ``train`` learns from them. Defaults were chosen with ``benchmarks/tune.py``."""

    policy_class: ClassVar = CategoricalPolicy

    lanes: int = Field(10, ge=1, description="Training episodes side by side per seed.")
    rollout: int = Field(50, ge=1, description="Steps of each lane between two updates (T of the paper).")
    epochs: int = Field(4, ge=1, description="Passes over each rollout (K of the paper).")
    minibatches: int = Field(4, ge=1, description="Gradient steps per pass; a rollout is split evenly.")
    learning_rate: float = Field(3e-3, gt=0, description="Adam's step size (paper, table 3: 3e-4).")
    anneal_learning_rate: bool = Field(
        True, description="Lower the step size linearly to 0 over the budget (detail 4)."
    )
    reward_scale: float = Field(
        0.1, gt=0, description="Rewards are multiplied by it, so that values stay near 1 in size."
    )
    gamma: float = Field(0.99, ge=0, le=1, description="Discount (paper, table 3).")
    gae_lambda: float = Field(
        0.95, ge=0, le=1, description="Lambda of the advantage estimate (Schulman et al. 2016)."
    )
    clip_range: float = Field(0.2, gt=0, description="Clip of the probability ratio (paper, eq. 7).")
    value_clip: float | None = Field(
        None, gt=0, description="Clip of the change of the value estimate (detail 9); null for none."
    )
    value_coefficient: float = Field(0.5, ge=0, description="Weight of the value loss (c1, paper, eq. 9).")
    entropy_coefficient: float = Field(
        0.01, ge=0, description="Weight of the entropy bonus (c2, paper, eq. 9)."
    )
    max_gradient_norm: float = Field(
        0.5, gt=0, description="Global norm at which gradients are clipped (detail 11)."
    )
    hidden: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        (128, 128), description="Widths of the hidden layers of policy and value network, which share none."
    )
    activation: Literal["tanh", "relu", "silu"] = Field(
        "tanh", description="Function between the layers (tanh: paper, section 6.1)."
    )
    device: Device = "cpu"

    @model_validator(mode="after")
    def _consistent(self):
        check_widths(self.hidden, self.activation)
        return self

    def train(self, lanes: Lanes, seeds: Sequence[int], budget: int, recorder: Recorder) -> CategoricalPolicy:
        """Learn from ``budget`` environment steps per seed; see ``Algorithm.train``.

        The last rollout is as short as the budget demands.

        Raises:
            ValueError: the budget is not a multiple of the number of lanes; several agents; no such device.
        """
        if lanes.spec.agents is not None:
            raise ValueError("PPO learns for one agent; this environment has several.")
        if budget % lanes.lanes:
            raise ValueError(
                f"A budget of {budget} steps cannot be hit by {lanes.lanes} lanes of one step each. Choose "
                f"{budget - budget % lanes.lanes} steps, or another number of lanes."
            )
        inputs, actions = math.prod(lanes.spec.observation_shape), lanes.spec.actions
        networks = {
            "policy": StackedMLP((inputs, *self.hidden, actions), self.activation, output_gain=0.01),
            "value": StackedMLP((inputs, *self.hidden, 1), self.activation, output_gain=1.0),
        }
        learner = Learner(
            networks, seeds, self.learning_rate, 1e-5, self.max_gradient_norm,
            device=torch_device(self.device),
        )  # fmt: skip
        exploration = BlockStreams(Purpose.EXPLORATION, list(seeds), (lanes.lanes,))
        orders = [stream(Purpose.MINIBATCHES, seed) for seed in seeds]

        def policy() -> CategoricalPolicy:
            parameters = learner.parameters[:, : networks["policy"].size].clone().cpu()
            return CategoricalPolicy(seeds, networks["policy"].sizes, self.activation, parameters)

        if recorder.due(0):
            recorder.evaluate(0, policy())
        steps = 0
        while steps < budget:
            if self.anneal_learning_rate:
                learner.learning_rate = self.learning_rate * (1 - steps / budget)
            length = min(self.rollout, (budget - steps) // lanes.lanes)
            rollout = self._collect(lanes, learner, exploration, length, recorder)
            steps += length * lanes.lanes
            recorder.log(steps, **self._update(rollout, learner, orders))
            if recorder.due(steps):
                recorder.evaluate(steps, policy())
        return policy()

    @torch.inference_mode()
    def _collect(
        self, lanes: Lanes, learner: Learner, exploration: BlockStreams, length: int, recorder: Recorder
    ) -> "Rollout":
        """Act for ``length`` steps of every lane."""
        network, layers = learner.networks["policy"], learner.layers["policy"]
        rollout = Rollout.empty(lanes, length)
        for t in range(length):
            observation, mask = lanes.observation, lanes.mask
            x, allowed = on(learner.device, observation, mask)
            probabilities = torch.softmax(mask_logits(network(layers, x.flatten(2)), allowed), -1).cpu()
            action = inverse_cdf(probabilities, torch.from_numpy(exploration.uniforms()))
            step = lanes.step(action.numpy())
            recorder.step(step)

            rollout.observation[:, t], rollout.action[:, t] = observation, action
            rollout.log_probability[:, t] = probabilities.gather(2, action.unsqueeze(2)).squeeze(2).log()
            if mask is not None:
                rollout.mask[:, t] = mask
            rollout.reward[:, t] = self.reward_scale * step.reward
            rollout.next_observation[:, t] = step.final_observation
            rollout.terminated[:, t] = step.terminated
            rollout.ended[:, t] = step.terminated | step.truncated
        return rollout

    def _update(
        self, rollout: "Rollout", learner: Learner, orders: list[np.random.Generator]
    ) -> dict[str, np.ndarray]:
        """Improve policy and value on one rollout; returns diagnostics [S] (means over the last epoch)."""
        policy, value = learner.networks["policy"], learner.networks["value"]
        (seeds, length, lanes), device = rollout.reward.shape, learner.device
        samples = length * lanes

        def flat(tensor: torch.Tensor) -> torch.Tensor:
            """[S, T, L, ...] -> [S, samples, features] or [S, samples]"""
            return tensor.reshape(seeds, samples, *[-1] * (tensor.ndim > 3))

        with torch.inference_mode():
            values, next_values = (
                host(value(learner.layers["value"], flat(x)).view(seeds, length, lanes))
                for x in on(device, rollout.observation, rollout.next_observation)
            )
        advantages = generalized_advantages(
            rollout.reward,
            values,
            next_values,
            rollout.terminated,
            rollout.ended,
            self.gamma,
            self.gae_lambda,
        )
        returns = advantages + values
        data = [
            flat(tensor).flatten(0, 1)
            for tensor in on(
                device,
                rollout.observation,
                rollout.action,
                rollout.log_probability,
                advantages.astype(np.float32),
                returns.astype(np.float32),
                values,
                *([] if rollout.mask is None else [rollout.mask]),
            )
        ]
        first = torch.arange(seeds, device=device).unsqueeze(1) * samples
        kl, clipped, entropies = [], [], []
        for epoch in range(self.epochs):
            order = first + on(device, np.stack([draw.permutation(samples) for draw in orders]))[0]
            for rows in order.tensor_split(min(self.minibatches, samples), 1):
                x, action, old_log_probability, advantage, target, old_value, *mask = (
                    array.index_select(0, rows.reshape(-1)).unflatten(0, rows.shape) for array in data
                )
                advantage = advantage - advantage.mean(1, keepdim=True)
                advantage /= advantage.square().mean(1, keepdim=True).sqrt() + 1e-8

                logits = mask_logits(policy(learner.layers["policy"], x), *mask or [None])
                log_probability, entropy = log_probability_and_entropy(logits, action)
                log_ratio = log_probability - old_log_probability
                ratio = log_ratio.exp()
                clipped_ratio = ratio.clamp(1 - self.clip_range, 1 + self.clip_range)
                policy_loss = -torch.minimum(ratio * advantage, clipped_ratio * advantage)

                estimate = value(learner.layers["value"], x).squeeze(2)
                value_loss = (estimate - target).square()
                if self.value_clip is not None:
                    near = old_value + (estimate - old_value).clamp(-self.value_clip, self.value_clip)
                    value_loss = torch.maximum(value_loss, (near - target).square())

                loss = policy_loss + self.value_coefficient / 2 * value_loss
                loss = loss - self.entropy_coefficient * entropy
                learner.step(loss.mean(1).sum())
                if epoch == self.epochs - 1:
                    with torch.no_grad():
                        kl.append((ratio - 1 - log_ratio).mean(1))
                        clipped.append((ratio != clipped_ratio).float().mean(1))
                        entropies.append(entropy.mean(1))
        unexplained = (returns - values).reshape(seeds, -1).var(1)
        variance = returns.reshape(seeds, -1).var(1)
        return {
            "approx_kl": host(torch.stack(kl).mean(0)),
            "clip_fraction": host(torch.stack(clipped).mean(0)),
            "entropy": host(torch.stack(entropies).mean(0)),
            "explained_variance": 1 - unexplained / np.where(variance > 0, variance, np.nan),
        }


class Rollout(NamedTuple):
    """What was seen and done between two updates, [S, T, L, ...]."""

    observation: np.ndarray
    mask: np.ndarray | None
    """allowed actions [S, T, L, actions] bool"""
    action: np.ndarray
    log_probability: np.ndarray
    """of the action when it was drawn"""
    reward: np.ndarray
    next_observation: np.ndarray
    """after the step and before any reset"""
    terminated: np.ndarray
    ended: np.ndarray
    """terminated or truncated"""

    @classmethod
    def empty(cls, lanes: Lanes, length: int) -> "Rollout":
        """Room for ``length`` steps of every lane."""
        shape, spec = (len(lanes.seeds), length, lanes.lanes), lanes.spec
        return cls(
            observation=np.empty((*shape, *spec.observation_shape), np.float32),
            mask=np.empty((*shape, spec.actions), bool) if spec.masked else None,
            action=np.empty(shape, np.int64),
            log_probability=np.empty(shape, np.float32),
            reward=np.empty(shape),
            next_observation=np.empty((*shape, *spec.observation_shape), np.float32),
            terminated=np.empty(shape, bool),
            ended=np.empty(shape, bool),
        )


def generalized_advantages(
    reward: np.ndarray,
    value: np.ndarray,
    next_value: np.ndarray,
    terminated: np.ndarray,
    ended: np.ndarray,
    gamma: float,
    gae_lambda: float,
) -> np.ndarray:
    """Generalized advantage estimates (Schulman et al. 2016, eq. 16), all arrays [S, T, L].

    A truncated episode is worth what its last observation promises; a terminated one is worth nothing more.

    Args:
        reward: of each step.
        value, next_value: estimates for the observations before and after the step (before any reset).
        terminated: the episode reached an end of its own; no bootstrapping.
        ended: terminated or truncated; the sum over later steps stops here.
        gamma, gae_lambda: discount and lambda.

    Returns:
        Advantages [S, T, L] float64.
    """
    advantage = reward + gamma * next_value * ~terminated - value
    decay = gamma * gae_lambda * ~ended
    for t in range(reward.shape[1] - 2, -1, -1):
        advantage[:, t] += decay[:, t] * advantage[:, t + 1]
    return advantage
