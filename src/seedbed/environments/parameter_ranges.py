"""What a parameter of an environment may be, and how it is drawn."""

import math
from typing import Annotated, Any, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

Bounds = tuple[float, float]
Whole = Annotated[int, Field(ge=-(2**53), le=2**53)]


class ParameterRange(BaseModel):
    """The values a parameter may take, all ends included; exactly one of the four is given.

    Raises:
        ValueError: none or several are given, the lower end is not below the upper one, an end is not finite,
            a logarithm does not exist, or there is nothing to choose from.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    uniform: Bounds | None = Field(None, description="Lower and upper end, all between equally likely.")
    log_uniform: Bounds | None = Field(None, description="Both ends positive, the logarithm uniform.")
    integers: tuple[Whole, Whole] | None = Field(None, description="Whole numbers, both ends included.")
    choice: list[Any] | None = Field(None, min_length=1, description="These values, equally likely.")

    @model_validator(mode="after")
    def _possible(self) -> Self:
        given = self.model_dump(exclude_none=True)
        if len(given) != 1:
            raise ValueError(f"give one of uniform, log_uniform, integers and choice, not {len(given)}")
        if self.choice is not None:
            wrong = [v for v in self.choice if isinstance(v, float) and not math.isfinite(v)]
            if wrong:
                raise ValueError(f"{wrong[0]} is no value to choose")
            return self
        [(low, high)] = given.values()
        if not low < high:
            raise ValueError(f"the lower end {low} is not below the upper end {high}")
        if self.log_uniform is not None and low <= 0:
            raise ValueError(f"the lower end {low} has no logarithm; it must be positive")
        return self

    @property
    def numeric(self) -> bool:
        """Whether its values are numbers."""
        return self.choice is None or all(isinstance(value, int | float) for value in self.choice)

    def draw(self, generator: np.random.Generator) -> float | int:
        """A point: a number of the range, or the position of a choice in its list."""
        if self.choice is not None:
            return int(generator.integers(len(self.choice)))
        if self.integers is not None:
            return int(generator.integers(*self.integers, endpoint=True))
        if self.uniform is not None:
            return float(generator.uniform(*self.uniform))
        low, high = self.log_uniform
        return min(max(math.exp(generator.uniform(math.log(low), math.log(high))), low), high)

    def point(self, value: Any) -> float | int:
        """The point of a value.

        Raises:
            ValueError: the value is not one of the range.
        """
        if isinstance(value, np.generic):
            value = value.item()
        if self.choice is not None:
            if value in self.choice:
                return self.choice.index(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            [(low, high)] = self.model_dump(exclude_none=True).values()
            if low <= value <= high and (self.integers is None or isinstance(value, int)):
                return value if self.integers is not None else float(value)  # 1 and 1.0 are one environment
        raise ValueError(f"{value!r} is not in {self}")

    def value(self, point: float | int) -> Any:
        """The value at a point."""
        return point if self.choice is None else self.choice[point]

    def number(self, point: float | int) -> float:
        """What tables hold for a point: its value, or the position of a choice that is no number."""
        return float(self.value(point)) if self.numeric else float(point)

    def ends(self) -> list[float | int]:
        """Points at the ends of the range, or all choices."""
        if self.choice is not None:
            return list(range(len(self.choice)))
        return list(next(iter(self.model_dump(exclude_none=True).values())))

    def __str__(self) -> str:
        [(kind, values)] = self.model_dump(exclude_none=True).items()
        return f"{kind} {list(values)}"
