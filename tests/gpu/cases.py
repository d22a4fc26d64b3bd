"""The passes that kernels are compared on: every head size and dtype, mask words, lengths up to 32k, all layouts."""

from __future__ import annotations

from dataclasses import replace

import torch

from tests.support.attention import Case

F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16
_LARGE = Case(rows=60, prefix=1000, dim=128, heads=(32, 8), dtype=BF16, device="cuda")
CASES = [
    *(replace(_LARGE, dim=dim, dtype=dtype, keys=keys) for dim in (64, 80, 96, 128, 256) for dtype in (F32, F16, BF16)
      for keys in ("order", "slots")),
    *(replace(_LARGE, prefix=prefix, keys=keys) for prefix in (0, 1, 255, 257, 8192, 32768)
      for keys in ("order", "slots", "device")),
    *(replace(_LARGE, rows=rows, prefix=77) for rows in (1, 2, 31, 32, 33, 63, 64, 65, 129)),
    *(replace(_LARGE, heads=heads, dim=64) for heads in ((9, 3), (8, 8), (4, 1))),
    *(replace(_LARGE, rows=rows, prefix=prefix, mask=mask, keys=keys) for mask in ("causal", "wide", "bool")
      for rows, prefix in ((1, 500), (300, 0), (40, 3000)) for keys in ("order", "slots")),
]  # fmt: skip
MOVES = [[0, 1], [0, 2, 5], [1, 2, 3], [0, 7, 19, 44, 59], list(range(3, 120, 2))]
