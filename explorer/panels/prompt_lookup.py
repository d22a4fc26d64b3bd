"""Prompt lookup's panel: where in the text the last tokens stood before, and what was copied. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from explorer.insight import plural, quote
from explorer.panels.extra import count
from explorer.timeline import root_index
from explorer.trace import Step, Trace


@dataclass(frozen=True)
class PromptLookupPanel:
    """The text is the prompt's tokens, then the output's.

    start, end: the place [start, end) of the earlier occurrence in it; what follows ``end`` was drafted. is_prompt:
    whether it ends inside the prompt. matched_tokens: the run of tokens that stands at both places.
    """

    start: int
    end: int
    is_prompt: bool
    matched_tokens: list[int]
    copied_tokens: list[int]
    num_accepted: int
    sentences: list[str]
    kind: ClassVar[str] = "prompt_lookup"


def prompt_lookup_panel(trace: Trace, step: Step) -> PromptLookupPanel | None:
    """None where nothing was found, or the record does not say where."""
    size, end = count(step.extra, "matched"), count(step.extra, "position")
    text = [*trace.prompt.token_ids, *trace.output.token_ids[: root_index(trace, step) + 1]]
    if not size or end is None or not size <= end <= len(text):
        return None
    copied = [token for token, role in zip(step.tree.token, step.tree.role, strict=True) if role == "draft"]
    is_prompt, matched = end <= len(trace.prompt.token_ids), text[end - size : end]
    names = " ".join(quote(trace.vocab, token) for token in matched)
    ago, where = plural(len(text) - end, "token"), "prompt" if is_prompt else "output"
    sentence = (
        f"The last {'token' if size == 1 else f'{size} tokens'}, {names}, stood in the {where} before, {ago} ago; "
        f"{plural(len(copied), 'token')} copied from there, {step.num_accepted or 'none'} accepted."
    )
    return PromptLookupPanel(end - size, end, is_prompt, matched, copied, step.num_accepted, [sentence])
