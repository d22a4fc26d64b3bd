"""Prompt lookup's panel: where in the text the last tokens stood before, and what was copied. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from explorer.insight import plural, quote
from explorer.panels.extra import count
from explorer.timeline import root_index
from explorer.trace import Step, Trace

NUM_BEFORE = 6  # tokens shown before the match


@dataclass(frozen=True)
class PromptLookupPanel:
    """The text is the prompt's tokens, then the output's.

    start, end: the place [start, end) of the earlier occurrence in it; what follows ``end`` was drafted. is_prompt:
    whether it ends inside the prompt. before_tokens: the last ones before it. matched_tokens: the run of tokens that
    stands at both places. rows: the tree rows of the copied tokens.
    """

    start: int
    end: int
    is_prompt: bool
    before_tokens: list[int]
    matched_tokens: list[int]
    copied_tokens: list[int]
    rows: list[int]
    num_accepted: int
    sentences: list[str]
    kind: ClassVar[str] = "prompt_lookup"


def prompt_lookup_panel(trace: Trace, step: Step) -> PromptLookupPanel | None:
    """None where nothing was found, or the record does not say where."""
    size, end = count(step.extra, "matched"), count(step.extra, "position")
    text = [*trace.prompt.token_ids, *trace.output.token_ids[: root_index(trace, step) + 1]]
    if not size or end is None or not size <= end <= len(text):
        return None
    rows = [row for row, role in enumerate(step.tree.role) if role == "draft"]
    copied, start = [step.tree.token[row] for row in rows], end - size
    is_prompt, matched = end <= len(trace.prompt.token_ids), text[start:end]
    names = " ".join(quote(trace.vocab, token) for token in matched)
    ago, where = plural(len(text) - end, "token"), "prompt" if is_prompt else "output"
    sentence = (
        f"The last {'token' if size == 1 else f'{size} tokens'}, {names}, stood in the {where} before, {ago} ago; "
        f"{plural(len(copied), 'token')} copied from there, {step.num_accepted or 'none'} accepted."
    )
    before = text[max(0, start - NUM_BEFORE) : start]
    return PromptLookupPanel(start, end, is_prompt, before, matched, copied, rows, step.num_accepted, [sentence])
