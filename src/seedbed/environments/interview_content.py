"""Mock interview: the constants of each preset, and the question bank and content they are drawn from."""

import hashlib
from dataclasses import fields, replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import ConfigDict, Field, ValidationError, model_validator
from pydantic.dataclasses import dataclass

DIFFICULTIES = ("easy", "medium", "hard")
MODALITIES = ("video", "PPT", "text", "blog", "article", "handout")

Range = tuple[float, float]
Count = Annotated[int, Field(ge=1)]
Probability = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Hundredths = Annotated[int, Field(ge=-100, le=100)]


@dataclass(frozen=True, config=ConfigDict(extra="forbid", allow_inf_nan=False))
class Constants:
    """Every number of the simulated learner. The defaults are the preset "as_specified".

    Frustration is kept in whole hundredths, since binary fractions miss thresholds such as 0.95.

    Args:
        learning_outcomes: K; there are 3K question actions and 6K content actions.
        horizon: steps after which an episode is cut off.
        shortest_limit: None, or each episode's step limit is uniform on shortest_limit..horizon.
        items: questions per outcome of each difficulty.
        item_difficulty: range of the 3PL location b for each difficulty.
        item_discrimination: range of the 3PL slope a for each difficulty.
        item_guessing: range of the 3PL lower asymptote c.
        effectiveness: range of the mastery gain of each modality, before ``effectiveness_scale``.
        effectiveness_scale: factor on all effectivenesses.
        bank: "fixed": questions and content are drawn once from ``bank_seed``; "per_episode": anew each time.
        bank_seed: seed of the fixed bank and content.
        initial_mastery: the two shape parameters of the Beta distribution of mastery at the start.
        initial_ability: mean and standard deviation of the normal distribution of ability at the start.
        ability_gain: added to ability by a correct answer.
        question_gain: share of the missing mastery that a correct answer adds.
        content_noise: standard deviation of the mastery gain from content.
        frustration_damping: share of a content's effect that is lost at frustration 1.
        frustration_correct: hundredths, change by a correct answer.
        frustration_wrong: hundredths, change by a wrong answer.
        frustration_wrong_hard: hundredths, added if the wrong answer was to a hard question on an outcome
            with mastery below ``low_mastery``.
        low_mastery: see ``frustration_wrong_hard``.
        frustration_content: hundredths, change by each modality.
        response_time: mean, standard deviation and lower bound in seconds.
        response_time_scale: seconds that are observed as 1.
        mastery_threshold: mean mastery at which the episode ends in success.
        critical_frustration: hundredths at which the learner quits.
        fail_streak_gate: None, or the number of wrong answers in a row from which a question is replaced by
            video on the same outcome.
        content_cap: None, or content is allowed only while it is at most this share of all steps.
        blueprint: wanted share of questions of each difficulty.
        blueprint_penalty: weight of the L1 distance between asked and wanted shares, paid at each question.
        blueprint_mask: allow only difficulties whose share so far is not above the wanted one.
        weight_correct: reward of a correct answer.
        weight_question_gain: reward per mastery gained by a question.
        weight_content_gain: reward per mastery gained by content.
        weight_frustration: cost of frustration 1 after a question.
        weight_engagement: cost per frustration that a content nominally adds, whether or not it can.
        time_saved_bonus: reward per step left when mastery is reached.
        extended_observation: also observe difficulty shares, fail streak, time and content share.
    """

    learning_outcomes: Count = 30
    horizon: Count = 140
    shortest_limit: Count | None = None
    items: tuple[Count, Count, Count] = (7, 7, 6)
    item_difficulty: tuple[Range, Range, Range] = ((-2.0, -0.5), (-0.5, 0.5), (0.5, 2.0))
    item_discrimination: tuple[Range, Range, Range] = ((0.5, 1.0), (1.0, 1.5), (1.5, 2.0))
    item_guessing: tuple[Probability, Probability] = (0.10, 0.25)
    effectiveness: tuple[Range, Range, Range, Range, Range, Range] = (
        (0.10, 0.15),
        (0.08, 0.12),
        (0.05, 0.08),
        (0.07, 0.10),
        (0.06, 0.09),
        (0.05, 0.08),
    )
    effectiveness_scale: NonNegative = 1.0
    bank: Literal["fixed", "per_episode"] = "fixed"
    bank_seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    initial_mastery: tuple[Positive, Positive] = (2.0, 5.0)
    initial_ability: tuple[float, NonNegative] = (0.0, 1.0)
    ability_gain: float = 0.02
    question_gain: Probability = 0.05
    content_noise: NonNegative = 0.02
    frustration_damping: Probability = 0.5
    frustration_correct: Hundredths = -5
    frustration_wrong: Hundredths = 10
    frustration_wrong_hard: Hundredths = 5
    low_mastery: Probability = 0.5
    frustration_content: tuple[Hundredths, Hundredths, Hundredths, Hundredths, Hundredths, Hundredths] = (
        -8,
        -5,
        2,
        -3,
        0,
        5,
    )
    response_time: tuple[NonNegative, NonNegative, NonNegative] = (30.0, 10.0, 5.0)
    response_time_scale: Positive = 120.0
    mastery_threshold: Probability = 0.8
    critical_frustration: Hundredths = 95
    fail_streak_gate: Count | None = None
    content_cap: Annotated[float, Field(gt=0, le=1)] | None = None
    blueprint: tuple[Probability, Probability, Probability] = (0.2, 0.6, 0.2)
    blueprint_penalty: NonNegative = 0.0
    blueprint_mask: bool = False
    weight_correct: float = 1.0
    weight_question_gain: float = 0.5
    weight_content_gain: float = 2.0
    weight_frustration: float = 0.3
    weight_engagement: float = 0.5
    time_saved_bonus: NonNegative = 0.0
    extended_observation: bool = False

    @model_validator(mode="after")
    def _consistent(self):
        if self.shortest_limit is not None and self.shortest_limit > self.horizon:
            raise ValueError(f"shortest_limit {self.shortest_limit} is above the horizon {self.horizon}")
        if abs(sum(self.blueprint) - 1) > 1e-9:
            raise ValueError(f"the shares of blueprint sum to {sum(self.blueprint)}, not to 1")
        for name in ("item_difficulty", "item_discrimination", "effectiveness"):
            if any(low > high for low, high in getattr(self, name)):
                raise ValueError(f"a range of {name} has its lower end above its upper end")
        if self.item_guessing[0] > self.item_guessing[1]:
            raise ValueError("item_guessing has its lower end above its upper end")
        return self


