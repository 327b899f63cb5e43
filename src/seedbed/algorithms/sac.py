"""Soft actor-critic for discrete actions: exact expectations, twin critics, automatic temperature.

Haarnoja et al. 2018 (arXiv 1812.05905), Christodoulou 2019 (arXiv 1910.07207). Expectations over actions are
sums over all allowed actions, never over drawn ones: a drawn discrete action has no gradient from its value.
All seeds learn side by side on one more leading axis.
"""

import math
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from seedbed.algorithms.base import Recorder
from seedbed.algorithms.categorical_policy import CategoricalPolicy
from seedbed.algorithms.devices import Device, host, on, torch_device
from seedbed.algorithms.networks import Learner, StackedMLP, affine, check_widths
from seedbed.algorithms.q_policy import QNetwork
from seedbed.algorithms.replay import Batch, Replay
from seedbed.algorithms.sampling import inverse_cdf, mask_logits
from seedbed.environments.base import Spec
from seedbed.environments.lanes import Lanes
from seedbed.seeding import BlockStreams, Purpose

UPDATES_BETWEEN_LOGS = 250


class _SoftValue(torch.autograd.Function):
    """One pass forward and one backward over [..., A] instead of the eight that autograd would record."""

    @staticmethod
    def forward(ctx, logits, values, temperature):
        log = torch.log_softmax(logits, -1)
        probabilities = torch.softmax(logits, -1)  # exp is several times slower where it meets -inf
        log.clamp_(min=math.log(torch.finfo(log.dtype).smallest_normal))  # 0 * -inf would be NaN
        entropy = torch.linalg.vecdot(probabilities, log).neg_()
        advantage = values - temperature.unsqueeze(-1) * log
        value = torch.linalg.vecdot(probabilities, advantage)
        ctx.save_for_backward(probabilities, advantage.sub_(value.unsqueeze(-1)))
        ctx.mark_non_differentiable(entropy)
        return value, entropy

    @staticmethod
    def backward(ctx, value_slope, _):
        probabilities, advantage = ctx.saved_tensors
        return probabilities * advantage * value_slope.unsqueeze(-1), None, None


