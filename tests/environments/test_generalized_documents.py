"""Transforms, documents and samplers of generalized environments."""

import json
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedbed.artifacts import SeedbedError
from seedbed.environments.generalized.documents import (
    EnvironmentDocument,
    canonical_environment,
    canonical_json,
    covering_ranges,
    read_document,
)
from seedbed.environments.generalized.domains import DOMAINS
from seedbed.environments.generalized.samplers import TEST, TUNING, MetaSampler, Sampler, union
from seedbed.environments.generalized.transforms import CURVES, Transform
from seedbed.seeding import stream

transforms = st.builds(
    Transform,
    st.sampled_from(CURVES),
    st.booleans(),
    st.floats(0.1, 10),
    st.floats(-10, 10),
)


@given(transforms, st.floats(-0.99, 0.99), st.floats(-20, 20), st.floats(0.01, 30))
@settings(max_examples=300, deadline=None)
def test_transforms_are_undone_by_their_inverse(transform, z, low, width):
    value = low + (z + 1) / 2 * width
    seen = transform.apply(value, low, low + width)
    assert transform.invert(seen, low, low + width) == pytest.approx(value, abs=1e-9)


@given(transforms, st.floats(-1, 1), st.floats(-1, 1))
@settings(max_examples=300, deadline=None)
def test_transforms_keep_the_order_or_reverse_it_and_fill_their_image(transform, a, b):
    first, second = sorted((a, b))
    seen = [transform.apply(z, -1, 1) for z in (first, second)]
    assert seen == sorted(seen, reverse=transform.inverted)
    low, high = transform.image
    assert all(low - 1e-9 <= value <= high + 1e-9 for value in seen)
    ends = sorted(transform.apply(z, -1, 1) for z in (-1, 1))
    assert ends == pytest.approx([low, high], abs=1e-9)


def test_the_ends_of_a_flat_curve_come_back_to_the_square_root_of_rounding():
    transform = Transform("sin", scale=0.1, shift=10.0)
    assert transform.invert(transform.apply(1.0, -1, 1), -1, 1) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(
    "arguments",
    [
        {"curve": "cos"},
        {"scale": 0},
        {"scale": -1.0},
        {"scale": math.inf},
        {"shift": math.nan},
        {"inverted": 1},
    ],
)
def test_bad_transforms_are_refused(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        Transform(**arguments)


@pytest.mark.parametrize("environment", union().environments(TEST, 0, 8), ids=lambda e: e.hash[:6])
def test_a_document_is_replayed_from_its_json(environment):
    again = read_document(environment.json)
    assert again == environment
    assert again.hash == environment.hash
    assert read_document(json.loads(environment.json)) == environment
    assert canonical_json(json.loads(environment.json)) == environment.json
    assert " " not in environment.json


def test_every_change_is_another_environment():
    environment = Sampler(("mountain_car",)).environments(TUNING, 0, 1)[0]
    first = environment.transforms[0]
    changed = [
        replace(environment, noise=math.nextafter(environment.noise, 1)),
        replace(environment, random_start=not environment.random_start),
        replace(environment, variant="minus_one_at_goal"),
        replace(environment, transforms=environment.transforms[::-1]),
        replace(
            environment, transforms=(replace(first, inverted=not first.inverted), environment.transforms[1])
        ),
    ]
    assert len({environment.hash, *(other.hash for other in changed)}) == 6


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"domain": "pendulum"}, "domain"),
        ({"variant": "book"}, "variant"),
        ({"noise": -0.1}, "noise"),
        ({"noise": "much"}, "noise"),
        ({"random_start": 1}, "random_start"),
        ({"transforms": []}, "2 variables"),
        ({"transforms": [{"curve": "cos"}, {}]}, "curve"),
        ({"transforms": [{"angle": 1}, {}]}, "angle"),
        ({"schema": "other"}, "schema"),
        ({"colour": "red"}, "keys"),
    ],
)
def test_damaged_documents_are_refused_with_their_place(changes, message):
    content = json.loads(canonical_environment("mountain_car").json) | changes
    with pytest.raises(SeedbedError, match=rf"^tuning\.json: .*{message}"):
        read_document(content, "tuning.json")


