"""The draft model's panel: both models' probabilities along the chain, and the mass on which they agree.

Speculative sampling accepts a drawn token x with min(1, p(x) / q(x)), so the chance of an acceptance is the overlap of
both distributions, the sum of min(p, q) over all tokens (arXiv 2211.17192, section 3). The record holds the drafted
tokens' own probabilities; the whole overlap is known where a rejection left 1 - overlap. Standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from explorer.insight import percent, quote
from explorer.trace import DrawRecord, Step, Trace


@dataclass(frozen=True)
class ChainRow:
    """One drafted token. draft_prob, target_prob: what each model gave it (the target's at temperature 1).

    shared: min(target, draft) of this token as the rule saw it, None where that is not in the record. accept_prob,
    uniform: the test and its draw. overlap: the sum of min(target, draft) over all tokens; residual_tops: what a
    rejection left, best first; both where the record has them.
    """

    row: int
    token: int
    draft_prob: float
    target_prob: float | None
    shared: float | None
    accept_prob: float | None
    uniform: float | None
    overlap: float | None
    residual_tops: list[tuple[int, float]]


@dataclass(frozen=True)
class DraftModelPanel:
    """The chain, first token first."""

    rows: list[ChainRow]
    sentences: list[str]
    kind: ClassVar[str] = "draft_model"


def draft_model_panel(trace: Trace, step: Step) -> DraftModelPanel | None:
    """None where nothing was drafted."""
    draws = {draw.row: draw for draw in step.draws}
    rows = [
        _row(trace, step, row, prob, draws.get(row))
        for row, (prob, role) in enumerate(zip(step.tree.draft_prob, step.tree.role, strict=True))
        if role == "draft" and prob is not None
    ]
    return DraftModelPanel(rows, _sentences(trace, rows)) if rows else None


def _row(trace: Trace, step: Step, row: int, draft_prob: float, draw: DrawRecord | None) -> ChainRow:
    tree, is_drawn = step.tree, step.extra.get("sampled") is True
    mass = draw.residual_mass if draw and is_drawn else None
    return ChainRow(
        row=row,
        token=tree.token[row],
        draft_prob=draft_prob,
        target_prob=tree.target_prob[row],
        shared=_shared(trace, draft_prob, tree.target_prob[row], draw if is_drawn else None),
        accept_prob=draw.prob if draw else None,
        uniform=draw.uniform if draw else None,
        overlap=None if mass is None else 1 - mass,
        residual_tops=draw.residual_top if draw else [],
    )


def _shared(trace: Trace, draft_prob: float, target_prob: float | None, draw: DrawRecord | None) -> float | None:
    """min(p, q) = q * min(1, p / q) where the token was tested; elsewhere both must be unwarped to be comparable."""
    if draw is not None and draw.prob is not None:
        return draft_prob * draw.prob
    sampling = trace.sampling
    is_plain = sampling.acceptance == "greedy" or (sampling.temperature, sampling.top_p, sampling.top_k) == (
        1.0,
        1.0,
        0,
    )
    return min(draft_prob, target_prob) if is_plain and target_prob is not None else None


def _sentences(trace: Trace, rows: list[ChainRow]) -> list[str]:
    found = []
    for row in rows:
        both = f"the draft model gave it {percent(row.draft_prob)}, the target {percent(row.target_prob)}"
        text = f"{quote(trace.vocab, row.token)}: {both}"
        if row.overlap is not None:
            text += (
                f"; their distributions overlap by {percent(row.overlap)}, the chance that a draft was accepted here"
            )
        found.append(f"{text}.")
    return found
