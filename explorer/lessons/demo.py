"""The histogram of acceptance rules: one recorded row, its drafted siblings, and what each rule makes of them.

The rejection rule with deterministic children writes each token with the target's own probability; typical acceptance
draws nothing and writes one token only. The browser draws, this module says what must come out. Standard library only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from explorer.errors import TraceError
from explorer.insight import percent, plural, quote
from explorer.lessons.steps import draws_after
from explorer.trace import Step, Trace

NUM_DRAWS = 4000
SEED = 7  # of the browser's own draws; any other seed serves as well


@dataclass(frozen=True)
class Sibling:
    """A drafted child. index: its place in ``tokens``. reach: how many rows in a chain from it pass the threshold."""

    index: int
    reach: int


@dataclass(frozen=True)
class Demo:
    """What the browser simulates, and what must come out.

    tokens: those that the record knows here, by falling probability; probs: the target's for each, and last that of
    all other tokens together. siblings: in the order of their tests. threshold: that of typical acceptance here.
    rejection: the law of the rejection rule, from its tests; typical: the one token (its place) that the typical rule
    writes. typical_distance: total variation distance of that from the target. expected_distance: the mean distance
    that ``num_draws`` honest draws still have.
    """

    tokens: list[int]
    probs: list[float]
    siblings: list[Sibling]
    threshold: float
    rejection: list[float]
    typical: int
    typical_distance: float
    expected_distance: float
    num_draws: int
    seed: int
    sentences: list[str]


def acceptance_demo(trace: Trace, step: Step) -> Demo:
    """Both rules right after the root of a step that typical acceptance verified.

    Raises TraceError where the record does not hold the distribution that was used there: raw values are the target's
    own at temperature 1 without top_p and top_k only.
    """
    how, tests = trace.sampling, draws_after(step, 0)
    top = step.tree.target_top[0]
    if (how.temperature, how.top_p, how.top_k, how.acceptance) != (1.0, 1.0, 0, "typical") or not tests or not top:
        raise TraceError("the histogram needs a step of a typical run at temperature 1")
    known = dict(top)
    for draw in tests:
        known.setdefault(step.tree.token[draw.row], draw.prob or 0.0)
    tokens = sorted(known, key=lambda token: (-known[token], token))
    probs = [known[token] for token in tokens]
    probs.append(max(0.0, 1.0 - math.fsum(probs)))
    siblings = [Sibling(tokens.index(step.tree.token[draw.row]), _reach(step, draw.row)) for draw in tests]
    threshold = tests[0].threshold or 0.0
    rejection = _rejection_law(probs, siblings)
    typical = _typical_choice(probs, siblings, threshold)
    distance = 1.0 - probs[typical]
    return Demo(
        tokens=tokens,
        probs=probs,
        siblings=siblings,
        threshold=threshold,
        rejection=rejection,
        typical=typical,
        typical_distance=distance,
        expected_distance=_expected_distance(probs, NUM_DRAWS),
        num_draws=NUM_DRAWS,
        seed=SEED,
        sentences=_sentences(trace, step, siblings, probs, (tokens[typical], probs[typical])),
    )


def distance(first: list[float], second: list[float]) -> float:
    """Total variation distance of two laws: half the sum of absolute differences, 0 to 1."""
    return math.fsum(abs(a - b) for a, b in zip(first, second, strict=True)) / 2


def _reach(step: Step, row: int) -> int:
    """Rows that pass, one below the other, from this one on; 0 where it fails itself."""
    accepted = {draw.row for draw in step.draws if draw.accepted}
    if row not in accepted:
        return 0
    below = [child for child, parent in enumerate(step.tree.parent) if parent == row]
    return 1 + max((_reach(step, child) for child in below), default=0)


def _rejection_law(probs: list[float], siblings: list[Sibling]) -> list[float]:
    """Each sibling with its acceptance probability p / (what is left), at last the residual: the tests multiplied."""
    law, arrives, left = [0.0] * len(probs), 1.0, list(probs)
    for sibling in siblings:
        total = math.fsum(left)
        accept = left[sibling.index] / total if total > 0 else 0.0
        law[sibling.index] += arrives * accept
        arrives *= 1 - accept
        left[sibling.index] = 0.0
    total = math.fsum(left)
    return [value + (arrives * rest / total if total > 0 else 0.0) for value, rest in zip(law, left, strict=True)]


def _typical_choice(probs: list[float], siblings: list[Sibling], threshold: float) -> int:
    """The passing sibling that leads furthest, of equals the likelier; where none passes, the favourite."""
    passing = [sibling for sibling in siblings if probs[sibling.index] > threshold]
    best = max(passing, key=lambda sibling: (sibling.reach, probs[sibling.index]), default=None)
    return best.index if best else 0


def _expected_distance(probs: list[float], num_draws: int) -> float:
    """Mean distance of the frequencies of honest draws: half the sum of mean absolute normal deviations."""
    return math.fsum(math.sqrt(2 * p * (1 - p) / (math.pi * num_draws)) for p in probs) / 2


def _sentences(
    trace: Trace, step: Step, siblings: list[Sibling], probs: list[float], written: tuple[int, float]
) -> list[str]:
    """What is drawn here, and what each rule does with it."""
    covered = math.fsum(probs[sibling.index] for sibling in siblings)
    token, prob = written
    own = quote(trace.vocab, token)
    return [
        f"After {quote(trace.vocab, step.tree.token[0])}: {plural(len(siblings), 'drafted token')}, which the target "
        f"gives {percent(covered)} together.",
        f"Typical acceptance writes {own} every time, the target alone in {percent(prob)} of all cases.",
    ]
