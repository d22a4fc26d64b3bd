"""Recorded traces, the address, uploads and the summary figure: plain functions, no browser."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from explorer.trace import to_json
from explorer.ui import opening
from explorer.ui.context import Context
from explorer.ui.screen import KEEP, Screen
from tests.support.traces import make_trace


def said(screen: Screen) -> dict[str, Any]:
    return json.loads(screen.status)


def shown(screen: Screen) -> dict[str, Any]:
    return json.loads(screen.viewer)


def query(**params: str) -> Any:
    return SimpleNamespace(query_params=params)


def test_the_query_restores_a_recording_and_its_step(context: Context) -> None:
    screen = opening.open_from_query(context, query(trace="medusa-chat", step="3"))
    assert shown(screen) == {"id": "medusa-chat", "recorded": True, "step": 3}
    assert screen.picker["value"] == "medusa-chat"
    assert "Medusa" in said(screen)["text"]


@pytest.mark.parametrize("step", ["", "-1", "x", "9" * 30, "²"])
def test_an_unreadable_step_opens_the_recording_at_its_start(context: Context, step: str) -> None:
    assert shown(opening.open_from_query(context, query(trace="medusa-chat", step=step)))["step"] == 0


@pytest.mark.parametrize("name", ["../eagle2-code", "eagle2-code.json.gz", "<script>", "x" * 5000])
def test_an_unknown_name_in_the_query_is_a_message(context: Context, name: str) -> None:
    screen = opening.open_from_query(context, query(trace=name))
    assert said(screen)["kind"] == "error"
    assert len(said(screen)["text"]) < 250
    assert screen.viewer == KEEP


def test_no_query_changes_nothing(context: Context) -> None:
    assert opening.open_from_query(context, query()) == Screen()


def test_the_summary_of_the_recording_on_screen_comes_after_it(context: Context) -> None:
    assert opening.summary_from_query(context, query())["value"].layout.height > 0
    unknown = opening.summary_from_query(context, query(trace="nothing"))
    assert unknown == opening.summary_from_query(context, query()), "the first recording stays on screen"


def test_picking_a_recording_shows_it_and_then_its_summary(context: Context) -> None:
    screen = opening.open_recording(context, "eagle2-code")
    assert shown(screen)["id"] == "eagle2-code"
    assert "EAGLE-2 on SmolLM2-135M-Instruct, a made-up CPU, 2026-01-02" in said(screen)["text"]
    assert screen.plot == KEEP
    assert opening.summarise(context, screen.viewer)["visible"]
    first = opening.summarise(context, screen.viewer)
    first.pop("value")
    assert opening.summarise(context, screen.viewer)["value"], "Gradio takes an update apart: each is a fresh one"
    assert opening.summarise(context, "nonsense") == KEEP


@pytest.mark.parametrize("is_packed", [True, False])
def test_an_uploaded_trace_is_shown(context: Context, tmp_path: Path, is_packed: bool) -> None:
    data = to_json(make_trace("medusa", 4, 9)).encode()
    path = tmp_path / "t.json"
    path.write_bytes(gzip.compress(data) if is_packed else data)
    screen = opening.open_upload(context, str(path))
    assert said(screen)["kind"] == "done"
    assert shown(screen)["steps"] == 4


@pytest.mark.parametrize(
    "data",
    [b"", b"hello", b"{}", b'{"schema": "draft-tree-trace", "schema_version": 99}', b"\x1f\x8bbroken", b"\xff\xfe",
     gzip.compress(b"[" * 40_000_000)],
)  # fmt: skip
def test_a_broken_upload_is_one_sentence(context: Context, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(data)
    screen = opening.open_upload(context, str(path))
    assert said(screen)["kind"] == "error"
    assert said(screen)["text"].startswith("This file cannot be shown: ")
    assert screen.viewer == KEEP
