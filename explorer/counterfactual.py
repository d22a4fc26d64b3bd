"""What smaller trees would have accepted: a recorded step cut to fewer rows or less depth, from the record alone.

A smaller tree is a part of the verified one, so its walk needs no model. Greedy and rejection keep the text as it is:
whatever is drafted, the tokens are the target's (its first choices, or its samples: those this run drew), and a tree
accepts as many of them as it holds. Typical acceptance makes the text depend on the tree, but its tests stand in the
record, and the longest plausible path is chosen anew. Which rows a smaller budget keeps is the method's own order.
Standard library only.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from explorer.config import CHAINS, RERANKED
from explorer.errors import SettingError
from explorer.insight import depths, listing, plural, quote, quoted
from explorer.presets import load_tree
from explorer.static_tree import StaticTree
from explorer.trace import Step, Trace

MAX_CURVES = 16  # depth limits that are listed; the deepest is always among them
NUM_PLACED = 64  # static trees whose places are remembered
GROWING_GUESSES = "Guesses grow out of earlier passes: what a smaller draft would have missed later is not counted."
ORDER_WORDS = {
    "score": "rows are kept by the drafter's own score, as the rerank keeps them",
    "preset": "rows are kept in the order of the static tree, which lists its best places first",
    "chain": "the chain is cut at its end",
    "pool": "the n-grams seen last are kept",
    "rows": "rows are kept from the first on; the method's own order is not known here",
}


@dataclass(frozen=True)
class CutOrder:
    """kind: one of ORDER_WORDS. rows: the drafted rows, those a small tree keeps first; parents before children."""

    kind: str
    rows: list[int]


@dataclass(frozen=True)
class Outcome:
    """One way a cut step ends. end: the last accepted row, 0 where none is. sentence: that, and what follows."""

    end: int
    num_accepted: int
    sentence: str


@dataclass(frozen=True)
class StepCuts:
    """Every cut of one step.

    order: how rows are kept; ``words`` says it, ``limits`` what a cut cannot know. depths: the limits, ascending; the
    last one cuts nothing. table: for each, for n = 1, 2, ... rows (root included, no window rows) index into outcomes.
    """

    order: CutOrder
    depths: list[int]
    table: list[list[int]]
    outcomes: list[Outcome]
    words: str
    limits: list[str]


@dataclass(frozen=True)
class Curve:
    """tau[n - 1]: mean acceptance length with n rows and at most ``depth`` levels, at the run's own prefixes.

    exact_rows: up to so many rows the trees are those the method would have sent; with more rows a shallower tree
    would have had nodes that were never verified, and tau is a lower bound.
    """

    depth: int
    tau: list[float]
    exact_rows: int


@dataclass(frozen=True)
class Budgets:
    """tau over the run for each budget: one curve a depth limit, the last one without limit. None was measured.

    words: the order in which rows are kept. limits: what these numbers cannot know, a sentence each.
    """

    curves: list[Curve]
    words: str
    limits: list[str]


def cut_order(trace: Trace, step: Step) -> CutOrder:
    """The drafted rows of a step in the order in which a smaller budget keeps them."""
    drafted = [row for row, role in enumerate(step.tree.role) if role == "draft"]
    if trace.method in RERANKED:
        return CutOrder("score", _by_score(step, drafted))
    if trace.method in CHAINS:
        return CutOrder("chain", drafted)
    if trace.method == "lookahead" and (ranks := _pool_ranks(step, drafted)):
        return CutOrder("pool", sorted(drafted, key=lambda row: (ranks[row], row)))
    places = _static_places(trace, step)
    if places is not None:
        return CutOrder("preset", sorted(drafted, key=lambda row: places[row - 1]))
    return CutOrder("rows", drafted)


def step_cuts(trace: Trace, step: Step) -> StepCuts:
    """What every smaller tree of this step would have accepted; entry [-1][-1] of the table is what it did accept."""
    order, level = cut_order(trace, step), depths(step.tree.parent)
    limits = depth_limits(max((level[row] for row in order.rows), default=0))
    outcomes: dict[int, int] = {}
    table = []
    for limit in limits:
        ends = _ends(trace, step, [row for row in order.rows if level[row] <= limit], len(order.rows) + 1)
        table.append([outcomes.setdefault(end, len(outcomes)) for end in ends])
    return StepCuts(
        order,
        limits,
        table,
        [Outcome(end, level[end], _sentence(trace, step, end)) for end in outcomes],
        _order_words([order.kind] if order.rows else []),
        _step_limits(trace, step, order),
    )


def budget_curves(trace: Trace) -> Budgets:
    """tau of the run for every budget and depth limit, over its complete steps; no curve where there are none."""
    whole = [step for step in trace.steps if not step.is_cut]
    orders = [cut_order(trace, step) for step in whole]
    levels = [depths(step.tree.parent) for step in whole]
    most = max((len(order.rows) for order in orders), default=0) + 1
    deepest = max((level[row] for order, level in zip(orders, levels, strict=True) for row in order.rows), default=0)
    curves = []
    for limit in depth_limits(deepest) if whole else []:
        total, exact_rows = [0] * most, most
        for step, order, level in zip(whole, orders, levels, strict=True):
            rows = [row for row in order.rows if level[row] <= limit]
            for i, end in enumerate(_ends(trace, step, rows, most)):
                total[i] += 1 + level[end]
            if len(rows) < len(order.rows) and order.kind != "chain":
                exact_rows = min(exact_rows, len(rows) + 1)
        curves.append(Curve(limit, [value / len(whole) for value in total], exact_rows))
    return Budgets(curves, _order_words({order.kind for order in orders if order.rows}), _limits(trace, curves))


def depth_limits(deepest: int) -> list[int]:
    """1, 2, ... ``deepest``, at most MAX_CURVES of them; 0 alone where nothing was drafted."""
    limits = list(range(1, deepest + 1)) or [0]
    return limits if len(limits) <= MAX_CURVES else [*limits[: MAX_CURVES - 1], deepest]


def _order_words(kinds: Collection[str]) -> str:
    words = listing([ORDER_WORDS[kind] for kind in ORDER_WORDS if kind in kinds]) or "nothing was drafted"
    return f"{words[0].upper()}{words[1:]}."


def _ends(trace: Trace, step: Step, rows: Sequence[int], most: int) -> list[int]:
    """The last accepted row with n = 1, ..., ``most`` rows: the root and the first n - 1 of ``rows``."""
    comes_with = {row: num_rows for num_rows, row in enumerate(rows, start=2)}
    is_typical = trace.sampling.acceptance == "typical"
    changes = _typical_ends(step, comes_with) if is_typical else _path_ends(step, comes_with)
    ends, now = [], 0
    for num_rows in range(1, most + 1):
        now = changes.get(num_rows, now)
        ends.append(now)
    return ends


def _path_ends(step: Step, comes_with: dict[int, int]) -> dict[int, int]:
    """Budget -> the end from there on. The text stays as it is, so a tree accepts what it holds of the path."""
    found: dict[int, int] = {}
    for row in step.path[1:]:
        if row not in comes_with:
            break
        found[comes_with[row]] = row
    return found


def _typical_ends(step: Step, comes_with: dict[int, int]) -> dict[int, int]:
    """The same where the longest of the plausible paths is taken, of equals the likeliest, then the first."""
    passing: dict[int, tuple[int, float]] = {0: (0, 0.0)}
    for draw in sorted(step.draws, key=lambda draw: draw.row):
        above = passing.get(step.tree.parent[draw.row])
        if draw.accepted and above is not None and draw.prob:
            passing[draw.row] = (above[0] + 1, above[1] + math.log(draw.prob))
    found, best = dict[int, int](), 0
    for row in sorted((row for row in passing if row in comes_with), key=lambda row: comes_with[row]):
        if (*passing[row], -row) > (*passing[best], -best):
            best = found[comes_with[row]] = row
    return found


def _path_to(step: Step, row: int) -> list[int]:
    path = [row]
    while path[-1]:
        path.append(step.tree.parent[path[-1]])
    return path[::-1]


def _sentence(trace: Trace, step: Step, end: int) -> str:
    """What is accepted up to this row, and what the target writes after it."""
    tokens = [step.tree.token[row] for row in _path_to(step, end)[1:]]
    text = "No token accepted. "
    if tokens:
        text = f"{plural(len(tokens), 'token')} accepted: {quoted(trace.vocab, tokens)}. "
    if end == step.path[-1]:
        return f"{text}As in the run, the target goes on with {quote(trace.vocab, step.next_token)}."
    top = step.tree.target_top[end]
    if trace.sampling.acceptance != "typical":  # the text stays as it is
        token = step.tree.token[step.path[step.path.index(end) + 1]]
    elif top:
        token = top[0][0]
    else:
        return f"{text}What the target would have written then is not in the record."
    return f"{text}Then the target would have written {quote(trace.vocab, token)} itself."


def _by_score(step: Step, rows: Iterable[int]) -> list[int]:
    """By falling score, ties by row; rounding never puts a node before its parent."""
    score = list(step.tree.score)
    for row, parent in enumerate(step.tree.parent):
        if parent > 0:
            score[row] = min(score[row], score[parent])
    return sorted(rows, key=lambda row: (-score[row], row))


def _pool_ranks(step: Step, drafted: list[int]) -> dict[int, int] | None:
    """Row -> how many n-grams are newer than the newest one it belongs to; None where the record does not list them."""
    guesses = step.extra.get("guess_tokens")
    if not isinstance(guesses, list) or not all(isinstance(guess, list) for guess in guesses):
        return None
    child = {(step.tree.parent[row], step.tree.token[row]): row for row in drafted}
    ranks: dict[int, int] = {}
    for age, guess in enumerate(reversed(guesses)):
        at = 0
        for token in guess:
            if not isinstance(token, int) or (at, token) not in child:
                break
            at = child[at, token]
            ranks.setdefault(at, age)
    return ranks if len(ranks) == len(drafted) else None


def _static_places(trace: Trace, step: Step) -> list[int] | None:
    """For each row below the root its place in the preset, best first; None where the tree cannot be told from it."""
    name, depth = trace.settings.get("tree"), max(depths(step.tree.parent))
    places = _preset_places(name, len(step.tree), depth) if isinstance(name, str) else None
    return places[1] if places is not None and places[0] == tuple(step.tree.parent) else None


@lru_cache(maxsize=NUM_PLACED)
def _preset_places(name: str, num_rows: int, depth: int) -> tuple[tuple[int, ...], list[int]] | None:
    """(parents, place of each row below the root) of a preset's first rows that are at most ``depth`` deep."""
    try:
        paths = [tuple(path) for path in load_tree(name)]
    except SettingError:
        return None
    static = StaticTree.build(paths, num_heads=depth, max_rows=num_rows)
    place = {path: i for i, path in enumerate(paths)}
    return static.parents, [place[path] for path in static.choices]


