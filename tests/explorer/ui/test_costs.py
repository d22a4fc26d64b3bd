"""Measuring costs on the page: progress, the figure, the sentences, and errors that leave the button usable."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from explorer.errors import DeviceError
from explorer.ui import costs
from explorer.ui.context import Context
from tests.support.fake_runner import FakeRunner
from tests.support.page import make_context
from tests.support.traces import make_trace


def play(context: Context, target: object = None) -> list[costs.CostScreen]:
    chosen = context.options.targets[0].name if target is None else target
    return list(costs.measure_costs(context, chosen))


def said(screen: costs.CostScreen) -> dict[str, object]:
    value: dict[str, object] = json.loads(screen.status)
    return value


def test_progress_then_figure_and_sentences(context: Context) -> None:
    screens = play(context)
    assert [said(screen)["kind"] for screen in screens] == ["busy", "busy", "busy", "done"]
    assert said(screens[2])["fraction"] == 0.5
    assert screens[0].button["interactive"] is False and screens[-1].button["interactive"] is True
    text = str(said(screens[-1])["text"])
    assert "60 rows cost" in text and "EAGLE-2 pays here." in text and "auto" in text
    assert "slots: 4.3 µs of host time, 14.3 µs with making room" in text
    tables = screens[-1].details
    assert tables["visible"] and "| naive | 0.500 | 1.0e-07 |" in tables["value"]
    assert "| slots | 4.3 | 4.3 | 10.0 |" in tables["value"] and "NVIDIA GPU" in tables["value"]
    assert len(screens[-1].plot["value"].data) == 4  # passes; expected, needed and the fastest tree of one method


def test_errors_are_sentences(recordings: Path, caplog: pytest.LogCaptureFixture) -> None:
    context = make_context(recordings, FakeRunner(make_trace("eagle2", 8, 2), error=DeviceError("no memory is left")))
    last = play(context)[-1]
    assert said(last) == {"kind": "error", "text": "no memory is left"} and last.button["interactive"] is True
    assert said(play(context, "somebody/else")[-1])["kind"] == "error"
    context = make_context(recordings, FakeRunner(make_trace("eagle2", 8, 2), error=ValueError("a bug")))
    assert said(play(context)[-1])["text"] == costs.UNEXPECTED and "a bug" in caplog.text
