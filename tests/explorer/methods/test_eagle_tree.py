"""The growth of a confidence tree: the order of ties, and nodes that reach the host unchanged."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from explorer.methods.eagle_tree import best_of
from explorer.tree import DraftTree
from tests.support.trees import trees


def test_no_node_loses_its_parent_when_scores_tie() -> None:
    """A child of log-probability 0 ties with its parent; the original may then keep the child alone."""
    scores = torch.tensor([-1.0, -2.0, -1.0, -1.0, -1.0])  # rows 2..4 continue row 0 with certainty
    assert best_of(scores, 2).tolist() == [0, 2]
    for budget in range(1, 6):
        chosen = set(best_of(scores, budget).tolist())
        assert chosen & {2, 3, 4} == set() or 0 in chosen


@given(trees(probs=st.sampled_from([1.0, 1.0, 0.5, 0.25])), st.data())
def test_reranking_any_tree_with_ties_never_orphans(tree: DraftTree, data: st.DataObject) -> None:
    budget = data.draw(st.integers(0, len(tree) - 1))
    chosen = best_of(tree.scores[1:], budget) + 1
    kept = tree.keep(chosen)  # raises where a row would lose its parent
    assert len(kept) == 1 + budget
    left = sorted(set(range(1, len(tree))) - set(chosen.tolist()))
    if budget and left:
        assert tree.scores[left].max() <= tree.scores[chosen].min()
