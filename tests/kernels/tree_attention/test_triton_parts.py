"""The kernels compiled for GPUs that need not be here: tiles fit the shared memory, and registers hold what they must."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

triton = pytest.importorskip("triton", reason="Triton is for Linux")

from kernels.tree_attention.triton import choose_launch
from kernels.tree_attention.triton_parts import attend_part

SHARED_KB = {(8, 0): 163, (8, 6): 99, (9, 0): 227, (12, 0): 99}  # a block may have
MAX_SPILLED_BYTES = 64
TOOLS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
NAMES = {torch.bfloat16: "bf16", torch.float32: "fp32"}


def compile_for(capability: tuple[int, int], dim: int, dtype: torch.dtype, num_queries: int, group: int = 4) -> Any:
    """attend_part as a launch with words, slots and several parts would compile it."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    how = choose_launch(num_queries, dim, dtype.itemsize, capability)
    pointer = f"*{NAMES[dtype]}"
    signature = {
        "inputs": (pointer, pointer, pointer, "*i64", "*i64", "*i32"),
        "outputs": ("*fp32", "*fp32"),
        "strides": ("i32",) * 6,
        "sizes": ("i32", "i32", "i32", "fp32"),
        "HOW": "constexpr",
    }
    shape = (group, dim, triton.next_power_of_2(dim), how.block_m, how.block_n, True, True, True, True, False)
    aligned = {(at, i): [["tt.divisibility", 16]] for at in (0, 2) for i in range(6)}
    source = ASTSource(fn=attend_part, signature=signature, constexprs={(4,): shape}, attrs=aligned)
    target = GPUTarget("cuda", capability[0] * 10 + capability[1], 32)
    options = {"num_warps": how.num_warps, "num_stages": how.num_stages, "enable_fp_fusion": True}
    return triton.compile(source, target=target, options=options)


@pytest.mark.skipif(not (TOOLS / "ptxas").exists(), reason="this Triton brings no NVIDIA assembler")
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
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    compiled = compile_for(capability, dim, dtype, num_queries)
    assert compiled.metadata.shared <= SHARED_KB[capability] * 1024
    binary = tmp_path / "kernel.cubin"
    binary.write_bytes(compiled.asm["cubin"])
    usage = subprocess.run(
        [TOOLS / "cuobjdump", "-res-usage", binary], capture_output=True, text=True, check=True
    ).stdout
    assert max(map(int, re.findall(r"STACK:(\d+)", usage))) <= MAX_SPILLED_BYTES, usage
