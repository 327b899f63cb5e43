"""Sarsa(lambda) with tile coding against exact fractions, and against a plain agent in whole trials."""

import json
import math
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedbed.algorithms import sarsa_tiles
from seedbed.algorithms.sarsa_kernel import TRACES, credit, values, visit
from seedbed.algorithms.sarsa_tiles import (
    FAMILIES,
    Configuration,
    SarsaTiles,
    Workspace,
    run,
    trace_powers,
)
from seedbed.algorithms.tile_coding import LAYOUTS, groups_of, locate, make_coder, set_scale
from seedbed.algorithms.tile_memory import allocate, cell_maps, claim, tile_weights, transplant
from seedbed.environments.generalized.documents import canonical_environment, covering_ranges
from seedbed.environments.generalized.domains import DOMAINS, advance, begin_episode, see
from seedbed.environments.generalized.random_numbers import AGENT, uniform
from seedbed.environments.generalized.samplers import TUNING, Sampler, union

REFERENCE = Path(__file__).parents[1] / "reference/generalized"
WORKSPACE = Workspace()


def cases(name):
    content = json.loads((REFERENCE / f"{name}.json").read_text())
    return [pytest.param(case, id=case["id"]) for case in content["cases"]]


def environment_of(domain, seed=5, **changes):
    return replace(Sampler((domain,)).environments(TUNING, seed, 1)[0], **changes)


