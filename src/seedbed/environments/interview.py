"""Mock interview: a tutor chooses questions and content for a simulated learner.

The learner has a mastery per learning outcome, which is seen, and an ability, which is not. Questions follow
the three-parameter logistic model of item response theory; content raises mastery and moves frustration. An
episode ends in mastery, at the step limit, or when the learner quits in frustration.
"""

from typing import Any, NamedTuple

import numpy as np

from seedbed.environments.base import Fact, Spec, Transition
from seedbed.environments.interview_content import (
    DIFFICULTIES,
    MODALITIES,
    checksums,
    constants,
    draw_material,
    item_count,
)
from seedbed.environments.interview_knowledge import InterviewKnowledge
from seedbed.seeding import Purpose, stream

QUESTION_KINDS, CONTENT_KINDS = len(DIFFICULTIES), len(MODALITIES)
KINDS = QUESTION_KINDS + CONTENT_KINDS
"""What a step can show: questions 0 easy, 1 medium, 2 hard, then content 3 video, 4 PPT, 5 text, 6 blog,
7 article, 8 handout."""

RUNNING, MASTERY, STEP_LIMIT, CRITICAL_FRUSTRATION = range(4)
"""Values of the fact ``end_reason``, in the order in which they are looked for."""

FACTS = (
    Fact("is_question", "bool", "a question was shown"),
    Fact("learning_outcome", "int16", "learning outcome acted on, from 0"),
    Fact("difficulty", "int8", "0 easy, 1 medium, 2 hard; -1 content"),
    Fact("modality", "int8", "0 video, 1 PPT, 2 text, 3 blog, 4 article, 5 handout; -1 question"),
    Fact("item", "int32", "number of the question in the bank or of the content in the repository"),
    Fact("correct", "int8", "1 right answer, 0 wrong answer, -1 content"),
    Fact("mastery_before", "float64", "mastery of the outcome before the step, 0..1"),
    Fact("gain", "float64", "change of that mastery, after the cap at 1"),
    Fact("mean_mastery", "float64", "mean mastery of all outcomes after the step, 0..1", final=True),
    Fact("frustration", "float64", "frustration after the step, 0..1", final=True),
    Fact("response_time", "float64", "time of the last answer, seconds"),
    Fact("ability", "float64", "hidden ability after the step, standard deviations of the population"),
    Fact("fail_streak", "int16", "wrong answers in a row after the step"),
    Fact("gated", "bool", "a question was chosen and replaced by video after too many wrong answers"),
    Fact("end_reason", "int8", "0 running, 1 mastery, 2 step limit, 3 critical frustration", final=True),
    Fact("mastered", "bool", "mean mastery has reached its threshold"),
)


class InterviewState(NamedTuple):
    """A learner in the middle of an episode; leading shape [...]."""

    mastery: np.ndarray
    """[..., K] float64 in [0, 1]"""
    ability: np.ndarray
    """[...] float64"""
    frustration: np.ndarray
    """[...] int64, hundredths in [0, 100]"""
    response_time: np.ndarray
    """[...] float64, seconds; 0 before the first answer"""
    fail_streak: np.ndarray
    """[...] int64"""
    shown: np.ndarray
    """[..., 4] int64: easy, medium, hard questions and contents so far"""
    answer: np.ndarray
    """[...] int64: 2 x difficulty + correct if the last step was a question, otherwise -1"""
    steps: np.ndarray
    """[...] int64, steps taken"""
    limit: np.ndarray
    """[...] int64, step limit"""
    material: np.ndarray
    """[..., 4, M] float64, this learner's question bank and content; [..., 4, 0] if they are fixed"""


