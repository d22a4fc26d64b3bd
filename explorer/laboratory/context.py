"""Long context: the same question behind more and more turns of a conversation, past what the drafters were trained on.

The turns are the questions and answers of the recorded runs, so every target reads the same text.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Generator
from pathlib import Path

from explorer.config import repo_path
from explorer.errors import PromptError, SettingError
from explorer.lab_records import Trial
from explorer.laboratory.session import Condition, Session
from explorer.methods.registry import METHODS
from explorer.runner_events import RunRequest, Status
from explorer.trace import read_trace

Turn = tuple[str, str]  # what the user said and what was answered
COUNTS = (0, 1, 2, 4, 6)  # turns before the question
NUM_PROMPTS = 2


def run(session: Session) -> Generator[Status, None, dict[str, list[Trial]]]:
    """The trials, shortest first; where the target's own context ends, the longer ones are left out."""
    turns = recorded_turns(repo_path("assets", "traces"))
    trials: list[Trial] = []
    counts = [count for count in COUNTS if count <= len(turns)]
    for number, count in enumerate(counts):
        conditions = [_condition(session, request, turns[:count]) for request in session.requests]
        span = (number / len(counts), (number + 1) / len(counts))
        try:
            trials += yield from session.trials(conditions, span)
        except PromptError:
            if not trials:
                raise
            break
    return {"trials": trials}


def recorded_turns(folder: Path) -> list[Turn]:
    """Each different answer of the recorded runs with its question, in the manifest's order.

    Raises SettingError where the manifest cannot be read, TraceError where a recording cannot.
    """
    path = folder / "manifest.json"
    try:
        files = [str(entry["file"]) for entry in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SettingError(f"the list of recorded runs {path} cannot be read: {error}") from error
    traces = [read_trace(folder / Path(file).name) for file in files]
    answers = dict.fromkeys((trace.output.text, trace.prompt.text) for trace in traces)
    return [(question, answer) for answer, question in answers if answer.strip()]


def _condition(session: Session, request: RunRequest, turns: list[Turn]) -> Condition:
    """The first prompts behind these turns; the value is the length of what is read."""
    before = [
        message
        for question, answer in turns
        for message in ({"role": "user", "content": question}, {"role": "assistant", "content": answer})
    ]
    requests = [
        dataclasses.replace(request, messages=(*before, {"role": "user", "content": prompt}))
        for prompt in session.prompts[-NUM_PROMPTS:]
    ]
    return Condition(METHODS[request.method].label, "prefix", None, tuple(requests))
