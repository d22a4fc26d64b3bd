"""A moment of a step, and the board on which moments change the states of nodes. Standard library only.

Nodes are numbered as on every screen: rows 0..N-1 in engine order, then ghosts, then the target's own token. A moment
changes what was there before: ``marks`` gives nodes a state, and a node without one is not there yet. The states are
those of the record and four more: ``drafted`` (no verdict yet), ``passing`` (typical acceptance found it plausible, the
path is not chosen yet), ``ghost`` (pruned) and ``own`` (the target's own token).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from explorer.insight import depths, quote, quoted
from explorer.trace import Step, Trace

KINDS = ("start", "draft", "prune", "flatten", "mask", "verify", "test", "choose", "next", "commit")
Marks = list[tuple[str, list[int]]]


@dataclass(frozen=True)
class MicroStep:
    """One moment.

    kind: one of KINDS. caption: what happens, in words. marks: (state, nodes that take it now). focus: the nodes that
    the moment is about; of a mask moment the rows whose mask is built. ms: the measured time of this part, None where
    the record does not have it apart. kept: of the commit, (row, position in the cache) of every row that stays.
    """

    kind: str
    caption: str
    marks: Marks
    focus: list[int]
    ms: float | None = None
    kept: list[tuple[int, int]] = field(default_factory=list)


class Board:
    """The states as they stand; ``put`` changes them and says what really changed."""

    def __init__(self, trace: Trace, step: Step) -> None:
        self.trace, self.step = trace, step
        self.own = len(step.tree) + len(step.ghosts)
        self.depths = depths(step.tree.parent)
        self.states: dict[int, str] = {}
        self.children: list[list[int]] = [[] for _ in step.tree.parent]
        for row, parent in enumerate(step.tree.parent):
            if step.tree.role[row] == "draft":
                self.children[parent].append(row)

    def name(self, row: int) -> str:
        """The token of a row, for a sentence."""
        return quote(self.trace.vocab, self.step.tree.token[row])

    def names(self, rows: list[int]) -> str:
        """The tokens of rows, listed."""
        return quoted(self.trace.vocab, [self.step.tree.token[row] for row in rows])

    def put(self, states: Mapping[int, str]) -> Marks:
        """Give nodes their states; returns the marks of those that had another one."""
        changed = {node: state for node, state in states.items() if self.states.get(node) != state}
        self.states.update(changed)
        by_state: dict[str, list[int]] = {}
        for node, state in changed.items():
            by_state.setdefault(state, []).append(node)
        return [(state, sorted(nodes)) for state, nodes in by_state.items()]

    def below(self, rows: list[int]) -> list[int]:
        """All drafted rows that hang below these."""
        found, waiting = list[int](), list(rows)
        while waiting:
            children = self.children[waiting.pop()]
            found += children
            waiting += children
        return found

    def final(self, rows: list[int]) -> dict[int, str]:
        """What the record says of these rows."""
        return {row: self.step.tree.state[row] for row in rows}
