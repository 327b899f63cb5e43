"""Sarsa(lambda) with tile coding: a whole trial as one compiled loop, its cost per step free of lambda.

**Visit accumulators.** Instead of a trace per tile there is one number per time step,
update[t0] = sum over k >= t0 of step_size * delta_k * decay^(k - t0): what a tile-action pair last visited at
t0 has earned since. A pair stores its weight and t0 and is worth weight + update[t0]; a visit folds the
update into the weight and sets t0 to now. Each step's error moves the last ``powers.size`` entries of
``update``, one contiguous multiply-add; traces older than that are below the cull and are dropped. The end of
an episode moves the lower end of that window past it, which ends all traces at once.

With replacing traces this is exact. Accumulating traces also store the trace at the last visit.
"""

from typing import NamedTuple

import numpy as np

from seedbed.algorithms.tile_coding import Coder, U, locate, set_scale
from seedbed.algorithms.tile_memory import (
    FIRST_TIME,
    KEY,
    MOST_ACTIONS,
    TIMES,
    WORDS,
    Memory,
    claim,
    clear,
    find,
    transplant,
)
from seedbed.compiled import compiled
from seedbed.environments.generalized.domains import World, advance, begin_episode, see
from seedbed.environments.generalized.random_numbers import AGENT, uniform

TRACES = ("replacing", "replacing_clearing", "accumulating")
"""``replacing`` leaves the traces of other actions alone, ``replacing_clearing`` ends them."""
REPLACING, CLEARING, ACCUMULATING = range(3)
FIRST_MARGIN = 1e-6


class Learner(NamedTuple):
    """Learning rule as compiled code takes it."""

    step_size: float
    """per weight: alpha divided by the number of active features"""
    discount: float
    epsilon: float
    trace: int
    """index of TRACES"""
    powers: np.ndarray
    """decay ** age for the ages of live traces, oldest first; the last is 1"""
    actions: int
    adaptive: bool
    """whether the range begins at the first observation and grows"""
    moves_weights: bool
    """whether growth moves the weights along"""
    growth: float
    """how far beyond a new extreme the range grows, in widths"""


@compiled(inline=True)
def values(memory, update, record, first, features, actions, trace):
    """Action values [4] of the features ``record[first : first + features]``; 0 beyond the actions."""
    q0 = q1 = q2 = q3 = 0.0
    if trace == ACCUMULATING:
        for f in range(features):
            r = np.int64(record[U(first) + U(f)])
            w, t, z = r * WORDS, r * TIMES + FIRST_TIME, r * MOST_ACTIONS
            q0 += memory.weights[w] + memory.traces[z] * update[memory.times[t]]
            q1 += memory.weights[w + 1] + memory.traces[z + 1] * update[memory.times[t + 1]]
            q2 += memory.weights[w + 2] + memory.traces[z + 2] * update[memory.times[t + 2]]
            q3 += memory.weights[w + 3] + memory.traces[z + 3] * update[memory.times[t + 3]]
        return q0, q1, q2, q3
    if actions < MOST_ACTIONS:  # written out: the fourth action in a loop of its own takes a quarter longer
        for f in range(features):
            r = np.int64(record[U(first) + U(f)])
            w, t = r * WORDS, r * TIMES + FIRST_TIME
            q0 += memory.weights[w] + update[memory.times[t]]
            q1 += memory.weights[w + 1] + update[memory.times[t + 1]]
            q2 += memory.weights[w + 2] + update[memory.times[t + 2]]
        return q0, q1, q2, q3
    for f in range(features):
        r = np.int64(record[U(first) + U(f)])
        w, t = r * WORDS, r * TIMES + FIRST_TIME
        q0 += memory.weights[w] + update[memory.times[t]]
        q1 += memory.weights[w + 1] + update[memory.times[t + 1]]
        q2 += memory.weights[w + 2] + update[memory.times[t + 2]]
        q3 += memory.weights[w + 3] + update[memory.times[t + 3]]
    return q0, q1, q2, q3


