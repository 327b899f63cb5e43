"""Loops as coroutines, and the global generators of a seed."""

import random
import threading
from contextlib import nullcontext

import numpy as np
import pytest
import torch

from seedbed.algorithms.global_generators import GlobalGenerators
from seedbed.algorithms.turns import Turn


def draws():
    return random.random(), np.random.random(), torch.rand(1).item()  # noqa: NPY002


def test_a_loop_runs_between_its_questions_only():
    said = []

    def loop(turn):
        for number in range(3):
            said.append(turn.ask(number))

    turn = Turn(loop, nullcontext())
    turn.resume()
    for number in range(3):
        assert (turn.request, turn.finished, said) == (number, False, [f"answer {n}" for n in range(number)])
        turn.resume(f"answer {number}")
    assert turn.finished
    turn.give_up()
    assert not turn.is_alive()


def test_errors_come_out_and_what_is_given_up_ends():
    def failing(turn):
        turn.ask(None)
        raise KeyError("lost")

    def swallowing(turn):
        while True:
            try:
                turn.ask(None)
            except Exception:
                continue

    before = threading.active_count()
    turns = [Turn(failing, nullcontext()), Turn(swallowing, nullcontext()), Turn(swallowing, nullcontext())]
    for turn in turns[:2]:
        turn.resume()
    with pytest.raises(KeyError, match="lost"):
        turns[0].resume()
    for turn in turns:
        turn.give_up()
    assert threading.active_count() == before


def test_each_seed_finds_the_generators_that_it_left():
    with GlobalGenerators(3):
        alone = [draws() for _ in range(4)]
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    torch.manual_seed(0)
    outside = draws()
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    torch.manual_seed(0)
    one, other, met = GlobalGenerators(3), GlobalGenerators(4), []
    for _ in range(4):
        with one:
            met.append(draws())
        with other:
            assert draws() != met[-1]
    assert met == alone
    assert draws() == outside
