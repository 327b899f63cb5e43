"""Where networks are trained, and the copies to there and back.

The CPU is the reference: initial parameters are drawn there whatever the device, environments, replay and
random streams live there, and policies are handed out there.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import Field

from seedbed.artifacts import SeedbedError

Device = Annotated[
    Literal["auto", "cpu", "cuda"],
    Field(description="Where networks are trained: cpu, the reference; cuda, a GPU; auto, a GPU if any"),
]
CPU = torch.device("cpu")
ALIGNMENT = 16
"""Bytes to whose multiples arrays are moved up in a common copy; the size of the largest number or more."""


class NoDeviceError(SeedbedError, ValueError):
    """The device asked for is not there."""


def torch_device(name: Device) -> torch.device:
    """The device behind a name; "auto" takes a GPU if torch can use one.

    Raises:
        NoDeviceError: "cuda" without a GPU that torch can use.
    """
    if name == "cpu":
        return CPU
    if torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    if name == "auto":
        return CPU
    build = (
        "is built for the CPU only"
        if torch.version.cuda is None
        else f"(CUDA {torch.version.cuda}) sees none"
    )
    raise NoDeviceError(
        f"device: cuda needs a GPU, and there is none here that torch can use: torch {torch.__version__} "
        f"{build}. Use device: cpu, or auto, which takes a GPU if there is one."
    )


def on(device: torch.device, *arrays: np.ndarray | torch.Tensor | None) -> list[Any]:
    """Arrays, or tensors of the CPU, as tensors on a device; None stays None.

    On the CPU memory is shared. To another device all go in one copy.
    """
    if device.type == "cpu":
        return [torch.from_numpy(x) if isinstance(x, np.ndarray) else x for x in arrays]
    given = [x.numpy() if isinstance(x, torch.Tensor) else x for x in arrays]
    packed = torch.from_numpy(_packed([x for x in given if x is not None])).to(device)
    parts = iter(_unpacked(packed, [x for x in given if x is not None]))
    return [None if x is None else next(parts) for x in given]


def _packed(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """The bytes of arrays one after the other, each begun at a multiple of ``ALIGNMENT``."""
    out = np.zeros(sum(_room(x) for x in arrays), np.uint8)
    start = 0
    for x in arrays:
        out[start : start + x.nbytes] = np.ascontiguousarray(x).reshape(-1).view(np.uint8)
        start += _room(x)
    return out


def _unpacked(packed: torch.Tensor, like: Sequence[np.ndarray]) -> list[torch.Tensor]:
    """Views of ``_packed(like)`` in the shapes and types of ``like``."""
    out, start = [], 0
    for x in like:
        kind = torch.from_numpy(np.empty(0, x.dtype)).dtype
        out.append(packed[start : start + x.nbytes].view(kind).view(x.shape))
        start += _room(x)
    return out


def _room(array: np.ndarray) -> int:
    return -(-array.nbytes // ALIGNMENT) * ALIGNMENT


def host(tensor: torch.Tensor) -> np.ndarray:
    """A tensor as an array, without its gradient; memory is shared if it lies on the CPU."""
    return tensor.detach().cpu().numpy()


@contextmanager
def training_on(name: Device) -> Iterator[dict[str, Any]]:
    """What happens inside is repeatable on the device behind ``name``, as far as torch can make it.

    On a GPU torch is held to operations that it vouches for (``torch.use_deterministic_algorithms``; others
    raise RuntimeError) and cuBLAS to one workspace. On the CPU nothing is switched. For run.json:

    Yields:
        "asked" and "used", the GPU's name and the switches in force.

    Raises:
        NoDeviceError: as ``torch_device``.
    """
    device = torch_device(name)
    if device.type == "cpu":
        yield _facts(name, device)
        return
    # cuBLAS reads it when it is first used.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    before = torch.get_deterministic_debug_mode()
    torch.use_deterministic_algorithms(True)
    try:
        yield _facts(name, device)
    finally:
        torch.set_deterministic_debug_mode(before)


def _facts(name: Device, device: torch.device) -> dict[str, Any]:
    return {
        "asked": name,
        "used": device.type,
        "gpu": None if device.type == "cpu" else torch.cuda.get_device_name(device),
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "cublas_workspace_config": os.environ.get("CUBLAS_WORKSPACE_CONFIG"),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "cudnn_deterministic": torch.backends.cudnn.deterministic,
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
    }
