"""An ensemble of probabilistic models of an environment, learned from its steps.

Chua et al. 2018 (PETS, arXiv 1805.12114): bootstrapped networks predict a Gaussian over the change of the
observation, with log variances between learned soft limits. Janner et al. 2019 (MBPO, arXiv 1906.08253):
the elites are the members with the lowest loss on steps held out. Rows are seeds x members.
"""

from collections.abc import Sequence
from typing import Annotated, NamedTuple, Self

import numpy as np
import torch
from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from seedbed.algorithms.devices import CPU, host, on
from seedbed.algorithms.networks import ALIGNMENT, Layers, Learner, StackedMLP, check_widths
from seedbed.algorithms.world_model import ModelShape, WorldModel, variance
from seedbed.environments.base import Knowledge, Spec
from seedbed.environments.lanes import LaneStep
from seedbed.seeding import Purpose, stream

HOLD_OUT_EVERY = 10
"""Every so many steps one is held out for validation, the same for all members."""
VALIDATION_ROWS = 1000
"""The latest held-out steps are what members are compared on."""
INITIAL_LOG_VARIANCES = (-8.0, 0.5)
"""Soft limits at the start, in units of the mean squared change (Chua 2018: -10, 0.5)."""
LIMIT_WEIGHT = 0.01
"""Pull of the soft limits towards each other (Chua 2018)."""


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class EnsembleSettings:
    """The model of the environment."""

    members: int = Field(5, ge=2, description="Networks (Chua 2018: 5; Janner 2019: 7)")
    elites: int = Field(
        5, ge=2, description="Members of lowest validation loss that predict (Janner 2019: 5 of 7)"
    )
    hidden: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        (128, 128), min_length=1, description="Widths of the hidden layers, SiLU between them"
    )
    learning_rate: float = Field(1e-3, gt=0, description="Adam's (Chua 2018)")
    weight_decay: float = Field(1e-5, ge=0, description="Weight of the squared parameters (Chua 2018)")
    batch_size: int = Field(256, ge=16, multiple_of=16, description="Steps per batch of a member")
    rounds: int = Field(
        4, ge=1, description="Rounds per fit; after each, a member keeps its parameters of lowest loss so far"
    )
    batches: int = Field(50, ge=1, description="Batches per round")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.elites > self.members:
            raise ValueError(f"elites ({self.elites}) must not exceed members ({self.members}).")
        check_widths(self.hidden, "silu")
        return self


