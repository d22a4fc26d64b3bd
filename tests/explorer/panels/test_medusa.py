"""Medusa's panel: ranks spell the tree, heads are compared with what came."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from explorer.insight import depths
from explorer.panels.medusa import MedusaPanel, medusa_panel
from explorer.trace import Step, Trace
from tests.support.recorded import plain, recorded
from tests.support.traces import make_trace

HEADS = [[[1, 0.6], [2, 0.3]], [[3, 0.5], [4, 0.2]]]


def make_step(heads: Any = HEADS, following: int = 4) -> tuple[Trace, Step]:
    """root -> 1, 2; 1 -> 4; the output goes on with 1, ``following``."""
    trace = make_trace("medusa", 2, 5)
    tree = replace(trace.steps[0].tree, token=[0, 1, 2, 4], parent=[-1, 0, 0, 1], role=["root"] + ["draft"] * 3)
    output = [trace.output.token_ids[0], 1, following]
    step = replace(trace.steps[0], tree=tree, extra={"heads": heads})
    return replace(trace, output=replace(trace.output, token_ids=output)), step


def panel_of(*args: Any, **kwargs: Any) -> MedusaPanel:
    panel = medusa_panel(*make_step(*args, **kwargs))
    assert panel is not None
    return panel


def test_by_hand() -> None:
    panel = panel_of()
    assert panel.ranks == [[], [0], [1], [0, 1]]
    one, two = panel.heads
    assert [(c.token, c.rows) for c in one.candidates] == [(1, [1]), (2, [2])]
    assert [(c.token, c.rows) for c in two.candidates] == [(3, []), (4, [3])]
    assert [(head.came_token, head.came_rank) for head in panel.heads] == [(1, 0), (4, 1)]
    assert [plain(text) for text in panel.sentences] == [
        "Head 1: ‘␣reverse’ came, its first choice (60 %), in 1 row of the tree.",
        "Head 2: ‘):’ came, number 2 of its list (20 %), in 1 row of the tree.",
    ]
    assert panel.product == (
        "The tree is a choice of ranks, the same in every step: 2 paths out of the 4 that 2 × 2 ranks would give."
    )
    assert "without knowing the token before it" in two.blind
    assert "without knowing" not in one.blind


def test_what_no_head_had_and_what_the_output_never_reached() -> None:
    panel = panel_of(following=9)
    assert panel.heads[1].came_rank is None
    assert plain(panel.sentences[1]) == "Head 2: ‘␣None’ came, which is not among its first 2."
    longer = panel_of(heads=[*HEADS, [[7, 0.1]]])
    assert longer.heads[2].came_token is None
    assert len(longer.sentences) == 2
    assert "without knowing the 2 tokens before it" in longer.heads[2].blind


def test_a_row_beyond_the_recorded_lists_has_no_rank() -> None:
    assert panel_of(heads=[HEADS[0], [[3, 0.5]]]).ranks == [[], [0], [1], None]
    assert panel_of(heads=[HEADS[0]]).ranks == [[], [0], [1], None]


@pytest.mark.parametrize("heads", [None, "x", [], [[1, 2]], [[["a", 0.5]]]])
def test_without_lists_there_is_no_panel(heads: Any) -> None:
    assert medusa_panel(*make_step(heads)) is None


@pytest.mark.parametrize("name", ["medusa-code", "medusa-code-64"])
def test_recorded_ranks_are_distinct_paths_of_their_depth(name: str) -> None:
    trace = recorded(name)
    for step in trace.steps:
        panel = medusa_panel(trace, step)
        assert panel is not None
        ranks = [tuple(path or ()) for path in panel.ranks]
        assert [len(path) for path in ranks] == depths(step.tree.parent)
        assert len(set(ranks)) == len(ranks)
        for head in panel.heads:
            tested = [step.tree.token[row] for row in step.path[head.depth : head.depth + 1]]
            assert not tested or head.came_token == tested[0], "greedy: what was accepted came"
