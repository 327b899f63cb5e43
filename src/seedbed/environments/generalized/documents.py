"""One generalized environment as a small JSON document that can be hashed, sealed and replayed."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from seedbed.artifacts import SeedbedError
from seedbed.environments.generalized.domains import DOMAINS, World
from seedbed.environments.generalized.transforms import CURVES, Transform, is_number
from seedbed.seeding import Purpose

SCHEMA = "seedbed.generalized_environment/1"


def canonical_json(value: Any) -> str:
    """The one way to write a value: keys sorted, no spaces, ASCII, floats in full; NaN is refused."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


@dataclass(frozen=True)
class EnvironmentDocument:
    """theta = (domain, noise, transforms, start) of Whiteson, Tanner, Taylor and Stone (2011).

    Args:
        domain: a name of DOMAINS.
        variant: one of the domain's VARIANTS.
        noise: N >= 0; each step's noise is uniform in [-N, N] times what one action does.
        random_start: whether episodes begin at random states.
        transforms: how each variable is seen.

    Raises:
        ValueError: a value that is none of these.
    """

    domain: str
    variant: str
    noise: float
    random_start: bool
    transforms: tuple[Transform, ...]

    def __post_init__(self):
        if self.domain not in DOMAINS:
            raise ValueError(f"domain is one of {', '.join(DOMAINS)}, got {self.domain!r}")
        domain = DOMAINS[self.domain]
        if self.variant not in domain.VARIANTS:
            raise ValueError(
                f"variant of {self.domain} is one of {', '.join(domain.VARIANTS)}, got {self.variant!r}"
            )
        if not (is_number(self.noise) and self.noise >= 0):
            raise ValueError(f"noise is a number of at least 0, got {self.noise!r}")
        if type(self.random_start) is not bool:
            raise ValueError(f"random_start is true or false, got {self.random_start!r}")
        if len(self.transforms) != len(domain.LOW):
            raise ValueError(
                f"{self.domain} has {len(domain.LOW)} variables, got {len(self.transforms)} transforms"
            )

    @cached_property
    def json(self) -> str:
        """Canonical JSON."""
        return canonical_json({"schema": SCHEMA, **asdict(self)})

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the canonical JSON: the environment's identity."""
        return hashlib.sha256(self.json.encode()).hexdigest()

    @property
    def actions(self) -> int:
        """Number of actions."""
        return DOMAINS[self.domain].ACTIONS

    @property
    def ranges(self) -> np.ndarray:
        """Smallest and largest value that can be seen of each variable, [2, variables]."""
        return np.array([transform.image for transform in self.transforms]).T

    def world(self) -> World:
        """The environment as compiled code takes it."""
        domain = DOMAINS[self.domain]
        low, high = np.array(domain.LOW), np.array(domain.HIGH)
        return World(
            list(DOMAINS).index(self.domain),
            domain.VARIANTS.index(self.variant),
            float(self.noise),
            self.random_start,
            (low + high) / 2,
            2 / (high - low),
            np.array([CURVES.index(transform.curve) for transform in self.transforms]),
            np.array([float(transform.slope) for transform in self.transforms]),
            np.array([float(transform.shift) for transform in self.transforms]),
        )

    def trial_seeds(self, seed: int = 0) -> np.ndarray:
        """Seeds [3] uint64 of a trial's streams: start states, transition noise, the agent's choices.

        They hang on the environment's hash and ``seed`` alone, so every agent meets the same luck, however
        the work is split. Environments' streams belong to Purpose.TRAINING, the agent's to EXPLORATION.
        """
        words = np.frombuffer(bytes.fromhex(self.hash), ">u4").tolist()
        owners = (Purpose.TRAINING, Purpose.TRAINING, Purpose.EXPLORATION)
        sequences = [
            np.random.SeedSequence(int(purpose), spawn_key=(seed, *words, stream))
            for stream, purpose in enumerate(owners)
        ]
        return np.concatenate([sequence.generate_state(1, np.uint64) for sequence in sequences])


def read_document(content: str | dict[str, Any], where: str = "environment document") -> EnvironmentDocument:
    """An environment from its JSON text or what that says.

    Raises:
        SeedbedError: it is no such document; the message begins with ``where``.
    """
    try:
        content = json.loads(content) if isinstance(content, str) else content
        named = {field.name for field in fields(EnvironmentDocument)}
        if not isinstance(content, dict) or set(content) != named | {"schema"}:
            raise ValueError(f"it has the keys {', '.join(sorted(named | {'schema'}))} and no others")
        if content["schema"] != SCHEMA:
            raise ValueError(f"schema is {SCHEMA!r}, got {content['schema']!r}")
        values = {name: content[name] for name in named}
        values["transforms"] = tuple(Transform(**transform) for transform in content["transforms"])
        return EnvironmentDocument(**values)
    except (ValueError, TypeError) as error:
        raise SeedbedError(f"{where}: {error}. Write documents with EnvironmentDocument.json.") from None


def canonical_environment(domain: str, variant: str | None = None) -> EnvironmentDocument:
    """The domain as it is usually tested: no noise, fixed start, each variable seen as it is.

    Raises:
        ValueError: there is no such domain or variant.
    """
    if domain not in DOMAINS:
        raise ValueError(f"domain is one of {', '.join(DOMAINS)}, got {domain!r}")
    module = DOMAINS[domain]
    transforms = tuple(
        Transform(scale=(high - low) / 2, shift=(high + low) / 2)
        for low, high in zip(module.LOW, module.HIGH, strict=True)
    )
    return EnvironmentDocument(domain, variant or module.VARIANTS[0], 0.0, False, transforms)


def covering_ranges(environments: Iterable[EnvironmentDocument]) -> dict[str, np.ndarray]:
    """Per domain, the smallest ranges [2, variables] that hold all that can be seen in any environment."""
    found: dict[str, np.ndarray] = {}
    for environment in environments:
        low, high = environment.ranges
        known = found.get(environment.domain, environment.ranges)
        found[environment.domain] = np.array([np.minimum(known[0], low), np.maximum(known[1], high)])
    return found
