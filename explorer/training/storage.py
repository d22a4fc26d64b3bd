"""Files of the recipes: written whole or not at all, so that a killed run resumes from the last good one."""

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor

from explorer.errors import SettingError


def replace_file(path: Path, data: bytes) -> None:
    """Write bytes beside `path` and move them over it in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.write_bytes(data)
    os.replace(partial, path)


def write_npz(path: Path, arrays: dict[str, Any], *, is_compressed: bool = False) -> None:
    """Write arrays as an `.npz`, atomically."""
    buffer = io.BytesIO()
    (np.savez_compressed if is_compressed else np.savez)(buffer, **arrays)
    replace_file(path, buffer.getvalue())


def read_npz(path: Path, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Read the named arrays; SettingError if the file is missing, broken or lacks one."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in names}
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        needed = ", ".join(names)
        raise SettingError(f"{path} is no training file with the arrays {needed} ({error}).") from error


def write_state(path: Path, state: dict[str, object]) -> None:
    """Write a training checkpoint (tensors and plain values), atomically."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    replace_file(path, buffer.getvalue())


def write_json(path: Path, value: object) -> None:
    """Write strict JSON with a final newline, atomically."""
    replace_file(path, (json.dumps(value, indent=2, allow_nan=False) + "\n").encode())


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """Write safetensors: floating tensors as float16, others as they are, atomically."""
    stored = {
        name: (tensor.half() if tensor.is_floating_point() else tensor).detach().cpu().contiguous()
        for name, tensor in tensors.items()
    }
    replace_file(path, save(stored, metadata={"format": "pt"}))
