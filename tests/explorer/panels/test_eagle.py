"""EAGLE's panel: every node in its level, and the beam as far as the record can tell it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from explorer.insight import depths
from explorer.panels.eagle import NUM_LISTED, eagle_panel
from explorer.record import NUM_GHOSTS
from explorer.trace import GhostColumns, Step, Trace
from tests.support.recorded import plain, recorded
from tests.support.traces import make_trace


def small(method: str = "eagle2", top_k: int = 1) -> tuple[Trace, Step]:
    """root -> 1, 2; 1 -> 3 and a ghost; drafted in two passes."""
    trace = make_trace(method, 2, 5)
    tree = replace(
        trace.steps[0].tree,
        token=[0, 1, 2, 3],
        parent=[-1, 0, 0, 1],
        role=["root"] + ["draft"] * 3,
        score=[0.0, -0.5, -1.5, -0.8],
    )
    ghosts = GhostColumns([4], [1], [0.1], [-2.0], [None])
    ms = replace(trace.steps[0].ms, draft=[1.0, 1.0])
    step = replace(trace.steps[0], tree=tree, ghosts=ghosts, num_pruned=1, ms=ms)
    return replace(trace, settings={"top_k": top_k, "depth": 1}), step


def test_levels_by_hand() -> None:
    panel = eagle_panel(*small())
    assert panel is not None
    one, two = panel.levels
    assert [(node.node, node.is_expanded) for node in one.nodes] == [(1, True), (2, False)]
    assert one.nodes[0].confidence == pytest.approx(math.exp(-0.5))
    assert [(node.node, node.is_expanded) for node in two.nodes] == [(3, False), (4, False)]
    assert panel.sentences[0].startswith("Of each level the best 1 are expanded")
    assert plain(one.sentence) == (
        "Depth 1: 2 of the 2 nodes shown went to the target. Expanded was ‘␣reverse’ (61 %)."
    )
    assert plain(two.sentence) == (
        "Depth 2: 1 of the 2 nodes shown went to the target. None was expanded: the draft ends here."
    )


def test_a_node_of_the_beam_may_have_lost_all_its_children() -> None:
    panel = eagle_panel(*small(top_k=2))
    assert panel is not None
    assert [node.is_expanded for node in panel.levels[0].nodes] == [True, True]
    static = eagle_panel(*small("eagle1", top_k=2))
    assert static is not None
    assert [node.is_expanded for node in static.levels[0].nodes] == [True, False], "a static tree has no beam"
    assert static.sentences[0].startswith("A static tree")


def test_the_number_of_listed_ghosts_is_the_records() -> None:
    assert NUM_LISTED == NUM_GHOSTS


@pytest.mark.parametrize("name", ["eagle2-code", "eagle2-code-60"])
def test_recorded_levels_hold_every_node_and_all_parents_were_expanded(name: str) -> None:
    trace = recorded(name)
    for step in trace.steps:
        panel = eagle_panel(trace, step)
        assert panel is not None
        parents = step.tree.parent + step.ghosts.parent
        level = depths(parents)
        nodes = [node for each in panel.levels for node in each.nodes]
        assert sorted(node.node for node in nodes) == list(range(1, len(level)))
        for each in panel.levels:
            assert {level[node.node] for node in each.nodes} == {each.depth}
            expanded = [node for node in each.nodes if node.is_expanded]
            assert len(expanded) <= trace.settings["top_k"]
            assert len(expanded) == 0 or each.depth < len(step.ms.draft)
        expanded_nodes = {node.node for node in nodes if node.is_expanded}
        assert set(parents) - {-1, 0} <= expanded_nodes


def test_nothing_drafted_has_no_panel() -> None:
    trace = make_trace("autoregressive", 2)
    assert eagle_panel(trace, trace.steps[0]) is None
