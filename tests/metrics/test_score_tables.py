"""The score table: one row per seed, mode and metric; what is missing says why; contradictions refused."""

import math
import time

import numpy as np
import pandas as pd
import pytest

from seedbed.artifacts import SCORE_COLUMNS, ArtifactError
from seedbed.metrics import episodes as episode_metrics
from seedbed.metrics import interview
from seedbed.metrics.base import Metric, Value, collect, curve_scores, load_metrics, score

LENGTH = Metric(
    "length", "Length", "steps", "none", 0, "Mean length.", lambda e, s: float(e["length"].mean())
)


def episode_table(returns, *, seed=0, mode="sampled", lengths=None, success=None):
    n = len(returns)
    success = np.zeros(n, bool) if success is None else np.asarray(success)
    return pd.DataFrame(
        {
            "seed": seed,
            "policy_mode": mode,
            "episode": np.arange(n),
            "return": np.asarray(returns, float),
            "length": np.full(n, 10) if lengths is None else lengths,
            "terminated": success,
            "truncated": ~success,
            "success": success,
        }
    )


def values(episodes, metrics=episode_metrics.METRICS, steps=None, horizon=140):
    table = score("s", "e", "a", episodes, steps, metrics, horizon=horizon)
    return table.set_index("metric")


def test_one_row_per_seed_mode_and_metric_in_the_schema_and_sorted():
    parts = [episode_table([seed, 2.0 * seed], seed=seed, mode=mode) for seed in (3, 1) for mode in "gs"]
    table = score("s", "e", "a", pd.concat(parts), None, episode_metrics.METRICS, horizon=140)
    assert dict(table.dtypes.astype(str)) == {
        k: {"string": "string"}.get(v, v) for k, v in SCORE_COLUMNS.items()
    }
    assert len(table) == 2 * 2 * len(episode_metrics.METRICS)
    assert list(zip(table["seed"], table["policy_mode"], strict=True)) == sorted(
        zip(table["seed"], table["policy_mode"], strict=True)
    )
    assert (table["value"].isna() == (table["status"] != "ok")).all()


def test_row_order_of_the_input_changes_nothing():
    whole = pd.concat([episode_table([1.5, 2.5, 4.0], seed=seed) for seed in (0, 1)])
    shuffled = whole.sample(frac=1, random_state=3)
    args = (None, episode_metrics.METRICS)
    pd.testing.assert_frame_equal(
        score("s", "e", "a", whole, *args, horizon=140), score("s", "e", "a", shuffled, *args, horizon=140)
    )


def test_return_counts_every_episode_and_its_spread_has_n_minus_one():
    table = values(episode_table([1.0, 2.0, 6.0]))
    assert table.loc["return", "value"] == 3.0
    assert table.loc["return", "episodes"] == 3
    assert table.loc["return_sd", "value"] == pytest.approx(math.sqrt(7))  # not sqrt(14 / 3)
    assert table.loc["episode_length", "value"] == 10


def test_a_single_episode_has_no_spread():
    row = values(episode_table([1.0])).loc["return_sd"]
    assert math.isnan(row["value"])
    assert row["status"] == "one episode: no spread"
    assert row["episodes"] == 0


def test_success_rate_divides_by_the_episodes_requested():
    table = values(episode_table([1, 2, 3, 4], lengths=[4, 7, 9, 10], success=[True, True, False, False]))
    assert table.loc["success_rate", "value"] == 0.5
    assert table.loc["truncation_rate", "value"] == 0.5
    assert table.loc["steps_to_success", "value"] == 5.5  # the two middle values of an even count
    assert table.loc["steps_to_success", "episodes"] == 2
    assert table.loc["return_of_successes", "value"] == 1.5
    assert table.loc["return_of_failures", "value"] == 3.5


def test_without_success_steps_to_success_is_missing_and_the_rate_is_zero():
    table = values(episode_table([1, 2]))
    assert table.loc["success_rate", "value"] == 0
    assert table.loc["steps_to_success", "status"] == "no success"
    assert table.loc["return_of_successes", "status"] == "no success"
    assert table.loc["return_of_failures", "value"] == 1.5


def test_metrics_that_need_steps_wait_for_a_step_table(build):
    episodes, steps = build.evaluation((build.LIMIT, [build.question()]))
    without = set(values(episodes, interview.METRICS)["status"].index)
    with_steps = set(values(episodes, interview.METRICS, steps).index)
    assert with_steps - without == {metric.name for metric in interview.METRICS if metric.needs_steps}


def test_a_value_that_is_not_a_number_is_missing():
    def metric(result):
        return [Metric("m", "M", "", "none", 0, "", lambda e, s: result)]

    episodes = episode_table([1.0])
    assert values(episodes, metric(math.nan)).loc["m", "status"] == "undefined"
    assert values(episodes, metric(math.inf)).loc["m", "status"] == "not finite"
    with pytest.raises(ValueError, match="cannot have status 'crashed'"):
        values(episodes, metric(Value(0.0, 1, "crashed")))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e, s: (e.iloc[:0], s), "nothing was evaluated"),
        (lambda e, s: (pd.concat([e, e]), s), "appears twice"),
        (lambda e, s: (e, s.iloc[:-1]), "episode 1: the step table has 1 steps"),
        (lambda e, s: (e.assign(**{"return": 9.0}), s), "Delete both and evaluate again"),
        (lambda e, s: (e, s.assign(seed=5)), "there are episodes but no steps"),
        (lambda e, s: (e.iloc[:1], s), "episodes that the episode table lacks"),
        (lambda e, s: (e, pd.concat([s, s.assign(policy_mode="greedy")])), "of which there are no episodes"),
        (lambda e, s: (e.assign(length=0), s), "no step"),
    ],
)
def test_tables_that_disagree_are_refused(build, change, message):
    episodes, steps = build.evaluation(
        (build.LIMIT, [build.question(), build.content()]), (build.LIMIT, [build.question()] * 2)
    )
    episodes, steps = change(episodes, steps)
    with pytest.raises(ArtifactError, match=message):
        score("s", "e", "a", episodes, steps, interview.METRICS, horizon=140)


