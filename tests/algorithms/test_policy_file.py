"""Policy files: read as data, refused where they are something else, and never needed again."""

import io
import os
import pickle
import zipfile

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from seedbed.algorithms.model_policy import ModelPolicy
from seedbed.algorithms.row_policy import PolicyError
from seedbed.artifacts import ArtifactError, SeedbedError
from seedbed.environments.external import GymnasiumEnvironment
from seedbed.environments.interview import MockInterview
from seedbed.evaluation import evaluate
from seedbed.registry import ALGORITHMS, make
from seedbed.seeding import Purpose
from seedbed.training import train

POLE = GymnasiumEnvironment("CartPole-v1", horizon=40)
CAR = GymnasiumEnvironment("MountainCarContinuous-v0")
WEIGHTS = np.random.default_rng(1).normal(size=(4, 2)).astype(np.float32)


def policy_file(path, **arguments):
    return make("policy_file", {"path": str(path)} | arguments, ALGORITHMS, "algorithm")


def write_onnx(
    path, weights=WEIGHTS, batch="batch", external=False, tail=(), outputs=1, kind=TensorProto.FLOAT
):
    """observation @ weights, then further nodes (operator, output type)."""
    size = len(weights)
    kinds = {"ArgMax": TensorProto.INT64}
    nodes, last, last_kind = [helper.make_node("MatMul", ["observation", "w"], ["y0"])], "y0", kind
    for number, (operator, attributes) in enumerate(tail, 1):
        nodes.append(helper.make_node(operator, [last], [f"y{number}"], **attributes))
        last, last_kind = f"y{number}", kinds.get(operator, last_kind)
    given = [helper.make_tensor_value_info("observation", kind, [batch, size])]
    taken = [helper.make_tensor_value_info(last, last_kind, None)]
    if outputs == 2:
        nodes.append(helper.make_node("Identity", [last], ["value"]))
        taken.append(helper.make_tensor_value_info("value", last_kind, None))
    graph = helper.make_graph(nodes, "policy", given, taken, [numpy_helper.from_array(weights, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    if external:
        onnx.save_model(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    else:
        onnx.save_model(model, path)
    return path


def write_torchscript(path, weights=WEIGHTS, script=True):
    class Linear(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.from_numpy(weights))

        def forward(self, observation):
            return observation @ self.w

    module = torch.jit.script(Linear()) if script else torch.jit.trace(Linear(), torch.zeros(1, len(weights)))
    module.save(str(path))
    return path


def observations(count=200, size=4):
    return np.random.default_rng(2).normal(size=(1, count, size)).astype(np.float32)


def acted(policy, observation):
    shape = observation.shape[:2]
    return policy.act(observation, None, np.zeros((*shape, policy.uniforms)), None, np.ones(shape, bool))[0]


@pytest.mark.parametrize("kind", ["onnx", "script", "trace"])
def test_logits_and_values_are_what_the_model_says(tmp_path, kind):
    if kind == "onnx":
        path = write_onnx(tmp_path / "policy.onnx")
    else:
        path = write_torchscript(tmp_path / "policy.pt", script=kind == "script")
    for output in ("logits", "q_values"):
        algorithm = policy_file(path, output=output)
        algorithm.check(POLE, [0], 0)
        policy = train(algorithm, POLE, [0], 0, None).policy
        assert policy.modes == (("greedy", "sampled") if output == "logits" else ("greedy",))
        seen = observations()
        assert np.array_equal(acted(policy, seen), (seen @ WEIGHTS).argmax(-1))
    policy = train(policy_file(path, output="logits"), POLE, [0], 0, None).policy.in_mode("sampled")
    powers = np.exp(seen.astype(float) @ WEIGHTS)
    first = np.ones((1, 200), bool)
    expected = powers / powers.sum(-1, keepdims=True)
    assert policy.probabilities(seen, None, None, first) == pytest.approx(expected, abs=1e-6)
    uniforms = np.random.default_rng(3).random((1, 200, 1))
    chosen, _ = policy.act(seen, None, uniforms, None, first)
    assert np.array_equal(chosen, uniforms[..., 0] >= expected[..., 0])


def test_evaluation_is_the_same_for_any_lanes_and_needs_no_original(tmp_path):
    write_onnx(tmp_path / "policy-0.onnx")
    write_onnx(tmp_path / "policy-1.onnx", -WEIGHTS, batch=1)
    algorithm = policy_file(tmp_path / "policy-{seed}.onnx", output="logits")
    both = train(algorithm, POLE, [0, 1], 0, None).policy
    alone = train(algorithm, POLE, [1], 0, None).policy
    assert len(set(both.options["sha256"])) == 2
    both.save(tmp_path / "policy.safetensors")
    for number in range(2):
        (tmp_path / f"policy-{number}.onnx").unlink()
    loaded = ModelPolicy.load(tmp_path / "policy.safetensors", POLE)
    for mode in loaded.modes:
        tables = [
            evaluate(loaded.in_mode(mode), POLE, Purpose.TEST, 8, lanes=n, log_steps=True).steps
            for n in (1, 2, 3, 8)
        ]
        assert all(tables[0].equals(other) for other in tables[1:])
        single = evaluate(alone.in_mode(mode), POLE, Purpose.TEST, 8, lanes=8, log_steps=True).steps
        assert tables[0][tables[0].seed == 1].reset_index(drop=True).equals(single)


def test_one_file_of_all_seeds_is_kept_once(tmp_path):
    path = write_torchscript(tmp_path / "policy.ts")
    policy = train(policy_file(path, output="q_values"), POLE, [0, 1, 2], 0, None).policy
    policy.save(tmp_path / "policy.safetensors")
    assert (tmp_path / "policy.safetensors").stat().st_size < 2 * path.stat().st_size
    assert ModelPolicy.load(tmp_path / "policy.safetensors", POLE).seeds == [0, 1, 2]


def test_actions_as_output(tmp_path):
    path = write_onnx(tmp_path / "index.onnx", tail=[("ArgMax", {"axis": 1, "keepdims": 0})])
    policy = train(policy_file(path), POLE, [0], 0, None).policy
    seen = observations()
    assert np.array_equal(acted(policy, seen), (seen @ WEIGHTS).argmax(-1))
    slopes = np.array([[1.0], [50.0]], np.float32)
    path = write_onnx(tmp_path / "steep.onnx", slopes)
    seen = observations(size=2)
    wide = train(policy_file(path, clip=True), CAR, [0], 0, None).policy
    assert acted(wide, seen) == pytest.approx((seen @ slopes).clip(-1, 1), abs=1e-5)
    with pytest.raises(PolicyError, match=r"seed 0: the action .* is not between"):
        acted(train(policy_file(path), CAR, [0], 0, None).policy, seen)


def test_forbidden_actions_are_never_taken(tmp_path):
    tutor = MockInterview(preset="tiny")
    size = tutor.spec.observation_shape[0]
    weights = np.random.default_rng(0).normal(size=(size, tutor.spec.actions)).astype(np.float32)
    path = write_onnx(tmp_path / "tutor.onnx", weights)
    policy = train(policy_file(path, output="logits"), tutor, [0], 0, None).policy
    for mode in policy.modes:
        evaluate(policy.in_mode(mode), tutor, Purpose.TEST, 4, lanes=2)


def marker(folder):
    """A pickle that makes a folder when it is read."""

    class Malicious:
        def __reduce__(self):
            return os.mkdir, (str(folder / "marker"),)

    return Malicious()


def test_the_marker_is_real(tmp_path):
    pickle.loads(pickle.dumps(marker(tmp_path)))
    assert (tmp_path / "marker").exists()


@pytest.mark.parametrize("suffix", [".onnx", ".pt", ".ts", ".zip"])
@pytest.mark.parametrize("kind", ["pickle", "old pickle", "torch.save", "old torch.save", "nothing", "text"])
def test_a_file_that_is_no_policy_is_refused_and_nothing_is_run(tmp_path, suffix, kind):
    path = tmp_path / f"policy{suffix}"
    if kind == "torch.save":
        torch.save(marker(tmp_path), path)
    elif kind == "old torch.save":
        torch.save(marker(tmp_path), path, _use_new_zipfile_serialization=False)
    elif kind == "nothing":
        path.write_bytes(b"")
    elif kind == "text":
        path.write_text("a policy")
    else:
        path.write_bytes(pickle.dumps(marker(tmp_path), 0 if kind == "old pickle" else 4))
    algorithm = policy_file(path, **({"sb3": "PPO"} if suffix == ".zip" else {"output": "logits"}))
    with pytest.raises(PolicyError, match=str(path) if suffix != ".onnx" else "ONNX|policy") as caught:
        algorithm.check(POLE, [0], 0)
    assert not (tmp_path / "marker").exists()
    if kind == "pickle" or kind == "old torch.save" or (kind, suffix) == ("torch.save", ".pt"):
        assert "pickle" in str(caught.value)


def test_a_malicious_model_of_stable_baselines3(tmp_path):
    """Pickles in every place that the library reads them from; none of them is run."""
    poison = io.BytesIO()
    torch.save({"log_std": marker(tmp_path)}, poison)
    for name, content in {
        "policy.pth": poison.getvalue(),
        "raw.pth": pickle.dumps(marker(tmp_path)),
    }.items():
        path = tmp_path / "model.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("data", pickle.dumps(marker(tmp_path)))
            archive.writestr("policy.pth", content)
            archive.writestr("pytorch_variables.pth", poison.getvalue())
        with pytest.raises(PolicyError, match="damaged or holds more than weights; nothing of it was run"):
            policy_file(path, sb3="PPO").check(POLE, [0], 0)
        assert not (tmp_path / "marker").exists(), name


def test_a_file_that_is_cut_short_is_refused(tmp_path):
    for path in (write_onnx(tmp_path / "policy.onnx"), write_torchscript(tmp_path / "policy.pt")):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        with pytest.raises(PolicyError, match=r"ONNX|cut short"):
            policy_file(path, output="logits").check(POLE, [0], 0)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"outputs": 2}, "has one input and one output; this has"),
        (
            {"weights": np.ones((3, 2), np.float32)},
            r"input has the shape \['batch', 3\]; observations have \[1, 4",
        ),
        ({"batch": 8}, r"input has the shape \[8, 4\]"),
        (
            {"weights": np.ones((4, 3), np.float32)},
            r"seed 5: the logits output has the shape \(1, 3\); .*\(1, 2",
        ),
        (
            {"weights": np.full((4, 2), np.nan, np.float32)},
            r"seed 5: the logits output \[nan nan\] is not finite",
        ),
        ({"tail": [("ReduceSum", {"keepdims": 0})]}, r"has the shape \(\)"),
        ({"external": True}, "no complete ONNX model, in one file"),
    ],
)
def test_onnx_that_does_not_fit(tmp_path, changes, message, monkeypatch):
    monkeypatch.chdir(tmp_path)  # weights beside the model must not be found there either
    path = write_onnx(tmp_path / "policy.onnx", **changes)
    with pytest.raises(PolicyError, match=message):
        policy_file(path, output="logits").check(POLE, [5], 0)


