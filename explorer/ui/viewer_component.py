"""The step viewer as a Gradio component: a static shell, a small handle as value, data through server functions.

Server functions bypass the queue and answer anybody who can reach the server, with any JSON: so they take one string,
check every part of it, open ids only from the store (never a path), and answer with JSON text in every case.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from explorer.codec import encode
from explorer.errors import ExplorerError, TraceError
from explorer.trace import Trace, to_json
from explorer.ui.comparable import comparable_runs
from explorer.ui.store import TraceStore
from explorer.views.insights import compare_insight, diff_insight, race_insight, run_insight, step_insight
from explorer.views.viewer import SHELL, view_payload, viewer_js

MAX_PAYLOAD_CHARS = 1000
MAX_ID_CHARS = 100
MAX_TRACES = 6  # in one race
MAX_OWN_RUNS = 16  # that a browser may name when it asks what can be compared
DOWNLOAD_EVENT = "explorer-download"

# The page's download button sends the viewer an event; the file is made in the browser, so nothing is written here.
# A recorded trace keeps its name and step in the address bar: copying the address is the link to what is on screen.
_PAGE_JS = """
const currentHandle = () => JSON.parse(props.value || '{}');
document.querySelector('#viewer').addEventListener('%s', async () => {
  const id = currentHandle().id;
  if (!id) return;
  const answer = JSON.parse(await server.get_trace(JSON.stringify({id})));
  if (answer.error) { window.alert(answer.error); return; }
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([answer.trace], {type: 'application/json'}));
  link.download = answer.name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
});
function showAddress(step) {
  const {id, recorded} = currentHandle();
  const address = new URL(window.location.href);
  for (const [name, value] of [['trace', id], ['step', step]]) {
    if (recorded) address.searchParams.set(name, value);
    else address.searchParams.delete(name);
  }
  // Safari throws above a hundred changes in thirty seconds; a link that lags must not stop the viewer.
  try { window.history.replaceState(null, '', address); } catch (error) { return; }
}
element.addEventListener('step_select', (event) => showAddress(event.detail.step));
watch('value', () => { if (!currentHandle().recorded) showAddress(0); });
"""


@dataclass(frozen=True)
class ViewRequest:
    """What the viewer asks for: the steps of ``trace_id`` from number ``start`` on."""

    trace_id: str
    start: int


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


def trace_viewer(store: TraceStore, value: str | None = None, **kwargs: Any) -> gr.HTML:
    """The viewer over ``store`` (no gr.HTML subclass: Gradio writes a .pyi file beside each one)."""

    def get_view(payload: Any) -> str:
        return answer_view(store, payload)

    def get_trace(payload: Any) -> str:
        return answer_trace(store, payload)

    def get_insight(payload: Any) -> str:
        return answer_insight(store, payload)

    return gr.HTML(
        value,
        html_template=SHELL,
        js_on_load=viewer_js() + _PAGE_JS % DOWNLOAD_EVENT,
        apply_default_css=False,
        server_functions=[get_view, get_trace, get_insight],
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
    """The viewer's value for a recorded trace, standing at ``step``; the address bar may name it."""
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


def answer_view(store: TraceStore, payload: object) -> str:
    """View JSON of the steps asked for, or ``{"error": sentence}``."""
    try:
        request = _read(payload)
        if request.start == 0 and request.trace_id in store.library:
            return store.library.once(request.trace_id, _whole_view)
        trace, is_done = store.get(request.trace_id)
    except ExplorerError as error:
        return _error(error)
    return _json(view_payload(trace, request.start, is_done=is_done, trace_id=request.trace_id))


def answer_trace(store: TraceStore, payload: object) -> str:
    """``{"name": file name, "trace": the whole trace file as text}``, or ``{"error": sentence}``."""
    try:
        request = _read(payload)
        trace, _ = store.get(request.trace_id)
    except ExplorerError as error:
        return _error(error)
    name = request.trace_id if request.trace_id in store.library else f"trace-{trace.method}"
    return json.dumps({"name": f"{name}.json", "trace": to_json(trace)}, ensure_ascii=False)


def answer_insight(store: TraceStore, payload: object) -> str:
    """What explorer.views.insights says, for ``{"insight": one of INSIGHTS, "ids": [trace ids], "step": number}``.

    The insight "comparable" is what explorer.ui.comparable says of the first id, the others being the asker's own
    runs. ``step`` may be left out where the answer is not about one. Mistakes are answered by ``{"error": sentence}``.
    """
    try:
        request = _read_insight(payload)
        if request.kind == COMPARABLE:
            return _json(encode(comparable_runs(store, request.trace_ids[0], request.trace_ids[1:])))
        traces = [store.get(trace_id)[0] for trace_id in request.trace_ids]
        return _json(INSIGHTS[request.kind][2](traces, request.step))
    except ExplorerError as error:
        return _error(error)


def _read(payload: object) -> ViewRequest:
    """The request in a payload of unknown make; raises TraceError for anything but ``{"id": text, "from": number}``."""
    raw = _read_object(payload)
    return ViewRequest(_trace_id(raw.get("id")), _number(raw.get("from", 0), "from"))


def _read_insight(payload: object) -> InsightRequest:
    """The same for what ``answer_insight`` describes."""
    raw = _read_object(payload)
    kind, ids = raw.get("insight"), raw.get("ids")
    if not isinstance(kind, str) or kind not in (*INSIGHTS, COMPARABLE):
        raise TraceError(f"a request's insight is one of {', '.join((*INSIGHTS, COMPARABLE))}")
    least, most = (1, 1 + MAX_OWN_RUNS) if kind == COMPARABLE else INSIGHTS[kind][:2]
    if not isinstance(ids, list) or not least <= len(ids) <= most:
        count = str(least) if least == most else f"{least} to {most}"
        raise TraceError(f"a request's ids is a list; {kind} is about {count} of them")
    return InsightRequest(kind, [_trace_id(trace_id) for trace_id in ids], _number(raw.get("step", 0), "step"))


def _read_object(payload: object) -> dict[str, Any]:
    if not isinstance(payload, str) or len(payload) > MAX_PAYLOAD_CHARS:
        raise TraceError(f"a request is JSON text of at most {MAX_PAYLOAD_CHARS} characters")
    try:
        raw = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise TraceError("a request is JSON text") from error
    if not isinstance(raw, dict):
        raise TraceError("a request is a JSON object")
    return raw


def _trace_id(raw: object) -> str:
    if not isinstance(raw, str) or not 0 < len(raw) <= MAX_ID_CHARS:
        raise TraceError("a request needs the id of a trace")
    return raw


def _number(raw: object, name: str) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int) or raw < 0:
        raise TraceError(f"a request's {name} is a whole number, 0 or more")
    return raw


def _whole_view(trace: Trace, name: str) -> str:
    return _json(view_payload(trace, trace_id=name))


def _json(view: dict[str, Any]) -> str:
    return json.dumps(view, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _error(error: ExplorerError) -> str:
    return json.dumps({"error": str(error)}, ensure_ascii=False)
