"""Planner index: the mock interview's reference policy, with a belief about ability and known content."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, ClassVar

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from seedbed.algorithms.base import Memory, Recorder, train_nothing
from seedbed.algorithms.interview_reference import (
    AbilityFilter,
    InterviewPolicy,
    allowed_difficulties,
    at_outcome,
    blueprint_distances,
)
from seedbed.environments.lanes import Lanes

RELIEF_FRUSTRATION = 75
"""Hundredths above which content is shown whatever the index says."""


class PlannerIndexPolicy(InterviewPolicy):
    """Shows the content or asks the question of the highest one-step index."""

    needs_state = True

    def __init__(self, seeds, dynamics, options=None):
        super().__init__(seeds, dynamics, options)
        self._ability = AbilityFilter(dynamics.constants)

    def act(self, observation, mask, uniforms, memory, first) -> tuple[np.ndarray, Memory]:
        """Takes the state; the memory is the belief. See ``Policy.act``."""
        state, c = observation, self.dynamics.constants
        belief = self._ability.update(memory, state.answer, first)
        p = self._ability.predict(belief)
        frustration = state.frustration / 100

        outcome = np.argmin(state.mastery, -1)
        room = (1 - at_outcome(state.mastery, outcome))[..., None]
        expected = (c.frustration_wrong * (1 - p) + c.frustration_correct * p) / 100
        question = (
            c.weight_correct * p
            + (c.weight_question_gain + self.options["mastery_value"]) * c.question_gain * p * room
            - c.weight_frustration * np.maximum(frustration[..., None] + expected, 0)
            - self.options["blueprint_weight"] * blueprint_distances(state.shown[..., :3], c.blueprint)
        )
        question = np.where(allowed_difficulties(mask, outcome), question, -np.inf)
        difficulty = np.argmax(question, -1)

        gain = self.dynamics.effectiveness(state) * (1 - state.mastery)[..., None]
        gain = gain * (1 - c.frustration_damping * frustration)[..., None, None]
        content = (c.weight_content_gain + self.options["mastery_value"]) * gain
        content = content - c.weight_engagement * np.array(c.frustration_content) / 100
        content = content.reshape(*content.shape[:-2], -1)
        if mask is not None:
            content = np.where(mask[..., -content.shape[-1] :], content, -np.inf)
        best = content.max(-1)
        relief = (state.frustration > RELIEF_FRUSTRATION) & np.isfinite(best)
        show = (best > question.max(-1)) | relief
        action = np.where(
            show,
            self.dynamics.content(0, np.argmax(content, -1)),
            self.dynamics.question(outcome, difficulty),
        )
        return action, belief


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class PlannerIndex:
    """One-step index on exact beliefs; an oracle, since it knows how effective each content is.

    The ability at the start is tracked on a grid from the answers. A question on the outcome of lowest
    mastery is worth its expected reward plus ``mastery_value`` per expected mastery gained, less
    ``blueprint_weight`` per L1 distance to the wanted shares; content is worth its expected reward plus
    ``mastery_value`` per gain. Above frustration 0.75 content comes first. The defaults had the highest
    return on tuning learners of the preset "default" (benchmarks/planner_tuning.py).

    Args:
        mastery_value: worth of one unit of mastery beyond its reward, for ending earlier.
        blueprint_weight: cost of an L1 distance of 1 to the wanted shares of difficulties.
    """

    mastery_value: Annotated[float, Field(ge=0)] = 0.0
    blueprint_weight: Annotated[float, Field(ge=0)] = 3.0

    lanes: ClassVar[int] = 0
    policy_class: ClassVar = PlannerIndexPolicy

    def train(self, lanes: Lanes, seeds: Sequence[int], budget: int, recorder: Recorder):
        """Learn nothing."""
        return train_nothing(PlannerIndexPolicy(seeds, lanes.dynamics, asdict(self)), recorder)
