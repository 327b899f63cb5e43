"""What a policy's model of its environment foretold, beside what happened: columns of evaluation tables.

Along the steps of the evaluation, with the actions that were taken: how well one step, and several at once,
were foretold. From the first observation of an episode: the episode to its end, the policy acting on what the
model imagines, several times over.
"""

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from seedbed.algorithms.world_model import Imagination, ModelShape, WorldModel
from seedbed.artifacts import SeedbedError
from seedbed.environments.base import Dynamics, Knowledge, Spec
from seedbed.environments.lanes import ExternalEnvironment, make_lanes
from seedbed.seeding import Purpose, stream

if TYPE_CHECKING:
    import pandas as pd

    from seedbed.algorithms.base import Memory, Policy

STEP_FORECASTS = (
    "forecast_error",
    "no_change_error",
    "forecast_disagreement",
    "forecast_event",
    "window_error",
    "window_no_change_error",
)
"""Columns of a step table. Squared errors are means over the entries that a model predicts, each in units of
the SD of its changes: of the mean prediction, and of predicting no change. Disagreement is the SD of the
models' means in the same units. ``forecast_event`` is the probability of the environment's outcome (a correct
answer), or of termination where it names none; NaN where the step has no such outcome. Those of windows stand
at the last step of each whole window, over the entries that a model predicts, less those whose change is the
same in all windows but for rounding (a clock's)."""
EPISODE_FORECASTS = ("forecast_return", "forecast_rank", "forecast_particles", "forecast_success")
"""Columns of an episode table, NaN beyond the first episodes: mean return of the imagined episodes, how many
of them are below the real return (ties count half), how many there are, and which share succeeded."""
ROUNDING = 1e-6
"""Share of an entry's largest value below which the SD of its changes is rounding."""
AT_ONCE = 4096
"""Steps that are foretold at once; changes memory, never a result."""


class Forecasting:
    """A policy with a model of its environment, ``world_model``, which can be held against what happens."""

    world_model: WorldModel | None

    def add_forecasts(self, environment, purpose, episode_set, episodes, steps, **plan):
        """See ``add_forecasts``; the tables as they are if there is no model yet."""
        if self.world_model is None:
            return episodes, steps
        return add_forecasts(self, environment, purpose, episode_set, episodes, steps, **plan)


class Replay(NamedTuple):
    """The steps of one seed's episodes in the order of the step table, M steps."""

    observation: np.ndarray
    """[M, d] float32, before the step"""
    following: np.ndarray
    """[M, d] float32, after it and before any reset"""
    action: np.ndarray
    """[M] int64"""
    t: np.ndarray
    """[M] int64, from 1"""
    length: np.ndarray
    """[E] int64, steps of each episode"""
    first: np.ndarray
    """[E, d] float32, first observations"""
    mask: np.ndarray | None
    """[E, actions] bool, for these"""


def add_forecasts(
    policy: "Policy",
    environment: Dynamics | ExternalEnvironment,
    purpose: Purpose,
    episode_set: int | Sequence[int],
    episodes: "pd.DataFrame",
    steps: "pd.DataFrame",
    *,
    horizon: int,
    imagined: int,
    particles: int,
) -> tuple["pd.DataFrame", "pd.DataFrame"]:
    """Episode and step table of an evaluation with what the policy's ``world_model`` foretold.

    Args:
        policy: in the mode of the tables.
        environment, purpose, episode_set: as in the evaluation, whose episodes are played once more.
        episodes, steps: its tables, one policy mode.
        horizon: steps of a window.
        imagined: so many first episodes are imagined to their end, for each seed.
        particles: imagined episodes for each; rounded up to a multiple of the models.

    Raises:
        SeedbedError: an episode played once more is another one: the environment does not heed its seeds.
    """
    import pandas as pd

    knowledge = getattr(environment, "knowledge", None)
    told = {"episodes": [], "steps": []}
    for row, seed in enumerate(policy.seeds):
        own, taken = episodes[episodes["seed"] == seed], steps[steps["seed"] == seed]
        replay = replayed(environment, purpose, seed, episode_set, taken["action"].to_numpy(), own)
        model = policy.world_model
        columns = _step_forecasts(model, row, environment.spec, knowledge, replay, horizon)
        happens = _outcome(taken, knowledge)
        columns["forecast_event"] = np.where(np.isnan(happens), np.nan, columns["forecast_event"])
        told["steps"].append(taken.assign(**columns))
        mask = None if replay.mask is None else replay.mask[:imagined]
        first = replay.first[:imagined]
        dreams = imagine_episodes(policy, row, environment.spec, knowledge, first, mask, particles)
        told["episodes"].append(own.assign(**_episode_forecasts(dreams, own["return"].to_numpy())))
    return pd.concat(told["episodes"]), pd.concat(told["steps"])


