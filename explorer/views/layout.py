"""Where every node of a draft tree stands: one layout for the viewer, the exports and the terminal.

A left-to-right tidy tree: the column is the depth, every leaf has a row of its own, and a parent stands on the row of
its first child, so that the drafter's best path is a straight line at the top. Children are ordered by cumulative
draft score, ties by row number: the verdict never moves a node. Because pruned nodes (ghosts) and the target's own
token come after the drafted children, hiding nodes and closing the empty rows gives the layout of what is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import networkx as nx

from explorer.trace import Step


@dataclass(frozen=True)
class Layout:
    """``order`` lists the nodes depth-first; ``row`` and ``col`` are each node's place, counted from 0."""

    order: list[int]
    row: list[int]
    col: list[int]


def draft_graph(parents: Sequence[int], scores: Sequence[float]) -> nx.DiGraph:
    """The tree as a directed graph, edges parent to child, each node's children by falling score."""
    graph = nx.DiGraph()
    graph.add_node(0)
    best_first = sorted(range(1, len(parents)), key=lambda node: (-scores[node], node))
    graph.add_edges_from((parents[node], node) for node in best_first)
    return graph


def lay_out(graph: nx.DiGraph) -> Layout:
    """Depth-first order, leaf rows and depth columns of a tree whose root is node 0."""
    order, row, col = list[int](), [0] * len(graph), [0] * len(graph)
    num_leaves, waiting = 0, [0]
    while waiting:  # one walk for all three: a long run has hundreds of trees
        node = waiting.pop()
        order.append(node)
        row[node] = num_leaves
        children = list(graph.successors(node))
        for child in children:
            col[child] = col[node] + 1
        waiting += reversed(children)
        num_leaves += not children
    return Layout(order, row, col)


def lay_out_step(step: Step) -> Layout:
    """Layout of the N rows, then the G ghosts, then the target's own token as the last child where the walk ended."""
    graph = draft_graph(step.tree.parent + step.ghosts.parent, step.tree.score + step.ghosts.score)
    graph.add_edge(step.path[-1], graph.number_of_nodes())
    return lay_out(graph)
