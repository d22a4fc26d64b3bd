"""A drafter's keys and values in room made beforehand, so that captured passes find them where they were."""

from __future__ import annotations

from torch import Tensor

from explorer.models.cache import TreeCache


class RoomyDraftCache(TreeCache):
    """What a pass writes is committed at once, as in the DraftCache of explorer.models.eagle_layer."""

    def write(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Append one layer's pairs [1, kv_heads, R, D]; returns views of all of the layer's, [1, kv_heads, length, D].

        The layers of a pass come in order: the first makes room, the last commits.
        """
        num_rows = key.shape[2]
        if layer == 0:
            self.reserve(num_rows)
        held = super().write(layer, key, value)
        if layer == len(self.storage) - 1:
            self.commit(range(num_rows))
        return held
