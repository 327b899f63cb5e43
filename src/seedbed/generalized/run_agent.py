"""Plays an agent class over two pipes; an agent's process knows nothing else of Seedbed.

Lines of JSON come in, numbers of actions go out.
The agent is made once per environment, ``Agent(environment, observations, actions, **configuration)``, and
asked once per step, ``act(observation, reward, end) -> action``.
"""

import importlib
import json
import os
import sys


def main(name: str) -> None:
    """Play until the evaluator closes its end."""
    actions = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what the agent prints is no action
    sys.path.insert(0, os.getcwd())
    module, _, attribute = name.partition(":")
    with open("agent.json", encoding="utf-8") as file:
        configuration = json.load(file).get("configuration", {})
    first = json.loads(sys.stdin.readline())
    agent = getattr(importlib.import_module(module), attribute)(
        first["environment"], first["observations"], first["actions"], **configuration
    )
    actions.write(f"{int(agent.act(first['observation'], 0.0, True))}\n")
    for line in sys.stdin:
        step = json.loads(line)
        actions.write(f"{int(agent.act(step['observation'], step['reward'], step['end']))}\n")


if __name__ == "__main__":
    main(sys.argv[1])