def soft_value(
    logits: torch.Tensor, values: torch.Tensor, temperature: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """sum_a p(a) (Q(a) - temperature log p(a)) with p = softmax(logits), and the entropy of p.

    The gradient reaches the logits alone: d/d logit_a = p(a) (Q(a) - temperature log p(a) - the value). It
    vanishes where p is proportional to exp(Q / temperature), the best policy.

    Args:
        logits: [..., A]; -inf forbids an action.
        values: Q, [..., A], finite.
        temperature: broadcastable to [...].

    Returns:
        Both [...].
    """
    return _SoftValue.apply(logits, values, temperature)


class Temperature:
    """The weight of entropy, of each seed, moved by Adam until the entropy meets its target.

    Args:
        seeds: number of seeds, S.
        start: initial temperature.
        learning_rate: Adam's, on the logarithm; 0 keeps the temperature.
    """

    def __init__(self, seeds: int, start: float, learning_rate: float):
        self._log, self._mean, self._square = (
            np.full(seeds, math.log(start)),
            np.zeros(seeds),
            np.zeros(seeds),
        )
        self._learning_rate, self._steps = learning_rate, 0

    @property
    def value(self) -> np.ndarray:
        """[S] float64."""
        return np.array([math.exp(log) for log in self._log])

    def step(self, excess: np.ndarray) -> None:
        """One Adam step down log temperature x (entropy - target), given the excess entropy [S]."""
        self._steps += 1
        self._mean += 0.1 * (excess - self._mean)
        self._square += 0.001 * (excess * excess - self._square)
        mean, square = self._mean / (1 - 0.9**self._steps), self._square / (1 - 0.999**self._steps)
        self._log -= self._learning_rate * mean / (np.sqrt(square) + 1e-8)


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class SAC:
    """Discrete soft actor-critic. Steps are environment steps per seed."""

    lanes: int = Field(1, ge=1, description="Training episodes side by side per seed")
    hidden: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        (128, 128), min_length=1, description="Widths of the hidden layers of actor and critics"
    )
    activation: Literal["relu", "tanh", "silu"] = Field("relu", description="Between the layers")
    learning_rate: float = Field(1e-3, gt=0, description="Adam's, of actor and critics (Haarnoja 2018: 3e-4)")
    gamma: float = Field(0.9, ge=0, le=1, description="Discount per step")
    reward_scale: float = Field(
        0.3, gt=0, description="Rewards are multiplied by it, so that values stay near 1 in size"
    )
    buffer_size: int = Field(100_000, ge=1, description="Steps kept for replay, at most the budget")
    batch_size: int = Field(256, ge=1, description="Transitions per update (Haarnoja 2018)")
    learning_starts: int = Field(500, ge=0, description="Steps before the first update")
    steps_per_update: int = Field(
        1, ge=1, description="Steps from one learning phase to the next, a multiple of lanes"
    )
    updates: int = Field(1, ge=1, description="Updates in each learning phase")
    target_rate: float = Field(
        0.005, gt=0, le=1, description="How far target critics move to the learned ones (Haarnoja 2018)"
    )
    temperature: float = Field(0.2, gt=0, description="Weight of the policy's entropy at the start")
    temperature_rate: float = Field(
        1e-3, ge=0, description="Adam's rate on the logarithm of the temperature; 0 keeps the temperature"
    )
    entropy_share: float = Field(
        0.5,
        ge=0,
        lt=1,
        description="Wanted entropy, as a share of the logarithm of the number of actions allowed in each "
        "state. Below 1, so that it can be reached (Christodoulou 2019: 0.98)",
    )
    max_gradient_norm: float | None = Field(None, gt=0, description="Per seed; null never clips")
    device: Device = "cpu"

    policy_class: ClassVar = CategoricalPolicy

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.steps_per_update % self.lanes:
            raise ValueError(
                f"steps_per_update ({self.steps_per_update}) must be a multiple of lanes ({self.lanes})."
            )
        check_widths(self.hidden, self.activation)
        return self

    def train(self, lanes: Lanes, seeds: Sequence[int], budget: int, recorder: Recorder) -> CategoricalPolicy:
        """See ``Algorithm.train``.

        Raises:
            ValueError: the budget is not a multiple of lanes or not above ``learning_starts``, or the
                environment has several agents, or there is no such device.
        """
        spec, seeds = lanes.spec, list(seeds)
        check_budget(self, spec, lanes.lanes, budget)
        learner = SoftActorCritic(self, spec, seeds)
        replay = Replay(
            spec, len(seeds), self.lanes, max(min(budget, self.buffer_size), 2 * self.lanes),
            gamma=self.gamma, n_step=1, keep_masks=True,
        )  # fmt: skip
        exploration = BlockStreams(Purpose.EXPLORATION, seeds, (self.lanes,))
        draws = BlockStreams(Purpose.REPLAY, seeds, (self.batch_size,), block=64)

        if recorder.due(0):
            recorder.evaluate(0, learner.policy())
        for steps in range(self.lanes, budget + 1, self.lanes):
            observation, mask = lanes.observation, lanes.mask
            action = learner.draw(observation, mask, exploration.uniforms())
            step = lanes.step(action)
            recorder.step(step)
            replay.add(observation, action, step, mask)
            phase = steps >= max(self.learning_starts, self.lanes) and steps % self.steps_per_update == 0
            for _ in range(self.updates if phase else 0):
                learner.update(replay.sample(draws.uniforms()))
                if learner.updates % UPDATES_BETWEEN_LOGS == 0:
                    recorder.log(steps, **learner.diagnostics)
            if recorder.due(steps):
                recorder.evaluate(steps, learner.policy())
        return learner.policy()


def check_budget(algorithm: SAC, spec: Spec, lanes: int, budget: int) -> None:
    """Refuse what ``algorithm`` cannot be trained on.

    Raises:
        ValueError: several agents, other lanes than configured, a budget that is not a multiple of them or
            not above ``learning_starts``.
    """
    name = type(algorithm).__name__
    if spec.agents is not None or spec.action_array is not None:
        raise ValueError(f"{name} learns discrete actions for one agent; this environment has others.")
    if lanes != algorithm.lanes:
        raise ValueError(f"{name} was configured for {algorithm.lanes} lanes and given {lanes}.")
    if budget % lanes:
        raise ValueError(f"The budget ({budget}) must be a multiple of lanes ({lanes}).")
    if budget <= algorithm.learning_starts:
        raise ValueError(
            f"learning_starts ({algorithm.learning_starts}) is not below the budget ({budget}): nothing "
            f"would be learned. Raise the budget or lower learning_starts."
        )


