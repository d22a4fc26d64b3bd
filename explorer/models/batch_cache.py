"""Keys and values of several sequences of one length, to measure what passes over a batch cost."""

from __future__ import annotations

from torch import Tensor

from explorer.models.cache import CacheShape, TreeCache


class BatchCache(TreeCache):
    """A copy of another cache's committed tokens for each of ``num_sequences`` sequences.

    The rows of a pass lie behind them until the next pass; none is ever committed, so that every pass starts alike.
    """

    def __init__(self, prefix: TreeCache, shape: CacheShape, num_sequences: int, num_rows: int) -> None:
        held = prefix.committed()  # [layers, 2, kv_heads, length, head_dim]
        super().__init__(shape, 0, held.dtype, held.device)
        self.num_sequences = num_sequences
        self.length = held.shape[3]
        layers, two, heads, length, dim = held.shape
        self._batch = held.new_empty(layers, two, num_sequences, heads, length + num_rows, dim)
        self._batch[..., :length, :] = held[:, :, None]

    def reserve(self, num_rows: int) -> None:
        """Announce a pass; ValueError beyond the room that was asked for."""
        if self.length + num_rows > self._batch.shape[4]:
            raise ValueError(f"the batch has room for {self._batch.shape[4] - self.length} rows, not {num_rows}")
        self.num_pending = num_rows

    def write(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Store one layer's rows [B, kv_heads, R, D]; returns [B, kv_heads, length + R, D] views."""
        end = self.length + self.num_pending
        both = self._batch[layer, :, :, :, :end]
        both[0, :, :, self.length :], both[1, :, :, self.length :] = key, value
        return both[0], both[1]

    def committed(self) -> Tensor:
        """[layers, 2, B, kv_heads, length, head_dim]."""
        return self._batch[..., : self.length, :]
