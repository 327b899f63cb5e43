"""The grid, trials as tables, and the open methodology in small."""

import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from seedbed.algorithms.sarsa_tiles import Configuration, SarsaTiles
from seedbed.artifacts import SeedbedError, read_table, write_table
from seedbed.environments.generalized.documents import covering_ranges
from seedbed.environments.generalized.samplers import TEST, TUNING, Sampler, union
from seedbed.generalized.grid import PER_SHAPE, full_grid, sample_grid, size
from seedbed.generalized.methodology import choose, compare, open_methodology
from seedbed.generalized.trials import AGENTS, TRIAL_COLUMNS, gather, run_trials, score_matrix

GRID = full_grid()
SMALL = {i: GRID[i] for i in sample_grid(6, 0, variables=4, most_features=64, most_tiles=50_000)}
STEPS = 2500


@pytest.fixture(scope="module")
def sets():
    return union().environments(TUNING, 0, 4), union().environments(TEST, 0, 8)


@pytest.fixture(scope="module")
def result(sets):
    return open_methodology(SMALL, *sets, steps=STEPS)


def test_the_grid_is_the_papers():
    assert len(GRID) == len(set(GRID)) == 3024
    shapes = [(c.layout, c.tilings, c.cells) for c in GRID]
    blocks = [shapes[i : i + PER_SHAPE] for i in range(0, 3024, PER_SHAPE)]
    assert all(len(set(block)) == 1 for block in blocks)
    assert len({block[0] for block in blocks}) == 48
    assert size(Configuration(1, 0, 32, 32, "factorial"), 4) == (480, 37_949_440)


def test_samples_of_the_grid_nest():
    ten, hundred = sample_grid(10, 4), sample_grid(100, 4)
    assert hundred[:10] == ten
    assert len(set(hundred)) == 100
    assert sample_grid(10, 5) != ten
    limited = sample_grid(100, 4, variables=4, most_features=128, most_tiles=300_000)
    assert all(size(GRID[i], 4)[0] <= 128 and size(GRID[i], 4)[1] <= 300_000 for i in limited)
    assert [i for i in limited if i in hundred] == [i for i in hundred if i in limited]
    with pytest.raises(ValueError, match="number"):
        sample_grid(3025)
    assert sorted(sample_grid(3024)) == list(range(3024))


def test_any_chunks_give_the_same_table(sets, result):
    tuning, test = sets
    wide = covering_ranges([*tuning, *test])
    parts = [
        run_trials(
            {index: configuration},
            tuning[start : start + 3],
            {name: AGENTS[name]},
            wide=wide,
            steps=STEPS,
            first_position=start,
        )
        for name in ("C", "A", "B")
        for index, configuration in sorted(SMALL.items(), reverse=True)
        for start in (3, 0)
    ]
    pd.testing.assert_frame_equal(gather(parts), result.tuning, check_exact=True)


