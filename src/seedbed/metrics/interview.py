"""Metrics of the mock-interview study: mastery in time, content, questions against the blueprint.

Mastery competes with quitting: an episode that ends in frustration never masters, and its time is neither
dropped nor its length. Facts come from the step table as the environment logged them, after each step.
"""

import numpy as np
import pandas as pd

from seedbed.artifacts import ArtifactError
from seedbed.metrics.base import Metric, Value, episode_rows, mean_of, missing

MASTERY, STEP_LIMIT, CRITICAL_FRUSTRATION = 1, 2, 3
DIFFICULTIES = ("easy", "medium", "hard")
MODALITIES = ("video", "PPT", "text", "blog", "article", "handout")
BLUEPRINT = (0.2, 0.6, 0.2)
"""Target shares of easy, medium and hard questions."""

_TARGET = np.array(BLUEPRINT)
_WORST = 1.6  # largest sum of |share - target|: all easy or all hard


def _end_reasons(episodes: pd.DataFrame) -> np.ndarray:
    reasons = episodes["final_end_reason"].to_numpy()
    if not np.isin(reasons, (MASTERY, STEP_LIMIT, CRITICAL_FRUSTRATION)).all():
        raise ArtifactError(
            f"final_end_reason is {sorted(set(reasons.tolist()))}; an episode that ended has 1 (mastery), "
            f"2 (step limit) or 3 (critical frustration)."
        )
    return reasons


def _rate_of_end(reason: int):
    def rate(episodes: pd.DataFrame, steps: pd.DataFrame | None) -> float:
        return float((_end_reasons(episodes) == reason).mean())

    return rate


def _restricted_time(episodes: pd.DataFrame, steps: pd.DataFrame | None) -> float:
    mastered = _end_reasons(episodes) == MASTERY
    return float(np.where(mastered, episodes["length"], episodes["horizon"]).mean())


