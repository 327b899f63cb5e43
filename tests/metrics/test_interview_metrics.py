"""The interview study's metrics: exact small cases, and each known way to get such a table wrong."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedbed.artifacts import ArtifactError
from seedbed.metrics.base import collect, score
from seedbed.metrics.interview import BLUEPRINT, METRICS, MODALITIES, adherence, blueprint_distance


@pytest.fixture
def measure(build):
    def table(*episodes, horizon=140):
        scores = score("s", "e", "a", *build.evaluation(*episodes), METRICS, horizon=horizon)
        return scores.set_index("metric")

    return table


class TestTimeToMastery:
    def test_quitting_fast_is_not_mastering_fast(self, measure, build):
        """None replaced by the episode length made a policy that drives learners away look fastest."""
        quits = measure(*[(build.QUIT, [build.question(correct=0)] * 19)] * 4)
        masters = measure(*[(build.MASTERY, [build.content()] * 70)] * 4)
        assert quits.loc["restricted_time_to_mastery", "value"] == 140
        assert masters.loc["restricted_time_to_mastery", "value"] == 70
        assert quits.loc["quit_rate", "value"] == 1
        assert quits.loc["mastery_incidence", "value"] == 0

    def test_who_does_not_master_counts_the_horizon_and_nobody_is_dropped(self, measure, build):
        table = measure(
            (build.MASTERY, [build.content()] * 60),
            (build.QUIT, [build.content()] * 20),
            (build.LIMIT, [build.content()] * 140),
        )
        row = table.loc["restricted_time_to_mastery"]
        assert row["value"] == pytest.approx((60 + 140 + 140) / 3)
        assert row["episodes"] == 3
        assert table.loc["mastery_incidence", "value"] == pytest.approx(1 / 3)
        assert table.loc["quit_rate", "value"] == pytest.approx(1 / 3)

    def test_a_session_with_a_shorter_limit_of_its_own_counts_the_horizon_too(self, measure, build):
        table = measure((build.LIMIT, [build.content()] * 90), (build.MASTERY, [build.content()] * 80))
        assert table.loc["restricted_time_to_mastery", "value"] == 110

    def test_mastery_at_the_last_step_is_mastery(self, measure, build):
        table = measure((build.MASTERY, [build.content()] * 140))
        assert table.loc["mastery_incidence", "value"] == 1
        assert table.loc["time_to_mastery_median", "value"] == 140

    def test_median_is_the_first_step_by_which_half_have_mastered(self, measure, build):
        mastered = [(build.MASTERY, [build.content()] * k) for k in (10, 20, 30)]
        quits = [(build.QUIT, [build.content()] * 5)]
        assert measure(*mastered, *quits).loc["time_to_mastery_median", "value"] == 20
        assert measure(*mastered, *quits * 3).loc["time_to_mastery_median", "value"] == 30
        assert measure(*mastered, *quits * 3).loc["time_to_mastery_median", "episodes"] == 6

    def test_median_is_missing_where_half_never_master(self, measure, build):
        row = measure((build.MASTERY, [build.content()] * 10), *[(build.QUIT, [build.content()])] * 2).loc[
            "time_to_mastery_median"
        ]
        assert math.isnan(row["value"])
        assert row["status"] == "not reached"

    def test_where_nobody_of_any_algorithm_masters_time_says_nothing(self, build):
        def scores(algorithm, environment, *episodes):
            return score("s", environment, algorithm, *build.evaluation(*episodes), METRICS, horizon=140)

        limit, mastered = [(build.LIMIT, [build.content()] * 140)], [(build.MASTERY, [build.content()] * 9)]
        table = collect(
            [
                scores("a", "hard", *limit),
                scores("b", "hard", *limit),
                scores("a", "fair", *limit),
                scores("b", "fair", *mastered),
            ],
            METRICS,
        )
        times = table[table["metric"] == "restricted_time_to_mastery"].set_index(["environment", "algorithm"])
        assert list(times.loc["hard", "status"]) == ["all censored: not reached"] * 2
        assert times.loc["hard", "value"].isna().all()
        assert dict(times.loc["fair", "value"]) == {"a": 140, "b": 9}  # a's horizon is a fact beside b's 9

    def test_an_episode_without_an_end_is_refused(self, measure, build):
        with pytest.raises(ArtifactError, match="final_end_reason"):
            measure((0, [build.content()]))


class TestBlueprint:
    @pytest.mark.parametrize(
        ("counts", "percent"),
        [
            ((5, 0, 0), 46.6667),
            ((0, 0, 3), 46.6667),
            ((0, 9, 0), 73.3333),
            ((2, 6, 2), 100),
            ((1, 1, 1), 82.2222),
        ],
    )
    def test_known_mixes(self, measure, build, counts, percent):
        asked = [build.question(d) for d in range(3) for _ in range(counts[d])]
        table = measure((build.LIMIT, [*asked, build.content()]))
        assert table.loc["blueprint_adherence", "value"] == pytest.approx(percent, abs=1e-4)
        assert table.loc["blueprint_pooled", "value"] == pytest.approx(percent, abs=1e-4)
        assert table.loc["blueprint_rescaled", "value"] == pytest.approx(
            (percent - 46.6667) / 53.3333, abs=1e-5
        )

    def test_ten_questions_drawn_from_the_target_score_well_below_100(self):
        """Over all mixes of ten questions, against de Moivre's mean deviation of a binomial count."""

        def mean_deviation(n, p):
            k = math.floor(n * p) + 1
            return 2 * k * math.comb(n, k) * p**k * (1 - p) ** (n - k + 1)

        expected = 0.0
        for easy, medium in itertools.product(range(11), repeat=2):
            hard = 10 - easy - medium
            if hard >= 0:
                ways = math.factorial(10) / math.prod(map(math.factorial, (easy, medium, hard)))
                chance = ways * 0.2**easy * 0.6**medium * 0.2**hard
                expected += chance * float(adherence(blueprint_distance(np.array([easy, medium, hard]))))
        deviation = (2 * mean_deviation(10, 0.2) + mean_deviation(10, 0.6)) / 10
        assert expected == pytest.approx(100 * (1 - deviation / 3))
        assert expected == pytest.approx(89.54, abs=0.01)

    @given(st.lists(st.integers(0, 30), min_size=3, max_size=3).filter(any))
    def test_range_and_relations(self, counts):
        distance = blueprint_distance(np.array(counts))
        shares = np.array(counts) / sum(counts)
        assert 46.66 < adherence(distance) <= 100
        # the percentage points to move are what the shares above target have too much
        assert 50 * distance == pytest.approx(100 * np.maximum(shares - BLUEPRINT, 0).sum(), abs=1e-9)

    def test_no_question_is_missing_not_perfect(self, measure, build):
        table = measure(*[(build.LIMIT, [build.content()] * 5)] * 3)
        for name in ("adherence", "rescaled", "deviation", "pooled"):
            row = table.loc[f"blueprint_{name}"]
            assert math.isnan(row["value"])
            assert row["status"] == "no question asked"
        assert table.loc["difficulty_share_easy", "status"] == "no question asked"
        assert table.loc["question_accuracy", "status"] == "no question asked"
        assert table.loc["question_accuracy", "episodes"] == 0

    def test_episodes_without_a_question_leave_the_mean(self, measure, build):
        table = measure((build.LIMIT, [build.content()] * 5), (build.LIMIT, [build.question(1)]))
        assert table.loc["blueprint_adherence", "value"] == pytest.approx(73.3333, abs=1e-4)
        assert table.loc["blueprint_adherence", "episodes"] == 1
        assert table.loc["blueprint_pooled", "episodes"] == 1

    def test_difficulties_that_are_not_numbers_are_refused(self, measure, build):
        """Names in place of numbers once left no question to count, and an adherence of 100."""
        with pytest.raises(ArtifactError, match="0 \\(easy\\), 1 \\(medium\\) or 2 \\(hard\\)"):
            measure((build.LIMIT, [build.question("easy")]))
        with pytest.raises(ArtifactError, match="difficulties"):
            measure((build.LIMIT, [build.question(-1)]))

    def test_pooled_counts_differ_from_the_mean_of_episodes(self, measure, build):
        table = measure((build.LIMIT, [build.question(0)] * 2), (build.LIMIT, [build.question(1)] * 8))
        assert table.loc["blueprint_pooled", "value"] == pytest.approx(100 - 100 * 0.4 / 3)
        assert table.loc["blueprint_adherence", "value"] == pytest.approx((46.6667 + 73.3333) / 2, abs=1e-4)

    def test_deviation_is_in_percentage_points_and_lower_is_better(self, measure, build):
        table = measure((build.LIMIT, [build.question(2)]))
        assert table.loc["blueprint_deviation", "value"] == pytest.approx(80)
        by_name = {metric.name: metric for metric in METRICS}
        assert by_name["blueprint_deviation"].better == "lower"
        assert by_name["blueprint_deviation"].unit == "percentage points"
        assert by_name["blueprint_adherence"].better == "higher"
        assert by_name["blueprint_adherence"].unit == "%"

    def test_shares_sum_to_one(self, measure, build):
        table = measure(
            (build.LIMIT, [build.question(0), build.question(1)]), (build.LIMIT, [build.question(2)] * 3)
        )
        shares = [table.loc[f"difficulty_share_{name}", "value"] for name in ("easy", "medium", "hard")]
        assert shares == [0.25, 0.25, 0.5]


