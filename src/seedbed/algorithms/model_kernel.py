"""The compiled inner loops of planning with a model: what is allowed, what goes in, what comes out."""

import math

import numpy as np

from seedbed.compiled import compiled


@compiled
def permitted(number, actions, first, mask, action):
    """See ``Choices.permitted``.

    Args:
        number: [N] int64, combinations.
        actions: [combinations] int64.
        first: how many the first choice is among.
        mask: [N, actions] bool.
        action: written, [N] int64.
    """
    rest = actions.size // first
    for n in range(number.size):
        own, others = number[n] % first, number[n] // first
        for shift in range(actions.size):
            moved = (others + shift // first) % rest
            action[n] = actions[(own + shift) % first + moved * first]
            if mask[n, action[n]]:
                break


@compiled
def gather(observation, action, entries, seen):
    """Write the entries [N, n] of observations [N, d] that actions [N] concern."""
    for n in range(action.size):
        for i, entry in enumerate(entries[action[n]]):
            seen[n, i] = observation[n, entry]


@compiled(inline=True)
def limited(x, low, high):
    """x held within limits; NaN stays NaN."""
    if x < low:
        return low
    return high if x > high else x


@compiled
def moments(out, floor, ceiling, mean, spread, event):
    """Means, standard deviations and the event's probability from the networks' outputs.

    numba's exponential, since torch's rounds otherwise at the end of an array than inside.

    Args:
        out: [R, B, 2 D] float32: means, the event's logit the last of them, and raw log variances.
        floor, ceiling: [R, targets] float32, see ``variance``.
        mean, spread: written, [R, B, targets] float32.
        event: written, [R, B] float32.
    """
    width, one = out.shape[2] // 2, np.float32(1)
    for r in range(out.shape[0]):
        for b in range(out.shape[1]):
            row = out[r, b]
            for i in range(floor.shape[1]):
                mean[r, b, i] = row[i]
                raw = limited(row[width + i], np.float32(-80), np.float32(np.inf))
                spread[r, b, i] = math.sqrt(floor[r, i] + one / (ceiling[r, i] + math.exp(-raw)))
            logit = limited(row[width - 1], np.float32(-30), np.float32(30))
            event[r, b] = one / (one + math.exp(-logit))


@compiled
def advance(observation, action, mean, spread, noise, entries, low, high, predicted):
    """Write observations after predicted changes, held within bounds.

    Args:
        observation: [N, d] float32.
        action: [N] int64.
        mean, spread: [N, targets] float32, the changes first.
        noise: [N, changes] float32.
        entries: [actions, n] int64.
        low, high: [actions, changes] float32, bounds of what changes.
        predicted: written, [N, d] float32.
    """
    for n in range(action.size):
        number = action[n]
        predicted[n] = observation[n]
        for i in range(noise.shape[1]):
            entry = entries[number, i]
            changed = observation[n, entry] + mean[n, i] + spread[n, i] * noise[n, i]
            predicted[n, entry] = limited(changed, low[number, i], high[number, i])
