"""What would raise acceptance: widen, deepen, retrain or switch, each with the numbers that say so.

Gains are tokens a pass, counted at the prefixes of the runs themselves: one token for each pass that would have had it,
and nothing for what would have followed. Widening is sure of them; deepening assumes that the next level is accepted as
often as the deepest one tried, which is rarely so; and retraining that every missed token becomes right, which never
happens. None of them counts time: more rows and levels cost some. Standard library only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from explorer.calibration import Calibration
from explorer.config import CHAINS, RERANKED
from explorer.insight import depths, percent, plural
from explorer.metrics import depth_counts
from explorer.misses import NEAR_RANK, ending_of
from explorer.trace import Step

ADVICE = ("widen", "deepen", "retrain", "switch", "keep")
TRAINED = ("medusa", "eagle1", *RERANKED, "draft_model")
WIDER = {
    "medusa": ("total_tokens", "tree"),
    "eagle1": ("tree",),
    "eagle2": ("top_k", "total_tokens"),
    "eagle3": ("top_k", "total_tokens"),
    "lookahead": ("guesses",),
}
DEEPER = {
    "medusa": ("tree",),
    "eagle1": ("tree",),
    "eagle2": ("depth", "total_tokens"),
    "eagle3": ("depth", "total_tokens"),
    "draft_model": ("gamma",),
    "jacobi": ("block",),
    "lookahead": ("ngram",),
    "prompt_lookup": ("gamma",),
}
FEW = 50  # passes: fewer are an anecdote
SMALL = 0.05  # tokens a pass: a smaller gain is not worth a change


@dataclass(frozen=True)
class Findings:
    """Complete passes of one method with one choice of settings, counted.

    num: passes by ending (explorer.misses), "outranked" without those that are "near". gain_leaf, gain_deepest: tokens
    a pass that one level more below such ends would give. deepest: passes that tested drafts at the deepest level, and
    those that accepted one. break_even: tau at which the method is as fast as plain
    decoding, None where no run had a baseline.
    """

    method: str
    settings: Mapping[str, Any]
    num_steps: int
    tau: float
    break_even: float | None
    num: Mapping[str, int]
    num_no_draft: int
    gain_leaf: float
    gain_deepest: float
    deepest: tuple[int, int]


@dataclass(frozen=True)
class Other:
    """Another method on the same prompts."""

    label: str
    tau: float
    speedup: float | None


@dataclass(frozen=True)
class Advice:
    """One thing to do. gain: tokens a pass (see above), None where it is not counted so. sentence: the numbers."""

    kind: str
    gain: float | None
    sentence: str


def find(
    method: str, settings: Mapping[str, Any], steps: Sequence[Step], break_even: float | None = None
) -> Findings | None:
    """Count complete passes; None where there is none."""
    if not steps:
        return None
    endings = [ending_of(step) for step in steps]
    num = Counter(endings)
    num["near"] = sum(kind == "outranked" and _is_near(step) for kind, step in zip(endings, steps, strict=True))
    num["outranked"] -= num["near"]
    tried, accepted = depth_counts(steps)
    rates = [taken / count if count else 0.0 for count, taken in zip(tried, accepted, strict=True)]
    gains = {"leaf": 0.0, "deepest": 0.0}
    for kind, step in zip(endings, steps, strict=True):
        if kind in gains and rates:
            gains[kind] += rates[min(depths(step.tree.parent)[step.path[-1]], len(rates) - 1)]
    num_no_draft = sum(step.plain_reason == "no_draft" for step in steps)
    tau = 1 + sum(step.num_accepted for step in steps) / len(steps)
    return Findings(
        method,
        settings,
        len(steps),
        tau,
        break_even,
        num,
        num_no_draft,
        gains["leaf"] / len(steps),
        gains["deepest"] / len(steps),
        (tried[-1], accepted[-1]) if tried else (0, 0),
    )


def _is_near(step: Step) -> bool:
    return step.next_draft_rank is not None and step.next_draft_rank < NEAR_RANK


def advise(found: Findings, calibrations: Sequence[Calibration] = (), others: Sequence[Other] = ()) -> list[Advice]:
    """What to do, the verdict first: what gains most, but no tree of a drafter that cannot pay here whatever its tree.

    others: methods that ran on the same prompts; the fastest of them is named where it is faster.
    """
    options = [_widen(found), _deepen(found), _retrain(found, calibrations)]
    useful = sorted((item for item in options if item.gain is not None and item.gain >= SMALL), key=_minus_gain)
    switch = _switch(found, useful, others)
    if switch is not None:
        return [switch, *useful]
    if found.break_even is not None and found.tau < found.break_even:
        # what reaches the break-even alone comes first, settings before training
        reaching = [item.kind for item in useful if found.tau + (item.gain or 0.0) >= found.break_even]
        useful.sort(key=lambda item: (item.kind not in reaching, reaching and item.kind == "retrain"))
    return useful or [_keep(found)]


def caution(num_steps: int) -> str:
    """What to say beside a verdict on few passes; empty where there are enough."""
    if num_steps >= FEW:
        return ""
    return f"That is from {plural(num_steps, 'pass', 'passes')} only: run more prompts before you change anything."


def _minus_gain(item: Advice) -> float:
    return -(item.gain or 0.0)


def _widen(found: Findings) -> Advice:
    if found.method in CHAINS:
        return Advice("widen", None, "")
    num, count = found.num, found.num_steps
    passes = plural(count, "pass", "passes")
    gain = (num.get("pruned", 0) + num.get("near", 0)) / count + found.gain_leaf
    return Advice(
        "widen",
        gain,
        f"Widen: of {passes} the token was drafted and pruned in {num.get('pruned', 0)}, among "
        f"the drafter's first {NEAR_RANK} but not drafted in {num.get('near', 0)}, and {num.get('leaf', 0)} ended at a "
        f"leaf above the deepest level: {gain:.2f} more tokens a pass or better{_now(found, WIDER)}.",
    )


def _deepen(found: Findings) -> Advice:
    count, num = found.num_steps, found.num.get("deepest", 0)
    share = f"{num} of {plural(count, 'pass', 'passes')} ({percent(num / count)})"
    tried, accepted = found.deepest
    return Advice(
        "deepen",
        found.gain_deepest,
        f"Deepen: {share} were accepted to the deepest level, and {accepted} of the "
        f"{tried} that tested drafts there accepted one: at most "
        f"{found.gain_deepest:.2f} more tokens a pass from one level more{_now(found, DEEPER)}.",
    )


def _retrain(found: Findings, calibrations: Sequence[Calibration]) -> Advice:
    if found.method not in TRAINED:
        return Advice("retrain", None, "")
    num, count = found.num, found.num_steps
    missed = {kind: num.get(kind, 0) for kind in ("not_drafted", "elsewhere", "outranked")}
    gain = sum(missed.values()) / count
    extra = f" Its confidence: {calibrations[0].sentence}" if calibrations else ""
    return Advice(
        "retrain",
        gain,
        f"Retrain the drafter on text like this: of {plural(count, 'pass', 'passes')} the token stood beyond its first "
        f"{NEAR_RANK} in {missed['outranked']}, only on another branch in {missed['elsewhere']}, and was not drafted "
        f"at all in {missed['not_drafted']}: {gain:.2f} more tokens a pass if all of these became right.{extra}",
    )


def _switch(found: Findings, useful: Sequence[Advice], others: Sequence[Other]) -> Advice | None:
    """Another method: one that was faster here, or any where no change of this one reaches the break-even."""
    speedup = found.tau / found.break_even if found.break_even else None
    faster = [other for other in others if _is_better(other, found.tau, speedup)]
    if faster:
        best = max(faster, key=lambda other: (other.speedup or 0.0, other.tau))
        numbers = f"{best.tau:.2f} tokens a pass against {found.tau:.2f}"
        if best.speedup is not None and speedup is not None:
            numbers = f"{best.speedup:.2f} times plain decoding against {speedup:.2f}, {numbers}"
        return Advice("switch", best.tau - found.tau, f"Switch to {best.label}: on the same prompts it had {numbers}.")
    most = found.tau + sum(item.gain or 0.0 for item in useful)
    if found.break_even is not None and most < found.break_even:
        return Advice(
            "switch",
            None,
            f"Switch to a smaller tree, another method or plain decoding: a pass costs {found.break_even:.2f} plain "
            f"ones here and gives {found.tau:.2f} tokens, {most:.2f} with every gain that is listed here.",
        )
    return _switch_guesses(found)


def _is_better(other: Other, tau: float, speedup: float | None) -> bool:
    if other.speedup is not None and speedup is not None:
        return other.speedup > speedup
    return other.tau > tau


def _switch_guesses(found: Findings) -> Advice | None:
    """Guesses cannot be trained: where most passes miss, or have no guess at all, only another method helps."""
    if found.method in TRAINED:
        return None
    num = sum(found.num.get(kind, 0) for kind in ("not_drafted", "elsewhere", "outranked", "near"))
    lost = num + found.num_no_draft
    if 2 * lost <= found.num_steps:
        return None
    return Advice(
        "switch",
        None,
        f"Switch to a method with a trained drafter: of {plural(found.num_steps, 'pass', 'passes')} "
        f"{found.num_no_draft} had nothing to guess and {num} guessed wrong, and guesses cannot be trained.",
    )


def _keep(found: Findings) -> Advice:
    cost = "" if found.break_even is None else f", {found.break_even:.2f} needed to break even"
    return Advice(
        "keep",
        0.0,
        f"Keep it as it is: {found.tau:.2f} tokens a pass{cost}, and no change of the tree or the drafter would give "
        f"{SMALL} more.",
    )


def _now(found: Findings, names: Mapping[str, Sequence[str]]) -> str:
    known = [f"{name} {found.settings[name]}" for name in names.get(found.method, ()) if name in found.settings]
    return f" (now {', '.join(known)})" if known else ""
