"""MBPO: soft actor-critic that also learns from steps which a model imagines.

Janner et al. 2019 (arXiv 1906.08253), for discrete actions. An ensemble learns the environment; short
roll-outs of the present policy branch off from real states; the actor-critic learns from both. Ends of
imagined episodes are predicted, not ignored: otherwise ending an episode badly would cost nothing.
"""

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
import torch
from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from seedbed.algorithms.base import Recorder
from seedbed.algorithms.devices import torch_device
from seedbed.algorithms.ensemble import Ensemble, EnsembleSettings
from seedbed.algorithms.mbpo_policy import MBPOPolicy
from seedbed.algorithms.replay import Batch, Replay
from seedbed.algorithms.sac import SAC, UPDATES_BETWEEN_LOGS, SoftActorCritic, check_budget
from seedbed.algorithms.world_model import Imagination, WorldModel
from seedbed.environments.base import Knowledge, Spec
from seedbed.environments.lanes import Lanes
from seedbed.seeding import BlockStreams, Purpose, stream

MOST_UPDATES = 4
"""Updates per environment step beyond which a comparison would be of computing rather than of learning."""


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class MBPO(SAC):
    """Model-based policy optimisation: SAC's hyper-parameters and the model's."""

    updates: int = Field(4, ge=1, description="Updates in each learning phase, at most 4 per step")
    model: EnsembleSettings = Field(
        EnsembleSettings(members=7, elites=5), description="The model of the environment"
    )
    fit_every: int = Field(250, ge=1, description="Steps from one fit of the model to the next (Janner 2019)")
    real_share: float = Field(0.25, gt=0, lt=1, description="Part of each batch that really happened")
    rollout_every: int = Field(10, ge=1, description="Steps from one set of roll-outs to the next")
    rollouts: int = Field(
        500, ge=1, description="Real states from which roll-outs branch each time, a multiple of the elites"
    )
    rollout_horizon: tuple[int, int] = Field(
        (1, 2), description="Steps of a roll-out when the model is first fitted, and at the end of the budget"
    )
    model_buffer: int = Field(20_000, ge=1, description="Imagined steps kept per seed, the latest")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        super()._consistent()
        if self.updates > MOST_UPDATES * self.steps_per_update:
            raise ValueError(
                f"updates ({self.updates}) must be at most {MOST_UPDATES} per step, that is "
                f"{MOST_UPDATES * self.steps_per_update} for steps_per_update {self.steps_per_update}."
            )
        if self.rollouts % self.model.elites:
            raise ValueError(
                f"rollouts ({self.rollouts}) must be a multiple of model.elites ({self.model.elites})."
            )
        for name in ("fit_every", "rollout_every", "learning_starts"):
            if getattr(self, name) % self.lanes:
                raise ValueError(
                    f"{name} ({getattr(self, name)}) must be a multiple of lanes ({self.lanes})."
                )
        first, last = self.rollout_horizon
        if not 1 <= first <= last:
            raise ValueError(f"rollout_horizon ({first}, {last}) must rise from at least 1.")
        if not 1 <= round(self.real_share * self.batch_size) < self.batch_size:
            raise ValueError(
                f"A batch of {self.batch_size} steps with real_share {self.real_share} lacks real steps or "
                f"imagined ones."
            )
        return self

    policy_class: ClassVar = MBPOPolicy

    def train(self, lanes: Lanes, seeds: Sequence[int], budget: int, recorder: Recorder) -> MBPOPolicy:
        """See ``Algorithm.train``.

        Raises:
            ValueError: as ``SAC.train``, or the environment forbids actions and does not say which are
                allowed where an observation is only imagined (``Dynamics.knowledge``).
        """
        spec, seeds = lanes.spec, list(seeds)
        check_budget(self, spec, lanes.lanes, budget)
        knowledge = getattr(getattr(lanes, "dynamics", None), "knowledge", None)
        if spec.masked and knowledge is None:
            raise ValueError(
                "MBPO imagines states, and this environment does not say which actions are allowed there: it "
                "forbids some and has no `knowledge`. Use SAC or DQN, or settings without forbidden actions."
            )
        learner = SoftActorCritic(self, spec, seeds)
        size = max(min(budget, self.buffer_size), 2 * self.lanes)
        replay = Replay(spec, len(seeds), self.lanes, size, gamma=self.gamma, keep_masks=True)
        device = torch_device(self.device)
        ensemble = Ensemble(self.model, spec, knowledge, seeds, self.lanes, size, device)
        imagined = ImaginedSteps(self, spec, knowledge, seeds)
        real = round(self.real_share * self.batch_size)
        exploration = BlockStreams(Purpose.EXPLORATION, seeds, (self.lanes,))
        draws = BlockStreams(Purpose.REPLAY, seeds, (real,), block=64)
        starts, model = max(self.learning_starts, self.lanes), None

        def policy() -> MBPOPolicy:
            actor = learner.policy()
            acting = MBPOPolicy(seeds, actor.sizes, actor.activation, actor.parameters, actor.options)
            return acting.knowing(model)

        if recorder.due(0):
            recorder.evaluate(0, policy())
        for steps in range(self.lanes, budget + 1, self.lanes):
            observation, mask = lanes.observation, lanes.mask
            action = learner.draw(observation, mask, exploration.uniforms())
            step = lanes.step(action)
            recorder.step(step)
            replay.add(observation, action, step, mask)
            ensemble.add(observation, action, step)

            if steps >= starts:
                if (steps - starts) % self.fit_every == 0:
                    model = ensemble.fit()
                    recorder.log(steps, **ensemble.diagnostics)
                if (steps - starts) % self.rollout_every == 0:
                    first, last = self.rollout_horizon
                    horizon = round(first + (last - first) * (steps - starts) / max(budget - starts, 1))
                    imagined.add(model, learner, replay, horizon)
                for _ in range(self.updates if steps % self.steps_per_update == 0 else 0):
                    happened = replay.sample(draws.uniforms())
                    learner.update(joined(happened, imagined.sample(self.batch_size - real)))
                    if learner.updates % UPDATES_BETWEEN_LOGS == 0:
                        recorder.log(steps, **learner.diagnostics)
                if steps == budget or learner.updates % UPDATES_BETWEEN_LOGS == 0:
                    recorder.log(steps, model_calls=np.full(len(seeds), imagined.model_calls))
            if recorder.due(steps):
                recorder.evaluate(steps, policy())
        return policy()


