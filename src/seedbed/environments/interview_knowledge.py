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
        # Frustration comes in whole hundredths: half of one is the nearest a prediction can be told apart.
        ends = np.float32(c.mastery_threshold), np.float32((c.critical_frustration - 0.5) / 100)
        weights = np.float32(c.blueprint_penalty), np.float32(c.time_saved_bonus)
        horizon, extended = np.float32(c.horizon), c.extended_observation
        self._rules = (self._numbers, self._outcome, self._blueprint, horizon, *ends, extended, *weights)

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
        c, shape = self.constants, action.shape
        if c.fail_streak_gate is not None:
            gated = observation[..., c.learning_outcomes + 5] > (c.fail_streak_gate - 0.5) / STREAK_LEVELS
            action = np.where(gated, self._video.take(action), action)
        following, reward = np.empty(observation.shape, np.float32), np.empty(shape, np.float32)
        terminated = np.empty(shape, bool)
        kernel().step(
            _rows(observation), action.reshape(-1), _rows(predicted), outcome.reshape(-1), *self._rules,
            _rows(following), reward.reshape(-1), terminated.reshape(-1),
        )  # fmt: skip
        return following, reward, terminated

    def action_mask(self, observation: np.ndarray) -> np.ndarray:
        """See ``Knowledge.action_mask`` and ``MockInterview.action_mask``."""
        c, k = self.constants, self.constants.learning_outcomes
        mask = np.ones((*observation.shape[:-1], self._questions + len(MODALITIES) * k), bool)
        if c.content_cap is not None or c.blueprint_mask:
            cap = 2.0 if c.content_cap is None else c.content_cap
            shares = self._blueprint if c.blueprint_mask else self._blueprint[:0]
            kernel().action_mask(
                _rows(observation), k, np.float32(c.horizon), cap, shares, self._questions, _rows(mask)
            )
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


def kernel():
    """The compiled loops, loaded when they are first needed: most learners imagine nothing."""
    from seedbed.environments import interview_kernel

    return interview_kernel


def _rows(array: np.ndarray) -> np.ndarray:
    """[..., d] as [N, d], contiguous."""
    return np.ascontiguousarray(array).reshape(-1, array.shape[-1])
