"""Measures the two operations with kernels of our own, in a target's shapes: tree attention and the commit."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Generator, Mapping
from functools import partial

import torch
from torch import Tensor

from explorer.clock import Clock
from explorer.kernel_words import AttentionTime, CommitTime, KernelCost
from explorer.models.cache import CacheShape, TreeCache
from explorer.models.slot_cache import SlotCache
from explorer.runner_events import Status
from explorer.target import Target
from explorer.theory import ModelShape
from explorer.tree import DraftTree, binary_parents
from kernels.dispatch import BackendUnavailableError, pick, resolve
from kernels.tree_attention import by_row, naive
from kernels.tree_attention.inputs import IN_ORDER, KeyLayout

NUM_ROWS = 60  # the published budget of EAGLE-2
PATH = (0, 3, 9, 20, 41)
PREFIX = 256
ATTENTION_REPEATS = 15
COMMIT_REPEATS = 200


def measure_kernels(target: Target) -> Generator[Status, None, KernelCost]:
    """Every implementation that runs on the target's device, on inputs of its heads, head size and dtype."""
    yield Status("measuring tree attention and commits here", None)
    shape, device, dtype = target.model_shape, target.device, target.dtype
    attention, missing = attention_times(shape, dtype, device)
    caches = commit_caches(CacheShape(shape.num_layers, shape.num_kv_heads, shape.head_dim), dtype, device)
    return KernelCost(NUM_ROWS, len(PATH), PREFIX, attention, commit_times(caches, device), missing)


def attention_times(
    shape: ModelShape,
    dtype: torch.dtype,
    device: torch.device,
    repeats: int = ATTENTION_REPEATS,
    num_rows: int = NUM_ROWS,
) -> tuple[list[AttentionTime], str]:
    """Medians of one call in turns, and why Triton is not among them where it is not."""
    generator = torch.Generator().manual_seed(0)
    num_keys, dim = PREFIX + num_rows, shape.head_dim
    query = torch.randn(1, shape.num_heads, num_rows, dim, generator=generator).to(device, dtype)
    key, value = (
        torch.randn(1, shape.num_kv_heads, num_keys, dim, generator=generator).to(device, dtype) for _ in range(2)
    )
    tree = DraftTree.from_lists([0] * num_rows, binary_parents(num_rows)).tree_mask.to(device)
    slots = KeyLayout(torch.arange(num_keys, device=device))  # the same keys in the same order, found by number
    calls, missing = _implementations(tree, slots, device, dim)
    scale = dim**-0.5
    expected = naive.tree_attention(query.double(), key.double(), value.double(), tree, scale)
    clock = Clock(device)
    times: dict[str, list[float]] = {name: [] for name in calls}
    found = {name: call(query, key, value, scale) for name, call in calls.items()}  # the warm-up, too
    for _ in range(repeats):
        for name, call in calls.items():
            clock.start()
            call(query, key, value, scale)
            times[name].append(clock.lap())
    worst = {name: float((output.double() - expected).abs().max()) for name, output in found.items()}
    return [AttentionTime(name, statistics.median(times[name]), worst[name]) for name in calls], missing


def _implementations(
    tree: Tensor, slots: KeyLayout, device: torch.device, dim: int
) -> tuple[dict[str, Callable[..., Tensor]], str]:
    def call(kernel: Callable[..., Tensor], mask: Tensor, layout: KeyLayout) -> Callable[..., Tensor]:
        return lambda query, key, value, scale: kernel(query, key, value, mask, scale, layout)

    seen = naive.tree_mask(tree, PREFIX)
    calls = {
        "naive": call(naive.tree_attention, seen, IN_ORDER),
        "naive, through slots": call(naive.tree_attention, seen, slots),
        "row by row (bitwise)": call(by_row.tree_attention, seen, IN_ORDER),
    }
    try:
        backend = resolve("triton", device, dim)
    except BackendUnavailableError as error:
        return calls, str(error).partition(";")[0]  # what to choose instead is for whoever chose it
    kernel, words = (pick(name, backend, device) for name in ("tree_attention", "tree_mask"))
    calls["triton"] = call(kernel, words(tree, PREFIX), IN_ORDER)
    calls["triton, through slots"] = call(kernel, words(tree, PREFIX), slots)
    return calls, ""


def commit_caches(
    shape: CacheShape, dtype: torch.dtype, device: torch.device, capacity: int = PREFIX + 2 * NUM_ROWS
) -> dict[str, Callable[[], TreeCache]]:
    """Name -> maker of every cache that works on a device; one at a time is made, they may be large."""
    rows = partial(TreeCache, shape, capacity, dtype, device)
    made: dict[str, Callable[[], TreeCache]] = {"rows, naive": partial(rows, "naive")}
    if resolve("auto", device, shape.head_dim) == "triton":
        made["rows, triton"] = partial(rows, "triton")
    return made | {"slots": partial(SlotCache, shape, capacity, dtype, device)}


def commit_times(
    caches: Mapping[str, Callable[[], TreeCache]],
    device: torch.device,
    prefix_len: int = PREFIX,
    repeats: int = COMMIT_REPEATS,
) -> list[CommitTime]:
    """A path of five in a tree of 60, again and again behind ``prefix_len`` tokens; medians."""
    return [_commit_time(name, make(), device, prefix_len, repeats) for name, make in caches.items()]


def _commit_time(name: str, cache: TreeCache, device: torch.device, prefix_len: int, repeats: int) -> CommitTime:
    def wait() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize()

    cache.reserve(prefix_len)
    cache.commit(range(prefix_len))
    reserve, commit, done = [], [], []
    for _ in range(repeats):
        cache.truncate(prefix_len)
        wait()
        moments = [time.perf_counter()]
        cache.reserve(NUM_ROWS)
        moments.append(time.perf_counter())
        wait()
        moments.append(time.perf_counter())
        cache.commit(PATH)
        moments.append(time.perf_counter())
        wait()
        moments.append(time.perf_counter())
        reserve.append(moments[1] - moments[0])
        commit.append(moments[3] - moments[2])
        done.append(moments[4] - moments[2])
    return CommitTime(name, *(1e6 * statistics.median(times) for times in (commit, done, reserve)))
