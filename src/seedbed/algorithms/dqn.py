"""Deep Q-learning with prioritized replay: double, dueling, n-step, each of them an option.

Mnih et al. 2015 (Nature 518), van Hasselt et al. 2016 (AAAI), Schaul et al. 2016 (ICLR), Wang et al. 2016
(ICML), Hessel et al. 2018 (AAAI). Reads like a single-file implementation whose arrays have one more leading
axis: the seeds, which learn side by side.
"""

import math
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from seedbed.algorithms.base import Recorder
from seedbed.algorithms.devices import Device, host, on, torch_device
from seedbed.algorithms.networks import Learner, check_widths
from seedbed.algorithms.q_policy import QNetwork, QPolicy, epsilon_greedy, masked_argmax
from seedbed.algorithms.replay import Replay
from seedbed.environments.lanes import Lanes
from seedbed.seeding import BlockStreams, Purpose

UPDATES_BETWEEN_LOGS = 250


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class DQN:
    """Deep Q-learning. Steps are environment steps per seed."""

    lanes: int = Field(1, ge=1, description="Training episodes side by side per seed")
    hidden: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        (128, 128), min_length=1, description="Widths of the hidden layers"
    )
    activation: Literal["relu", "tanh", "silu"] = Field("relu", description="Between the layers")
    output_gain: float = Field(
        0.01,
        gt=0,
        description="Gain of the last layer's initialisation. Small, so that values start near 0: at gain 1 "
        "the largest of hundreds of random values is chosen, and bootstrapped from, until all are tried",
    )
    learning_rate: float = Field(5e-4, gt=0, description="Adam's (Kingma and Ba 2015)")
    gamma: float = Field(0.85, ge=0, le=1, description="Discount per step")
    reward_scale: float = Field(
        0.3, gt=0, description="Rewards are multiplied by it, so that values stay near 1 in size"
    )
    buffer_size: int = Field(
        100_000, ge=1, description="Steps kept for replay, at most the budget (Mnih 2015)"
    )
    batch_size: int = Field(64, ge=1, description="Transitions per update")
    learning_starts: int = Field(500, ge=0, description="Steps before the first update")
    steps_per_update: int = Field(
        4, ge=1, description="Steps from one learning phase to the next, a multiple of lanes (Mnih 2015: 4)"
    )
    updates: int = Field(1, ge=1, description="Updates in each learning phase")
    target_rate: float = Field(
        0.01, gt=0, le=1, description="How far the target network moves to the learned one; 1 copies it"
    )
    target_interval: int = Field(1, ge=1, description="Updates between moves of the target network")
    double: bool = Field(
        True, description="Choose by the learned, value by the target network (van Hasselt 2016)"
    )
    dueling: bool = Field(True, description="Value and advantages apart (Wang 2016)")
    n_step: int = Field(3, ge=1, description="Rewards summed before the target network (Hessel 2018)")
    prioritized: bool = Field(True, description="Replay large errors more often (Schaul 2016)")
    alpha: float = Field(0.6, ge=0, le=1, description="Exponent of priorities; 0 is uniform (Schaul 2016)")
    beta: float = Field(
        0.4, ge=0, le=1, description="Exponent of importance weights at the start; 1 at the end (Schaul 2016)"
    )
    priority_epsilon: float = Field(1e-6, gt=0, description="Added to the size of an error (Schaul 2016)")
    exploration_fraction: float = Field(
        0.3, gt=0, le=1, description="Part of the budget over which exploration falls linearly from 1"
    )
    epsilon: float = Field(0.05, ge=0, le=1, description="Final probability of a random allowed action")
    huber: float | None = Field(
        1.0, gt=0, description="Error beyond which the loss is linear (Mnih 2015: 1); null squares all"
    )
    max_gradient_norm: float | None = Field(
        10.0, gt=0, description="Per seed (Wang 2016: 10); null never clips"
    )
    device: Device = "cpu"

    policy_class: ClassVar = QPolicy

    @model_validator(mode="after")
    def _consistent(self):
        if self.steps_per_update % self.lanes:
            raise ValueError(
                f"steps_per_update ({self.steps_per_update}) must be a multiple of lanes ({self.lanes})."
            )
        check_widths(self.hidden, self.activation)
        return self

    def train(self, lanes: Lanes, seeds: Sequence[int], budget: int, recorder: Recorder) -> QPolicy:
        """See ``Algorithm.train``.

        Raises:
            ValueError: the budget is not a multiple of lanes or not above ``learning_starts``, or the
                environment has several agents, or there is no such device.
        """
        spec, seeds = lanes.spec, list(seeds)
        self._check(spec, lanes.lanes, budget)
        sizes = [math.prod(spec.observation_shape), *self.hidden, spec.actions]
        network = QNetwork(sizes, self.activation, self.dueling, self.output_gain)
        device = torch_device(self.device)
        learner = Learner(
            {"q": network}, seeds, self.learning_rate, max_gradient_norm=self.max_gradient_norm, device=device
        )
        online = learner.layers["q"]
        target = learner.parameters.clone()
        target_layers = learner.layers_of("q", target)
        replay = Replay(
            spec, len(seeds), self.lanes, min(budget, self.buffer_size), self.n_step, self.gamma,
            self.alpha if self.prioritized else None, self.priority_epsilon,
        )  # fmt: skip
        exploration = BlockStreams(Purpose.EXPLORATION, seeds, (self.lanes, 2))
        draws = BlockStreams(Purpose.REPLAY, seeds, (self.batch_size,), block=64)
        learning_starts = max(self.learning_starts, self.n_step * self.lanes)

        def policy() -> QPolicy:
            return QPolicy(
                seeds, sizes, self.activation, network.plain(learner.parameters), {"epsilon": self.epsilon}
            )

        updates = 0
        if recorder.due(0):
            recorder.evaluate(0, policy())
        for steps in range(self.lanes, budget + 1, self.lanes):
            # Act
            observation, mask = lanes.observation, lanes.mask
            epsilon = max(self.epsilon, 1 - (1 - self.epsilon) * steps / (self.exploration_fraction * budget))
            with torch.inference_mode():
                x, allowed = on(device, observation, mask)
                action = host(masked_argmax(network.advantages(online, x.flatten(2)), allowed))
            action = epsilon_greedy(action, mask, spec.actions, exploration.uniforms(), epsilon)
            step = lanes.step(action)
            recorder.step(step)
            replay.add(observation, action, step)

            # Learn
            phase = steps >= learning_starts and steps % self.steps_per_update == 0
            for _ in range(self.updates if phase else 0):
                batch = replay.sample(draws.uniforms(), self.beta + (1 - self.beta) * steps / budget)
                batch = batch.on(device)
                with torch.no_grad():
                    chooser = online if self.double else target_layers
                    best = masked_argmax(network.advantages(chooser, batch.next_observation), batch.next_mask)
                    following = network.chosen(target_layers, batch.next_observation, best)
                    goal = self.reward_scale * batch.reward + batch.discount * following
                value = network.chosen(online, batch.observation, batch.action)
                loss = (batch.weight * self._size(value, goal)).mean(1)
                learner.step(loss.sum())
                replay.update(batch.index, host(value.detach() - goal))
                updates += 1
                if updates % self.target_interval == 0:
                    target.lerp_(learner.parameters, self.target_rate)
                if updates % UPDATES_BETWEEN_LOGS == 0:
                    recorder.log(
                        steps,
                        loss=host(loss),
                        value=host(value.mean(1)) / self.reward_scale,
                        epsilon=np.full(len(seeds), epsilon),
                    )

            if recorder.due(steps):
                recorder.evaluate(steps, policy())
        return policy()

    def _size(self, value: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
        """Half the squared error, linear beyond ``huber``."""
        if self.huber is None:
            return (value - goal).square() / 2
        return torch.nn.functional.huber_loss(value, goal, reduction="none", delta=self.huber)

    def _check(self, spec, lanes: int, budget: int) -> None:
        if spec.agents is not None:
            raise ValueError("DQN learns for one agent; this environment has several.")
        if lanes != self.lanes:
            raise ValueError(f"DQN was configured for {self.lanes} lanes and given {lanes}.")
        if budget % self.lanes:
            raise ValueError(f"The budget ({budget}) must be a multiple of lanes ({self.lanes}).")
        if budget <= self.learning_starts:
            raise ValueError(
                f"learning_starts ({self.learning_starts}) is not below the budget ({budget}): nothing would "
                f"be learned. Raise the budget or lower learning_starts."
            )
