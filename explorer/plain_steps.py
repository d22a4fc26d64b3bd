"""Why a step drafted nothing, for the middle of a sentence. Standard library only."""

from __future__ import annotations

from explorer.trace import Step

PLAIN_SENTENCES = {
    "fallback": "the method fell back to plain decoding",
    "context_limit": "the context is nearly full",
    "no_draft": "the drafter had nothing to propose",
}
RESTS = ("fallback", "context_limit")


def is_rest(step: Step) -> bool:
    """Whether no draft was asked for, so that none missed; where the drafter had nothing to propose it was asked."""
    return step.plain_reason in RESTS


def is_adaptive_rest(step: Step) -> bool:
    """Whether the fallback policy (explorer.fallback) made a step plain: it leaves its figures in the record."""
    return step.plain_reason == "fallback" and isinstance(step.extra.get("fallback"), dict)


def plain_sentence(step: Step) -> str:
    """Why a step is plain, for the middle of a sentence; with the figures where the fallback policy left them."""
    told = step.extra.get(step.plain_reason or "")
    if not isinstance(told, dict):
        return PLAIN_SENTENCES[step.plain_reason or "no_draft"]
    tokens, needed = told.get("tokens"), told.get("needed")
    if not isinstance(tokens, float) or not isinstance(needed, float):
        return "a plain pass is measured to compare with"
    return f"the last steps emitted {tokens:.2f} tokens each and {needed:.2f} would have paid for their time"
