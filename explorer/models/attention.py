"""Our tree attention, reached through transformers' own attention interface, so that no model file is forked."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

from kernels.dispatch import pick, resolve
from kernels.tree_attention.inputs import IN_ORDER

LAYOUT = "key_layout"  # what a pass hands to every layer's attention beside the mask: a KeyLayout, where there is one
# transformers renamed the argument after 5.20, the last for Python 3.10; a name that a version does not know is dropped
# without a word.
CACHE = "cache" if "cache" in inspect.signature(LlamaDecoderLayer.forward).parameters else "past_key_values"
_NAMES: dict[str, str] = {}


def register_tree_attention(backend: str, device: torch.device | None = None, head_dim: int = 0) -> str:
    """Register the backend ("auto", "naive", "triton") and return the name for ``attn_implementation``.

    device: where the model will run, None for the CPU. Raises kernels.dispatch.BackendUnavailableError where an
    explicit choice is not available there, or not for heads of this size.
    """
    backend = resolve(backend, device, head_dim)
    return register_attention(backend, pick("tree_attention", backend, device))


def register_attention(word: str, kernel: Callable[..., Tensor]) -> str:
    """Register a kernel with the signature of kernels/tree_attention once; returns its ``attn_implementation``."""
    if word not in _NAMES:
        name = f"tree_attention_{word}"
        AttentionInterface.register(name, _adapter(kernel))
        _NAMES[word] = name
    return _NAMES[word]


def _adapter(kernel: Callable[..., Tensor]) -> Callable[..., tuple[Tensor, None]]:
    """transformers' calling convention around a kernel of kernels/tree_attention."""

    def attend(
        _module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
    ) -> tuple[Tensor, None]:
        scaling = options.get("scaling")
        scale = query.shape[-1] ** -0.5 if scaling is None else scaling
        mask = None if attention_mask is None else attention_mask[0, 0]
        output = kernel(query, key, value, mask, scale, options.get(LAYOUT, IN_ORDER))  # [1, heads, R, D]
        return output.transpose(1, 2).contiguous(), None

    return attend