def test_another_process_gives_the_same_bytes(sets, result):
    script = (
        "import sys, pandas as pd\n"
        "from seedbed.generalized.grid import full_grid\n"
        "from seedbed.generalized.trials import AGENTS, run_trials\n"
        "from seedbed.environments.generalized.samplers import TUNING, union\n"
        "index = int(sys.argv[1])\n"
        f"table = run_trials({{index: full_grid()[index]}}, union().environments(TUNING, 0, 4),"
        f" {{'A': AGENTS['A']}}, steps={STEPS})\n"
        "sys.stdout.write(table.to_json(double_precision=15))\n"
    )
    index = min(SMALL)
    source = str(Path(__file__).parents[2] / "src")
    told = subprocess.run(
        [sys.executable, "-c", script, str(index)],
        env=os.environ | {"PYTHONPATH": source, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    mine = result.tuning[(result.tuning["agent"] == "A") & (result.tuning["configuration"] == index)]
    assert told == mine.reset_index(drop=True).to_json(double_precision=15)


def test_trials_say_what_happened(sets, result):
    table = result.tuning
    assert list(table.columns) == list(TRIAL_COLUMNS)
    assert len(table) == 3 * 6 * 4
    assert (table["score"] == table["total_reward"] / table["episodes"].clip(lower=1)).all()
    finished = table["episodes"] > 0
    assert (table["completed_score"].isna() == ~finished).all()
    assert np.isfinite(table["score"]).all()
    assert (table.loc[table["agent"] != "A", "growths"] == 0).all()
    assert (table.loc[table["agent"] == "A", "growths"] > 0).all()
    acrobot = table["domain"] == "acrobot"
    assert (table["low_3"].isna() == ~acrobot).all()
    wide = covering_ranges([*sets[0], *sets[1]])
    for row in table[table["agent"] == "B"].itertuples():
        assert row.low_0 == wide[row.domain][0, 0]


def test_trials_are_the_same_after_writing_and_reading(result, tmp_path):
    for name in ("one", "other"):
        write_table(tmp_path / f"{name}.parquet", result.tuning, TRIAL_COLUMNS)
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "other.parquet").read_bytes()
    again = read_table(tmp_path / "one.parquet", TRIAL_COLUMNS)
    pd.testing.assert_frame_equal(gather([again]), result.tuning, check_exact=True)


def test_picks_are_the_best_of_the_tuning_table(result):
    assert len(result.picks) == 3 * 2 * 2
    for pick in result.picks.itertuples():
        part = result.tuning[result.tuning["agent"] == pick.agent]
        means = part[pick.reading].fillna(-np.inf).groupby(part["configuration"]).mean()
        assert pick.tuning_mean == pytest.approx(means[pick.configuration])
        if pick.method == "mean":
            assert pick.tuning_mean == pytest.approx(means.max())
        assert pick.tied >= 1


def test_only_picks_are_tested_and_each_once(sets, result):
    chosen = {(p.agent, p.configuration) for p in result.picks.itertuples()}
    assert set(zip(result.test["agent"], result.test["configuration"], strict=True)) == chosen
    assert len(result.test) == len(chosen) * len(sets[1])
    assert not set(result.test["environment"]) & set(result.tuning["environment"])


def test_comparisons_are_matched_on_environments(result):
    comparisons = result.comparisons
    assert len(comparisons) == 2 * (2 * 3 + 3)
    for row in comparisons[comparisons["reading"] == "score"].itertuples():
        test = result.test.set_index(["agent", "configuration", "environment"])["score"]
        x = test[row.agent_x, row.configuration_x]
        y = test[row.agent_y, row.configuration_y].reindex(x.index)
        assert row.difference == pytest.approx((x - y).mean())
        assert (row.wins, row.losses, row.ties) == ((x > y).sum(), (x < y).sum(), (x == y).sum())
        same = (row.agent_x, row.configuration_x) == (row.agent_y, row.configuration_y)
        assert ("both methods" in row.note) == same


def trials_of(scores, agent="A"):
    """A trial table with given scores [environments, configurations]."""
    rows = [
        dict.fromkeys(TRIAL_COLUMNS, 0)
        | {
            "agent": agent,
            "configuration": c,
            "environment": f"e{e}",
            "domain": "acrobot",
            "position": e,
            "steps": 10,
            "score": score,
            "completed_score": score if score > -10 else math.nan,
            "diverged": False,
        }
        for e, row in enumerate(scores)
        for c, score in enumerate(row)
    ]
    return gather([pd.DataFrame(rows)])


def test_one_hung_trial_decides_the_mean_and_not_the_vote():
    tuning = trials_of([[-1, -2], [-1, -2], [-10, -2]])
    picks = choose(tuning).set_index(["reading", "method"])["configuration"]
    assert picks["score", "mean"] == 1
    assert picks["score", "copeland"] == 0
    assert picks["completed_score", "mean"] == 1  # a missing mean return is below all others
    assert score_matrix(tuning, "A", "completed_score")[0][2, 0] == -np.inf


def test_a_missing_score_makes_statistics_missing_and_says_so():
    test = gather([trials_of([[-1], [-2], [-10]], "A"), trials_of([[-2], [-3], [-4]], "B")])
    rows = [
        {"agent": agent, "reading": reading, "method": method, "configuration": 0}
        for agent in "AB"
        for reading in ("score", "completed_score")
        for method in ("mean", "copeland")
    ]
    table = compare(test, pd.DataFrame(rows)).set_index(["reading", "agent_x", "agent_y", "method_x"])
    assert math.isfinite(table.loc[("score", "A", "B", "mean"), "p_student"])
    missing = table.loc[("completed_score", "A", "B", "mean")]
    assert math.isnan(missing["p_student"])
    assert "missing" in missing["note"]


def test_broken_tables_are_refused(result):
    with pytest.raises(SeedbedError, match="twice"):
        gather([result.tuning, result.tuning.iloc[:1]])
    with pytest.raises(SeedbedError, match="lacks trials"):
        choose(result.tuning.iloc[1:])
    with pytest.raises(SeedbedError, match="no trials of agent 'D'"):
        score_matrix(result.tuning, "D")


def test_overlapping_sets_are_refused(sets):
    with pytest.raises(ValueError, match="1 in both"):
        open_methodology(SMALL, sets[0], [sets[0][0]], steps=10)
    with pytest.raises(ValueError, match="got 0 and"):
        open_methodology(SMALL, [], sets[1], steps=10)


@pytest.mark.slow
def test_the_papers_first_claim_holds_for_a_sample_in_puddle_world():
    """A beats B in expected score and by the sign test; needs about a minute."""
    sampler = Sampler(("puddle_world",))
    configurations = {i: GRID[i] for i in sample_grid(20, 1)}
    agents = {name: AGENTS[name] for name in ("A", "B")}
    result = open_methodology(
        configurations, sampler.environments(TUNING, 1, 25), sampler.environments(TEST, 1, 100), agents
    )
    row = result.comparisons.query("reading == 'score' and method_x == 'mean' and agent_y == 'B'").iloc[0]
    assert row["difference"] > 0
    assert row["p_student_greater"] < 0.05
    assert row["p_sign_greater"] < 0.05


def test_agents_may_be_named_and_varied(sets):
    agents = {
        "A, m = 0": replace(SarsaTiles("A"), growth=0.0),
        "A, m = 1": replace(SarsaTiles("A"), growth=1.0),
    }
    table = run_trials({0: GRID[0]}, sets[0][:2], agents, steps=STEPS)
    growths = table.groupby("agent")["growths"].sum()
    assert growths["A, m = 0"] > growths["A, m = 1"] > 0
