"""Prompt lookup's panel: the place it copied from, in prompt or output."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from explorer.panels.prompt_lookup import PromptLookupPanel, prompt_lookup_panel
from explorer.trace import Trace
from tests.support.recorded import plain
from tests.support.traces import make_trace


def made(**extra: Any) -> Trace:
    """Prompt 1 2 3 1; output 2: the last two tokens stood at the prompt's beginning, 3 followed."""
    trace = make_trace("prompt_lookup", 1, 3)
    tree = replace(trace.steps[0].tree, token=[2, 3, 1], parent=[-1, 0, 1], role=["root", "draft", "draft"])
    step = replace(trace.steps[0], prefix_len=4, tree=tree, path=[0, 1], extra={"matched": 2, "position": 2} | extra)
    prompt = replace(trace.prompt, token_ids=[1, 2, 3, 1])
    return replace(trace, prompt=prompt, output=replace(trace.output, token_ids=[2, 3, 9]), steps=[step])


def panel(**extra: Any) -> PromptLookupPanel | None:
    trace = made(**extra)
    return prompt_lookup_panel(trace, trace.steps[0])


def test_by_hand() -> None:
    found = panel()
    assert found is not None
    assert (found.start, found.end, found.is_prompt) == (0, 2, True)
    assert (found.matched_tokens, found.copied_tokens, found.num_accepted) == ([1, 2], [3, 1], 1)
    assert (found.before_tokens, found.rows) == ([], [1, 2])
    assert plain(found.sentences[0]) == (
        "The last 2 tokens, ‘␣reverse’ ‘_list’, stood in the prompt before, 3 tokens ago; 2 tokens copied from there, "
        "1 accepted."
    )


def test_a_match_that_ends_in_the_output() -> None:
    found = panel(matched=1, position=5)
    assert found is not None
    assert not found.is_prompt
    assert (found.start, found.before_tokens) == (4, [1, 2, 3, 1])
    assert plain(found.sentences[0]).startswith("The last token, ‘_list’, stood in the output before, 0 tokens ago")


@pytest.mark.parametrize(
    "extra", [{"matched": 0}, {"matched": None}, {"position": 1}, {"position": 6}, {"position": "x"}]
)
def test_a_place_that_cannot_be_has_no_panel(extra: dict[str, Any]) -> None:
    assert panel(**extra) is None
