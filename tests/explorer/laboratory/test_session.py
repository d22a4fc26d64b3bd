"""Trials are the sums of their runs."""

from __future__ import annotations

import dataclasses

import pytest

from explorer.errors import PromptError
from explorer.laboratory.session import Condition, Session
from explorer.runner_events import drain
from tests.support.lab import golden_requests


def test_a_trial_adds_its_runs_up_and_is_measured_once() -> None:
    session = Session(golden_requests("eagle2"), ["Count to ten", "Hello there"])
    both = session.with_prompts(session.requests[0], 2)
    apart = [Condition("a", "s", float(i), (request,)) for i, request in enumerate(both)]
    [one, other, together] = drain(session.trials([*apart, Condition("b", "s", 2.0, both, "w")]))
    assert together.num_steps == one.num_steps + other.num_steps > 0
    assert together.num_accepted_draft_tokens == one.num_accepted_draft_tokens + other.num_accepted_draft_tokens
    assert sum(together.accepted_by_depth) == together.num_accepted_draft_tokens
    assert (together.lane, together.sweep, together.value, together.word) == ("b", "s", 2.0, "w")
    assert len(together.taus) == 2 and together.num_rows > 1 and together.step_ms > 0
    assert together.settings["depth"] and session.drafters["eagle2"].num_bytes > 0
    assert len(session.written) == 2

    [timed] = drain(session.trials([Condition("c", "s", None, both)], is_timed=True))
    [again] = drain(session.trials([Condition("d", "t", 5.0, both)], is_timed=True))
    assert again == dataclasses.replace(timed, lane="d", sweep="t", value=5.0)
    assert timed.value == pytest.approx(sum(len(ids) - n for ids, n in session.written.values()) / 2)


def test_answers_without_a_step_are_a_message() -> None:
    session = Session(golden_requests("eagle2", max_new_tokens=1), ["Count"])
    with pytest.raises(PromptError, match="raise --max-new-tokens"):
        drain(session.trials([Condition("a", "s", 0.0, session.with_prompts(session.requests[0], 1))]))