def _median_time(episodes: pd.DataFrame, steps: pd.DataFrame | None) -> Value:
    mastered = _end_reasons(episodes) == MASTERY
    times = np.sort(np.where(mastered, episodes["length"].to_numpy(float), np.inf))
    median = times[(times.size + 1) // 2 - 1]  # the first t with an incidence of at least one half
    return Value(float(median), times.size) if np.isfinite(median) else missing("not reached")


def _final_mastery(episodes: pd.DataFrame, steps: pd.DataFrame | None) -> float:
    return float(episodes["final_mean_mastery"].to_numpy().mean())


def _ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Element by element; NaN where the denominator is 0."""
    return np.divide(numerator, denominator, out=np.full(np.shape(numerator), np.nan), where=denominator > 0)


def _episode_means(episodes: pd.DataFrame, steps: pd.DataFrame, values: np.ndarray, where: np.ndarray):
    """Mean of values [m] over the chosen steps of each episode, [n]; NaN for one without such steps."""
    rows = episode_rows(episodes, steps)[where]
    total = np.bincount(rows, values[where], len(episodes))
    return _ratio(total, np.bincount(rows, minlength=len(episodes)))


def _is_question(steps: pd.DataFrame) -> np.ndarray:
    return steps["is_question"].to_numpy().astype(bool)


def _gain(modality: int | None, relative: bool = False):
    which = "content" if modality is None else MODALITIES[modality]

    def gain(episodes: pd.DataFrame, steps: pd.DataFrame) -> Value:
        shown = ~_is_question(steps)
        if modality is not None:
            shown &= steps["modality"].to_numpy() == modality
        values = steps["gain"].to_numpy()
        if relative:
            room = 1 - steps["mastery_before"].to_numpy()
            shown &= room > 1e-12  # nothing can be gained by a learner who knows all
            values = _ratio(values, np.where(shown, room, 0))
        reason = f"no {which} shown" + (" to a learner with room to learn" if relative else "")
        return mean_of(_episode_means(episodes, steps, values, shown), reason)

    return gain


def _question_counts(episodes: pd.DataFrame, steps: pd.DataFrame) -> np.ndarray:
    """Questions asked per episode and difficulty, [n, 3]."""
    asked = _is_question(steps)
    difficulty = steps["difficulty"].to_numpy()[asked]
    if not np.isin(difficulty, (0, 1, 2)).all():
        raise ArtifactError(
            f"Questions have the difficulties {sorted(set(difficulty.tolist()), key=str)}; "
            f"they must be 0 (easy), 1 (medium) or 2 (hard)."
        )
    cells = episode_rows(episodes, steps)[asked] * 3 + difficulty.astype(int)
    return np.bincount(cells, minlength=3 * len(episodes)).reshape(-1, 3)


def blueprint_distance(counts: np.ndarray) -> np.ndarray:
    """Sum over difficulties of |share - target|, at most 1.6; counts [..., 3] -> [...], NaN without any."""
    counts = np.asarray(counts, float)
    shares = _ratio(counts, np.broadcast_to(counts.sum(axis=-1, keepdims=True), counts.shape))
    return np.abs(shares - _TARGET).sum(axis=-1)


def adherence(distance: np.ndarray) -> np.ndarray:
    """Blueprint adherence in percent, 100 (1 - mean |share - target|): from 46.7, not 0, to 100."""
    return 100 * (1 - distance / 3)


def _blueprint(measure):
    def mean_measure(episodes: pd.DataFrame, steps: pd.DataFrame) -> Value:
        return mean_of(measure(blueprint_distance(_question_counts(episodes, steps))), "no question asked")

    return mean_measure


def _blueprint_pooled(episodes: pd.DataFrame, steps: pd.DataFrame) -> Value:
    counts = _question_counts(episodes, steps)
    entered = int((counts.sum(axis=1) > 0).sum())
    if not entered:
        return missing("no question asked")
    return Value(float(adherence(blueprint_distance(counts.sum(axis=0)))), entered)


def _difficulty_share(difficulty: int):
    def share(episodes: pd.DataFrame, steps: pd.DataFrame) -> Value:
        counts = _question_counts(episodes, steps)
        return mean_of(_ratio(counts[:, difficulty].astype(float), counts.sum(axis=1)), "no question asked")

    return share


def _accuracy(episodes: pd.DataFrame, steps: pd.DataFrame) -> Value:
    correct = steps["correct"].to_numpy()
    asked = _is_question(steps)
    if not np.isin(correct[asked], (0, 1)).all():
        raise ArtifactError("A question has neither 0 (wrong) nor 1 (correct) in the column `correct`.")
    return mean_of(_episode_means(episodes, steps, correct.astype(float), asked), "no question asked")


def _content_rate(episodes: pd.DataFrame, steps: pd.DataFrame) -> Value:
    content = (~_is_question(steps)).astype(float)
    return mean_of(_episode_means(episodes, steps, content, np.ones(len(steps), bool)), "no step")


def _frustration(episodes: pd.DataFrame, steps: pd.DataFrame) -> Value:
    values = steps["frustration"].to_numpy().astype(float)
    return mean_of(_episode_means(episodes, steps, values, np.ones(len(steps), bool)), "no step")


_IN_TIME = (
    Metric(
        "restricted_time_to_mastery",
        "Time to mastery, restricted mean",
        "steps",
        "lower",
        1,
        "Mean over all episodes of the step at which mean mastery reaches its threshold; an episode that "
        "ends otherwise, by quitting or at its step limit, counts the horizon (the largest step limit).",
        _restricted_time,
        reached="mastery_incidence",
    ),
    Metric(
        "mastery_incidence",
        "Mastery by the horizon",
        "",
        "higher",
        3,
        "Share of all episodes that end in mastery: its cumulative incidence at the horizon, with quitting "
        "as a competing event.",
        _rate_of_end(MASTERY),
        rate=True,
    ),
    Metric(
        "time_to_mastery_median",
        "Time to mastery, median",
        "steps",
        "lower",
        1,
        "First step by which half of all episodes have reached mastery; missing where fewer ever do.",
        _median_time,
    ),
    Metric(
        "quit_rate",
        "Quit rate",
        "",
        "lower",
        3,
        "Share of all episodes that end in critical frustration.",
        _rate_of_end(CRITICAL_FRUSTRATION),
        rate=True,
    ),
    Metric(
        "final_mastery",
        "Final mean mastery",
        "",
        "higher",
        3,
        "Mean mastery over learning outcomes after an episode's last step, mean over episodes.",
        _final_mastery,
    ),
)

_CONTENT = (
    Metric(
        "post_content_gain",
        "Post-content gain",
        "mastery",
        "higher",
        4,
        "Mastery really gained by a content item, mean over the content of an episode, then over the "
        "episodes with content. It falls as mastery rises, so a faster teacher may show less.",
        _gain(None),
        needs_steps=True,
    ),
    Metric(
        "relative_content_gain",
        "Post-content gain / room to learn",
        "",
        "higher",
        4,
        "Gain by content over what was left to learn, gain / (1 - mastery before); averaged as the gain.",
        _gain(None, relative=True),
        needs_steps=True,
    ),
    *(
        Metric(
            f"post_content_gain_{modality}",
            f"Post-content gain, {modality}",
            "mastery",
            "higher",
            4,
            f"Post-content gain of {modality} items alone.",
            _gain(number),
            needs_steps=True,
        )
        for number, modality in enumerate(MODALITIES)
    ),
    Metric(
        "content_rate",
        "Content rate",
        "",
        "none",
        3,
        "Share of an episode's steps that show content, mean over episodes.",
        _content_rate,
        needs_steps=True,
    ),
)

_QUESTIONS = (
    Metric(
        "blueprint_adherence",
        "Blueprint adherence",
        "%",
        "higher",
        1,
        "100 (1 - mean |share - target|) of easy, medium and hard against 20/60/20, per episode with "
        "questions, then mean. Its floor is 46.7, not 0, few questions lower it by chance, and where the "
        "environment allows only questions that the blueprint lacks, any policy is near 100.",
        _blueprint(adherence),
        needs_steps=True,
    ),
    Metric(
        "blueprint_rescaled",
        "Blueprint adherence, 0 to 1",
        "",
        "higher",
        3,
        "Blueprint adherence rescaled so that its floor is 0 and a perfect mix 1.",
        _blueprint(lambda distance: 1 - distance / _WORST),
        needs_steps=True,
    ),
    Metric(
        "blueprint_deviation",
        "Deviation from blueprint",
        "percentage points",
        "lower",
        1,
        "Questions that would have to change difficulty to meet the blueprint, in percentage points (total "
        "variation distance, at most 80), per episode with questions, then mean.",
        _blueprint(lambda distance: 50 * distance),
        needs_steps=True,
    ),
    Metric(
        "blueprint_pooled",
        "Blueprint adherence, pooled",
        "%",
        "higher",
        1,
        "Blueprint adherence of all questions of the evaluation counted together.",
        _blueprint_pooled,
        needs_steps=True,
    ),
    *(
        Metric(
            f"difficulty_share_{difficulty}",
            f"Share of {difficulty} questions",
            "",
            "none",
            3,
            f"Share of {difficulty} ones among an episode's questions, mean over episodes with questions.",
            _difficulty_share(number),
            needs_steps=True,
        )
        for number, difficulty in enumerate(DIFFICULTIES)
    ),
    Metric(
        "question_accuracy",
        "Question accuracy",
        "",
        "higher",
        3,
        "Share of an episode's questions answered correctly, mean over the episodes with questions.",
        _accuracy,
        needs_steps=True,
    ),
    Metric(
        "mean_frustration",
        "Mean frustration",
        "",
        "lower",
        3,
        "Frustration after a step, mean over the steps of an episode, then over episodes.",
        _frustration,
        needs_steps=True,
    ),
)

METRICS = _IN_TIME + _CONTENT + _QUESTIONS
