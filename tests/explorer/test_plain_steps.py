"""A plain step says why, with the fallback policy's figures where it has them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.insight import step_sentence
from explorer.plain_steps import PLAIN_SENTENCES, is_adaptive_rest, is_rest
from tests.support.traces import make_trace

TRACE = make_trace("eagle2", 8, 20)


@pytest.mark.parametrize("reason", PLAIN_SENTENCES)
def test_plain_steps_say_why(reason: str) -> None:
    plain_step = next(step for step in TRACE.steps if step.plain_reason)
    text = step_sentence(replace(plain_step, plain_reason=reason), TRACE.vocab)
    assert PLAIN_SENTENCES[reason] in text
    assert step_sentence(replace(plain_step, plain_reason=None), TRACE.vocab).startswith("One target pass, one token")


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"tokens": 1.25, "needed": 1.5, "left": 3}, "emitted 1.25 tokens each and 1.50 would have paid"),
        ({"tokens": None, "needed": None, "left": 2}, "a plain pass is measured to compare with"),
        ({"tokens": "<b>", "needed": []}, "a plain pass is measured"),  # a file may say anything
        ("text", PLAIN_SENTENCES["fallback"]),
    ],
)
def test_a_rest_says_what_it_was_judged_by(told: object, says: str) -> None:
    step = next(step for step in TRACE.steps if step.plain_reason)
    text = step_sentence(replace(step, plain_reason="fallback", extra={"fallback": told}), TRACE.vocab)
    assert says in text


def test_only_steps_that_asked_for_no_draft_rest() -> None:
    step = next(step for step in TRACE.steps if step.plain_reason)
    told = {"tokens": 1.0, "needed": 2.0, "left": 8}
    kinds = {reason: replace(step, plain_reason=reason, extra={}) for reason in (None, *PLAIN_SENTENCES)}
    assert [is_rest(one) for one in kinds.values()] == [False, True, True, False]
    assert not any(map(is_adaptive_rest, kinds.values()))
    assert is_adaptive_rest(replace(kinds["fallback"], extra={"fallback": told}))
