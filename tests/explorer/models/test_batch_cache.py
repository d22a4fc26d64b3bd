"""A batch computes for each sequence what a pass over it alone computes."""

from __future__ import annotations

import pytest
import torch

from explorer.target import Target
from explorer.tree import DraftTree
from tests.support.tiny import tiny_model

TREES = (DraftTree.from_lists([5], [-1]), DraftTree.from_lists([5, 6, 7, 8], [-1, 0, 0, 2]))


@pytest.mark.parametrize("architecture", ["llama", "gemma"])
def test_every_sequence_gives_what_it_gives_alone(architecture: str) -> None:
    target = Target(tiny_model(architecture=architecture), None, "tiny", frozenset(), "naive")
    target.start(8)
    target.prefill([1, 2, 3, 4])
    batch = target.batch(3, 4)
    assert batch.committed().shape[2] == 3 and batch.length == 4
    for tree in (*TREES, TREES[0]):  # nothing of a pass is kept
        alone = target.forward(tree).logits
        logits = target.forward_batch(tree, batch)
        assert logits.shape == (3, len(tree), target.vocab_size)
        for each in logits:
            torch.testing.assert_close(each, alone, rtol=1e-4, atol=1e-4)


def test_a_pass_beyond_the_room_is_refused() -> None:
    target = Target(tiny_model(), None, "tiny", frozenset(), "naive")
    target.start(8)
    target.prefill([1, 2])
    with pytest.raises(ValueError, match="room for 2 rows, not 4"):
        target.forward_batch(TREES[1], target.batch(2, 2))
