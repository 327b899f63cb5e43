"""The policy of MBPO: an actor that needs no model to act, and the model it learned with."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from seedbed.algorithms.categorical_policy import CategoricalPolicy
from seedbed.algorithms.forecasts import Forecasting
from seedbed.algorithms.world_model import WorldModel
from seedbed.artifacts import read_arrays
from seedbed.environments.base import Dynamics


class MBPOPolicy(Forecasting, CategoricalPolicy):
    """Acts as a ``CategoricalPolicy``; ``world_model`` is kept to be held against what happens."""

    world_model: WorldModel | None = None

    def knowing(self, model: WorldModel | None) -> Self:
        """This policy with a model; returns itself."""
        self.world_model = model
        return self

    def in_mode(self, mode: str) -> Self:
        """See ``Policy.in_mode``."""
        return super().in_mode(mode).knowing(self.world_model)

    def of(self, seeds: Sequence[int]) -> Self:
        """See ``Policy.of``."""
        rows = [self.seeds.index(seed) for seed in seeds if seed in self.seeds]
        return super().of(seeds).knowing(self.world_model and self.world_model.of(rows))

    def contents(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """See ``NetworkPolicy.contents``; the model's beside them."""
        arrays, metadata = super().contents()
        if self.world_model is None:
            raise ValueError("There is no model to save yet.")
        more_arrays, more_metadata = self.world_model.contents(self.seeds)
        return arrays | more_arrays, metadata | more_metadata

    @classmethod
    def load(cls, path: str | Path, dynamics: Dynamics) -> Self:
        """Read what ``save`` wrote; raises as ``NetworkPolicy.load`` and ``WorldModel.read``."""
        policy = super().load(path, dynamics)
        return policy.knowing(WorldModel.read(path, *read_arrays(path), dynamics))
