"""Tensors of one verify pass to a record: what the target thought of every row, in plain numbers.

``target_*`` values are the raw softmax at temperature 1 at the row's parent; what the acceptance rule really used
comes from the verdict. The work is timed apart and kept out of every speed figure, but it delays the next step, so
only the rows of the logits that are asked about are read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from explorer.methods.base import Draft
from explorer.sampling import best_tokens
from explorer.trace import DrawRecord, GhostColumns, Step, StepTimes, TreeColumns
from explorer.tree import ROLE_NAMES, DraftTree
from explorer.verify import Verdict

NUM_GHOSTS = 64  # the best by score; ghosts that the target wanted come on top
NUM_TOP = 5


@dataclass(frozen=True)
class StepFacts:
    """What the engine knows after one step.

    tree: the verified rows, N of them (``draft.tree()``). logits: [N, V]. root_logits: [V], the row that chose the
    root. prefix_len: tokens in the cache before the step. emitted: the tokens that were kept.
    """

    index: int
    prefix_len: int
    draft: Draft
    tree: DraftTree
    verdict: Verdict
    logits: Tensor
    root_logits: Tensor
    emitted: list[int]
    plain_reason: str | None


@dataclass(frozen=True)
class _Seen:
    """What the target thought. probs and ranks: [N] of the tree rows; tops: by path row; ghost_probs: [G]."""

    probs: list[float]
    ranks: list[int]
    tops: dict[int, list[tuple[int, float]]]
    ghost_probs: list[float | None]
    next_prob: float


@dataclass(frozen=True)
class _Ghosts:
    """Considered rows that are shown though they were not verified; parents counts tree rows first, then ghosts."""

    rows: list[int]
    tokens: list[int]
    parents: list[int]


def build_step(facts: StepFacts, ms: StepTimes) -> Step:
    """The record of one step, as the trace file stores it."""
    verdict, draft = facts.verdict, facts.draft
    kept = draft.kept_rows()
    ghosts = _choose_ghosts(facts, kept)
    seen = _see(facts, ghosts)
    return Step(
        index=facts.index,
        prefix_len=facts.prefix_len,
        tree=_tree_columns(facts, seen),
        ghosts=_ghost_columns(facts, ghosts, seen),
        num_pruned=len(draft.considered) - len(kept),
        draws=_draws(verdict),
        path=list(verdict.path),
        next_token=verdict.next_token,
        next_kind=verdict.next_kind,
        next_prob=seen.next_prob,
        next_draft_rank=draft.rank_of(kept[verdict.path[-1]], verdict.next_token) if draft.rank_of else None,
        emitted=facts.emitted,
        extra=_extra(draft) | ({} if draft.draft_dists is None else {"sampled": True}),
        plain_reason=facts.plain_reason,
        ms=ms,
    )


def _extra(draft: Draft) -> dict[str, Any]:
    return (draft.extra or {}) | (draft.read_extra() if draft.read_extra else {})


def _choose_ghosts(facts: StepFacts, kept: list[int]) -> _Ghosts:
    """The best by score and those that are the target's argmax after an accepted row, in the order they were found."""
    considered, path = facts.draft.considered, facts.verdict.path
    parents = considered.parent_list
    cut = sorted(set(range(len(considered))) - set(kept))
    if not cut:
        return _Ghosts([], [], [])
    scores = considered.scores.tolist()
    listed = set(sorted(cut, key=lambda row: (-scores[row], row))[:NUM_GHOSTS])
    wanted = dict(zip([kept[row] for row in path], best_tokens(facts.logits[list(path)]), strict=True))
    listed |= {row for row in cut if wanted.get(parents[row]) == considered.token_list[row]}
    new_row = {old: new for new, old in enumerate(kept)}
    for row in sorted(listed, reverse=True):  # rounding may score a child above its parent: none loses it
        while (row := parents[row]) not in new_row:
            listed.add(row)
    rows = sorted(listed)
    new_row.update({old: len(kept) + i for i, old in enumerate(rows)})
    return _Ghosts(rows, [considered.token_list[row] for row in rows], [new_row[parents[row]] for row in rows])


