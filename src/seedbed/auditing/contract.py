"""Checks of what a single environment returns: its spaces, numbers, flags, limit and arrays."""

import warnings
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
from gymnasium.utils.env_checker import check_env

from seedbed.auditing.subject import Finding, Play, Subject, play
from seedbed.environments.external import HARD_LIMIT
from seedbed.evaluation import EvaluationError


def episodes(subject: Subject) -> Finding:
    """Whether episodes under random actions can be played to their end."""
    name = "episodes"
    remedy = "Reset and step must work for every action of the action space and every seed"
    if subject.single is None:
        try:
            lengths = subject.reference.episodes["length"]
        except EvaluationError as error:
            return Finding(name, False, str(error), f"{remedy}.")
        return Finding(name, True, f"{len(lengths)}, of {lengths.min()} to {lengths.max()} steps")
    for number, played in enumerate(subject.plays):
        if played.error:
            hint = f"{remedy}; where a seed is too large, set seed_bits=32."
            return Finding(name, False, f"episode {number} (seed {played.seed}): {played.error}", hint)
        if not played.ended:
            limit = "its step limit" if subject.single.spec.horizon < HARD_LIMIT else "and has no step limit"
            detail = f"episode {number} has not ended after {played.length} steps, {limit}"
            return Finding(name, False, detail, "Give it a step limit that truncates: horizon=1000.")
    lengths = [played.length for played in subject.plays]
    return Finding(name, True, f"{len(lengths)}, of {min(lengths)} to {max(lengths)} steps")


def finite_numbers(subject: Subject) -> Finding:
    """Whether all rewards and observations are finite."""
    name = "finite numbers"
    for number, played in enumerate(subject.plays):
        if played.not_finite:
            return _wrong(name, number, *played.not_finite, "Look for what divides by 0.")
    return Finding(name, True, f"observations and rewards of {_steps(subject)} steps are finite")


def observation_space(subject: Subject) -> Finding:
    """Whether observations lie in their space: type and bounds; what is not finite is left out."""
    name = "observation space"
    for number, played in enumerate(subject.plays):
        if played.outside:
            remedy = "Return what the space says, or widen the space: learners scale by its bounds."
            return _wrong(name, number, *played.outside, remedy)
    return Finding(name, True, f"{_steps(subject) + len(subject.plays)} observations lie in it")


def rewards_and_flags(subject: Subject) -> Finding:
    """Whether a reward is one number, both flags are booleans and info is a dictionary."""
    name = "rewards and flags"
    for number, played in enumerate(subject.plays):
        for t, (reward, flags) in enumerate(zip(played.rewards, played.flags, strict=True), 1):
            if isinstance(reward, bool) or not isinstance(reward, int | float | np.integer | np.floating):
                return _wrong(name, number, t, f"the reward is of type {_type(reward)}", "Return a float.")
            for flag, value in zip(("terminated", "truncated"), flags, strict=True):
                if not isinstance(value, bool | np.bool_):
                    return _wrong(name, number, t, f"{flag} is of type {_type(value)}", "Return a bool.")
        if played.no_dictionary:
            t, kind = played.no_dictionary
            return _wrong(name, number, t, f"info is of type {kind}", "Return a dictionary.")
    ends = [tuple(map(bool, played.flags[-1])) for played in subject.plays]
    terminated, truncated = (sum(flags) for flags in zip(*ends, strict=True))
    return Finding(name, True, f"of the right types; {terminated} episodes terminated, {truncated} truncated")


