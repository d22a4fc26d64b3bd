"""Recorded traces, the address, uploads and the summary figure: plain functions, no browser."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
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
    assert shown(screen) == {"id": "medusa-chat", "recorded": True, "step": 2}
    assert screen.picker["value"] == "medusa-chat"
    assert "Medusa" in said(screen)["text"]


def test_a_processors_marks_are_left_out(context: Context) -> None:
    recording = replace(next(iter(context.store.library)), device="Intel(R) Xeon(R) Processor (cpu)")
    assert ", Intel Xeon Processor (cpu), " in opening.recording_text(context, recording)


@pytest.mark.parametrize("step", ["", "-1", "0", "x", "9" * 30, "²"])
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
    run_id = shown(screen)["id"]
    assert screen.picker["value"] == run_id
    assert shown(opening.open_recording(context, run_id))["id"] == run_id, "the list leads back to it"


@pytest.mark.parametrize(
    "data",
    [b"", b"hello", b"{}", b'{"schema": "draft-tree-trace", "schema_version": 99}', b"\x1f\x8bbroken", b"\xff\xfe",
     gzip.compress(b"[" * 40_000_000, mtime=0), gzip.compress(b"", mtime=0) * 100_000, b"[" * 8_000_000,
     b'{"schema": ' + b"9" * 100_000 + b"}", json.dumps({"schema": "\u202e" + "x" * 1_000_000}).encode(),
     b'{"schema": "draft-tree-trace", "schema_version": ' + b"[" * 900 + b"]" * 900 + b"}"],
)  # fmt: skip
def test_a_broken_upload_is_one_sentence(context: Context, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(data)
    screen = opening.open_upload(context, str(path))
    assert said(screen)["kind"] == "error"
    assert said(screen)["text"].startswith("This file cannot be shown: ")
    assert len(said(screen)["text"]) < 400
    assert "\u202e" not in said(screen)["text"]
    assert screen.viewer == KEEP


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ({"schema": "draft-tree-stats"}, "this is a run's figures, not a trace; a trace is the file that ‘Trace file’"),
        ({"schema": "draft-tree-bench"}, "a benchmark's report, not a trace"),
        ({"traceEvents": []}, "a timeline, not a trace"),
        ({"a": 1}, "some other JSON, not a trace"),
        ({"schema": "x" * 5000}, "a file of schema 'xxx"),
    ],
)
def test_another_file_of_ours_is_told_from_a_trace(
    context: Context, tmp_path: Path, raw: dict[str, Any], told: str
) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps(raw), encoding="utf-8")
    text = said(opening.open_upload(context, str(path)))["text"]
    assert told in text
    assert len(text) < 250


def with_change(path: str, value: object) -> bytes:
    raw = json.loads(to_json(make_trace("eagle2", 3, 8)))
    *folders, name = path.split(".")
    place = raw
    for folder in folders:
        place = place[int(folder) if folder.isdigit() else folder]
    place[name] = value
    return json.dumps(raw).encode()


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("method", "m" * 100_000, "trace.method: a name has at most 200 characters"),
        ("target.device_name", "m" * 201, "trace.target.device_name: a name has at most 200 characters"),
        ("settings", {"k" * 201: 1}, "trace.settings: a name has at most"),
        ("settings", {str(i): i for i in range(101)}, "trace.settings: at most 100 settings"),
        ("settings", {"tree": "x" * 100_000}, "trace.settings.tree: a name has at most"),
        ("steps.1.ms.verify", 1e308, "a measurement is 0 or from 1e-09 to 1e+12"),
        ("steps.1.ms.draft", [1e-320], "a measurement is 0 or from"),
        ("prefill_ms.target", -1.0, "a measurement is 0 or from"),
        ("baseline.tokens_per_second", 1e300, "trace.baseline.tokens_per_second: a measurement"),
        ("baseline.ms_per_token", [1.0] * 70_000, "at most 65536 tokens are read, found 70000"),
        ("stats.acceptance_histogram", [1] * 5000, "at most 4097 lengths are read, found 5000"),
        ("stats.acceptance_by_depth", [1.0] * 5000, "at most 4096 depths are read"),
        ("stats.speedup", 1e308, "trace.stats.speedup: a measurement"),
    ],
)
def test_a_file_that_would_stall_the_page_is_refused(
    context: Context, tmp_path: Path, path: str, value: object, told: str
) -> None:
    file = tmp_path / "t.json"
    file.write_bytes(with_change(path, value))
    screen = opening.open_upload(context, str(file))
    assert told in said(screen)["text"]
    assert len(said(screen)["text"]) < 400


def test_a_long_but_possible_name_leaves_the_status_line_readable(context: Context, tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.write_bytes(with_change("target.name", "\u202e" + "n" * 199))
    told = said(opening.open_upload(context, str(file)))
    assert told["kind"] == "done"
    assert len(told["text"]) < 400
    assert "\u202e" not in told["text"]


def test_a_mark_before_the_text_does_no_harm(context: Context, tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.write_bytes(b"\xef\xbb\xbf" + to_json(make_trace("eagle2", 3, 8)).encode())
    assert said(opening.open_upload(context, str(file)))["kind"] == "done"
