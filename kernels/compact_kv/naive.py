"""The reference: one gather and one copy."""

from __future__ import annotations

from torch import Tensor


def compact_kv(storage: Tensor, rows: Tensor, length: int) -> None:
    """Move pending rows to the end of the committed ones, in place, in all layers.

    storage: [layers, 2, kv_heads, capacity, D], contiguous; the pending rows lie from ``length`` on. rows: [P] int64 on
    its device, ascending, which of them to keep; row i goes to ``length + i``. Whatever else lies behind is left as it
    is.
    """
    storage[:, :, :, length : length + len(rows)] = storage.index_select(3, rows + length)
