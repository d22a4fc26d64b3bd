"""The step viewer as a Gradio component: a static shell, a small handle as value, data through server functions.

The functions take one string, check every part of it, open ids only from the store (never a path), and answer with
JSON text in every case (explorer.ui.payloads says why).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from explorer.codec import encode
from explorer.errors import TraceError
from explorer.lab_records import shown_records
from explorer.lessons.figures import Recordings
from explorer.trace import Trace
from explorer.ui.comparable import comparable_runs
from explorer.ui.context import Context
from explorer.ui.links import answer_link
from explorer.ui.payloads import MAX_PAYLOAD_CHARS, in_words, read_id, read_number, read_object, to_text
from explorer.ui.store import TraceStore
from explorer.ui.takeaway import answer_export
from explorer.views.insights import compare_insight, diff_insight, race_insight, run_insight, step_insight
from explorer.views.lessons import offered_lessons, stop_view
from explorer.views.viewer import ASSETS, SHELL, view_payload, viewer_js

STEPS_AT_ONCE = 40  # in one answer: what a browser draws in a tenth of a second
MAX_TRACES = 6  # in one race
MAX_OWN_RUNS = 16  # that a browser may name when it asks what can be compared


@dataclass(frozen=True)
class ViewRequest:
    """What the viewer asks for: steps of ``trace_id`` from number ``start`` on, ``wanted`` among them."""

    trace_id: str
    start: int
    wanted: int


@dataclass(frozen=True)
class InsightRequest:
    """What is asked of ``kind`` about these traces: of step ``step`` of the first one, where it is about a step."""

    kind: str
    trace_ids: list[str]
    step: int


COMPARABLE = "comparable"  # the one kind that looks for traces itself: its ids are the run on screen, then own ones

# kind -> (how many traces it is about, at least and at most, what answers it)
INSIGHTS: dict[str, tuple[int, int, Callable[[list[Trace], int], dict[str, Any]]]] = {
    "step": (1, 1, lambda traces, step: step_insight(traces[0], step)),
    "run": (1, 1, lambda traces, _: run_insight(traces[0])),
    "race": (1, MAX_TRACES, lambda traces, _: race_insight(traces)),
    "diff": (2, 2, lambda traces, _: diff_insight(traces[0], traces[1])),
    "compare": (2, 2, lambda traces, step: compare_insight(traces[0], step, traces[1])),
}


def trace_viewer(context: Context, value: str | None = None, *, page: str = "", **kwargs: Any) -> gr.HTML:
    """The viewer over the context's store (no gr.HTML subclass: Gradio writes a .pyi file beside each one).

    page: the path of a page that is not the first one: no lessons there, and links lead to the first page.
    """

    def get_view(payload: Any) -> str:
        return answer_view(context.store, payload)

    def get_insight(payload: Any) -> str:
        return answer_insight(context.store, payload)

    def get_export(payload: Any) -> str:
        return answer_export(context.store, payload)

    def get_link(payload: Any) -> str:
        return answer_link(context, payload)

    def get_lesson(payload: Any) -> str:
        return answer_lesson(context.store, payload)

    has_lessons = not page and bool(offered_lessons((item.name for item in context.store.library), shown_records()))
    marks = f'data-page="{page}"' if page else 'data-lessons="1"' if has_lessons else ""

    return gr.HTML(
        value,
        html_template=SHELL.replace("<div", f"<div {marks}", 1) if marks else SHELL,
        js_on_load=viewer_js() + (ASSETS / "page.js").read_text(encoding="utf-8"),
        apply_default_css=False,
        server_functions=[get_view, get_insight, get_export, get_link, get_lesson],
        **kwargs,
    )


def handle(run_id: str, steps: int = 0, version: int = 0) -> str:
    """The viewer's value for a visitor's own run: how many steps there are now, and a version to notice changes."""
    return json.dumps({"id": run_id, "steps": steps, "v": version})


def race_handle(run_ids: Sequence[str], steps: int, version: int) -> str:
    """The value that shows runs as a race: the first is the run on screen, ``steps`` of it there are."""
    first, *others = run_ids
    return json.dumps({"id": first, "steps": steps, "v": version, "view": "race", "others": others})


def recorded_handle(name: str, step: int = 0) -> str:
    """The viewer's value for a recorded trace, standing at the step of that index; the address bar may name it."""
    return json.dumps({"id": name, "recorded": True, "step": step})


