"""Settings, acceptance rules and their tests in words, the same on every screen. Standard library only."""

from __future__ import annotations

from explorer.config import RERANKED
from explorer.insight import percent, plural
from explorer.trace import DrawRecord, SamplingRecord, Trace

RULE_LABELS = {"typical": "typical (not distribution-preserving)"}
RULE_SENTENCES = {
    "greedy": "a draft is accepted if it is the target's first choice: the output is that of plain greedy decoding",
    "rejection": "a draft is accepted by chance, such that the output is distributed as the target's own samples",
    "typical": "a draft is accepted if the target finds it plausible: not distribution-preserving",
}
TYPICAL_SETTINGS = ("threshold", "alpha")  # of Medusa: no other rule reads them


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


def settings_texts(trace: Trace) -> list[str]:
    """What a run was told, "name value" each; settings that its acceptance rule does not read are left out.

    The depth of EAGLE-2 and EAGLE-3 counts the expansions after the first level, so their trees have one level more
    below the root.
    """
    is_typical, depth = trace.sampling.acceptance == "typical", trace.settings.get("depth")
    found = [
        f"{name} {value}"
        for name, value in trace.settings.items()
        if is_typical or trace.method != "medusa" or name not in TYPICAL_SETTINGS
    ]
    if trace.method not in RERANKED or type(depth) is not int:
        return found
    return [f"{text} (root + {plural(depth + 1, 'level')})" if text == f"depth {depth}" else text for text in found]


def draw_text(draw: DrawRecord) -> str | None:
    """The numbers of one test; None where nothing was drawn and no threshold was met."""
    if draw.uniform is not None and draw.prob is not None:
        sign = "<" if draw.accepted else "≥"
        rest = "" if draw.residual_mass is None else f", residual {percent(draw.residual_mass)}"
        return f"draw {draw.uniform:.3g} {sign} {draw.prob:.3g}{rest}"
    if draw.threshold is not None and draw.prob is not None:
        return f"{draw.prob:.3g} {'>' if draw.accepted else '≤'} threshold {draw.threshold:.3g}"
    return None