def test_a_horizon_below_the_longest_episode_is_refused():
    with pytest.raises(ArtifactError, match="10 steps, but the environment's horizon is given as 9"):
        score("s", "e", "a", episode_table([1.0]), None, [LENGTH], horizon=9)


def test_a_metric_set_of_another_environment_is_refused_by_name():
    with pytest.raises(ArtifactError, match=r"needs the column 'final_end_reason'.*`metrics`"):
        values(episode_table([1.0]), interview.METRICS)


def test_a_metric_given_twice_is_refused():
    with pytest.raises(ValueError, match="given twice"):
        values(episode_table([1.0]), [LENGTH, LENGTH])


def test_curve_scores_repeat_the_scores_at_every_point(build):
    points = [
        build.evaluation((build.MASTERY, [build.content()] * k), (build.QUIT, [build.content()]))[0].assign(
            steps=1000 * k
        )
        for k in (1, 2, 3)
    ]
    table = curve_scores("s", "e", "a", pd.concat(points), interview.METRICS, horizon=40)
    times = table[table["metric"] == "restricted_time_to_mastery"]
    assert list(times["steps"]) == [1000, 2000, 3000]
    assert list(times["value"]) == [20.5, 21.0, 21.5]
    assert not set(table["metric"]) & {m.name for m in interview.METRICS if m.needs_steps}


def test_an_algorithm_that_learns_nothing_has_no_curve():
    empty = episode_table([1.0]).assign(steps=0).iloc[:0]
    table = curve_scores("s", "e", "a", empty, episode_metrics.METRICS, horizon=140)
    assert len(table) == 0
    assert list(table.columns) == [*SCORE_COLUMNS, "steps"]


def test_collect_sorts_and_refuses_a_run_that_counts_twice():
    tables = [
        score("s", "e", name, episode_table([1.0], seed=seed), None, [LENGTH], horizon=140)
        for name, seed in (("b", 0), ("a", 1), ("a", 0))
    ]
    table = collect(tables, [LENGTH])
    assert list(zip(table["algorithm"], table["seed"], strict=True)) == [("a", 0), ("a", 1), ("b", 0)]
    pd.testing.assert_frame_equal(table, collect(tables[::-1], [LENGTH]))
    with pytest.raises(ArtifactError, match="appears twice"):
        collect([*tables, tables[0]], [LENGTH])
    with pytest.raises(ArtifactError, match="no scores"):
        collect([], [LENGTH])


def test_metric_sets_load_in_order_and_names_are_unique_and_complete():
    metrics = load_metrics(["episodes", "interview"])
    assert next(iter(metrics)) == "return"
    assert len(metrics) == len(episode_metrics.METRICS) + len(interview.METRICS)
    for name, metric in metrics.items():
        assert name == metric.name
        assert metric.title
        assert metric.description.endswith(".")
        assert metric.reached == "" or metric.reached in metrics


def test_two_metrics_of_one_name_are_refused(monkeypatch):
    import seedbed.metrics.base as base

    other = Metric("return", "R", "", "higher", 0, "Another.", lambda e, s: 0.0)
    sets = {"one": episode_metrics.METRICS, "two": (other,)}
    monkeypatch.setattr(base, "load", lambda name, registry, kind: sets[name])
    with pytest.raises(ValueError, match="already has a metric 'return'"):
        load_metrics(["one", "two"])


def test_a_direction_must_be_one_of_three():
    with pytest.raises(ValueError, match="'higher', 'lower' or 'none'"):
        Metric("m", "M", "", "up", 0, "", lambda e, s: 0.0)


def test_eight_seeds_of_200_full_episodes_take_less_than_a_second():
    generator = np.random.default_rng(0)
    seeds, n, horizon = 8, 200, 140
    index = np.indices((seeds, n, horizon)).reshape(3, -1)
    ask = generator.random(index.shape[1]) < 0.6
    reward = generator.normal(size=ask.size)
    steps = pd.DataFrame(
        {
            "seed": index[0],
            "policy_mode": "sampled",
            "episode": index[1],
            "t": index[2] + 1,
            "reward": reward,
            "is_question": ask,
            "difficulty": np.where(ask, generator.integers(0, 3, ask.size), -1),
            "modality": np.where(ask, -1, generator.integers(0, 6, ask.size)),
            "correct": np.where(ask, generator.integers(0, 2, ask.size), -1),
            "gain": generator.random(ask.size) * 0.1,
            "mastery_before": generator.random(ask.size) * 0.8,
            "frustration": generator.random(ask.size),
        }
    )
    episodes = pd.concat(
        [
            episode_table(reward.reshape(seeds, n, horizon)[k].sum(-1), seed=k, lengths=np.full(n, horizon))
            for k in range(seeds)
        ]
    ).assign(final_mean_mastery=0.5, final_end_reason=2)
    metrics = load_metrics(["episodes", "interview"]).values()
    start = time.process_time()
    table = score("s", "e", "a", episodes, steps, metrics, horizon=horizon)
    assert time.process_time() - start < 1
    assert len(table) == seeds * len(metrics)
