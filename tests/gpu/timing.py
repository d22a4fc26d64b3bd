"""Times on a GPU. A kernel is captured many times over buffers that together leave the L2 cache, and replayed."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

HEADS, KV_HEADS, DIM = 32, 8, 128
L2_BYTES = 256 * 2**20  # more than any L2 holds
REPLAYS = 20


def graph_us(calls: list[Callable[[], Any]]) -> float:
    """Microseconds a call: all of them in one captured graph, median of several replays."""
    for call in calls[:2]:
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    times = []
    for _ in range(REPLAYS):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / len(calls))
    return statistics.median(times)


def copy_bandwidth() -> float:
    """Bytes a second of a large copy, read and written ones counted."""
    source = torch.zeros(2**30, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.numel() / (graph_us([lambda: target.copy_(source)] * 3) * 1e-6)


def matrix_rate(size: int = 8192) -> float:
    """Operations a second of a large bfloat16 product."""
    left, right = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    out = torch.empty_like(left)
    return 2 * size**3 / (graph_us([lambda: torch.mm(left, right, out=out)] * 3) * 1e-6)


def attention_times(prefix: int, num_rows: int) -> dict[str, Any]:
    """Triton (keys in order and through slots) and PyTorch with a materialised mask, beside both floors."""
    from kernels.tree_attention.inputs import IN_ORDER, KeyLayout, pack_mask
    from kernels.tree_attention.naive import tree_mask
    from kernels.tree_attention.triton import tree_attention

    num_keys = prefix + num_rows
    num_bytes = 2 * KV_HEADS * num_keys * DIM * 2
    copies = max(2, -(-L2_BYTES // num_bytes))
    pools = [torch.randn(2, 1, KV_HEADS, num_keys, DIM, device="cuda").bfloat16() for _ in range(copies)]
    query = torch.randn(1, num_rows, HEADS, DIM, device="cuda").bfloat16().transpose(1, 2)
    tree = torch.ones(num_rows, num_rows, dtype=torch.bool, device="cuda").tril()
    words, mask = pack_mask(tree), tree_mask(tree, prefix)
    slots = torch.randperm(num_keys, device="cuda")
    scale = DIM**-0.5

    def ours(pool: torch.Tensor, layout: KeyLayout) -> Callable[[], Any]:
        return lambda: tree_attention(query, pool[0], pool[1], words, scale, layout)

    def theirs(pool: torch.Tensor, seen: torch.Tensor | None) -> Callable[[], Any]:
        return lambda: scaled_dot_product_attention(
            query, pool[0], pool[1], attn_mask=seen, scale=scale, enable_gqa=True
        )

    found = {
        "flex_us": _flex_us(query, pools, tree, prefix),
        "triton_us": graph_us([ours(pool, IN_ORDER) for pool in pools]),
        "triton_slots_us": graph_us([ours(pool, KeyLayout(slots)) for pool in pools]),
        "sdpa_mask_us": graph_us([theirs(pool, mask) for pool in pools]),
        "sdpa_no_mask_us": graph_us([theirs(pool, None) for pool in pools]),
    }
    bytes_us = num_bytes / (copy_bandwidth() * 1e-6)
    flops_us = 4 * HEADS * num_rows * num_keys * DIM / (matrix_rate() * 1e-6)
    return (
        {"prefix": prefix, "rows": num_rows}
        | found
        | {
            "bandwidth_floor_us": bytes_us,
            "matrix_floor_us": flops_us,
            "over_bandwidth_floor": found["triton_us"] / bytes_us,
            "over_higher_floor": found["triton_us"] / max(bytes_us, flops_us),
            "faster_than_sdpa_mask": found["sdpa_mask_us"] / found["triton_us"],
        }
    )


def _flex_us(query: torch.Tensor, pools: list[torch.Tensor], tree: torch.Tensor, prefix: int) -> float | None:
    """PyTorch's FlexAttention, compiled, with the tree's mask as a function of row and key; None where it fails."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    num_rows, num_keys = len(tree), prefix + len(tree)

    def seen(_batch: Any, _head: Any, row: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        return (key < prefix) | tree[row, (key - prefix).clamp(min=0)]

    try:
        blocks = create_block_mask(seen, None, None, num_rows, num_keys, device="cuda")
        attend = torch.compile(flex_attention, dynamic=False)

        def call(pool: torch.Tensor) -> Callable[[], Any]:
            return lambda: attend(query, pool[0], pool[1], block_mask=blocks, scale=DIM**-0.5, enable_gqa=True)

        return graph_us([call(pool) for pool in pools])
    except Exception as error:  # noqa: BLE001  a compiler may fail in any way; the other figures must not be lost
        print(f"FlexAttention at {num_rows} rows: {error!r:.200}", flush=True)
        return None


def vicuna_commits() -> list[dict[str, Any]]:
    """Both commits in Vicuna-7B's shape, behind 4,096 tokens."""
    from explorer.kernel_cost import commit_caches, commit_times
    from explorer.models.cache import CacheShape

    device = torch.device("cuda")
    caches = commit_caches(CacheShape(32, 32, 128), torch.bfloat16, device, capacity=8192)
    return [asdict(found) for found in commit_times(caches, device, prefix_len=4096, repeats=300)]
