"""Prompts grow turn by turn, and stop where the target's context does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from explorer.errors import SettingError
from explorer.laboratory import context
from explorer.laboratory.session import Session
from explorer.runner_events import drain
from explorer.trace import write_trace
from tests.support.lab import golden_requests
from tests.support.traces import make_trace


def test_prompts_grow_until_the_context_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = [("Why?", "Because."), ("Who?", "Me. " * 30), *[("What?", "x " * 500)] * 4]
    monkeypatch.setattr(context, "recorded_turns", lambda _folder: turns)
    trials = drain(context.run(Session(golden_requests("eagle2"), ["Count to ten", "Hello"])))["trials"]
    lengths = [trial.value for trial in trials]
    assert lengths == sorted(lengths) and 2 <= len(lengths) < len(context.COUNTS)


def test_turns_are_the_recordings_different_answers(tmp_path: Path) -> None:
    trace = make_trace("eagle2", 4, 8)
    for name in ("a", "b"):
        write_trace(trace, tmp_path / f"{name}.json.gz")
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps([{"file": "a.json.gz"}, {"file": "b.json.gz"}]), encoding="utf-8")
    assert context.recorded_turns(tmp_path) == [(trace.prompt.text, trace.output.text)]
    manifest.write_text("[1]", encoding="utf-8")
    with pytest.raises(SettingError, match="cannot be read"):
        context.recorded_turns(tmp_path)
