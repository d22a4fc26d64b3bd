"""Our tree attention, reached through transformers' own attention interface, so that no model file is forked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from transformers import AttentionInterface

from kernels.dispatch import pick, resolve

_NAMES: dict[str, str] = {}


def register_tree_attention(backend: str) -> str:
    """Register the backend ("auto", "naive", "triton") and return the name for ``attn_implementation``.

    Raises kernels.dispatch.BackendUnavailableError where an explicit choice is not available.
    """
    backend = resolve("tree_attention", backend)
    if backend not in _NAMES:
        name = f"tree_attention_{backend}"
        AttentionInterface.register(name, _adapter(pick("tree_attention", backend)))
        _NAMES[backend] = name
    return _NAMES[backend]


def _adapter(kernel: Callable[..., Tensor]) -> Callable[..., tuple[Tensor, None]]:
    """transformers' calling convention around a kernel of kernels/tree_attention."""

    def attend(
        _module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
    ) -> tuple[Tensor, None]:
        scaling = options.get("scaling")
        scale = query.shape[-1] ** -0.5 if scaling is None else scaling
        mask = None if attention_mask is None else attention_mask[0, 0]
        output = kernel(query, key, value, mask, scale)  # [1, heads, R, D]
        return output.transpose(1, 2).contiguous(), None

    return attend
