"""The Markdown of a diagnosis, and hostile tokens and prompts in it."""

from __future__ import annotations

from dataclasses import replace

from explorer.diagnose import Subject, diagnose
from explorer.diagnose_markdown import to_markdown
from tests.support.recorded import recorded
from tests.support.traces import make_trace
from tests.support.words import HOSTILE


def test_verdict_ranking_and_tables_are_there() -> None:
    found = diagnose([Subject(recorded("eagle2-code"), "a.json")])
    text = to_markdown(found)
    for part in ("## EAGLE-2: what would help", "1. Retrain", "## Prompts", "## Text", "### By kind of token"):
        assert part in text
    assert found.prompts[0].worst_step is not None
    assert f"a.json, step {found.prompts[0].worst_step + 1}" in text


def test_hostile_text_stays_text() -> None:
    trace = make_trace(hostile=True, steps=20)
    traces = [replace(trace, prompt=replace(trace.prompt, text=text)) for text in HOSTILE]
    text = to_markdown(diagnose([Subject(each) for each in traces]))
    assert "<" not in text and "\0" not in text and "\u202e" not in text
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("## Prompts"))
    rows = lines[start + 4 : start + 4 + len(HOSTILE)]
    assert all(line.replace("\\|", "").count("|") == 8 for line in rows)
