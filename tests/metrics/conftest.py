"""Small evaluation tables, built from what happened in each episode."""

from types import SimpleNamespace

import pandas as pd
import pytest

MASTERY, LIMIT, QUIT = 1, 2, 3


def question(difficulty=0, correct=1, *, gain=0.05, before=0.3, frustration=0.1, reward=1.0, mastery=0.3):
    return {
        "is_question": True,
        "difficulty": difficulty,
        "modality": -1,
        "correct": correct,
        "gain": gain if correct else 0.0,
        "mastery_before": before,
        "frustration": frustration,
        "reward": reward,
        "mean_mastery": mastery,
    }


def content(modality=0, *, gain=0.1, before=0.3, frustration=0.1, reward=0.2, mastery=0.3):
    return {
        "is_question": False,
        "difficulty": -1,
        "modality": modality,
        "correct": -1,
        "gain": gain,
        "mastery_before": before,
        "frustration": frustration,
        "reward": reward,
        "mean_mastery": mastery,
    }


def evaluation(*episodes, seed=0, mode="sampled"):
    """(end reason, [step, ...]) per episode -> episode table, step table."""
    rows, log = [], []
    for number, (reason, steps) in enumerate(episodes):
        rows.append(
            {
                "seed": seed,
                "policy_mode": mode,
                "episode": number,
                "return": sum(step["reward"] for step in steps),
                "length": len(steps),
                "terminated": reason != LIMIT,
                "truncated": reason == LIMIT,
                "success": reason == MASTERY,
                "final_mean_mastery": steps[-1]["mean_mastery"],
                "final_frustration": steps[-1]["frustration"],
                "final_end_reason": reason,
            }
        )
        for t, step in enumerate(steps, start=1):
            log.append({"seed": seed, "policy_mode": mode, "episode": number, "t": t, **step})
    return pd.DataFrame(rows), pd.DataFrame(log)


@pytest.fixture(scope="session")
def build():
    """The builders above, under one name."""
    return SimpleNamespace(
        question=question, content=content, evaluation=evaluation, MASTERY=MASTERY, LIMIT=LIMIT, QUIT=QUIT
    )
