"""A cache seen by passes of fixed shapes: they write where the cache itself would have, at any length."""

from __future__ import annotations

import pytest
import torch

from explorer.models.cache import CacheShape, TreeCache
from explorer.models.fixed_cache import FixedCache
from explorer.models.slot_cache import SlotCache

SHAPE = CacheShape(num_layers=2, num_kv_heads=2, head_dim=4)
CPU = torch.device("cpu")


def make(kind: str) -> TreeCache:
    return SlotCache(SHAPE, 32, torch.float32, CPU) if kind == "slots" else TreeCache(SHAPE, 32, torch.float32, CPU)


def write(cache: TreeCache, tokens: list[int]) -> None:
    for layer in range(SHAPE.num_layers):
        key = torch.tensor(tokens)[None, None, :, None].float().expand(1, 2, -1, 4) + 100 * layer
        cache.update(key, -key, layer)


@pytest.mark.parametrize("kind", ["rows", "slots"])
def test_rows_lie_where_the_caches_own_pass_puts_them(kind: str) -> None:
    """A tree of five, padded to eight, of which a path is kept; again and again, so that slots are reused."""
    plain, held = make(kind), make(kind)
    fixed = FixedCache(held)
    for step in range(4):
        tokens, path = [10 * step + row for row in range(5)], [0, 2, 3]
        plain.reserve(5)
        write(plain, tokens)
        plain.commit(path)
        held.reserve(8)
        write(fixed.at(torch.tensor([held.length]), 8), [*tokens, -1, -2, -3])
        held.commit(path)
    assert torch.equal(held.committed(), plain.committed())


def test_skipped_places_keep_what_they_hold() -> None:
    held = make("rows")
    held.reserve(6)
    fixed, length = FixedCache(held), torch.tensor([0])
    write(fixed.at(length, 3), [1, 2, 3])
    write(fixed.at(length, 2, skipped=3), [4, 5])
    held.commit(range(5))
    assert held.committed()[0, 0, 0, :, 0].tolist() == [1, 2, 3, 4, 5]


def test_the_layout_says_where_the_committed_tokens_end() -> None:
    held = make("slots")
    held.reserve(2)
    layout = FixedCache(held).at(torch.tensor([7]), 2).layout
    assert layout.prefix_len is not None and layout.prefix_len.dtype == torch.int32
    assert layout.prefix_len.tolist() == [7]
    assert layout.slots is held.device_table
