"""Commit and reveal: whatever is changed between the two is found."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedbed.artifacts import SeedbedError
from seedbed.environments.generalized.samplers import Sampler, union
from seedbed.generalized import secret
from seedbed.generalized.secret import (
    belongs,
    commitment,
    derived_generator,
    merkle_proof,
    merkle_root,
    opens,
    release_tuning,
    seal,
    sealed_test_environments,
    sealed_tuning_environments,
    verify,
)

CASES = json.loads((Path(__file__).parents[1] / "reference/generalized/commit_reveal.json").read_text())[
    "cases"
]
PLAN = {"score": "total reward per completed episode", "test": "sign test", "alpha": 0.05, "ties": "dropped"}
SEAL = seal(union(), PLAN, tuning=5, test=7, master="ab" * 32, nonce="cd" * 32)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["id"])
def test_commitments_equal_the_reference(case):
    assert opens(case["commitment"], case["revealed_nonce"], case["revealed_document"]) == case["valid"]


def revealed():
    """What a reveal shows, through JSON as it would be written."""
    return json.loads(json.dumps(SEAL.document))


def test_an_honest_evaluation_holds():
    document = revealed()
    released, tested = release_tuning(document), sealed_test_environments(document)
    assert verify(SEAL.public, document, SEAL.nonce, released=released, tested=tested) == []
    assert [item["environment"] for item in released] == [
        e.json for e in sealed_tuning_environments(document)
    ]
    assert len(tested) == 7
    sampler = union()
    assert all(sampler.holds(environment) for environment in tested)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["plan"].update(alpha=0.051),
        lambda d: d.update(master_seed="bb" + d["master_seed"][2:]),
        lambda d: d["sampler"].update(noise_high=0.5000000001),
        lambda d: d.update(test=8),
        lambda d: d.update(merkle_root="0" * 64),
    ],
)
def test_a_changed_document_is_found(change):
    document = revealed()
    change(document)
    assert "not what was committed" in verify(SEAL.public, document, SEAL.nonce)[0]


@given(st.integers(0, 255))
@settings(max_examples=30, deadline=None)
def test_one_bit_of_the_nonce_matters(bit):
    nonce = f"{int(SEAL.nonce, 16) ^ (1 << bit):064x}"
    assert verify(SEAL.public, revealed(), nonce)


def test_swapped_environments_are_found():
    document = revealed()
    released, tested = release_tuning(document), sealed_test_environments(document)
    forged = copy.deepcopy(released)
    forged[2]["environment"] = forged[2]["environment"].replace('"noise":0.', '"noise":0.1')
    assert any(
        "Tuning environment 2" in finding
        for finding in verify(SEAL.public, document, SEAL.nonce, released=forged)
    )
    swapped = [tested[1], tested[0], *tested[2:]]
    findings = verify(SEAL.public, document, SEAL.nonce, tested=swapped)
    assert findings == [f"Test environment {i} is not the sealed one." for i in (0, 1)]
    assert "6 environments were tested" in verify(SEAL.public, document, SEAL.nonce, tested=tested[:6])[0]


def test_an_evaluator_who_sealed_other_environments_is_found():
    document = revealed() | {"merkle_root": merkle_root(["something else"])}
    public = {"commitment": commitment(SEAL.nonce, document), "merkle_root": document["merkle_root"]}
    assert any("does not give" in finding for finding in verify(public, document, SEAL.nonce))
    other = SEAL.public | {"merkle_root": "0" * 64}
    assert any("published Merkle root" in finding for finding in verify(other, revealed(), SEAL.nonce))


def test_another_version_of_the_sampler_is_named(monkeypatch):
    monkeypatch.setattr(secret, "sampler_source", lambda: "0" * 64)
    assert "sources differ" in verify(SEAL.public, revealed(), SEAL.nonce)[0]


def test_a_beacon_decides_the_test_and_not_the_tuning():
    sealed = seal(union(), PLAN, tuning=3, test=4, beacon=True, master="ab" * 32, nonce="cd" * 32)
    one, other = (sealed_test_environments(sealed.document, value) for value in ("round 1", "round 2"))
    assert not {e.hash for e in one} & {e.hash for e in other}
    released = release_tuning(sealed.document)
    assert (
        verify(sealed.public, sealed.document, sealed.nonce, released=released, tested=one, beacon="round 1")
        == []
    )
    assert verify(sealed.public, sealed.document, sealed.nonce, tested=one, beacon="round 2")
    with pytest.raises(SeedbedError, match="beacon"):
        sealed_test_environments(sealed.document)
    with pytest.raises(SeedbedError, match="no beacon"):
        sealed_test_environments(SEAL.document, "round 1")


def test_a_document_that_cannot_be_replayed_is_a_finding():
    document = revealed()
    document["sampler"]["domains"] = ["pendulum"]
    public = {"commitment": commitment(SEAL.nonce, document), "merkle_root": document["merkle_root"]}
    assert "cannot be replayed" in verify(public, document, SEAL.nonce)[0]


def test_seals_differ_and_need_their_secrets():
    one, other = seal(union(), PLAN, tuning=1, test=1), seal(union(), PLAN, tuning=1, test=1)
    assert one.public != other.public
    assert one.document["master_seed"] != other.document["master_seed"]
    with pytest.raises(SeedbedError, match="hexadecimal"):
        seal(union(), PLAN, nonce="short")
    with pytest.raises(SeedbedError, match="environments"):
        seal(union(), PLAN, test=0)


def test_derived_streams_are_apart():
    draws = {
        (master, purpose, index): derived_generator(master * 32, purpose, index).random()
        for master in ("ab", "ac")
        for purpose in ("tune", "test")
        for index in range(5)
    }
    assert len(set(draws.values())) == 20
    assert derived_generator("ab" * 32, "tune", 1).random() == draws["ab", "tune", 1]


@given(st.lists(st.text("ab", max_size=2), min_size=1, max_size=20), st.data())
@settings(max_examples=50, deadline=None)
def test_merkle_proofs_hold_for_their_leaf_alone(contents, data):
    index = data.draw(st.integers(0, len(contents) - 1))
    root, proof = merkle_root(contents), merkle_proof(contents, index)
    assert belongs(contents[index], proof, root)
    assert not belongs(contents[index] + "x", proof, root)
    changed = [*contents]
    changed[index] += "x"
    assert merkle_root(changed) != root
    assert len(proof) <= int(np.ceil(np.log2(len(contents)))) if len(contents) > 1 else proof == []


def test_a_seal_keeps_all_of_a_sampler():
    sampler = Sampler(
        ("acrobot", "mountain_car"), 0.3, 0.5, 2, -1, 1, 0.25, (("acrobot", "rllib"),), (0.75, 0.25)
    )
    document = json.loads(json.dumps(seal(sampler, {}, tuning=2, test=2).document))
    assert secret.sealed_sampler(document) == sampler
