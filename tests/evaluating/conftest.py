"""The verb as a function, and a policy's file."""

import sys

import numpy as np
import pytest
import torch

from seedbed import cli
from seedbed.algorithms.categorical_policy import CategoricalPolicy
from seedbed.algorithms.networks import StackedMLP


@pytest.fixture
def seedbed(monkeypatch, capsys):
    """Runs the verb: exit status, standard output, standard error."""

    def called(*arguments):
        monkeypatch.setattr(sys, "argv", ["seedbed", "evaluate", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code, *capsys.readouterr()

    return called


@pytest.fixture
def policy_file(tmp_path):
    """Two seeds of a small untrained network for CartPole."""
    sizes = [4, 8, 2]
    weights = np.random.default_rng(0).normal(size=(2, StackedMLP(sizes, "tanh").size))
    policy = CategoricalPolicy([3, 5], sizes, "tanh", torch.tensor(weights, dtype=torch.float32))
    policy.save(tmp_path / "policy.safetensors")
    return tmp_path / "policy.safetensors"
