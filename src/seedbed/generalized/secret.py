"""The secret methodology by commit and reveal: a test that was fixed before agents were, provably.

Whiteson, Tanner, Taylor and Stone (2011) need a trusted third party for it. A commitment takes part of its
place: it cannot keep the evaluator from telling, but shows afterwards that nothing was swapped.

1. *Seal*: the evaluator fixes sampler, seed and plan in a sealed document and publishes its commitment.
2. *Release*: designers get the tuning environments, each with a proof that it belongs to the seal.
3. *Freeze*: designers commit to their agents, with ``commitment`` as well.
4. *Run* the frozen agents in the test environments. Where the seal says ``beacon``, these also hang on a
   public random value from after the freeze, so that nobody could search for a favourable seed.
5. *Reveal* and *verify*: anybody checks commitment, proofs and environments. The sampler is an open one then.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from seedbed.artifacts import SeedbedError
from seedbed.environments import generalized
from seedbed.environments.generalized.documents import EnvironmentDocument, canonical_json, read_document
from seedbed.environments.generalized.samplers import Sampler

SCHEMA = "seedbed.sealed_evaluation/1"
_HEX = re.compile(r"[0-9a-f]{64}")


def commitment(nonce: str, document: Any) -> str:
    """SHA-256 of nonce, newline and canonical JSON, lower-case hex.

    Without a nonce that nobody can guess, documents could be found by search.
    """
    return hashlib.sha256(f"{nonce}\n{canonical_json(document)}".encode()).hexdigest()


def opens(published: str, nonce: str, document: Any) -> bool:
    """Whether nonce and document are what was committed to."""
    return hmac.compare_digest(published, commitment(nonce, document))


def draw_secret() -> str:
    """256 bits from the operating system, hex: a nonce or a master seed."""
    return secrets.token_hex(32)


def derived_generator(master: str, purpose: str, index: int) -> np.random.Generator:
    """The generator of one environment: seeded with HMAC-SHA-256(master, "purpose|index").

    What was drawn for one purpose or index tells nothing about any other.
    """
    digest = hmac.new(bytes.fromhex(master), f"{purpose}|{index}".encode(), hashlib.sha256).hexdigest()
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(int(digest, 16))))


def beacon_master(master: str, beacon: str) -> str:
    """Master seed of test environments that a public value has a part in: HMAC-SHA-256(master, beacon)."""
    return hmac.new(bytes.fromhex(master), f"beacon|{beacon}".encode(), hashlib.sha256).hexdigest()


def leaf_hash(content: str) -> bytes:
    """Hash of a leaf; leaves and inner nodes are hashed apart (RFC 6962)."""
    return hashlib.sha256(b"\x00" + content.encode()).digest()


def _parent(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def _levels(contents: Sequence[str]) -> list[list[bytes]]:
    """Levels of the tree from the leaves up; a node without a sibling moves up as it is."""
    if not contents:
        raise ValueError("a Merkle tree needs at least one leaf")
    levels = [[leaf_hash(content) for content in contents]]
    while len(levels[-1]) > 1:
        below = levels[-1]
        levels.append(
            [_parent(*below[i : i + 2]) if i + 1 < len(below) else below[i] for i in range(0, len(below), 2)]
        )
    return levels


def merkle_root(contents: Sequence[str]) -> str:
    """Root of the Merkle tree over texts, hex; ValueError if there are none."""
    return _levels(contents)[-1][0].hex()


def merkle_proof(contents: Sequence[str], index: int) -> list[list[str]]:
    """What shows that a text is leaf ``index``: siblings on the way up, ["left" or "right", hash]."""
    proof = []
    for level in _levels(contents)[:-1]:
        sibling = index ^ 1
        if sibling < len(level):
            proof.append(["left" if sibling < index else "right", level[sibling].hex()])
        index //= 2
    return proof


def belongs(content: str, proof: Sequence[Sequence[str]], root: str) -> bool:
    """Whether a proof leads from a text to a root."""
    node = leaf_hash(content)
    for side, sibling in proof:
        node = (
            _parent(bytes.fromhex(sibling), node) if side == "left" else _parent(node, bytes.fromhex(sibling))
        )
    return node.hex() == root


def sampler_source() -> str:
    """SHA-256 over the sampler's source files."""
    digest = hashlib.sha256()
    for path in sorted(Path(generalized.__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


@dataclass(frozen=True)
class Seal:
    """document: to be kept secret with the nonce until the reveal. public: to be published now."""

    document: dict[str, Any]
    nonce: str
    public: dict[str, str]


def seal(
    sampler: Sampler,
    plan: Mapping[str, Any],
    *,
    tuning: int = 25,
    test: int = 100,
    beacon: bool = False,
    master: str | None = None,
    nonce: str | None = None,
) -> Seal:
    """Fix an evaluation.

    Args:
        sampler: the hidden generalized environment.
        plan: what will be reported, in words and numbers: score, tests, level, ties.
        tuning, test: number of environments.
        beacon: whether the test environments also hang on a public value from after the freeze; the Merkle
            tree then holds the tuning environments only.
        master, nonce: 256-bit hex; drawn from the operating system where not given.

    Raises:
        SeedbedError: a number below 1, or a secret of another form.
    """
    if tuning < 1 or test < 1:
        raise SeedbedError(
            f"A sealed evaluation needs environments: got {tuning} for tuning, {test} for test."
        )
    master, nonce = master or draw_secret(), nonce or draw_secret()
    for name, value in (("master", master), ("nonce", nonce)):
        if not _HEX.fullmatch(value):
            raise SeedbedError(
                f"The {name} of a seal is 64 hexadecimal digits (lower case); draw_secret() gives one."
            )
    document = {
        "schema": SCHEMA,
        "sampler": sampler.parameters(),
        "sampler_source": sampler_source(),
        "master_seed": master,
        "tuning": tuning,
        "test": test,
        "beacon": beacon,
        "plan": dict(plan),
    }
    document["merkle_root"] = merkle_root(_leaves(document))
    public = {"commitment": commitment(nonce, document), "merkle_root": document["merkle_root"]}
    return Seal(document, nonce, public)


def sealed_sampler(document: Mapping[str, Any]) -> Sampler:
    """The sampler of a sealed document."""
    parameters = dict(document["sampler"])
    parameters["domains"] = tuple(parameters["domains"])
    parameters["variants"] = tuple(tuple(pair) for pair in parameters["variants"])
    if parameters["weights"] is not None:
        parameters["weights"] = tuple(parameters["weights"])
    return Sampler(**parameters)


def sealed_tuning_environments(document: Mapping[str, Any]) -> list[EnvironmentDocument]:
    """What designers are given."""
    sampler, master = sealed_sampler(document), document["master_seed"]
    return [sampler.sample(derived_generator(master, "tune", i)) for i in range(document["tuning"])]


def sealed_test_environments(
    document: Mapping[str, Any], beacon: str | None = None
) -> list[EnvironmentDocument]:
    """What agents are tested in.

    Raises:
        SeedbedError: the seal asks for a beacon and there is none, or the other way round.
    """
    if document["beacon"] != (beacon is not None):
        needs = "needs the beacon's value" if document["beacon"] else "takes no beacon"
        raise SeedbedError(f"This seal {needs} for its test environments.")
    master = document["master_seed"] if beacon is None else beacon_master(document["master_seed"], beacon)
    sampler = sealed_sampler(document)
    return [sampler.sample(derived_generator(master, "test", i)) for i in range(document["test"])]


def _leaves(document: Mapping[str, Any]) -> list[str]:
    """JSON of the environments under the seal: tuning, then test unless a beacon has its part in them."""
    test = [] if document["beacon"] else sealed_test_environments(document)
    return [environment.json for environment in [*sealed_tuning_environments(document), *test]]


def release_tuning(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tuning environments with their proofs: [{"environment": ..., "proof": ...}]."""
    leaves = _leaves(document)
    return [{"environment": leaves[i], "proof": merkle_proof(leaves, i)} for i in range(document["tuning"])]


def verify(
    public: Mapping[str, str],
    document: Mapping[str, Any],
    nonce: str,
    *,
    released: Sequence[Mapping[str, Any]] = (),
    tested: Sequence[EnvironmentDocument] = (),
    beacon: str | None = None,
) -> list[str]:
    """What is wrong with a revealed evaluation, in words; nothing if it holds.

    Args:
        public: what ``seal`` published.
        document, nonce: what is revealed.
        released: what designers were given, from ``release_tuning``.
        tested: the environments that agents were tested in, in their order.
        beacon: the public value, where the seal asks for one.
    """
    if not opens(public["commitment"], nonce, document):
        return ["The revealed document and nonce are not what was committed to."]
    findings = []
    if document["merkle_root"] != public["merkle_root"]:
        findings.append("The published Merkle root is not the sealed one.")
    if document["sampler_source"] != sampler_source():
        findings.append("The sampler's sources differ from the sealed ones; verify with the sealed version.")
    try:
        if merkle_root(_leaves(document)) != document["merkle_root"]:
            findings.append("The sampler does not give the environments under the Merkle root.")
        for number, item in enumerate(released):
            if not belongs(item["environment"], item["proof"], public["merkle_root"]):
                findings.append(f"Tuning environment {number} as released is not under the Merkle root.")
            read_document(item["environment"], f"tuning environment {number}")
        expected = sealed_test_environments(document, beacon) if tested else []
        if len(tested) not in (0, len(expected)):
            findings.append(f"{len(tested)} environments were tested, {len(expected)} were sealed.")
        findings += [
            f"Test environment {number} is not the sealed one."
            for number, (one, other) in enumerate(zip(tested, expected, strict=False))
            if one != other
        ]
    except (KeyError, TypeError, ValueError, SeedbedError) as error:
        findings.append(f"The sealed document cannot be replayed: {error}")
    return findings
