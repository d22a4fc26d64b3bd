"""The reference attention against the textbook formula in float64."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from kernels.tree_attention.naive import tree_attention


def textbook(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scale: float) -> Tensor:
    """softmax(q k^T scale + mask) v with keys repeated for every query head of their group."""
    group = query.shape[1] // key.shape[1]
    key, value = (t.double().repeat_interleave(group, dim=1) for t in (key, value))
    scores = (query.double() @ key.mT) * scale
    return (scores.masked_fill(~mask, float("-inf")).softmax(-1) @ value).to(query.dtype)


@pytest.mark.parametrize("prefix", [0, 1, 17])
@pytest.mark.parametrize("rows", [1, 2, 9])
@pytest.mark.parametrize("heads", [(2, 2), (6, 2), (4, 1)], ids=str)
@pytest.mark.parametrize("kind", ["causal", "tree"])
def test_equals_the_textbook(prefix: int, rows: int, heads: tuple[int, int], kind: str) -> None:
    generator = torch.Generator().manual_seed(prefix * 100 + rows)
    query = torch.randn(1, heads[0], rows, 8, generator=generator)
    key, value = (torch.randn(1, heads[1], prefix + rows, 8, generator=generator) for _ in range(2))
    causal = torch.ones(rows, prefix + rows, dtype=torch.bool).tril(prefix)
    mask = causal.clone()
    if kind == "tree":
        mask[:, prefix:] &= torch.rand(rows, rows, generator=generator) < 0.5
        mask[:, prefix:] |= torch.eye(rows, dtype=torch.bool)
    ours = tree_attention(query, key, value, mask if kind == "tree" else None, 0.3)
    torch.testing.assert_close(ours, textbook(query, key, value, mask, 0.3), atol=1e-5, rtol=1e-5)


def test_a_mask_of_another_shape_is_refused() -> None:
    tensor = torch.zeros(1, 1, 2, 4)
    with pytest.raises(ValueError, match="mask is"):
        tree_attention(tensor, tensor, tensor, torch.ones(2, 3, dtype=torch.bool), 1.0)
