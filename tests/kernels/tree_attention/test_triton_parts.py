"""The kernels compiled for GPUs that need not be here: tiles fit the shared memory, and registers hold the rest."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.support.interpreter import compile_for, spilled_bytes

SHARED_KB = {(8, 0): 163, (8, 6): 99, (9, 0): 227, (12, 0): 99}  # a block may have
MAX_SPILLED_BYTES = 64
NAMES = {torch.bfloat16: "bf16", torch.float32: "fp32"}
GROUP = 4


@pytest.mark.parametrize(
    ("capability", "dim", "dtype", "num_queries"),
    [
        ((9, 0), 128, torch.bfloat16, 256),
        ((9, 0), 256, torch.bfloat16, 256),
        ((9, 0), 128, torch.float32, 256),
        ((8, 0), 128, torch.bfloat16, 4),
        ((12, 0), 128, torch.bfloat16, 256),
        ((12, 0), 256, torch.float32, 256),
    ],
    ids=str,
)
def test_it_compiles_and_fits(
    capability: tuple[int, int],
    dim: int,
    dtype: torch.dtype,
    num_queries: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a launch with words, slots and several parts would compile it."""
    triton = pytest.importorskip("triton", reason="Triton is for Linux")
    from kernels.tree_attention.triton import choose_launch
    from kernels.tree_attention.triton_parts import attend_part

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    launch = choose_launch(num_queries, dim, dtype.itemsize, capability)
    pointer = f"*{NAMES[dtype]}"
    signature = {
        "tensors": (pointer, pointer, pointer, "*i64", "*i64", "*i32", "*fp32", "*fp32"),
        "strides": ("i32",) * 6,
        **dict.fromkeys(("num_rows", "num_tail", "prefix_len"), "i32"),
        "HOW": "constexpr",
    }
    padded = triton.next_power_of_2(dim)
    how = (GROUP, dim, padded, launch.block_m, launch.block_n, True, True, True, True, False, 0.1)
    compiled = compile_for(
        capability,
        attend_part,
        signature,
        constexprs={(5,): how},
        attrs={(argument, i): [["tt.divisibility", 16]] for argument in (0, 1) for i in range(6)},
        num_warps=launch.num_warps,
        num_stages=launch.num_stages,
    )
    assert compiled.metadata.shared <= SHARED_KB[capability] * 1024
    assert spilled_bytes(compiled, tmp_path) <= MAX_SPILLED_BYTES