def joined(one: Batch, other: Batch) -> Batch:
    """Two batches of the same seeds as one; the indices are the first's alone."""
    parts = {
        name: None if part is None else torch.cat([part, getattr(other, name)], 1)
        for name, part in one._asdict().items()
        if name != "index"
    }
    return Batch(**parts, index=one.index)


class ImaginedSteps:
    """A ring of the steps that models imagined for each seed.

    Args:
        settings: hyper-parameters.
        spec: the environment's shapes.
        knowledge: what the environment says of itself, if anything.
        seeds: training seeds, [S].
    """

    def __init__(self, settings: MBPO, spec: Spec, knowledge: Knowledge | None, seeds: Sequence[int]):
        self._settings, self._spec, self._knowledge = settings, spec, knowledge
        # A stream of its own beside the ensemble's.
        self._generators = [stream(Purpose.MODEL, seed, 1) for seed in seeds]
        shape = (len(seeds), max(settings.model_buffer, settings.rollouts))
        d = int(np.prod(spec.observation_shape))
        self._observation, self._following = np.zeros((2, *shape, d), np.float32)
        self._action = np.zeros(shape, np.int64)
        self._reward, self._terminated = np.zeros((2, *shape), np.float32)
        self._added = self.model_calls = 0

    def add(self, model: WorldModel, learner: SoftActorCritic, replay: Replay, horizon: int) -> None:
        """Branch off from real states and follow the policy for ``horizon`` steps.

        Where an episode ends another branches off.
        """
        imagination = Imagination(model.predictor(), model.shape, self._spec, self._knowledge)
        seeds, branches = len(self._generators), self._settings.rollouts
        rows = (seeds * model.parameters.shape[1], branches // model.parameters.shape[1])
        start = self._start(replay)
        x, allowed = start
        for _ in range(horizon):
            action = learner.draw(x, allowed, self._uniforms(branches))
            noise = [g.standard_normal((branches, model.shape.changes), np.float32) for g in self._generators]
            following, reward, terminated = imagination.step(
                x.reshape(*rows, -1), action.reshape(rows), np.stack(noise).reshape(*rows, -1)
            )
            following, reward, terminated = (
                part.reshape(seeds, branches, *part.shape[2:]) for part in (following, reward, terminated)
            )
            self._keep(x, action, reward, following, terminated)
            self.model_calls += branches
            ended = self._uniforms(branches) < terminated
            fresh, fresh_allowed = self._start(replay)
            x = np.where(ended[..., None], fresh, following)
            if self._spec.masked:
                imagined = imagination.action_mask(following)
                allowed = np.where(ended[..., None], fresh_allowed, imagined)

    def sample(self, count: int) -> Batch:
        """Imagined transitions [S, count], uniformly."""
        kept = min(self._added, self._action.shape[1])
        index = np.stack([generator.integers(kept, size=count) for generator in self._generators])
        rows = np.arange(len(index))[:, None]
        observation, following = self._observation[rows, index], self._following[rows, index]
        masks = [None, None]
        if self._spec.masked:
            masks = [torch.from_numpy(self._knowledge.action_mask(x)) for x in (observation, following)]
        return Batch(
            torch.from_numpy(observation),
            torch.from_numpy(self._action[rows, index]),
            torch.from_numpy(self._reward[rows, index]),
            torch.from_numpy(following),
            masks[1],
            torch.from_numpy(np.float32(self._settings.gamma) * (1 - self._terminated[rows, index])),
            torch.ones(index.shape),
            index,
            masks[0],
        )

    def _uniforms(self, count: int) -> np.ndarray:
        return np.stack([generator.random(count, np.float32) for generator in self._generators])

    def _start(self, replay: Replay) -> tuple[np.ndarray, np.ndarray | None]:
        """Real states [S, branches, d] and what is allowed there."""
        batch = replay.sample(self._uniforms(self._settings.rollouts))
        return batch.observation.numpy(), None if batch.mask is None else batch.mask.numpy()

    def _keep(self, *parts: np.ndarray) -> None:
        size, count = self._action.shape[1], parts[0].shape[1]
        slots = (self._added + np.arange(count)) % size
        arrays = (self._observation, self._action, self._reward, self._following, self._terminated)
        for array, part in zip(arrays, parts, strict=True):
            array[:, slots] = part
        self._added += count
