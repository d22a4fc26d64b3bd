"""A question about one step, asked before the target's pass, and what to say to each guess. Standard library only.

The guess is a node: the one that will be the last accepted, the root where nothing will be. A branch that goes on where
the walk stopped, or stops where it went on, is close, and said to be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from explorer.insight import plural, quote
from explorer.trace import Label, Step, Trace


@dataclass(frozen=True)
class Quiz:
    """The question and the verdicts.

    verdicts: (whether the guess counts as right, the sentence), each once. verdict [rows and ghosts]: which of them is
    said to a guess of this node.
    """

    question: str
    verdicts: list[tuple[bool, str]]
    verdict: list[int]


def quiz_of(trace: Trace, step: Step) -> Quiz | None:
    """The quiz of a step; None where nothing was sent to be tested."""
    if not step.num_drafted:
        return None
    root = quote(trace.vocab, step.tree.token[0])
    question = (
        f"The target has not read the {plural(step.num_drafted, 'drafted token')} yet. Which branch will it follow, "
        f"and how far? Click the last token that it will accept, {root} if none; or just think."
    )
    index: dict[tuple[bool, str], int] = {}
    verdict = [
        index.setdefault(_judge(step, trace.vocab, node), len(index))
        for node in range(len(step.tree) + len(step.ghosts))
    ]
    return Quiz(question, list(index), verdict)


def _judge(step: Step, vocab: Mapping[str, Label], node: int) -> tuple[bool, str]:
    size, path = len(step.tree), step.path

    def name(row: int) -> str:
        return quote(vocab, step.tree.token[row])

    if node >= size:
        return False, f"{quote(vocab, step.ghosts.token[node - size])} was pruned: the target never sees it."
    if step.tree.role[node] == "window":
        return False, f"{name(node)} is a window row: it rides along and is never accepted."
    end, chain = path[-1], _chain(step, node)
    if node == end:
        return True, f"Right: {name(end)} is the last one accepted." if end else "Right: none of them is accepted."
    if node == 0:
        return False, f"Not this time: {plural(len(path) - 1, 'drafted token')} accepted, {name(end)} the last."
    if node in path:
        return False, f"Close: the right branch, and it goes on; {name(end)} is the last one accepted."
    fork = max(row for row in chain if row in path)
    if fork != end:
        taken = path[path.index(fork) + 1]
        return False, f"Not this branch: after {name(fork)} the target goes on with {name(taken)}."
    if end:
        return False, f"Close: the right branch, but the walk ends earlier; {name(end)} is the last one accepted."
    return False, "Not this time: none of them is accepted."


def _chain(step: Step, node: int) -> list[int]:
    """The row and its ancestors, the root last."""
    chain = [node]
    while step.tree.parent[chain[-1]] >= 0:
        chain.append(step.tree.parent[chain[-1]])
    return chain