AS_SPECIFIED = Constants()
DEFAULT = replace(
    AS_SPECIFIED,
    learning_outcomes=15,
    effectiveness_scale=2.5,
    question_gain=0.15,
    fail_streak_gate=3,
    content_cap=0.5,
    blueprint_penalty=0.25,
    weight_correct=0.5,
    weight_question_gain=6.0,
    weight_content_gain=6.0,
    time_saved_bonus=0.7,
    extended_observation=True,
)
PRESETS = {
    "as_specified": AS_SPECIFIED,
    "as_trained": replace(
        AS_SPECIFIED, items=(4, 12, 4), shortest_limit=80, fail_streak_gate=3, blueprint_penalty=0.2
    ),
    "default": DEFAULT,
    "tiny": replace(DEFAULT, learning_outcomes=4, horizon=40),
}
"""as_specified: mastery is out of reach and the return rewards easy questions for ever; for checks and as a
warning. as_trained: the conditions of an earlier implementation. default: same equations, constants under
which teaching well, ending early and a high return go together. tiny: the same, small, for tests."""


def constants(preset: str, overrides: dict[str, Any]) -> Constants:
    """A preset with some of its constants replaced.

    Raises:
        ValueError: no such preset or constant, or a value outside its range; says which and what is allowed.
    """
    if preset not in PRESETS:
        raise ValueError(f"MockInterview has no preset '{preset}'. Use one of {', '.join(PRESETS)}.")
    known = [field.name for field in fields(Constants)]
    unknown = [name for name in overrides if name not in known]
    if unknown:
        raise ValueError(
            f"MockInterview has no argument {', '.join(unknown)}. Beside preset it takes {', '.join(known)}."
        )
    try:
        return replace(PRESETS[preset], **overrides)
    except ValidationError as error:
        problems = [
            f"{'.'.join(map(str, problem['loc'])) or 'arguments'}: {problem['msg']}"
            for problem in error.errors()
        ]
        raise ValueError(f"MockInterview, preset '{preset}': {'; '.join(problems)}.") from None


def item_count(constants: Constants) -> int:
    """Questions in the bank."""
    return constants.learning_outcomes * sum(constants.items)


def draw_material(constants: Constants, generator: np.random.Generator) -> np.ndarray:
    """Draw a question bank and a content repository.

    Returns:
        [4, M]: discrimination, location, guessing, effectiveness of the questions (by outcome, then
        difficulty), then of the contents (by outcome, then modality). What a column does not have is 0.
    """
    questions, outcomes = item_count(constants), constants.learning_outcomes
    material = np.zeros((4, questions + outcomes * len(MODALITIES)))
    difficulty = np.tile(np.repeat(np.arange(3), constants.items), outcomes)
    for row, ranges in enumerate((constants.item_discrimination, constants.item_difficulty)):
        low, high = np.array(ranges)[difficulty].T
        material[row, :questions] = generator.uniform(low, high)
    material[2, :questions] = generator.uniform(*constants.item_guessing, questions)
    low, high = np.tile(np.array(constants.effectiveness), (outcomes, 1)).T * constants.effectiveness_scale
    material[3, questions:] = generator.uniform(low, high)
    return material


def checksums(constants: Constants, material: np.ndarray) -> dict[str, str]:
    """SHA-256 of the little-endian float64 bytes of question bank [3, items] and content [K, 6]."""
    questions = item_count(constants)
    parts = {"question_bank": material[:3, :questions], "content": material[3, questions:]}
    return {
        name: hashlib.sha256(np.ascontiguousarray(part, "<f8").tobytes()).hexdigest()
        for name, part in parts.items()
    }
