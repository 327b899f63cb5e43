"""Devices: what is refused where, one copy per direction, no tensor left behind, the CPU's bits untouched."""

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from seedbed.algorithms import devices
from seedbed.algorithms.devices import NoDeviceError, host, on, torch_device, training_on
from seedbed.environments.goal_grid import GoalGrid
from seedbed.environments.interview import MockInterview
from seedbed.registry import ALGORITHMS, make
from seedbed.resolution import resolve
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
        {"hidden": [16], "learning_starts": 20, "batch_size": 8, "fit_every": 20, "rollouts": 8, "model": MODEL},
        50,
    ),
    "pets": ({"learning_starts": 20, "fit_every": 20, "model": MODEL, "planner": PLANNER}, 45),
}


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


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
    moves = func in (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default)
    if away and not moves and (left := [x for x in tensors if not isinstance(x, Elsewhere) and x.dim()]):
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
        kwargs = kwargs or {}
        if func is torch.ops.aten._to_copy.default and kwargs.get("device") is not None:
            there = torch.device(kwargs["device"]).type != "cpu"
            if there != isinstance(args[0], Elsewhere):
                self.copies["in" if there else "out"] += 1
        return computed(func, args, kwargs)


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("dynamics", [MockInterview(), GoalGrid()], ids=["masked", "unmasked"])
def test_another_device_mixes_nothing_and_learns_the_same(name, dynamics, monkeypatch):
    """Where the other device computes like the CPU, the policies are the CPU's bit for bit."""
    here, diagnostics = trained(name, dynamics)
    monkeypatch.setattr(devices.torch.cuda, "is_available", lambda: True)
    for module in ("ppo", "a2c", "dqn", "sac", "mbpo", "pets"):
        monkeypatch.setattr(f"seedbed.algorithms.{module}.torch_device", lambda name: torch.device("meta"))
    with ElsewhereMode():
        there, other_diagnostics = trained(name, dynamics)
    assert here.keys() == there.keys()
    for key, array in here.items():
        assert type(there[key]) is np.ndarray
        np.testing.assert_array_equal(array, there[key], err_msg=key)
    assert diagnostics.equals(other_diagnostics)
