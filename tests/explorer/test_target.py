"""The target: a tree pass equals plain passes over each path, and a commit equals having read the path."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.config import CACHES
from explorer.errors import CheckpointError
from explorer.target import Target
from explorer.tree import DraftTree
from tests.support.tiny import ARCHITECTURES, VOCAB, greedy, tiny_model, tiny_target

TARGET = tiny_target()
TARGETS = {name: tiny_target(architecture=name) for name in ARCHITECTURES}
kinds = st.sampled_from(list(ARCHITECTURES))


@st.composite
def token_trees(draw: st.DrawFn) -> DraftTree:
    num_rows = draw(st.integers(1, 12))
    tokens = [draw(st.integers(0, VOCAB - 1)) for _ in range(num_rows)]
    return DraftTree.from_lists(tokens, [-1] + [draw(st.integers(0, row - 1)) for row in range(1, num_rows)])


prompts = st.lists(st.integers(0, VOCAB - 1), min_size=1, max_size=10)


@settings(max_examples=40, deadline=None)
@given(kinds, prompts, token_trees())
def test_each_row_equals_a_plain_pass_over_its_path(kind: str, prompt: list[int], tree: DraftTree) -> None:
    target = TARGETS[kind]
    target.start(0)
    target.prefill(prompt)
    output = target.forward(tree)
    for row in range(len(tree)):
        target.start(0)
        plain = target.prefill([*prompt, *(tree.token_list[r] for r in tree.path_to(row))])
        torch.testing.assert_close(output.logits[row], plain.logits[0], atol=1e-4, rtol=0)
        torch.testing.assert_close(output.hidden[row], plain.hidden[-1], atol=1e-4, rtol=0)


@settings(max_examples=40, deadline=None)
@given(kinds, st.sampled_from(CACHES), prompts, st.lists(token_trees(), min_size=1, max_size=3), st.data())
def test_commits_equal_a_fresh_prompt_pass(
    kind: str, cache: str, prompt: list[int], trees: list[DraftTree], data: st.DataObject
) -> None:
    """One tree after another, a path of each kept: the cache is what reading the text at once leaves."""
    target, read = TARGETS[kind], list(prompt)
    target.start(0, cache)
    target.prefill(prompt)
    for tree in trees:
        path = tree.path_to(data.draw(st.integers(0, len(tree) - 1)))
        target.forward(tree)
        target.commit(path)
        read += [tree.token_list[row] for row in path]
    held = target.cache.committed().clone()
    assert target.length == len(read)
    target.start(0)
    target.prefill(read)
    torch.testing.assert_close(held, target.cache.committed(), atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_a_plain_pass_is_transformers_own(kind: str) -> None:
    """Through our attention, fused and packed layers included; the reference has its own attention and no cache."""
    ids = [3, 1, 4, 1, 5, 9, 2, 6]
    model = tiny_model(architecture=kind)
    reference = type(model)(model.config).eval()
    reference.load_state_dict(model.state_dict())
    reference.set_attn_implementation("eager")
    with torch.inference_mode():
        expected = reference(torch.tensor([ids])).logits[0]
    TARGETS[kind].start(0)
    hidden = TARGETS[kind].prefill(ids).hidden
    torch.testing.assert_close(TARGETS[kind].head(hidden), expected, atol=1e-4, rtol=0)


def test_as_a_draft_model_it_guesses_by_its_own_reading() -> None:
    ids = torch.tensor([3, 1, 4, 1, 5])
    guesses = TARGET.guess_next(ids, torch.empty(0), None)
    assert TARGET.length == 0
    for end in range(2, len(ids) + 1):
        assert greedy(TARGET, ids[:end].tolist(), 1) == [int(guesses[end - 2])]


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


@settings(max_examples=15, deadline=None)
@given(kinds, st.sampled_from(CACHES), prompts, token_trees())
def test_watched_layers_give_what_a_plain_pass_gives_them(
    kind: str, cache: str, prompt: list[int], tree: DraftTree
) -> None:
    target = TARGETS[kind]
    target.start(0, cache, layers=(1, 0))
    read = target.prefill(prompt)
    assert {layer: states.shape for layer, states in read.layers.items()} == dict.fromkeys((1, 0), (len(prompt), 32))
    output = target.forward(tree)
    for row in range(len(tree)):
        path = [tree.token_list[r] for r in tree.path_to(row)]
        target.start(0, cache, layers=(0, 1))
        plain = target.prefill([*prompt, *path])
        torch.testing.assert_close(output.layers[1][row], plain.layers[1][-1], atol=1e-4, rtol=0)
        torch.testing.assert_close(output.layers[0][row], plain.layers[0][-1], atol=1e-4, rtol=0)
    target.start(0, cache)
    assert target.prefill(prompt).layers == {}, "nobody asked this time"
