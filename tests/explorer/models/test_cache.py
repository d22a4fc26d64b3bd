"""The tree cache: whatever path is committed, the cache equals one that only ever read that path."""

from __future__ import annotations

import pytest
import torch

from explorer.models.cache import CacheShape, TreeCache

SHAPE = CacheShape(num_layers=2, num_kv_heads=2, head_dim=4)


def make(capacity: int = 8) -> TreeCache:
    return TreeCache(SHAPE, capacity, torch.float32, torch.device("cpu"))


def write(cache: TreeCache, rows: torch.Tensor) -> None:
    """One pass of rows [R]: layer and head are visible in the values, so mixing any of them up shows."""
    cache.reserve(len(rows))
    for layer in range(SHAPE.num_layers):
        key = rows[None, None, :, None].float().expand(1, 2, -1, 4) + 1000 * (layer + 1)
        cache.update(key, -key, layer)


def committed(cache: TreeCache) -> list[int]:
    held = cache.committed()
    for layer in range(SHAPE.num_layers):
        assert torch.equal(held[layer, 0], -held[layer, 1])
        assert torch.equal(held[layer, 0] - 1000 * layer, held[0, 0])
    return (held[0, 0, 0, :, 0] - 1000).int().tolist()


@pytest.mark.parametrize("rows", [[0], [0, 1], [0, 2, 5], [0, 5], [5]], ids=str)
def test_commit_keeps_exactly_the_path(rows: list[int]) -> None:
    cache = make()
    write(cache, torch.arange(3))
    cache.commit([0, 1, 2])
    write(cache, torch.arange(10, 16))
    cache.commit(rows)
    assert committed(cache) == [0, 1, 2] + [10 + row for row in rows]


def test_rows_that_were_not_committed_are_overwritten() -> None:
    cache = make()
    write(cache, torch.arange(4))
    cache.commit([0])
    write(cache, torch.tensor([7, 8]))
    cache.commit([0, 1])
    assert committed(cache) == [0, 7, 8]


def test_truncating_forgets_the_newest_tokens() -> None:
    cache = make()
    write(cache, torch.arange(5))
    cache.commit(range(5))
    cache.truncate(3)
    assert committed(cache) == [0, 1, 2]
    write(cache, torch.tensor([7]))
    cache.commit([0])
    assert committed(cache) == [0, 1, 2, 7]
    for length in (-1, 5):
        with pytest.raises(ValueError, match="cannot truncate"):
            cache.truncate(length)


def test_storage_grows_and_keeps_what_it_holds() -> None:
    cache = make(capacity=2)
    write(cache, torch.arange(2))
    cache.commit([0, 1])
    write(cache, torch.arange(50, 90))
    cache.commit([0, 39])
    assert cache.capacity >= 42
    assert committed(cache) == [0, 1, 50, 89]


@pytest.mark.parametrize("rows", [[], [3], [1, 1], [1, 0], [-1, 0]], ids=str)
def test_impossible_commits_are_refused(rows: list[int]) -> None:
    cache = make()
    write(cache, torch.arange(3))
    with pytest.raises(ValueError, match="cannot commit"):
        cache.commit(rows)


def test_a_pass_of_another_size_than_reserved_is_refused() -> None:
    cache = make()
    cache.reserve(2)
    with pytest.raises(ValueError, match="reserved 2 rows"):
        cache.write(0, torch.zeros(1, 2, 3, 4), torch.zeros(1, 2, 3, 4))
