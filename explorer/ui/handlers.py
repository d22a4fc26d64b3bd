"""What happens when a visitor does something: plain functions from values to updates, testable without a browser.

Nothing is shared between visitors but the runner and the store, and a run's id goes back to its own browser only.
Each function takes the app's Context first; the page binds it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import gradio as gr

from explorer.errors import ExplorerError, TraceError
from explorer.runner_events import BaselineProgress, Event, Finished, Notice, RunRequest, Started, Stepped
from explorer.trace import Trace, from_json
from explorer.trace_files import read_bytes, unpack
from explorer.ui.context import Choices, Context
from explorer.ui.controls import offered_methods, offered_presets, preset_value
from explorer.ui.status import status
from explorer.ui.store import Recording
from explorer.ui.viewer_component import handle, read_handle, recorded_handle
from explorer.views.charts import summary_figure

UNEXPECTED = "Something went wrong that should not have: the server's log says what. The app goes on; try again."
SHOW_SECONDS = 0.1  # a browser on the same machine takes time from the decoding that it draws
MAX_QUOTE = 80
WAITING = "Waiting for the device …"
KEEP = gr.skip()
LOG = logging.getLogger(__name__)


class Screen(NamedTuple):
    """Updates of the page's outputs, in the order in which the page lists them."""

    viewer: Any = KEEP
    status: Any = KEEP
    run_button: Any = KEEP
    stop_button: Any = KEEP
    plot: Any = KEEP
    picker: Any = KEEP


@dataclass
class _Live:
    """One run on its way: its id once decoding begins, and what the runner had to say about the settings."""

    choices: Choices
    run_id: str = ""
    num_tokens: int = 1
    notices: list[str] = field(default_factory=list)
    shown: float = 0.0  # when the last step went to the browser, monotonic seconds

    def is_due(self, event: Event) -> bool:
        """Whether the browser hears of an event now; steps that follow too fast are shown together."""
        now = time.monotonic()
        if isinstance(event, Stepped) and now - self.shown < SHOW_SECONDS:
            return False
        self.shown = now
        return True


def announce_run(_context: Context) -> Screen:
    """At once, before the device is free: the buttons change and the visitor sees that the click was heard."""
    return _busy(WAITING)


def run_trace(context: Context, *values: Any) -> Iterator[Screen]:
    """Run what the form asks for, one update per event; ends with a message in every case."""
    try:
        live = _Live(context.choices(values))
    except ExplorerError as error:
        yield _idle("error", str(error))
        return
    try:
        with closing(_events(context, live.choices)) as events:
            for event in events:
                screen = _show(context, live, event)
                if live.is_due(event):
                    yield screen
                if isinstance(event, Finished):
                    yield Screen(plot=_shown(summary_figure(event.trace)))
    except ExplorerError as error:
        context.store.cancel(live.run_id, "error")
        yield _idle("error", str(error))._replace(viewer=_next_version(context, live))
    except Exception:  # the page's last boundary: the log gets the bug, the visitor a page that goes on
        LOG.exception("a run of %s failed", live.choices.method.name)
        context.store.cancel(live.run_id, "error")
        yield _idle("error", UNEXPECTED)._replace(viewer=_next_version(context, live))
    finally:  # also when Stop or a closed tab ends this generator: the runner's own is closed by now
        context.store.cancel(live.run_id)


def after_stop(context: Context, viewer: Any) -> Screen:
    """The run was cancelled and its generator is closed: show the record where it stands and say so."""
    run_id = read_handle(viewer)
    if not run_id or run_id in context.store.library:
        return _idle("idle", "Stopped before the first step.")
    context.store.cancel(run_id)
    num_steps = _num_steps(context, run_id)
    return _idle("idle", f"Stopped after {num_steps} steps.")._replace(viewer=handle(run_id, num_steps, num_steps + 1))


def open_recording(context: Context, name: Any) -> Screen:
    """Show a recorded trace that the visitor picked."""
    return _recording_screen(context, name)


def open_from_query(context: Context, request: gr.Request) -> Screen:
    """Restore ``?trace=NAME&step=N`` when the page opens; without one the recording on screen stays."""
    query = request.query_params
    name = query.get("trace")
    if not name:
        return Screen()
    step = query.get("step", "")
    return _recording_screen(context, name, int(step) if step.isdecimal() and len(step) < 7 else 0)


def summarise(context: Context, viewer: Any) -> Any:
    """The summary figure of the trace on screen; an event of its own, because the viewer need not wait for plotly."""
    trace_id = read_handle(viewer)
    try:
        if trace_id in context.store.library:
            return _shown(context.store.library.once(trace_id, _recorded_figure))
        return _shown(summary_figure(context.store.get(trace_id)[0]))
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
        return _idle("error", f"This file cannot be shown: {error}")
    run_id = context.store.open(trace, is_done=True)
    text = f"Your file: {trace.method} on {trace.target.name}, recorded on {trace.target.device_name}."
    return Screen(handle(run_id, len(trace.steps)), status("done", text), picker=None)


