"""The draft model's panel: the shared mass of both models, only where the record really has it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from explorer.panels.draft_model import NOT_COMPARABLE, ChainRow, DraftModelPanel, draft_model_panel
from explorer.trace import DrawRecord, Trace
from tests.support.recorded import plain
from tests.support.traces import make_trace


def panel(acceptance: str, *, is_drawn: bool, temperature: float = 1.0, **extra: Any) -> DraftModelPanel:
    """root -> 1 (accepted with 0.5) -> 2 (rejected with 0.25, 0.7 left) -> 3 (never tested)."""
    trace = make_trace("draft_model", 2, 4, acceptance=acceptance)
    tree = replace(
        trace.steps[0].tree,
        token=[0, 1, 2, 3],
        parent=[-1, 0, 1, 2],
        role=["root"] + ["draft"] * 3,
        draft_prob=[None, 0.8, 0.4, 0.5],
        target_prob=[None, 0.4, 0.1, 0.6],
        target_top=[[(5, 0.5), (1, 0.4)], [(6, 0.8)], None, None],
    )
    draws = [DrawRecord(1, 0.2, 0.5, True), DrawRecord(2, 0.9, 0.25, False, None, 0.7, [(5, 0.6)])]
    step = replace(trace.steps[0], tree=tree, draws=draws, extra=extra | ({"sampled": True} if is_drawn else {}))
    sampling = replace(trace.sampling, temperature=temperature)
    found = draft_model_panel(replace(trace, sampling=sampling), step)
    assert found is not None
    return found


def test_drawn_tokens_share_what_their_test_says() -> None:
    first, second, third = panel("rejection", is_drawn=True).rows
    assert [row.shared for row in (first, second)] == [pytest.approx(0.4), pytest.approx(0.1)]
    assert (first.overlap, second.overlap) == (None, pytest.approx(0.3)), "a rejection leaves 1 - overlap"
    assert second.residual_tops == [(5, 0.6)]
    assert (second.accept_prob, second.uniform) == (0.25, 0.9)
    assert (third.accept_prob, third.shared) == (None, 0.5), "unwarped: both are comparable"


def test_a_warped_draft_is_not_compared_with_the_raw_target() -> None:
    rows = panel("rejection", is_drawn=True, temperature=0.5).rows
    assert [row.shared for row in rows] == [pytest.approx(0.4), pytest.approx(0.1), None]


def test_greedy_runs_compare_both_softmaxes() -> None:
    rows = panel("greedy", is_drawn=False, temperature=0.0).rows
    assert [row.shared for row in rows] == [0.4, 0.1, 0.5]
    assert [row.overlap for row in rows] == [None, None, None]


def test_sentences() -> None:
    found = panel("rejection", is_drawn=True)
    assert [plain(row.sentence) for row in found.rows] == [
        "‘␣reverse’: the draft model gave it 80 %, the target 40 %.",
        "‘_list’: the draft model gave it 40 %, the target 10 %; their distributions overlap by 30 %, the chance that "
        "a draft was accepted here.",
        "‘(head’: the draft model gave it 50 %, the target 60 %.",
    ]
    assert all(isinstance(row, ChainRow) for row in found.rows)


def test_both_models_favourites_are_paired() -> None:
    found = panel("greedy", is_drawn=False, temperature=0.0, draft_tops=[[[1, 0.8], [7, 0.15]]])
    told = [(pair.token, pair.draft_prob, pair.target_prob, pair.shared) for pair in found.rows[0].pairs]
    assert told == [(1, 0.8, 0.4, 0.4), (5, None, 0.5, None), (7, 0.15, None, None)]
    assert [pair.token for pair in found.rows[1].pairs] == [6, 2], "without the drafter's list its own token is known"
    assert found.sentences == []


def test_warped_favourites_are_not_said_to_overlap() -> None:
    found = panel("rejection", is_drawn=True, temperature=0.5, draft_tops=[[[1, 0.8]]])
    assert [pair.shared for row in found.rows for pair in row.pairs] == [None] * 5
    assert found.sentences == [NOT_COMPARABLE]


@pytest.mark.parametrize("tops", ["x", [[["a", 0.5]]], [[[1]]], []])
def test_a_strange_list_is_as_good_as_none(tops: Any) -> None:
    assert [pair.token for pair in panel("greedy", is_drawn=False, draft_tops=tops).rows[0].pairs] == [1, 5]


def test_nothing_drafted_has_no_panel() -> None:
    trace: Trace = make_trace("autoregressive", 2)
    assert draft_model_panel(trace, trace.steps[0]) is None
