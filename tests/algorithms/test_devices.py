"""Devices: what is refused where, one copy per direction, no tensor left behind, the CPU's bits untouched."""

import os
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from seedbed.algorithms import devices
from seedbed.algorithms.devices import NoDeviceError, host, on, torch_device, training_on
from seedbed.algorithms.uniform_random import UniformRandom
from seedbed.environments.goal_grid import GoalGrid
from seedbed.environments.interview import MockInterview
from seedbed.registry import ALGORITHMS, make
from seedbed.resolution import resolve
from seedbed.settings import training_settings
from seedbed.study import Study
from seedbed.study_files import StudyError
from seedbed.training import train

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU that torch can use")
no_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="is about machines without a GPU")

MODEL = {"members": 3, "elites": 2, "hidden": [16], "batch_size": 16, "rounds": 2, "batches": 3}
PLANNER = {"particles": 2, "population": 8, "horizon": 2, "iterations": 1}
LEARNERS = {
    "ppo": ({"rollout": 4, "hidden": [16], "lanes": 4}, 48),
    "a2c": ({"hidden": [16], "lanes": 4}, 48),
    "dqn": ({"hidden": [16], "learning_starts": 20, "batch_size": 8}, 60),
    "sac": ({"hidden": [16], "learning_starts": 20, "batch_size": 8}, 50),
    "mbpo": (
        {"hidden": [16], "learning_starts": 20, "batch_size": 8, "updates": 1, "rollouts": 8, "model": MODEL},
        30,
    ),
    "pets": ({"learning_starts": 20, "fit_every": 20, "model": MODEL, "planner": PLANNER}, 45),
}


def trained(name, dynamics, **more):
    """The arrays of a learner's policy file, seeds 3 and 5, and its diagnostics."""
    arguments, budget = LEARNERS[name]
    algorithm = make(name, arguments | more, ALGORITHMS, "algorithm")
    run = train(algorithm, dynamics, [3, 5], budget, None)
    policy = run.policy
    arrays = policy.contents()[0] if hasattr(policy, "contents") else policy.world_model.contents([3, 5])[0]
    return arrays, run.diagnostics


class Elsewhere(torch.Tensor):
    """A tensor that claims to be on another device ("meta") and computes on the CPU.

    Operations refuse to mix it with tensors of the CPU, as a GPU's would; those of no dimension may.
    """

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, inner.stride(), inner.storage_offset(), dtype=inner.dtype, device="meta"
        )

    def __init__(self, inner):
        self.inner = inner

    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return computed(func, args, kwargs or {})

    __torch_dispatch__ = classmethod(__torch_dispatch__)


def computed(func, args, kwargs):
    """What ``func`` gives, on the device where its tensors are or which it names."""
    tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
    away = [x for x in tensors if isinstance(x, Elsewhere)]
    named = kwargs.get("device")
    if away and (left := [x for x in tensors if not isinstance(x, Elsewhere) and x.dim()]):
        raise RuntimeError(f"{func} mixes devices: {len(left)} tensors are still on the CPU")
    away = bool(away) if named is None else torch.device(named).type != "cpu"
    if named is not None:
        kwargs = kwargs | {"device": "cpu"}
    args_here, kwargs_here = tree_map(lambda x: x.inner if isinstance(x, Elsewhere) else x, (args, kwargs))
    with torch.inference_mode(False), torch.no_grad():  # a view of an ordinary tensor has to be one as well
        out = func(*args_here, **kwargs_here)
        if func._schema.name.endswith("_") and isinstance(args[0], torch.Tensor):
            return args[0]
        return tree_map(lambda x: Elsewhere(x) if away and isinstance(x, torch.Tensor) else x, out)


class ElsewhereMode(TorchDispatchMode):
    """Makes tensors ``Elsewhere`` that are asked for there, and counts copies in and out."""

    def __init__(self):
        super().__init__()
        self.copies = {"in": 0, "out": 0}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = computed(func, args, kwargs or {})
        if args and isinstance(args[0], torch.Tensor) and isinstance(out, torch.Tensor):
            there = isinstance(out, Elsewhere)
            if there != isinstance(args[0], Elsewhere):
                self.copies["in" if there else "out"] += 1
        return out


