"""Accepted rows to move in a cache, and what is to come of it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

MOVES = [[0], [5], [0, 1], [0, 2, 5], [1, 2, 3], [0, 2, 3, 4, 60], list(range(40)), list(range(3, 80, 2))]


def filled(capacity: int, dim: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """[layers, 2, kv_heads, capacity, dim] in which every element differs from its neighbours."""
    shape = (3, 2, 2, capacity, dim)
    return torch.randn(shape, generator=torch.Generator().manual_seed(capacity)).to(dtype)


def moved(storage: Tensor, rows: Sequence[int], length: int) -> Tensor:
    """A copy in which row i of ``rows`` lies at ``length + i``, and all else where it lay."""
    copy = storage.clone()
    for place, row in enumerate(rows):
        copy[:, :, :, length + place] = storage[:, :, :, length + row]
    return copy
