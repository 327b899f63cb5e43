"""Checks that an episode depends on its seed and actions alone: not on chance, order, lanes or process."""

import json
import os
import subprocess
import sys
from contextlib import closing
from dataclasses import replace

import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from seedbed.auditing.subject import (
    PURPOSE,
    Finding,
    Subject,
    WatchfulRandomPolicy,
    difference,
    digest,
    draw_action,
    global_generators,
    global_state,
    play,
)
from seedbed.environments.gymnasium_spaces import Observations
from seedbed.environments.lanes import make_lanes, succeeded
from seedbed.evaluation import evaluate

LANES = (2, 3, 8)
SEED_SAMPLE = 32
"""Pairs of seeds that are compared for their upper bits."""
SEED_STEPS = 50
"""How far such an episode is played."""
NAIVE_LANES = 16
NAIVE_RUNS = 4


def equal_seeds(subject: Subject) -> Finding:
    """Whether equal seeds and actions give equal episodes, the global generators being equal too."""
    with global_generators(1):
        where = difference(subject.reference, subject.run(1))
    if where:
        remedy = "Draw from self.np_random alone, after super().reset(seed=seed) in reset; read no clock."
        return Finding("equal seeds", False, f"the same episodes twice are not equal, {where}", remedy)
    return Finding(
        "equal seeds", True, f"{len(subject.reference.steps)} steps are the same bits when played again"
    )


def distinct_seeds(subject: Subject) -> Finding:
    """Whether seeds that differ in their upper bits only give different episodes too."""
    name = "distinct seeds"
    generator = np.random.default_rng(0)
    low = generator.permutation(2**16)[:SEED_SAMPLE]
    bits = min(subject.single.seed_bits, 32)
    high = low + (generator.integers(1, max(2, 2 ** (bits - 16)), SEED_SAMPLE) << 16)
    with closing(subject.single.make()) as env:

        def seen(seed: int) -> tuple:
            return tuple(play(env, int(seed), 0, SEED_STEPS).fingerprint())

        episodes = [seen(seed) for seed in low]
        upper = [seen(seed) for seed in high] if bits > 16 else []
    count, distinct = len(episodes + upper), len({*episodes, *upper})
    if distinct == 1:
        return Finding(
            name,
            None,
            f"all of {count} seeds give the same first {SEED_STEPS} steps under the same actions: the "
            "environment is deterministic, and a deterministic policy has one episode in it (n_eff = 1)",
        )
    alike = np.mean([one == other for i, one in enumerate(episodes) for other in episodes[:i]])
    if upper == episodes and alike**SEED_SAMPLE < 1e-6:
        detail = (
            f"seeds that differ only above their lowest 16 bits give the same episode, in {SEED_SAMPLE} pairs"
        )
        return Finding(
            name, False, detail, "Use the whole seed: no `seed % 65536`. Few seeds soon meet twice."
        )
    if upper == episodes:
        return Finding(name, None, f"{distinct} different episodes from {count} seeds are too few to tell")
    said = f"{count} seeds give {distinct} different episodes under the same actions"
    return Finding(name, True, said)


def global_random(subject: Subject) -> Finding:
    """Whether Python's and numpy's global generators are neither read nor changed."""
    name, remedy = "global generators", "Draw from self.np_random; call neither random nor np.random."
    with global_generators(2):
        before = global_state()
        where = difference(subject.reference, subject.run(1))
        after = global_state()
    if where:
        detail = f"episodes depend on how Python's and numpy's global generators are seeded, {where}"
        return Finding(name, False, detail, remedy)
    if after != before:
        return Finding(name, False, "a global generator was seeded or drawn from", remedy)
    return Finding(name, True, "neither read nor changed")