def _step_limits(trace: Trace, step: Step, order: CutOrder) -> list[str]:
    """What the cuts of one step cannot know."""
    found = []
    if step.num_pruned:
        found.append(
            f"More rows cannot be tried: the target never saw the {plural(step.num_pruned, 'pruned node')}, so nobody "
            "knows what it would have said after them."
        )
    if order.rows and order.kind != "chain":
        found.append(
            "A shallower tree would have had room for other nodes, which were not verified: with a depth limit, at "
            "least so much would have been accepted."
        )
    if trace.method in ("jacobi", "lookahead"):
        found.append(GROWING_GUESSES)
    return found


def _limits(trace: Trace, curves: list[Curve]) -> list[str]:
    """What the numbers cannot know, for this run."""
    found = [
        "Each step is cut where it stands in this run; with another tree the steps would begin at other tokens.",
        "Nothing is said of time: fewer rows also cost less.",
    ]
    if any(step.num_pruned for step in trace.steps):
        found.append(
            "More rows cannot be judged: the target never saw the pruned nodes, so it gave them no probability."
        )
    if any(curve.exact_rows < len(curve.tau) for curve in curves):
        found.append(
            "A shallower tree would have had room for nodes that were never verified: beyond its exact rows a curve is "
            "a lower bound."
        )
    if trace.method in ("jacobi", "lookahead"):
        found.append(GROWING_GUESSES)
    return found
