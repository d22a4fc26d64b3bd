"""Traces that come without a run: recorded ones by name or address, files that a visitor brings; and their figure.

Plain functions like those of explorer.ui.handlers: the app's Context first, then what the page sends.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr

from explorer.errors import TraceError
from explorer.insight import visible
from explorer.trace import Trace, from_json
from explorer.trace_files import read_bytes, unpack
from explorer.ui.context import Context
from explorer.ui.picker import YOUR_FILE, method_label, own_choice
from explorer.ui.screen import KEEP, Screen, figure_update, idle
from explorer.ui.status import status
from explorer.ui.store import Recording
from explorer.ui.viewer_component import handle, read_handle, recorded_handle
from explorer.views.charts import summary_figure

MAX_QUOTE = 80  # characters of a recorded prompt in the status line
MAX_SENTENCE = 300  # characters of a message that may quote a file


def open_recording(context: Context, name: Any) -> Screen:
    """Show a recorded trace that the visitor picked, or the own run that stands below them in the list."""
    if not isinstance(name, str) or name in context.store.library:
        return _recording_screen(context, name)
    try:
        trace, _ = context.store.get(name)
    except TraceError:
        return _recording_screen(context, name)
    text = f"Your run: {method_label(context, trace.method)} on {trace.target.name}, {trace.target.device_name}."
    return Screen(handle(name, len(trace.steps), len(trace.steps) + 1), status("done", shortened(text)))


def open_from_query(context: Context, request: gr.Request) -> Screen:
    """Restore ``?trace=NAME&step=N`` when the page opens; without one the recording on screen stays.

    Steps count from 1. ``?lesson=N&stop=M`` is the viewer's own: it shows the lesson's recordings without changing the
    page's.
    """
    query = request.query_params
    name = query.get("trace")
    if not name:
        return Screen()
    return _recording_screen(context, name, step_index(query.get("step", "")))


def summarise(context: Context, viewer: Any) -> Any:
    """The summary figure of the trace on screen; an event of its own, because the viewer need not wait for plotly."""
    trace_id = read_handle(viewer)
    try:
        if trace_id in context.store.library:
            return figure_update(context.store.library.once(trace_id, _recorded_figure))
        return figure_update(summary_figure(context.store.get(trace_id)[0]))
    except TraceError:
        return KEEP


def summary_from_query(context: Context, request: gr.Request) -> Any:
    """The summary figure of the recording that the page opened with."""
    library = context.store.library
    name = request.query_params.get("trace")
    first = next((item.name for item in library), "")
    return summarise(context, recorded_handle(name if name in library else first))


def open_upload(context: Context, path: Any) -> Screen:
    """Show a trace file that the visitor brought."""
    if not isinstance(path, str):
        return Screen()
    try:
        trace = from_json(unpack(read_bytes(Path(path)), context.options.max_upload_unpacked_mb * 2**20))
    except TraceError as error:
        return idle("error", f"This file cannot be shown: {shortened(str(error))}")
    run_id = context.store.open(trace, is_done=True)
    label, target = method_label(context, trace.method), trace.target
    text = f"Your file: {label} on {target.name}, recorded on {target.device_name}."
    picker = own_choice(context, run_id, trace, YOUR_FILE)
    return Screen(handle(run_id, len(trace.steps)), status("done", shortened(text)), picker=picker)


def shortened(sentence: str) -> str:
    """A message that may quote what somebody sent: nothing invisible in it, and not endless."""
    return visible(sentence if len(sentence) <= MAX_SENTENCE else f"{sentence[: MAX_SENTENCE - 2]} …")


def recording_text(context: Context, recording: Recording) -> str:
    """Where a recorded trace comes from, in one sentence."""
    label = method_label(context, recording.method)
    prompt = recording.prompt if len(recording.prompt) <= MAX_QUOTE else f"{recording.prompt[:MAX_QUOTE]} …"
    device = recording.device.replace("(R)", "").replace("(TM)", "")  # so that the sentence fits a line
    return f"Recorded run: “{prompt}” {label} on {recording.target}, {device}, {recording.date}."


def step_index(number: str) -> int:
    """Index of the step that an address names by its number, counted from 1; the first where it names none."""
    return max(int(number) - 1, 0) if number.isdecimal() and len(number) < 7 else 0


def _recording_screen(context: Context, name: Any, step: int = 0) -> Screen:
    library = context.store.library
    if name not in library:
        return Screen(status=status("error", f"There is no recorded trace {str(name)[:80]!r}; pick one from the list."))
    try:
        library.trace(name)
    except TraceError as error:
        return Screen(status=status("error", f"This recorded trace cannot be shown: {error}"))
    text = recording_text(context, library[name])
    return Screen(
        recorded_handle(name, step),
        status("idle", text),
        picker=gr.update(value=name),
    )


def _recorded_figure(trace: Trace, _name: str) -> Any:
    return summary_figure(trace)
