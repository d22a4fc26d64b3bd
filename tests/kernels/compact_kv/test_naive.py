"""The reference move against the same done token by token on a copy."""

from __future__ import annotations

import pytest
import torch

from kernels.compact_kv.naive import compact_kv
from tests.support.moves import MOVES, filled, moved


@pytest.mark.parametrize("rows", MOVES, ids=str)
@pytest.mark.parametrize("length", [0, 3])
def test_rows_go_where_they_belong_and_nothing_else_moves(rows: list[int], length: int) -> None:
    storage = filled(length + rows[-1] + 3, dim=4)
    expected = moved(storage, rows, length)
    compact_kv(storage, torch.tensor(rows), length)
    assert torch.equal(storage, expected)
