"""The walk of a step, test by test: what each acceptance rule compared, and what became of the rows.

Greedy compares all children of an accepted row with one token, so they are one moment; rejection draws for one child
after the other; typical acceptance tests below every plausible row before it chooses a path. Standard library only.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from explorer.insight import percent, plural, quote
from explorer.moments import Board, MicroStep
from explorer.trace import DrawRecord


def walk_moments(board: Board) -> Iterator[MicroStep]:
    """The tests in their order, by the run's rule; none where nothing was drafted."""
    yield from _WALKS[board.trace.sampling.acceptance](board)


def _walk_greedy(board: Board) -> Iterator[MicroStep]:
    """The children of each accepted row against the target's first choice there."""
    step = board.step
    for row, taken in zip(step.path, [*step.path[1:], None], strict=True):
        tested = board.children[row]
        if not tested:
            return
        failed = [child for child in tested if child != taken]
        marks = board.put(board.final(tested) | board.final(board.below(failed)))
        yield MicroStep("test", _greedy_caption(board, row, taken, failed), marks, [row, *tested])


def _greedy_caption(board: Board, row: int, taken: int | None, failed: list[int]) -> str:
    top = board.step.tree.target_top[row]
    wanted = "another token"
    if taken is not None:
        wanted = f"{board.name(taken)} ({percent(board.step.tree.target_prob[taken])})"
    elif top:
        wanted = f"{quote(board.trace.vocab, top[0][0])} ({percent(top[0][1])})"
    text = f"After {board.name(row)} the target wants {wanted}. "
    if taken is None:
        return text + f"Drafted {'was' if len(failed) == 1 else 'were'} {board.names(failed)}: rejected, the walk ends."
    others = "" if not failed else f"; {plural(len(failed), 'sibling')} rejected"
    return text + f"It was drafted: accepted{others}."


def _walk_rejection(board: Board) -> Iterator[MicroStep]:
    """One test after the other, each with its own draw."""
    tree = board.step.tree
    for draw in board.step.draws:
        row, lost = draw.row, [draw.row]
        if draw.accepted:  # its untested siblings are out
            siblings = board.children[tree.parent[row]]
            lost = [other for other in siblings if other != row and board.states.get(other) == "drafted"]
        marks = board.put(board.final([row, *lost]) | board.final(board.below(lost)))
        yield MicroStep("test", _draw_caption(board, draw), marks, [row])


def _draw_caption(board: Board, draw: DrawRecord) -> str:
    name, parent = board.name(draw.row), board.name(board.step.tree.parent[draw.row])
    if draw.prob is None or draw.uniform is None:
        return f"{name} after {parent}: {'accepted' if draw.accepted else 'rejected'}."
    chance = "the target's over the draft's" if board.step.extra.get("sampled") is True else "the target's own"
    text = f"{name} after {parent} is accepted with probability {draw.prob:.3g}, {chance}; the draw {draw.uniform:.3g}"
    if draw.accepted:
        return f"{text} is below: accepted."
    left = "" if draw.residual_mass is None else f" {percent(draw.residual_mass)} of the target's distribution is left."
    return f"{text} is above: rejected.{left}"


def _walk_typical(board: Board) -> Iterator[MicroStep]:
    """What is plausible below every plausible row, then the longest path."""
    tree = board.step.tree
    for parent, group in groupby(board.step.draws, key=lambda draw: tree.parent[draw.row]):
        draws = list(group)
        failed = [draw.row for draw in draws if not draw.accepted]
        states = {draw.row: "passing" if draw.accepted else "rejected" for draw in draws}
        marks = board.put(states | dict.fromkeys(board.below(failed), "unreachable"))
        yield MicroStep("test", _typical_caption(board, parent, draws), marks, [parent, *states])
    if board.step.draws:
        marks = board.put(board.final(board.below([0])))
        accepted = board.names(board.step.path[1:])
        text = f"The longest plausible path is taken: {accepted}." if accepted else "No drafted token is plausible."
        yield MicroStep("choose", text, marks, board.step.path)


def _typical_caption(board: Board, parent: int, draws: list[DrawRecord]) -> str:
    passing = [draw.row for draw in draws if draw.accepted]
    least = draws[0].threshold
    above = "its threshold" if least is None else percent(least)
    text = f"After {board.name(parent)} a token is plausible above {above}: "
    text += f"{board.names(passing)} {'passes' if len(passing) == 1 else 'pass'}" if passing else "none passes"
    return text + (f", {len(draws) - len(passing)} rejected." if len(draws) > len(passing) else ".")


_WALKS = {"greedy": _walk_greedy, "rejection": _walk_rejection, "typical": _walk_typical}
