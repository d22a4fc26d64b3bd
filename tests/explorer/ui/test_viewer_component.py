"""The viewer's server functions: anybody may call them with anything, and always gets JSON back."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from explorer.config import repo_path
from explorer.ui.context import Context
from explorer.ui.payloads import MAX_PAYLOAD_CHARS
from explorer.ui.store import Library, TraceStore
from explorer.ui.takeaway import answer_export
from explorer.ui.viewer_component import (
    MAX_OWN_RUNS,
    MAX_TRACES,
    STEPS_AT_ONCE,
    answer_insight,
    answer_lesson,
    answer_view,
    handle,
    race_handle,
    read_handle,
    recorded_handle,
    trace_viewer,
)
from tests.support.traces import make_trace

HOSTILE_PAYLOADS = [
    None,
    True,
    7,
    [],
    {},
    {"id": "eagle2-code", "from": 0},
    "",
    "null",
    "[]",
    '"eagle2-code"',
    "{",
    "[" * 300,
    '{"id": null}',
    '{"id": ["eagle2-code"]}',
    '{"id": ""}',
    '{"id": "eagle2-code", "from": -1}',
    '{"id": "eagle2-code", "from": 1.5}',
    '{"id": "eagle2-code", "from": true}',
    '{"id": "eagle2-code", "from": "0"}',
    '{"id": "eagle2-code", "from": NaN}',
    '{"id": "eagle2-code", "step": -1}',
    '{"id": "eagle2-code", "step": null}',
    '{"id": "eagle2-code.json.gz"}',
    '{"id": "../traces/eagle2-code"}',
    '{"id": "/etc/passwd"}',
    '{"id": "__class__"}',
    '{"id": "' + "x" * 200 + '"}',
    '{"id": "eagle2-code", "pad": "' + "x" * MAX_PAYLOAD_CHARS + '"}',
    "\x00\ud800",
]


@pytest.mark.parametrize("payload", HOSTILE_PAYLOADS)
@pytest.mark.parametrize("answer", [answer_view, answer_export, answer_insight, answer_lesson])
def test_anything_but_a_proper_request_is_an_error_in_words(context: Context, answer: Any, payload: Any) -> None:
    reply = json.loads(answer(context.store, payload))
    assert list(reply) == ["error"]
    assert reply["error"]
    assert "Traceback" not in reply["error"]


def test_random_payloads_are_answered_too(context: Context) -> None:
    rng = random.Random(0)
    pieces = ['{"id":', '"eagle2-code"', ',"from":', "0", "-", "1e9", "}", "[", "null", "\\u0000", '"', "é", "${x}"]
    for _ in range(300):
        payload = "".join(rng.choice(pieces) for _ in range(rng.randrange(12)))
        assert isinstance(json.loads(answer_view(context.store, payload)), dict)


def test_a_request_gets_the_steps_from_where_it_asked(context: Context) -> None:
    view = json.loads(answer_view(context.store, '{"id": "eagle2-code", "from": 10}'))
    assert [step["i"] for step in view["steps"]] == [10, 11]
    assert view["done"]
    beyond = json.loads(answer_view(context.store, '{"id": "eagle2-code", "from": 10000000000000000000000}'))
    assert beyond["steps"] == []


def test_a_long_run_is_answered_in_parts_that_hold_the_step_asked_for(context: Context) -> None:
    run_id = context.store.open(make_trace("eagle2", STEPS_AT_ONCE + 20, 8), is_done=True)
    first = json.loads(answer_view(context.store, json.dumps({"id": run_id, "from": 0, "step": 3})))
    assert (len(first["steps"]), first["num_steps"]) == (STEPS_AT_ONCE, STEPS_AT_ONCE + 20)
    rest = json.loads(answer_view(context.store, json.dumps({"id": run_id, "from": STEPS_AT_ONCE})))
    assert [step["i"] for step in rest["steps"]] == list(range(STEPS_AT_ONCE, STEPS_AT_ONCE + 20))
    far = json.loads(answer_view(context.store, json.dumps({"id": run_id, "step": STEPS_AT_ONCE + 9})))
    assert len(far["steps"]) == STEPS_AT_ONCE + 10


def test_a_forgotten_run_is_told_kindly(context: Context) -> None:
    run_id = context.store.open(make_trace("eagle2", 2, 6))
    for _ in range(context.options.max_kept_runs):
        context.store.open(make_trace("eagle2", 1, 4))
    reply = json.loads(answer_view(context.store, json.dumps({"id": run_id})))
    assert "no longer kept" in reply["error"]


def test_the_shell_is_static_and_the_functions_are_on_the_server(context: Context) -> None:
    with gr.Blocks():
        viewer = trace_viewer(context, recorded_handle("eagle2-code"))
    assert "$" not in viewer.html_template
    assert "{{" not in viewer.html_template
    assert not viewer.css_template
    names = {"get_view", "get_insight", "get_export", "get_link", "get_lesson"}
    assert {fn.__name__ for fn in viewer.server_fns} == names


def test_a_handle_is_small_and_reads_back() -> None:
    assert read_handle(handle("abc", 5, 6)) == "abc"
    assert json.loads(handle("abc", 5, 6)) == {"id": "abc", "steps": 5, "v": 6}
    assert json.loads(recorded_handle("abc", 2)) == {"id": "abc", "recorded": True, "step": 2}
    raced = race_handle(["abc", "def", "ghi"], 5, 6)
    assert json.loads(raced) == {"id": "abc", "steps": 5, "v": 6, "view": "race", "others": ["def", "ghi"]}
    assert read_handle(race_handle(["x" * 22] * MAX_TRACES, 999, 999)) == "x" * 22, "a full race is no long handle"
    for broken in (None, 3, "", "[]", "{", '{"id": 3}', "[" * 200, "x" * 2000):
        assert read_handle(broken) == ""


def ask(context: Context, **request: Any) -> dict[str, Any]:
    reply: dict[str, Any] = json.loads(answer_insight(context.store, json.dumps(request)))
    return reply


def test_insights_about_a_step_a_run_and_several(context: Context) -> None:
    step = ask(context, insight="step", ids=["eagle2-code"], step=3)
    assert step["step"] == 3
    assert step["micro"][0]["kind"] == "start"
    assert ask(context, insight="run", ids=["eagle2-code"])["misses"]["num_steps"] > 0
    assert len(ask(context, insight="race", ids=["eagle2-code"] * 2)["lanes"]) == 3
    assert ask(context, insight="diff", ids=["eagle2-code"] * 2)["split"] is None
    assert ask(context, insight="compare", ids=["eagle2-code"] * 2, step=1)["num_both"] > 0
    assert ask(context, insight="comparable", ids=["eagle2-code", "unknown"])["others"] == []


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        ({"ids": ["eagle2-code"]}, "a request's insight is one of step, run, race, diff, compare, comparable"),
        ({"insight": ["step"], "ids": ["eagle2-code"]}, "insight is one of"),
        ({"insight": "step", "ids": "eagle2-code"}, "ids is a list; step is about 1 of them"),
        ({"insight": "diff", "ids": ["eagle2-code"]}, "diff is about 2 of them"),
        ({"insight": "race", "ids": ["a"] * (MAX_TRACES + 1)}, f"race is about 1 to {MAX_TRACES} of them"),
        ({"insight": "race", "ids": []}, "race is about 1 to"),
        ({"insight": "comparable", "ids": ["a"] * (MAX_OWN_RUNS + 2)}, f"is about 1 to {MAX_OWN_RUNS + 1} of them"),
        ({"insight": "comparable", "ids": ["nobody"]}, "no longer kept"),
        ({"insight": "run", "ids": [7]}, "needs the id of a trace"),
        ({"insight": "step", "ids": ["eagle2-code"], "step": -1}, "step is a whole number, 0 or more"),
        ({"insight": "step", "ids": ["eagle2-code"], "step": 10**6}, "there is no step 1000000"),
        ({"insight": "run", "ids": ["nobody"]}, "no longer kept"),
    ],
)
def test_an_insight_that_cannot_be_given_is_an_error_in_words(
    context: Context, request_: dict[str, Any], told: str
) -> None:
    reply = ask(context, **request_)
    assert list(reply) == ["error"]
    assert told in reply["error"]


@pytest.mark.parametrize(
    "place", [{}, {"lesson": 0}, {"lesson": "0", "stop": 0}, {"lesson": 0, "stop": -1}, {"lesson": True, "stop": 0}]
)
def test_a_lesson_needs_two_numbers(context: Context, place: dict[str, Any]) -> None:
    assert "whole number" in json.loads(answer_lesson(context.store, json.dumps(place)))["error"]


def test_lessons_need_their_recordings(context: Context, tmp_path: Path) -> None:
    store = TraceStore(Library(tmp_path), 1)
    answer = json.loads(answer_lesson(store, json.dumps({"lesson": 0, "stop": 0})))
    assert "no lessons here" in answer["error"]
    with gr.Blocks():
        assert "data-lessons" not in trace_viewer(replace(context, store=store)).html_template


def test_a_stop_of_the_recorded_runs(context: Context) -> None:
    store = TraceStore(Library(repo_path("assets", "traces")), 1)
    answer = json.loads(answer_lesson(store, json.dumps({"lesson": 0, "stop": 0})))
    assert answer["trace"] in store.library
    assert answer["lessons"][0]["title"] == "Draft and verify"
    with gr.Blocks():
        assert "data-lessons" in trace_viewer(replace(context, store=store)).html_template
