"""Greedy verification against the plainest reading of the rule: follow the argmax while it was drafted."""

from __future__ import annotations

import math

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import one_hot

from explorer.tree import DRAFT, ROOT, WINDOW, DraftTree
from explorer.verify import is_finite, verify_greedy

VOCAB = 7


@st.composite
def cases(draw: st.DrawFn) -> tuple[DraftTree, Tensor]:
    """Random trees whose siblings are distinct tokens, with the target's choice after each row."""
    num_rows = draw(st.integers(1, 20))
    tokens, parents = [0], [-1]
    for row in range(1, num_rows):
        parent = draw(st.integers(0, row - 1))
        taken = {tokens[i] for i, p in enumerate(parents) if p == parent}
        free = sorted(set(range(VOCAB)) - taken)
        if free:
            tokens.append(draw(st.sampled_from(free)))
            parents.append(parent)
        else:
            tokens.append(0)
            parents.append(len(tokens) - 2)
    choices = torch.tensor([draw(st.integers(0, VOCAB - 1)) for _ in tokens])
    return DraftTree.from_lists(tokens, parents), one_hot(choices, VOCAB).float()


@given(cases())
def test_path_is_the_argmax_walk(case: tuple[DraftTree, Tensor]) -> None:
    tree, logits = case
    choices = logits.argmax(-1).tolist()
    verdict = verify_greedy(tree, logits)
    path = [0]
    while True:
        following = [c for c in tree.children(path[-1]) if tree.token_list[c] == choices[path[-1]]]
        if not following:
            break
        path.append(following[0])
    assert list(verdict.path) == path
    assert verdict.next_token == choices[path[-1]]
    assert list(verdict.accepted_tokens) == [tree.token_list[row] for row in path[1:]]
    assert verdict.next_kind == ("recovered" if tree.children(path[-1]) else "bonus")


@given(cases())
def test_outcomes_follow_from_the_path(case: tuple[DraftTree, Tensor]) -> None:
    tree, logits = case
    verdict = verify_greedy(tree, logits)
    tested = [draw.row for draw in verdict.draws]
    for row in range(1, len(tree)):
        expected = "unreachable"
        if row in verdict.path:
            expected = "accepted"
        elif tree.parent_list[row] in verdict.path:
            expected = "rejected"  # greedy compares every child with the one argmax
        assert verdict.outcomes[row] == expected
        assert (row in tested) == (expected in ("accepted", "rejected"))
        assert math.isnan(verdict.accept_probs[row]) == (row not in tested)


def test_children_are_tested_in_row_order() -> None:
    tree = DraftTree.from_lists([9, 1, 2, 3], [-1, 0, 0, 0])
    verdict = verify_greedy(tree, one_hot(torch.tensor([2, 0, 5, 0]), VOCAB).float())
    assert [(d.row, d.accepted, d.prob) for d in verdict.draws] == [(1, False, 0.0), (2, True, 1.0), (3, False, 0.0)]
    assert verdict.next_token == 5


def test_window_rows_are_never_accepted() -> None:
    tree = DraftTree.from_lists([9, 1, 1], [-1, 0, 0], roles=[ROOT, WINDOW, DRAFT])
    verdict = verify_greedy(tree, one_hot(torch.tensor([1, 0, 0]), VOCAB).float())
    assert verdict.path == (0, 2)
    assert verdict.outcomes == ("root", "window", "accepted")


def test_non_finite_logits_are_noticed() -> None:
    logits = torch.zeros(3, VOCAB)
    assert is_finite(logits)
    for bad in (float("nan"), float("inf"), float("-inf")):
        broken = logits.clone()
        broken[1, 2] = bad
        assert not is_finite(broken)