def step_limit(subject: Subject) -> Finding:
    """Whether an episode at its step limit is truncated there, and a shorter limit only cuts it."""
    name = "step limit"
    remedy = "Hand on `truncated` as TimeLimit sets it: learners bootstrap unless terminated."
    horizon = subject.single.spec.horizon
    reached = [(k, played) for k, played in enumerate(subject.plays) if played.length == horizon]
    for number, played in reached:
        if not played.flags[-1][1]:
            return _wrong(name, number, horizon, "the limit is reached, but truncated is False", remedy)
    longest = max(subject.plays, key=lambda played: played.length)
    limit = longest.length // 2
    if not limit:
        return Finding(name, True if reached else None, "episodes of one step leave nothing to cut")
    with closing(replace(subject.single, horizon=limit).make()) as env:
        cut = play(env, longest.seed, longest.seed, longest.length)
    if cut.length != limit or not cut.flags[-1][1]:
        detail = (
            f"under a limit of {limit}, an episode of {longest.length} steps had {cut.length}, {_ended(cut)}"
        )
        return Finding(name, False, detail, remedy)
    before = longest.fingerprint()[:limit]
    if cut.fingerprint()[:limit] != before:
        detail = f"under a limit of {limit}, an episode differs before the limit"
        return Finding(name, False, detail, "What happens in a step must not depend on the step limit.")
    detail = f"an episode of {longest.length} steps is truncated at {limit} under that limit"
    return Finding(name, True, f"{detail}; {len(reached)} episodes reached their own of {horizon}")


def _ended(played: Play) -> str:
    terminated, truncated = played.flags[-1]
    return f"with terminated {bool(terminated)} and truncated {bool(truncated)}"


def returned_arrays(subject: Subject) -> Finding:
    """Whether later steps leave earlier observations alone, and actions are not written to."""
    name = "returned arrays"
    for number, played in enumerate(subject.plays):
        if played.changed_observation is not None:
            remedy = "Return a copy: `return self.buffer.copy(), ...`."
            detail = "the returned observation was changed later"
            return _wrong(name, number, played.changed_observation, detail, remedy)
        if played.changed_action is not None:
            remedy = "Copy the action before changing it."
            return _wrong(name, number, played.changed_action, "the given action was written to", remedy)
    return Finding(name, True, "no observation was changed after its return, no action was written to")


def success(subject: Subject) -> Finding:
    """Whether ``info`` tells success at each end, where an argument says that it does."""
    name, key = "success", subject.single.success
    last = [played.info for played in subject.plays]
    known = sorted(
        {str(k) for info in last for k, value in info.items() if isinstance(value, bool | np.bool_)}
    )
    if key is None:
        told = f"; info tells {', '.join(known)} at ends: name one by success=KEY" if known else ""
        return Finding(name, None, f"no `success` is named, so no episode counts as one{told}")
    for number, info in enumerate(last):
        if key not in info:
            there = ", ".join(known) or "none"
            detail = f"episode {number} ended, but info has no '{key}'; booleans there: {there}"
            return Finding(name, False, detail, f"Put '{key}' into info in the last step of every episode.")
    count = sum(bool(info[key]) for info in last)
    return Finding(name, True, f"info tells '{key}' at all {len(last)} ends; it holds at {count}")


def gymnasium_checker(subject: Subject) -> Finding:
    """Whether Gymnasium's own checker accepts the environment; its warnings are listed."""
    name = "gymnasium checker"
    with warnings.catch_warnings(record=True) as caught, closing(subject.single.make()) as env:
        warnings.simplefilter("always")
        try:
            check_env(env, skip_render_check=True, skip_close_check=True)
        except Exception as error:
            return Finding(name, False, f"{type(error).__name__}: {_plain(error)}", "Do as the checker says.")
    said = [_plain(warning.message) for warning in caught]
    said = [text for text in dict.fromkeys(said) if "different from the unwrapped version" not in text]
    return Finding(name, True, "; ".join([f"passed with {len(said)} warnings", *said]) if said else "passed")


def _plain(message: Any) -> str:
    """A message without Gymnasium's colours and prefix, on one line."""
    text = " ".join(str(message).replace("\x1b[33m", "").replace("\x1b[0m", "").split())
    return text.removeprefix("WARN: ")


def _steps(subject: Subject) -> int:
    return sum(played.length for played in subject.plays)


def _type(value: Any) -> str:
    return type(value).__name__


def _wrong(name: str, number: int, t: int, detail: str, remedy: str) -> Finding:
    return Finding(name, False, f"episode {number}, step {t}: {detail}", remedy)
