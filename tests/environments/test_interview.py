"""The mock interview's rules, one by one, on exact small cases, and its invariances."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedbed.algorithms.interview_rules import RuleBasedPolicy
from seedbed.algorithms.uniform_random import UniformRandomPolicy
from seedbed.environments.interview import MockInterview
from seedbed.environments.interview_content import PRESETS
from seedbed.environments.lanes import DynamicsLanes
from seedbed.evaluation import evaluate
from seedbed.seeding import Purpose, stream

RIGHT, WRONG = 0.0, np.nextafter(1, 0)
EASY, MEDIUM, HARD = range(3)
VIDEO, HANDOUT = 0, 5


def learner(dynamics, **parts):
    """A new learner without leading axes, mastery 0.3 everywhere and ability 0 unless said otherwise."""
    initial, _ = dynamics.draw(stream(Purpose.TEST, 0, 0))
    state = dynamics.initial(initial)
    defaults = {"mastery": np.full_like(state.mastery, 0.3), "ability": np.array(0.0)}
    return state._replace(**{name: np.asarray(part) for name, part in (defaults | parts).items()})


def ask(dynamics, state, difficulty, answer, outcome=0, normal=0.0):
    action = dynamics.question(np.array(outcome), difficulty)
    return dynamics.step(state, action, np.array([0.5, answer, normal]))


def show(dynamics, state, modality=VIDEO, outcome=0, normal=0.0):
    return dynamics.step(state, dynamics.content(np.array(outcome), modality), np.array([0.5, 0.5, normal]))


def random_walk(dynamics, shape, steps, seed=0):
    """States, actions and transitions of learners under random actions, whatever the mask says."""
    generator = np.random.default_rng(seed)
    noise = [dynamics.draw(stream(Purpose.TEST, seed, i)) for i in range(int(np.prod(shape)))]
    initial = np.array([start for start, _ in noise]).reshape(*shape, -1)
    tape = np.array([tape for _, tape in noise]).reshape(*shape, dynamics.spec.horizon, 3)
    state = dynamics.initial(initial)
    for t in range(steps):
        action = generator.integers(0, dynamics.spec.actions, shape)
        result = dynamics.step(state, action, tape[..., t, :])
        yield state, action, result
        state = result.state


class TestFrustration:
    def test_critical_frustration_is_reached_exactly_where_floats_miss_it(self):
        dynamics = MockInterview("as_specified")
        result, walked = ask(dynamics, learner(dynamics), HARD, WRONG), 0.15
        for _ in range(8):
            assert not result.terminated
            result, walked = ask(dynamics, result.state, EASY, WRONG), walked + 0.10
        assert walked < 0.95
        assert result.terminated
        assert result.facts["frustration"] == 0.95
        assert result.facts["end_reason"] == 3

    def test_floats_would_end_other_episodes_at_other_steps(self):
        changes = np.random.default_rng(0).choice([-5, 10, 15, -8, 2], (2000, 140))
        exact = np.zeros(2000, np.int64)
        floats = np.zeros(2000)
        differ = np.zeros(2000, bool)
        for change in changes.T:
            exact = np.clip(exact + change, 0, 100)
            floats = np.clip(floats + change / 100, 0, 1)
            differ |= (exact >= 95) != (floats >= 0.95)
        assert differ.mean() > 0.01

    def test_rule_sees_exactly_seven_tenths(self):
        dynamics = MockInterview("as_specified")
        policy = RuleBasedPolicy(
            [0],
            dynamics,
            {
                "frustration_limit": 0.7,
                "response_time_limit": 60.0,
                "mastery_bands": (0.4, 0.7),
                "high_frustration": 0.6,
            },
        )
        state, content = learner(dynamics), []
        for _ in range(7):
            state = ask(dynamics, state, EASY, WRONG).state
            observation = dynamics.observe(state)[None, None]
            action, _ = policy.act(observation, None, np.zeros((1, 1, 1)), None, np.zeros((1, 1), bool))
            content.append(bool(action[0, 0] >= 90))
        assert content == [False] * 6 + [True]

    @pytest.mark.parametrize(
        "before, difficulty, answer, mastery, after",
        [
            (0, EASY, RIGHT, 0.3, 0),
            (3, EASY, RIGHT, 0.3, 0),
            (50, MEDIUM, RIGHT, 0.3, 45),
            (50, HARD, WRONG, 0.49, 65),
            (50, HARD, WRONG, 0.5, 60),
            (50, MEDIUM, WRONG, 0.3, 60),
            (90, HARD, WRONG, 0.3, 100),
            (95, EASY, WRONG, 0.3, 100),
        ],
    )
    def test_after_an_answer(self, before, difficulty, answer, mastery, after):
        dynamics = MockInterview("as_specified")
        state = learner(dynamics, frustration=before, mastery=np.full(30, mastery))
        assert ask(dynamics, state, difficulty, answer).state.frustration == after

    @pytest.mark.parametrize("modality, change", list(enumerate([-8, -5, 2, -3, 0, 5])))
    def test_after_content(self, modality, change):
        dynamics = MockInterview("as_specified")
        for before in (0, 4, 50, 97, 100):
            result = show(dynamics, learner(dynamics, frustration=before), modality)
            assert result.state.frustration == min(max(before + change, 0), 100)


class TestLearning:
    def test_right_answer(self):
        dynamics = MockInterview("as_specified")
        result = ask(dynamics, learner(dynamics, fail_streak=2, frustration=20), EASY, RIGHT, normal=1.5)
        assert result.facts["gain"] == pytest.approx(0.05 * 0.7, abs=1e-15)
        assert result.state.mastery[0] == 0.3 + 0.05 * 0.7
        np.testing.assert_array_equal(result.state.mastery[1:], 0.3)
        assert result.state.ability == 0.02
        assert result.state.fail_streak == 0
        assert result.state.response_time == 45
        assert result.reward == pytest.approx(1 + 0.5 * 0.035 - 0.3 * 0.15, abs=1e-15)

    def test_wrong_answer(self):
        dynamics = MockInterview("as_specified")
        result = ask(dynamics, learner(dynamics, fail_streak=2), EASY, WRONG, normal=-9)
        assert result.facts["gain"] == 0
        assert result.state.ability == 0
        assert result.state.fail_streak == 3
        assert result.state.response_time == 5
        assert result.reward == pytest.approx(-0.3 * 0.1, abs=1e-15)

    def test_answers_depend_on_ability_and_not_on_mastery(self):
        dynamics = MockInterview("as_specified")
        uniform = 0.7
        able, unable = (learner(dynamics, ability=ability) for ability in (3.0, -3.0))
        assert ask(dynamics, able, MEDIUM, uniform).facts["correct"] == 1
        assert ask(dynamics, unable, MEDIUM, uniform).facts["correct"] == 0
        for mastery in (0.0, 1.0):
            state = unable._replace(mastery=np.full(30, mastery))
            assert ask(dynamics, state, MEDIUM, uniform).facts["correct"] == 0

    def test_answer_follows_the_three_parameter_logistic_of_the_item(self):
        dynamics = MockInterview("as_specified")
        for item in range(20):
            difficulty = EASY if item < 7 else MEDIUM if item < 14 else HARD
            first, count = [(0, 7), (7, 7), (14, 6)][difficulty]
            a, b, c, _ = dynamics.material[:, 40 + item]
            p = c + (1 - c) / (1 + np.exp(-a * (0.3 - b)))
            for uniform, right in ((p - 1e-9, 1), (p + 1e-9, 0)):
                result = dynamics.step(
                    learner(dynamics, ability=0.3),
                    dynamics.question(np.array(2), difficulty),
                    np.array([(item - first + 0.5) / count, uniform, 0.0]),
                )
                assert result.facts["item"] == 40 + item
                assert result.facts["correct"] == right

    def test_content(self):
        dynamics = MockInterview("as_specified")
        state = learner(dynamics, frustration=40, fail_streak=2, response_time=70.0)
        result = show(dynamics, state, HANDOUT, outcome=3, normal=1.0)
        gain = dynamics.effectiveness(state)[3, HANDOUT] * 0.7 * (1 - 0.5 * 0.4) + 0.02
        assert result.facts["gain"] == pytest.approx(gain, abs=1e-15)
        assert result.facts["item"] == 3 * 6 + HANDOUT
        assert result.state.fail_streak == 0
        assert result.state.response_time == 70
        assert result.state.ability == 0
        assert result.reward == pytest.approx(2 * gain - 0.5 * 0.05, abs=1e-15)

    def test_content_never_harms_and_calm_is_paid_by_the_nominal_change(self):
        dynamics = MockInterview("as_specified")
        result = show(dynamics, learner(dynamics), VIDEO, normal=-50)
        assert result.facts["gain"] == 0
        assert result.state.frustration == 0
        assert result.reward == pytest.approx(0.04, abs=1e-15)

    def test_gain_is_the_change_really_made(self):
        dynamics = MockInterview("as_specified")
        state = learner(dynamics, mastery=np.r_[0.99, np.full(29, 0.1)])
        result = show(dynamics, state, VIDEO, normal=20)
        assert result.state.mastery[0] == 1
        assert result.facts["gain"] == 1 - 0.99
        assert result.reward == pytest.approx(2 * 0.01 + 0.04, abs=1e-12)


class TestEnds:
    @pytest.mark.parametrize(
        "mastery, frustration, steps, terminated, truncated, reason",
        [
            (0.3, 0, 5, False, False, 0),
            (0.9, 0, 5, True, False, 1),
            (0.9, 95, 5, True, False, 1),
            (0.9, 95, 139, True, True, 1),
            (0.3, 95, 139, True, True, 2),
            (0.3, 0, 139, False, True, 2),
            (0.3, 95, 5, True, False, 3),
        ],
    )
    def test_order_and_flags(self, mastery, frustration, steps, terminated, truncated, reason):
        dynamics = MockInterview("as_specified")
        state = learner(dynamics, mastery=np.full(30, mastery), frustration=frustration, steps=steps)
        result = show(dynamics, state, modality=4)
        assert result.terminated == terminated
        assert (result.state.steps >= dynamics.limit(result.state)) == truncated
        assert result.facts["end_reason"] == reason
        assert result.facts["mastered"] == (mastery > 0.8)

    def test_mastery_is_the_mean_over_outcomes(self):
        dynamics = MockInterview("tiny")
        state = learner(dynamics, mastery=np.array([0.6, 1.0, 1.0, 0.55]))
        assert not show(dynamics, state, outcome=1).terminated
        assert show(dynamics, state, outcome=0, normal=5).terminated

    def test_limit_per_episode(self):
        dynamics = MockInterview("as_trained")
        noise = np.array([dynamics.draw(stream(Purpose.TEST, 0, episode))[0] for episode in range(3000)])
        limits = dynamics.limit(dynamics.initial(noise))
        assert limits.min() == 80
        assert limits.max() == 140
        counts = np.bincount(limits - 80)
        assert ((counts - 3000 / 61) ** 2 / (3000 / 61)).sum() < 60 + 4 * np.sqrt(2 * 60)
        state = learner(dynamics, limit=81, steps=80)
        assert show(dynamics, state).facts["end_reason"] == 2


class TestDefaultPreset:
    def test_gate_shows_video_of_the_same_outcome(self):
        dynamics = MockInterview("default")
        for streak, gated in ((2, False), (3, True), (7, True)):
            state = learner(dynamics, fail_streak=streak, frustration=50)
            result = ask(dynamics, state, HARD, WRONG, outcome=4)
            facts = {name: fact.item() for name, fact in result.facts.items()}
            assert facts["gated"] == gated
            assert facts["is_question"] == (not gated)
            assert facts["modality"] == (VIDEO if gated else -1)
            assert facts["difficulty"] == (-1 if gated else HARD)
            assert facts["correct"] == (-1 if gated else 0)
            assert facts["learning_outcome"] == 4
        video = show(dynamics, state, VIDEO, outcome=4)
        assert result.reward == video.reward
        for after, same in zip(result.state, video.state, strict=True):
            np.testing.assert_array_equal(after, same)

    def test_gate_is_off_as_specified_and_never_touches_content(self):
        dynamics = MockInterview("as_specified")
        assert not ask(dynamics, learner(dynamics, fail_streak=9), EASY, WRONG).facts["gated"]
        dynamics = MockInterview("default")
        result = show(dynamics, learner(dynamics, fail_streak=9), HANDOUT)
        assert not result.facts["gated"]
        assert result.facts["modality"] == HANDOUT

    def test_time_saved_is_paid_once_at_mastery(self):
        dynamics = MockInterview("default")
        state = learner(dynamics, mastery=np.full(15, 0.9), steps=59)
        gain = show(dynamics, state).facts["gain"]
        assert show(dynamics, state).reward == pytest.approx(6 * gain + 0.04 + 0.7 * (140 - 60), abs=1e-12)
        late = state._replace(steps=np.array(139))
        assert show(dynamics, late).reward == pytest.approx(6 * gain + 0.04, abs=1e-12)

    def test_no_step_of_lingering_pays_as_much_as_the_time_it_costs(self):
        c = PRESETS["default"]
        assert c.weight_correct < c.time_saved_bonus

    def test_blueprint_penalty_counts_this_question(self):
        dynamics = MockInterview("default")
        plain = MockInterview("default", blueprint_penalty=0)
        for shown, difficulty, distance in (
            ([0, 0, 0, 0], MEDIUM, 0.2 + 0.4 + 0.2),
            ([0, 0, 0, 5], EASY, 0.8 + 0.6 + 0.2),
            ([1, 2, 1, 0], MEDIUM, 0.0),
        ):
            state = learner(dynamics, shown=shown, steps=sum(shown))
            paid = ask(dynamics, state, difficulty, RIGHT).reward
            free = ask(plain, state, difficulty, RIGHT).reward
            assert free - paid == pytest.approx(0.25 * distance, abs=1e-12)
        assert show(dynamics, state).reward == show(plain, state).reward

    def test_content_cap(self):
        dynamics = MockInterview("default")
        for questions, contents, allowed in (
            (0, 0, False),
            (1, 0, True),
            (1, 1, False),
            (2, 1, True),
            (9, 9, False),
        ):
            state = learner(dynamics, shown=[questions, 0, 0, contents], steps=questions + contents)
            mask = dynamics.action_mask(state)
            assert mask[:45].all()
            assert (mask[45:] == allowed).all()

    def test_extended_observation(self):
        dynamics = MockInterview("default")
        state = learner(
            dynamics, shown=[1, 3, 0, 4], steps=8, fail_streak=2, frustration=35, response_time=30.0
        )
        expected = np.array([*[0.3] * 15, 0.35, 0.25, 0.25, 0.75, 0, 2 / 3, 8 / 140, 0.5], np.float32)
        np.testing.assert_array_equal(dynamics.observe(state), expected)

    def test_blueprint_mask_allows_difficulties_not_above_their_share(self):
        dynamics = MockInterview("as_trained", blueprint_mask=True, blueprint_penalty=0)
        for asked, allowed in (
            ([0, 0, 0], [True, True, True]),
            ([0, 1, 0], [True, False, True]),
            ([1, 3, 1], [True, True, True]),
            ([2, 3, 1], [False, True, True]),
        ):
            state = learner(dynamics, shown=[*asked, 7], steps=sum(asked) + 7)
            mask = dynamics.action_mask(state)
            np.testing.assert_array_equal(mask[:90].reshape(30, 3), [allowed] * 30)
            assert mask[90:].all()
        assert not MockInterview("as_specified").spec.masked


class TestHidden:
    def test_ability_is_never_observed(self):
        for preset in PRESETS:
            dynamics = MockInterview(preset)
            able, unable = (learner(dynamics, ability=ability) for ability in (-2.0, 2.0))
            np.testing.assert_array_equal(dynamics.observe(able), dynamics.observe(unable))

    def test_as_specified_hides_streak_time_and_counts(self):
        dynamics = MockInterview("as_specified")
        state = learner(dynamics)
        later = state._replace(fail_streak=np.array(5), steps=np.array(70), shown=np.array([40, 20, 0, 10]))
        np.testing.assert_array_equal(dynamics.observe(state), dynamics.observe(later))
        assert dynamics.spec.observation_shape == (32,)
        assert MockInterview("default").spec.observation_shape == (23,)


class TestInvariances:
    @given(
        st.sampled_from([*PRESETS, "per_episode"]),
        st.integers(1, 6),
        st.integers(0, 50),
    )
    def test_observations_and_facts_stay_in_their_ranges(self, preset, outcomes, seed):
        overrides = {"bank": "per_episode"} if preset == "per_episode" else {}
        dynamics = MockInterview("default" if overrides else preset, learning_outcomes=outcomes, **overrides)
        for before, _, result in random_walk(dynamics, (2, 3), 20, seed):
            observation = dynamics.observe(result.state)
            assert observation.dtype == np.float32
            assert ((observation >= 0) & (observation <= 1)).all()
            assert dynamics.action_mask(result.state).any(-1).all()
            assert {name: fact.dtype.name for name, fact in result.facts.items()} == {
                fact.name: fact.dtype for fact in dynamics.spec.facts
            }
            change = result.state.mastery.sum(-1) - before.mastery.sum(-1)
            np.testing.assert_allclose(change, result.facts["gain"], atol=1e-12)
            assert (result.facts["gain"] >= 0).all()
            assert ((result.state.frustration >= 0) & (result.state.frustration <= 100)).all()
            np.testing.assert_array_equal(result.state.shown.sum(-1), result.state.steps)
            for name in ("ability", "response_time", "fail_streak"):
                np.testing.assert_array_equal(result.facts[name], getattr(result.state, name))
            np.testing.assert_array_equal(result.facts["frustration"], result.state.frustration / 100)

    @pytest.mark.parametrize("preset", PRESETS)
    def test_bits_do_not_depend_on_the_leading_shape(self, preset):
        dynamics = MockInterview(preset)

        def rows(result):
            parts = [*result.state, result.reward, result.terminated, *result.facts.values()]
            parts += [dynamics.observe(result.state), dynamics.action_mask(result.state)]
            return parts

        for state, action, result in random_walk(dynamics, (15,), 40):
            noise = np.random.default_rng(int(action.sum())).random((15, 3))
            expected = rows(dynamics.step(state, action, noise))
            for shape in ((3, 5), (1, 15), (15, 1)):
                reshaped = type(state)(*(part.reshape(*shape, *part.shape[1:]) for part in state))
                got = rows(dynamics.step(reshaped, action.reshape(shape), noise.reshape(*shape, 3)))
                for part, same in zip(expected, got, strict=True):
                    np.testing.assert_array_equal(part.reshape(same.shape), same)
                    assert part.dtype == same.dtype
            for shape in ((), (1,)):
                one = type(state)(*(np.reshape(part[4], (*shape, *part.shape[1:])) for part in state))
                got = rows(dynamics.step(one, np.reshape(action[4], shape), noise[4].reshape(*shape, 3)))
                for part, same in zip(expected, got, strict=True):
                    assert same.shape == (*shape, *part.shape[1:])
                    np.testing.assert_array_equal(part[4].reshape(same.shape), same)
            assert result.state.steps.shape == (15,)

    @pytest.mark.parametrize("preset", ["default", "as_trained"])
    def test_nothing_that_a_step_returns_shares_memory(self, preset):
        dynamics = MockInterview(preset, learning_outcomes=3, bank="per_episode")
        for state, _, result in random_walk(dynamics, (1, 4), 3):
            fresh = [*result.state, result.reward, result.terminated, *result.facts.values()]
            fresh += [dynamics.observe(result.state), dynamics.limit(result.state)]
            for i, one in enumerate(fresh):
                assert not any(np.shares_memory(one, other) for other in (*state, *fresh[i + 1 :]))

    def test_tables_are_the_same_for_any_number_of_lanes(self):
        dynamics = MockInterview("tiny")
        tables = [
            evaluate(
                UniformRandomPolicy([3, 5], dynamics), dynamics, Purpose.TEST, 12, lanes=lanes, log_steps=True
            )
            for lanes in (1, 3, 8)
        ]
        for table in tables[1:]:
            assert table.episodes.equals(tables[0].episodes)
            assert table.steps.equals(tables[0].steps)
        assert (tables[0].episodes["success"] == (tables[0].episodes["final_end_reason"] == 1)).all()

    def test_each_episode_of_a_lane_starts_from_its_own_stream(self):
        dynamics, begun = MockInterview("tiny"), set()
        lanes = DynamicsLanes(dynamics, Purpose.TEST, [3, 5], 4, 70)
        while lanes.active.any():
            for row, lane in np.argwhere(lanes.first & lanes.active):
                episode = int(lanes.episode[row, lane])
                initial, _ = dynamics.draw(stream(Purpose.TEST, lanes.seeds[row], episode))
                np.testing.assert_array_equal(lanes.state.mastery[row, lane], initial[:4])
                begun.add((row, episode))
            lanes.step(np.full((2, 4), HARD))
        assert len(begun) == 140

    def test_idle_lanes_may_idle_beyond_every_limit(self):
        dynamics = MockInterview("tiny")
        lanes = DynamicsLanes(dynamics, Purpose.TEST, [0], 3, 2)
        for _ in range(3 * dynamics.spec.horizon):
            lanes.step(np.where(lanes.active, 0, 99))
        assert not lanes.active.any()


class TestContent:
    def test_fixed_by_the_bank_seed_alone(self):
        checksums = MockInterview("default").content_checksums()
        assert set(checksums) == {"question_bank", "content"}
        assert MockInterview("default", horizon=50, weight_correct=3).content_checksums() == checksums
        other = MockInterview("default", bank_seed=1).content_checksums()
        assert all(other[name] != checksums[name] for name in checksums)
        assert MockInterview("default", bank="per_episode").content_checksums() == {}

    @pytest.mark.parametrize("preset, items", [("as_specified", (7, 7, 6)), ("as_trained", (4, 12, 4))])
    def test_parameters_lie_in_their_ranges(self, preset, items):
        dynamics = MockInterview(preset)
        questions = dynamics.material[:3, :600].reshape(3, 30, 20)
        start = 0
        for difficulty, count in enumerate(items):
            a, b, c = questions[:, :, start : start + count]
            for values, (low, high) in (
                (a, dynamics.constants.item_discrimination[difficulty]),
                (b, dynamics.constants.item_difficulty[difficulty]),
                (c, dynamics.constants.item_guessing),
            ):
                assert values.min() >= low
                assert values.max() <= high
                assert values.mean() == pytest.approx((low + high) / 2, abs=0.1 * (high - low))
            start += count
        content = dynamics.material[3, 600:].reshape(30, 6)
        low, high = np.array(dynamics.constants.effectiveness).T
        assert ((content >= low) & (content <= high)).all()
        assert dynamics.spec.actions == 270

    def test_default_preset_scales_effectiveness(self):
        content = MockInterview("default").effectiveness(None)
        assert ((content[:, VIDEO] >= 0.25) & (content[:, VIDEO] <= 0.375)).all()
        assert ((content[:, HANDOUT] >= 0.125) & (content[:, HANDOUT] <= 0.20)).all()

    def test_per_episode_bank_is_the_learners_own(self):
        dynamics = MockInterview("tiny", bank="per_episode")
        lanes = DynamicsLanes(dynamics, Purpose.TEST, [0], 2)
        one, two = lanes.state.material[0]
        assert not np.array_equal(one, two)
        material, action = one[:, 3], dynamics.question(np.full((1, 2), 0), EASY)
        p = material[2] + (1 - material[2]) / (1 + np.exp(-material[0] * (0.1 - material[1])))
        state = lanes.state._replace(ability=np.full((1, 2), 0.1))
        for uniform, right in ((p - 1e-9, 1), (p + 1e-9, 0)):
            noise = np.broadcast_to([3.5 / 7, uniform, 0.0], (1, 2, 3))
            assert dynamics.step(state, action, noise).facts["correct"][0, 0] == right


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"preset": "easy"}, "no preset 'easy'. Use one of as_specified, as_trained, default, tiny"),
        ({"learning_outcome": 3}, "no argument learning_outcome"),
        ({"learning_outcomes": 0}, "learning_outcomes: Input should be greater than or equal to 1"),
        ({"horizon": 60, "preset": "as_trained"}, "shortest_limit 80 is above the horizon 60"),
        ({"frustration_wrong": 0.1}, "frustration_wrong: Input should be a valid integer"),
        ({"bank": "daily"}, "bank: Input should be 'fixed' or 'per_episode'"),
        ({"blueprint": (0.5, 0.5, 0.5)}, "blueprint sum to 1.5"),
        ({"content_cap": 0}, "content_cap"),
        ({"weight_correct": float("nan")}, "weight_correct: Input should be a finite number"),
        ({"item_guessing": (0.3, 0.2)}, "item_guessing has its lower end above its upper end"),
    ],
)
def test_bad_arguments_say_what_is_wrong(arguments, message):
    with pytest.raises(ValueError, match="MockInterview") as error:
        MockInterview(**arguments)
    assert message in str(error.value)
