"""Streaming advantage actor-critic (Mnih et al. 2016) with one-step targets over masked discrete actions.

The synchronous form of the paper's A3C, with one-step targets: each step of the lanes gives a gradient, the
gradients of a few steps are summed and then applied, and no step is kept. Reads like a single-file
implementation whose arrays have one more leading axis: [seeds, lanes, ...].
"""

import math
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from seedbed.algorithms.base import Recorder
from seedbed.algorithms.categorical_policy import CategoricalPolicy
from seedbed.algorithms.devices import Device, host, on, torch_device
from seedbed.algorithms.networks import Learner, StackedMLP, check_widths
from seedbed.algorithms.sampling import inverse_cdf, log_probability_and_entropy, mask_logits
from seedbed.environments.lanes import Lanes, LaneStep
from seedbed.seeding import BlockStreams, Purpose

UPDATES_BETWEEN_LOGS = 250


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class A2C:
    """Hyper-parameters; ``train`` learns from them. Defaults were chosen with ``benchmarks/tune.py``."""

    policy_class: ClassVar = CategoricalPolicy

    lanes: int = Field(16, ge=1, description="Training episodes side by side per seed (paper: 16 actors).")
    update_every: int = Field(
        4, ge=1, description="Steps of each lane whose gradients are summed for one update (paper: t_max, 5)."
    )
    learning_rate: float = Field(3e-3, gt=0, description="Adam's step size (the paper has RMSProp).")
    anneal_learning_rate: bool = Field(
        True, description="Lower the step size linearly to 0 over the budget (paper, section 8)."
    )
    reward_scale: float = Field(
        0.1, gt=0, description="Rewards are multiplied by it, so that values stay near 1 in size."
    )
    gamma: float = Field(0.99, ge=0, le=1, description="Discount (paper: 0.99).")
    value_coefficient: float = Field(0.5, ge=0, description="Weight of the value loss.")
    entropy_coefficient: float = Field(0.01, ge=0, description="Weight of the entropy bonus (paper: 0.01).")
    max_gradient_norm: float | None = Field(
        0.5, gt=0, description="Global norm at which a seed's gradient is clipped; null never clips."
    )
    hidden: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        (64, 64), description="Widths of the hidden layers of policy and value network, which share none."
    )
    activation: Literal["tanh", "relu", "silu"] = Field("tanh", description="Function between the layers.")
    device: Device = "cpu"

    @model_validator(mode="after")
    def _exact(self):
        check_widths(self.hidden, self.activation)
        return self

    def train(self, lanes: Lanes, seeds: Sequence[int], budget: int, recorder: Recorder) -> CategoricalPolicy:
        """Learn from ``budget`` environment steps per seed; see ``Algorithm.train``.

        The last update sums as few steps as the budget demands.

        Raises:
            ValueError: the budget is not a multiple of the number of lanes; several agents; no such device.
        """
        if lanes.spec.agents is not None:
            raise ValueError("A2C learns for one agent; this environment has several.")
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

        def policy() -> CategoricalPolicy:
            parameters = learner.parameters[:, : networks["policy"].size].clone().cpu()
            return CategoricalPolicy(seeds, networks["policy"].sizes, self.activation, parameters)

        if recorder.due(0):
            recorder.evaluate(0, policy())
        steps = updates = 0
        while steps < budget:
            if self.anneal_learning_rate:
                learner.learning_rate = self.learning_rate * (1 - steps / budget)
            summed = min(self.update_every, (budget - steps) // lanes.lanes)
            for _ in range(summed):
                # [S, L, inputs]: what the lanes show now, and how they answer
                seen, mask = on(learner.device, lanes.observation, lanes.mask)
                observation = seen.flatten(2)
                logits = mask_logits(networks["policy"](learner.layers["policy"], observation), mask)
                probabilities = torch.softmax(logits.detach(), -1).cpu()
                action = inverse_cdf(probabilities, torch.from_numpy(exploration.uniforms()))
                step = lanes.step(action.numpy())
                recorder.step(step)

                estimate = networks["value"](learner.layers["value"], observation).squeeze(2)
                target, chosen = self._target(step, learner, action)
                advantage = target - estimate
                log_probability, entropy = log_probability_and_entropy(logits, chosen)
                loss = -log_probability * advantage.detach() + self.value_coefficient / 2 * advantage.square()
                loss = loss - self.entropy_coefficient * entropy
                learner.accumulate(loss.mean(1).sum() / summed)
            learner.descend()
            steps += summed * lanes.lanes
            updates += 1
            if updates % UPDATES_BETWEEN_LOGS == 0 or steps == budget:
                recorder.log(steps, **_diagnostics(entropy, advantage, estimate))
            if recorder.due(steps):
                recorder.evaluate(steps, policy())
        return policy()

    def _target(
        self, step: LaneStep, learner: Learner, action: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """One-step targets r + gamma V(s'), [S, L] float32, and the actions on the learner's device.

        V(s') of the observation before any reset: a truncated episode is worth what it promises there, a
        terminated one is worth nothing more.
        """
        with torch.no_grad():
            scaled = (self.reward_scale * step.reward).astype(np.float32)
            following, goes_on, reward, chosen = on(
                learner.device, step.final_observation, ~step.terminated, scaled, action
            )
            promised = learner.networks["value"](learner.layers["value"], following.flatten(2)).squeeze(2)
            promised.mul_(goes_on)
            return reward + self.gamma * promised, chosen


def _diagnostics(
    entropy: torch.Tensor, advantage: torch.Tensor, estimate: torch.Tensor
) -> dict[str, np.ndarray]:
    """Means [S] over the lanes of one step."""
    return {
        "entropy": host(entropy.mean(1)),
        "td_error": host(advantage.square().mean(1).sqrt()),
        "value": host(estimate.mean(1)),
    }
