"""The chat template: the target's own, none at all, and another model's."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator

from explorer.errors import SettingError
from explorer.lab_records import Trial
from explorer.laboratory.session import Condition, Session
from explorer.methods.registry import METHODS
from explorer.runner_events import RunRequest, Status

# Name, text around the prompt, a mark by which a target's own template would be known.
OTHERS = (
    ("Vicuna's", "USER: {prompt} ASSISTANT:", "USER:"),
    ("ChatML", "<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n", "<|im_start|>"),
)
RIGHT, NONE = "its own", "none"
NUM_PROMPTS = 3


def run(session: Session) -> Generator[Status, None, dict[str, list[Trial]]]:
    """The trials; raises SettingError for a target without a chat template."""
    own = session.target.tokenizer.chat_template
    if not own:
        raise SettingError("this target has no chat template: there is nothing to compare")
    name, text = next((name, text) for name, text, mark in OTHERS if mark not in str(own))
    conditions = [
        Condition(METHODS[request.method].label, "template", float(number), requests, word)
        for request in session.requests
        for number, (word, requests) in enumerate(_variants(session, request, name, text).items())
    ]
    trials = yield from session.trials(conditions)
    return {"trials": trials}


def _variants(session: Session, request: RunRequest, name: str, text: str) -> dict[str, tuple[RunRequest, ...]]:
    right = session.with_prompts(request, NUM_PROMPTS)
    bare = [dataclasses.replace(each, use_chat_template=False) for each in right]
    wrong = [dataclasses.replace(each, prompt=text.replace("{prompt}", each.prompt or "")) for each in bare]
    return {RIGHT: right, NONE: tuple(bare), name: tuple(wrong)}
