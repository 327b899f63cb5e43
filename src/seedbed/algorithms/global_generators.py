"""Python's, NumPy's and PyTorch's global generators, set aside: one set of states per training seed.

Agents from elsewhere draw from them. So that a seed's bits depend on no other seed and no evaluation, each
seed finds the states that it left, and the process gets its own back.
"""

import random
import sys
from typing import Any

import numpy as np

from seedbed.seeding import Purpose, stream


class GlobalGenerators:
    """The global generators as one seed has them, within ``with``.

    Args:
        seed: training seed; the generators start from its stream INITIALISATION.
    """

    def __init__(self, seed: int):
        self.number = int(stream(Purpose.INITIALISATION, seed).integers(2**32))
        self._inside: dict[str, Any] = {}
        self._outside: dict[str, Any] = {}

    def __enter__(self) -> "GlobalGenerators":
        self._outside = _states()
        for name in self._outside:
            if name in self._inside:
                _set(name, self._inside[name])
            else:
                _begin(name, self.number)
        return self

    def __exit__(self, *error: object) -> None:
        self._inside = _states()
        for name, state in self._outside.items():
            _set(name, state)


def _states() -> dict[str, Any]:
    states = {"random": random.getstate(), "numpy": np.random.get_state(legacy=False)}  # noqa: NPY002
    torch = sys.modules.get("torch")
    return states | ({"torch": torch.get_rng_state()} if torch else {})


def _set(name: str, state: Any) -> None:
    if name == "random":
        random.setstate(state)
    elif name == "numpy":
        np.random.set_state(state)  # noqa: NPY002
    else:
        sys.modules["torch"].set_rng_state(state)


def _begin(name: str, number: int) -> None:
    if name == "random":
        random.seed(number)
    elif name == "numpy":
        np.random.seed(number)  # noqa: NPY002
    else:
        sys.modules["torch"].default_generator.manual_seed(number)
