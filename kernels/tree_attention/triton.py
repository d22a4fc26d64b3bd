"""Tree attention as two Triton kernels: running softmax over a part of the keys, then a merge of the parts.

Derivation and figures: README.md beside this file. Launch configurations are fixed by capability; nothing is tuned,
compiled or asked of a device before the first call.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from kernels.tree_attention.inputs import IN_ORDER, KeyLayout, check_mask, pack_mask
from kernels.tree_attention.triton_parts import MAX_PARTS, attend_part, merge_parts

MAX_HEAD_DIM = 256
DTYPES = (torch.float16, torch.bfloat16, torch.float32)
LOG2_E = 1.4426950408889634
_MIN_KEYS_A_PART = 256  # fewer, and writing and merging a part costs more than it gains
_INTERPRETED_PROGRAMS = 8  # what stands for the number of multiprocessors where there is no device


class Launch(NamedTuple):
    """A fixed configuration: query rows (times heads of a group) and keys of one tile, warps, pipeline stages."""

    block_m: int
    block_n: int
    num_warps: int
    num_stages: int


def tree_mask(mask: Tensor, _prefix_len: int) -> Tensor:
    """The form of a tree mask [R, R] bool that suits this implementation: [R, W] int64 words, the prefix left out."""
    return pack_mask(mask)


def tree_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: float, layout: KeyLayout = IN_ORDER
) -> Tensor:
    """What kernels.tree_attention.naive computes, from the same arguments; sums in float32.

    Head sizes up to 256 (in registers padded to a power of two), the dtype one of ``DTYPES``. A row that may look at no
    key gives zeros. Raises ValueError for other shapes and dtypes.
    """
    _check(query, key, value)
    num_heads, num_rows, dim = query.shape[1:]
    available = key.shape[2] if layout.slots is None else layout.slots.shape[0]
    num_tail = check_mask(mask, num_rows, available)
    words = pack_mask(mask) if mask is not None and mask.dtype == torch.bool else mask
    query, key, value = (tensor if tensor.stride(-1) == 1 else tensor.contiguous() for tensor in (query, key, value))
    group = num_heads // key.shape[1]
    how = choose_launch(num_rows * group, dim, query.element_size(), _capability(query.device))
    num_blocks = triton.cdiv(num_rows * group, how.block_m)
    num_parts = _num_parts(available - num_tail, num_blocks * key.shape[1], query.device)
    output = torch.empty(1, num_rows, num_heads, dim, dtype=query.dtype, device=query.device)
    parts, weights = output, output
    if num_parts > 1:
        parts = torch.empty(num_parts, num_rows, num_heads, dim, dtype=torch.float32, device=query.device)
        weights = torch.empty(num_parts, num_rows, num_heads, dtype=torch.float32, device=query.device)
    any_tensor = query  # stands where a flag says that none is read
    attend_part[num_blocks, num_parts, key.shape[1]](
        (
            *(query, key, value),
            any_tensor if words is None else words,
            any_tensor if layout.slots is None else layout.slots,
            any_tensor if layout.prefix_len is None else layout.prefix_len,
            *(parts, weights),
        ),
        (*query.stride()[1:3], *key.stride()[1:3], *value.stride()[1:3]),
        *(num_rows, num_tail, available - num_tail),
        (
            *(group, dim, max(16, triton.next_power_of_2(dim)), how.block_m, how.block_n),
            *(words is not None, layout.slots is not None, layout.prefix_len is not None, num_parts > 1),
            *(_needs_float32(query.dtype), scale * LOG2_E),
        ),
        num_warps=how.num_warps,
        num_stages=how.num_stages,
        enable_fp_fusion=True,
    )
    if num_parts > 1:
        shape = (dim, triton.next_power_of_2(dim))
        num_results = num_rows * num_heads
        merge_parts[(num_results,)](parts, weights, output, num_parts, num_results, shape, enable_fp_fusion=True)
    return output.transpose(1, 2)


def choose_launch(num_queries: int, dim: int, element_size: int, capability: tuple[int, int]) -> Launch:
    """The configuration for rows times group heads, a head size, a dtype's bytes and a compute capability.

    Tiles must fit the shared memory of a block: 227 KB from 9.0 on to below 12.0, 163 KB for 8.0, 99 KB for the others
    (8.6, 8.9 and Blackwell's workstation parts, 12.0).
    """
    is_large = capability[0] in (9, 10, 11) or capability == (8, 0)
    if element_size == 4:  # exact float32 products run on the plain units: small tiles, or registers spill
        block_m, block_n, stages = (16 if dim > 64 else 32), (16 if dim > 128 else 32), 2
    elif dim > 128:
        block_m, block_n, stages = (64 if is_large else 32), 32, 2
    else:
        block_m, block_n, stages = (128 if is_large else 64), 64, (3 if is_large else 2)
    block_m = max(16, min(block_m, triton.next_power_of_2(num_queries)))
    needs_many = dim > 64 if element_size == 4 else block_m >= (128 if is_large and dim <= 128 else 64)
    return Launch(block_m, block_n, 8 if needs_many else 4, stages)


def _num_parts(prefix_len: int, num_programs: int, device: torch.device) -> int:
    """Parts that the prefix is split into: enough to busy every multiprocessor, none needlessly short.

    It follows from shapes alone, so equal passes sum in an equal order.
    """
    wanted = triton.cdiv(_num_multiprocessors(device), num_programs)
    return max(1, min(wanted, triton.cdiv(prefix_len, _MIN_KEYS_A_PART), MAX_PARTS))


@cache
def _capability(device: torch.device) -> tuple[int, int]:
    return torch.cuda.get_device_capability(device) if device.type == "cuda" else (9, 0)


@cache
def _num_multiprocessors(device: torch.device) -> int:
    if device.type != "cuda":
        return _INTERPRETED_PROGRAMS
    properties: Any = torch.cuda.get_device_properties(device)
    return int(properties.multi_processor_count)


def _needs_float32(dtype: torch.dtype) -> bool:
    """Whether products must be taken in float32: the interpreter multiplies the bit patterns of bfloat16 numbers."""
    return dtype == torch.bfloat16 and bool(triton.knobs.runtime.interpret)


def _check(query: Tensor, key: Tensor, value: Tensor) -> None:
    dim, dtype = query.shape[-1], query.dtype
    if dim > MAX_HEAD_DIM:
        raise ValueError(f"head size {dim} is not supported: at most {MAX_HEAD_DIM}")
    if dtype not in DTYPES or not dtype == key.dtype == value.dtype:
        raise ValueError(f"queries, keys and values are {dtype}, {key.dtype}, {value.dtype}: give all one float dtype")
    if query.shape[0] != 1 or key.shape != value.shape or query.shape[1] % key.shape[1]:
        raise ValueError(f"shapes {tuple(query.shape)}, {tuple(key.shape)}, {tuple(value.shape)} do not go together")
