"""The layout: a tidy tree whose places never depend on the verdict."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import pytest

from explorer.views.layout import draft_graph, lay_out, lay_out_step
from tests.support.traces import make_trace

STEPS = [
    step for method in ("eagle2", "medusa", "lookahead", "autoregressive") for step in make_trace(method, 7, 60).steps
]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: f"{len(step.tree)}rows{step.index}")
def test_every_node_has_a_place_of_its_own(step) -> None:  # type: ignore[no-untyped-def]
    layout = lay_out_step(step)
    count = len(step.tree) + len(step.ghosts) + 1
    assert sorted(layout.order) == list(range(count))
    assert len(set(zip(layout.row, layout.col, strict=True))) == count
    graph = draft_graph(step.tree.parent + step.ghosts.parent, step.tree.score + step.ghosts.score)
    graph.add_edge(step.path[-1], count - 1)
    assert nx.is_arborescence(graph)
    leaves = [node for node in graph if graph.out_degree(node) == 0]
    assert sorted(layout.row[leaf] for leaf in leaves) == list(range(len(leaves)))
    for parent, child in graph.edges:
        assert layout.col[child] == layout.col[parent] + 1
    for node in graph:
        if graph.out_degree(node):
            assert layout.row[node] == min(layout.row[child] for child in graph.successors(node))


@pytest.mark.parametrize("step", STEPS[:3], ids=lambda step: str(step.index))
def test_order_is_depth_first_and_by_score(step) -> None:  # type: ignore[no-untyped-def]
    layout = lay_out_step(step)
    position = {node: at for at, node in enumerate(layout.order)}
    for node, parent in enumerate(step.tree.parent):
        if parent >= 0:
            assert position[node] > position[parent]
    for first, second in zip(layout.order, layout.order[1:], strict=False):
        same_parent = max(first, second) < len(step.tree) and step.tree.parent[first] == step.tree.parent[second]
        if same_parent:
            assert step.tree.score[first] >= step.tree.score[second]


def test_the_verdict_moves_no_row() -> None:
    step = make_trace("eagle2", 3, 40).steps[1]
    other = replace(step, path=[0], tree=replace(step.tree, state=["root"] + ["rejected"] * (len(step.tree) - 1)))
    size = len(step.tree)
    first, second = lay_out_step(step), lay_out_step(other)
    rows_only = [node for node in first.order if node < size]
    assert rows_only == [node for node in second.order if node < size]
    assert first.col[:size] == second.col[:size]


def test_hiding_ghosts_and_closing_rows_is_the_layout_without_them() -> None:
    for step in make_trace("eagle2", 5, 30).steps:
        size = len(step.tree)
        with_ghosts = lay_out_step(step)
        bare = lay_out(draft_graph(step.tree.parent, step.tree.score))
        used = sorted({with_ghosts.row[node] for node in range(size)})
        assert [used.index(with_ghosts.row[node]) for node in range(size)] == bare.row


def test_equal_scores_keep_row_order() -> None:
    layout = lay_out(draft_graph([-1, 0, 0, 1, 0], [0.0, -1.0, -1.0, -1.0, -0.5]))
    assert layout.order == [0, 4, 1, 3, 2]
    assert layout.row == [0, 1, 2, 1, 0]
    assert layout.col == [0, 1, 1, 2, 1]
