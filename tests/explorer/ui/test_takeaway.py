"""Files of what is on screen, over the server function; the buttons are tested in tests/browser/test_takeaway.py."""

from __future__ import annotations

import io
import json
from typing import Any
from xml.etree import ElementTree

import gradio as gr
import networkx as nx
import pytest

from explorer.trace import from_json
from explorer.ui import takeaway
from explorer.ui.context import Context
from explorer.ui.takeaway import FILES, answer_export, takeaway_row
from explorer.views.theme import DARK
from tests.support.traces import make_trace


def ask(context: Context, **request: Any) -> dict[str, Any]:
    reply: dict[str, Any] = json.loads(answer_export(context.store, json.dumps(request)))
    return reply


@pytest.mark.parametrize("kind", FILES)
def test_each_file_of_a_recorded_run_has_its_name(context: Context, kind: str) -> None:
    reply = ask(context, id="eagle2-code", kind=kind, step=3)
    step = "-step3" if FILES[kind].is_step else ""
    assert reply["name"] == f"eagle2-code{step}{FILES[kind].ending}"
    assert reply["type"] == FILES[kind].media_type
    assert len(reply["text"]) > 100


def test_the_files_are_what_they_say(context: Context) -> None:
    recorded = context.store.library.trace("medusa-chat")
    assert from_json(ask(context, id="medusa-chat", kind="trace")["text"]) == recorded
    assert json.loads(ask(context, id="medusa-chat", kind="stats")["text"])["schema"] == "draft-tree-stats"
    assert json.loads(ask(context, id="medusa-chat", kind="perfetto")["text"])["traceEvents"]
    assert ask(context, id="medusa-chat", kind="html")["text"].startswith("<!doctype html>")
    graph = nx.read_graphml(io.BytesIO(ask(context, id="medusa-chat", kind="graphml", step=4)["text"].encode()))
    assert graph.graph["step"] == 4
    drawn = ask(context, id="medusa-chat", kind="svg", step=4, scheme="dark")["text"]
    assert ElementTree.fromstring(drawn).tag.endswith("svg")
    assert DARK.surface in drawn


def test_a_run_of_ones_own_is_called_after_its_prompt(context: Context) -> None:
    trace = make_trace("eagle2", 2, 6)
    run_id = context.store.open(trace, is_done=True)
    name = ask(context, id=run_id, kind="trace")["name"]
    assert name.startswith("eagle2-")
    assert run_id not in name


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        ({"id": "eagle2-code"}, "kind is one of trace, html"),
        ({"id": "eagle2-code", "kind": "png"}, "kind is one of"),
        ({"id": "eagle2-code", "kind": ["svg"]}, "kind is one of"),
        ({"id": "eagle2-code", "kind": "svg", "scheme": "red"}, "scheme is one of light, dark"),
        ({"id": "eagle2-code", "kind": "svg", "step": -1}, "step is a whole number"),
        ({"id": "eagle2-code", "kind": "svg", "step": 10**9}, "there is no step"),
        ({"id": "nobody", "kind": "svg"}, "no longer kept"),
        ({"kind": "svg"}, "id of a trace"),
    ],
)
def test_what_cannot_be_made_is_told(context: Context, request_: dict[str, Any], told: str) -> None:
    reply = ask(context, **request_)
    assert list(reply) == ["error"]
    assert told in reply["error"]


def test_a_run_without_steps_has_no_picture_but_a_page(context: Context) -> None:
    run_id = context.store.open(make_trace(steps=0), is_done=True)
    assert "no step to draw" in ask(context, id=run_id, kind="svg")["error"]
    assert ask(context, id=run_id, kind="html")["text"]


def test_a_file_that_is_too_large_is_refused(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(takeaway, "MAX_EXPORT_BYTES", 2**10)
    assert "the page gives at most" in ask(context, id="eagle2-code", kind="html")["error"]


def test_a_busy_server_says_so(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(takeaway, "WAIT_SECONDS", 0.01)
    for _ in range(takeaway.MAX_AT_ONCE):
        takeaway._slots.acquire()
    try:
        assert "busy" in ask(context, id="eagle2-code", kind="svg")["error"]
    finally:
        for _ in range(takeaway.MAX_AT_ONCE):
            takeaway._slots.release()
    assert ask(context, id="eagle2-code", kind="svg")["text"]


def test_the_row_is_static_and_offers_every_kind() -> None:
    with gr.Blocks():
        shell = takeaway_row().html_template
    assert "$" not in shell
    assert "{{" not in shell
    for kind in (*FILES, "png", "link"):
        assert f'data-kind="{kind}"' in shell
