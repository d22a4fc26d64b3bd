"""Right, none and wrong: the wrong one is never the target's own."""

from __future__ import annotations

import pytest

from explorer.errors import SettingError
from explorer.laboratory import template
from explorer.laboratory.session import Session
from explorer.runner_events import drain
from tests.support.lab import golden_requests


def test_three_templates_are_read_as_they_should_be() -> None:
    session = Session(golden_requests("eagle2"), ["Count to ten", "Hello", "Why?"])
    trials = drain(template.run(session))["trials"]
    assert [trial.word for trial in trials] == ["its own", "none", "Vicuna's"]
    read = list(session.written)
    assert "<|im_start|>user" in read[0] and "<|im_start|>" not in read[3]
    assert read[6].endswith("USER: Count to ten ASSISTANT:")


def test_a_target_of_that_template_gets_another_and_one_without_is_refused() -> None:
    session = Session(golden_requests("eagle2"), ["Count to ten", "Hello", "Why?"])
    session.target.tokenizer.chat_template = "USER: {{ messages[0]['content'] }} ASSISTANT:"
    assert drain(template.run(session))["trials"][-1].word == "ChatML"
    session.target.tokenizer.chat_template = None
    with pytest.raises(SettingError, match="no chat template"):
        drain(template.run(session))
