"""Meta-trials: series of environments of hidden families."""

import numpy as np
import pandas as pd
import pytest

from seedbed.algorithms.sarsa_tiles import Configuration, TrialRecord
from seedbed.environments.generalized.samplers import MetaSampler, Sampler
from seedbed.generalized.meta import Bandit, Forgetful, RangeKeeper, meta_scores, run_meta

GOOD, BAD = Configuration(0.5, 0.9, 8, 8, "joint"), Configuration(0.06125, 0.0, 4, 4, "stripes")
META = MetaSampler(Sampler(("mountain_car", "puddle_world")), mixed_domains=True)


def agents():
    return {"bandit": Bandit([BAD, GOOD]), "forgetful": Forgetful(GOOD), "ranges": RangeKeeper(GOOD)}


@pytest.fixture(scope="module")
def table():
    return run_meta(agents(), META, range(3), environments=4, steps=3000)


def test_any_part_gives_the_same_rows(table):
    parts = [run_meta(agents(), META, [trial], environments=4, steps=3000) for trial in (2, 0, 1)]
    order = ["agent", "meta_trial", "place"]
    again = pd.concat(parts).sort_values(order, ignore_index=True)
    pd.testing.assert_frame_equal(again, table.sort_values(order, ignore_index=True), check_exact=True)


def test_all_agents_meet_the_same_series(table):
    series = table.pivot(index=["meta_trial", "place"], columns="agent", values="environment")
    assert (series.nunique(axis=1) == 1).all()
    assert series.stack().nunique() == 12


def test_kept_ranges_grow_less_often(table):
    growths = table.pivot_table(index=["meta_trial", "place"], columns="agent", values="growths")
    first = growths.xs(0, level="place")
    assert (first["ranges"] == first["forgetful"]).all()
    assert growths["ranges"].sum() < growths["forgetful"].sum()


def test_the_unit_is_the_meta_trial(table):
    scores = meta_scores(table)
    assert scores.shape == (3, 3)
    one = table[(table["agent"] == "bandit") & (table["meta_trial"] == 1)]
    assert scores.loc[1, "bandit"] == pytest.approx(one["score"].mean())


def ended(score):
    return TrialRecord(1, score, score, 0, False, np.zeros(2), np.ones(2))


def test_a_bandit_tries_all_and_takes_the_best_per_shape():
    bandit = Bandit([BAD, GOOD])
    bandit.begin_meta()
    taken = []
    for score in (-5, -3, -4, -9, -1):
        taken.append(bandit.begin_environment(2, 3).configuration)
        bandit.end_environment(ended(score))
    assert taken == [BAD, GOOD, GOOD, GOOD, BAD]
    assert bandit.begin_environment(4, 3).configuration == BAD  # another shape begins anew
    bandit.begin_meta()
    assert bandit.begin_environment(2, 3).configuration == BAD
