"""Lookahead's panel: window cells and guesses find their rows in the tree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from explorer.panels.lookahead import LookaheadPanel, lookahead_panel
from explorer.trace import Trace
from tests.support.recorded import plain
from tests.support.traces import make_trace

EXTRA = {
    "window_tokens": [[11], [12, 13]],
    "guess_tokens": [[1, 2], [1, 3]],
    "pool_size": 5,
    "added_tokens": [[0, 12, 14], [11, 13, 15]],
}


def made(**extra: Any) -> Trace:
    """root 0 -> 1 -> 2, 3 from two n-grams (1 and 3 accepted); window 11, 12, 13 in rows 4 to 6."""
    trace = make_trace("lookahead", 2, 5)
    tree = replace(
        trace.steps[0].tree,
        token=[0, 1, 2, 3, 11, 12, 13],
        parent=[-1, 0, 1, 1, 0, 0, 4],
        role=["root", "draft", "draft", "draft", "window", "window", "window"],
    )
    step = replace(trace.steps[0], tree=tree, path=[0, 1, 3], extra=EXTRA | extra)
    return replace(trace, steps=[step, replace(trace.steps[1], path=[0])])


def panel(**extra: Any) -> LookaheadPanel:
    trace = made(**extra)
    found = lookahead_panel(trace, trace.steps[0])
    assert found is not None
    return found


def test_by_hand() -> None:
    found = panel()
    assert [(row.offset, row.window_tokens, row.rows) for row in found.window] == [
        (1, [11], [4]),
        (1, [12, 13], [5, 6]),
    ]
    assert found.diagonals == [[0, 5], [4, 6]], "the root over the first token of row 1, row 0 over the second"
    assert [(guess.rows, guess.num_accepted) for guess in found.guesses] == [([1, 2], 1), ([1, 3], 2)]
    assert (found.pool_size, found.added_tokens) == (5, EXTRA["added_tokens"])
    assert [plain(text) for text in found.sentences] == [
        "The pool has 2 n-grams after ‘def’; the best one gave 2 tokens.",
        "The pass before brought 2 n-grams into the pool, the first is ‘def’ ‘␣current’ ‘next’.",
        "Over the run, the pool had something to try in 2 of 2 steps, and a token was accepted in 1.",
    ]


def test_deeper_rows_stand_further_ahead() -> None:
    assert [row.offset for row in panel(window_tokens=[[1], [2], [3], [4]]).window] == [1, 1, 2, 3]


def test_a_window_that_is_not_in_the_tree_has_no_rows() -> None:
    found = panel(window_tokens=[[11], [12, 13, 14]])
    assert [row.rows for row in found.window] == [[], []]
    assert found.diagonals == []
    assert panel(window_tokens=[[11, 12, 13]]).diagonals == [], "one row is no column yet"


def test_a_guess_that_is_not_in_the_tree_is_followed_as_far_as_it_goes() -> None:
    assert [guess.rows for guess in panel(guess_tokens=[[1, 9], [8]]).guesses] == [[1], []]


def test_an_empty_pool_is_said() -> None:
    text = plain(panel(guess_tokens=[]).sentences[0])
    assert text == "The pool has no n-gram that begins with ‘def’: nothing is tried, the window still moves on."
    assert "none of them was right" in panel(guess_tokens=[[8]]).sentences[0]


@pytest.mark.parametrize("name", ["window_tokens", "guess_tokens"])
def test_without_window_or_guesses_there_is_no_panel(name: str) -> None:
    trace = made(**{name: [["x"]]})
    assert lookahead_panel(trace, trace.steps[0]) is None


def test_what_is_said_of_the_pool_may_be_missing() -> None:
    found = panel(pool_size="many", added_tokens=None)
    assert (found.pool_size, found.added_tokens, len(found.sentences)) == (None, [], 2)
