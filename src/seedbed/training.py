"""Training: lanes x algorithm -> policy, learning curve, training episodes, diagnostics."""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from tqdm import tqdm

from seedbed.artifacts import EPISODE_COLUMNS
from seedbed.environments.base import Dynamics
from seedbed.environments.lanes import ExternalEnvironment, LaneStep, make_lanes, succeeded
from seedbed.evaluation import evaluate
from seedbed.seeding import Purpose

if TYPE_CHECKING:
    import pandas as pd

    from seedbed.algorithms.base import Algorithm, Policy

DIAGNOSTIC_COLUMNS = {"seed": "int64", "steps": "int64", "name": "string", "value": "float64"}


@dataclass(frozen=True)
class CurvePlan:
    """When and on what a learning policy is evaluated.

    Args:
        every: environment steps per seed between two points; the first is at 0, the last at the budget.
        episodes: number of episodes per seed and point, or plain reset seeds; the same at every point.
        lanes: episodes side by side per seed.
        at: further points.
    """

    every: int
    episodes: int | Sequence[int]
    lanes: int
    at: Sequence[int] = ()


class CurveRecorder:
    """Watches one training run: see ``algorithms.base.Recorder``.

    Args:
        dynamics: a policy is evaluated in its own lanes over these.
        seeds: training seeds, [S].
        budget: environment steps per seed.
        plan: the learning curve's points; None for no curve.
        phase: context manager under which evaluations run, to keep their time apart.
        purpose: stream of the curve's episodes.
    """

    def __init__(
        self,
        dynamics: Dynamics | ExternalEnvironment,
        seeds: Sequence[int],
        budget: int,
        plan: CurvePlan | None,
        phase: Callable[[str], AbstractContextManager] = lambda name: nullcontext(),
        purpose: Purpose = Purpose.EVALUATION,
    ):
        self._dynamics, self._seeds, self._budget, self._plan = dynamics, np.array(seeds), budget, plan
        self._phase, self._purpose = phase, purpose
        self._next, self._taken = 0, 0
        self._points: list[pd.DataFrame] = []
        self._episodes: list[dict[str, np.ndarray]] = []
        self._diagnostics: list[tuple[int, str, np.ndarray]] = []
        self._total: np.ndarray | float = 0.0
        self.decisions = 0
        terminal = sys.stderr.isatty()
        self._progress = tqdm(
            total=budget,
            unit="step",
            unit_scale=True,
            mininterval=0.5 if terminal else 60,
            desc=f"{len(seeds)} seeds",
            disable=budget == 0,
        )

    def step(self, step: LaneStep) -> None:
        """Note one step of the training lanes."""
        lanes = step.reward.shape[1]
        self._taken += lanes
        self._progress.update(lanes)
        self._total = self._total + step.reward
        ended = step.terminated | step.truncated
        if not ended.any():
            return
        rows = np.nonzero(ended)
        spec = self._dynamics.spec
        columns = {
            "seed": self._seeds[rows[0]],
            "policy_mode": np.full(len(rows[0]), "training"),
            "episode": step.episode[rows],
            "return": self._total[rows],
            "length": step.t[rows],
            "terminated": step.terminated[rows],
            "truncated": step.truncated[rows],
            "success": succeeded(step, spec)[rows],
        }
        columns |= {f"final_{fact.name}": step.facts[fact.name][rows] for fact in spec.facts if fact.final}
        columns["steps"] = np.full(len(rows[0]), self._taken)
        self._episodes.append(columns)
        self._total = np.where(ended, 0.0, self._total)

    def due(self, steps: int) -> bool:
        """Whether a point of the curve has been reached."""
        return self._plan is not None and steps >= self._next

    def evaluate(self, steps: int, policy: "Policy") -> None:
        """Evaluate the policy in each of its modes on the curve's episodes."""
        plan = self._plan
        later = [point for point in plan.at if point > steps]
        following = min((steps // plan.every + 1) * plan.every, *later, self._budget)
        self._next = following if following > steps else math.inf
        with self._phase("evaluation"):
            for mode in policy.modes:
                run = evaluate(
                    policy.in_mode(mode), self._dynamics, self._purpose, plan.episodes, lanes=plan.lanes
                )
                self._points.append(run.episodes.assign(steps=steps))
                self.decisions += run.decisions

    def log(self, steps: int, **scalars: np.ndarray) -> None:
        """Note diagnostics [S]; ``model_calls`` counts predictions of a learned model from the start."""
        self._diagnostics += [(steps, name, np.asarray(value, float)) for name, value in scalars.items()]

    @property
    def model_calls(self) -> int:
        """Predictions of learned models while training, over all seeds, as last logged under that name."""
        counts = [values for _, name, values in self._diagnostics if name == "model_calls"]
        return int(counts[-1].sum()) if counts else 0

    def curve(self) -> "pd.DataFrame":
        """Episode table of all points, with the column ``steps``."""
        import pandas as pd

        if not self._points:
            return self._empty()
        table = pd.concat(self._points, ignore_index=True)
        return table.sort_values(["seed", "policy_mode", "steps", "episode"], ignore_index=True)

    def training_episodes(self) -> "pd.DataFrame":
        """Finished training episodes; ``steps`` says when each ended."""
        import pandas as pd

        self._progress.close()
        if not self._episodes:
            return self._empty()
        names = self._episodes[0]
        table = pd.DataFrame(
            {name: np.concatenate([part[name] for part in self._episodes]) for name in names}
        )
        return table.astype(EPISODE_COLUMNS).sort_values(["seed", "episode"], ignore_index=True)

    def _empty(self) -> "pd.DataFrame":
        import pandas as pd

        final = {f"final_{fact.name}": fact.dtype for fact in self._dynamics.spec.facts if fact.final}
        columns = EPISODE_COLUMNS | final | {"steps": "int64"}
        return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in columns.items()})

    def diagnostics(self) -> "pd.DataFrame":
        """Long table of ``DIAGNOSTIC_COLUMNS``."""
        import pandas as pd

        records = [
            (seed, steps, name, number)
            for steps, name, values in self._diagnostics
            for seed, number in zip(self._seeds, values, strict=True)
        ]
        table = pd.DataFrame(records, columns=list(DIAGNOSTIC_COLUMNS)).astype(DIAGNOSTIC_COLUMNS)
        return table.sort_values(["seed", "name", "steps"], ignore_index=True)


