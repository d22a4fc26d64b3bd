"""When speculation does not pay inside a run: drop to plain decoding, and try again later. Standard library only.

A step pays where it emits more tokens than it costs in plain passes. Both sides are measured in the run itself: the
tokens and milliseconds of the last speculative steps, and the milliseconds of a plain pass.
"""

from __future__ import annotations

import statistics
from collections import deque
from dataclasses import dataclass
from typing import Any

WINDOW = 8  # speculative steps that are judged together
PROBE = 4  # as many decide after a rest
FIRST_REST, LONGEST_REST = 8, 64  # plain steps; every probe that does not pay doubles the next rest
NUM_MEASURED = 2  # plain steps at the start of a run that brings no measurement


@dataclass(frozen=True)
class Judgement:
    """What the last window showed: mean tokens a step, and how many would have paid for its time."""

    tokens: float
    needed: float

    @property
    def pays(self) -> bool:
        """Whether speculation was at least as fast as plain decoding."""
        return self.tokens >= self.needed


class FallbackPolicy:
    """Ask ``is_resting`` before each step, tell ``observe`` after it.

    plain_ms: a plain pass of this target in this run, where it was measured already; each plain step refines it.
    """

    def __init__(self, plain_ms: float | None = None) -> None:
        self._plain_ms = deque([plain_ms] if plain_ms else [], maxlen=LONGEST_REST)
        self._window: deque[tuple[int, float]] = deque(maxlen=WINDOW)
        self._num_judged = WINDOW  # how full the window has to be for the next judgement
        self._rest = FIRST_REST
        self._left = 0 if plain_ms else NUM_MEASURED
        self._last: Judgement | None = None

    @property
    def is_resting(self) -> bool:
        """Whether the next step is a plain one."""
        return self._left > 0

    def told(self) -> dict[str, Any]:
        """What the record of a plain step keeps: the judgement that led to it (null while measuring), steps to go."""
        found = self._last
        return {
            "tokens": None if found is None else found.tokens,
            "needed": None if found is None else found.needed,
            "left": self._left,
        }

    def observe(self, num_tokens: int, step_ms: float, *, is_plain: bool) -> None:
        """One finished step: the tokens it emitted and its milliseconds without recording."""
        if is_plain:
            self._plain_ms.append(step_ms)
            self._left -= 1
            return
        self._window.append((num_tokens, step_ms))
        if len(self._window) >= self._num_judged:
            self._judge()

    def _judge(self) -> None:
        tokens, times = zip(*self._window, strict=True)
        self._last = Judgement(statistics.fmean(tokens), statistics.fmean(times) / statistics.median(self._plain_ms))
        if self._last.pays:
            self._rest, self._num_judged = FIRST_REST, WINDOW
            return
        self._left, self._num_judged = self._rest, PROBE
        self._rest = min(2 * self._rest, LONGEST_REST)
        self._window.clear()
