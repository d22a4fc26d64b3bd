"""On a GPU: every kernel equals the reference in float64, and methods on Triton equal methods on the reference."""

from __future__ import annotations

import pytest
import torch

if not torch.cuda.is_available():
    pytest.skip("no GPU on this machine", allow_module_level=True)

from kernels.compact_kv.triton import compact_kv
from kernels.tree_attention.triton import tree_attention
from tests.gpu.cases import CASES, MOVES
from tests.support.attention import TOLERANCE, Case, make_inputs
from tests.support.moves import filled, moved

SCALE = 0.1


@pytest.mark.parametrize("case", CASES, ids=str)
def test_attention_equals_the_reference(case: Case) -> None:
    inputs = make_inputs(case)
    got = tree_attention(inputs.query, inputs.key, inputs.value, inputs.mask, SCALE, inputs.layout)
    tolerance = TOLERANCE[case.dtype]
    torch.testing.assert_close(got.double(), inputs.reference(SCALE), atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("dim", [64, 80, 96, 128, 256])
@pytest.mark.parametrize("rows", MOVES, ids=str)
def test_moves_equal_the_same_done_one_by_one(rows: list[int], dim: int) -> None:
    storage = filled(150, dim, torch.bfloat16).cuda()
    for _ in range(20):  # a race would not show every time
        copy, expected = storage.clone(), moved(storage, rows, 7)
        compact_kv(copy, torch.tensor(rows, device="cuda"), 7)
        assert torch.equal(copy, expected)


@pytest.mark.parametrize("execution", ["eager", "graphed"])
@pytest.mark.parametrize("cache", ["rows", "slots"])
@pytest.mark.parametrize("name", ["autoregressive", "medusa", "eagle2"])
@pytest.mark.default_target
def test_whole_runs_equal_the_reference(name: str, cache: str, execution: str) -> None:
    from tests.gpu.runs import PROMPTS, decode, load

    for prompt in PROMPTS[:1]:
        expected = decode(load("naive", "float32"), "autoregressive", "rows", prompt, 48)
        got = decode(load("triton", "float32", execution), name, cache, prompt, 48)
        assert got.output == expected.output
