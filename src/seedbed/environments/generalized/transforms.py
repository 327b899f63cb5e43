"""Invertible transforms of one observed variable: range to [-1, 1], curve, flip, scale, shift."""

import math
from dataclasses import dataclass
from typing import Any

from seedbed.compiled import compiled

PI = math.pi
CURVES = ("none", "sin", "asin", "tan")
"""Increasing bijections of [-1, 1]: z, sin(pi z / 2), (2 / pi) asin z, tan(pi z / 4)."""


@compiled(inline=True)
def bent(z, curve):
    """The curve (an index of CURVES) at z in [-1, 1]."""
    if curve == 0:
        return z
    if curve == 1:
        return math.sin(0.5 * PI * z)
    if curve == 2:
        return math.asin(min(1.0, max(-1.0, z))) * (2.0 / PI)
    return math.tan(0.25 * PI * z)


@compiled(inline=True)
def unbent(y, curve):
    """The inverse of ``bent``."""
    if curve == 0:
        return y
    if curve == 1:
        return math.asin(min(1.0, max(-1.0, y))) * (2.0 / PI)
    if curve == 2:
        return math.sin(0.5 * PI * y)
    return math.atan(y) * (4.0 / PI)


@compiled(inline=True)
def observed(value, centre, per_half_width, curve, slope, shift):
    """What is seen of a variable: ``slope * curve((value - centre) * per_half_width) + shift``."""
    return slope * bent((value - centre) * per_half_width, curve) + shift


@dataclass(frozen=True)
class Transform:
    """How one variable is seen. A bijection, so that what is seen is still the state.

    Args:
        curve: one of CURVES, applied to the variable's range mapped to [-1, 1].
        inverted: whether the sign is flipped.
        scale: positive factor.
        shift: what is added at last.

    Raises:
        ValueError: a value that is none of these.
    """

    curve: str = "none"
    inverted: bool = False
    scale: float = 1.0
    shift: float = 0.0

    def __post_init__(self):
        if self.curve not in CURVES:
            raise ValueError(f"curve is one of {', '.join(CURVES)}, got {self.curve!r}")
        if type(self.inverted) is not bool:
            raise ValueError(f"inverted is true or false, got {self.inverted!r}")
        if not (is_number(self.scale) and self.scale > 0):
            raise ValueError(f"scale is a positive number, got {self.scale!r}")
        if not is_number(self.shift):
            raise ValueError(f"shift is a number, got {self.shift!r}")

    @property
    def slope(self) -> float:
        """Scale with the flip's sign."""
        return -self.scale if self.inverted else self.scale

    @property
    def image(self) -> tuple[float, float]:
        """Smallest and largest value that can be seen."""
        return self.shift - self.scale, self.shift + self.scale

    def apply(self, value: float, low: float, high: float) -> float:
        """What is seen of ``value``, whose range is [low, high]."""
        return observed(
            value, (low + high) / 2, 2 / (high - low), CURVES.index(self.curve), self.slope, self.shift
        )

    def invert(self, seen: float, low: float, high: float) -> float:
        """The value behind what is seen, up to rounding.

        Where a curve is flat (sin at the ends of the range), a rounding error of e in what is seen is one of
        the order of sqrt(e) in the value.
        """
        z = unbent((seen - self.shift) / self.slope, CURVES.index(self.curve))
        return (low + high) / 2 + z * (high - low) / 2


def is_number(value: Any) -> bool:
    """Whether a value is a finite int or float, and no bool."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
