"""Attention row by row: the reference's result, and the same bits in any company."""

from __future__ import annotations

import pytest
import torch

from kernels.tree_attention import naive
from kernels.tree_attention.by_row import tree_attention
from tests.support.attention import Case, make_inputs


@pytest.mark.parametrize("keys", ["order", "slots"])
@pytest.mark.parametrize("mask", ["bool", "wide", "causal"])
@pytest.mark.parametrize(("rows", "prefix"), [(2, 0), (3, 6), (65, 20)])
def test_it_equals_the_reference(keys: str, mask: str, rows: int, prefix: int) -> None:
    inputs = make_inputs(Case(rows=rows, prefix=prefix, dim=8, mask=mask, keys=keys))
    arguments = (inputs.query, inputs.key, inputs.value, inputs.mask, 0.3, inputs.layout)
    torch.testing.assert_close(tree_attention(*arguments), naive.tree_attention(*arguments), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_row_has_the_same_bits_in_any_company(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(1, 4, 9, 16, generator=generator).to(dtype)
    key, value = (torch.randn(1, 2, 40 + 9, 16, generator=generator).to(dtype) for _ in range(2))
    mask = torch.rand(9, 9, generator=generator) < 0.5
    mask |= torch.eye(9, dtype=torch.bool)
    together = tree_attention(query, key, value, naive.tree_mask(mask, 40), 0.3)
    for row in range(9):
        seen = torch.cat([torch.arange(40), 40 + mask[row].nonzero()[:, 0]])
        alone = torch.ones(1, len(seen), dtype=torch.bool)
        own = tree_attention(query[:, :, row : row + 1], key[:, :, seen], value[:, :, seen], alone, 0.3)
        assert torch.equal(together[:, :, row : row + 1], own)
