"""Fixed rules of the mock interview: the rule-based tutor, a repaired one, and reference heuristics."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, ClassVar, Literal, NamedTuple

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
    nearest_difficulty,
)
from seedbed.environments.interview_content import DIFFICULTIES, MODALITIES
from seedbed.environments.lanes import Lanes

VIDEO, PPT, TEXT, HANDOUT = (MODALITIES.index(name) for name in ("video", "PPT", "text", "handout"))


class RuleBasedPolicy(InterviewPolicy):
    """Thresholds on what is observed; the lowest outcome is served, content of two modalities at random."""

    modes = ("sampled",)
    uniforms = 1
    choices = 2

    def act(self, observation, mask, uniforms, memory, first) -> tuple[np.ndarray, Memory]:
        """One uniform picks the modality; see ``Policy.act``."""
        k = self.dynamics.constants.learning_outcomes
        outcome = np.argmin(observation[..., :k], -1)
        # float32 observations of exact hundredths: rounded, so that 0.70 is 0.70.
        frustration = np.rint(observation[..., k].astype(np.float64) * 100)
        show = frustration >= round(100 * self.options["frustration_limit"])
        show |= self._answered_slowly(observation[..., k + 1], memory, first)
        high = frustration > round(100 * self.options["high_frustration"])
        modality = self._modality(high, uniforms[..., 0] >= 0.5)
        content = self.dynamics.content(outcome, modality)
        if mask is not None:
            show &= at_outcome(mask, content)

        low, middle = self.options["mastery_bands"]
        mastery = at_outcome(observation[..., :k], outcome)
        wanted = (mastery >= low).astype(np.int64) + (mastery >= middle)
        difficulty = nearest_difficulty(wanted, allowed_difficulties(mask, outcome))
        action = np.where(show, content, self.dynamics.question(outcome, difficulty))
        return action, self._remember(show)

    def _answered_slowly(self, response_time, memory, first) -> np.ndarray:
        seconds = response_time * self.dynamics.constants.response_time_scale
        return seconds >= self.options["response_time_limit"]

    def _modality(self, high, second) -> np.ndarray:
        return np.where(high, np.where(second, HANDOUT, TEXT), np.where(second, PPT, VIDEO))

    def _remember(self, show) -> Memory:
        return None


class RuleBasedFixedPolicy(RuleBasedPolicy):
    """The same without its two traps; it remembers whether it has just shown content."""

    def _answered_slowly(self, response_time, memory, first) -> np.ndarray:
        slowly = super()._answered_slowly(response_time, memory, first)
        return slowly if memory is None else slowly & (first | ~memory)

    def _modality(self, high, second) -> np.ndarray:
        return np.where(second, PPT, VIDEO)

    def _remember(self, show) -> Memory:
        return show


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class RuleBased:
    """The rule-based tutor: content when the learner is frustrated or slow, otherwise a question.

    The outcome of lowest mastery is served. Two traps are part of the rule: at high frustration it shows only
    modalities that frustrate further, and content never renews the response time, so that one slow answer
    means content until the end. Where content is masked it asks; for a masked difficulty it asks the nearest.

    Args:
        frustration_limit: content from this frustration on.
        response_time_limit: content from this response time on, seconds.
        mastery_bands: easy questions below the first, medium below the second, hard otherwise.
        high_frustration: above it text or handout, otherwise video or PPT.
    """

    frustration_limit: Annotated[float, Field(ge=0, le=1)] = 0.7
    response_time_limit: Annotated[float, Field(gt=0)] = 60.0
    mastery_bands: tuple[float, float] = (0.4, 0.7)
    high_frustration: Annotated[float, Field(ge=0, le=1)] = 0.6

    lanes: ClassVar[int] = 0
    policy_class: ClassVar = RuleBasedPolicy

    def train(self, lanes: Lanes, seeds: Sequence[int], budget: int, recorder: Recorder):
        """Learn nothing."""
        return train_nothing(self.policy_class(seeds, lanes.dynamics, asdict(self)), recorder)


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class RuleBasedFixed(RuleBased):
    """The rule-based tutor without its traps: always video or PPT, and a slow answer counts once.

    ``high_frustration`` has no effect.
    """

    policy_class: ClassVar = RuleBasedFixedPolicy


class Heuristic(NamedTuple):
    """What a reference heuristic does at each step."""

    outcome: Literal["lowest", "random", "round_robin"]
    """Which learning outcome is served."""
    content: Literal["video", "most_effective", "video_at_odd_steps", "video_when_frustrated", "none"]
    """Which content is shown, and when, if the mask allows it; "most_effective" chooses the outcome too."""
    difficulty: Literal["easy", "medium", "hard", "blueprint", "likeliest"]
    """Which question is asked otherwise: "blueprint" comes nearest to the wanted shares, "likeliest" has the
    highest chance of a right answer given the answers so far."""


HEURISTICS = {
    "video_lowest_blueprint": Heuristic("lowest", "video", "blueprint"),
    "video_lowest_easy": Heuristic("lowest", "video", "easy"),
    "video_random_blueprint": Heuristic("random", "video", "blueprint"),
    "video_round_robin": Heuristic("round_robin", "video", "easy"),
    "most_effective_content": Heuristic("lowest", "most_effective", "easy"),
    "alternate_easy_video": Heuristic("lowest", "video_at_odd_steps", "easy"),
    "easy_only": Heuristic("lowest", "none", "easy"),
    "hard_only": Heuristic("lowest", "none", "hard"),
    "easy_round_robin": Heuristic("round_robin", "none", "easy"),
    "medium_round_robin": Heuristic("round_robin", "none", "medium"),
    "likeliest_answer": Heuristic("lowest", "video_when_frustrated", "likeliest"),
}
"""Without a content cap, video_lowest_easy is video for ever. likeliest_answer is near the highest return of
the preset as_specified."""


class FixedHeuristicPolicy(InterviewPolicy):
    """One of ``HEURISTICS``. It remembers how many questions of each difficulty and contents it chose."""

    def __init__(self, seeds, dynamics, options=None):
        self.rule = HEURISTICS[options["kind"]]
        if self.rule.outcome == "random":
            self.modes, self.uniforms = ("sampled",), 1
        super().__init__(seeds, dynamics, options)
        if self.rule.outcome == "random":
            self.choices = dynamics.constants.learning_outcomes
        self.needs_state = "most_effective" in self.rule or "likeliest" in self.rule
        self._ability = AbilityFilter(dynamics.constants) if "likeliest" in self.rule else None

    def act(self, observation, mask, uniforms, memory, first) -> tuple[np.ndarray, Memory]:
        """An oracle for "most_effective" and "likeliest", otherwise it observes; see ``Policy.act``."""
        k = self.dynamics.constants.learning_outcomes
        mastery = observation.mastery if self.needs_state else observation[..., :k]
        chosen, belief = memory or (np.zeros((*first.shape, 4), np.int64), None)
        chosen = np.where(first[..., None], 0, chosen)
        steps = chosen.sum(-1)
        outcome = self._outcome(mastery, steps, uniforms)
        show = np.full(first.shape, self.rule.content != "none")
        content = self.dynamics.content(outcome, VIDEO)
        if self.rule.content == "most_effective":
            gain = self.dynamics.effectiveness(observation) * (1 - mastery)[..., None]
            content = self.dynamics.content(0, np.argmax(gain.reshape(*first.shape, -1), -1))
        elif self.rule.content == "video_at_odd_steps":
            show = steps % 2 == 1
        elif self.rule.content == "video_when_frustrated":
            show = observation.frustration > round(100 * self.options["relief_frustration"])
        if mask is not None:
            show = show & at_outcome(mask, content)

        allowed = allowed_difficulties(mask, outcome)
        if self.rule.difficulty == "blueprint":
            distance = blueprint_distances(chosen[..., :3], self.dynamics.constants.blueprint)
            difficulty = np.argmin(np.where(allowed, distance, np.inf), -1)
        elif self.rule.difficulty == "likeliest":
            belief = self._ability.update(belief, observation.answer, first)
            difficulty = np.argmax(np.where(allowed, self._ability.predict(belief), -np.inf), -1)
        else:
            wanted = np.full(first.shape, DIFFICULTIES.index(self.rule.difficulty))
            difficulty = nearest_difficulty(wanted, allowed)
        action = np.where(show, content, self.dynamics.question(outcome, difficulty))
        chosen = chosen + (np.where(show, 3, difficulty)[..., None] == np.arange(4))
        return action, (chosen, belief)

    def _outcome(self, mastery, steps, uniforms) -> np.ndarray:
        if self.rule.outcome == "random":
            return (uniforms[..., 0] * mastery.shape[-1]).astype(np.int64)
        return steps % mastery.shape[-1] if self.rule.outcome == "round_robin" else np.argmin(mastery, -1)


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class FixedHeuristic:
    """A heuristic that a learner should beat, or one that shows what a preset rewards.

    Args:
        kind: a name in ``HEURISTICS``.
        relief_frustration: frustration above which "likeliest_answer" shows a video.
    """

    kind: Literal[*HEURISTICS] = "video_lowest_blueprint"
    relief_frustration: Annotated[float, Field(ge=0, le=1)] = 0.4

    lanes: ClassVar[int] = 0
    policy_class: ClassVar = FixedHeuristicPolicy

    def train(self, lanes: Lanes, seeds: Sequence[int], budget: int, recorder: Recorder):
        """Learn nothing."""
        return train_nothing(FixedHeuristicPolicy(seeds, lanes.dynamics, asdict(self)), recorder)
