"""Weights stored as 8-bit integers, in the layout that the package compressed-tensors calls ``int-quantized``.

A matrix NAME [outputs, inputs] is int8, and NAME_scale beside it float16: a scale for every 64 weights of a row,
[outputs, inputs / 64], or one for the row, [outputs, 1], where 64 does not divide it. A weight is integer times scale.
Only weights are stored so; products are computed in the target's dtype as ever. Source: vllm-project/compressed-tensors
(`src/compressed_tensors/compressors/quantized_compressors/naive_quantized.py`, `quantization/quant_config.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from explorer.errors import CheckpointError

if TYPE_CHECKING:
    from explorer.checkpoints.files import Report

SCALE = "_scale"
CONFIG_KEY = "quantization_config"
GROUP_SIZE = 64
_LARGEST = 127
_MAX_SCALE = torch.finfo(torch.float16).max / 128  # every int8 times it is a float16
_EMBEDDINGS = ("embed", "wte", "wpe")  # looked up, not multiplied; often a copy of the target's, which rounding hides


def with_scales(wanted: Callable[[str], bool]) -> Callable[[str], bool]:
    """A filter of tensor names that takes a scale along with its matrix, and only then."""
    return lambda name: wanted(name.removesuffix(SCALE))


def dequantize(tensors: Mapping[str, Tensor], report: Report) -> dict[str, Tensor]:
    """The tensors with float16 in place of every int8 matrix and its scale; what is no such pair goes into ``report``.

    Integer times scale is exact in float32, and rounded once.
    """
    found: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if name.endswith(SCALE):
            _check_owner(name, tensors, report)
        elif tensor.dtype != torch.int8 or (tensor.dim() != 2 and name + SCALE not in tensors):
            found[name] = tensor
        elif _check_pair(name, tensor, tensors.get(name + SCALE), report):
            scale = tensors[name + SCALE]
            found[name] = (_in_groups(tensor).float() * scale.float()[..., None]).half().view(tensor.shape)
    return found


def _check_owner(name: str, tensors: Mapping[str, Tensor], report: Report) -> None:
    owner = tensors.get(name.removesuffix(SCALE))
    if owner is None or owner.dtype != torch.int8:
        is_there = "is not there" if owner is None else f"is {_dtype(owner)}"
        report.add(f"{name} is a scale, which only int8 matrices have, and {name.removesuffix(SCALE)!r} {is_there}")


def _check_pair(name: str, tensor: Tensor, scale: Tensor | None, report: Report) -> bool:
    """Whether an int8 tensor is a matrix with the one scale that fits it; notes what is wrong."""
    if tensor.dim() != 2:
        report.add(f"{name} is int8 with a scale and has shape {list(tensor.shape)}, expected a matrix")
        return False
    expected = [len(tensor), _num_groups(tensor)]
    if scale is None:
        report.add(f"{name} is int8 without its scale: expected {name}{SCALE}, float16 {expected}")
    elif list(scale.shape) != expected or scale.dtype != torch.float16:
        found = f"{_dtype(scale)} {list(scale.shape)}"
        report.add(f"{name}{SCALE} is {found}, expected float16 {expected} for int8 {list(tensor.shape)}")
    elif not bool(((scale >= 0) & (scale <= _MAX_SCALE)).all()):
        report.add(f"{name}{SCALE} must hold numbers from 0 to {_MAX_SCALE}")
    else:
        return True
    return False


def quantize(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors as they are stored: floating matrices as int8 with a scale, all others as they are.

    Embeddings stay too. No weight moves by more than half its scale, before it is rounded to float16. Raises
    CheckpointError for weights that float16 does not have.
    """
    stored: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        is_embedding = any(part in name for part in _EMBEDDINGS)
        if tensor.dim() != 2 or not tensor.is_floating_point() or not tensor.numel() or is_embedding:
            stored[name] = tensor
            continue
        groups = _in_groups(tensor).float()
        least = groups.abs().amax(-1) / _LARGEST
        if not bool((least <= _MAX_SCALE).all()):
            raise CheckpointError(f"{name} has weights that are not finite, or too large for float16")
        scale = _round_up(least)
        divisor = scale.float().masked_fill(scale == 0, 1)  # where all weights are zero
        integers = (groups / divisor[..., None]).round().to(torch.int8)
        stored |= {name: integers.view(tensor.shape), name + SCALE: scale}
    return stored


def quantization_config(stored: Mapping[str, Tensor]) -> dict[str, Any]:
    """What config.json says of such tensors to programs that know the layout; here the tensors tell it themselves."""
    matrices = {name: tensor for name, tensor in stored.items() if name + SCALE in stored}
    whole = [name for name, tensor in matrices.items() if tensor.shape[1] % GROUP_SIZE]
    if len(whole) == len(matrices):
        groups = [_config_group(["Linear"], None)]
    else:  # a module's own name goes before its class
        groups = [_config_group(["Linear"], GROUP_SIZE)] + ([_config_group(_modules(whole), None)] if whole else [])
    return {
        "quant_method": "compressed-tensors",
        "format": "int-quantized",
        "quantization_status": "compressed",
        "config_groups": {f"group_{number}": group for number, group in enumerate(groups)},
        "ignore": [],
    }


def _config_group(targets: list[str], group_size: int | None) -> dict[str, Any]:
    weights = {
        "num_bits": 8,
        "type": "int",
        "symmetric": True,
        "strategy": "channel" if group_size is None else "group",
        "group_size": group_size,
        "dynamic": False,
    }
    return {"targets": targets, "weights": weights, "input_activations": None, "output_activations": None}


def _modules(names: Iterable[str]) -> list[str]:
    return [name.removesuffix(".weight") for name in names]


def _num_groups(matrix: Tensor) -> int:
    """Scales that a row of this matrix has."""
    return 1 if matrix.shape[1] % GROUP_SIZE else matrix.shape[1] // GROUP_SIZE


def _in_groups(matrix: Tensor) -> Tensor:
    """[outputs, scales, weights of a scale]."""
    count = _num_groups(matrix)
    return matrix.reshape(len(matrix), count, matrix.shape[1] // count if count else GROUP_SIZE)


def _round_up(numbers: Tensor) -> Tensor:
    """Positive float32 as the next float16 that is no smaller: rounded down, the largest weight would be cut."""
    rounded = numbers.half()
    return torch.where(rounded.float() < numbers, (rounded.view(torch.int16) + 1).view(torch.float16), rounded)


def _dtype(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
