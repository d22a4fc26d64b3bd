"""A key-value cache that takes whole trees and keeps one path of them.

One preallocated tensor holds all layers, so committing the accepted rows of a tree is one gather and one copy. Rows of
the last pass lie after the committed ones until ``commit`` or the next pass. RoPE is applied at prefix length + depth,
which is the row's final position too, so moving a row never needs another rotation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor
from transformers import Cache
from transformers.cache_utils import CacheLayerMixin

from kernels.dispatch import pick
from kernels.tree_attention.inputs import IN_ORDER, KeyLayout


@dataclass(frozen=True)
class CacheShape:
    """Sizes shared by all layers of a model."""

    num_layers: int
    num_kv_heads: int
    head_dim: int


class TreeCacheLayer(CacheLayerMixin):
    """One layer's window on the shared storage."""

    def __init__(self, owner: TreeCache, index: int) -> None:
        super().__init__()
        self._owner = owner
        self._index = index
        self.is_initialized = True

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing to do: the storage exists from the start."""

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Write [1, kv_heads, R, D] after the committed tokens; returns views of all keys and values so far."""
        return self._owner.write(self._index, key_states, value_states)

    def get_seq_length(self) -> int:
        """Committed tokens."""
        return self._owner.length

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """(number of keys, offset) of a pass of ``query_length`` rows."""
        return self._owner.length + query_length, 0

    def get_max_length(self) -> int:
        """-1: the storage grows on demand."""
        return -1


class TreeCache(Cache):
    """Keys and values [layers, 2, kv_heads, capacity, head_dim], batch 1. ``length`` counts committed tokens.

    backend: what moves the accepted rows, resolved for ``device``.
    """

    def __init__(
        self, shape: CacheShape, capacity: int, dtype: torch.dtype, device: torch.device, backend: str = "naive"
    ) -> None:
        super().__init__(layers=[TreeCacheLayer(self, i) for i in range(shape.num_layers)])
        self.shape = shape
        self._storage = torch.empty(
            shape.num_layers, 2, shape.num_kv_heads, capacity, shape.head_dim, dtype=dtype, device=device
        )
        self._move_rows = pick("compact_kv", backend, device)
        self.length = 0
        self.num_pending = 0
        self._views: tuple[tuple[Tensor, ...], ...] = ()  # of the announced pass, see _make_views

    @property
    def layout(self) -> KeyLayout:
        """Where the keys of the pass that ``reserve`` announced lie, for the attention."""
        return IN_ORDER

    @property
    def storage(self) -> Tensor:
        """[layers, 2, kv_heads, capacity, head_dim]: all there is room for; another tensor once it has grown."""
        return self._storage

    @property
    def device_table(self) -> Tensor | None:
        """[capacity] the device's table of slots, where tokens lie in slots."""
        return None

    @property
    def capacity(self) -> int:
        """Tokens that fit before the storage has to grow."""
        return self._storage.shape[3]

    def reserve(self, num_rows: int) -> None:
        """Make room for a pass of ``num_rows`` rows after the committed tokens."""
        needed = self.length + num_rows
        if needed > self.capacity:
            layers, two, heads, _, dim = self._storage.shape
            grown = self._storage.new_empty(layers, two, heads, max(needed, self.capacity * 3 // 2), dim)
            grown[:, :, :, : self.length] = self._storage[:, :, :, : self.length]
            self._storage = grown
        self.num_pending = num_rows
        self._views = self._make_views()

    def write(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Store one layer's rows of the pass that ``reserve`` announced; returns [1, kv_heads, length + R, D] views."""
        if key.shape[2] != self.num_pending:
            raise ValueError(f"reserved {self.num_pending} rows, got {key.shape[2]}")
        new_keys, new_values, keys, values = self._views
        new_keys[layer].copy_(key)
        new_values[layer].copy_(value)
        return keys[layer], values[layer]

    def commit(self, rows: Sequence[int]) -> None:
        """Keep these pending rows, ascending, right after the committed tokens; all others are forgotten."""
        self._check_commit(rows)
        if rows[-1] != len(rows) - 1:  # otherwise they already lie where they belong
            self._move_rows(self._storage, torch.tensor(rows, device=self._storage.device), self.length)
        self.length, self.num_pending = self.length + len(rows), 0

    def truncate(self, length: int) -> None:
        """Keep the first ``length`` committed tokens; what was committed after them was a guess that failed."""
        self._check_truncate(length)
        self.length, self.num_pending = length, 0

    def committed(self) -> Tensor:
        """[layers, 2, kv_heads, length, head_dim]: what is committed, for comparison with a fresh prefill."""
        return self._storage[:, :, :, : self.length]

    def _make_views(self) -> tuple[tuple[Tensor, ...], ...]:
        """A pass's new keys, its new values, all keys and all values, by layer [1, kv_heads, rows, D].

        Made at once: cut out layer by layer they would cost a small model's pass a hundredth of its time.
        """
        end = self.length + self.num_pending
        held = self._storage[:, :, None, :, :end].unbind(1)
        new = self._storage[:, :, None, :, self.length : end].unbind(1)
        return (*(tensor.unbind(0) for tensor in new), *(tensor.unbind(0) for tensor in held))

    def _check_commit(self, rows: Sequence[int]) -> None:
        if not rows or rows[0] < 0 or rows[-1] >= self.num_pending or any(a >= b for a, b in pairwise(rows)):
            raise ValueError(f"cannot commit rows {list(rows)} of {self.num_pending}")

    def _check_truncate(self, length: int) -> None:
        if not 0 <= length <= self.length:
            raise ValueError(f"cannot truncate a cache of {self.length} tokens to {length}")
