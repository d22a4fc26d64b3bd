"""Jacobi's panel: the last passes as a grid of iterations by positions, until the guesses stand still.

Standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from explorer.insight import plural
from explorer.panels.extra import count
from explorer.timeline import root_index
from explorer.trace import Step, Trace

NUM_ITERATIONS = 8  # passes in the grid, the step's own last


@dataclass(frozen=True)
class Iteration:
    """One pass. start: the output index of its first guess. guess_tokens: the block.

    num_carried: the first so many were said by the target in the pass before, the rest are first guesses; None where
    the record does not tell. num_fixed: the first so many were accepted. came [block]: whether the output really has
    the guess there; None where it ends before. rows: the guesses' rows in that pass's own tree.
    """

    step: int
    start: int
    guess_tokens: list[int]
    num_carried: int | None
    num_fixed: int
    came: list[bool | None]
    rows: list[int]


@dataclass(frozen=True)
class JacobiPanel:
    """The passes up to this step, oldest first; columns of one position lie below each other."""

    iterations: list[Iteration]
    sentences: list[str]
    kind: ClassVar[str] = "jacobi"


def jacobi_panel(trace: Trace, step: Step) -> JacobiPanel | None:
    """None where nothing was guessed."""
    if not step.num_drafted:
        return None
    first = max(0, step.index + 1 - NUM_ITERATIONS)
    iterations = [_iteration(trace, each) for each in trace.steps[first : step.index + 1]]
    return JacobiPanel(iterations, _sentences(iterations[-1]))


def _iteration(trace: Trace, step: Step) -> Iteration:
    start, output = root_index(trace, step) + 1, trace.output.token_ids
    rows = [row for row, role in enumerate(step.tree.role) if role == "draft"]
    guesses = [step.tree.token[row] for row in rows]
    came = [output[at] == token if at < len(output) else None for at, token in enumerate(guesses, start=start)]
    carried = count(step.extra, "num_carried")
    return Iteration(
        step=step.index,
        start=start,
        guess_tokens=guesses,
        num_carried=None if carried is None else min(carried, len(guesses)),
        num_fixed=step.num_accepted,
        came=came,
        rows=rows,
    )


def _sentences(now: Iteration) -> list[str]:
    """How many guesses this pass fixed, and how many were right behind a wrong one."""
    size = len(now.guess_tokens)
    found = [f"This pass fixed {now.num_fixed} of {plural(size, 'guess', 'guesses')}."]
    too_early = sum(right is True for right in now.came[now.num_fixed :])
    if too_early:
        found.append(
            f"{plural(too_early, 'guess', 'guesses')} stood right behind a wrong one: not fixed yet, but found again."
        )
    return found