@pytest.fixture
def elsewhere(monkeypatch):
    """Learners of "cuda" are trained ``Elsewhere``."""
    for module in ("ppo", "a2c", "dqn", "sac", "mbpo", "pets"):
        monkeypatch.setattr(
            f"seedbed.algorithms.{module}.torch_device",
            lambda name: torch.device("meta" if name == "cuda" else "cpu"),
        )
    monkeypatch.setattr(devices, "torch_device", lambda name: devices.CPU)  # switches are another test's
    return ElsewhereMode()


MASKED, UNMASKED = MockInterview(), GoalGrid()


@pytest.mark.parametrize(
    "name, dynamics",
    [(name, MASKED) for name in LEARNERS] + [(name, UNMASKED) for name in ("ppo", "a2c", "dqn", "sac")],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_another_device_is_mixed_with_none_and_learns_the_same(name, dynamics, elsewhere):
    """Where the other device computes like the CPU, policies and diagnostics are the CPU's bit for bit."""
    here, diagnostics = trained(name, dynamics)
    with elsewhere:
        there, other_diagnostics = trained(name, dynamics, device="cuda")
    assert min(elsewhere.copies.values()) > 0
    assert here.keys() == there.keys()
    for key, array in here.items():
        np.testing.assert_array_equal(array, there[key], err_msg=key)
    assert diagnostics.equals(other_diagnostics)


def test_the_other_device_of_these_tests_refuses_to_mix():
    with ElsewhereMode():
        there = torch.ones(3, device="meta")
        assert host(there + 1).tolist() == [2, 2, 2]
        with pytest.raises(RuntimeError, match="mixes devices"):
            there + torch.ones(3)


@pytest.mark.parametrize(
    "name, arguments, copies_in",
    [
        ("ppo", {"lanes": 1, "hidden": [16], "rollout": 1000, "epochs": 1, "minibatches": 1}, 1),
        ("a2c", {"lanes": 1, "hidden": [16], "update_every": 1000}, 2),  # to act, and to learn from what came
        ("dqn", {"hidden": [16], "learning_starts": 19, "steps_per_update": 1}, 1),
        ("sac", {"hidden": [16], "learning_starts": 19}, 1),
    ],
)
def test_a_step_costs_one_copy_out_and_one_in(name, arguments, copies_in, elsewhere):
    """Learning takes the same copies in both trainings, whose lengths differ by 10 steps without learning."""
    counts = []
    for longer in (0, 10):
        algorithm = make(name, arguments | {"device": "cuda"}, ALGORITHMS, "algorithm")
        if hasattr(algorithm, "learning_starts"):
            algorithm = replace(algorithm, learning_starts=19 + longer)
        elsewhere.copies = {"in": 0, "out": 0}
        with elsewhere:
            train(algorithm, GoalGrid(), [3, 5], 20 + longer, None)
        counts.append(elsewhere.copies)
    assert counts[1]["in"] - counts[0]["in"] == 10 * copies_in
    assert counts[1]["out"] - counts[0]["out"] == 10


def test_arrays_of_all_kinds_survive_their_common_copy():
    generator = np.random.default_rng(0)
    arrays = [
        generator.random((2, 3, 5), np.float32)[:, ::2],
        None,
        generator.random((7,)) < 0.5,
        np.zeros((0, 4), np.float32),
        generator.random((3, 1)),
        torch.arange(5),
        np.array(3.5),
    ]
    with ElsewhereMode() as mode:
        moved = on(torch.device("meta"), *arrays)
        assert mode.copies == {"in": 1, "out": 0}
        for given, there, here in zip(arrays, moved, on(devices.CPU, *arrays), strict=True):
            if given is None:
                assert there is here is None
                continue
            assert (type(there), type(here)) == (Elsewhere, torch.Tensor)
            np.testing.assert_array_equal(host(there), np.asarray(given))
            assert host(there).dtype == host(here).dtype == np.asarray(given).dtype


@no_gpu
def test_without_a_gpu_cuda_is_refused_in_words_and_auto_is_the_cpu():
    with pytest.raises(NoDeviceError, match="none here that torch can use"):
        torch_device("cuda")
    assert issubclass(NoDeviceError, ValueError)
    with pytest.raises(ValueError, match="Use device: cpu, or auto"):
        trained("ppo", GoalGrid(), device="cuda")
    assert torch_device("auto") == torch_device("cpu") == devices.CPU
    auto, _ = trained("dqn", GoalGrid(), device="auto")
    cpu, _ = trained("dqn", GoalGrid())
    for key in cpu:
        np.testing.assert_array_equal(auto[key], cpu[key])


def test_what_training_used_is_told():
    algorithm = make("ppo", LEARNERS["ppo"][0] | {"device": "cpu"}, ALGORITHMS, "algorithm")
    facts = train(algorithm, GoalGrid(), [3], 48, None).device
    assert (facts["asked"], facts["used"], facts["gpu"]) == ("cpu", "cpu", None)
    assert facts["deterministic_algorithms"] == torch.are_deterministic_algorithms_enabled()
    assert train(UniformRandom(), GoalGrid(), [3], 0, None).device is None


class OwnDevice(UniformRandom):
    device = "tpu:3"


def test_what_a_users_algorithm_calls_its_device_is_left_to_it():
    assert train(OwnDevice(), GoalGrid(), [3], 0, None).device is None


def test_on_a_gpu_determinism_is_switched_on_and_off_again(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "A GPU")
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")  # the caller's own choice stays
    for name in ("cuda", "auto"):
        before = torch.get_deterministic_debug_mode()
        with training_on(name) as facts:
            assert torch.get_deterministic_debug_mode() == 2
        assert torch.get_deterministic_debug_mode() == before
        assert (facts["asked"], facts["used"], facts["gpu"]) == (name, "cuda", "A GPU")
        assert facts["deterministic_algorithms"] is True
        assert facts["cublas_workspace_config"] == os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":16:8"


def study(**algorithm):
    return Study.model_validate(
        {
            "name": "small",
            "title": "Small",
            "question": "Which is better?",
            "environments": {"here": {"environment": "GoalGrid"}},
            "algorithms": {"first": algorithm, "random": {"algorithm": "random"}},
            "seeds": "0-3",
            "evaluation": {"curve": {"every": 100, "episodes": 2}, "test": {"episodes": 3}},
            "statistics": {"primary": {"here": "return"}, "baseline": "random"},
        }
    )


@pytest.mark.parametrize("name", LEARNERS)
def test_the_studys_device_is_the_algorithms_argument_and_asks_for_a_gpu(name):
    """Nothing is refused where the study is resolved: that may be a machine without the GPU."""
    made = study(algorithm=name, budget=2000, device="cuda")
    assert made.algorithms["first"].gpu == 1
    settings = training_settings(made, "here", "first", "seeds-0-3", [0, 1, 2, 3])
    assert settings["algorithm"]["arguments"] == {"device": "cuda"}
    assert resolve(made, 4)["algorithms"]["here"]["first"]["device"] == "cuda"
    assert Study.model_validate(made.model_dump()) == made


def test_the_cpu_is_no_argument_so_that_other_algorithms_need_not_know_it():
    made = study(algorithm="ppo", budget=2000, device="cpu", arguments={"gamma": 0.9})
    assert made.arguments("first", "here") == {"gamma": 0.9}
    assert made.algorithms["first"].gpu == 0
    assert study(algorithm="ppo", budget=2000, device="auto").algorithms["first"].gpu == 0
    assert study(algorithm="ppo", budget=2000, device="cuda", gpu=2).algorithms["first"].gpu == 2


@pytest.mark.parametrize("name", ["shortest_path", "seedbed.algorithms.uniform_random:UniformRandom"])
def test_an_algorithm_without_networks_refuses_a_device(name):
    with pytest.raises(StudyError, match=r"algorithms.first \(in here\): device: cuda: .* on the CPU only"):
        resolve(study(algorithm=name, device="cuda"), 4)


def test_a_device_is_given_once_and_has_a_known_name():
    with pytest.raises(ValueError, match="device is given twice"):
        study(algorithm="ppo", budget=2000, device="auto", arguments={"device": "cuda"})
    with pytest.raises(ValueError, match="'auto', 'cpu' or 'cuda'"):
        study(algorithm="ppo", budget=2000, device="gpu")


@needs_gpu
@pytest.mark.parametrize("name", LEARNERS)
def test_a_gpu_learns_what_the_cpu_learns_and_repeats_itself(name):
    """Other last bits, hence other signs of steps down gradients near 0: alike on average, not each."""
    cpu, _ = trained(name, MASKED)
    gpu, _ = trained(name, MASKED, device="cuda")
    again, _ = trained(name, MASKED, device="cuda")
    for key, array in cpu.items():
        np.testing.assert_array_equal(gpu[key], again[key], err_msg=key)
        assert np.abs(gpu[key] - array).mean() < 1e-3, key
