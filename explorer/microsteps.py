"""One step as a sequence of moments: what is on the screen, what is lit, and a sentence that can be read aloud.

From the last token over the draft, its pruning, the rows and their mask, the one pass and the walk to what the cache
keeps (explorer.moments says what a moment is). After the last one every row has its state of the record. Standard
library only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from explorer.config import RERANKED
from explorer.drafting import draft_stages
from explorer.insight import listing, own_token_sentence, percent, plural, quoted
from explorer.moments import Board, MicroStep
from explorer.plain_steps import plain_sentence
from explorer.trace import Step, Trace
from explorer.walk import walk_moments


def micro_steps(trace: Trace, step: Step) -> list[MicroStep]:
    """The moments of one step, in order; every method and every acceptance rule has them.

    start; draft, one for each stage; prune, where something was pruned; flatten and mask, where there is more than the
    root; verify; test, one for each accepted row's children (greedy, typical) or one for each draw (rejection); choose
    (typical); next; commit.
    """
    board = Board(trace, step)
    moments = [_start(board), *_draft(board)]
    if step.num_pruned:
        moments.append(_prune(board))
    if len(step.tree) > 1:
        moments += [_flatten(board), *_mask(board)]
    moments.append(_verify(board))
    return [*moments, *walk_moments(board), _next(board), _commit(board)]


def _start(board: Board) -> MicroStep:
    step = board.step
    text = f"Step {step.index + 1} begins with {board.name(0)}, the last token of the output; the cache holds "
    text += f"the {plural(step.prefix_len, 'token')} before it."
    return MicroStep("start", text, board.put({0: "root"}), [0])


def _draft(board: Board) -> list[MicroStep]:
    step = board.step
    stages = draft_stages(board.trace, step)
    if not stages:
        why = "" if step.plain_reason is None else f": {plain_sentence(step)}"
        return [MicroStep("draft", f"Nothing is drafted{why}.", [], [0])]
    return [
        MicroStep(
            "draft",
            stage.caption,
            board.put({node: "window" if _is_window(step, node) else "drafted" for node in stage.nodes}),
            stage.parents,
            stage.ms,
        )
        for stage in stages
    ]


def _is_window(step: Step, node: int) -> bool:
    return node < len(step.tree) and step.tree.role[node] == "window"


def _prune(board: Board) -> MicroStep:
    step = board.step
    if not step.num_drafted and step.plain_reason is not None:
        text = f"None of the {plural(step.num_pruned, 'node')} is sent: {plain_sentence(step)}."
    elif board.trace.method in RERANKED:
        best = plural(step.num_drafted, "node")
        text = f"The rerank keeps the {best} with the best scores and prunes {step.num_pruned}"
        if len(step.ghosts):
            last, first = _path_prob(min(step.tree.score)), _path_prob(max(step.ghosts.score))
            text += f": the last one kept has {last} along its path, the first one pruned {first}"
        text += "."
    else:
        text = f"{plural(step.num_pruned, 'node')} cannot be sent: the context has no room that deep."
    shown = f"The best {len(step.ghosts)} of them stay" if step.num_pruned > len(step.ghosts) else "They stay"
    ghosts = list(range(len(step.tree), board.own))
    marks = board.put(dict.fromkeys(ghosts, "ghost"))
    return MicroStep("prune", f"{text} {shown} in the picture, dotted; the target never sees them.", marks, ghosts)


def _path_prob(score: float) -> str:
    return percent(math.exp(min(0.0, score)))


def _flatten(board: Board) -> MicroStep:
    rows, deepest, prefix = len(board.step.tree), max(board.depths), board.step.prefix_len
    text = (
        f"The tree becomes {rows} rows of one pass, parents before children. "
        f"A row's position is the prefix plus its depth, so they share {deepest + 1}: {prefix} to {prefix + deepest}."
    )
    return MicroStep("flatten", text, [], list(range(rows)))


def _mask(board: Board) -> Iterator[MicroStep]:
    """The mask by depth, because a row's mask is its parent's and itself; a chain's is one triangle."""
    tree, prefix = board.step.tree, board.step.prefix_len
    size = len(tree)
    num_cells = sum(board.depths) + size
    total = f"{num_cells} of {size * size} cells are set."
    if tree.parent == list(range(-1, size - 1)):
        seen = f"the {prefix} prefix tokens, all rows before it and itself"
        text = f"The mask of a chain is a triangle: every row sees {seen}. {total}"
        yield MicroStep("mask", text, [], list(range(size)))
        return
    by_depth: list[list[int]] = [[] for _ in range(max(board.depths) + 1)]
    for row, depth in enumerate(board.depths):
        by_depth[depth].append(row)
    for depth, rows in enumerate(by_depth):
        text = _mask_caption(prefix, depth, len(rows))
        yield MicroStep("mask", f"{text} {total}" if depth == len(by_depth) - 1 else text, [], rows)


def _mask_caption(prefix: int, depth: int, num_rows: int) -> str:
    if depth == 0:
        return f"The mask, row by row: the root sees the {prefix} prefix tokens and itself."
    each = "the one row copies" if num_rows == 1 else f"each of the {num_rows} rows copies"
    seen = "no sibling, no other branch" if depth == 1 else f"the prefix, {plural(depth, 'ancestor')} and itself"
    return f"Depth {depth}: {each} its parent's and adds itself, so it sees {seen}."


def _verify(board: Board) -> MicroStep:
    rows = len(board.step.tree)
    text = "One pass of the target reads the root and says what follows."
    if rows > 1:
        text = f"One pass of the target reads all {rows} rows at once, and says after each what it would write next."
    return MicroStep("verify", text, [], list(range(rows)), board.step.ms.verify)


def _next(board: Board) -> MicroStep:
    """The target's own token; rows that no test reached have their last word here."""
    step = board.step
    text = own_token_sentence(step, board.trace.vocab)
    if any(draw.residual_mass is not None and step.tree.parent[draw.row] == step.path[-1] for draw in step.draws):
        text += " It was drawn from what the rejections left of the target's distribution."
    drafted = [row for row, role in enumerate(step.tree.role) if role == "draft"]
    return MicroStep("next", text, board.put(board.final(drafted) | {board.own: "own"}), [step.path[-1], board.own])


def _commit(board: Board) -> MicroStep:
    """The cache keeps the path as far as it was emitted; the last emitted token is the next root, not yet in it."""
    step = board.step
    rows = step.path[: len(step.emitted)]
    kept = [(row, step.prefix_len + place) for place, row in enumerate(rows)]
    moved = [row for place, row in enumerate(rows) if row != place]
    last = "" if len(rows) == 1 else f" to {kept[-1][1]}"
    text = f"The cache keeps {_rows(rows)} at position{'s' if last else ''} {step.prefix_len}{last}"
    if board.trace.target.cache == "rows" and moved:
        text += f"; {_rows(moved)} {'moves' if len(moved) == 1 else 'move'} there"
    elif board.trace.target.cache == "rows" and len(rows) > 1:
        text += ", where they were written"
    num_dropped = len(step.tree) - len(rows)
    text += f", {plural(num_dropped, 'row')} dropped." if num_dropped else "."
    text += f" The output grows by {quoted(board.trace.vocab, step.emitted)}."
    if step.is_cut:
        text += " The run stops inside this path."
    return MicroStep("commit", text, [], rows, step.ms.commit, kept)


def _rows(rows: list[int]) -> str:
    return f"row {rows[0]}" if len(rows) == 1 else f"rows {listing([str(row) for row in rows])}"