class TestContent:
    def test_gain_averages_content_within_then_over_episodes_with_content(self, measure, build):
        table = measure(
            (build.LIMIT, [build.content(gain=0.1), build.content(gain=0.3), build.question()]),
            (build.LIMIT, [build.content(gain=0.4)]),
            (build.LIMIT, [build.question()]),
        )
        row = table.loc["post_content_gain"]
        assert row["value"] == pytest.approx(
            0.3
        )  # neither 0.2667 (pooled) nor 0.2 (zero where there is none)
        assert row["episodes"] == 2

    def test_no_content_is_missing_not_zero(self, measure, build):
        table = measure((build.LIMIT, [build.question()] * 3))
        assert table.loc["post_content_gain", "status"] == "no content shown"
        assert table.loc["relative_content_gain", "status"].startswith("no content shown")
        assert table.loc["post_content_gain_video", "status"] == "no video shown"
        assert table.loc["content_rate", "value"] == 0  # a rate is defined: content was possible

    def test_a_gain_of_zero_is_a_value(self, measure, build):
        row = measure((build.LIMIT, [build.content(gain=0.0)])).loc["post_content_gain"]
        assert row["value"] == 0
        assert row["status"] == "ok"

    def test_gains_of_questions_do_not_enter(self, measure, build):
        table = measure((build.LIMIT, [build.question(gain=0.9), build.content(gain=0.1)]))
        assert table.loc["post_content_gain", "value"] == pytest.approx(0.1)

    def test_relative_gain_divides_by_the_room_to_learn(self, measure, build):
        table = measure(
            (build.LIMIT, [build.content(gain=0.1, before=0.5), build.content(gain=0.1, before=0.75)]),
            (build.LIMIT, [build.content(gain=0.0, before=1.0)]),
        )
        assert table.loc["relative_content_gain", "value"] == pytest.approx(0.3)
        assert table.loc["relative_content_gain", "episodes"] == 1
        assert table.loc["post_content_gain", "episodes"] == 2

    def test_each_modality_has_its_own_gain(self, measure, build):
        shown = [build.content(number, gain=0.01 * (number + 1)) for number in range(5)]
        table = measure((build.LIMIT, shown))
        for number, name in enumerate(MODALITIES[:5]):
            assert table.loc[f"post_content_gain_{name}", "value"] == pytest.approx(0.01 * (number + 1))
        assert table.loc["post_content_gain_handout", "status"] == "no handout shown"

    def test_content_rate_is_a_fraction_of_steps_averaged_over_episodes(self, measure, build):
        table = measure(
            (build.LIMIT, [build.content()] * 3 + [build.question()]), (build.LIMIT, [build.question()] * 9)
        )
        assert table.loc["content_rate", "value"] == pytest.approx(0.375)


