"""Policy files from elsewhere: read as data, held against the environment, and never unpickled.

ONNX and TorchScript files are kept as they are. Of a Stable-Baselines3 model only the weights are read, by
PyTorch's restricted reader; its ``data``, which holds pickled Python objects, is never opened.
"""

import hashlib
import io
import warnings
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from seedbed.algorithms.row_policy import PolicyError
from seedbed.environments.base import Spec

FORMATS = {".onnx": "onnx", ".pt": "torchscript", ".ts": "torchscript", ".zip": "sb3"}
"""What a file is, by its suffix."""

Model = Literal["A2C", "DDPG", "DQN", "PPO", "SAC", "TD3"]
"""A class of Stable-Baselines3."""
Output = Literal["action", "logits", "q_values"]
"""What a model's one output means."""
_WEIGHTS_ELSEWHERE = "session.model_external_initializers_file_folder_path"
Arrays = dict[str, np.ndarray]
Runner = Callable[[np.ndarray], np.ndarray]
"""One observation [1, *observation_shape] float32 -> the output [1, ...]."""


def format_of(path: str) -> str:
    """What a file is, by its suffix.

    Raises:
        ValueError: another suffix; says how to get one of the known ones.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise ValueError(
            f"{path}: '{suffix}' is no policy file; there are .onnx, .pt and .ts (TorchScript) and .zip "
            f"(Stable-Baselines3). Pickles are never read: export the network."
        )
    return FORMATS[suffix]


def read_model(path: str) -> tuple[Arrays, str]:
    """A file's content as arrays, and the SHA-256 of its bytes.

    Returns:
        Weights by name for Stable-Baselines3; else {"file": its bytes, uint8}.

    Raises:
        PolicyError: it is missing, empty, a pickle, damaged, or not what its suffix says.
    """
    kind = format_of(path)
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise PolicyError(f"The policy file {path} cannot be read: {error.strerror}.") from None
    if not content:
        raise PolicyError(f"The policy file {path} is empty.")
    if content[0] == 0x80 and content[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        raise PolicyError(
            f"{path} is a Python pickle, which can run any program when it is read. It was not read. "
            f"Export the policy as ONNX or TorchScript."
        )
    checksum = hashlib.sha256(content).hexdigest()
    if kind == "sb3":
        return _sb3_weights(path, content), checksum
    if kind == "torchscript":
        _check_torchscript(path, content)
    return {"file": np.frombuffer(content, np.uint8)}, checksum


def _entries(path: str, content: bytes, what: str) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(io.BytesIO(content))
    except zipfile.BadZipFile:
        raise PolicyError(f"{path} is not {what}, or is cut short: it is no complete zip archive.") from None


def _check_torchscript(path: str, content: bytes) -> None:
    """Tell TorchScript, which holds code of its own, from ``torch.save``: a pickle in a similar archive."""
    names = _entries(path, content, "TorchScript").namelist()
    if any(name.endswith("/constants.pkl") for name in names) and any("/code/" in name for name in names):
        return
    if any(name.endswith("/data.pkl") for name in names):
        raise PolicyError(
            f"{path} was written by torch.save and is a pickle, which can run any program when it is read. "
            f"It was not read. Write the network by torch.jit.script or torch.jit.trace and its save()."
        )
    raise PolicyError(f"{path} is a zip archive, but not TorchScript.")


def _sb3_weights(path: str, content: bytes) -> Arrays:
    import torch

    archive = _entries(path, content, "a model of Stable-Baselines3")
    if "policy.pth" not in archive.namelist():
        raise PolicyError(f"{path} is no model of Stable-Baselines3: it has no policy.pth.")
    try:
        weights = torch.load(io.BytesIO(archive.read("policy.pth")), map_location="cpu", weights_only=True)
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise PolicyError(
            f"policy.pth in {path} is damaged or holds more than weights; nothing of it was run. ({reason})"
        ) from None
    if not (
        isinstance(weights, Mapping) and all(isinstance(part, torch.Tensor) for part in weights.values())
    ):
        raise PolicyError(f"policy.pth in {path} is no table of weights.")
    return {str(name): tensor.detach().numpy().copy() for name, tensor in weights.items()}


def runner(options: Mapping[str, Any], spec: Spec, content: Arrays) -> Runner:
    """A model as a function of one observation.

    Args:
        options: ``format``; for "sb3" also ``sb3`` and ``policy_kwargs``.
        spec: the environment's.
        content: from ``read_model``.

    Raises:
        ValueError: it cannot be loaded, or does not fit the environment.
    """
    if options["format"] == "onnx":
        return _onnx_runner(content["file"].tobytes(), spec)
    if options["format"] == "torchscript":
        return _torchscript_runner(content["file"].tobytes())
    from seedbed.algorithms import sb3_networks

    built = sb3_networks.network(options["sb3"], spec, options["policy_kwargs"], content)
    return sb3_networks.runner(options["sb3"], spec, built)


def _onnx_runner(content: bytes, spec: Spec) -> Runner:
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    settings.log_severity_level = 4
    # A model is one file: weights beside it would be missing where the policy is evaluated.
    settings.add_session_config_entry(_WEIGHTS_ELSEWHERE, "/dev/null")
    try:
        session = onnxruntime.InferenceSession(content, settings, providers=["CPUExecutionProvider"])
    except Exception as error:
        reason = str(error).strip().splitlines()[0]
        raise ValueError(f"it is no complete ONNX model, in one file, that can be run ({reason})") from None
    inputs, outputs = session.get_inputs(), session.get_outputs()
    if len(inputs) != 1 or len(outputs) != 1:
        names = [[entry.name for entry in entries] for entries in (inputs, outputs)]
        raise ValueError(f"an ONNX policy has one input and one output; this has {names[0]} and {names[1]}")
    kinds = {"tensor(float)": np.float32, "tensor(double)": np.float64}
    if inputs[0].type not in kinds:
        raise ValueError(f"its input is {inputs[0].type}; observations are tensor(float)")
    wanted = (1, *spec.observation_shape)
    fits = len(inputs[0].shape) == len(wanted) and all(
        size == need for size, need in zip(inputs[0].shape, wanted, strict=True) if isinstance(size, int)
    )
    if not fits:
        raise ValueError(f"its input has the shape {inputs[0].shape}; observations have {list(wanted)}")
    name, kind = inputs[0].name, kinds[inputs[0].type]
    return lambda observation: np.asarray(session.run(None, {name: observation.astype(kind)})[0])


def _torchscript_runner(content: bytes) -> Runner:
    import torch

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # its successor's files are not known here
            module = torch.jit.load(io.BytesIO(content), map_location="cpu").eval()
    except Exception as error:
        reason = str(error).strip().splitlines()[0]
        raise ValueError(f"it is no complete TorchScript file ({reason})") from None

    def run(observation: np.ndarray) -> np.ndarray:
        # Optimisation would compile after the first calls, and its bits may differ from theirs.
        with torch.inference_mode(), torch.jit.optimized_execution(False):
            output = module(torch.tensor(observation))
        if not isinstance(output, torch.Tensor):
            raise ValueError(f"a policy returns one tensor, not {type(output).__name__}")
        return output.numpy()

    return run
