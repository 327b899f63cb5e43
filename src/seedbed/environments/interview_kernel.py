"""The compiled inner loops of ``InterviewKnowledge``: N imagined steps, one after the other."""

import numpy as np

from seedbed.compiled import compiled


@compiled
def counts(observation, k, horizon):
    """Steps and contents shown so far, whole numbers, from one observation [d]."""
    steps = np.rint(observation[k + 6] * horizon)
    return steps, np.rint(observation[k + 7] * steps)


@compiled
def step(
    observation, action, predicted, outcome, by_action, outcomes, blueprint, horizon, mastery, frustration,
    extended, penalty, bonus, following, reward, terminated,
):  # fmt: skip
    """See ``InterviewKnowledge.step``.

    Args:
        observation, predicted: [N, d] float32.
        action: [N] int64, gates applied.
        outcome: [N] float32.
        by_action: [actions, 8] float32, see ``InterviewKnowledge``.
        outcomes: [actions] int64, what each action is about.
        blueprint: [3] float32.
        horizon, mastery, frustration: steps, and where an episode ends by mastery or frustration, float32.
        extended: whether counters are observed.
        penalty, bonus: for deviations from the blueprint and for steps saved, float32.
        following, reward, terminated: written, [N, d] float32, [N] float32, [N] bool.
    """
    k = observation.shape[1] - (8 if extended else 2)
    for n in range(action.size):
        before, after, numbers, about = (
            observation[n],
            following[n],
            by_action[action[n]],
            outcomes[action[n]],
        )
        after[:] = predicted[n]
        gain, annoyed = after[about] - before[about], after[k]
        total = numbers[4] * outcome[n] + numbers[5] * gain
        total += numbers[7] - numbers[6] * annoyed
        mean = np.float32(0)
        for outcome_number in range(k):
            mean += after[outcome_number]
        mastered = mean / np.float32(k) >= mastery
        if extended:
            steps, contents = counts(before, k, horizon)
            asked = steps - contents
            steps, contents = steps + np.float32(1), contents + numbers[3]
            questions = max(steps - contents, np.float32(1))
            distance = np.float32(0)
            for level in range(3):
                share = (before[k + 2 + level] * asked + numbers[level]) / questions
                after[k + 2 + level] = share
                distance += abs(share - blueprint[level])
            after[k + 6] = steps / horizon
            after[k + 7] = contents / steps
            total -= penalty * (np.float32(1) - numbers[3]) * distance
            if mastered:
                total += bonus * max(horizon - steps, np.float32(0))
        reward[n] = total
        terminated[n] = mastered or annoyed > frustration


@compiled
def action_mask(observation, k, horizon, content_cap, blueprint, questions, mask):
    """See ``InterviewKnowledge.action_mask``.

    Args:
        observation: [N, d] float32.
        horizon: steps, float32.
        content_cap: largest share of contents; above 1 for none.
        blueprint: [3] float32, shares of difficulties that must not be passed; empty for none.
        questions: number of actions that ask; the contents follow.
        mask: written, [N, actions] bool.
    """
    for n in range(len(observation)):
        seen, row = observation[n], mask[n]
        steps, contents = counts(seen, k, horizon)
        row[questions:] = contents < np.floor(content_cap * (steps + 1) + 1e-4) - 0.5
        for level in range(blueprint.size):
            asked = steps - contents
            row[level:questions:3] = seen[k + 2 + level] * asked <= blueprint[level] * asked + np.float32(
                1e-3
            )