@pytest.mark.parametrize("case", cases("sarsa_lambda"))
def test_learning_equals_exact_fractions(case):
    kind = case["trace"] + ("_clearing" if case["clear_other_actions"] else "")
    trace, steps = TRACES.index(kind), case["steps"]
    alpha, gamma, lambda_ = (float(Fraction(case[name])) for name in ("alpha", "gamma", "lambda"))
    powers, update = trace_powers(gamma * lambda_, 0.0, len(steps)), np.zeros(len(steps) + 1)
    memory, start, errors = allocate(case["n_features"] + 2, True).share(2, trace == 2), 1, []
    for time, step in enumerate(steps, 1):
        active = np.array(step["active"], np.uint32)
        oldest = max(time - powers.size + 1, start)
        worth = visit(
            memory, update, active, active, 0, active.size, step["action"], time, oldest, trace, powers
        )
        error = step["reward"] - worth
        if step["next_active"] is not None:
            after = np.array(step["next_active"], np.uint32)
            error += gamma * values(memory, update, after, 0, after.size, 4, trace)[step["next_action"]]
        credit(update, powers, time, oldest, alpha / active.size * error)
        errors.append(error)
        if step["next_active"] is None:
            start = time + 1
    np.testing.assert_allclose(errors, case["td_errors_float"], rtol=0, atol=1e-12)
    weights = np.zeros((case["n_features"], 4))
    coder = make_coder("stripes", 1, 1, case["n_features"])
    for tile, row in tile_weights(memory, coder, update).items():
        weights[tile] = row
    expected = np.array(case["weights_float"]).T
    np.testing.assert_allclose(weights[:, : expected.shape[1]], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("case", cases("transplant"))
def test_transplant_equals_exact_fractions(case):
    cells = case["cells"][0]
    coder, memory = make_coder("stripes", 1, 1, cells), allocate(cells + 2, False)
    for cell, weight in enumerate(case["old_weights"]):
        claim(memory, cell, cell + 1)
        memory.weights[8 * cell] = weight
    ranges = [np.array(case[name], float) for name in ("old_low", "old_high", "new_low", "new_high")]
    transplant(memory, coder, np.zeros(1), *ranges)
    found = tile_weights(memory, coder, np.zeros(1))
    expected = [float(Fraction(weight)) for weight in case["new_weights"]]
    assert [found.get(cell, np.zeros(1))[0] for cell in range(cells)] == pytest.approx(expected, abs=1e-12)
    assert cell_maps(*ranges, coder)[1][0, 0].tolist() == case["counts"]


class Plain:
    """The agent as one would write it first: dense weights, dense traces, transplants over all cells."""

    def __init__(self, configuration, environment, agent):
        self.c, self.agent, self.environment = configuration, agent, environment
        self.groups = groups_of(configuration.layout, len(environment.transforms))
        self.tables = [
            np.zeros(
                (
                    configuration.tilings,
                    *[configuration.cells] * len(group),
                    DOMAINS[environment.domain].ACTIONS,
                )
            )
            for group in self.groups
        ]
        self.traces = [np.zeros_like(table) for table in self.tables]
        self.features = configuration.tilings * len(self.groups)
        self.low = self.high = None

    def cell(self, x, i, k, low, high):
        n, cells = self.c.tilings, self.c.cells
        offset = (k * (2 * i + 1) / n) % 1
        place = (x - low[i]) / (high[i] - low[i]) * (cells - (n - 1) / n) + offset
        return min(cells - 1, max(0, math.floor(place)))

    def active(self, seen):
        return [
            (g, (k, *(self.cell(seen[i], i, k, self.low, self.high) for i in group)))
            for g, group in enumerate(self.groups)
            for k in range(self.c.tilings)
        ]

    def worth(self, active):
        return sum(self.tables[g][index] for g, index in active)

    def choose(self, q, states):
        best = np.flatnonzero(q == q.max())
        action = best[0]
        if best.size > 1:
            action = best[int(uniform(states, AGENT) * best.size)]
        if uniform(states, AGENT) < self.agent.epsilon:
            action = int(uniform(states, AGENT) * q.size)
        return action

    def fit(self, seen):
        """Grow the range where an observation lies outside."""
        low, high = self.low.copy(), self.high.copy()
        for i, x in enumerate(seen):
            if x > high[i]:
                high[i] = x + self.agent.growth * (x - self.low[i])
            elif x < low[i]:
                low[i] = x - self.agent.growth * (self.high[i] - x)
        if (low == self.low).all() and (high == self.high).all():
            return False
        n, cells = self.c.tilings, self.c.cells
        width = (self.high - self.low) / (cells - (n - 1) / n)
        for table, group in zip(self.tables, self.groups, strict=True):
            if self.agent.family == "A":
                old, count = table.copy(), np.zeros(table.shape[:-1])
                table[:] = 0
                for k, *index in product(range(n), *[range(cells)] * len(group)):
                    centre = [
                        self.low[i] + (cell + 0.5 - (k * (2 * i + 1) / n) % 1) * width[i]
                        for i, cell in zip(group, index, strict=True)
                    ]
                    new = (k, *(self.cell(x, i, k, low, high) for x, i in zip(centre, group, strict=True)))
                    table[new] += old[(k, *index)]
                    count[new] += 1
                table /= np.maximum(count, 1)[..., None]
        for trace in self.traces:
            trace[:] = 0
        self.low, self.high = low, high
        return True

    def learn(self, steps, ranges):
        agent, c, world = self.agent, self.c, self.environment.world()
        states, state = self.environment.trial_seeds(), np.zeros(4)
        seen, then = np.zeros(len(self.environment.transforms)), np.zeros(len(self.environment.transforms))
        self.low, self.high = np.array(ranges)
        decay, grown = c.lambda_ * agent.discount, 0
        episodes = total = completed = returned = 0
        fresh = True
        for _ in range(steps):
            if fresh:
                begin_episode(world, states, state)
                see(world, state, seen)
                for trace in self.traces:
                    trace[:] = 0
                if agent.adaptive and np.isinf(self.low).any():
                    self.low, self.high = seen - 1e-6, seen + 1e-6
                grown += agent.adaptive and self.fit(seen)
                active = self.active(seen)
                action = self.choose(self.worth(active), states)
            reward, fresh = advance(world, states, state, action)
            total, returned = total + reward, returned + reward
            if not fresh:
                see(world, state, then)
                if agent.adaptive and self.fit(then):
                    grown += 1
                    active = self.active(seen)
            for trace in self.traces:
                trace *= decay
                if agent.trace == "replacing":
                    trace[trace < agent.cull] = 0
            for g, index in active:
                if agent.trace == "replacing_clearing":
                    self.traces[g][index] = 0
                mark = self.traces[g][(*index, action)] + 1 if agent.trace == "accumulating" else 1
                self.traces[g][(*index, action)] = mark
            error = reward - self.worth(active)[action]
            if not fresh:
                next_active = self.active(then)
                q = self.worth(next_active)
                next_action = self.choose(q, states)
                error += agent.discount * q[next_action]
            for table, trace in zip(self.tables, self.traces, strict=True):
                table += c.alpha / self.features * error * trace
            if fresh:
                episodes, completed, returned = episodes + 1, completed + returned, 0
            else:
                active, action = next_active, next_action
                seen[:] = then
        return episodes, total, completed, grown


COMPARED = [
    ("mountain_car", "joint", 0.9, 4, 8, "C", "replacing", 1200),
    ("mountain_car", "factorial", 0.99, 4, 4, "A", "replacing", 1500),
    ("mountain_car", "stripes", 0.0, 8, 8, "A", "replacing", 1500),
    ("mountain_car", "joint", 0.95, 4, 8, "A_without_transplant", "replacing", 1500),
    ("mountain_car", "joint", 0.5, 4, 8, "A", "accumulating", 1500),
    ("puddle_world", "factorial", 0.75, 4, 8, "A", "replacing", 1500),
    ("puddle_world", "joint", 0.9, 8, 8, "B", "replacing_clearing", 1500),
    ("acrobot", "joint", 0.9, 4, 4, "A", "replacing", 500),
    ("acrobot", "factorial", 0.5, 4, 4, "C", "replacing", 800),
]


@pytest.mark.parametrize(
    "domain, layout, lambda_, tilings, cells, family, trace, steps, hashed",
    [(*case, False) for case in COMPARED] + [(*COMPARED[i], True) for i in (0, 1, 4, 7)],
)
def test_whole_trials_equal_the_plain_agent(
    domain, layout, lambda_, tilings, cells, family, trace, steps, hashed, monkeypatch
):
    if hashed:
        monkeypatch.setattr(sarsa_tiles, "make_coder", partial(make_coder, dense=0))
    environment = environment_of(domain, noise=0.3, random_start=True)
    agent = SarsaTiles(family, trace=trace, cull=0.01 if trace == "replacing" else 0.0)
    configuration = Configuration(0.25, lambda_, tilings, cells, layout)
    wide = environment.ranges * 1.25
    first = {"C": environment.ranges, "B": wide}.get(family, np.full_like(wide, np.inf))
    plain = Plain(configuration, environment, agent)
    episodes, total, completed, grown = plain.learn(steps, first)
    workspace = Workspace()
    record = run(configuration, environment, agent, workspace, steps, wide=wide)
    assert (record.episodes, record.growths) == (episodes, grown)
    assert (record.total_reward, record.completed_reward) == pytest.approx((total, completed), abs=1e-9)
    np.testing.assert_allclose([record.low, record.high], [plain.low, plain.high], rtol=1e-12)
    coder = sarsa_tiles.make_coder(layout, len(environment.transforms), tilings, cells)
    memory = workspace.memory(coder, trace == "accumulating")
    weights = np.zeros((coder.tiles, 4))
    for tile, row in tile_weights(memory, coder, workspace.update(steps)).items():
        weights[tile] = row
    expected = np.concatenate([table.reshape(-1, table.shape[-1]) for table in plain.tables])
    assert np.abs(expected).max() > 0.5
    np.testing.assert_allclose(weights[:, : expected.shape[1]], expected, rtol=0, atol=1e-10)


def sweep():
    """A few trials of all kinds, large and small tables mixed."""
    environments = union().environments(TUNING, 1, 4)
    wide = covering_ranges(environments)
    shapes = [(0.5, 0.9, 8, 8, "joint"), (1.0, 0.99, 16, 16, "factorial"), (0.25, 0.0, 4, 32, "stripes")]
    return [
        (Configuration(*shape), environment, SarsaTiles(family), wide[environment.domain])
        for shape, environment, family in product(shapes, environments, FAMILIES)
    ]


def facts(record):
    return (
        *(getattr(record, name) for name in ("episodes", "total_reward", "completed_reward", "growths")),
        record.diverged,
        record.low.tobytes(),
        record.high.tobytes(),
    )


def test_results_hang_neither_on_order_nor_on_memory_used_before(monkeypatch):
    trials = sweep()
    shared = Workspace()
    forwards = [facts(run(c, e, a, shared, 600, wide=w)) for c, e, a, w in trials]
    backwards = [facts(run(c, e, a, shared, 600, wide=w)) for c, e, a, w in trials[::-1]][::-1]
    assert forwards == backwards
    monkeypatch.setattr(sarsa_tiles, "FIRST_SLOTS", 2**13)  # too small at first for the largest tables
    fresh = [facts(run(c, e, a, Workspace(), 600, wide=w)) for c, e, a, w in trials[:16:3]]
    assert fresh == forwards[:16:3]


def test_a_hash_table_that_is_too_small_grows(monkeypatch):
    environment, configuration = environment_of("acrobot"), Configuration(0.5, 0.9, 8, 16, "joint")
    whole = facts(run(configuration, environment, SarsaTiles("C"), Workspace(), 3000))
    monkeypatch.setattr(sarsa_tiles, "FIRST_SLOTS", 2**10)
    workspace = Workspace()
    assert facts(run(configuration, environment, SarsaTiles("C"), workspace, 3000)) == whole
    assert workspace.memory(make_coder("joint", 4, 8, 16), False).slots > 2**10


def test_luck_is_the_environments_and_the_seeds():
    configuration, environment = Configuration(0.5, 0.9, 8, 8, "joint"), environment_of("mountain_car")
    agent = SarsaTiles("C")
    first = run(configuration, environment, agent, WORKSPACE, 5000)
    assert facts(first) == facts(run(configuration, environment, agent, WORKSPACE, 5000))
    assert facts(first) != facts(run(configuration, environment, agent, WORKSPACE, 5000, seed=1))
    other = replace(environment, noise=environment.noise + 1e-12)
    assert (environment.trial_seeds() != other.trial_seeds()).all()
    assert len(set(environment.trial_seeds().tolist())) == 3


def test_families_that_start_with_the_exact_range_are_one():
    configuration, environment = Configuration(0.5, 0.9, 8, 8, "joint"), environment_of("puddle_world")
    ranges = environment.ranges
    exact = facts(run(configuration, environment, SarsaTiles("C"), WORKSPACE, 4000))
    assert exact == facts(run(configuration, environment, SarsaTiles("B"), WORKSPACE, 4000, wide=ranges))
    margin = np.array([[-1e-9], [1e-9]])  # rounding may show a value one step beyond
    given = run(configuration, environment, SarsaTiles("A"), WORKSPACE, 4000, first_range=ranges + margin)
    assert given.growths == 0


def test_a_wide_range_blurs_and_an_adaptive_one_grows_to_what_is_seen():
    configuration, environment = Configuration(0.25, 0.9, 8, 8, "joint"), environment_of("mountain_car")
    record = run(configuration, environment, SarsaTiles("A"), WORKSPACE, 20_000)
    low, high = environment.ranges
    width = high - low
    assert record.growths > 5
    assert (record.low >= low - 0.26 * width).all()
    assert (record.high <= high + 0.26 * width).all()
    assert ((record.high - record.low) > 0.3 * width).all()


def test_learning_learns():
    scores = {}
    for domain, random_walk in (("mountain_car", -2000), ("puddle_world", -200), ("acrobot", -500)):
        record = run(
            Configuration(0.5, 0.9, 8, 8, "joint"), canonical_environment(domain), SarsaTiles("C"), WORKSPACE
        )
        scores[domain] = record.score
        assert record.score > random_walk
        assert record.score == pytest.approx(record.completed_score, rel=0.1)


def test_divergence_is_flagged_and_leaves_a_finite_score():
    agent = SarsaTiles("C", trace="accumulating", cull=0.0)
    record = run(
        Configuration(2.0, 0.99, 4, 8, "joint"), environment_of("mountain_car"), agent, WORKSPACE, 20_000
    )
    assert record.diverged
    assert math.isfinite(record.score)
    clean = run(
        Configuration(0.5, 0.9, 4, 8, "joint"), environment_of("mountain_car"), agent, WORKSPACE, 2000
    )
    assert not clean.diverged


def test_without_a_completed_episode_one_score_is_finite_and_the_other_missing():
    record = run(
        Configuration(0.5, 0.9, 4, 4, "joint"),
        canonical_environment("mountain_car"),
        SarsaTiles("C"),
        WORKSPACE,
        20,
    )
    assert (record.episodes, record.score) == (0, -20.0)
    assert math.isnan(record.completed_score)


def test_two_readings_of_the_score():
    for parameter in cases("score"):
        case = parameter.values[0]
        completed, unfinished = sum(case["completed_returns"]), case["unfinished_return"]
        record = sarsa_tiles.TrialRecord(
            case["episodes"], completed + unfinished, completed, 0, False, np.zeros(2), np.ones(2)
        )
        assert record.score == case["total_reward_per_completed"]
        assert record.completed_score == case["mean_of_completed"]


@given(
    seed=st.integers(0, 2**31),
    layout=st.sampled_from(LAYOUTS),
    tilings=st.integers(1, 9),
    cells=st.integers(1, 7),
    alpha=st.sampled_from([0.06125, 0.5, 1.0, 2.0]),
    lambda_=st.sampled_from([0, 0.06125, 0.9, 0.99, 1.0]),
    family=st.sampled_from(FAMILIES),
    trace=st.sampled_from(TRACES),
)
@settings(max_examples=60, deadline=None)
def test_any_trial_keeps_its_books(seed, layout, tilings, cells, alpha, lambda_, family, trace):
    environment = union().environments(TUNING, seed, 1)[0]
    agent = SarsaTiles(family, trace=trace)
    configuration = Configuration(alpha, lambda_, tilings, cells, layout)
    record = run(configuration, environment, agent, WORKSPACE, 300, wide=environment.ranges * 2)
    assert -81 * 300 <= record.total_reward <= record.completed_reward <= 0
    assert 0 <= record.episodes < 300
    assert (record.growths == 0) or agent.adaptive
    assert (record.low < record.high).all()
    assert math.isnan(record.completed_score) == (record.episodes == 0)


@given(
    layout=st.sampled_from(LAYOUTS),
    variables=st.integers(1, 4),
    tilings=st.sampled_from([1, 4, 8, 32]),
    cells=st.integers(1, 16),
    data=st.data(),
)
@settings(max_examples=60, deadline=None)
def test_features_are_one_per_tiling_and_group(layout, variables, tilings, cells, data):
    coder = make_coder(layout, variables, tilings, cells)
    point = np.array(data.draw(st.lists(st.floats(-3, 3), min_size=variables, max_size=variables)))
    low, high, scale = np.full(variables, -2.0), np.full(variables, 2.0), np.zeros(variables)
    set_scale(low, high, coder, scale)
    tile = np.zeros(coder.features, np.uint32)
    locate(point, low, scale, coder, np.zeros(variables * tilings, np.uint32), tile, 0)
    assert len(set(tile.tolist())) == coder.features
    blocks = coder.first_tile[:, None] + coder.tiles_per_tiling[:, None] * np.arange(tilings)
    expected = blocks.ravel()
    ends = (blocks + coder.tiles_per_tiling[:, None]).ravel()
    assert ((tile >= expected) & (tile < ends)).all()
    again = np.zeros_like(tile)
    locate(np.clip(point, -2, 2), low, scale, coder, np.zeros(variables * tilings, np.uint32), again, 0)
    assert (tile == again).all()  # beyond the range, the edge holds


def test_every_tiling_covers_the_range_and_is_displaced():
    coder = make_coder("joint", 2, 4, 8)
    assert coder.offsets.tolist() == [[0, 0.25, 0.5, 0.75], [0, 0.75, 0.5, 0.25]]
    assert (coder.features, coder.tiles) == (4, 4 * 64)
    assert make_coder("factorial", 4, 32, 32).features == 480
    assert make_coder("stripes", 4, 32, 32).tiles == 4 * 32 * 32


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"alpha": 0}, "alpha"),
        ({"alpha": 2.1}, "alpha"),
        ({"lambda_": 1.1}, "lambda"),
        ({"tilings": 0}, "tilings"),
        ({"layout": "spiral"}, "layout"),
    ],
)
def test_bad_configurations_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Configuration(**{"alpha": 1, "lambda_": 0, "tilings": 4, "cells": 4, "layout": "joint"} | arguments)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"family": "D"}, "family"),
        ({"trace": "dutch"}, "trace"),
        ({"growth": -1}, "growth"),
        ({"epsilon": 2}, "epsilon"),
        ({"cull": math.nan}, "cull"),
    ],
)
def test_bad_agents_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        SarsaTiles(**arguments)


def test_bad_trials_are_refused():
    configuration, environment = Configuration(1, 0, 4, 4, "joint"), canonical_environment("acrobot")
    with pytest.raises(ValueError, match="wide"):
        run(configuration, environment, SarsaTiles("B"), WORKSPACE, 10)
    with pytest.raises(ValueError, match="low < high"):
        run(configuration, environment, SarsaTiles("B"), WORKSPACE, 10, wide=np.zeros((2, 4)))
    with pytest.raises(ValueError, match=r"\[2, 4\]"):
        run(configuration, environment, SarsaTiles("B"), WORKSPACE, 10, wide=np.array([[0.0], [1.0]]))
    with pytest.raises(ValueError, match="steps"):
        run(configuration, environment, SarsaTiles("C"), WORKSPACE, 0)
    with pytest.raises(ValueError, match="tiles"):
        make_coder("joint", 4, 32, 128)
