"""Agents see their own observations and nothing else: one that looks everywhere for the seal finds nothing.

The snooping agent is also run without isolation, where it must find all there is to find.
"""

import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from seedbed.artifacts import SeedbedError
from seedbed.environments.generalized.documents import canonical_environment
from seedbed.environments.generalized.domains import advance, begin_episode
from seedbed.environments.generalized.samplers import TEST, Sampler
from seedbed.generalized.external_trial import AgentFailure, run_external
from seedbed.generalized.isolation import WAYS, isolation

try:
    BEST = isolation()
except SeedbedError as error:
    pytest.skip(str(error), allow_module_level=True)
USABLE = [way for way in WAYS if os.geteuid() == 0 or way == "namespaces"]
SEALED = "5ea1" * 16
PACKAGES = str(Path(__file__).parents[2] / "src")

# A process 1 beside it is the shell of its own cage.
# Exits with the sum of what it found; plays on if that is nothing. It knows the seed by its first half.
SNOOPER = """
import json, os, re, socket

FILE, ENVIRONMENT, DESCRIPTOR, MEMORY, INHERITED, NETWORK, SIGNAL = 1, 2, 4, 8, 16, 32, 64


class Agent:
    def __init__(self, environment, observations, actions, half, folder, port):
        self.pattern = re.compile(half.encode() + b"[0-9a-f]{32}")
        found = sum(kind for kind, look in (
            (FILE, lambda: self.files(folder) or self.files(os.getcwd())),
            (ENVIRONMENT, lambda: self.each("environ", "cmdline")),
            (DESCRIPTOR, lambda: self.each(*(f"fd/{number}" for number in range(40)))),
            (MEMORY, lambda: any(self.memory(pid) for pid in self.others())),
            (INHERITED, lambda: len(self.fds("self")) > 5),
            (NETWORK, lambda: self.connects(port)),
            (SIGNAL, lambda: any(self.signals(pid) for pid in self.others() if pid > 1)),
        ) if look())
        if found:
            os._exit(found)

    def act(self, observation, reward, end):
        return 0

    def read(self, path):
        if not os.path.isfile(path):  # a pipe would wait
            return False
        try:
            with open(path, "rb") as file:
                return bool(self.pattern.search(file.read(1 << 22)))
        except OSError:
            return False

    def files(self, folder):
        names = [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names]
        return any(self.read(name) for name in names if "seal" in name or "json" in name)

    def others(self):
        # the nearest ancestors (their numbers may have wrapped), and everything where that is little
        found, pid = [], os.getppid()
        while pid > 1:
            found.append(pid)
            try:
                with open(f"/proc/{pid}/stat") as file:
                    pid = int(file.read().rpartition(")")[2].split()[1])
            except OSError:
                break
        everything = {int(name) for name in os.listdir("/proc") if name.isdigit()} - {os.getpid()}
        return found[:2] + (sorted(everything) if len(everything) < 5 else [])

    def fds(self, pid):
        try:
            return os.listdir(f"/proc/{pid}/fd")
        except OSError:
            return []

    def each(self, *names):
        return any(self.read(f"/proc/{pid}/{name}") for pid in self.others() for name in names)

    def memory(self, pid):
        try:
            with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
                for line in maps:
                    first, last = (int(end, 16) for end in line.split()[0].split("-"))
                    if " rw" in line and last - first < 1 << 28:
                        try:
                            memory.seek(first)
                            if self.pattern.search(memory.read(last - first)):
                                return True
                        except OSError:
                            pass
        except OSError:
            pass
        return False

    def connects(self, port):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        except OSError:
            return False

    def signals(self, pid):
        try:
            os.kill(pid, 0)
            return True
        except OSError:
            return False
"""
EVALUATOR = """
    import json, os, socket, sys
    from pathlib import Path
    from seedbed.environments.generalized.documents import canonical_environment
    from seedbed.generalized import isolation
    from seedbed.generalized.external_trial import AgentFailure, run_external

    folder, way = Path(sys.argv[1]), sys.argv[2]
    opened = open(folder / "sealed/seal.json")
    os.set_inheritable(opened.fileno(), True)
    held = opened.read()
    if way == "none":
        isolation._command = lambda way, folder, command: list(command)
        way = "namespaces"
    server = socket.create_server(("127.0.0.1", 0))
    path = folder / "agent/agent.json"
    content = json.loads(path.read_text())
    content["configuration"]["port"] = server.getsockname()[1]
    path.write_text(json.dumps(content))
    try:
        print(run_external(folder / "agent", canonical_environment("mountain_car"), "x", way, steps=5))
    except AgentFailure as failure:
        print(failure)
"""


