"""The mask in words: cells and bytes against a mask that was really made, and who may see a row."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from explorer.insight import RowSentences
from explorer.mask_words import mask_sentence, sent_bytes, visibility_sentences
from explorer.trace import Step, Trace
from explorer.tree import DraftTree
from kernels.tree_attention import naive
from kernels.tree_attention.inputs import pack_mask
from tests.support.traces import make_trace


def made(rows: int, backend: str = "naive") -> tuple[Trace, Step]:
    trace = make_trace("eagle2", 2, rows)
    return replace(trace, target=replace(trace.target, backend=backend)), trace.steps[0]


@pytest.mark.parametrize("rows", [2, 24, 64, 65, 130])
def test_bytes_are_those_of_the_tensor_that_is_handed_over(rows: int) -> None:
    trace, step = made(rows)
    mask = DraftTree.from_lists(step.tree.token, step.tree.parent).tree_mask
    sent = naive.tree_mask(mask, step.prefix_len)
    assert sent_bytes(trace, step) == sent.numel() * sent.element_size()
    words = pack_mask(mask)
    assert words.dtype == torch.int64
    assert sent_bytes(*made(rows, "triton")) == words.numel() * 8
    assert f"{int(mask.sum())} of {rows * rows} cells set" in mask_sentence(trace, step)


def test_sentences() -> None:
    trace, step = made(4)
    tree = replace(step.tree, token=[0, 1, 2, 3], parent=[-1, 0, 0, 1])
    step = replace(step, tree=tree, prefix_len=10)
    assert mask_sentence(trace, step) == (
        "4 rows, 8 of 16 cells set (50 %), the prefix seen by all: 2 bytes as bits, 56 as sent "
        "(a byte a key, prefix too)."
    )
    assert mask_sentence(made(4, "triton")[0], step).endswith("2 bytes as bits, 32 as sent (as words of 64 bits).")
    assert visibility_sentences(step) == RowSentences(
        [
            "Seen by all 4 rows",
            "Seen by itself and the 1 row below it; the other 2 cannot see it",
            "Seen by itself alone: no row hangs below it",
        ],
        [0, 1, 2, 2],
    )


def test_a_single_row_needs_no_mask() -> None:
    trace = make_trace("autoregressive", 1)
    assert sent_bytes(trace, trace.steps[0]) == 0
    assert "no mask is needed" in mask_sentence(trace, trace.steps[0])
