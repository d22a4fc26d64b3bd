"""The Triton move against the same done token by token. Run by test_triton.py, in Triton's interpreter."""

from __future__ import annotations

import pytest
import torch

from kernels.compact_kv.triton import compact_kv
from tests.support.moves import MOVES, filled, moved


@pytest.mark.parametrize("rows", MOVES, ids=str)
@pytest.mark.parametrize("length", [0, 3])
def test_rows_go_where_they_belong_and_nothing_else_moves(rows: list[int], length: int) -> None:
    storage = filled(length + rows[-1] + 3, dim=8)
    expected = moved(storage, rows, length)
    compact_kv(storage, torch.tensor(rows), length)
    assert torch.equal(storage, expected)


@pytest.mark.parametrize("dim", [64, 80, 96, 128, 256])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_every_size_and_dtype(dim: int, dtype: torch.dtype) -> None:
    storage = filled(12, dim, dtype)
    expected = moved(storage, [0, 2, 5], 4)
    compact_kv(storage, torch.tensor([0, 2, 5]), 4)
    assert torch.equal(storage, expected)


def test_storage_with_gaps_is_refused() -> None:
    with pytest.raises(ValueError, match="contiguous"):
        compact_kv(filled(8, 16)[..., :8], torch.tensor([1]), 2)
