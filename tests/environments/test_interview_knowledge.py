"""What the interview says of itself agrees with what it does."""

import numpy as np
import pytest

from seedbed.environments.interview import MockInterview
from seedbed.environments.lanes import DynamicsLanes
from seedbed.seeding import Purpose


@pytest.mark.parametrize(
    ("preset", "changes"),
    [
        ("tiny", {}),
        ("default", {}),
        ("as_specified", {}),
        ("tiny", {"blueprint_mask": True}),
        ("tiny", {"fail_streak_gate": 2}),
        ("default", {"content_cap": 0.3, "critical_frustration": 40}),
    ],
)
def test_true_next_observations_give_true_rewards_ends_counters_and_masks(preset, changes):
    dynamics = MockInterview(preset, **changes)
    knowledge, k = dynamics.knowledge, dynamics.constants.learning_outcomes
    lanes = DynamicsLanes(dynamics, Purpose.TUNING, [0, 1], 20)
    generator, ends = np.random.default_rng(0), 0
    for _ in range(150):
        observation, mask = lanes.observation, lanes.mask
        if mask is not None:
            np.testing.assert_array_equal(knowledge.action_mask(observation), mask)
        action = generator.integers(dynamics.spec.actions, size=(2, 20))  # forbidden ones are carried out too
        step = lanes.step(action)
        predicted = step.final_observation.copy()
        if dynamics.constants.extended_observation:  # what it counts itself may be predicted anyhow
            predicted[..., [k + 2, k + 3, k + 4, k + 6, k + 7]] = 0.123
        answer = (step.facts["correct"] == 1).astype(np.float32)
        following, reward, terminated = knowledge.step(observation, action, predicted, answer)
        np.testing.assert_allclose(following, step.final_observation, atol=1e-5)
        np.testing.assert_allclose(reward, step.reward, atol=1e-4)
        np.testing.assert_array_equal(terminated, step.terminated)
        ends += terminated.sum()
    assert ends


@pytest.mark.parametrize("preset", ["tiny", "as_specified"])
def test_the_choices_make_every_action(preset):
    dynamics = MockInterview(preset)
    table, k = dynamics.knowledge.action_table, dynamics.constants.learning_outcomes
    assert table.shape == (2, 3, 6, k)
    np.testing.assert_array_equal(np.unique(table), np.arange(dynamics.spec.actions))
    assert table[0, 2, 4, 1] == dynamics.question(1, 2)
    assert table[1, 2, 4, 1] == dynamics.content(1, 4)


@pytest.mark.parametrize(
    ("preset", "changes"),
    [
        ("as_trained", {}),
        ("as_specified", {"blueprint_mask": True}),
        ("default", {"extended_observation": False}),
        ("default", {"shortest_limit": 80}),
        ("default", {"fail_streak_gate": 4}),
    ],
)
def test_it_says_nothing_where_observations_do_not_tell(preset, changes):
    assert MockInterview(preset, **changes).knowledge is None
