"""The reference: scaled dot-product attention with a boolean mask."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

from kernels.tree_attention.inputs import IN_ORDER, KeyLayout, check_mask, unpack_mask


def tree_mask(mask: Tensor, prefix_len: int) -> Tensor:
    """The form of a tree mask [R, R] bool that suits this implementation: [R, prefix + R], the prefix seen by all.

    Made once a pass, on the mask's device; every layer uses it.
    """
    return pad(mask, (prefix_len, 0), value=True)


def tree_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: float, layout: KeyLayout = IN_ORDER
) -> Tensor:
    """Attend with grouped-query heads.

    query: [1, heads, R, D]. key, value: [1, kv_heads, L, D] with heads a multiple of kv_heads (any number of slots
    instead of L where ``layout`` has them); the last R of the L keys are the rows themselves. mask: [R, C] bool, True
    where a row may look at one of the last C keys; those before are seen by all. [R, W] int64 is the same as words
    (``pack_mask``) with C = R; None means causal. Returns [1, heads, R, D]. Raises ValueError for a mask of another
    shape.
    """
    num_rows = query.shape[2]
    if layout.prefix_len is not None:
        return _over_all(query, key, value, mask, scale, layout)
    if layout.slots is not None:
        key, value = (tensor.index_select(2, layout.slots) for tensor in (key, value))
    num_keys = key.shape[2]
    num_tail = check_mask(mask, num_rows, num_keys)
    if mask is None and 1 < num_rows < num_keys:
        mask = torch.ones(num_rows, num_keys, dtype=torch.bool, device=query.device).tril(num_keys - num_rows)
    elif mask is not None:
        mask = unpack_mask(mask, num_tail) if mask.dtype == torch.int64 else mask
        mask = tree_mask(mask, num_keys - num_tail) if num_tail < num_keys else mask  # no copy a layer
    is_causal = mask is None and num_rows > 1
    grouped = query.shape[1] != key.shape[1]
    return scaled_dot_product_attention(
        query, key, value, attn_mask=mask, is_causal=is_causal, scale=scale, enable_gqa=grouped
    )


def _over_all(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: float, layout: KeyLayout
) -> Tensor:
    """Without knowing the prefix length here: every key is read, those that the pass does not have are left out.

    Nothing is asked of the device, so that the pass can be captured. What was never written may be anything: slots out
    of range, or nan, which no weight of zero would take away.
    """
    assert layout.prefix_len is not None
    num_rows = query.shape[2]
    num_tail = check_mask(mask, num_rows)
    num_keys = key.shape[2] if layout.slots is None else layout.slots.shape[0]
    place = torch.arange(num_keys, device=query.device) - layout.prefix_len  # in the tail, negative in the prefix
    is_used = place < num_tail
    if layout.slots is not None:
        slots = layout.slots.masked_fill(~is_used, 0)
        key, value = (tensor.index_select(2, slots) for tensor in (key, value))
    key, value = (tensor.masked_fill(~is_used[:, None], 0) for tensor in (key, value))
    if mask is None:
        tail = torch.ones(num_rows, num_rows, dtype=torch.bool, device=query.device).tril()
    else:
        tail = unpack_mask(mask, num_tail) if mask.dtype == torch.int64 else mask
    seen = (place < 0) | (is_used & tail.index_select(1, place.clamp(0, num_tail - 1)))
    grouped = query.shape[1] != key.shape[1]
    return scaled_dot_product_attention(query, key, value, attn_mask=seen, scale=scale, enable_gqa=grouped)
