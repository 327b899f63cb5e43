"""Generalized environments: distributions over environments, public (open) or over distributions (meta)."""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from seedbed.environments.generalized.documents import EnvironmentDocument
from seedbed.environments.generalized.domains import DOMAINS
from seedbed.environments.generalized.transforms import CURVES, Transform
from seedbed.seeding import Purpose, stream

TUNING, TEST = Purpose.TUNING, Purpose.TEST
"""Two seed streams of a generalized environment: what agents are tuned on, what they are tested on."""


@dataclass(frozen=True)
class Sampler:
    """G: independent draws of environments.

    Args:
        domains: drawn from with equal odds; more than one makes a union.
        noise_high: noise ~ U[0, noise_high].
        scale_low, scale_high: scale ~ log-uniform.
        shift_low, shift_high: shift ~ uniform.
        random_start: probability that episodes begin at random states.
        variants: per domain, where not its default.
        weights: odds of the domains where they are not equal.

    Raises:
        ValueError: a value outside its range.
    """

    domains: tuple[str, ...]
    noise_high: float = 0.5
    scale_low: float = 0.1
    scale_high: float = 10.0
    shift_low: float = -10.0
    shift_high: float = 10.0
    random_start: float = 0.5
    variants: tuple[tuple[str, str], ...] = ()
    weights: tuple[float, ...] | None = None

    def __post_init__(self):
        unknown = [name for name in self.domains if name not in DOMAINS]
        if unknown or not self.domains or len(set(self.domains)) < len(self.domains):
            raise ValueError(f"domains are different ones of {', '.join(DOMAINS)}, got {self.domains}")
        if not 0 <= self.noise_high < math.inf:
            raise ValueError(f"noise_high is at least 0, got {self.noise_high}")
        if not 0 < self.scale_low <= self.scale_high < math.inf:
            raise ValueError(f"scales need 0 < low <= high, got {self.scale_low} and {self.scale_high}")
        if not -math.inf < self.shift_low <= self.shift_high < math.inf:
            raise ValueError(f"shifts need low <= high, got {self.shift_low} and {self.shift_high}")
        if not 0 <= self.random_start <= 1:
            raise ValueError(f"random_start is a probability, got {self.random_start}")
        for domain, variant in self.variants:
            if domain not in DOMAINS or variant not in DOMAINS[domain].VARIANTS:
                raise ValueError(f"there is no variant {variant!r} of {domain!r}")
        if self.weights is not None and (
            len(self.weights) != len(self.domains)
            or min(self.weights) < 0
            or not math.isclose(sum(self.weights), 1, abs_tol=1e-9)
        ):
            raise ValueError(f"weights are one probability per domain, of sum 1, got {self.weights}")

    def sample(self, generator: np.random.Generator) -> EnvironmentDocument:
        """One environment."""
        odds = np.cumsum(self.weights or np.full(len(self.domains), 1 / len(self.domains)))
        number = min(int(np.searchsorted(odds, generator.random(), side="right")), len(self.domains) - 1)
        domain = DOMAINS[self.domains[number]]
        noise = float(generator.uniform(0, self.noise_high))
        random_start = bool(generator.random() < self.random_start)
        transforms = tuple(self._transform(generator) for _ in domain.LOW)
        variant = dict(self.variants).get(self.domains[number], domain.VARIANTS[0])
        return EnvironmentDocument(self.domains[number], variant, noise, random_start, transforms)

    def _transform(self, generator: np.random.Generator) -> Transform:
        curve = CURVES[int(generator.integers(len(CURVES)))]
        inverted = bool(generator.random() < 0.5)
        logarithm = generator.uniform(math.log(self.scale_low), math.log(self.scale_high))
        scale = min(self.scale_high, max(self.scale_low, math.exp(logarithm)))
        return Transform(curve, inverted, scale, float(generator.uniform(self.shift_low, self.shift_high)))

    def environments(self, purpose: Purpose, seed: int, number: int) -> list[EnvironmentDocument]:
        """The first ``number`` environments of a stream (TUNING or TEST); none hangs on how many there are.

        Raises:
            ValueError: as ``seeding.stream``.
        """
        return [self.sample(stream(purpose, seed, i)) for i in range(number)]

    def holds(self, environment: EnvironmentDocument) -> bool:
        """Whether this sampler can have drawn an environment."""
        variant = dict(self.variants).get(environment.domain, DOMAINS[environment.domain].VARIANTS[0])
        return (
            environment.domain in self.domains
            and environment.variant == variant
            and environment.noise <= self.noise_high
            and (self.random_start > 0 if environment.random_start else self.random_start < 1)
            and all(
                self.scale_low <= transform.scale <= self.scale_high
                and self.shift_low <= transform.shift <= self.shift_high
                for transform in environment.transforms
            )
        )

    def parameters(self) -> dict[str, Any]:
        """What a seal or a run record says of it."""
        return asdict(self)


def union() -> Sampler:
    """All three domains with odds 1/3."""
    return Sampler(tuple(DOMAINS))


@dataclass(frozen=True)
class MetaSampler:
    """H: draws of generalized environments, each a Sampler of its own.

    Args:
        base: what is not drawn.
        noise_ceiling_high: noise ceiling ~ U[0, this].
        spread_low, spread_high: transform spread s ~ log-uniform; scales in [1/s, s], shifts in [-s, s].
        mixed_domains: whether the odds of the base's domains are drawn from Dirichlet(1, ..., 1); otherwise
            one domain is drawn.
    """

    base: Sampler
    noise_ceiling_high: float = 0.5
    spread_low: float = 2.0
    spread_high: float = 20.0
    mixed_domains: bool = False

    def sample(self, generator: np.random.Generator) -> Sampler:
        """One generalized environment; its probability of random starts is uniform in [0, 1]."""
        spread = math.exp(generator.uniform(math.log(self.spread_low), math.log(self.spread_high)))
        noise, random_start = generator.uniform(0, self.noise_ceiling_high), generator.random()
        if self.mixed_domains:
            odds = generator.dirichlet(np.ones(len(self.base.domains)))
            domains, weights = self.base.domains, tuple(map(float, odds))
        else:
            domains, weights = (self.base.domains[int(generator.integers(len(self.base.domains)))],), None
        return replace(
            self.base,
            domains=domains,
            weights=weights,
            noise_high=float(noise),
            scale_low=1 / spread,
            scale_high=spread,
            shift_low=-spread,
            shift_high=spread,
            random_start=float(random_start),
        )

    def series(self, seed: int, trial: int, environments: int) -> list[EnvironmentDocument]:
        """The environments that an agent lives through in one meta-trial, from Purpose.TEST."""
        generator = stream(Purpose.TEST, seed, trial)
        sampler = self.sample(generator)
        return [sampler.sample(generator) for _ in range(environments)]