class MockInterview:
    """The mock-interview environment. Pure: all randomness comes in as noise.

    An action below 3K asks a question, outcome = action // 3, difficulty = action % 3; the others show
    content, outcome = (action - 3K) // 6, modality = (action - 3K) % 6. The mask only advises: an action it
    forbids is carried out all the same.

    Args:
        preset: "as_specified", "as_trained", "default" or "tiny".
        **overrides: any field of ``interview_content.Constants``.

    Raises:
        ValueError: no such preset or argument, or a value that cannot be.
    """

    def __init__(self, preset: str = "default", **overrides: Any):
        self.preset, self.constants = preset, constants(preset, overrides)
        c = self.constants
        k = c.learning_outcomes
        self._questions = item_count(c)
        self.material = None
        if c.bank == "fixed":
            self.material = draw_material(c, stream(Purpose.CONTENT, c.bank_seed))
        self._material_size = 4 * (self._questions + CONTENT_KINDS * k)
        entries = k + 2 + (6 if c.extended_observation else 0)
        self.spec = Spec(
            observation_low=np.zeros(entries, np.float32),
            observation_high=np.ones(entries, np.float32),
            actions=KINDS * k,
            horizon=c.horizon,
            initial_noise=k + 2 + (self._material_size if c.bank == "per_episode" else 0),
            step_noise=3,
            facts=FACTS,
            success="mastered",
            masked=c.content_cap is not None or c.blueprint_mask,
        )
        self.knowledge = InterviewKnowledge.of(c)
        self._tabulate()

    def _tabulate(self) -> None:
        """Tables by action and by situation, so that a step looks up what it would otherwise compute."""
        c, k = self.constants, self.constants.learning_outcomes
        action = np.arange(KINDS * k)
        content = action - QUESTION_KINDS * k
        question = content < 0
        self._outcome = np.where(question, action // QUESTION_KINDS, content // CONTENT_KINDS)
        self._kind = np.where(question, action % QUESTION_KINDS, QUESTION_KINDS + content % CONTENT_KINDS)
        self._video = np.where(question, self.content(self._outcome, 0), action)
        difficulty = np.minimum(self._kind, QUESTION_KINDS - 1)
        self._items = np.where(question, np.array(c.items)[difficulty], 1).astype(np.float64)
        starts = np.cumsum((0, *c.items[:-1]))
        self._first_item = np.where(
            question, self._outcome * sum(c.items) + starts[difficulty], self._questions + content
        )
        self._difficulty = np.where(question, self._kind, -1).astype(np.int8)
        self._modality = np.where(question, -1, self._kind - QUESTION_KINDS).astype(np.int8)
        self._item_offset = np.where(question, 0, self._questions)
        self._gain_weight = np.where(question, c.weight_question_gain, c.weight_content_gain)
        self._frustration_cost = np.where(question, c.weight_frustration, 0.0)

        self._level = np.arange(101) / 100
        self._streak_level = np.minimum(np.arange(c.horizon + 1), 3) / 3
        cap = 1.0 if c.content_cap is None else c.content_cap
        self._contents_within_cap = np.floor(cap * np.arange(1, c.horizon + 2) + 1e-9).astype(np.int64)

        # A situation is 4 x kind + 2 x correct + whether mastery is low.
        kind, correct, low = np.indices((KINDS, 2, 2)).reshape(3, -1)
        question = kind < QUESTION_KINDS
        wrong = np.where(
            (kind == QUESTION_KINDS - 1) & (low == 1),
            c.frustration_wrong + c.frustration_wrong_hard,
            c.frustration_wrong,
        )
        nominal = np.array((0, 0, 0, *c.frustration_content))[kind]
        self._frustration_change = np.where(
            question, np.where(correct == 1, c.frustration_correct, wrong), nominal
        )
        self._answer = np.where(question, 2 * kind + correct, -1)
        self._correct = np.where(question, correct, -1).astype(np.int8)
        self._question_gain = np.where(question, c.question_gain * correct, 0.0)
        self._fixed_reward = np.where(
            question, c.weight_correct * correct, -c.weight_engagement * nominal / 100
        )

    def __repr__(self) -> str:
        return f"MockInterview(preset={self.preset!r}, K={self.constants.learning_outcomes})"

    def content_checksums(self) -> dict[str, str]:
        """SHA-256 of the fixed question bank and content; {} if each episode draws its own."""
        return {} if self.material is None else checksums(self.constants, self.material)

    def question(self, outcome: np.ndarray, difficulty: np.ndarray) -> np.ndarray:
        """The action that asks a question, [...]."""
        return QUESTION_KINDS * outcome + difficulty

    def content(self, outcome: np.ndarray, modality: np.ndarray) -> np.ndarray:
        """The action that shows content, [...]."""
        return QUESTION_KINDS * self.constants.learning_outcomes + CONTENT_KINDS * outcome + modality

    def effectiveness(self, state: InterviewState) -> np.ndarray:
        """Mean gain from each content at mastery 0 without frustration, [..., K, 6]; [K, 6] if fixed."""
        material = state.material if self.material is None else self.material
        content = material[..., 3, self._questions :]
        return content.reshape(*content.shape[:-1], self.constants.learning_outcomes, CONTENT_KINDS)

    def draw(self, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """One episode's noise.

        Returns:
            initial [K + 2 (+ material)]: mastery, ability, step limit, the material if drawn per episode;
            steps [horizon, 3]: uniform for the item, uniform for the answer, standard normal for the
            response time of a question or the gain from content.
        """
        c, k = self.constants, self.constants.learning_outcomes
        initial = np.empty(self.spec.initial_noise)
        initial[:k] = generator.beta(*c.initial_mastery, k)
        initial[k] = generator.normal(*c.initial_ability)
        initial[k + 1] = (
            c.horizon
            if c.shortest_limit is None
            else generator.integers(c.shortest_limit, c.horizon, endpoint=True)
        )
        if c.bank == "per_episode":
            initial[k + 2 :] = draw_material(c, generator).ravel()
        columns = np.empty((3, c.horizon))
        generator.random(out=columns[:2])
        generator.standard_normal(out=columns[2])
        return initial, columns.T

    def initial(self, noise: np.ndarray) -> InterviewState:
        """A learner who has not been asked anything; see ``Dynamics.initial``."""
        k, shape = self.constants.learning_outcomes, noise.shape[:-1]
        size = 0 if self.material is not None else self._material_size // 4
        return InterviewState(
            mastery=noise[..., :k].copy(),
            ability=noise[..., k].copy(),
            frustration=np.zeros(shape, np.int64),
            response_time=np.zeros(shape),
            fail_streak=np.zeros(shape, np.int64),
            shown=np.zeros((*shape, QUESTION_KINDS + 1), np.int64),
            answer=np.full(shape, -1),
            steps=np.zeros(shape, np.int64),
            limit=np.maximum(noise[..., k + 1].astype(np.int64), 1),  # a lane without an episode has no noise
            material=noise[..., k + 2 :].reshape(*shape, 4, size).copy(),
        )

    def observe(self, state: InterviewState) -> np.ndarray:
        """What the tutor sees, [..., K + 2 (+ 6)] float32 in [0, 1].

        Mastery per outcome, frustration, response time / 120 s; if extended: shares of easy, medium, hard
        among the questions so far, fail streak / 3, steps / step limit, share of content among the steps so
        far. Response time and fail streak stop at 1; shares of nothing are 0. Ability is never seen.
        """
        c, k = self.constants, self.constants.learning_outcomes
        observation = np.empty((*state.ability.shape, *self.spec.observation_shape), np.float32)
        observation[..., :k] = state.mastery
        observation[..., k] = self._level.take(state.frustration)
        observation[..., k + 1] = np.minimum(state.response_time / c.response_time_scale, 1)
        if c.extended_observation:
            content = state.shown[..., 3]
            asked = np.maximum(state.steps - content, 1)
            observation[..., k + 2 : k + 5] = state.shown[..., :3] / asked[..., None]
            observation[..., k + 5] = self._streak_level.take(state.fail_streak, mode="clip")
            observation[..., k + 6] = state.steps / state.limit
            observation[..., k + 7] = content / np.maximum(state.steps, 1)
        return observation

    def action_mask(self, state: InterviewState) -> np.ndarray:
        """Allowed actions [..., 9K]: content within its cap, difficulties not above their wanted share."""
        c, split = self.constants, QUESTION_KINDS * self.constants.learning_outcomes
        mask = np.ones((*state.steps.shape, self.spec.actions), bool)
        if c.content_cap is not None:
            within = state.shown[..., 3] < self._contents_within_cap.take(state.steps, mode="clip")
            mask[..., split:] = within[..., None]
        if c.blueprint_mask:
            asked = state.shown[..., :3]
            wanted = np.array(c.blueprint) * (state.steps - state.shown[..., 3])[..., None]
            mask[..., :split] = np.tile(asked <= wanted + 1e-9, c.learning_outcomes)
        return mask

    def limit(self, state: InterviewState) -> np.ndarray:
        """Step limit of this episode, [...] int64."""
        return state.limit.copy()

    def step(self, state: InterviewState, action: np.ndarray, noise: np.ndarray) -> Transition:
        """Show what the action says, or video if the fail streak forbids it; see ``Dynamics.step``."""
        action = np.asarray(action)
        if action.ndim == 0:  # numpy turns arrays without axes into scalars, so these go through one row
            row = self.step(InterviewState(*(part[None] for part in state)), action[None], noise[None])
            return Transition(
                InterviewState(*(part.reshape(part.shape[1:]) for part in row.state)),
                row.reward.reshape(()),
                row.terminated.reshape(()),
                {name: fact.reshape(()) for name, fact in row.facts.items()},
            )
        c, k = self.constants, self.constants.learning_outcomes
        item_uniform, answer_uniform, normal = noise[..., 0], noise[..., 1], noise[..., 2]
        gated = np.zeros(action.shape, bool)
        if c.fail_streak_gate is not None:
            gated = (state.fail_streak >= c.fail_streak_gate) & (action < QUESTION_KINDS * k)
            action = np.where(gated, self._video.take(action), action)
        kind, outcome = self._kind.take(action), self._outcome.take(action)
        question = kind < QUESTION_KINDS
        item = self._first_item.take(action) + (item_uniform * self._items.take(action)).astype(np.int64)
        a, b, guessing, effectiveness = self._parameters(state, item)

        probability = guessing + (1 - guessing) / (1 + np.exp(a * (b - state.ability)))
        correct = question & (answer_uniform < probability)
        wrong = question ^ correct

        mastery = state.mastery.copy()
        place = np.arange(action.size).reshape(action.shape) * k + outcome
        before = mastery.take(place)
        situation = 4 * kind + 2 * correct + (before < c.low_mastery)
        room = 1 - before
        content_gain = effectiveness * room * (1 - state.frustration * (c.frustration_damping / 100))
        content_gain = np.maximum(content_gain + c.content_noise * normal, 0)
        question_gain = self._question_gain.take(situation) * room
        after = np.minimum(before + np.where(question, question_gain, content_gain), 1)
        gain = after - before
        mastery.put(place, after)
        mean_mastery = np.add.reduce(mastery, -1) / k

        frustration = state.frustration + self._frustration_change.take(situation)
        frustration = np.minimum(np.maximum(frustration, 0), 100)
        frustration_level = self._level.take(frustration)
        fail_streak = (state.fail_streak + 1) * wrong
        response_time, deviation, shortest = c.response_time
        response_time = np.maximum(response_time + deviation * normal, shortest)
        response_time = np.where(question, response_time, state.response_time)
        ability = state.ability + c.ability_gain * correct
        shown = state.shown.copy()
        shown.reshape(-1)[np.arange(0, 4 * action.size, 4) + np.minimum(kind, 3).reshape(-1)] += 1
        steps = state.steps + 1

        mastered = mean_mastery >= c.mastery_threshold
        critical = frustration >= c.critical_frustration
        end_reason = np.where(critical, np.int8(CRITICAL_FRUSTRATION), np.int8(RUNNING))
        end_reason[steps >= state.limit] = STEP_LIMIT
        end_reason[mastered] = MASTERY

        reward = self._gain_weight.take(action) * gain + self._fixed_reward.take(situation)
        reward -= self._frustration_cost.take(action) * frustration_level
        if c.blueprint_penalty:
            reward -= c.blueprint_penalty * question * self._blueprint_distance(shown, steps)
        if c.time_saved_bonus:
            reward += c.time_saved_bonus * mastered * np.maximum(state.limit - steps, 0)

        facts = {
            "is_question": question,
            "learning_outcome": outcome.astype(np.int16),
            "difficulty": self._difficulty.take(action),
            "modality": self._modality.take(action),
            "item": (item - self._item_offset.take(action)).astype(np.int32),
            "correct": self._correct.take(situation),
            "mastery_before": before,
            "gain": gain,
            "mean_mastery": mean_mastery,
            "frustration": frustration_level,
            "response_time": response_time.copy(),
            "ability": ability.copy(),
            "fail_streak": fail_streak.astype(np.int16),
            "gated": gated,
            "end_reason": end_reason,
            "mastered": mastered,
        }
        new = InterviewState(
            mastery,
            ability,
            frustration,
            response_time,
            fail_streak,
            shown,
            self._answer.take(situation),
            steps,
            state.limit.copy(),
            state.material.copy(),
        )
        return Transition(new, reward, mastered | critical, facts)

    def _parameters(self, state: InterviewState, item: np.ndarray) -> list[np.ndarray]:
        """Discrimination, location, guessing and effectiveness of the shown material, each [...]."""
        if self.material is not None:
            return [row.take(item) for row in self.material]
        columns = self._material_size // 4
        start = np.arange(item.size).reshape(item.shape) * self._material_size + item
        return [state.material.take(start + row * columns) for row in range(4)]

    def _blueprint_distance(self, shown: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """L1 distance between the shares of the questions asked and the wanted ones, [...]."""
        asked = np.maximum(steps - shown[..., 3], 1)
        easy, medium, hard = self.constants.blueprint
        distance = np.abs(shown[..., 0] / asked - easy)
        distance += np.abs(shown[..., 1] / asked - medium)
        distance += np.abs(shown[..., 2] / asked - hard)
        return distance