class SoftActorCritic:
    """Actor, twin critics, their targets and temperature of S seeds, whatever experience they learn from.

    Args:
        settings: hyper-parameters.
        spec: the environment's shapes.
        seeds: one row each.
    """

    def __init__(self, settings: SAC, spec: Spec, seeds: Sequence[int]):
        self.settings, self.seeds = settings, list(seeds)
        self.sizes = [math.prod(spec.observation_shape), *settings.hidden, spec.actions]
        self.actor = StackedMLP(self.sizes, settings.activation, output_gain=0.01)
        self.critic = QNetwork(self.sizes, settings.activation, dueling=False, output_gain=0.01)
        self._device = torch_device(settings.device)
        self.learner = Learner(
            {"policy": self.actor, "q1": self.critic, "q2": self.critic},
            self.seeds, settings.learning_rate, max_gradient_norm=settings.max_gradient_norm,
            device=self._device,
        )  # fmt: skip
        self._critics = slice(self.actor.size, None)
        self._target = self.learner.parameters.clone()
        self._targets = [self.learner.layers_of(name, self._target) for name in ("q1", "q2")]
        self.temperature = Temperature(len(self.seeds), settings.temperature, settings.temperature_rate)
        self._alpha = self._temperature_there()
        self.updates = 0
        self.diagnostics: dict[str, np.ndarray] = {}
        """Of the last update, [S]."""

    def policy(self) -> CategoricalPolicy:
        """The actor as it is now."""
        parameters = self.learner.parameters[:, : self.actor.size].clone().cpu()
        return CategoricalPolicy(self.seeds, self.sizes, self.settings.activation, parameters)

    @torch.inference_mode()
    def draw(self, observation: np.ndarray, mask: np.ndarray | None, uniforms: np.ndarray) -> np.ndarray:
        """Actions [S, B] for observations [S, B, ...], masks [S, B, A] and uniforms [S, B]."""
        x, allowed = on(self._device, observation, mask)
        logits = mask_logits(self.actor(self.learner.layers["policy"], x.flatten(2)), allowed)
        return inverse_cdf(torch.softmax(logits, -1).cpu(), torch.from_numpy(uniforms)).numpy()

    def goal(self, batch: Batch) -> torch.Tensor:
        """What the critics should say, [S, B]: r + discount x soft value of s' by the target critics."""
        with torch.no_grad():
            logits = self.actor(self.learner.layers["policy"], batch.next_observation)
            values = torch.minimum(*(self.critic(layers, batch.next_observation) for layers in self._targets))
            following, _ = soft_value(mask_logits(logits, batch.next_mask), values, self._alpha)
            return self.settings.reward_scale * batch.reward + batch.discount * following

    def update(self, batch: Batch) -> None:
        """One gradient step of critics, actor and temperature; ``batch`` [S, B] comes from the CPU."""
        settings = self.settings
        count = batch.action.new_tensor(self.sizes[-1]) if batch.mask is None else batch.mask.sum(-1)
        wanted = settings.entropy_share * np.log(count.numpy())
        batch = batch.on(self._device)
        goal = self.goal(batch)
        loss, values = 0.0, []
        for name in ("q1", "q2"):
            layers = self.learner.layers[name]
            hidden = self.critic.hidden(layers, batch.observation)
            chosen = self.critic.chosen_from(layers, hidden, batch.action)
            loss = loss + (batch.weight * (chosen - goal).square()).mean(1) / 2
            with torch.no_grad():
                values.append(affine(hidden, *layers[-1]))
        logits = mask_logits(self.actor(self.learner.layers["policy"], batch.observation), batch.mask)
        value, entropy = soft_value(logits, torch.minimum(*values), self._alpha)
        self.learner.step((loss - value.mean(1)).sum())
        self._target[:, self._critics].lerp_(self.learner.parameters[:, self._critics], settings.target_rate)

        excess = (host(entropy) - wanted).mean(1)
        self.updates += 1
        if self.updates % UPDATES_BETWEEN_LOGS == 0:
            self.diagnostics = {
                "loss": host(loss) / 2,
                "value": host(value.mean(1)) / settings.reward_scale,
                "entropy": host(entropy.mean(1)),
                "temperature": self.temperature.value,
            }
        self.temperature.step(excess)
        self._alpha = self._temperature_there()

    def _temperature_there(self) -> torch.Tensor:
        """[S, 1] on the device."""
        return on(self._device, self.temperature.value.astype(np.float32)[:, None])[0]
