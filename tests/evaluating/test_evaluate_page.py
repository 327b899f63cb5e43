"""docs/evaluate.md: its commands print what the page says."""

import importlib.metadata
import json
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from seedbed import cli
from seedbed.algorithms.categorical_policy import CategoricalPolicy
from seedbed.algorithms.networks import StackedMLP
from seedbed.environments.goal_grid import GoalGrid

PAGE = (Path(__file__).parents[2] / "docs/evaluate.md").read_text()
TRAINED = "results/goal/grid/a2c/seed-0/policy.safetensors"


def blocks(kind):
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def play(monkeypatch, capsys, tmp_path):
    """Runs a command of the page in a folder with a trained policy; returns standard output and error."""
    spec = GoalGrid().spec
    sizes = [spec.observation_shape[0], 8, spec.actions]
    weights = np.random.default_rng(0).normal(size=(1, StackedMLP(sizes, "tanh").size))
    (tmp_path / TRAINED).parent.mkdir(parents=True)
    CategoricalPolicy([0], sizes, "tanh", torch.tensor(weights).float()).save(tmp_path / TRAINED)
    monkeypatch.chdir(tmp_path)

    def played(command):
        program, *arguments = shlex.split(command)
        assert program == "./run"
        monkeypatch.setattr(sys, "argv", ["seedbed", *arguments])
        with pytest.raises(SystemExit):
            cli.main()
        return capsys.readouterr()

    return played


@pytest.mark.parametrize("block", blocks("console"), ids=lambda block: block.split("--policy ")[1].split()[0])
def test_commands_print_what_the_page_says(play, block):
    command, _, said = block.removeprefix("$ ").partition("\n")
    err = play(command).err
    assert said == "" or said == re.sub(r"(?m)^(Configuration: .{50}).*$", r"\1...", err)
    assert "Traceback" not in err
    assert bool(said) or "a2c" in err, "only the trained policy's numbers are not the page's"


def test_the_line_is_as_the_page_says(play):
    (line,) = blocks("json")
    printed = play(blocks("console")[0].removeprefix("$ ").partition("\n")[0]).out
    version = {"environment_version": f"seedbed {importlib.metadata.version('seedbed')}"}
    assert json.loads(printed) == json.loads(line) | version


def test_files_are_those_the_page_names(play, tmp_path):
    play(blocks("console")[2].removeprefix("$ ").strip())
    assert (tmp_path / "steps.jsonl").read_text().count("\n") > 0
    assert (tmp_path / "episodes.parquet").is_file()