@pytest.fixture
def snooped(tmp_path):
    """A function that lets the snooping agent look around; gives what it found, as its exit status."""
    (tmp_path / "sealed").mkdir(mode=0o700)
    (tmp_path / "sealed/seal.json").write_text(SEALED)
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent/snooping.py").write_text(SNOOPER)
    configuration = {"half": SEALED[:32], "folder": str(tmp_path)}
    content = {"agent": "snooping:Agent", "configuration": configuration}
    (tmp_path / "agent/agent.json").write_text(json.dumps(content))

    def snoop(way):
        command = [sys.executable, "-c", textwrap.dedent(EVALUATOR), str(tmp_path), way]
        run = subprocess.run(
            command, capture_output=True, text=True, env=os.environ | {"SEAL": SEALED, "PYTHONPATH": PACKAGES}
        )
        assert run.returncode == 0, run.stderr
        said = run.stdout.strip()
        return 0 if said.startswith("Totals(episodes=0, total_reward=-5.0") else int(said.rpartition(" ")[2])

    return snoop


def test_without_isolation_the_snooping_agent_finds_everything(snooped):
    assert snooped("none") == 1 + 2 + 4 + 8 + 32 + 64  # descriptors are not inherited even then


@pytest.mark.parametrize("way", USABLE)
def test_in_namespaces_a_snooping_agent_finds_nothing(snooped, way):
    assert snooped(way) == 0


def agent(folder, script):
    folder.mkdir()
    (folder / "agent.json").write_text(json.dumps({"command": ["sh", "-c", script]}))
    return folder


def test_what_passes_is_a_name_two_sizes_and_observations(tmp_path):
    """An agent that keeps what it was told tells it by its exit status: 7 if a line has other keys."""
    checker = """
import json


class Agent:
    def __init__(self, *told):
        assert told == ("opaque", 2, 3)

    def act(self, observation, reward, end):
        assert len(observation) == 2 and reward in (0.0, -1.0) and end in (True, False)
        return 1
"""
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent/checking.py").write_text(checker)
    (tmp_path / "agent/agent.json").write_text('{"agent": "checking:Agent"}')
    environment = canonical_environment("mountain_car")
    assert run_external(tmp_path / "agent", environment, "opaque", BEST, steps=20).total_reward == -20
    lines = r"""
read -r line
case $line in
  '{"environment": "opaque", "observations": 2, "actions": 3, "observation": ['*']}') ;; *) exit 7;;
esac
echo 0
while read -r line; do
  case $line in '{"observation": ['*'], "reward": '*', "end": false}') echo 0;; *) exit 7;; esac
done"""
    assert run_external(agent(tmp_path / "b", lines), environment, "opaque", BEST, steps=20).episodes == 0


def test_a_trial_is_that_of_the_kernels(tmp_path):
    """The same luck as in compiled trials: their transitions with the same streams, step by step."""
    pusher = agent(tmp_path / "pusher", "while read -r line; do echo 2; done")
    environments = Sampler(("puddle_world", "mountain_car"), noise_high=1.0).environments(TEST, 3, 4)
    for environment in environments:
        world, states, state = environment.world(), environment.trial_seeds(11), np.zeros(4)
        begin_episode(world, states, state)
        rewards, episodes = [], 0
        for _ in range(400):
            reward, terminated = advance(world, states, state, 2)
            rewards.append(reward)
            if terminated:
                episodes += 1
                begin_episode(world, states, state)
        totals = run_external(pusher, environment, "x", BEST, steps=400, seed=11)
        total = 0.0
        for reward in rewards:
            total += reward
        assert (totals.episodes, totals.total_reward) == (episodes, total)


@pytest.mark.parametrize(
    "script, seconds, says",
    [
        ("exit 3", 60, "ended with status 3"),
        ("read -r line; sleep 60", 0.5, "took more than 0.5 s"),
        ("while :; do echo 0; done", 60, None),
        ("while read -r line; do echo two; done", 60, "answered 'two"),
        ("head -c 100000000 /dev/zero", 60, "answered"),
    ],
)
def test_agents_that_misbehave_end_in_words(tmp_path, script, seconds, says):
    folder, environment = agent(tmp_path / "agent", script), canonical_environment("mountain_car")
    if says is None:  # answers ahead of the questions are moves made blindly
        assert run_external(folder, environment, "x", BEST, steps=50).total_reward == -50
        return
    with pytest.raises(AgentFailure, match=says):
        run_external(folder, environment, "x", BEST, steps=50, seconds=seconds)


def test_nothing_outlives_a_trial(tmp_path):
    """A process that an agent leaves behind ends with it; its folder is a copy that goes too."""
    if not BEST.startswith("namespaces"):
        pytest.skip("only process namespaces end what has left its session")
    marker = f"seedbed-left-{os.getpid()}"
    answer = "while read -r line; do echo 0; done"
    leave = f"touch mine; (setsid sh -c 'sleep 30; : {marker}' &) ; {answer}"
    stay = f"exec setsid sh -c '{answer}; sleep 30; : {marker}'"
    for name, script in (("leaving", leave), ("staying", stay)):
        folder = agent(tmp_path / name, script)
        run_external(folder, canonical_environment("mountain_car"), "x", BEST, steps=5)
        assert [path.name for path in folder.iterdir()] == ["agent.json"]
    time.sleep(0.2)
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    assert marker not in listed
