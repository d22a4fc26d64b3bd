"""Every token of an output with what the draft made of it: accepted, or missed in which way. Standard library only.

A token that the target added itself stands for the miss of its pass; where the pass had accepted a path to its end
there was no miss, and where it had no draft, or rested, nothing to miss. A last pass that was cut is left out, as
everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from explorer.insight import MISS_CLASSES
from explorer.misses import NEAR_RANK, ending_of
from explorer.plain_steps import is_rest
from explorer.timeline import root_index
from explorer.token_classes import output_classes
from explorer.trace import Step, Trace

ACCEPTED, RESTED = "accepted", "rested"


@dataclass(frozen=True)
class Spot:
    """One output token.

    index: in the output. step: the pass that emitted it. ending: ACCEPTED, RESTED, or the pass's (explorer.misses).
    is_near: missed, but among the drafter's first NEAR_RANK. entropy: bits, at least; None where the record has none.
    """

    index: int
    step: int
    token: int
    ending: str
    is_near: bool
    token_class: str
    entropy: float | None

    @property
    def is_missed(self) -> bool:
        """Whether the draft was tested here and did not hold the token."""
        return self.ending in MISS_CLASSES


def spots(trace: Trace) -> list[Spot]:
    """The tokens of all complete passes, in order; the prompt pass's own token is not among them."""
    classes = output_classes(trace)
    return [spot for step in trace.steps if not step.is_cut for spot in _of_step(trace, step, classes)]


def _of_step(trace: Trace, step: Step, classes: Sequence[str]) -> list[Spot]:
    first, last = root_index(trace, step) + 1, len(step.path) - 1
    ending, rank = RESTED if is_rest(step) else ending_of(step), step.next_draft_rank
    is_near = ending == "outranked" and rank is not None and rank < NEAR_RANK
    found = []
    for place, (row, token) in enumerate(zip(step.path, step.emitted, strict=True)):
        top, index = step.tree.target_top[row], first + place
        found.append(
            Spot(
                index,
                step.index,
                token,
                ending if place == last else ACCEPTED,
                is_near and place == last,
                classes[index],
                entropy_at_least(top) if top else None,
            )
        )
    return found


def entropy_at_least(top: Sequence[tuple[int, float]]) -> float:
    """The least entropy, in bits, that a distribution can have whose most probable tokens are these.

    What the list leaves out is spread over tokens none of which is above the last listed one; entropy is least where as
    many of them as possible are equal to it. The record keeps five tokens, so a flat distribution has more entropy than
    is told here.
    """
    probs = [min(max(prob, 0.0), 1.0) for _, prob in top]
    bits = sum(map(_bits, probs))
    rest, cap = max(1 - sum(probs), 0.0), min(probs, default=0.0)
    if not rest or not cap:
        return bits
    whole = math.floor(rest / cap)
    return bits + whole * _bits(cap) + _bits(rest - whole * cap)


def _bits(prob: float) -> float:
    return -prob * math.log2(prob) if prob > 0 else 0.0
