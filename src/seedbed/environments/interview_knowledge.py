"""What the mock interview says of itself in terms of observations: choices, counters, reward, ends."""

from typing import Self

import numpy as np

from seedbed.environments.interview_content import DIFFICULTIES, MODALITIES, Constants

STREAK_LEVELS = 3
"""Wrong answers in a row that are told apart in an observation."""


class InterviewKnowledge:
    """See ``Knowledge``. Mastery, frustration, response time, fail streak and answers are left to a model.

    An action concerns one outcome's mastery; that of the others neither matters nor changes. The choices
    behind an action are: question or content, difficulty, modality, outcome.
    """

    outcome = "correct"

    def __init__(self, constants: Constants):
        c, k = constants, constants.learning_outcomes
        self.constants = c
        choices = (2, len(DIFFICULTIES), len(MODALITIES), k)
        content, difficulty, modality, outcome = np.indices(choices)
        questions = len(DIFFICULTIES) * k
        shown = questions + len(MODALITIES) * outcome + modality
        self.action_table = np.where(content == 1, shown, len(DIFFICULTIES) * outcome + difficulty)

        actions = questions + len(MODALITIES) * k
        self._outcome, kind = np.zeros((2, actions), np.int64)
        self._outcome[self.action_table] = outcome
        kind[self.action_table] = np.where(content == 1, len(DIFFICULTIES) + modality, difficulty)
        self._video = np.where(kind < len(DIFFICULTIES), questions + len(MODALITIES) * self._outcome, 0)
        self._video = np.where(kind < len(DIFFICULTIES), self._video, np.arange(actions))
        self._questions = questions

        # By action: one-hot easy, medium, hard, content; weights of answer, gain, frustration; fixed reward.
        question = kind < len(DIFFICULTIES)
        nominal = np.array((0, 0, 0, *c.frustration_content))[kind] / 100
        self._numbers = np.concatenate(
            [
                np.eye(4)[np.minimum(kind, 3)],
                np.stack(
                    [
                        question * c.weight_correct,
                        np.where(question, c.weight_question_gain, c.weight_content_gain),
                        question * c.weight_frustration,
                        ~question * -c.weight_engagement * nominal,
                    ],
                    -1,
                ),
            ],
            -1,
        ).astype(np.float32)
        # Mastery of the outcome, frustration, response time, fail streak; then shares, time, content share.
        rest = np.array([0, 1, 5, 2, 3, 4, 6, 7] if c.extended_observation else [0, 1]) + k
        self.learned = 4 if c.extended_observation else 3
        self.entries = np.concatenate(
            [self._outcome[:, None], np.broadcast_to(rest, (actions, len(rest)))], -1
        )
        self._blueprint = np.array(c.blueprint, np.float32)

    @classmethod
    def of(cls, constants: Constants) -> Self | None:
        """Its knowledge, or None where observations leave open what a reward, mask or gate depends on."""
        c, gate = constants, constants.fail_streak_gate
        if c.extended_observation:
            tells = c.shortest_limit is None and (gate is None or gate <= STREAK_LEVELS)
        else:
            masked = c.content_cap is not None or c.blueprint_mask
            tells = gate is None and not (masked or c.blueprint_penalty or c.time_saved_bonus)
        return cls(c) if tells else None

    def step(self, observation, action, predicted, outcome) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """See ``Knowledge.step``."""
        c, k = self.constants, self.constants.learning_outcomes
        if c.fail_streak_gate is not None:
            gated = observation[..., k + 5] > (c.fail_streak_gate - 0.5) / STREAK_LEVELS
            action = np.where(gated, self._video.take(action), action)
        following = predicted.copy()
        numbers = self._numbers.take(action, 0)
        place = np.arange(0, following.size, following.shape[-1]).reshape(action.shape)
        place = place + self._outcome.take(action)
        gain = following.take(place) - observation.reshape(-1).take(place)
        frustration = following[..., k]
        reward = numbers[..., 4] * outcome + numbers[..., 5] * gain
        reward += numbers[..., 7] - numbers[..., 6] * frustration
        mean_mastery = np.add.reduce(following[..., :k], -1) / np.float32(k)
        mastered = mean_mastery >= c.mastery_threshold
        if c.extended_observation:
            steps, contents, asked = self._counts(observation)
            shares = observation[..., k + 2 : k + 5] * asked[..., None] + numbers[..., :3]
            steps, contents = steps + 1, contents + numbers[..., 3]
            shares /= np.maximum(steps - contents, 1)[..., None]
            following[..., k + 2 : k + 5] = shares
            following[..., k + 6] = steps / np.float32(c.horizon)
            following[..., k + 7] = contents / steps
            if c.blueprint_penalty:
                distance = sum(np.abs(shares[..., i] - wanted) for i, wanted in enumerate(self._blueprint))
                reward -= np.float32(c.blueprint_penalty) * (1 - numbers[..., 3]) * distance
            if c.time_saved_bonus:
                reward += np.float32(c.time_saved_bonus) * mastered * np.maximum(c.horizon - steps, 0)
        # Frustration comes in whole hundredths: half of one is the nearest a prediction can be told apart.
        return following, reward, mastered | (frustration > (c.critical_frustration - 0.5) / 100)

    def action_mask(self, observation: np.ndarray) -> np.ndarray:
        """See ``Knowledge.action_mask`` and ``MockInterview.action_mask``."""
        c, k, split = self.constants, self.constants.learning_outcomes, self._questions
        mask = np.ones((*observation.shape[:-1], split + len(MODALITIES) * k), bool)
        if c.content_cap is not None or c.blueprint_mask:
            steps, contents, asked = self._counts(observation)
        if c.content_cap is not None:
            within = np.floor(c.content_cap * (steps + 1) + 1e-4)
            mask[..., split:] = (contents < within - 0.5)[..., None]
        if c.blueprint_mask:
            wanted = self._blueprint * asked[..., None]
            allowed = observation[..., k + 2 : k + 5] * asked[..., None] <= wanted + 1e-3
            mask[..., :split] = np.tile(allowed, k)
        return mask

    def progress(self, observation: np.ndarray) -> np.ndarray:
        """Mean mastery, [...]; see ``Knowledge.progress``."""
        return observation[..., : self.constants.learning_outcomes].mean(-1)

    def succeeded(self, observation: np.ndarray) -> np.ndarray:
        """Mastery rather than quitting; see ``Knowledge.succeeded``."""
        return self.progress(observation) >= np.float32(self.constants.mastery_threshold)

    def promise(self, observation: np.ndarray, pace: float) -> np.ndarray:
        """The bonus for the steps that mastery at this pace would save; see ``Knowledge.promise``."""
        c = self.constants
        if not c.time_saved_bonus:
            return np.zeros(observation.shape[:-1], np.float32)
        wanted = np.maximum(c.mastery_threshold - self.progress(observation), 0) / np.float32(pace)
        left = c.horizon * (1 - observation[..., c.learning_outcomes + 6])
        return np.float32(c.time_saved_bonus) * np.maximum(left - wanted, 0)

    def _counts(self, observation: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Steps, contents shown and questions asked so far, each [...] float32, whole numbers."""
        k = self.constants.learning_outcomes
        steps = np.rint(observation[..., k + 6] * np.float32(self.constants.horizon))
        contents = np.rint(observation[..., k + 7] * steps)
        return steps, contents, steps - contents
