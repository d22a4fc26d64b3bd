"""The target: a tree pass equals plain passes over each path, and a commit equals having read the path."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.errors import CheckpointError
from explorer.target import Target
from explorer.tree import DraftTree
from tests.support.tiny import VOCAB, tiny_model, tiny_target

TARGET = tiny_target()


@st.composite
def token_trees(draw: st.DrawFn) -> DraftTree:
    num_rows = draw(st.integers(1, 12))
    tokens = [draw(st.integers(0, VOCAB - 1)) for _ in range(num_rows)]
    return DraftTree.from_lists(tokens, [-1] + [draw(st.integers(0, row - 1)) for row in range(1, num_rows)])


prompts = st.lists(st.integers(0, VOCAB - 1), min_size=1, max_size=10)


@settings(max_examples=25, deadline=None)
@given(prompts, token_trees())
def test_each_row_equals_a_plain_pass_over_its_path(prompt: list[int], tree: DraftTree) -> None:
    TARGET.start(0)
    TARGET.prefill(prompt)
    output = TARGET.forward(tree)
    for row in range(len(tree)):
        TARGET.start(0)
        plain = TARGET.prefill([*prompt, *(tree.token_list[r] for r in tree.path_to(row))])
        torch.testing.assert_close(output.logits[row], plain.logits[0], atol=1e-4, rtol=0)
        torch.testing.assert_close(output.hidden[row], plain.hidden[-1], atol=1e-4, rtol=0)


@settings(max_examples=25, deadline=None)
@given(prompts, token_trees(), st.data())
def test_commit_equals_a_fresh_prompt_pass(prompt: list[int], tree: DraftTree, data: st.DataObject) -> None:
    path = tree.path_to(data.draw(st.integers(0, len(tree) - 1)))
    TARGET.start(0)
    TARGET.prefill(prompt)
    TARGET.forward(tree)
    TARGET.commit(path)
    held = TARGET.cache.committed().clone()
    assert TARGET.length == len(prompt) + len(path)
    TARGET.start(0)
    TARGET.prefill([*prompt, *(tree.token_list[r] for r in path)])
    torch.testing.assert_close(held, TARGET.cache.committed(), atol=1e-5, rtol=0)


def test_the_mask_handed_to_the_model_is_prefix_and_ancestors() -> None:
    tree = DraftTree.from_lists([1, 2, 3, 4], [-1, 0, 1, 0])
    TARGET.start(0)
    TARGET.prefill([5, 6, 7])
    TARGET.forward(tree)
    assert TARGET.last_mask is not None
    assert TARGET.last_mask[:, :3].all()
    assert torch.equal(TARGET.last_mask[:, 3:], tree.tree_mask)


def test_logits_that_are_not_the_plain_lm_head_are_refused() -> None:
    class SoftCapped(type(tiny_model())):  # type: ignore[misc]
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            output = super().forward(*args, **kwargs)
            output.logits = torch.tanh(output.logits / 2)
            return output

    model = tiny_model()
    Target(model, None, "tiny", frozenset(), "naive")
    model.__class__ = SoftCapped
    with pytest.raises(CheckpointError, match="not the LM head"):
        Target(model, None, "tiny", frozenset(), "naive")


def test_rolling_back_equals_never_having_read_on() -> None:
    TARGET.start(0)
    TARGET.prefill([5, 6, 7])
    expected = TARGET.prefill([8]).logits
    TARGET.prefill([1, 2])
    TARGET.roll_back(3)
    torch.testing.assert_close(TARGET.prefill([8]).logits, expected, atol=1e-5, rtol=0)


def test_a_lent_head_is_used_as_it_is() -> None:
    head = TARGET.head
    assert Target(tiny_model(), None, "tiny", frozenset(), "naive", head).head is head
