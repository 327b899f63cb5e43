"""Behaviour data as tables: the step table with all that an off-policy estimate needs, and the event log."""

import numpy as np
import pandas as pd

from seedbed.artifacts import STEP_COLUMNS, ArtifactError
from seedbed.off_policy.behaviour import BehaviourLog

BEHAVIOUR_COLUMNS = STEP_COLUMNS | {"probability": "float64"}
"""The step table and the probability of the action taken. Lists follow: ``observation`` and ``mask`` before
the step, ``next_observation`` and ``next_mask`` after it, ``distribution`` (of all actions, after masking);
then the environment's facts."""
LISTS = {
    "observation": "float32",
    "mask": "bool",
    "next_observation": "float32",
    "next_mask": "bool",
    "distribution": "float64",
}
EVENT_COLUMNS = {
    "seed": "int64",
    "episode": "int64",
    "t": "int64",
    "event": "string",
    "learning_outcome": "int16",
    "difficulty": "int8",
    "modality": "int8",
    "item": "int32",
    "probability": "float64",
    "correct": "int8",
    "response_time": "float64",
    "gain": "float64",
}
"""One row per event; what means nothing is -1 (difficulty, modality, correct) or NaN (time, gain)."""


def behaviour_table(log: BehaviourLog, seed: int) -> pd.DataFrame:
    """One data set as a step table of ``BEHAVIOUR_COLUMNS``, sorted by episode and t."""
    episode, step = np.nonzero(np.arange(log.action.shape[1]) < log.length[:, None])
    last = step + 1 == log.length[episode]
    columns = {
        "seed": np.full(len(episode), seed),
        "policy_mode": "sampled",
        "episode": episode,
        "t": step + 1,
        "action": log.action[episode, step],
        "reward": log.reward[episode, step],
        "terminated": last & log.terminated[episode],
        "truncated": last & ~log.terminated[episode],
        "probability": log.probability[episode, step],
        "observation": list(log.observation[episode, step]),
        "mask": list(log.mask[episode, step]),
        "next_observation": list(log.observation[episode, step + 1]),
        "next_mask": list(log.mask[episode, step + 1]),
        "distribution": list(log.distribution[episode, step]),
    }
    columns |= {name: column[episode, step] for name, column in log.facts.items()}
    return pd.DataFrame(columns).astype(BEHAVIOUR_COLUMNS)


def log_from_table(table: pd.DataFrame, horizon: int) -> BehaviourLog:
    """The data set of a table of ``BEHAVIOUR_COLUMNS``; its facts stay behind.

    Args:
        table: one data set, sorted by episode and t.
        horizon: T, the largest step limit.

    Raises:
        ArtifactError: a list column is missing, or the steps of an episode are not 1, 2, ... up to its end.
    """
    missing = [name for name in LISTS if name not in table]
    if missing:
        raise ArtifactError(f"The behaviour data lack the columns {missing}.")
    episode, step = table["episode"].to_numpy(), table["t"].to_numpy() - 1
    length = np.bincount(episode)
    ends = np.flatnonzero((table["terminated"] | table["truncated"]).to_numpy())
    counted = np.concatenate([np.arange(steps) for steps in length])
    complete = np.array_equal(step, counted) and np.array_equal(step[ends] + 1, length)
    if not complete or length.max() > horizon:
        raise ArtifactError(
            f"The behaviour data are not whole episodes of at most {horizon} steps, sorted by episode and t."
        )
    lists = {name: np.stack(table[name].to_list()).astype(dtype) for name, dtype in LISTS.items()}
    episodes, actions = len(length), lists["mask"].shape[1]
    observation = np.zeros((episodes, horizon + 1, *lists["observation"].shape[1:]), np.float32)
    mask = np.ones((episodes, horizon + 1, actions), bool)
    for array, name in ((observation, "observation"), (mask, "mask")):
        array[episode, step] = lists[name]
        array[episode, step + 1] = lists[f"next_{name}"]
    action, reward = np.zeros((episodes, horizon), np.int64), np.zeros((episodes, horizon))
    distribution = np.zeros((episodes, horizon, actions))
    action[episode, step], reward[episode, step] = table["action"], table["reward"]
    distribution[episode, step] = lists["distribution"]
    terminated = np.zeros(episodes, bool)
    terminated[episode[ends]] = table["terminated"].to_numpy()[ends]
    return BehaviourLog(observation, mask, action, reward, distribution, length, terminated)


def event_table(steps: pd.DataFrame) -> pd.DataFrame:
    """The event log of the mock interview: two events per step, in the order in which they happen.

    ``question_shown`` and ``answered`` (with the answer, its time and gain), or ``content_shown`` and
    ``content_completed`` (with the gain). They say what the learner met: a question that was replaced by a
    video is a content, with the probability of the question that was chosen. Other environments have none.

    Args:
        steps: as ``behaviour_table`` returns.
    """
    if "is_question" not in steps:
        return pd.DataFrame(columns=list(EVENT_COLUMNS)).astype(EVENT_COLUMNS)
    question = steps["is_question"].to_numpy(bool)
    shared = ["seed", "episode", "t", "learning_outcome", "difficulty", "modality", "item", "probability"]
    shown = steps[shared].assign(
        event=np.where(question, "question_shown", "content_shown"),
        correct=-1,
        response_time=np.nan,
        gain=np.nan,
    )
    done = steps[shared].assign(
        event=np.where(question, "answered", "content_completed"),
        correct=steps["correct"],
        response_time=steps["response_time"].where(question),
        gain=steps["gain"],
    )
    events = pd.concat([shown, done]).sort_index(kind="stable")
    return events[list(EVENT_COLUMNS)].astype(EVENT_COLUMNS).reset_index(drop=True)
