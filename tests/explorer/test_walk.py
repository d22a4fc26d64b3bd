"""The walk as moments: one example of each rule by hand, and the order of the record's own tests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.moments import Board, MicroStep
from explorer.trace import DrawRecord, Step, Trace
from explorer.walk import walk_moments
from tests.support.recorded import plain
from tests.support.traces import make_trace


def board_of(acceptance: str, **changes: object) -> Board:
    """root -> good (accepted), bad; good -> late (rejected); bad -> below. All drafted, no verdict yet."""
    trace = make_trace("eagle2", 2, 5, acceptance=acceptance)
    tree = replace(
        trace.steps[0].tree,
        token=[0, 1, 2, 3, 4],
        parent=[-1, 0, 0, 1, 2],
        role=["root"] + ["draft"] * 4,
        state=["root", "accepted", "rejected", "rejected", "unreachable"],
        target_prob=[None, 0.62, 0.03, 0.004, 0.5],
        target_top=[[(1, 0.62), (2, 0.03)], [(6, 0.4)], None, None, None],
    )
    values = {"tree": tree, "path": [0, 1], "next_token": 6, "extra": {}} | changes
    board = Board(trace, replace(trace.steps[0], **values))  # type: ignore[arg-type]
    board.put(dict.fromkeys(range(1, 5), "drafted"))
    return board


def told(board: Board) -> list[tuple[str, list[tuple[str, list[int]]], list[int]]]:
    return [(plain(moment.caption), moment.marks, moment.focus) for moment in walk_moments(board)]


def test_greedy_compares_all_children_with_one_token() -> None:
    first, second = told(board_of("greedy"))
    assert first == (
        "After ‘def’ the target wants ‘␣reverse’ (62 %). It was drafted: accepted; 1 sibling rejected.",
        [("accepted", [1]), ("rejected", [2]), ("unreachable", [4])],
        [0, 1, 2],
    )
    assert second[0] == "After ‘␣reverse’ the target wants ‘␣␣␣␣’ (40 %). Drafted was ‘(head’: rejected, the walk ends."
    assert second[1:] == ([("rejected", [3])], [1, 3])


def test_greedy_ends_silently_at_a_leaf() -> None:
    board = board_of("greedy")
    tree = replace(board.step.tree, parent=[-1, 0, 0, 2, 2])
    board = Board(board.trace, replace(board.step, tree=tree))
    assert [moment.focus for moment in walk_moments(board)] == [[0, 1, 2]], "good has no child to test"


def test_rejection_draws_for_one_child_after_the_other() -> None:
    draws = [DrawRecord(2, 0.73, 0.41, False, None, 0.59, []), DrawRecord(1, 0.31, 0.62, True)]
    first, second = told(board_of("rejection", draws=draws))
    assert first == (
        "‘_list’ after ‘def’ is accepted with probability 0.41, the target's own; the draw 0.73 is above: rejected. "
        "59 % of the target's distribution is left.",
        [("rejected", [2]), ("unreachable", [4])],
        [2],
    )
    assert second[0].endswith("with probability 0.62, the target's own; the draw 0.31 is below: accepted.")
    assert second[1:] == ([("accepted", [1])], [1])
    sampled = told(board_of("rejection", draws=draws[1:], extra={"sampled": True}))
    assert "the target's over the draft's" in sampled[0][0]


def test_an_acceptance_leaves_the_later_siblings_untried() -> None:
    board = board_of("rejection", draws=[DrawRecord(1, 0.31, 0.62, True)])
    tree = replace(board.step.tree, state=["root", "accepted", "untried", "untried", "unreachable"])
    board = Board(board.trace, replace(board.step, tree=tree))
    board.put(dict.fromkeys(range(1, 5), "drafted"))
    (moment,) = walk_moments(board)
    assert moment.marks == [("accepted", [1]), ("untried", [2]), ("unreachable", [4])]


def test_a_draw_without_numbers_is_told_by_its_outcome() -> None:
    (only,) = told(board_of("rejection", draws=[DrawRecord(2, None, None, False)]))
    assert only[0] == "‘_list’ after ‘def’: rejected."


def test_typical_tests_below_every_plausible_row_and_then_chooses() -> None:
    draws = [
        DrawRecord(1, None, 0.62, True, 0.09),
        DrawRecord(2, None, 0.2, True, 0.09),
        DrawRecord(3, None, 0.004, False, 0.05),
        DrawRecord(4, None, 0.01, False, 0.08),
    ]
    first, second, third, choice = told(board_of("typical", draws=draws))
    assert first == (
        "After ‘def’ a token is plausible above 9 %: ‘␣reverse’ and ‘_list’ pass.",
        [("passing", [1, 2])],
        [0, 1, 2],
    )
    assert second[0] == "After ‘␣reverse’ a token is plausible above 5 %: none passes, 1 rejected."
    assert third[1] == [("rejected", [4])]
    assert choice[0] == "The longest plausible path is taken: ‘␣reverse’."
    assert choice[1] == [("accepted", [1]), ("rejected", [2]), ("unreachable", [4])], "the record has the last word"


def test_typical_without_any_plausible_token() -> None:
    draws = [DrawRecord(1, None, 0.01, False, 0.09), DrawRecord(2, None, 0.01, False, 0.09)]
    moments = told(board_of("typical", draws=draws, path=[0]))
    assert moments[0][0] == "After ‘def’ a token is plausible above 9 %: none passes, 2 rejected."
    assert moments[-1][0] == "No drafted token is plausible."


@pytest.mark.parametrize("acceptance", ["rejection", "typical"])
def test_each_test_of_the_record_is_shown_once_in_order(acceptance: str) -> None:
    trace = make_trace("medusa", 8, 30, acceptance=acceptance)
    for step in trace.steps:
        shown = [row for moment in _walk(trace, step) if moment.kind == "test" for row in moment.focus]
        tested = [draw.row for draw in step.draws]
        if acceptance == "rejection":
            assert shown == tested
        else:
            parents = {step.tree.parent[row] for row in tested}
            assert sorted(shown) == sorted([*tested, *parents])


def _walk(trace: Trace, step: Step) -> list[MicroStep]:
    board = Board(trace, step)
    board.put(dict.fromkeys(range(1, len(step.tree)), "drafted"))
    return list(walk_moments(board))