class TestQuestionsAndMood:
    def test_accuracy_is_a_fraction_per_episode_with_questions(self, measure, build):
        table = measure(
            (build.LIMIT, [build.question(correct=1)] + [build.question(correct=0)] * 3),
            (build.LIMIT, [build.question(correct=1)]),
            (build.LIMIT, [build.content()]),
        )
        row = table.loc["question_accuracy"]
        assert row["value"] == pytest.approx(0.625)
        assert row["episodes"] == 2

    def test_an_unanswered_question_is_refused(self, measure, build):
        with pytest.raises(ArtifactError, match="`correct`"):
            measure((build.LIMIT, [build.question(correct=-1)]))

    def test_frustration_averages_steps_then_episodes(self, measure, build):
        table = measure(
            (build.QUIT, [build.question(frustration=0.96)]),
            (build.LIMIT, [build.question(frustration=0.0), build.content(frustration=0.04)] * 5),
        )
        assert table.loc["mean_frustration", "value"] == pytest.approx(0.49)

    def test_final_mastery_is_that_after_the_last_step(self, measure, build):
        table = measure(
            (build.LIMIT, [build.content(mastery=0.2), build.content(mastery=0.6)]),
            (build.LIMIT, [build.content(mastery=0.4)]),
        )
        assert table.loc["final_mastery", "value"] == pytest.approx(0.5)


def test_lower_is_better_for_times_and_quitting():
    better = {metric.name: metric.better for metric in METRICS}
    assert better["restricted_time_to_mastery"] == better["time_to_mastery_median"] == "lower"
    assert better["quit_rate"] == better["mean_frustration"] == "lower"
    assert better["mastery_incidence"] == better["final_mastery"] == "higher"