def _outcome(steps: "pd.DataFrame", knowledge: Knowledge | None) -> np.ndarray:
    """What the model's event probability is about, [M]: 0 or 1, NaN where a step has no such outcome."""
    if knowledge is None:
        return steps["terminated"].to_numpy(float)
    happened = steps[knowledge.outcome].to_numpy(float)
    return np.where(happened < 0, np.nan, happened)


def replayed(
    environment: Dynamics | ExternalEnvironment,
    purpose: Purpose,
    seed: int,
    episode_set: int | Sequence[int],
    actions: np.ndarray,
    episodes: "pd.DataFrame",
) -> Replay:
    """Play one seed's episodes again by the actions taken, all side by side, and keep what was observed.

    Args:
        actions: [M] in the order of the step table.
        episodes: the seed's episode table, one row per episode of the set.
    """
    length, returns = episodes["length"].to_numpy(), episodes["return"].to_numpy()
    begin = np.concatenate([[0], np.cumsum(length)[:-1]])
    with closing(make_lanes(environment, purpose, [seed], len(length), episode_set)) as lanes:
        width = int(np.prod(lanes.spec.observation_shape))
        first = lanes.observation[0].reshape(len(length), width).copy()
        mask = None if lanes.mask is None else lanes.mask[0].copy()
        observation, following = np.zeros((2, len(actions), width), np.float32)
        total = np.zeros(len(length))
        for t in range(int(length.max())):
            alive = np.flatnonzero(t < length)
            rows = begin[alive] + t
            action = np.zeros((1, len(length)), np.int64)
            action[0, alive] = actions[rows]
            observation[rows] = lanes.observation[0, alive].reshape(len(alive), width)
            step = lanes.step(action)
            following[rows] = step.final_observation[0, alive].reshape(len(alive), width)
            total[alive] += step.reward[0, alive]
            ended = (step.terminated | step.truncated)[0, alive]
            if not np.array_equal(ended, t + 1 == length[alive]):
                raise SeedbedError(f"An episode of seed {seed} ends elsewhere when it is played once more.")
    if not np.array_equal(total, returns):
        raise SeedbedError(f"Episodes of seed {seed} have other rewards when they are played once more.")
    t = np.concatenate([np.arange(1, n + 1) for n in length])
    return Replay(observation, following, actions, t, length, first, mask)