class EnsembleNetwork(StackedMLP):
    """Outputs [..., mean (D), raw log variance (D)]; the logit of the event stands in the last mean's place.

    Beside its layers it holds the soft limits of the log variance, [S, 1, D] each.
    """

    def __init__(self, shape: ModelShape, hidden: Sequence[int]):
        self.width = shape.width
        super().__init__([shape.inputs, *hidden, 2 * shape.width], "silu", output_gain=0.01)
        self.limits = self.size
        self.size += 2 * self.width

    def initialise(self, row: torch.Tensor, generator: np.random.Generator) -> None:
        """See ``StackedMLP.initialise``; limits at ``INITIAL_LOG_VARIANCES``."""
        super().initialise(row, generator)
        row[self.limits : self.limits + self.width] = INITIAL_LOG_VARIANCES[0]
        row[self.limits + self.width : self.limits + 2 * self.width] = INITIAL_LOG_VARIANCES[1]

    def layers(self, flat: torch.Tensor) -> Layers:
        """Weights and biases, then the lower and upper limits."""
        limits = flat[:, None, self.limits : self.limits + 2 * self.width]
        return [*super().layers(flat), (limits[..., : self.width], limits[..., self.width :])]

    def __call__(self, layers: Layers, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """[S, B, in] -> mean and variance [S, B, D], and the event's logit [S, B]."""
        out = super().__call__(layers[:-1], x)
        mean, raw = out.split(self.width, -1)
        return mean, variance(raw.clamp(-30, 30), *layers[-1]), mean[..., -1]


class _Data(NamedTuple):
    """What an ensemble learns from: N rows of each of S seeds, one seed after the other."""

    inputs: torch.Tensor
    """[S x N, inputs]"""
    targets: torch.Tensor
    """[S x N, D]"""
    event: torch.Tensor
    """[S x N]: 0, 1, or -1 where there was none to see"""
    copies: np.ndarray
    """[S, N, members]: how often a row is in each member's sample; 0 if held out"""
    held_out: np.ndarray
    """Rows to validate on"""
    scales: dict[str, np.ndarray]
    """See ``WorldModel``"""

    def at(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Inputs, targets and events at rows [R, B]."""
        flat = rows.reshape(-1)
        x, target = (part.index_select(0, flat).view(*rows.shape, -1) for part in self[:2])
        return x, target, self.event.take(rows)


class Ensemble:
    """Remembers steps of all seeds and lanes, and fits the members to them.

    Args:
        settings: hyper-parameters.
        spec: the environment's shapes.
        knowledge: what need not be learned; None learns reward and termination as well.
        seeds: training seeds, [S].
        lanes: steps per seed that come at a time, L.
        capacity: steps kept per seed, the latest.
        device: where members are fitted; what is remembered and the model that results are on the CPU.
    """

    def __init__(
        self,
        settings: EnsembleSettings,
        spec: Spec,
        knowledge: Knowledge | None,
        seeds: Sequence[int],
        lanes: int,
        capacity: int,
        device: torch.device = CPU,
    ):
        self.settings, self.spec, self.knowledge, self.seeds = settings, spec, knowledge, list(seeds)
        self.shape = ModelShape.of(spec, knowledge)
        self._network = EnsembleNetwork(self.shape, settings.hidden)
        self._learner = Learner(
            {"model": self._network}, self.seeds, settings.learning_rate,
            weight_decay=settings.weight_decay, members=settings.members, part=1, device=device,
        )  # fmt: skip
        self._device = device
        self._real = (torch.arange(self.shape.width, device=device) < self.shape.targets).float()
        self._generators = [stream(Purpose.MODEL, seed) for seed in self.seeds]
        slots = max(-(-capacity // lanes), HOLD_OUT_EVERY)
        shape, d = (len(self.seeds), slots, lanes), int(np.prod(spec.observation_shape))
        self.observation, self.following = np.zeros((2, *shape, d), np.float32)
        self.action = np.zeros(shape, np.int64)
        self.reward = np.zeros(shape)
        self.terminated, self.truncated = np.zeros((2, *shape), bool)
        self._event = np.zeros(shape, np.int8)
        self._copies = np.zeros((*shape, settings.members), np.uint8)
        self._added = 0
        self.diagnostics: dict[str, np.ndarray] = {}
        """Of the last fit, [S]: losses; squared error over that of predicting no change, and standard
        deviation of the members' means in units of a number's usual change, both averaged over numbers; Brier
        score of the event's probability (Brier 1950). All but ``model_loss`` on the steps held out."""

    @property
    def slots(self) -> int:
        """Steps kept per lane."""
        return min(self._added, self.action.shape[1])

    @property
    def order(self) -> np.ndarray:
        """Where steps lie, the oldest first, [slots]."""
        return (self._added - self.slots + np.arange(self.slots)) % self.action.shape[1]

    def add(self, observation: np.ndarray, action: np.ndarray, step: LaneStep) -> None:
        """Note that ``action`` [S, L] at ``observation`` [S, L, ...] led to ``step``.

        Each member gets as many copies of a step as a Poisson number of mean 1 says (Oza and Russell 2001):
        a bootstrap sample that grows with the data and stays each member's own.
        """
        slot, (seeds, _, lanes) = self._added % self.action.shape[1], self.action.shape
        self.observation[:, slot] = observation.reshape(seeds, lanes, -1)
        self.following[:, slot] = step.final_observation.reshape(seeds, lanes, -1)
        self.action[:, slot] = action
        self.reward[:, slot] = step.reward
        self.terminated[:, slot], self.truncated[:, slot] = step.terminated, step.truncated
        if self.knowledge is None:
            self._event[:, slot] = step.terminated
        else:
            self._event[:, slot] = -1 if (fact := self.knowledge.outcome) is None else step.facts[fact]
        for copies, generator in zip(self._copies[:, slot], self._generators, strict=True):
            copies[:] = generator.poisson(1.0, copies.shape)
        self._added += 1

    def fit(self) -> WorldModel:
        """Train all members on what is remembered, from their present parameters; the model that results."""
        settings, members = self.settings, self.settings.members
        data = self._standardised()
        learner, layers = self._learner, self._learner.layers["model"]
        best, lowest = learner.parameters.clone(), self._validate(data, learner.parameters)
        for _ in range(settings.rounds):
            batches = self._batches(data)
            for batch in range(settings.batches):
                rows = batches[:, batch]
                x, target, event = data.at(rows)
                mean, variances, logit = self._network(layers, x)
                error = self._losses(mean, variances, logit, target, event)
                low, high = layers[-1]
                limits = LIMIT_WEIGHT * ((high - low) * self._real).sum((1, 2))
                learner.step((error.mean(1) + limits).sum())
            losses = self._validate(data, learner.parameters)
            improved = (losses < lowest) | (len(data.held_out) == 0)
            lowest = torch.where(improved, losses, lowest)
            best = torch.where(improved[:, None], learner.parameters, best)
        with torch.no_grad():
            learner.parameters.copy_(best)
        model = self._model(data, lowest.view(-1, members))
        self._diagnose(data, error.detach().mean(1).view(-1, members), lowest.view(-1, members))
        return model

    def _standardised(self) -> "_Data":
        """What is remembered, as inputs of mean 0 and deviation 1 and changes of mean square 1."""
        seeds, slots, lanes = len(self.seeds), self.slots, self.action.shape[2]
        rows, shape = slots * lanes, self.shape

        def latest(array: np.ndarray) -> np.ndarray:
            return np.ascontiguousarray(array[:, self.order]).reshape(seeds, rows, *array.shape[3:])

        observation, following, actions = map(latest, (self.observation, self.following, self.action))
        reward = latest(self.reward)
        arrival = self._added - slots + np.arange(slots)
        held_out = np.repeat(arrival % HOLD_OUT_EVERY == HOLD_OUT_EVERY - 1, lanes)
        train = ~held_out
        inputs, targets = torch.zeros(seeds, rows, shape.inputs), torch.zeros(seeds, rows, shape.width)
        scales = {"centre": [], "spread": [], "size": []}
        for row in range(seeds):
            entries = shape.entries[actions[row]]
            seen = np.take_along_axis(observation[row], entries, 1).astype(np.float64)
            change = (np.take_along_axis(following[row], entries, 1) - seen)[:, : shape.changes]
            if shape.learns_reward:
                change = np.concatenate([change, reward[row][:, None]], -1)
            centre, spread = seen[train].mean(0), seen[train].std(0)
            size = np.sqrt((change[train] ** 2).mean(0))
            # A number that never moved has no scale of its own; rounding alone must not give it one.
            spread = np.where(spread > 1e-9 * np.abs(seen).max(0), spread, 1.0)
            size = np.where(size > 0, size, 1.0)
            inputs[row, :, : shape.observed] = torch.from_numpy((seen - centre) / spread)
            inputs[row, :, shape.observed :] = torch.from_numpy(shape.encoding[actions[row]])
            targets[row, :, : shape.targets] = torch.from_numpy(change / size)
            for values, value in zip(scales.values(), (centre, spread, size), strict=True):
                values.append(value.astype(np.float32))
        return _Data(
            *on(
                self._device,
                inputs.view(seeds * rows, -1),
                targets.view(seeds * rows, -1),
                latest(self._event).reshape(-1).astype(np.float32),
            ),
            latest(self._copies) * train[:, None].astype(np.uint8),
            np.flatnonzero(held_out)[-VALIDATION_ROWS:],
            {name: np.stack(values) for name, values in scales.items()},
        )

    def _batches(self, data: "_Data") -> torch.Tensor:
        """Rows of ``data`` for one round: [S x members, batches, B], each from the member's own sample."""
        settings, chosen, rows = self.settings, [], data.copies.shape[1]
        for seed, generator in enumerate(self._generators):
            draws = generator.random((settings.members, settings.batches, settings.batch_size))
            for member in range(settings.members):
                copies = data.copies[seed, :, member]
                own = np.repeat(np.arange(rows), copies if copies.any() else 1)
                chosen.append(own[(draws[member] * len(own)).astype(np.int64)] + seed * rows)
        return on(self._device, np.stack(chosen))[0]

    def _losses(self, mean, variances, logit, target, event) -> torch.Tensor:
        """Negative log likelihood without its constant, [R, B]: summed over numbers, event included."""
        gaussian = (mean - target).square() / variances + variances.log()
        certain = torch.nn.functional.softplus(torch.where(event > 0.5, -logit, logit))
        return (gaussian * self._real).sum(-1) / 2 + certain * (event >= 0)

    @torch.inference_mode()
    def _validate(self, data: "_Data", parameters: torch.Tensor) -> torch.Tensor:
        """Mean loss of each row on the steps held out, [S x members]; 0 before there are any."""
        if not len(data.held_out):
            return torch.zeros(len(parameters), device=self._device)
        mean, variances, logit, target, event = self._held_out(data, parameters)
        return self._losses(mean, variances, logit, target, event)[:, : len(data.held_out)].mean(1)

    def _held_out(self, data: "_Data", parameters: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Predictions and truth on the steps held out, padded to a multiple of 16 rows by the last one."""
        held_out = np.pad(data.held_out, (0, -len(data.held_out) % ALIGNMENT), "edge")
        seeds, members = len(self.seeds), self.settings.members
        rows = held_out[None] + data.copies.shape[1] * np.arange(seeds)[:, None]
        (rows,) = on(self._device, rows.repeat(members, 0))
        x, target, event = data.at(rows)
        return (*self._network(self._network.layers(parameters), x), target, event)

    def _model(self, data: "_Data", losses: torch.Tensor) -> WorldModel:
        elites = losses.cpu().argsort(dim=1, stable=True)[:, : self.settings.elites].sort(1).values
        rows = elites + self.settings.members * torch.arange(len(self.seeds))[:, None]
        parameters = self._learner.parameters.cpu()[rows.view(-1)].view(
            len(self.seeds), self.settings.elites, -1
        )
        return WorldModel(self.shape, self.settings.hidden, parameters, data.scales)

    @torch.inference_mode()
    def _diagnose(self, data: "_Data", training: torch.Tensor, validation: torch.Tensor) -> None:
        self.diagnostics = {"model_loss": host(training.mean(1))}
        count, rows = self.shape.targets, len(data.held_out)
        if not rows:
            return
        mean, _, logit, target, event = self._held_out(data, self._learner.parameters)
        shape = (len(self.seeds), self.settings.members, -1, self.shape.width)
        mean, target = (host(x.view(shape)[:, :, :rows, :count].double()) for x in (mean, target))
        together = mean.mean(1)
        unchanged = np.square(target[:, 0]).mean(1)
        moves = unchanged > 0
        ratio = np.square(together - target[:, 0]).mean(1) / np.where(moves, unchanged, 1.0)
        self.diagnostics |= {
            "validation_loss": host(validation.mean(1)),
            "validation_error": (ratio * moves).sum(-1) / np.maximum(moves.sum(-1), 1),
            "disagreement": mean.std(1, ddof=1).mean((1, 2)),
        }
        logit, event = (host(x.view(shape[:3])[:, :, :rows].double()) for x in (logit, event))
        error = np.square((1 / (1 + np.exp(-logit))).mean(1) - event[:, 0]) * (event[:, 0] >= 0)
        self.diagnostics["event_brier"] = error.sum(1) / np.maximum((event[:, 0] >= 0).sum(1), 1)
