"""A cache as a pass of fixed shapes sees it: where the committed tokens end is read on the device, not known here."""

from __future__ import annotations

import torch
from torch import Tensor

from explorer.models.cache import TreeCache
from kernels.tree_attention.inputs import KeyLayout


class FixedCache(TreeCache):
    """All of another cache's storage, for passes that are captured once and replayed while that cache grows.

    ``at`` comes first in every pass. What such a pass writes lies where the other cache's own pass of as many rows
    would have put it, so that it commits them. Good until the other cache's storage moves.
    """

    def __init__(self, cache: TreeCache) -> None:
        held = cache.storage
        super().__init__(cache.shape, 0, held.dtype, held.device)
        self._storage = held
        self._table = cache.device_table
        self._places = torch.empty(0, dtype=torch.int64)
        self._layout = KeyLayout()

    def at(self, prefix_len: Tensor, num_rows: int, skipped: int = 0) -> FixedCache:
        """Announce a pass of rows that lie ``skipped`` places behind the committed tokens; returns itself.

        prefix_len: [1] integers on the device, how many tokens are committed. Attention sees the keys from there on
        through its mask: that of the skipped places, too.
        """
        places = prefix_len.long() + torch.arange(skipped, skipped + num_rows, device=prefix_len.device)
        self._places = places if self._table is None else self._table.index_select(0, places)
        self._layout = KeyLayout(self._table, prefix_len.int())
        return self

    @property
    def layout(self) -> KeyLayout:
        """Where the keys of the announced pass lie."""
        return self._layout

    def write(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Store one layer's rows; returns all of the layer's storage, [1, kv_heads, capacity, D] views."""
        keys, values = self._storage[layer, 0], self._storage[layer, 1]
        keys.index_copy_(1, self._places, key[0])
        values.index_copy_(1, self._places, value[0])
        return keys[None], values[None]
