"""Medusa's panel: the heads' lists side by side, and the tree as products of ranks in them. Standard library only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from explorer.insight import depths, percent, plural, quote
from explorer.panels.extra import ranked_lists
from explorer.timeline import root_index
from explorer.trace import Step, Trace


@dataclass(frozen=True)
class Candidate:
    """One entry of a head's list. rows: the tree's rows that hold it at the head's depth."""

    token: int
    prob: float
    rows: list[int]


@dataclass(frozen=True)
class Head:
    """Head number ``depth`` guesses the token at that depth. candidates: its list, best first.

    came_token, came_rank: what the output really has there and its place in the list (0 = first); None where the output
    ends before or the list does not have it. blind: what this head could not know, in words.
    """

    depth: int
    candidates: list[Candidate]
    came_token: int | None
    came_rank: int | None
    blind: str


@dataclass(frozen=True)
class MedusaPanel:
    """ranks [N]: the rank path of each row, [] for the root; None where a token is beyond the recorded list.

    product: how the tree is made of ranks, a sentence; sentences: what came at each head's depth.
    """

    heads: list[Head]
    ranks: list[list[int] | None]
    product: str
    sentences: list[str]
    kind: ClassVar[str] = "medusa"


def medusa_panel(trace: Trace, step: Step) -> MedusaPanel | None:
    """None where the record does not hold the heads' lists."""
    lists = ranked_lists(step.extra, "heads")
    if not lists:
        return None
    level = depths(step.tree.parent)
    heads = [_head(trace, step, depth, ranked, level) for depth, ranked in enumerate(lists, start=1)]
    ranks = _rank_paths(step, heads, level)
    return MedusaPanel(heads, ranks, _product(step, level, ranks), _sentences(trace, heads))


def _head(trace: Trace, step: Step, depth: int, ranked: list[tuple[int, float]], level: list[int]) -> Head:
    held: dict[int, list[int]] = {}
    for row, (token, at) in enumerate(zip(step.tree.token, level, strict=True)):
        if at == depth:
            held.setdefault(token, []).append(row)
    candidates = [Candidate(token, prob, held.get(token, [])) for token, prob in ranked]
    place, output = root_index(trace, step) + depth, trace.output.token_ids
    came = output[place] if place < len(output) else None
    tokens = [token for token, _ in ranked]
    return Head(depth, candidates, came, tokens.index(came) if came in tokens else None, _blind(depth))


def _blind(depth: int) -> str:
    if depth == 1:
        return "It guesses the token right after the root, and knows all that is before it."
    between = "the token before it" if depth == 2 else f"the {depth - 1} tokens before it"
    return f"It guesses {depth} tokens ahead without knowing {between}: one list serves every branch."


def _rank_paths(step: Step, heads: list[Head], level: list[int]) -> list[list[int] | None]:
    place = [
        {candidate.token: rank for rank, candidate in reversed(list(enumerate(head.candidates)))} for head in heads
    ]
    paths: list[list[int] | None] = [[]]
    for row in range(1, len(step.tree)):
        above, depth = paths[step.tree.parent[row]], level[row]
        rank = place[depth - 1].get(step.tree.token[row]) if depth <= len(heads) else None
        paths.append(None if above is None or rank is None else [*above, rank])
    return paths


def _product(step: Step, level: list[int], ranks: list[list[int] | None]) -> str:
    """How the tree is made: ranks multiplied, of which only a few products are kept."""
    deepest = max(level)
    if not deepest:
        return "Nothing was drafted in this step."
    known = [path for path in ranks if path]
    widths = [1 + max((path[i] for path in known if len(path) > i), default=0) for i in range(deepest)]
    product = " × ".join(str(width) for width in widths)
    num_leaves = len(step.tree) - len(set(step.tree.parent) - {-1})
    return (
        f"The tree is a choice of ranks, the same in every step: {plural(num_leaves, 'path')} out of the "
        f"{math.prod(widths)} that {product} ranks would give."
    )


def _sentences(trace: Trace, heads: list[Head]) -> list[str]:
    """What came at each head's depth, and where its list had it."""
    found = []
    for head in heads:
        if head.came_token is None:
            continue
        token = quote(trace.vocab, head.came_token)
        if head.came_rank is None:
            found.append(f"Head {head.depth}: {token} came, which is not among its first {len(head.candidates)}.")
        else:
            candidate = head.candidates[head.came_rank]
            in_tree = plural(len(candidate.rows), "row") if candidate.rows else "no row"
            place = "its first choice" if head.came_rank == 0 else f"number {head.came_rank + 1} of its list"
            found.append(
                f"Head {head.depth}: {token} came, {place} ({percent(candidate.prob)}), in {in_tree} of the tree."
            )
    return found
