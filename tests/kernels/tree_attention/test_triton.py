"""The Triton attention: its results in the interpreter, its launch configurations in any process."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")

from kernels.tree_attention.inputs import unpack_mask
from kernels.tree_attention.triton import choose_launch, tree_mask
from tests.support.interpreter import assert_checks_pass


def test_its_results_in_the_interpreter() -> None:
    assert_checks_pass(Path(__file__).with_name("interpreted_triton.py"))


@pytest.mark.parametrize("num_queries", [1, 4, 16, 17, 60, 64, 65, 256, 4096])
@pytest.mark.parametrize("dim", [32, 64, 80, 96, 128, 256])
@pytest.mark.parametrize("element_size", [2, 4])
@pytest.mark.parametrize("capability", [(8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)], ids=str)
def test_tiles_suit_the_tensor_cores_and_the_mask_words(
    num_queries: int, dim: int, element_size: int, capability: tuple[int, int]
) -> None:
    how = choose_launch(num_queries, dim, element_size, capability)
    assert how.block_m in (16, 32, 64, 128)
    assert how.block_m < 2 * max(16, num_queries), "no tile is twice as large as what it holds"
    assert 64 % how.block_n == 0, "a block of the tail lies within one mask word"
    assert how.block_n >= 16


def test_what_changes_from_pass_to_pass_never_compiles_anew() -> None:
    """Inside a tuple a number is specialised on whatever is said of the tuple; so these must stand alone."""
    from kernels.tree_attention.triton_parts import attend_part, merge_parts

    free = {each.name for kernel in (attend_part, merge_parts) for each in kernel.params if each.do_not_specialize}
    assert free == {"num_rows", "num_tail", "prefix_len", "num_parts", "num_results"}


def test_the_mask_it_is_handed_is_the_tree_mask() -> None:
    mask = torch.ones(70, 70, dtype=torch.bool).tril()
    assert torch.equal(unpack_mask(tree_mask(mask, 1000), 70), mask)
