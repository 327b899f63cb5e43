import json
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedbed.statistics.copeland import best_mean, copeland, pairwise_wins
from seedbed.statistics.paired import sign_test

REFERENCE = Path(__file__).parents[1] / "reference"


def cases(path):
    return json.loads((REFERENCE / path).read_text())["cases"]


@pytest.mark.parametrize("case", cases("generalized/copeland.json"), ids=lambda c: c["id"])
def test_votes_equal_the_reference(case):
    result, mean = copeland(case["scores"]), best_mean(case["scores"])
    assert pairwise_wins(case["scores"]).tolist() == case["pairwise_wins"]
    for name in ("wins", "losses", "ties"):
        assert getattr(result, name).tolist() == case[name]
    assert result.scores.tolist() == case["win_minus_loss"]
    assert (result.wins + result.ties / 2).tolist() == case["wins_plus_half_ties"]
    assert list(result.winners) == case["winners"]
    np.testing.assert_allclose(mean.means, case["mean_scores"], rtol=1e-12)
    assert list(mean.winners) == case["best_mean"]
    beats_all = [i for i, wins in enumerate(case["wins"]) if wins == len(case["wins"]) - 1]
    assert result.condorcet == (beats_all[0] if beats_all else None)


@pytest.mark.parametrize("case", cases("statistics/copeland.json"), ids=lambda c: c["name"])
def test_votes_equal_a_hand_count(case):
    scores, expected = case["inputs"]["scores_tasks_by_algorithms"], case["expected"]
    result = copeland(scores)
    assert pairwise_wins(scores).tolist() == expected["pairwise_wins"]
    assert result.scores.tolist() == expected["copeland_scores_wins_minus_losses"]
    assert list(result.winners) == expected["winners"]


@pytest.mark.parametrize("case", cases("generalized/sign_test.json"), ids=lambda c: c["id"])
def test_the_sign_test_equals_the_exact_tail(case):
    x = np.repeat([1.0, 0.0, 0.0], [case["wins"], case["losses"], case["ties"]])
    y = np.repeat([0.0, 1.0, 0.0], [case["wins"], case["losses"], case["ties"]])
    greater, both = sign_test(x, y, alternative="greater"), sign_test(x, y)
    assert (both.statistic, both.losses, both.ties) == (case["wins"], case["losses"], case["ties"])
    assert greater.pvalue == pytest.approx(case["p_greater_ties_dropped"], abs=1e-12)
    assert both.pvalue == pytest.approx(case["p_two_sided_ties_dropped"], abs=1e-12)


def test_ties_go_to_the_better_mean_and_then_to_the_first():
    assert copeland([[1, 2], [5, 2]]).chosen == 0  # one voter each, means 3 and 2
    assert copeland([[2, 1], [2, 5]]).chosen == 1
    assert copeland([[1, 1, 0]]).chosen == 0
    assert best_mean([[1, 2, 2]]).chosen == 1
    cycle = copeland([[3, 2, 1], [1, 3, 2], [2, 1, 3]])
    assert (cycle.winners, cycle.condorcet) == ((0, 1, 2), None)


scores = st.integers(1, 7).flatmap(
    lambda voters: st.integers(1, 6).flatmap(
        lambda candidates: st.lists(
            st.lists(st.integers(-9, 0).map(float), min_size=candidates, max_size=candidates),
            min_size=voters,
            max_size=voters,
        )
    )
)


@given(scores, st.lists(st.floats(0.1, 100), min_size=7, max_size=7))
@settings(max_examples=150, deadline=None)
def test_rescaling_a_task_leaves_votes_and_signs_alone(table, factors):
    table = np.array(table)
    scaled = table * np.array(factors)[: len(table), None]
    assert pairwise_wins(table).tolist() == pairwise_wins(scaled).tolist()
    assert copeland(table).winners == copeland(scaled).winners
    x, y = table[:, 0], table[:, -1]
    assert np.sum(x > y) == np.sum(scaled[:, 0] > scaled[:, -1])


def test_rescaling_a_task_can_change_who_has_the_best_mean():
    table = np.array([[-1.0, -2.0], [-4.0, -1.0], [-1.0, -2.0]])
    assert best_mean(table).chosen != best_mean(table * [[10], [1], [10]]).chosen
    assert copeland(table).chosen == copeland(table * [[10], [1], [10]]).chosen == 0


@given(scores)
@settings(max_examples=100, deadline=None)
def test_contests_add_up(table):
    result = copeland(table)
    others = len(table[0]) - 1
    assert (result.wins + result.losses + result.ties == others).all()
    assert result.wins.sum() == result.losses.sum()
    assert result.chosen in result.winners
    assert result.condorcet is None or result.winners == (result.condorcet,)


def test_the_whole_grid_is_counted_in_seconds():
    table = np.random.default_rng(0).normal(size=(25, 3024))
    start = time.process_time()
    result = copeland(table)
    assert time.process_time() - start < 10
    sample = table[:, result.chosen, None] > table
    assert pairwise_wins(table)[result.chosen].tolist() == sample.sum(0).tolist()


def test_tables_with_holes_are_refused():
    with pytest.raises(ValueError, match="candidate 1 has no score from voter 0"):
        copeland([[1, np.nan]])
    with pytest.raises(ValueError, match="shape"):
        copeland([1, 2])
    assert copeland([[-np.inf, -5.0]]).chosen == 1
