"""Agents from elsewhere in the whole workflow: what they are made of decides what trains again."""

import pickle

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

STUDY = """
name: small
title: Small
question: Which?
environments: {pole: {environment: Gymnasium, arguments: {id: CartPole-v1}}}
algorithms:
  rule: {algorithm: function, role: baseline, arguments: {function: "pole_agents:lean"}}
  net: {algorithm: policy_file, arguments: {path: "policies/net-{seed}.onnx", output: logits}}
  a2c: {algorithm: sb3, budget: 40, arguments: {model: A2C}}
seeds: 0-1
evaluation: {lanes: 2, curve: {every: 20, episodes: 1}, test: {episodes: 2}}
statistics: {baseline: rule, primary: {pole: return}}
presets: {quick: {}}
"""


def write_network(path, seed):
    weights = np.random.default_rng(seed).normal(size=(4, 2)).astype(np.float32)
    given = helper.make_tensor_value_info("observation", TensorProto.FLOAT, [1, 4])
    taken = helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 2])
    nodes = [helper.make_node("MatMul", ["observation", "w"], ["logits"])]
    graph = helper.make_graph(nodes, "policy", [given], [taken], [numpy_helper.from_array(weights, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(model.SerializeToString())


@pytest.fixture
def agents(checkout):
    """A checkout with a study of agents from elsewhere."""
    (checkout.folder / "studies/small.yaml").write_text(STUDY)
    (checkout.folder / "pole_agents.py").write_text(
        "def lean(observation):\n    return int(observation[2] > 0)\n"
    )
    for seed in (0, 1):
        write_network(checkout.folder / f"policies/net-{seed}.onnx", seed)
    checkout.configure("seeds_per_job: 1")
    return checkout


def training(checkout):
    return {job for job in checkout.planned("small_policies") if job.startswith("train")}


@pytest.mark.slow
def test_files_and_functions_decide_what_trains_again(agents):
    run = agents.snakemake("small_policies")
    assert run.returncode == 0, run.stdout
    assert training(agents) == set()
    network = agents.folder / "policies/net-1.onnx"
    original = network.read_bytes()
    network.touch()
    assert training(agents) == set()
    write_network(network, 2)
    assert training(agents) == {"train net"}
    run = agents.snakemake("small_policies", "--quiet", "rules")
    assert run.returncode == 0, run.stdout
    changed = agents.folder / "results/small/pole/net"
    assert (changed / "seed-1/run.json").stat().st_mtime > (changed / "seed-0/run.json").stat().st_mtime + 1
    assert training(agents) == set()
    network.write_bytes(original)
    assert training(agents) == {"train net"}
    write_network(network, 2)
    function = agents.folder / "pole_agents.py"
    function.write_text(function.read_text().replace("[2]", "[3]"))
    assert training(agents) == {"train rule"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "break_it, message",
    [
        (
            lambda folder: (folder / "policies/net-1.onnx").unlink(),
            "net-1.onnx cannot be read: No such",
        ),
        (
            lambda folder: (folder / "policies/net-0.onnx").write_bytes(pickle.dumps({"a": 1})),
            "net-0.onnx is a Python pickle, which can run any program when it is read. It was not read.",
        ),
        (
            lambda folder: (folder / "pole_agents.py").write_text(
                "def lean(observation):\n    return None\n"
            ),
            "algorithms.rule (in pole): The policy of seed 0: the action None is not a number",
        ),
    ],
    ids=["missing", "pickle", "no action"],
)
def test_bad_agents_are_refused_before_anything_is_trained(agents, break_it, message):
    break_it(agents.folder)
    run = agents.snakemake("small_policies")
    assert run.returncode != 0
    assert message in run.stdout
    assert "studies/small.yaml" in run.stdout
    assert "Traceback" not in run.stdout
    assert list((agents.folder / "results").rglob("policy.safetensors")) == []
