"""Which implementation of an operation runs: pick(op, backend). Nothing is imported before it is picked."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch

BACKENDS = ("auto", "naive", "triton")
MIN_CAPABILITY = (8, 0)  # of a GPU: bfloat16 products and asynchronous copies
MAX_HEAD_DIM = 256
_IMPLEMENTATIONS = {
    ("tree_attention", "naive"): "kernels.tree_attention.naive",
    ("tree_attention", "triton"): "kernels.tree_attention.triton",
    ("tree_mask", "naive"): "kernels.tree_attention.naive",
    ("tree_mask", "triton"): "kernels.tree_attention.triton",
    ("compact_kv", "naive"): "kernels.compact_kv.naive",
    ("compact_kv", "triton"): "kernels.compact_kv.triton",
}


class BackendUnavailableError(RuntimeError):
    """An explicitly chosen backend that this installation or device does not have."""


def resolve(backend: str, device: torch.device | None = None, head_dim: int = 0) -> str:
    """The backend that ``backend`` means on ``device`` (None: the CPU) for heads of this size.

    "auto" takes the fastest that is there. A named one must be, or BackendUnavailableError says why it is not.
    """
    if backend not in BACKENDS:
        raise BackendUnavailableError(f"unknown backend {backend!r}: choose one of {', '.join(BACKENDS)}")
    if backend == "naive":
        return backend
    device = torch.device("cpu") if device is None else device
    if backend == "auto" and not _is_fastest_here(device):
        return "naive"
    reason = _why_no_triton(device, head_dim)
    if reason and backend == "triton":
        raise BackendUnavailableError(f"the triton backend is not usable here: {reason}; choose auto or naive")
    return "naive" if reason else "triton"


def pick(op: str, backend: str, device: torch.device | None = None) -> Callable[..., Any]:
    """The function that implements ``op``; raises BackendUnavailableError rather than fall back silently."""
    module = import_module(_IMPLEMENTATIONS[op, resolve(backend, device)])
    implementation: Callable[..., Any] = getattr(module, op)
    return implementation


def _is_fastest_here(device: torch.device) -> bool:
    """Whether Triton, where it can be used, is worth it: its interpreter on a CPU is for tests."""
    return device.type == "cuda"


def _why_no_triton(device: torch.device, head_dim: int) -> str | None:
    if find_spec("triton") is None:
        return "Triton is not installed"
    if head_dim > MAX_HEAD_DIM:
        return f"the target's head size {head_dim} is above {MAX_HEAD_DIM}"
    if os.environ.get("TRITON_INTERPRET") == "1":
        return None
    if device.type != "cuda" or torch.version.cuda is None:
        return f"it needs an NVIDIA GPU, and the device is {device.type}"
    capability = torch.cuda.get_device_capability(device)
    if capability < MIN_CAPABILITY:
        found, least = (".".join(map(str, pair)) for pair in (capability, MIN_CAPABILITY))
        return f"it needs compute capability {least}, and this GPU has {found}"
    return None
