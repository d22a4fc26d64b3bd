"""Passes in Vicuna-7B's shape with random weights: what a verify pass and a draft cost, eager and as graphs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from explorer.config import Sampling
from explorer.graphed import GraphedTarget
from explorer.methods.eagle2 import Eagle2, Eagle2Settings
from explorer.models.attention import register_tree_attention
from explorer.models.eagle_layer import EagleConfig, EagleDrafter
from explorer.sampling import Sampler
from explorer.target import Target
from explorer.tree import DraftTree, binary_parents

SIZES = {
    "vocab_size": 32000,
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "max_position_embeddings": 4096,
}
PREFIX = 1024
REPEATS = 20


def pass_times(backend: str = "triton", device: str = "cuda", **changes: int) -> list[dict[str, Any]]:
    """Milliseconds until the device is done; ``ratio`` is over the same way's pass of one row.

    changes: other sizes of the model, to try the script where there is no GPU.
    """
    sizes, rows = SIZES | changes, list[dict[str, Any]]()
    for kind in (Target, GraphedTarget):
        target = _target(kind, backend, torch.device(device), sizes)
        found = _times(target, Eagle2(target, _drafter(target, sizes), Eagle2Settings()))
        one = found["1 row"]
        rows += [
            {"execution": target.execution, "pass": name, "ms": ms, "ratio": ms / one} for name, ms in found.items()
        ]
        del target
        if device == "cuda":
            torch.cuda.empty_cache()
    return rows


def _times(target: Target, method: Eagle2) -> dict[str, float]:
    prompt = [token % target.vocab_size for token in range(PREFIX)]
    target.start(PREFIX + 256)
    method.start(prompt, target.prefill(prompt), Sampler(Sampling()))
    trees = {count: DraftTree.from_lists([count] * count, binary_parents(count)) for count in (1, 16, 32, 60)}
    times = {
        f"{count} row{'s' if count > 1 else ''}": _median_ms(partial(target.forward, tree), target.device)
        for count, tree in trees.items()
    }
    return times | {"draft": _median_ms(partial(_draft, method), target.device)}


def _target(kind: Any, backend: str, device: torch.device, sizes: dict[str, int]) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    name = register_tree_attention(backend, device, sizes["hidden_size"] // sizes["num_attention_heads"])
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    with torch.device(device):
        model = LlamaForCausalLM(LlamaConfig(**sizes, attn_implementation=name)).to(dtype)
    return kind(model.eval().requires_grad_(False), None, "Vicuna-7B's shape", frozenset(), backend)


def _drafter(target: Target, sizes: dict[str, int]) -> EagleDrafter:
    named = [sizes[name] for name in ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads")]
    with torch.device(target.device):
        drafter = EagleDrafter(EagleConfig(*named, sizes["vocab_size"])).to(target.dtype)
    drafter.eval().requires_grad_(False).bind(target.embed_tokens.weight, target.lm_head.weight)
    return drafter


def _draft(method: Eagle2) -> None:
    """One whole draft; it is forgotten, so that the next begins where this one did."""
    length = method._cache.length
    method.draft(7)
    method._cache.truncate(length)


def _median_ms(work: Callable[[], Any], device: torch.device) -> float:
    times = []
    for _ in range(3 + REPEATS):
        if device.type == "cuda":
            torch.cuda.synchronize()
        started = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append((time.perf_counter() - started) * 1e3)
    return statistics.median(times[3:])
