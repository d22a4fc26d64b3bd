"""The reference: scaled dot-product attention with a boolean mask."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention


def tree_attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    """Attend with grouped-query heads.

    query: [1, heads, R, D]. key, value: [1, kv_heads, L, D] with heads a multiple of kv_heads; the last R of the L
    keys are the rows themselves. mask: [R, L] bool, True where a row may look; None means causal. Returns
    [1, heads, R, D]. Raises ValueError for a mask of another shape.
    """
    num_rows, num_keys = query.shape[2], key.shape[2]
    if mask is not None and mask.shape != (num_rows, num_keys):
        raise ValueError(f"mask is {tuple(mask.shape)}, expected {(num_rows, num_keys)}")
    if mask is None and 1 < num_rows < num_keys:
        mask = torch.ones(num_rows, num_keys, dtype=torch.bool, device=query.device).tril(num_keys - num_rows)
    is_causal = mask is None and num_rows > 1
    grouped = query.shape[1] != key.shape[1]
    return scaled_dot_product_attention(
        query, key, value, attn_mask=mask, is_causal=is_causal, scale=scale, enable_gqa=grouped
    )