def test_torchscript_that_draws_by_itself_is_refused(tmp_path):
    class Noisy(torch.nn.Module):
        def forward(self, observation):
            return torch.rand(1, 1) * 2 - 1

    torch.jit.script(Noisy()).save(str(tmp_path / "noisy.pt"))
    with pytest.raises(PolicyError, match="the same observation gave"):
        policy_file(tmp_path / "noisy.pt").check(CAR, [0], 0)


def test_torchscript_with_two_outputs_is_refused(tmp_path):
    class Two(torch.nn.Module):
        def forward(self, observation):
            return observation, observation

    torch.jit.script(Two()).save(str(tmp_path / "two.pt"))
    with pytest.raises(PolicyError, match="a policy returns one tensor, not tuple"):
        policy_file(tmp_path / "two.pt").check(POLE, [0], 0)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"path": "policy.pkl"}, "'.pkl' is no policy file; there are .onnx"),
        ({"path": "policy"}, "'' is no policy file"),
        ({"path": "model.zip"}, "sb3 is missing"),
        ({"path": "model.zip", "sb3": "PPPO"}, "'A2C', 'DDPG', 'DQN', 'PPO', 'SAC' or 'TD3'"),
        ({"path": "policy.onnx", "sb3": "PPO"}, "belong to .zip files"),
        ({"path": "policy.onnx", "output": "softmax"}, "'action', 'logits' or 'q_values'"),
        (
            {"path": "m.zip", "sb3": "PPO", "policy_kwargs": {"arch": 1}},
            "PPO has no arch; it has activation_fn",
        ),
        ({"path": "m.zip", "sb3": "PPO", "policy_kwargs": {"activation_fn": "relu6"}}, "no 'relu6'"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(SeedbedError, match=message):
        make("policy_file", arguments, ALGORITHMS, "algorithm")


def test_a_missing_file_is_named():
    with pytest.raises(PolicyError, match=r"The policy file nowhere-3.onnx cannot be read: No such file"):
        policy_file("nowhere-{seed}.onnx").check(POLE, [3], 0)


def test_logits_make_no_array(tmp_path):
    path = write_onnx(tmp_path / "policy.onnx", np.ones((2, 1), np.float32))
    with pytest.raises(PolicyError, match="Where actions are arrays, the output is the action, not logits"):
        policy_file(path, output="logits").check(CAR, [0], 0)


def test_another_file_is_no_model_policy(tmp_path):
    write_onnx(tmp_path / "policy.onnx")
    train(policy_file(tmp_path / "policy.onnx", output="logits"), POLE, [0], 0, None).policy.save(
        tmp_path / "policy.safetensors"
    )
    with pytest.raises(ArtifactError, match="cannot act in this environment"):
        ModelPolicy.load(tmp_path / "policy.safetensors", CAR)
