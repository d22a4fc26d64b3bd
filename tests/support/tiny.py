"""Tiny random targets and drafters: real architectures, made in milliseconds, no file behind them."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoModelForCausalLM, LlamaConfig

from explorer.models.attention import register_tree_attention
from explorer.target import Target

VOCAB = 61


def tiny_model(seed: int = 0, **changes: Any) -> Any:
    """A random Llama of two layers with grouped-query heads, float32, running our attention."""
    torch.manual_seed(seed)
    values: dict[str, Any] = {
        "vocab_size": VOCAB,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 128,
        "initializer_range": 0.3,  # wide, so that logits differ clearly
    }
    config = LlamaConfig(**(values | changes))
    return AutoModelForCausalLM.from_config(config, attn_implementation=register_tree_attention("naive")).eval()


def tiny_target(seed: int = 0, stop_ids: frozenset[int] = frozenset(), **changes: Any) -> Target:
    """A Target around ``tiny_model``; there is no tokenizer, prompts are ids."""
    return Target(tiny_model(seed, **changes), None, "tiny", stop_ids, "naive")


def greedy(target: Target, prompt: list[int], num_tokens: int) -> list[int]:
    """Plain greedy continuation by whole forward passes: the slow twin of every decoding method."""
    ids = list(prompt)
    for _ in range(num_tokens):
        target.start(len(ids))
        ids.append(int(target.prefill(ids).logits.argmax()))
    return ids[len(prompt) :]
