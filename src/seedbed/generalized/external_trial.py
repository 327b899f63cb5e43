"""A trial of an agent in another process: only its own observations, rewards and ends pass.

The evaluator writes lines of JSON. The first has ``environment`` (a name that says nothing), ``observations``
(how many numbers one is), ``actions`` (how many there are) and ``observation``; the others have
``observation``, ``reward`` and ``end``: whether that reward ended an episode, so that the observation begins
the next one. To each, the agent answers with the number of an action on a line.
"""

import json
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from seedbed.artifacts import SeedbedError, read_json
from seedbed.compiled import compiled
from seedbed.environments.generalized.documents import EnvironmentDocument
from seedbed.environments.generalized.domains import advance, begin_episode, see
from seedbed.generalized import run_agent
from seedbed.generalized.isolation import isolated, kill

_LONGEST = 32
"""bytes of an answer"""


class AgentFailure(Exception):
    """An agent broke off, or what it answered is no action."""


class Totals(NamedTuple):
    """What a trial came to."""

    episodes: int
    total_reward: float
    completed_reward: float

    @property
    def score(self) -> float:
        """Everything earned per completed episode, or in all if there is none."""
        return self.total_reward / max(1, self.episodes)


@compiled
def _begin(world, states, state, observation):
    """The first episode's start; writes ``observation``."""
    begin_episode(world, states, state)
    see(world, state, observation)


@compiled
def _step(world, states, state, observation, action):
    """One step, and the next episode's start where it ends one; returns reward, terminated."""
    reward, terminated = advance(world, states, state, action)
    if terminated:
        begin_episode(world, states, state)
    see(world, state, observation)
    return reward, terminated


def agent_command(folder: Path) -> list[str]:
    """How an agent is started, from the ``agent.json`` of its folder.

    It holds ``agent`` ("module:Class") or ``command`` (a list of words), and what is the agent's own
    business, such as ``configuration``.

    Raises:
        SeedbedError: it holds neither or both.
    """
    path = folder / "agent.json"
    content = read_json(path)
    if not isinstance(content, Mapping) or ("agent" in content) == ("command" in content):
        raise SeedbedError(f"{path}: needs either agent: module:Class, or command: a list of words.")
    if "command" in content:
        command = content["command"]
        if not isinstance(command, list) or not command or not all(isinstance(word, str) for word in command):
            raise SeedbedError(f"{path}: command is a list of words, got {command!r}.")
        return command
    name = content["agent"]
    if not isinstance(name, str) or not all(part for part in [*name.partition(":")]):
        raise SeedbedError(f"{path}: agent is module:Class, got {name!r}.")
    return [sys.executable, "-c", Path(run_agent.__file__).read_text(encoding="utf-8"), name]


def run_external(
    folder: Path,
    environment: EnvironmentDocument,
    name: str,
    way: str,
    *,
    steps: int,
    seed: int = 0,
    seconds: float = 3600,
    errors: Any = None,
) -> Totals:
    """One trial of the agent in a folder, from nothing.

    Args:
        folder: the agent's sources with ``agent.json``; a copy of it is all the agent has.
        environment: where.
        name: what the agent is told of it.
        way: of isolation, see there.
        steps: of the trial.
        seed: of the trial; its luck is that of ``sarsa_tiles.run``.
        seconds: after which the agent is too slow.
        errors: file for its standard error; nowhere if None.

    Raises:
        AgentFailure: why there is no result.
        SeedbedError: as ``agent_command``.
    """
    world, states = environment.world(), environment.trial_seeds(seed)
    actions, variables = environment.actions, len(environment.transforms)
    state, observation = np.zeros(4), np.zeros(variables)
    episodes, total, completed, returned = 0, 0.0, 0.0, 0.0
    _begin(world, states, state, observation)
    message = {"environment": name, "observations": variables, "actions": actions}
    line = json.dumps(message | {"observation": observation.tolist()}) + "\n"
    options = {} if errors is None else {"errors": errors}
    late = threading.Event()
    with isolated(folder, agent_command(folder), way, **options) as process:
        watch = threading.Timer(seconds, lambda: (late.set(), kill(process)))
        watch.daemon = True
        watch.start()
        try:
            write, flush, read = process.stdin.write, process.stdin.flush, process.stdout.readline
            for _ in range(steps):
                write(line.encode())
                flush()
                action = _action(read(_LONGEST), actions)
                reward, terminated = _step(world, states, state, observation, action)
                total += reward
                returned += reward
                if terminated:
                    episodes, completed, returned = episodes + 1, completed + returned, 0.0
                end = "true" if terminated else "false"
                line = f'{{"observation": {observation.tolist()}, "reward": {reward!r}, "end": {end}}}\n'
        except (BrokenPipeError, _Closed):
            raise AgentFailure(
                f"took more than {seconds:g} s" if late.is_set() else _ended(process)
            ) from None
        finally:
            watch.cancel()
    return Totals(episodes, total, completed)


class _Closed(Exception):
    """The agent closed its end."""


def _action(answer: bytes, actions: int) -> int:
    if not answer:
        raise _Closed
    if not answer.strip().isdigit() or not int(answer) < actions:
        raise AgentFailure(f"answered {answer.decode(errors='replace')!r}, not an action below {actions}")
    return int(answer)


def _ended(process) -> str:
    """How a process ended that closed its pipes."""
    try:
        return f"ended with status {process.wait(5)}"
    except Exception:
        return "closed its pipe"
