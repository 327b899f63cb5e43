"""Streams: independent by identity, in range, append-only."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedbed.seeding import ACTIONS_OF, BlockStreams, Purpose, stream, streams

SMALL = st.integers(0, 2**32 - 1)


@given(
    st.tuples(st.sampled_from(Purpose), SMALL, st.none() | SMALL),
    st.tuples(st.sampled_from(Purpose), SMALL, st.none() | SMALL),
)
def test_streams_are_equal_exactly_when_their_identities_are(one, other):
    same = np.array_equal(stream(*one).random(4), stream(*other).random(4))
    assert same == (one == other)


@given(st.sampled_from(Purpose), SMALL, SMALL, st.integers(0, 40))
def test_streams_of_several_episodes_are_those_of_each(purpose, seed, first, count):
    numbers = range(first, min(first + count, 2**32))
    several = [generator.random(3).tolist() for generator in streams(purpose, seed, numbers)]
    assert several == [stream(purpose, seed, number).random(3).tolist() for number in numbers]


def test_seed_without_episode_differs_from_episode_zero():
    assert stream(Purpose.TRAINING, 7).random() != stream(Purpose.TRAINING, 7, 0).random()


def test_seeds_do_not_share_episodes():
    """seed + episode would make episode 5 of seed 0 equal episode 4 of seed 1."""
    draws = {stream(Purpose.TEST, seed, episode).random() for seed in range(20) for episode in range(20)}
    assert len(draws) == 400


@pytest.mark.parametrize("key", [(-1,), (2**32,), (0, 2**32), (0, -1)])
def test_numbers_that_would_alias_are_refused(key):
    with pytest.raises(ValueError, match=r"2\*\*32"):
        stream(Purpose.TEST, *key)


def test_purposes_keep_their_numbers():
    assert {purpose.name: purpose.value for purpose in Purpose} == {
        "TRAINING": 1,
        "TUNING": 2,
        "EVALUATION": 3,
        "TEST": 4,
        "INITIALISATION": 5,
        "EXPLORATION": 6,
        "MINIBATCHES": 7,
        "REPLAY": 8,
        "EVALUATION_ACTIONS": 9,
        "TEST_ACTIONS": 10,
        "TUNING_ACTIONS": 11,
        "CONTENT": 12,
        "STATISTICS": 13,
        "BEHAVIOUR": 14,
        "BEHAVIOUR_ACTIONS": 15,
        "MODEL": 16,
        "FORECAST": 17,
        "ENVIRONMENTS": 18,
    }
    assert set(ACTIONS_OF.values()).isdisjoint(ACTIONS_OF)


@given(st.lists(SMALL, min_size=1, max_size=5, unique=True), st.integers(1, 7))
def test_block_streams_give_each_seed_what_it_gets_alone(seeds, block):
    together = BlockStreams(Purpose.EXPLORATION, seeds, (3,), block)
    alone = [BlockStreams(Purpose.EXPLORATION, [seed], (3,), block) for seed in seeds]
    for _ in range(10):
        expected = np.concatenate([single.uniforms() for single in alone])
        assert np.array_equal(together.uniforms(), expected)
