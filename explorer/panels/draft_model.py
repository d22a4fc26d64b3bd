"""The draft model's panel: both models' probabilities along the chain, and the mass on which they agree.

Speculative sampling accepts a drawn token x with min(1, p(x) / q(x)), so the chance of an acceptance is the overlap of
both distributions, the sum of min(p, q) over all tokens (arXiv 2211.17192, section 3). The record holds both models'
favourites; the whole overlap is known where a rejection left 1 - overlap. Standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from explorer.insight import percent, quote
from explorer.panels.extra import ranked_lists
from explorer.trace import DrawRecord, Step, Trace

NOT_COMPARABLE = (
    "The draft model's bars are at the run's own temperature, the target's at temperature 1: compare their order, not "
    "their lengths. The tests used both at the run's temperature."
)


@dataclass(frozen=True)
class Pair:
    """One token under both models, None where it is not among that model's recorded favourites.

    shared: the smaller of the two, where both are known and comparable.
    """

    token: int
    draft_prob: float | None
    target_prob: float | None
    shared: float | None


@dataclass(frozen=True)
class ChainRow:
    """One drafted token. draft_prob, target_prob: what each model gave it (the target's at temperature 1).

    shared: min(target, draft) of this token as the rule saw it, None where that is not in the record. accept_prob,
    uniform: the test and its draw. overlap: the sum of min(target, draft) over all tokens; residual_tops: what a
    rejection left, best first; both where the record has them. pairs: the favourites of both models in this place.
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
    pairs: list[Pair]
    sentence: str


@dataclass(frozen=True)
class DraftModelPanel:
    """The chain, first token first."""

    rows: list[ChainRow]
    sentences: list[str]
    kind: ClassVar[str] = "draft_model"


def draft_model_panel(trace: Trace, step: Step) -> DraftModelPanel | None:
    """None where nothing was drafted."""
    draws, tops = {draw.row: draw for draw in step.draws}, ranked_lists(step.extra, "draft_tops") or []
    drafted = [
        (row, prob)
        for row, (prob, role) in enumerate(zip(step.tree.draft_prob, step.tree.role, strict=True))
        if role == "draft" and prob is not None
    ]
    rows = [
        _row(trace, step, (row, prob), draws.get(row), tops[place] if place < len(tops) else [])
        for place, (row, prob) in enumerate(drafted)
    ]
    return DraftModelPanel(rows, [] if _is_plain(trace) else [NOT_COMPARABLE]) if rows else None


def _row(
    trace: Trace, step: Step, drafted: tuple[int, float], draw: DrawRecord | None, tops: list[tuple[int, float]]
) -> ChainRow:
    (row, draft_prob), tree, is_drawn = drafted, step.tree, step.extra.get("sampled") is True
    mass = draw.residual_mass if draw and is_drawn else None
    overlap = None if mass is None else 1 - mass
    return ChainRow(
        row=row,
        token=tree.token[row],
        draft_prob=draft_prob,
        target_prob=tree.target_prob[row],
        shared=_shared(trace, draft_prob, tree.target_prob[row], draw if is_drawn else None),
        accept_prob=draw.prob if draw else None,
        uniform=draw.uniform if draw else None,
        overlap=overlap,
        residual_tops=draw.residual_top if draw else [],
        pairs=_pairs(trace, step, drafted, tops),
        sentence=_sentence(trace, step, drafted, overlap),
    )


def _pairs(trace: Trace, step: Step, drafted: tuple[int, float], tops: list[tuple[int, float]]) -> list[Pair]:
    """The drafted token and the favourites of both, by what the two give it together."""
    (row, prob), tree = drafted, step.tree
    draft, target = dict(tops), dict(tree.target_top[tree.parent[row]] or [])
    draft[tree.token[row]] = prob
    if (own := tree.target_prob[row]) is not None:
        target[tree.token[row]] = own
    is_plain = _is_plain(trace)
    found = []
    for token in draft.keys() | target.keys():
        both = draft.get(token), target.get(token)
        shared = min(both[0], both[1]) if is_plain and both[0] is not None and both[1] is not None else None
        found.append(Pair(token, *both, shared))
    return sorted(found, key=lambda pair: (-(pair.draft_prob or 0) - (pair.target_prob or 0), pair.token))


def _shared(trace: Trace, draft_prob: float, target_prob: float | None, draw: DrawRecord | None) -> float | None:
    """min(p, q) = q * min(1, p / q) where the token was tested; elsewhere both must be unwarped to be comparable."""
    if draw is not None and draw.prob is not None:
        return draft_prob * draw.prob
    return min(draft_prob, target_prob) if _is_plain(trace) and target_prob is not None else None


def _is_plain(trace: Trace) -> bool:
    """Whether the drafter's probabilities are unwarped, as the target's in the record are."""
    sampling = trace.sampling
    is_unwarped = (sampling.temperature, sampling.top_p, sampling.top_k) == (1.0, 1.0, 0)
    return sampling.acceptance == "greedy" or is_unwarped


def _sentence(trace: Trace, step: Step, drafted: tuple[int, float], overlap: float | None) -> str:
    row, prob = drafted
    both = f"the draft model gave it {percent(prob)}, the target {percent(step.tree.target_prob[row])}"
    text = f"{quote(trace.vocab, step.tree.token[row])}: {both}"
    if overlap is not None:
        text += f"; their distributions overlap by {percent(overlap)}, the chance that a draft was accepted here"
    return f"{text}."