def earlier_episodes(subject: Subject) -> Finding:
    """Whether an episode is the same in a fresh environment, after others, and after one given up."""
    name = "earlier episodes"
    remedy = "Set every attribute that a step reads anew in reset, and seed every generator there."
    fresh = []
    for seed, after in zip(subject.seeds, subject.plays, strict=True):
        with closing(subject.single.make()) as env:
            fresh.append(play(env, seed, seed, subject.single.spec.horizon).fingerprint())
        if fresh[-1] != after.fingerprint():
            number = len(fresh) - 1
            detail = (
                f"episode {number} (seed {seed}) is another as number {number} than in a fresh environment"
            )
            return Finding(name, False, detail, remedy)
    number = int(np.argmin([played.length for played in subject.plays]))
    seed = subject.seeds[number]
    longest = max(subject.plays, key=lambda played: played.length)
    with closing(subject.single.make()) as env:
        play(env, longest.seed, longest.seed, max(1, longest.length // 2))
        if play(env, seed, seed, subject.single.spec.horizon).fingerprint() != fresh[number]:
            detail = f"the episode of seed {seed} is another after one that was given up half-way"
            return Finding(name, False, detail, remedy)
    return Finding(
        name, True, f"{len(fresh)} episodes are the same in fresh environments, after others and half others"
    )


def lanes(subject: Subject) -> Finding:
    """Whether the tables are the same bytes for any number of episodes side by side."""
    for count in LANES:
        where = difference(subject.reference, subject.run(count))
        if where:
            remedy = (
                "Keep nothing on the class or module that a step writes; vector environments: mode DISABLED."
            )
            return Finding("lanes", False, f"1 and {count} lanes give different tables, {where}", remedy)
    count = ", ".join(map(str, LANES[:-1]))
    return Finding(
        "lanes", True, f"episode and step table have the same bytes for 1, {count} and {LANES[-1]} lanes"
    )


def processes(subject: Subject) -> Finding:
    """Whether lanes in processes of their own give the same tables as lanes in this one."""
    name, remedy = "processes", "Seed by the seed alone, not by a rank; start no process in an environment."
    pure = subject.single is not subject.environment  # dynamics, here as a Gymnasium environment
    expected = subject.run(1, subject.single) if pure else subject.reference
    try:
        run = subject.run(2, replace(subject.single, vectorisation="async"))
    except Exception as error:
        return Finding(name, False, f"in a process of its own: {type(error).__name__}: {error}", remedy)
    where = difference(expected, run)
    if where:
        return Finding(name, False, f"synchronous and asynchronous lanes differ, {where}", remedy)
    return Finding(name, True, "synchronous and asynchronous lanes give tables of the same bytes")


def autoreset_modes(subject: Subject) -> Finding:
    """Whether Gymnasium's vector environments give the same episodes in each of their reset modes.

    Later episodes of a lane are begun by a reset without a seed, which goes on with the lane's generator.
    """
    name, episodes = "autoreset modes", 3
    seen = {}
    for mode in AutoresetMode:
        try:
            seen[mode] = _vector_episodes(subject, mode, episodes)
        except Exception as error:
            detail = f"in mode {mode.name}: {type(error).__name__}: {error}"
            return Finding(
                name, False, detail, "A reset without a seed must work, and go on with self.np_random."
            )
    for mode, found in seen.items():
        for lane, expected in enumerate(seen[AutoresetMode.NEXT_STEP]):
            for number, (one, other) in enumerate(zip(expected, found[lane], strict=True)):
                if one != other:
                    detail = (
                        f"lane {lane}, episode {number}: length {one[0]} and return {one[1]:g} in mode "
                        f"NEXT_STEP, {other[0]} and {other[1]:g} in {mode.name}"
                    )
                    if one[:2] == other[:2]:
                        detail = f"lane {lane}, episode {number} differs in {mode.name} from NEXT_STEP"
                    remedy = "A reset without a seed must go on with self.np_random, not seed it anew."
                    return Finding(name, False, detail, remedy)
    return Finding(
        name, True, f"{2 * episodes} episodes on 2 lanes are the same in NEXT_STEP, SAME_STEP and DISABLED"
    )


def _vector_episodes(subject: Subject, mode: AutoresetMode, episodes: int) -> list[list[tuple]]:
    """Length, return, flags and last observation of the first episodes of each lane, [2][episodes]."""
    with closing(SyncVectorEnv([subject.single.make] * 2, autoreset_mode=mode)) as envs:
        encoding = Observations(envs.single_observation_space)
        envs.reset(seed=subject.seeds[:1] * 2 if subject.episodes < 2 else subject.seeds[:2])
        found: list[list[tuple]] = [[], []]
        generators = [np.random.default_rng((lane, 0)) for lane in range(2)]
        total, length, resetting = np.zeros(2), np.zeros(2, int), np.zeros(2, bool)
        while min(map(len, found)) < episodes:
            if length.max() > subject.single.spec.horizon:
                raise RuntimeError(f"an episode has not ended after {length.max() - 1} steps, its limit")
            action = [draw_action(envs.single_action_space, generator) for generator in generators]
            observations, reward, terminated, truncated, info = envs.step(np.array(action))
            ended = (terminated | truncated) & ~resetting
            total, length = total + np.where(resetting, 0, reward), length + ~resetting
            last = encoding.batch(observations, 2)
            for lane in np.flatnonzero(ended):
                final = (
                    last[lane]
                    if mode is not AutoresetMode.SAME_STEP
                    else encoding.one(info["final_obs"][lane])
                )
                flags = (bool(terminated[lane]), bool(truncated[lane]))
                found[lane].append((int(length[lane]), float(total[lane]), *flags, final.tobytes()))
                total[lane], length[lane] = 0, 0
            for lane in np.flatnonzero(resetting | (ended & (mode is not AutoresetMode.NEXT_STEP))):
                generators[lane] = np.random.default_rng((lane, len(found[lane])))
            resetting = ended & (mode is AutoresetMode.NEXT_STEP)
            if mode is AutoresetMode.DISABLED and ended.any():
                envs.reset(seed=[None, None], options={"reset_mask": ended.copy()})
    return [lane[:episodes] for lane in found]


def fresh_process(subject: Subject) -> Finding:
    """Whether other processes, with other orders of Python's sets, give the same tables."""
    name = "fresh process"
    program = (
        "import json, sys; from seedbed.auditing.subject import Subject, digest; "
        "print(digest(Subject(sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])).run(1)))"
    )
    command = [
        sys.executable,
        "-c",
        program,
        subject.name,
        json.dumps(subject.arguments),
        str(subject.episodes),
    ]
    path = os.pathsep.join(filter(None, sys.path))
    running = [
        subprocess.Popen(
            command,
            env=os.environ | {"PYTHONPATH": path, "PYTHONHASHSEED": str(seed)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in (1, 2)
    ]
    expected = digest(subject.reference)
    for process in running:
        output, errors = process.communicate()
        if process.returncode:
            said = (errors.strip().splitlines() or ["no message"])[-1]
            return Finding(
                name, False, f"it failed in a fresh process: {said}", "It must not need what ran before."
            )
        if output.split()[-1] != expected:
            detail = "a fresh process with another PYTHONHASHSEED gives other tables"
            remedy = "Depend on no hash(), no order of a set, no process id, no file that changes."
            return Finding(name, False, detail, remedy)
    return Finding(name, True, "two fresh processes with other hash seeds give tables of the same bytes")


def bias_probe(subject: Subject) -> Finding:
    """What the first episodes to finish on 16 lanes would say, against the episodes fixed before.

    No fault of an environment: it says how much a careless evaluation would be off here.
    """
    policy = WatchfulRandomPolicy(range(NAIVE_RUNS), subject.environment)
    ours = evaluate(policy, subject.environment, PURPOSE, subject.episodes, lanes=NAIVE_LANES).episodes
    naive = _first_to_finish(subject, subject.episodes)
    count = len(ours)
    said = f"mean of {count} random episodes, and of the first {count} to finish on {NAIVE_LANES} lanes"
    numbers = [
        f"{label} {ours[column].mean():.4g} and {naive[column].mean():.4g}"
        for label, column in (("return", "return"), ("length", "length"), ("success rate", "success"))
        if column != "success" or subject.environment.spec.success
    ]
    return Finding("bias probe", None, f"{said}: {'; '.join(numbers)}")


def _first_to_finish(subject: Subject, wanted: int) -> dict[str, np.ndarray]:
    """The first episodes to finish of each of several runs: how not to evaluate."""
    environment = subject.environment
    policy = WatchfulRandomPolicy(range(NAIVE_RUNS), environment)
    generator = np.random.default_rng(0)
    found: dict[str, list[float]] = {"return": [], "length": [], "success": []}
    taken = np.zeros(NAIVE_RUNS, int)
    with closing(
        make_lanes(environment, PURPOSE, policy.seeds, NAIVE_LANES, 2 * (wanted + NAIVE_LANES))
    ) as running:
        total = np.zeros(running.active.shape)
        while taken.min() < wanted:
            uniforms = generator.random((*running.active.shape, policy.uniforms))
            action, _ = policy.act(running.observation, running.mask, uniforms, None, running.first)
            step = running.step(action)
            total += np.where(step.active, step.reward, 0)
            won = succeeded(step, environment.spec)
            for row, lane in np.argwhere(step.active & (step.terminated | step.truncated)):
                if taken[row] < wanted:
                    taken[row] += 1
                    found["return"].append(total[row, lane])
                    found["length"].append(step.t[row, lane])
                    found["success"].append(won[row, lane])
                total[row, lane] = 0
    return {name: np.array(values) for name, values in found.items()}
