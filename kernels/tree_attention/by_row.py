"""Tree attention whose every row is computed as if it were alone: its result cannot depend on the other rows.

Attention over a mask sums over masked keys too, in blocks that the number of rows decides; so a row's last bits change
with the tree around it. Here each row attends to a copy of exactly the keys that it may see, as one query.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from kernels.tree_attention import naive
from kernels.tree_attention.inputs import IN_ORDER, KeyLayout, check_mask


def tree_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: float, layout: KeyLayout = IN_ORDER
) -> Tensor:
    """As ``naive.tree_attention``, for a bool mask one row at a time; causal passes (None) are left to it.

    Cost: every row reads its keys anew, R times what one pass over all of them reads.
    """
    if mask is None:
        return naive.tree_attention(query, key, value, mask, scale, layout)
    if layout.slots is not None:
        key, value = (tensor.index_select(2, layout.slots) for tensor in (key, value))
    num_prefix = key.shape[2] - check_mask(mask, query.shape[2], key.shape[2])
    prefix = torch.arange(num_prefix, device=key.device)
    grouped = query.shape[1] != key.shape[1]
    rows = []
    for row in range(query.shape[2]):
        seen = torch.cat([prefix, num_prefix + mask[row].nonzero()[:, 0]])
        own_keys, own_values = key.index_select(2, seen), value.index_select(2, seen)
        alone = query[:, :, row : row + 1].contiguous()
        rows.append(scaled_dot_product_attention(alone, own_keys, own_values, scale=scale, enable_gqa=grouped))
    return torch.cat(rows, dim=2)
