"""Labels that do not overlap, text that fits, marks that differ without colour."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedbed.figures.layout import name, spread, text_width, wrap
from seedbed.figures.style import marks
from seedbed.figures.tables import algorithms_in_order, rows_of, why_missing


@given(st.lists(st.floats(-5, 15), min_size=1, max_size=14), st.floats(0.1, 0.7))
def test_spread_labels_never_overlap_keep_their_order_and_stay_inside(centres, height):
    heights = np.full(len(centres), height)
    placed = spread(centres, heights, 0.0, 10.0)
    order = np.argsort(centres, kind="stable")
    assert (np.diff(placed[order]) >= height - 1e-9).all()
    assert placed.min() >= height / 2 - 1e-9
    assert placed.max() <= 10 - height / 2 + 1e-9


def test_labels_that_do_not_overlap_stay_where_they_are():
    np.testing.assert_allclose(spread([7, 1, 4], [1, 1, 1], 0, 10), [7, 1, 4])


def test_labels_at_one_place_spread_around_it():
    np.testing.assert_allclose(spread([5, 5, 5], [1, 2, 1], 0, 10), [3.5, 5, 6.5])


def test_spread_moves_as_little_as_possible():
    """Least squares over all placements without overlap, by brute force on a grid."""
    centres, grid = [4.0, 4.2, 6.0], np.linspace(0, 10, 101)
    best = min(
        (
            p
            for p in itertools.product(grid, repeat=3)
            if p[1] - p[0] >= 1.5 - 1e-9 and p[2] - p[1] >= 1.5 - 1e-9
        ),
        key=lambda p: sum((a - b) ** 2 for a, b in zip(p, centres, strict=True)),
    )
    np.testing.assert_allclose(spread(centres, [1.5] * 3, 0, 10), best, atol=0.06)


@given(st.text("abcdefghijklmnop xyzÄ_$%<&-éß", min_size=1, max_size=60), st.floats(0.4, 3))
def test_wrapped_text_fits_and_loses_nothing(text, width):
    lines = wrap(text, width)
    assert "".join(lines.split()) == "".join(text.split())
    assert text_width(lines) <= width


def test_names_take_three_lines_and_say_when_more_is_cut():
    assert name("rule-based, repaired", 1.5) == "rule-based, repaired"
    long = name("a name that goes on and on and on without any end in sight for anybody", 1.2)
    assert len(long.split("\n")) == 3
    assert long.endswith("…")
    assert text_width(long) <= 1.2


def test_marks_of_tested_algorithms_differ_without_colour(synthetic):
    study = synthetic.study({"rule_based": 0} | {f"learner_{k}": 0 for k in range(11)})
    drawn = marks(study)
    learners = [mark for label, mark in drawn.items() if label != "rule_based"]
    assert len({(mark.line, mark.marker) for mark in learners}) == 11
    assert len({mark.colour for mark in learners[:7]}) == 7
    assert drawn["rule_based"].colour == "black"


def test_references_stay_grey_and_untested(synthetic):
    drawn = marks(synthetic.study())
    assert [label for label, mark in drawn.items() if mark.tested] == ["rule_based", "ppo", "dqn", "pets"]
    assert all(0 < float(mark.colour) < 0.7 for mark in drawn.values() if not mark.tested)


def test_order_is_learners_baseline_references(synthetic):
    assert algorithms_in_order(synthetic.study(), "default")[:5] == [
        "ppo",
        "dqn",
        "pets",
        "rule_based",
        "random",
    ]


def test_each_algorithm_is_shown_in_the_studys_mode_or_the_only_one_it_has(usual):
    tables, study = usual
    greedy = tables.summary.assign(policy_mode="greedy", mean=-1.0)
    table = pd.concat([tables.summary[tables.summary["algorithm"] != "rule_based"], greedy])
    rows = rows_of(table, study, "default")
    assert set(rows.loc[rows["algorithm"] == "ppo", "policy_mode"]) == {"sampled"}
    assert set(rows.loc[rows["algorithm"] == "rule_based", "policy_mode"]) == {"greedy"}
    with pytest.raises(ValueError, match=r"several policy modes.*statistics\.policy_mode"):
        rows_of(pd.concat([greedy, greedy.assign(policy_mode="other")]), study, "default")


def test_the_commonest_reason_is_shown(usual):
    scores = usual[0].scores.iloc[:3].assign(status=["crashed", "no run log", "crashed"])
    assert why_missing(scores) == "crashed"
    assert why_missing(scores.iloc[:0]) == "no run"