class TrainingRun(NamedTuple):
    """What a training run leaves."""

    policy: "Policy"
    curve: "pd.DataFrame"
    episodes: "pd.DataFrame"
    diagnostics: "pd.DataFrame"
    decisions: int
    """Decisions that policies took in evaluations for the curve, over all seeds and modes."""
    model_calls: int
    """Predictions of learned models while training, over all seeds; those for the curve not among them."""
    device: dict[str, Any] | None
    """Where networks were trained and what was switched there, see ``algorithms.devices.training_on``; None
    for an algorithm that has no such choice."""


@contextmanager
def _device_of(algorithm: "Algorithm") -> Iterator[dict[str, Any] | None]:
    """Switches for the device that an algorithm asks for; torch is not imported where it asks for none.

    A user's algorithm may mean something else by ``device``; then it is left to it.
    """
    if getattr(algorithm, "device", None) not in ("auto", "cpu", "cuda"):
        yield None
        return
    from seedbed.algorithms.devices import training_on

    with training_on(algorithm.device) as facts:
        yield facts


def train(
    algorithm: "Algorithm",
    dynamics: Dynamics | ExternalEnvironment,
    seeds: Sequence[int],
    budget: int,
    curve: CurvePlan | None,
    phase: Callable[[str], AbstractContextManager] = lambda name: nullcontext(),
    purpose: Purpose = Purpose.TRAINING,
    curve_purpose: Purpose = Purpose.EVALUATION,
) -> TrainingRun:
    """Train one algorithm on several seeds at once.

    The curve's evaluations change no bit of the training: they have lanes and streams of their own.

    Args:
        algorithm: hyper-parameters.
        dynamics: the environment.
        seeds: training seeds, [S].
        budget: environment steps per seed.
        curve: the learning curve's plan; None for no curve.
        phase: context manager under which evaluations run.
        purpose: stream of the training episodes.
        curve_purpose: stream of the curve's episodes.

    Raises:
        ValueError: as ``Algorithm.train``, or the algorithm asks for a device that is not there.
    """
    recorder = CurveRecorder(dynamics, seeds, budget, curve, phase, curve_purpose)
    lanes = make_lanes(dynamics, purpose, seeds, max(1, algorithm.lanes))
    with closing(lanes), _device_of(algorithm) as device:
        policy = algorithm.train(lanes, seeds, budget, recorder)
    return TrainingRun(
        policy,
        recorder.curve(),
        recorder.training_episodes(),
        recorder.diagnostics(),
        recorder.decisions,
        recorder.model_calls,
        device,
    )
