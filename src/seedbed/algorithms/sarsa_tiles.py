"""Trials of Sarsa(lambda) with tile coding, the agent of Whiteson, Tanner, Taylor and Stone (2011)."""

import math
from dataclasses import dataclass

import numpy as np

from seedbed.algorithms.sarsa_kernel import TRACES, Learner, run_trial
from seedbed.algorithms.tile_coding import LAYOUTS, Coder, make_coder
from seedbed.algorithms.tile_memory import Memory, allocate
from seedbed.environments.generalized.documents import EnvironmentDocument

FAMILIES = ("A", "B", "C", "A_without_transplant")
"""A: the range begins at the first observation, grows, and moves the weights along. B: a range that holds
what can be seen in any of the experiment's environments. C: the exact range of this environment.
A_without_transplant: A, but the weights stay in their cells."""
STEPS = 70_000
FIRST_SLOTS = 2**17


@dataclass(frozen=True)
class Configuration:
    """What is tuned. The other choices are SarsaTiles'.

    Args:
        alpha: share of an error that one step removes, in (0, 2] (divided among the active features).
        lambda_: decay of traces, in [0, 1].
        tilings: per group of variables.
        cells: per variable and tiling.
        layout: one of LAYOUTS.

    Raises:
        ValueError: a value outside its range.
    """

    alpha: float
    lambda_: float
    tilings: int
    cells: int
    layout: str

    def __post_init__(self):
        if not 0 < self.alpha <= 2:
            raise ValueError(f"alpha lies in (0, 2], got {self.alpha}")
        if not 0 <= self.lambda_ <= 1:
            raise ValueError(f"lambda lies in [0, 1], got {self.lambda_}")
        if self.tilings < 1 or self.cells < 1:
            raise ValueError(f"tilings and cells are at least 1, got {self.tilings} and {self.cells}")
        if self.layout not in LAYOUTS:
            raise ValueError(f"layout is one of {', '.join(LAYOUTS)}, got {self.layout!r}")


@dataclass(frozen=True)
class SarsaTiles:
    """What the paper leaves open, with RL-Library's choices as defaults. Initial weights are 0.

    Args:
        family: one of FAMILIES.
        growth: of families A; how far beyond a new extreme the range grows, in its new widths.
        epsilon: share of random actions.
        discount: gamma.
        trace: one of TRACES.
        cull: traces whose decay is below are dropped; 0 keeps all.

    Raises:
        ValueError: a value outside its range.
    """

    family: str = "A"
    growth: float = 0.25
    epsilon: float = 0.05
    discount: float = 1.0
    trace: str = "replacing"
    cull: float = 0.01

    def __post_init__(self):
        if self.family not in FAMILIES:
            raise ValueError(f"family is one of {', '.join(FAMILIES)}, got {self.family!r}")
        if self.trace not in TRACES:
            raise ValueError(f"trace is one of {', '.join(TRACES)}, got {self.trace!r}")
        if not 0 <= self.growth < math.inf:
            raise ValueError(f"growth is at least 0, got {self.growth}")
        for name in ("epsilon", "discount", "cull"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} lies in [0, 1], got {getattr(self, name)}")

    @property
    def adaptive(self) -> bool:
        """Whether the family finds its range by itself."""
        return self.family in ("A", "A_without_transplant")


@dataclass(frozen=True)
class TrialRecord:
    """What a trial left behind.

    Args:
        episodes: completed ones.
        total_reward: of all steps.
        completed_reward: of the completed episodes.
        growths: how often the range grew (transplants, where weights move along).
        diverged: whether an error was ever infinite or NaN.
        low, high: the final range, [variables].
    """

    episodes: int
    total_reward: float
    completed_reward: float
    growths: int
    diverged: bool
    low: np.ndarray
    high: np.ndarray

    @property
    def score(self) -> float:
        """Everything earned per completed episode, or in all if there is none: reading (a)."""
        return self.total_reward / max(1, self.episodes)

    @property
    def completed_score(self) -> float:
        """Mean return of the completed episodes, NaN if there is none: reading (b)."""
        return self.completed_reward / self.episodes if self.episodes else math.nan


