"""What the words for devices and dtypes mean on this machine."""

from __future__ import annotations

from typing import Any

import torch

from explorer.checkpoints.files import brief
from explorer.errors import DeviceError
from explorer.models.split import SPLIT

DEVICE_TYPES = ("cpu", "cuda", "mps")


def choose_device(device: str) -> torch.device:
    """The device that a name means ("auto": a GPU where there is one); DeviceError where it is not here.

    Of "split" the one that has all but the decoder layers.
    """
    if device in ("auto", SPLIT):
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        if chosen.type in DEVICE_TYPES:
            torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise DeviceError(f"device {device!r} is not usable here ({brief(error)}): choose auto or cpu") from error
    if chosen.type not in DEVICE_TYPES:
        raise DeviceError(f"device {device!r} is not supported: choose auto, cpu, cuda or {SPLIT}")
    return chosen


def choose_dtype(dtype: str, device: torch.device, config: Any) -> torch.dtype:
    """The dtype that a name means for a model of this config; DeviceError for one that cannot be.

    "auto" is float32 on a CPU (exact, and fastest on most), else bfloat16, or float16 on a GPU that lacks it. Never
    float16 for Qwen2: its activations leave float16's range, and the logits are then not numbers.
    """
    known = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
    if dtype not in (*known, "auto"):
        raise DeviceError(f"unknown dtype {dtype!r}: choose auto, {', '.join(known)}")
    is_qwen2 = str(getattr(config, "model_type", "")).startswith("qwen2")
    if dtype == "float16" and is_qwen2:
        raise DeviceError("Qwen2's numbers leave the range of float16: choose bfloat16 or float32")
    if dtype in known:
        return known[dtype]
    if device.type == "cpu":
        return torch.float32
    if device.type == "cuda" and torch.cuda.is_available() and not torch.cuda.is_bf16_supported(False):
        return torch.float32 if is_qwen2 else torch.float16
    return torch.bfloat16
