"""A policy that reads its action from a model's one output, whatever made the model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from seedbed.algorithms.model_files import Arrays, runner
from seedbed.algorithms.row_policy import PolicyError, RowPolicy
from seedbed.artifacts import ArtifactError, read_arrays, write_arrays
from seedbed.environments.base import Dynamics


class ModelPolicy(RowPolicy):
    """One model per seed, run on one observation at a time.

    "greedy" takes the output as action, or the first of the highest allowed logits or values; "sampled", for
    logits only, draws from their softmax over allowed actions.

    Args:
        seeds: training seeds of the rows, [S].
        dynamics: the environment it acts in.
        options: ``format`` ("onnx", "torchscript" or "sb3"), ``output`` ("action", "logits" or "q_values"),
            ``clip``; ``sb3`` and ``policy_kwargs`` for "sb3"; ``sha256`` per row of what was read from files.
        models: one per row, arrays by name; the same object where rows share a model.

    Raises:
        PolicyError: a model cannot be loaded or does not fit the environment.
    """

    def __init__(
        self, seeds: Sequence[int], dynamics: Dynamics, options: dict[str, Any], models: Sequence[Arrays]
    ):
        self.options, self.models = dict(options), list(models)
        self.modes = ("greedy", "sampled") if options["output"] == "logits" else ("greedy",)
        super().__init__(seeds, dynamics)
        if options["output"] != "action" and dynamics.spec.action_array is not None:
            raise PolicyError(f"Where actions are arrays, the output is the action, not {options['output']}.")
        built: dict[int, Any] = {}
        for row, model in enumerate(self.models):
            if id(model) not in built:
                try:
                    built[id(model)] = runner(options, dynamics.spec, model)
                except ValueError as error:
                    raise self._error(row, str(error)) from None
        self._runners = [built[id(model)] for model in self.models]

    @property
    def uniforms(self) -> int:
        """One for a sampled decision."""
        return int(self.mode == "sampled")

    def decide(self, row, observation, mask, uniforms) -> Any:
        """See ``RowPolicy.decide``.

        Raises:
            PolicyError: the model fails, or its output has another shape or is not a number.
        """
        output = self._output(row, observation)
        if self.options["output"] == "action":
            array = self.dynamics.spec.action_array
            return np.clip(output, array.low, array.high) if self.options["clip"] and array else output
        if mask is not None:
            output = np.where(mask, output, -np.inf)
        if self.mode == "greedy":
            return output.argmax()
        summed = _softmax(output).cumsum()
        chosen = np.searchsorted(summed, uniforms[0] * summed[-1], side="right")
        return min(chosen, np.nonzero(np.isfinite(output))[0][-1])

    def probabilities(self, observation, mask, memory, first) -> np.ndarray:
        """Softmax of the allowed logits in the mode "sampled"; see ``RowPolicy.probabilities``."""
        if self.mode == "greedy":
            return super().probabilities(observation, mask, memory, first)
        found = np.zeros((*first.shape, self.dynamics.spec.actions))
        for cell in np.ndindex(*first.shape):
            logits = self._output(cell[0], observation[cell].copy())
            found[cell] = _softmax(logits if mask is None else np.where(mask[cell], logits, -np.inf))
        return found

    def _output(self, row: int, observation: np.ndarray) -> np.ndarray:
        try:
            output = np.asarray(self._runners[row](np.ascontiguousarray(observation[None])))
        except Exception as error:
            reason = str(error).strip().splitlines()[-1] if str(error).strip() else ""
            raise self._error(row, f"its model failed: {type(error).__name__}: {reason}") from None
        spec = self.dynamics.spec
        shape = (1, *spec.action_shape) if self.options["output"] == "action" else (1, spec.actions)
        if output.shape != shape:
            raise self._error(
                row, f"the {self.options['output']} output has the shape {output.shape}; it should be {shape}"
            )
        if output.dtype.kind not in "iuf" or not np.isfinite(output).all():
            raise self._error(row, f"the {self.options['output']} output {output[0]} is not finite")
        return output[0]

    def save(self, path: str | Path) -> None:
        """Write one safetensors file with all there is to a model: ``seed-7/<name>``.

        Rows of the same model keep it once, under the first one's seed.
        """
        arrays, kept, first = {}, {}, {}
        for seed, model in zip(self.seeds, self.models, strict=True):
            if id(model) not in first:
                first[id(model)] = seed
                arrays |= {f"seed-{seed}/{name}": array for name, array in model.items()}
            kept[str(seed)] = first[id(model)]
        metadata = {
            "policy": type(self).__name__,
            "seeds": self.seeds,
            "models": kept,
            "options": self.options,
        }
        write_arrays(path, arrays, metadata)

    @classmethod
    def load(cls, path: str | Path, dynamics: Dynamics) -> Self:
        """Read what ``save`` wrote; the files it was made from are not needed.

        Raises:
            ArtifactError: the file holds another policy, or one that does not fit this environment.
        """
        arrays, metadata = read_arrays(path)
        if metadata.get("policy") != cls.__name__:
            raise ArtifactError(f"{path} holds the policy {metadata.get('policy')}, not {cls.__name__}.")
        models = {}
        for seed in set(metadata["models"].values()):
            prefix = f"seed-{seed}/"
            models[seed] = {
                name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)
            }
        rows = [models[metadata["models"][str(seed)]] for seed in metadata["seeds"]]
        try:
            return cls(metadata["seeds"], dynamics, metadata["options"], rows)
        except (PolicyError, KeyError) as error:
            raise ArtifactError(f"{path} cannot act in this environment: {error}") from None


def _softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities, float64; 0 where a logit is -inf."""
    powers = np.exp(logits.astype(np.float64) - logits.max())
    return powers / powers.sum()