def test_what_is_no_json_is_refused():
    with pytest.raises(SeedbedError, match="document"):
        read_document("{")
    with pytest.raises(SeedbedError, match="keys"):
        read_document("[]")


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_samplers_stay_in_their_family(seed):
    sampler = Sampler(("acrobot", "puddle_world"), 0.2, 0.5, 2.0, -1.0, 3.0, 0.5, (("acrobot", "nips"),))
    environment = sampler.environments(TUNING, seed, 1)[0]
    assert sampler.holds(environment)
    assert not sampler.holds(replace(environment, noise=0.3))
    assert not replace(sampler, domains=("mountain_car",)).holds(environment)
    assert not replace(sampler, scale_low=2.0).holds(environment) or environment.transforms[0].scale == 2.0
    far = replace(environment.transforms[0], shift=5.0)
    assert not sampler.holds(replace(environment, transforms=(far, *environment.transforms[1:])))
    fixed = replace(sampler, random_start=0.0)
    assert fixed.holds(environment) != environment.random_start


def test_sets_grow_without_changing_and_streams_differ():
    sampler = union()
    assert sampler.environments(TUNING, 7, 25)[:5] == sampler.environments(TUNING, 7, 5)
    hashes = [e.hash for purpose in (TUNING, TEST) for e in sampler.environments(purpose, 7, 40)]
    assert len(set(hashes)) == 80
    assert sampler.environments(TUNING, 8, 1) != sampler.environments(TUNING, 7, 1)


def test_draws_follow_the_declared_distributions():
    drawn = union().environments(TEST, 11, 1500)
    count = Counter(e.domain for e in drawn)
    assert all(abs(count[name] / 1500 - 1 / 3) < 0.05 for name in DOMAINS)
    assert abs(np.mean([e.random_start for e in drawn]) - 0.5) < 0.05
    noise = np.array([e.noise for e in drawn])
    assert 0 <= noise.min() < 0.01
    assert 0.49 < noise.max() <= 0.5
    seen = [t for e in drawn for t in e.transforms]
    curves = Counter(t.curve for t in seen)
    assert all(abs(curves[name] / len(seen) - 0.25) < 0.03 for name in CURVES)
    logarithms = np.log10([t.scale for t in seen])
    assert abs(logarithms.mean()) < 0.05
    assert abs(logarithms.std() - 2 / math.sqrt(12)) < 0.03
    assert abs(np.mean([t.shift for t in seen])) < 0.5


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"domains": ()}, "domains"),
        ({"domains": ("acrobot", "acrobot")}, "domains"),
        ({"noise_high": -1}, "noise_high"),
        ({"scale_low": 0}, "scales"),
        ({"shift_low": 2, "shift_high": 1}, "shifts"),
        ({"random_start": 1.5}, "random_start"),
        ({"variants": (("acrobot", "closed"),)}, "variant"),
        ({"weights": (0.5,)}, "weights"),
    ],
)
def test_bad_samplers_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Sampler(**{"domains": ("acrobot",)} | arguments)


def test_meta_trials_live_through_environments_of_one_hidden_family():
    meta = MetaSampler(union(), mixed_domains=True)
    sampler = meta.sample(stream(TEST, 0, 3))
    series = meta.series(0, 3, 10)
    assert all(sampler.holds(environment) for environment in series)
    assert meta.series(0, 3, 10) == series
    single = MetaSampler(union())
    assert len({e.domain for e in single.series(0, 4, 10)}) == 1
    spreads = [meta.sample(stream(TEST, 1, i)).scale_high for i in range(200)]
    assert 2 <= min(spreads) < 3
    assert 15 < max(spreads) <= 20


def test_covering_ranges_are_the_smallest_that_hold_all_images():
    environments = union().environments(TUNING, 0, 30)
    found = covering_ranges(environments)
    assert set(found) == {e.domain for e in environments}
    for domain, (low, high) in found.items():
        images = np.array([e.ranges for e in environments if e.domain == domain])
        np.testing.assert_array_equal(low, images[:, 0].min(0))
        np.testing.assert_array_equal(high, images[:, 1].max(0))


def test_documents_are_what_they_say():
    environment = canonical_environment("puddle_world", "open")
    assert isinstance(environment, EnvironmentDocument)
    assert environment.variant == "open"
    assert json.loads(environment.json)["transforms"][0] == {
        "curve": "none",
        "inverted": False,
        "scale": 0.5,
        "shift": 0.5,
    }
