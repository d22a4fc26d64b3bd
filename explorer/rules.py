"""Acceptance rules and their tests in words, the same on every screen. Standard library only."""

from __future__ import annotations

from explorer.insight import percent
from explorer.trace import DrawRecord, SamplingRecord

RULE_LABELS = {"typical": "typical (not distribution-preserving)"}
RULE_SENTENCES = {
    "greedy": "a draft is accepted if it is the target's first choice: the output is that of plain greedy decoding",
    "rejection": "a draft is accepted by chance, such that the output is distributed as the target's own samples",
    "typical": "a draft is accepted if the target finds it plausible: not distribution-preserving",
}


def rule_label(acceptance: str) -> str:
    """The name of an acceptance rule as every screen shows it: the one that changes the distribution says so."""
    return RULE_LABELS.get(acceptance, acceptance)


def sampling_text(sampling: SamplingRecord) -> str:
    """How tokens were chosen, in a few words: the rule, and what it was given."""
    parts = [rule_label(sampling.acceptance)]
    if sampling.temperature > 0:
        parts.append(f"temperature {sampling.temperature:g}")
        parts += [f"top_p {sampling.top_p:g}"] if sampling.top_p < 1 else []
        parts += [f"top_k {sampling.top_k}"] if sampling.top_k else []
        parts += [f"seed {sampling.seed}"] if sampling.acceptance == "rejection" else []
    return ", ".join(parts)


def draw_text(draw: DrawRecord) -> str | None:
    """The numbers of one test; None where nothing was drawn and no threshold was met."""
    if draw.uniform is not None and draw.prob is not None:
        sign = "<" if draw.accepted else "≥"
        rest = "" if draw.residual_mass is None else f", residual {percent(draw.residual_mass)}"
        return f"draw {draw.uniform:.3g} {sign} {draw.prob:.3g}{rest}"
    if draw.threshold is not None and draw.prob is not None:
        return f"{draw.prob:.3g} {'>' if draw.accepted else '≤'} threshold {draw.threshold:.3g}"
    return None
