"""A key-value cache of numbered slots: commit and rollback exchange numbers, and no key or value is ever copied.

A table says which slot holds which token; attention reads keys through it. Rows that were not accepted give their
slots back to a free list. The table is kept on the host, where the verdict is known, and what changed of it goes to the
device in one small copy with the next pass, which needs new slots there anyway.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from explorer.models.cache import CacheShape, TreeCache
from kernels.tree_attention.inputs import KeyLayout


class SlotCache(TreeCache):
    """Keys and values [layers, 2, kv_heads, num_slots, head_dim], batch 1, each token in a slot of its own.

    Every slot is at any time in exactly one of three places: the table's committed part, its pending part, the free
    list (tested over thousands of random steps).
    """

    def __init__(self, shape: CacheShape, capacity: int, dtype: torch.dtype, device: torch.device) -> None:
        super().__init__(shape, capacity, dtype, device)
        self._free = list(range(capacity))[::-1]  # taken from the end: neighbours in time are neighbours in memory
        self._table: list[int] = []  # slot of each committed token, then of each pending row
        self._num_sent = 0  # entries of the table that the device's copy has
        self._device_table = torch.empty(capacity, dtype=torch.int64, device=device)

    @property
    def layout(self) -> KeyLayout:
        """The slots of the committed tokens and the pending rows."""
        return KeyLayout(slots=self._device_table[: len(self._table)])

    @property
    def device_table(self) -> Tensor | None:
        """[capacity] the slot of each token as the device knows it; entries beyond the announced pass may be old."""
        return self._device_table

    @property
    def slots(self) -> tuple[list[int], list[int], list[int]]:
        """Slots of the committed tokens, of the pending rows, and those that are free."""
        return self._table[: self.length], self._table[self.length :], list(self._free)

    def reserve(self, num_rows: int) -> None:
        """Take a slot for each row of the next pass; rows of a pass that was never committed give theirs back."""
        self._drop(self.length)
        missing = num_rows - len(self._free)
        if missing > 0:
            self._grow(max(missing, self.capacity // 2))
        first = len(self._free) - num_rows
        self._table += self._free[first:][::-1]
        del self._free[first:]
        self.num_pending = num_rows
        self._send()

    def write(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Store one layer's rows in their slots; returns views [1, kv_heads, num_slots, D] to be read by ``layout``."""
        if key.shape[2] != self.num_pending:
            raise ValueError(f"reserved {self.num_pending} rows, got {key.shape[2]}")
        slots = self._device_table[self.length : len(self._table)]
        keys, values = self._storage[layer, 0], self._storage[layer, 1]
        keys.index_copy_(1, slots, key[0])
        values.index_copy_(1, slots, value[0])
        return keys[None], values[None]

    def commit(self, rows: Sequence[int]) -> None:
        """Keep the slots of these pending rows, ascending, for the next tokens; the others' are free again."""
        self._check_commit(rows)
        pending, is_kept = self._table[self.length :], set(rows)
        self._free += [pending[row] for row in range(len(pending) - 1, -1, -1) if row not in is_kept]
        self._table[self.length :] = [pending[row] for row in rows]
        num_in_place = len(rows) if rows[-1] == len(rows) - 1 else 0
        self._num_sent = min(self._num_sent, self.length + num_in_place)
        self.length, self.num_pending = len(self._table), 0

    def truncate(self, length: int) -> None:
        """Keep the first ``length`` committed tokens; the slots of the others are free again."""
        self._check_truncate(length)
        self._drop(length)
        self.length, self.num_pending = length, 0

    def committed(self) -> Tensor:
        """[layers, 2, kv_heads, length, head_dim]: what is committed, in order."""
        return self._storage[:, :, :, self._table[: self.length]]

    def _drop(self, length: int) -> None:
        """Free all slots of the table from ``length`` on, so that the next rows take them in the same order."""
        self._free += self._table[length:][::-1]
        del self._table[length:]
        self._num_sent = min(self._num_sent, length)

    def _grow(self, num_new: int) -> None:
        """Add free slots; those that exist keep their numbers and what they hold."""
        capacity = self.capacity
        layers, two, heads, _, dim = self._storage.shape
        grown = self._storage.new_empty(layers, two, heads, capacity + num_new, dim)
        grown[:, :, :, :capacity] = self._storage
        self._storage = grown
        self._free[:0] = range(capacity + num_new - 1, capacity - 1, -1)
        table = self._device_table.new_empty(capacity + num_new)
        table[:capacity] = self._device_table
        self._device_table = table

    def _send(self) -> None:
        """Bring the device's table up to date: one copy of what changed since the last pass."""
        changed = torch.tensor(self._table[self._num_sent :], dtype=torch.int64)
        self._device_table[self._num_sent : len(self._table)].copy_(changed, non_blocking=True)
        self._num_sent = len(self._table)
