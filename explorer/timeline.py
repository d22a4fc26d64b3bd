"""Where the output's tokens come from: the step and row of each, and when it appeared. Standard library only.

Output token 0 is the prompt pass's own; the root of a step is the last token before it. All times are milliseconds from
the end of the prompt passes, so that runs of one prompt share their zero.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

from explorer.trace import Step, Trace


@dataclass(frozen=True)
class Place:
    """A row of a step's path: ``position`` 0 is the root, k the accepted row at depth k."""

    step: int
    position: int


def root_index(trace: Trace, step: Step) -> int:
    """Which output token is the root of a step."""
    return step.prefix_len - len(trace.prompt.token_ids)


def place_of(trace: Trace, index: int) -> Place | None:
    """The row that an output token is: a root, or an accepted row inside a path.

    None for the last token of a run, which no step has read, and for an index beyond it.
    """
    if not 0 <= index < len(trace.output.token_ids) - 1:
        return None
    roots = [root_index(trace, step) for step in trace.steps]
    step = bisect_right(roots, index) - 1
    return Place(step, index - roots[step])


def chosen_after(trace: Trace, index: int) -> Place | None:
    """The row after which the target chose an output token; None for token 0, which the prompt pass chose."""
    return None if index < 1 else place_of(trace, index - 1)


def num_passes(trace: Trace) -> list[int]:
    """How many target passes had been made, the prompt's not counted, when each output token was there."""
    return [0, *(step.index + 1 for step in trace.steps for _ in step.emitted)]


def arrivals_ms(trace: Trace) -> list[float]:
    """When each output token appeared: all tokens of a step at its end, recording left out."""
    ends = accumulate(step.ms.total for step in trace.steps)
    return [0.0, *(end for step, end in zip(trace.steps, ends, strict=True) for _ in step.emitted)]


def plain_arrivals_ms(ms_per_token: Iterable[float]) -> list[float]:
    """The same for the autoregressive lane of a run, from its ``baseline.ms_per_token``."""
    return list(accumulate(ms_per_token, initial=0.0))
