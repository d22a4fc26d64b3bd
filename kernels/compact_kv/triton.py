"""The same move as one Triton kernel over all layers, without the copy that the reference gathers into.

Derivation and figures: README.md beside this file.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

_ROWS_AT_ONCE = 32


def compact_kv(storage: Tensor, rows: Tensor, length: int) -> None:
    """What kernels.compact_kv.naive does, from the same arguments. Raises ValueError for storage with gaps."""
    if not storage.is_contiguous():
        raise ValueError("the storage must be contiguous")
    capacity, dim = storage.shape[3:]
    num_planes = storage.numel() // (capacity * dim)
    shape = (dim, triton.next_power_of_2(dim), min(_ROWS_AT_ONCE, triton.next_power_of_2(len(rows))))
    move_rows[(num_planes,)](storage, rows, len(rows), length, capacity * dim, shape, enable_fp_fusion=True)


@triton.jit(do_not_specialize=["num_rows", "length"])
def move_rows(storage, rows, num_rows, length, plane_size, SHAPE: tl.constexpr):
    """One program a plane: a layer, key or value, and head. SHAPE: dim, padded dim, rows moved at once.

    A row never moves up (``rows[i] >= i``), so what a chunk overwrites was read before: by an earlier chunk, or by this
    one, whose loads all end before its first store.
    """
    DIM: tl.constexpr = SHAPE[0]
    BLOCK_D: tl.constexpr = SHAPE[1]
    CHUNK: tl.constexpr = SHAPE[2]
    plane = storage + tl.program_id(0).to(tl.int64) * plane_size
    columns = tl.arange(0, BLOCK_D)
    for first in tl.range(0, num_rows, CHUNK):
        index = first + tl.arange(0, CHUNK)
        source = tl.load(rows + index, mask=index < num_rows, other=0).to(tl.int64)
        mask = (index < num_rows)[:, None] & (columns < DIM)[None, :]
        moved = tl.load(plane + (length + source)[:, None] * DIM + columns[None, :], mask=mask)
        tl.debug_barrier()
        target = (length + index).to(tl.int64)
        tl.store(plane + target[:, None] * DIM + columns[None, :], moved, mask=mask)
        tl.debug_barrier()