def method_visibility(context: Context, method: Any) -> list[Any]:
    """Show the chosen method's own controls and hide the others."""
    return [gr.update(visible=form.name == method) for form in context.forms if form.settings]


def apply_target(context: Context, target: Any, method: Any) -> list[Any]:
    """After another target was chosen: its methods, its presets, and its values in the generated controls."""
    try:
        preset = context.options.target(target)
    except ExplorerError:
        return [KEEP] * (2 + len(context.fields))
    methods, presets = offered_methods(context.forms, preset), offered_presets(preset)
    names = [name for _, name in methods]
    chosen = preset.default_preset.get(context.options.device_type, presets[-1][1])
    return [
        gr.update(choices=methods, value=method if method in names else names[-1]),
        gr.update(choices=presets, value=chosen),
        *apply_preset(context, target, chosen),
    ]


def apply_preset(context: Context, target: Any, preset: Any) -> list[Any]:
    """The generated controls' values under a preset."""
    try:
        chosen, device_type = context.options.target(target), context.options.device_type
        return [gr.update(value=preset_value(chosen, str(preset), item, device_type)) for item in context.fields]
    except ExplorerError:
        return [KEEP] * len(context.fields)


def recording_text(context: Context, recording: Recording) -> str:
    """Where a recorded trace comes from, in one sentence."""
    label = next((form.label for form in context.forms if form.name == recording.method), recording.method)
    prompt = recording.prompt if len(recording.prompt) <= MAX_QUOTE else f"{recording.prompt[:MAX_QUOTE]} …"
    return f"Recorded run: “{prompt}” {label} on {recording.target}, {recording.device}, {recording.date}."


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


def _events(context: Context, choices: Choices) -> Generator[Event, None, None]:
    return context.runner.run(
        RunRequest(
            method=choices.method.name,
            prompt=choices.prompt,
            system=choices.system,
            max_new_tokens=choices.max_new_tokens,
            settings=choices.settings,
            target=choices.target.source,
            drafter=choices.target.drafters.get(choices.method.name),
        )
    )


def _show(context: Context, live: _Live, event: Event) -> Screen:
    if isinstance(event, Stepped):
        num_steps = context.store.append(live.run_id, event)
        live.num_tokens += len(event.step.emitted)
        limit = live.choices.max_new_tokens
        text = f"Decoding with {live.choices.method.label}: {live.num_tokens} of at most {limit} tokens."
        return Screen(handle(live.run_id, num_steps, num_steps), status("busy", text, live.num_tokens / limit))
    if isinstance(event, Started):
        live.run_id = context.store.open(event.trace)
        screen = _busy(f"Decoding with {live.choices.method.label} …")
        return screen._replace(viewer=handle(live.run_id), picker=gr.update(value=None, interactive=False))
    if isinstance(event, Finished):
        return _finish(context, live, event.trace)
    if isinstance(event, BaselineProgress):
        text = f"Measuring plain decoding first: {event.num_tokens} of at most {event.max_new_tokens} tokens."
        return _busy(text, event.num_tokens / event.max_new_tokens)
    if isinstance(event, Notice):
        live.notices.append(event.text)
        return Screen()
    return _busy(f"{event.text[:1].upper()}{event.text[1:]} …", event.fraction)


def _finish(context: Context, live: _Live, trace: Trace) -> Screen:
    if live.run_id:
        context.store.finish(live.run_id, trace)
    else:
        live.run_id = context.store.open(trace, is_done=True)
    notes = [f"Note: {notice}." for notice in live.notices]
    text = " ".join([f"Done: {live.choices.method.label} on {trace.target.name}.", *notes])
    return _idle("done", text)._replace(viewer=_next_version(context, live))


def _next_version(context: Context, live: _Live) -> Any:
    if not live.run_id:
        return KEEP
    num_steps = _num_steps(context, live.run_id)
    return handle(live.run_id, num_steps, num_steps + 1)


def _num_steps(context: Context, run_id: str) -> int:
    try:
        return len(context.store.get(run_id)[0].steps)
    except TraceError:
        return 0


def _recorded_figure(trace: Trace, _name: str) -> Any:
    return summary_figure(trace)


def _busy(text: str, fraction: float | None = None) -> Screen:
    return Screen(
        status=status("busy", text, fraction),
        run_button=gr.update(interactive=False),
        stop_button=gr.update(interactive=True),
        picker=gr.update(interactive=False),
    )


def _idle(kind: str, text: str) -> Screen:
    return Screen(
        status=status(kind, text),
        run_button=gr.update(interactive=True),
        stop_button=gr.update(interactive=False),
        picker=gr.update(interactive=True),
    )


def _shown(figure: Any) -> dict[str, Any]:
    """A fresh update each time: Gradio takes it apart."""
    return gr.update(value=figure, visible=True)