def _see(facts: StepFacts, ghosts: _Ghosts) -> _Seen:
    """Look tokens up after their parents: the tree rows in order, then ghosts below tree rows, then the next token."""
    tree, path = facts.tree, facts.verdict.path
    seen_ghosts = [i for i, parent in enumerate(ghosts.parents) if parent < len(tree)]
    places = [*tree.parent_list, *(ghosts.parents[i] for i in seen_ghosts), path[-1]]  # -1: what chose the root
    tokens = [*tree.token_list, *(ghosts.tokens[i] for i in seen_ghosts), facts.verdict.next_token]
    rows = {row: (facts.root_logits if row < 0 else facts.logits[row]).float() for row in {*places, *path}}  # [V] each
    totals = {row: logits.logsumexp(dim=-1) for row, logits in rows.items()}
    values = torch.cat([rows[-1][tokens[:1]], facts.logits[places[1:], tokens[1:]].float()])
    probs = (values - torch.stack([totals[row] for row in places])).exp().tolist()
    ghost_probs: list[float | None] = [None] * len(ghosts.rows)
    for i, prob in zip(seen_ghosts, probs[len(tree) :], strict=False):
        ghost_probs[i] = shorten(prob)
    ranks = [_rank(rows[row], token) for row, token in zip(tree.parent_list, tree.token_list, strict=True)]
    return _Seen(
        probs=[shorten(prob) for prob in probs[: len(tree)]],
        ranks=torch.stack(ranks).tolist(),
        tops={row: _top(rows[row], totals[row]) for row in path},
        ghost_probs=ghost_probs,
        next_prob=shorten(probs[-1]),
    )


def _rank(logits: Tensor, token: int) -> Tensor:
    """How many tokens come before this one; equal logits rank by id, as argmax takes the first of them."""
    if logits.device.type == "cpu":  # numpy compares and counts there about seven times faster
        values = logits.numpy()
        earlier, later = values[:token] >= values[token], values[token + 1 :] > values[token]
        return torch.tensor(np.count_nonzero(earlier) + np.count_nonzero(later))
    return (logits[:token] >= logits[token]).sum() + (logits[token + 1 :] > logits[token]).sum()


def _top(logits: Tensor, total: Tensor) -> list[tuple[int, float]]:
    """The target's favourites, best first, equal ones by id."""
    top = logits.topk(min(NUM_TOP, len(logits)))
    probs = (top.values - total).exp()
    found = sorted(zip((-top.values).tolist(), top.indices.tolist(), probs.tolist(), strict=True))
    return [(token, shorten(prob)) for _, token, prob in found]


def _tree_columns(facts: StepFacts, seen: _Seen) -> TreeColumns:
    tree, verdict = facts.tree, facts.verdict
    return TreeColumns(
        token=list(tree.token_list),
        parent=list(tree.parent_list),
        role=[ROLE_NAMES[role] for role in tree.roles.tolist()],
        draft_prob=_optional(tree.draft_probs.tolist()),
        score=[shorten(score) for score in tree.scores.tolist()],
        target_prob=list(seen.probs),
        target_rank=list(seen.ranks),
        accept_prob=_optional(verdict.accept_probs),
        state=list(verdict.outcomes),
        target_top=[seen.tops.get(row) for row in range(len(tree))],
    )


def _ghost_columns(facts: StepFacts, ghosts: _Ghosts, seen: _Seen) -> GhostColumns:
    considered = facts.draft.considered
    return GhostColumns(
        token=ghosts.tokens,
        parent=ghosts.parents,
        draft_prob=_optional(considered.draft_probs[ghosts.rows].tolist()),
        score=[shorten(score) for score in considered.scores[ghosts.rows].tolist()],
        target_prob=seen.ghost_probs,
    )


def _draws(verdict: Verdict) -> list[DrawRecord]:
    return [
        DrawRecord(
            row=draw.row,
            uniform=_short(draw.uniform),
            prob=shorten(draw.prob),
            accepted=draw.accepted,
            threshold=_short(draw.threshold),
            residual_mass=None if draw.residual is None else shorten(draw.residual.mass),
            residual_top=[] if draw.residual is None else _best_of(draw.residual.distribution()),
        )
        for draw in verdict.draws
    ]


def _best_of(probs: Tensor) -> list[tuple[int, float]]:
    """The favourites of a distribution [V], best first, equal ones by id; only tokens it can give."""
    top = probs.topk(min(NUM_TOP, len(probs)))
    found = sorted(zip((-top.values).tolist(), top.indices.tolist(), strict=True))
    return [(token, shorten(-value)) for value, token in found if value]


def _optional(values: Iterable[float]) -> list[float | None]:
    return [None if math.isnan(value) else shorten(value) for value in values]


def _short(value: float | None) -> float | None:
    return None if value is None else shorten(value)


def shorten(value: float) -> float:
    """A float32 value with the nine digits that identify it, so that files do not carry the noise of its widening."""
    return float(f"{value:.9g}")