def read_handle(value: object) -> str:
    """The trace id in a handle that came back from a browser; an unreadable one is an empty id."""
    if not isinstance(value, str) or len(value) > MAX_PAYLOAD_CHARS:
        return ""
    try:
        trace_id = json.loads(value).get("id")
    except (ValueError, AttributeError, RecursionError):
        return ""
    return trace_id if isinstance(trace_id, str) else ""


@in_words
def answer_view(store: TraceStore, payload: object) -> str:
    """View JSON of the next steps asked for, or ``{"error": sentence}``.

    A long run comes in parts, so that its first tree is on screen before its last is made ready.
    """
    request = _read_view(payload)
    if request.start == 0 and request.trace_id in store.library:
        return store.library.once(request.trace_id, _whole_view)
    trace, is_done = store.get(request.trace_id)
    limit = max(STEPS_AT_ONCE, request.wanted + 1 - request.start)
    return to_text(view_payload(trace, request.start, is_done=is_done, trace_id=request.trace_id, limit=limit))


@in_words
def answer_insight(store: TraceStore, payload: object) -> str:
    """What explorer.views.insights says, for ``{"insight": one of INSIGHTS, "ids": [trace ids], "step": number}``.

    The insight "comparable" is what explorer.ui.comparable says of the first id, the others being the asker's own
    runs. ``step`` may be left out where the answer is not about one. Mistakes are answered by ``{"error": sentence}``.
    """
    request = _read_insight(payload)
    if request.kind == COMPARABLE:
        return to_text(encode(comparable_runs(store, request.trace_ids[0], request.trace_ids[1:])))
    traces = [store.get(trace_id)[0] for trace_id in request.trace_ids]
    return to_text(INSIGHTS[request.kind][2](traces, request.step))


@in_words
def answer_lesson(store: TraceStore, payload: object) -> str:
    """A stop of a lesson, as explorer.views.lessons describes it, for ``{"lesson": number, "stop": number}`` from 0."""
    raw = read_object(payload)
    place = read_number(raw.get("lesson"), "lesson"), read_number(raw.get("stop"), "stop")
    equal = {item.name: item.output_equal for item in store.library}
    return to_text(stop_view(Recordings(equal, store.library.trace, shown_records()), *place))


def _read_view(payload: object) -> ViewRequest:
    """The request in a payload of unknown make: ``{"id": text, "from": number, "step": number}``, else a TraceError."""
    raw = read_object(payload)
    start, wanted = (read_number(raw.get(name, 0), name) for name in ("from", "step"))
    return ViewRequest(read_id(raw.get("id")), start, wanted)


def _read_insight(payload: object) -> InsightRequest:
    """The same for what ``answer_insight`` describes."""
    raw = read_object(payload)
    kind, ids = raw.get("insight"), raw.get("ids")
    if not isinstance(kind, str) or kind not in (*INSIGHTS, COMPARABLE):
        raise TraceError(f"a request's insight is one of {', '.join((*INSIGHTS, COMPARABLE))}")
    least, most = (1, 1 + MAX_OWN_RUNS) if kind == COMPARABLE else INSIGHTS[kind][:2]
    if not isinstance(ids, list) or not least <= len(ids) <= most:
        count = str(least) if least == most else f"{least} to {most}"
        raise TraceError(f"a request's ids is a list; {kind} is about {count} of them")
    return InsightRequest(kind, [read_id(trace_id) for trace_id in ids], read_number(raw.get("step", 0), "step"))


def _whole_view(trace: Trace, name: str) -> str:
    return to_text(view_payload(trace, trace_id=name))