@compiled(inline=True)
def visit(memory, update, tile, record, first, features, action, time, oldest, trace, powers):
    """Mark the features as visited with an action now; returns what the pair is worth.

    ``oldest`` is the first time whose traces live. Sets ``update[time]`` to 0, where all these pairs now are.
    """
    total = 0.0
    a = np.int64(action) & (MOST_ACTIONS - 1)
    if trace == REPLACING:
        for f in range(features):
            r = np.int64(record[U(first) + U(f)])
            if memory.keys[r * WORDS + KEY] == 0:
                claim(memory, r, np.int64(tile[U(first) + U(f)]) + 1)
            w, t = r * WORDS + a, r * TIMES + FIRST_TIME + a
            worth = memory.weights[w] + update[memory.times[t]]
            memory.weights[w] = worth
            memory.times[t] = time
            total += worth
        update[time] = 0.0
        return total
    for f in range(features):
        r = np.int64(record[U(first) + U(f)])
        if memory.keys[r * WORDS + KEY] == 0:
            claim(memory, r, np.int64(tile[U(first) + U(f)]) + 1)
        w, t = r * WORDS + a, r * TIMES + FIRST_TIME + a
        before = np.int64(memory.times[t])
        if trace == ACCUMULATING:
            z = memory.traces[r * MOST_ACTIONS + a]
            worth = memory.weights[w] + z * update[before]
            alive = before >= oldest
            memory.traces[r * MOST_ACTIONS + a] = 1.0 + (
                z * powers[powers.size - 1 - (time - before)] if alive else 0.0
            )
        else:
            worth = memory.weights[w] + update[before]
        if trace == CLEARING:
            for b in range(MOST_ACTIONS):
                if b != a:
                    memory.weights[r * WORDS + b] += update[memory.times[r * TIMES + FIRST_TIME + b]]
                    memory.times[r * TIMES + FIRST_TIME + b] = 0
        memory.weights[w] = worth
        memory.times[t] = time
        total += worth
    update[time] = 0.0
    return total


@compiled(inline=True)
def credit(update, powers, time, oldest, amount):
    """Add an error, times the step size, to everything visited from ``oldest`` until now, decayed by age."""
    number = time - oldest
    first, age = U(oldest), U(powers.size - 1 - number)
    for j in range(number):
        update[first + U(j)] += amount * powers[age + U(j)]
    update[time] += amount


@compiled(inline=True)
def choose(q0, q1, q2, q3, actions, epsilon, states):
    """Epsilon-greedy, ties at random; where values are NaN, the first action."""
    action, best = 0, q0
    if q1 > best:
        action, best = 1, q1
    if q2 > best:
        action, best = 2, q2
    if actions > 3 and q3 > best:
        action, best = 3, q3
    ties = (q0 == best) + (q1 == best) + (q2 == best) + (actions > 3 and q3 == best)
    if ties > 1:
        rank = np.int64(uniform(states, AGENT) * ties)
        for a in range(actions):
            q = q0 if a == 0 else (q1 if a == 1 else (q2 if a == 2 else q3))
            if q == best:
                if rank == 0:
                    action = a
                rank -= 1
    if uniform(states, AGENT) < epsilon:
        action = np.int64(uniform(states, AGENT) * actions)
    return action


@compiled(inline=True)
def outside(observation, low, high):
    """Whether an observation lies beyond a range."""
    beyond = False
    for i in range(low.size):
        beyond |= observation[i] < low[i] or observation[i] > high[i]
    return beyond


@compiled
def widen(observation, low, high, scale, learner: Learner, memory: Memory, coder: Coder, update):
    """Grow a range beyond an observation: new bound = observation + growth * distance to the other bound."""
    new_low, new_high = np.empty(low.size), np.empty(low.size)
    for i in range(low.size):
        new_low[i], new_high[i] = low[i], high[i]
        if observation[i] > high[i]:
            new_high[i] = observation[i] + learner.growth * (observation[i] - low[i])
        elif observation[i] < low[i]:
            new_low[i] = observation[i] - learner.growth * (high[i] - observation[i])
    if learner.moves_weights:
        transplant(memory, coder, update, low, high, new_low, new_high)
    for i in range(low.size):
        low[i], high[i] = new_low[i], new_high[i]
    set_scale(low, high, coder, scale)