def _step_forecasts(
    model: WorldModel, row: int, spec: Spec, knowledge: Knowledge | None, replay: Replay, horizon: int
) -> dict[str, np.ndarray]:
    """``STEP_FORECASTS`` [M] of one seed."""
    predictor, shape = model.predictor(row), model.shape
    size = model.scales["size"][row, : shape.changes]
    columns = {name: np.full(len(replay.action), np.nan) for name in STEP_FORECASTS}
    elites = model.parameters.shape[1]
    for start in range(0, len(replay.action), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        action = replay.action[part]
        entries = shape.entries[action]
        seen = np.take_along_axis(replay.observation[part], entries, 1)
        mean, _, event = predictor(np.stack([seen] * elites), np.stack([action] * elites))
        mean = mean[..., : shape.changes] / size
        after = np.take_along_axis(replay.following[part], entries, 1)
        change = (after - seen)[:, : shape.changes] / size
        columns["forecast_error"][part] = np.square(mean.mean(0) - change).mean(-1)
        columns["no_change_error"][part] = np.square(change).mean(-1)
        columns["forecast_disagreement"][part] = mean.std(0, ddof=1).mean(-1) if elites > 1 else np.nan
        columns["forecast_event"][part] = event.mean(0)
    imagination = Imagination(predictor, shape, spec, knowledge)
    ends, error, no_change = _window_errors(imagination, shape, elites, replay, horizon)
    columns["window_error"][ends], columns["window_no_change_error"][ends] = error, no_change
    return columns


def _window_errors(
    imagination: Imagination, shape: ModelShape, elites: int, replay: Replay, horizon: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Last rows of whole windows [W], and errors there of the models' mean and of no change, [W]."""
    remaining = np.repeat(replay.length, replay.length) - replay.t + 1
    starts = np.flatnonzero(((replay.t - 1) % horizon == 0) & (remaining >= horizon))
    ends = starts + horizon - 1
    if not starts.size:
        return ends, np.empty(0), np.empty(0)
    x = np.stack([replay.observation[starts]] * elites)
    for step in range(horizon):
        action = np.stack([replay.action[starts + step]] * elites)
        x, _, _ = imagination.step(x, action, np.zeros(1, np.float32))
    after = replay.following[ends]
    learned = np.unique(shape.entries[:, : shape.changes])
    change = (after - replay.observation[starts])[:, learned]
    spread = change.std(0)
    moving = spread > ROUNDING * np.abs(after[:, learned]).max(0)
    error = (x.mean(0) - after)[:, learned]
    return ends, *(np.square(part[:, moving] / spread[moving]).mean(-1) for part in (error, change))


class Imagined(NamedTuple):
    """Imagined episodes, [E, P]."""

    total: np.ndarray
    """undiscounted return, float64"""
    success: np.ndarray | None
    """whether it ended in success; None where models cannot tell"""


def imagine_episodes(
    policy: "Policy",
    row: int,
    spec: Spec,
    knowledge: Knowledge | None,
    first: np.ndarray,
    mask: np.ndarray | None,
    particles: int,
) -> Imagined:
    """Episodes as one seed's models imagine them, from the first observations of real ones.

    Each imagined episode follows one model to its end or the step limit; the policy acts in its mode.

    Args:
        policy: stacked over seeds; ``row`` is the one that acts.
        first: [E, d] float32, first observations.
        mask: [E, actions] bool, for these; None where all actions are allowed.
        particles: imagined episodes for each; rounded up to a multiple of the models.
    """
    seed, model = policy.seeds[row], policy.world_model
    alone = policy.of([seed]) if len(policy.seeds) > 1 else policy
    models = model.parameters.shape[1]
    starts, particles = len(first), -(-particles // models) * models
    lanes = starts * particles  # [models, particles of each model, starts] in one axis
    imagination = Imagination(model.predictor(row), model.shape, spec, knowledge)
    draws = stream(Purpose.FORECAST, seed)
    x, mask = np.tile(first, (particles, 1)), None if mask is None else np.tile(mask, (particles, 1))
    total, success = np.zeros(lanes), np.zeros(lanes, bool)
    alive, memory = np.arange(lanes), None
    for t in range(spec.horizon):
        uniforms, ends = draws.random((lanes, alone.uniforms)), draws.random(lanes)
        noise = draws.standard_normal((lanes, model.shape.changes), np.float32)
        seen = x[alive].reshape(1, len(alive), *spec.observation_shape)
        allowed = None if mask is None else mask[alive][None]
        action, memory = alone.act(
            seen, allowed, uniforms[alive][None], memory, np.full((1, len(alive)), t == 0)
        )
        taken = np.zeros(lanes, np.int64)
        taken[alive] = action[0]
        by_model = (part.reshape(models, -1, *part.shape[1:]) for part in (x, taken, noise))
        told = imagination.step(*by_model)
        following, reward, terminated = (part.reshape(lanes, *part.shape[2:]) for part in told)
        total[alive] += reward[alive]
        x = following
        ended = (ends < terminated)[alive]
        if knowledge is not None:
            success[alive] = ended & knowledge.succeeded(x[alive])
            mask = imagination.action_mask(x) if imagination.masked else None
        memory = _kept(memory, ~ended)
        alive = alive[~ended]
        if not alive.size:
            break
    shape = (particles, starts)
    return Imagined(total.reshape(shape).T, None if knowledge is None else success.reshape(shape).T)


def _kept(memory: "Memory", kept: np.ndarray) -> "Memory":
    """The memory of some lanes of one seed."""
    if memory is None:
        return None
    if isinstance(memory, tuple):
        return tuple(_kept(part, kept) for part in memory)
    return memory[:, kept]


def _episode_forecasts(imagined: Imagined, returns: np.ndarray) -> dict[str, np.ndarray]:
    """``EPISODE_FORECASTS`` [E] of one seed."""
    columns = {name: np.full(len(returns), np.nan) for name in EPISODE_FORECASTS}
    known, particles = imagined.total.shape
    below = (imagined.total < returns[:known, None]).sum(1)
    ties = (imagined.total == returns[:known, None]).sum(1)
    columns["forecast_return"][:known] = imagined.total.mean(1)
    columns["forecast_rank"][:known] = below + ties / 2
    columns["forecast_particles"][:known] = particles
    if imagined.success is not None:
        columns["forecast_success"][:known] = imagined.success.mean(1)
    return columns
