"""DraftTree: everything derived from parents agrees with a graph library's view of the same tree."""

from __future__ import annotations

import networkx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from explorer.tree import DraftTree, binary_parents
from tests.support.trees import trees


def graph_of(tree: DraftTree) -> networkx.DiGraph:
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(len(tree)))
    graph.add_edges_from((parent, row) for row, parent in enumerate(tree.parent_list) if row)
    return graph


@given(trees())
def test_mask_is_the_ancestor_closure(tree: DraftTree) -> None:
    graph = graph_of(tree)
    assert networkx.is_arborescence(graph)
    for row in range(len(tree)):
        seen = set(tree.tree_mask[row].nonzero().flatten().tolist())
        assert seen == networkx.ancestors(graph, row) | {row}


@given(trees(), st.integers(0, 1000))
def test_positions_are_prefix_plus_depth(tree: DraftTree, prefix_len: int) -> None:
    depths = networkx.shortest_path_length(graph_of(tree), 0)
    assert tree.positions(prefix_len).tolist() == [prefix_len + depths[row] for row in range(len(tree))]


@given(trees())
def test_every_leaf_ends_exactly_one_path(tree: DraftTree) -> None:
    graph = graph_of(tree)
    assert [path[-1] for path in tree.paths()] == [row for row in graph if graph.out_degree(row) == 0]
    for path in tree.paths():
        assert path == networkx.shortest_path(graph, 0, path[-1])


@given(trees())
def test_scores_never_rise_along_a_path(tree: DraftTree) -> None:
    scores = tree.scores.tolist()
    assert scores[0] == 0
    assert all(scores[row] <= scores[parent] for row, parent in enumerate(tree.parent_list) if row)


@given(trees(probs=st.sampled_from([0.0, 1.0, 0.5])))
def test_scores_never_rise_along_a_path_where_probabilities_round_to_0_and_1(tree: DraftTree) -> None:
    scores = tree.scores.tolist()
    assert all(scores[row] <= scores[parent] for row, parent in enumerate(tree.parent_list) if row)
    assert torch.isfinite(tree.scores).all()


@given(trees())
def test_the_paths_are_the_masks_rows(tree: DraftTree) -> None:
    """What a leaf may look at is its path, and the positions along it count up."""
    for path in tree.paths():
        assert tree.tree_mask[path[-1]].nonzero().flatten().tolist() == path
        assert tree.positions(7)[path].tolist() == list(range(7, 7 + len(path)))
        assert all(parent in path for parent in (tree.parent_list[row] for row in path[1:]))


@given(trees(), st.data())
def test_keep_renumbers_an_ancestor_closed_set_and_refuses_any_other(tree: DraftTree, data: st.DataObject) -> None:
    rows = data.draw(st.sets(st.integers(0, len(tree) - 1)))
    closed = set().union({0}, *(tree.path_to(row) for row in rows))
    kept = tree.keep(closed)
    order = sorted(closed)
    assert kept.token_list == [tree.token_list[row] for row in order]
    assert [order[p] if p >= 0 else -1 for p in kept.parent_list] == [tree.parent_list[row] for row in order]
    if rows | {0} != closed:
        with pytest.raises(ValueError, match="lose their parents"):
            tree.keep(rows)


def test_a_parent_below_its_row_is_refused() -> None:
    with pytest.raises(ValueError, match="parent above it"):
        DraftTree.from_lists([1, 2, 3], [-1, 2, 0])
    with pytest.raises(ValueError, match="root"):
        DraftTree.from_lists([], [])


def test_rows_without_a_probability_add_nothing_to_the_score() -> None:
    tree = DraftTree.from_lists([1, 2, 3], [-1, 0, 1], draft_probs=[float("nan"), float("nan"), 0.5])
    assert tree.scores.tolist() == pytest.approx([0.0, 0.0, -0.6931472])
    assert torch.isfinite(tree.scores).all()


def test_a_binary_tree_has_two_children_a_row() -> None:
    assert binary_parents(1) == [-1]
    tree = DraftTree.from_lists([0] * 7, binary_parents(7))
    assert [tree.children(row) for row in range(7)] == [[1, 2], [3, 4], [5, 6], [], [], [], []]