@compiled
def locate_again(observation, low, scale, coder: Coder, cell, memory: Memory, tile, record, first):
    """The features of an observation once more, after the range has grown."""
    locate(observation, low, scale, coder, cell, tile, first)
    find(memory, coder, tile, record, first)


@compiled
def run_trial(
    world: World, coder: Coder, learner: Learner, memory: Memory, update, low, high, states, steps, totals
):
    """Learn from nothing for ``steps`` steps.

    Args:
        update: [steps + 1] working space.
        low, high: [variables] range of the tilings; an adaptive learner grows them in place, from its first
            observation if they are infinite.
        states: [3] uint64 states of the trial's streams, moved on.
        totals: [5] filled with completed episodes, total reward, reward in completed episodes, growths of
            the range, 1 if an error was infinite or NaN.

    Returns:
        Whether the hash table was large enough; if not, nothing else means anything.
    """
    clear(memory)
    features, powers, trace = coder.features, learner.powers, learner.trace
    variables = low.size
    state, observation, seen, scale = (
        np.zeros(4),
        np.zeros(variables),
        np.zeros(variables),
        np.zeros(variables),
    )
    cell = np.zeros(variables * coder.tilings, np.uint32)
    tile, record = np.zeros(2 * features, np.uint32), np.zeros(2 * features, np.uint32)
    now, then = 0, features  # where the features of `observation` and of `seen` are
    episodes, growths, diverged = 0, 0, False
    total, completed, returned = 0.0, 0.0, 0.0
    time, episode_start, oldest, action = 0, 1, 1, 0
    terminated, error = True, 0.0
    update[0] = 0.0
    while memory.counts[2] == 0:
        if time > 0:
            reward, terminated = advance(world, states, state, action)
            total += reward
            returned += reward
            if not terminated:
                see(world, state, seen)
                if learner.adaptive and outside(seen, low, high):
                    widen(seen, low, high, scale, learner, memory, coder, update)
                    locate_again(observation, low, scale, coder, cell, memory, tile, record, now)
                    growths += 1
                    episode_start = time
            oldest = max(time - powers.size + 1, episode_start)  # neither culled nor of another episode
            error = reward - visit(
                memory, update, tile, record, now, features, action, time, oldest, trace, powers
            )
        if terminated:
            if time > 0:
                diverged |= not abs(error) < np.inf
                credit(update, powers, time, oldest, learner.step_size * error)
                episodes += 1
                completed += returned
                returned = 0.0
            begin_episode(world, states, state)
            see(world, state, seen)
            episode_start = time + 1
            if time == 0:
                if learner.adaptive and low[0] == np.inf:
                    for i in range(variables):
                        low[i], high[i] = seen[i] - FIRST_MARGIN, seen[i] + FIRST_MARGIN
                set_scale(low, high, coder, scale)
            if learner.adaptive and outside(seen, low, high):
                widen(seen, low, high, scale, learner, memory, coder, update)
                growths += 1
        locate(seen, low, scale, coder, cell, tile, then)
        find(memory, coder, tile, record, then)
        q0, q1, q2, q3 = values(memory, update, record, then, features, learner.actions, trace)
        action = choose(q0, q1, q2, q3, learner.actions, learner.epsilon, states)
        if not terminated:
            q = q0 if action == 0 else (q1 if action == 1 else (q2 if action == 2 else q3))
            error += learner.discount * q
            diverged |= not abs(error) < np.inf
            credit(update, powers, time, oldest, learner.step_size * error)
        if time == steps:
            break
        time += 1
        now, then = then, now
        for i in range(variables):
            observation[i] = seen[i]
    totals[0], totals[1], totals[2], totals[3], totals[4] = episodes, total, completed, growths, diverged
    return memory.counts[2] == 0
