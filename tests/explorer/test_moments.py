"""The board: states as they stand, and what a change really changes."""

from __future__ import annotations

from dataclasses import replace

from explorer.moments import Board
from tests.support.recorded import plain
from tests.support.traces import make_trace


def make_board() -> Board:
    """root 0 -> 1, 2; 1 -> 3; 3 -> 4 (a window row)."""
    trace = make_trace("eagle2", 2, 5)
    tree = replace(
        trace.steps[0].tree, token=[0, 1, 2, 3, 4], parent=[-1, 0, 0, 1, 3], role=["root", *["draft"] * 3, "window"]
    )
    return Board(trace, replace(trace.steps[0], tree=tree))


def test_only_what_changes_is_a_mark() -> None:
    board = make_board()
    assert board.put({2: "drafted", 1: "drafted", 0: "root"}) == [("drafted", [1, 2]), ("root", [0])]
    assert board.put({1: "drafted", 2: "rejected"}) == [("rejected", [2])]
    assert board.put({2: "rejected"}) == []


def test_children_and_what_hangs_below_are_drafted_rows() -> None:
    board = make_board()
    assert board.children[0] == [1, 2]
    assert sorted(board.below([0])) == [1, 2, 3]
    assert board.below([1]) == [3]
    assert board.below([3]) == []


def test_the_targets_own_token_comes_last() -> None:
    board = make_board()
    assert board.own == len(board.step.tree) + len(board.step.ghosts)


def test_names_are_quoted_and_listed() -> None:
    assert plain(make_board().names([0, 1])) == "‘def’ and ‘␣reverse’"
