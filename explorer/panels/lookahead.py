"""Lookahead's panel: the window, its diagonals, the pool's n-grams and what they were worth. Standard library only.

Token j of the window's row 0 stands j + 1 after the root, token j of row l >= 1 stands l + j after it; a column of the
full window, begun at the root or row 0, is one n-gram (arXiv 2402.02057, section 4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from explorer.insight import plural, quote
from explorer.panels.extra import count, token_lists
from explorer.trace import Step, Trace

LISTED_TOKENS = 8  # of an n-gram inside a sentence


@dataclass(frozen=True)
class WindowRow:
    """offset: how far after the root its first token stands. rows: its tokens' rows in the tree, [] where not there."""

    offset: int
    window_tokens: list[int]
    rows: list[int]


@dataclass(frozen=True)
class Guess:
    """An n-gram of the pool that was tried: its tokens after the root, their rows, how many were accepted."""

    guess_tokens: list[int]
    rows: list[int]
    num_accepted: int


@dataclass(frozen=True)
class LookaheadPanel:
    """One step.

    diagonals: the tree rows of each column of the window, begun at the root or a token of row 0: what the pass may
    turn into an n-gram. pool_size: n-grams known before it. added_tokens: the n-grams that the pass before it brought.
    """

    window: list[WindowRow]
    diagonals: list[list[int]]
    guesses: list[Guess]
    pool_size: int | None
    added_tokens: list[list[int]]
    sentences: list[str]
    kind: ClassVar[str] = "lookahead"


def lookahead_panel(trace: Trace, step: Step) -> LookaheadPanel | None:
    """None where the record holds neither window nor guesses."""
    window, guesses = token_lists(step.extra, "window_tokens"), token_lists(step.extra, "guess_tokens")
    if window is None or guesses is None:
        return None
    tried = _guesses(step, guesses)
    pool_size, added = count(step.extra, "pool_size"), token_lists(step.extra, "added_tokens") or []
    rows = _window(step, window)
    return LookaheadPanel(rows, _diagonals(rows), tried, pool_size, added, _sentences(trace, step, tried, added))


def _window(step: Step, window: list[list[int]]) -> list[WindowRow]:
    """The window's rows stand in the tree one after another."""
    places = [row for row, role in enumerate(step.tree.role) if role == "window"]
    is_whole = len(places) == sum(map(len, window))
    found, begin = list[WindowRow](), 0
    for number, tokens in enumerate(window):
        here = places[begin : begin + len(tokens)] if is_whole else []
        found.append(WindowRow(max(1, number), tokens, here))
        begin += len(tokens)
    return found


def _diagonals(window: list[WindowRow]) -> list[list[int]]:
    """Column 0 begins at the root, column j at token j - 1 of row 0; none where the rows are not in the tree."""
    if len(window) < 2 or not all(row.rows for row in window):
        return []
    firsts = [0, *window[0].rows]
    return [list(column) for column in zip(firsts, *(row.rows for row in window[1:]), strict=False)]


def _guesses(step: Step, guesses: list[list[int]]) -> list[Guess]:
    tree, on_path = step.tree, set(step.path)
    child = {
        (parent, token): row
        for row, (parent, token, role) in enumerate(zip(tree.parent, tree.token, tree.role, strict=True))
        if role == "draft"
    }
    found = []
    for tokens in guesses:
        rows, at = list[int](), 0
        for token in tokens:
            if (at, token) not in child:
                break
            at = child[at, token]
            rows.append(at)
        found.append(Guess(tokens, rows, sum(row in on_path for row in rows)))
    return found


def _sentences(trace: Trace, step: Step, guesses: list[Guess], added: list[list[int]]) -> list[str]:
    root = quote(trace.vocab, step.tree.token[0])
    if not guesses:
        found = [f"The pool has no n-gram that begins with {root}: nothing is tried, the window still moves on."]
    else:
        best = max(guess.num_accepted for guess in guesses)
        worth = f"the best one gave {plural(best, 'token')}" if best else "none of them was right"
        found = [f"The pool has {plural(len(guesses), 'n-gram')} after {root}; {worth}."]
    if added:
        first = " ".join(quote(trace.vocab, token) for token in added[0][:LISTED_TOKENS])
        found.append(f"The pass before brought {plural(len(added), 'n-gram')} into the pool, the first is {first}.")
    found.append(_hits(trace))
    return found


def _hits(trace: Trace) -> str:
    """How often the pool helped over the run."""
    tried = sum(step.num_drafted > 0 for step in trace.steps)
    hit = sum(step.num_accepted > 0 for step in trace.steps)
    steps = plural(len(trace.steps), "step")
    return f"Over the run, the pool had something to try in {tried} of {steps}, and a token was accepted in {hit}."
