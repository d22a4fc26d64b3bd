"""Whether the Triton attention agrees with the reference on a device: asked before it is trusted with a target."""

from __future__ import annotations

import torch
import triton

from kernels.tree_attention import naive
from kernels.tree_attention import triton as fused
from kernels.tree_attention.inputs import KeyLayout

_NUM_ROWS, _PREFIX = 5, 300  # long enough for several parts and their merge
_TOLERANCE = {torch.float32: 1e-4}
_HALF_TOLERANCE = 3e-2  # of 16 bits


def difference(heads: tuple[int, int], dim: int, dtype: torch.dtype, device: torch.device) -> float:
    """Largest difference from the reference in float64, in order and through slots; values are near 1."""
    generator = torch.Generator().manual_seed(0)
    num_keys = _PREFIX + _NUM_ROWS
    query = torch.randn(1, heads[0], _NUM_ROWS, dim, generator=generator).to(device, dtype)
    key, value = (torch.randn(1, heads[1], num_keys, dim, generator=generator).to(device, dtype) for _ in range(2))
    mask = torch.eye(_NUM_ROWS, dtype=torch.bool, device=device)
    mask[:, 0] = True
    worst = 0.0
    for layout in (KeyLayout(), KeyLayout(torch.arange(num_keys - 1, -1, -1, device=device))):
        got = fused.tree_attention(query, key, value, fused.tree_mask(mask, _PREFIX), dim**-0.5, layout)
        expected = naive.tree_attention(query.double(), key.double(), value.double(), mask, dim**-0.5, layout)
        worst = max(worst, float((got.double() - expected).abs().max().nan_to_num(nan=float("inf"))))
    return worst


def agrees(heads: tuple[int, int], dim: int, dtype: torch.dtype, device: torch.device) -> bool:
    """Whether the kernels compile, run and give the reference's numbers for a model of these (query, kv) heads."""
    try:
        return difference(heads, dim, dtype, device) <= _TOLERANCE.get(dtype, _HALF_TOLERANCE)
    except (RuntimeError, triton.TritonError):
        return False
