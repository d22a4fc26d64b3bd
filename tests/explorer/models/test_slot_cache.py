"""The slot cache: it holds what the other cache holds, copies nothing, and never leaks or shares a slot."""

from __future__ import annotations

import random

import pytest
import torch

from explorer.models.cache import CacheShape, TreeCache
from explorer.models.slot_cache import SlotCache

SHAPE = CacheShape(num_layers=2, num_kv_heads=2, head_dim=4)
CPU = torch.device("cpu")


def make(capacity: int = 8) -> SlotCache:
    return SlotCache(SHAPE, capacity, torch.float32, CPU)


def write(cache: TreeCache, tokens: list[int]) -> None:
    """One pass of rows whose keys and values tell token, layer and kind."""
    cache.reserve(len(tokens))
    for layer in range(SHAPE.num_layers):
        key = torch.tensor(tokens)[None, None, :, None].float().expand(1, 2, -1, 4) + 1000 * (layer + 1)
        cache.update(key, -key, layer)


def read(cache: SlotCache, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
    """What attention finds: keys and values in the order of the layout's slots."""
    key, value = cache.write(layer, *last_rows(cache, layer))
    slots = cache.layout.slots
    assert slots is not None
    return key[0, 0, slots, 0], value[0, 0, slots, 0]


def last_rows(cache: SlotCache, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
    pending = cache.slots[1]
    storage = cache._storage[layer]
    return storage[0, None][:, :, pending].clone(), storage[1, None][:, :, pending].clone()


def assert_sound(cache: SlotCache) -> None:
    """Every slot is in exactly one place, and the device knows the table."""
    committed, pending, free = cache.slots
    assert sorted(committed + pending + free) == list(range(cache.capacity))
    assert len(committed) == cache.length
    assert len(pending) == cache.num_pending


def committed(cache: TreeCache) -> list[int]:
    held = cache.committed()
    assert torch.equal(held[:, 0], -held[:, 1])
    assert torch.equal(held[1, 0], held[0, 0] + 1000)
    return (held[0, 0, 0, :, 0] - 1000).int().tolist()


@pytest.mark.parametrize("rows", [[0], [0, 1], [0, 2, 5], [0, 5], [5]], ids=str)
def test_commit_keeps_exactly_the_path(rows: list[int]) -> None:
    cache = make(12)
    write(cache, [0, 1, 2])
    cache.commit([0, 1, 2])
    write(cache, list(range(10, 16)))
    cache.commit(rows)
    assert committed(cache) == [0, 1, 2] + [10 + row for row in rows]
    assert_sound(cache)


@pytest.mark.parametrize("seed", range(4))
def test_thousands_of_random_steps_leak_and_share_nothing(seed: int) -> None:
    """Against the cache that moves rows, and a plain list: passes, commits, truncations, passes never committed."""
    rng = random.Random(seed)
    cache, other, text = make(4), TreeCache(SHAPE, 4, torch.float32, CPU), list[int]()
    for number in range(1500):
        tokens = [rng.randrange(1000) for _ in range(rng.choice((1, 1, 2, 9, 16, 60)))]
        for each in (cache, other):
            write(each, tokens)
        assert_sound(cache)
        slots = cache.layout.slots
        assert slots is not None
        kept, waiting, _ = cache.slots
        assert slots.tolist() == kept + waiting, "the device's table is the host's"
        if rng.random() < 0.9:
            rows = sorted(rng.sample(range(len(tokens)), rng.randint(1, min(len(tokens), 6))))
            text += [tokens[row] for row in rows]
            for each in (cache, other):
                each.commit(rows)
        if rng.random() < 0.1 or len(text) > 150:
            text = text[: rng.randint(0, min(len(text), 100))]
            for each in (cache, other):
                each.truncate(len(text))
        if number % 25 == 0:
            assert_sound(cache)
            assert committed(cache) == committed(other) == text
    assert cache.capacity < 400, "slots were used again"


def test_attention_reads_the_prefix_and_the_rows_through_the_slots() -> None:
    cache = make(8)
    write(cache, [1, 2, 3, 4])
    cache.commit([0, 3])
    write(cache, [7, 8, 9])
    keys, values = read(cache, 1)
    assert (keys - 2000).int().tolist() == [1, 4, 7, 8, 9]
    assert torch.equal(keys, -values)


def test_nothing_is_copied_by_commit_and_rollback() -> None:
    cache = make(16)
    write(cache, list(range(8)))
    before = cache._storage.clone()
    cache.commit([0, 3, 7])
    cache.truncate(2)
    assert torch.equal(cache._storage, before)
    assert committed(cache) == [0, 3]


def test_growing_keeps_slots_and_what_they_hold() -> None:
    cache = make(2)
    write(cache, [5, 6])
    cache.commit([0, 1])
    slots = cache.slots[0]
    write(cache, list(range(100, 140)))
    cache.commit([0, 39])
    assert cache.slots[0][:2] == slots
    assert committed(cache) == [5, 6, 100, 139]
    assert_sound(cache)


def test_slots_of_a_chain_are_neighbours() -> None:
    """Plain decoding reads memory in order, as the other cache does."""
    cache = make(32)
    for token in range(10):
        write(cache, [token])
        cache.commit([0])
    assert cache.slots[0] == list(range(10))


@pytest.mark.parametrize("rows", [[], [3], [1, 1], [1, 0], [-1, 0]], ids=str)
def test_impossible_commits_are_refused_and_change_nothing(rows: list[int]) -> None:
    cache = make()
    write(cache, [0, 1, 2])
    with pytest.raises(ValueError, match="cannot commit"):
        cache.commit(rows)
    assert_sound(cache)
    assert cache.num_pending == 3


def test_other_impossible_requests_are_refused() -> None:
    cache = make()
    write(cache, [0, 1])
    cache.commit([0, 1])
    for length in (-1, 3):
        with pytest.raises(ValueError, match="cannot truncate"):
            cache.truncate(length)
    cache.reserve(2)
    with pytest.raises(ValueError, match="reserved 2 rows"):
        cache.write(0, torch.zeros(1, 2, 3, 4), torch.zeros(1, 2, 3, 4))