def trace_powers(decay: float, cull: float, steps: int) -> np.ndarray:
    """decay ** age of the ages that live, oldest first: up to the first below ``cull``, at most ``steps``."""
    powers = [1.0]
    while len(powers) < steps and decay > 0:
        power = decay ** len(powers)
        if power < cull or power == 0:
            break
        powers.append(power)
    return np.array(powers[::-1])


class Workspace:
    """Memory that trials one after the other use again. Results do not depend on what it was used for."""

    def __init__(self):
        self._memory: Memory | None = None
        self._update = np.zeros(1)
        self._slots: dict[tuple[int, int], int] = {}

    def memory(self, coder: Coder, traces: bool) -> Memory:
        """Memory for a layout, with what an earlier trial left in it."""
        slots = self._slots.get((coder.tiles, coder.tilings), FIRST_SLOTS)
        slots = slots if coder.dense_tiles < coder.tiles else 2
        held, needed = self._memory, coder.dense_tiles + slots
        if held is None or held.touched.size < needed or (traces and held.traces.size < needed):
            self._memory = held = None  # give it back before taking more
            self._memory = held = allocate(needed, traces)
        return held.share(slots, traces)

    def enlarge(self, coder: Coder) -> None:
        """Twice the hash table for a layout, from now on."""
        key = (coder.tiles, coder.tilings)
        self._slots[key] = 2 * self._slots.get(key, FIRST_SLOTS)

    def update(self, steps: int) -> np.ndarray:
        """[steps + 1] working space."""
        if self._update.size < steps + 1:
            self._update = np.zeros(steps + 1)
        return self._update


def run(
    configuration: Configuration,
    environment: EnvironmentDocument,
    agent: SarsaTiles,
    workspace: Workspace,
    steps: int = STEPS,
    seed: int = 0,
    wide: np.ndarray | None = None,
    first_range: np.ndarray | None = None,
) -> TrialRecord:
    """One trial: learn from nothing in one environment.

    Args:
        configuration, agent: the agent.
        environment: where.
        workspace: memory to use.
        steps: environment steps, without a limit per episode.
        seed: of the trial; luck hangs on it and the environment alone.
        wide: family B's range [2, variables], see ``documents.covering_ranges``.
        first_range: range [2, variables] that families A begin with, instead of their first observation.

    Raises:
        ValueError: steps below 1, or a range is missing or not one.
    """
    if not 1 <= steps < 2**32:
        raise ValueError(f"steps lie in [1, 2**32), got {steps}")
    variables = len(environment.transforms)
    low, high = _range(environment, agent, wide, first_range)
    coder = make_coder(configuration.layout, variables, configuration.tilings, configuration.cells)
    learner = Learner(
        configuration.alpha / coder.features,
        agent.discount,
        agent.epsilon,
        TRACES.index(agent.trace),
        trace_powers(configuration.lambda_ * agent.discount, agent.cull, steps),
        environment.actions,
        agent.adaptive,
        agent.family == "A",
        float(agent.growth),
    )
    world, totals = environment.world(), np.zeros(5)
    while True:
        lower, upper = low.copy(), high.copy()
        memory = workspace.memory(coder, agent.trace == "accumulating")
        states, update = environment.trial_seeds(seed), workspace.update(steps)
        if run_trial(world, coder, learner, memory, update, lower, upper, states, steps, totals):
            episodes, total, completed, growths, diverged = totals.tolist()
            return TrialRecord(int(episodes), total, completed, int(growths), diverged > 0, lower, upper)
        del memory  # before a larger one is taken
        workspace.enlarge(coder)


def _range(environment, agent, wide, first_range) -> tuple[np.ndarray, np.ndarray]:
    """The range that tilings begin with."""
    variables = len(environment.transforms)
    if agent.family == "C":
        low, high = environment.ranges
    elif agent.adaptive and first_range is None:
        return np.full(variables, np.inf), np.full(variables, np.inf)
    else:
        given = first_range if agent.adaptive else wide
        if given is None:
            raise ValueError("family B needs the range `wide`; documents.covering_ranges gives it per domain")
        low, high = np.array(given, float)
    bounded = np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()
    if low.shape != (variables,) or not bounded:
        raise ValueError(
            f"a range of {environment.domain} is [2, {variables}], finite, low < high; got {low}, {high}"
        )
    return low, high
