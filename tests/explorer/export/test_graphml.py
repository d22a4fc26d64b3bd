"""A step's tree as GraphML: read back, it is the record."""

import io
import json

import networkx as nx
import pytest

from explorer.codec import encode
from explorer.export.graphml import step_graph, step_graphml
from explorer.insight import depths, visible
from explorer.views.layout import lay_out_step
from tests.support.traces import make_trace

COLUMNS = ("token", "role", "draft_prob", "score", "target_prob", "target_rank", "accept_prob", "state")
TRACES = [
    make_trace("eagle2", 5, 40, acceptance="rejection"),
    make_trace("lookahead", 3, 16),
    make_trace("autoregressive", 2),
    make_trace("eagle2", 4, 30, hostile=True),
]


def read_back(trace, index):
    return nx.read_graphml(io.BytesIO(step_graphml(trace, index)), node_type=int)


@pytest.mark.parametrize("trace", TRACES, ids=lambda trace: trace.method)
def test_read_back_every_column_is_the_record(trace):
    for step in trace.steps:
        graph, tree = read_back(trace, step.index), step.tree
        for row in range(len(tree)):
            node = graph.nodes[row]
            assert [node.get(name) for name in COLUMNS] == [getattr(tree, name)[row] for name in COLUMNS]
            top = json.loads(node["target_top"]) if "target_top" in node else None
            assert top == encode(tree.target_top[row])
            label = trace.vocab[str(tree.token[row])]
            assert (node["label"], node["kind"]) == (visible(label.label), label.kind)
            assert list(graph.predecessors(row)) == ([tree.parent[row]] if row else [])


def test_ghosts_and_the_targets_own_token_come_after_the_rows():
    trace = TRACES[0]
    for step in trace.steps:
        graph, size = read_back(trace, step.index), len(step.tree)
        own = size + len(step.ghosts)
        assert sorted(graph) == list(range(own + 1))
        for ghost in range(len(step.ghosts)):
            node = graph.nodes[size + ghost]
            assert (node["state"], node["token"]) == ("pruned", step.ghosts.token[ghost])
            assert node.get("target_prob") == step.ghosts.target_prob[ghost]
            assert list(graph.predecessors(size + ghost)) == [step.ghosts.parent[ghost]]
        assert (graph.nodes[own]["state"], graph.nodes[own]["token"]) == ("own", step.next_token)
        assert list(graph.predecessors(own)) == [step.path[-1]]
        states = [graph.nodes[node]["state"] for node in graph]
        assert states.count("pruned") == len(step.ghosts) and states.count("own") == 1


def test_it_is_a_tree_with_depths_positions_and_the_viewers_rows():
    trace = TRACES[0]
    step = trace.steps[0]
    graph, layout = read_back(trace, 0), lay_out_step(step)
    assert nx.is_arborescence(graph)
    lengths = nx.single_source_shortest_path_length(graph, 0)
    for node in graph:
        assert graph.nodes[node]["depth"] == lengths[node]
        assert graph.nodes[node]["position"] == step.prefix_len + lengths[node]
        assert graph.nodes[node]["layout_row"] == layout.row[node]
    assert [lengths[row] for row in range(len(step.tree))] == depths(step.tree.parent)


def test_the_graph_tells_the_step():
    trace = TRACES[0]
    step = trace.steps[1]
    about = read_back(trace, 1).graph
    assert (about["method"], about["step"], about["prefix_len"]) == (trace.method, 2, step.prefix_len)
    assert json.loads(about["path"]) == step.path and json.loads(about["emitted"]) == step.emitted
    assert json.loads(about["draws"]) == encode(step.draws)
    assert json.loads(about["settings"]) == trace.settings
    assert (about["next_token"], about["next_kind"]) == (step.next_token, step.next_kind)
    assert json.loads(about["ms"]) == encode(step.ms)


def test_absent_values_are_absent():
    root = step_graph(TRACES[0], 0).nodes[0]
    assert "draft_prob" not in root and "accept_prob" not in root
    assert "plain_reason" not in step_graph(TRACES[0], 0).graph
