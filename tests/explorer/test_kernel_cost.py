"""Tree attention and commits are measured in the target's shapes, with every implementation that runs here."""

from __future__ import annotations

import torch

from explorer.checkpoints.target import load_target
from explorer.kernel_cost import NUM_ROWS, PREFIX, attention_times, commit_caches, commit_times, measure_kernels
from explorer.models.cache import CacheShape
from explorer.runner_events import drain
from explorer.target import Target
from explorer.theory import ModelShape
from tests.support.goldens import FOLDER

CPU = torch.device("cpu")
SHAPE = ModelShape(num_weights=1, num_bytes=4, num_layers=2, num_heads=4, num_kv_heads=2, head_dim=16)


def test_a_target_is_measured_in_its_own_shape() -> None:
    loaded = load_target(str(FOLDER / "base_a"), dtype="float32")
    target = Target(loaded.model, loaded.tokenizer, loaded.name, loaded.stop_ids, loaded.backend)
    statuses: list[str] = []
    cost = drain(measure_kernels(target), lambda status: statuses.append(status.text))
    assert len(statuses) == 1
    assert (cost.num_rows, cost.prefix_len) == (NUM_ROWS, PREFIX)
    assert {item.cache for item in cost.commits} == {"rows, naive", "slots"}
    assert all(item.ms > 0 for item in cost.attention)


def test_every_implementation_gives_the_numbers_of_the_reference() -> None:
    found, missing = attention_times(SHAPE, torch.float32, CPU, repeats=1)
    assert [item.name for item in found] == ["naive", "naive, through slots", "row by row (bitwise)"]
    assert all(item.difference < 1e-5 for item in found)
    assert missing.endswith("it needs an NVIDIA GPU, and the device is cpu")


def test_commits_leave_a_cache_as_long_as_they_say() -> None:
    caches = {name: make() for name, make in commit_caches(CacheShape(2, 2, 16), torch.float32, CPU).items()}
    times = commit_times({name: lambda cache=cache: cache for name, cache in caches.items()}, CPU, repeats=3)
    assert [item.cache for item in times] == ["rows, naive", "slots"]
    assert {cache.length for cache in caches.values()} == {PREFIX + 5}
    assert all(0 < item.commit_us <= item.done_us and item.reserve_us > 0 for item in times)
