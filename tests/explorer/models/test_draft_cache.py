"""The drafter's cache with room: it holds what the growing one holds, and stays where it is."""

from __future__ import annotations

import torch

from explorer.models.cache import CacheShape
from explorer.models.draft_cache import RoomyDraftCache
from explorer.models.eagle_layer import DraftCache


def test_equals_the_cache_that_grows() -> None:
    roomy = RoomyDraftCache(CacheShape(2, 2, 4), 16, torch.float32, torch.device("cpu"))
    growing, storage = DraftCache(), roomy.storage
    generator = torch.Generator().manual_seed(0)
    for num_rows, kept in ((3, 3), (4, 5), (1, 6), (2, 8)):
        for layer in range(2):
            key, value = torch.randn(2, 1, 2, num_rows, 4, generator=generator)
            for ours, theirs in zip(roomy.write(layer, key, value), growing.write(layer, key, value), strict=True):
                assert torch.equal(ours, theirs)
        assert roomy.length == growing.length
        for cache in (roomy, growing):
            cache.truncate(kept)
    assert roomy.storage is storage
