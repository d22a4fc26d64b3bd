"""What happens when a visitor does something: plain functions from values to updates, testable without a browser.

Nothing is shared between visitors but the runner and the store, and a run's id goes back to its own browser only.
Each function takes the app's Context first; the page binds it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import gradio as gr

from explorer.errors import ExplorerError, LimitError, TraceError
from explorer.insight import visible
from explorer.runner_events import BaselineProgress, Event, Finished, Notice, Started, Stepped
from explorer.trace import Trace
from explorer.ui.context import Choices, Context
from explorer.ui.controls import MethodForm, offered_methods, offered_presets, preset_value
from explorer.ui.picker import own_choice
from explorer.ui.screen import KEEP, Screen, busy, figure_update, idle
from explorer.ui.status import FirstWords, status
from explorer.ui.viewer_component import handle, read_handle
from explorer.views.charts import summary_figure

UNEXPECTED = "Something went wrong that should not have: the server's log says what. The app goes on; try again."
MAX_PROMPT, MAX_OUTPUT = 400, 1500  # characters of a prompt and of plain decoding's text, shown before the first step
SHOW_SECONDS = 0.2  # a browser on the same machine takes time from the decoding that it draws
WAITING = "Waiting for the device …"
QUEUE_FULL = "The queue is full: too many runs wait here already. Try again in a minute."
STOPPED = "stopped"  # what the page's script says of a run that its visitor stopped (explorer.ui.pages.explore)
LOG = logging.getLogger(__name__)


@dataclass
class Live:
    """One run on its way: its id once decoding begins, and what the runner had to say about the settings.

    error: why it ended early, in words; empty until then.
    """

    choices: Choices
    run_id: str = ""
    error: str = ""
    num_tokens: int = 1
    notices: list[str] = field(default_factory=list)
    shown: float = 0.0  # when the last step went to the browser, monotonic seconds
    plain_text: str = ""  # what the baseline has written

    def first_words(self) -> FirstWords:
        """What there is to see of the run before its first step."""
        prompt, text = self.choices.prompt, self.plain_text
        prompt = prompt if len(prompt) <= MAX_PROMPT else f"{prompt[:MAX_PROMPT]} …"
        return FirstWords(_lines(prompt), _lines(text if len(text) <= MAX_OUTPUT else f"… {text[-MAX_OUTPUT:]}"))

    def is_due(self, event: Event) -> bool:
        """Whether the browser hears of an event now; steps that follow too fast are shown together."""
        now = time.monotonic()
        if isinstance(event, Stepped) and now - self.shown < SHOW_SECONDS:
            return False
        self.shown = now
        return True


def announce_run(_context: Context) -> Screen:
    """At once, before the device is free: the buttons change and the visitor sees that the click was heard."""
    return busy(WAITING, is_starting=True)


def announce_stop(_context: Context) -> Screen:
    """At once: a step, or a model that is being loaded, is finished first."""
    return Screen(status=status("busy", "Stopping …"))


def run_trace(context: Context, *values: Any) -> Iterator[Screen]:
    """Run what the form asks for, one update per event; ends with a message in every case."""
    try:
        live = Live(context.choices(values))
    except ExplorerError as error:
        yield idle("error", str(error))
        return
    yield from play(context, live)


def play(context: Context, live: Live) -> Generator[Screen, None, None]:
    """One run: an update per event, and at its end what became of it, also in ``live``. Raises nothing."""
    try:
        with closing(context.runner.run(live.choices.request())) as events:
            for event in events:
                screen = _show(context, live, event)
                if live.is_due(event):
                    yield screen
                if isinstance(event, Finished):
                    yield Screen(plot=figure_update(summary_figure(event.trace)))
    except ExplorerError as error:
        yield _failed(context, live, str(error), "cancelled" if isinstance(error, LimitError) else "error")
    except Exception:  # the page's last boundary: the log gets the bug, the visitor a page that goes on
        LOG.exception("a run of %s failed", live.choices.method.name)
        yield _failed(context, live, UNEXPECTED)
    finally:  # also when Stop or a closed tab ends this generator: the runner's own is closed by now
        context.store.cancel(live.run_id)


def run_for_visitor(
    context: Context, request: gr.Request, handler: Callable[..., Iterator[Screen]], *values: Any
) -> Iterator[Screen]:
    """``handler`` for one visitor, who may have a few runs waiting or running, so that the line is everybody's."""
    try:
        with context.visitors.admit(request.session_hash):
            yield from handler(context, *values)
    except LimitError as error:
        yield idle("error", str(error))


def after_stop(context: Context, viewer: Any, how: Any) -> Screen:
    """The run was cancelled and its generator is closed: show the record where it stands and say so.

    how: STOPPED, or anything else where nobody stopped it: then Gradio's queue did not take it.
    """
    if how != STOPPED:
        return idle("error", QUEUE_FULL)
    run_id = read_handle(viewer)
    context.store.cancel(run_id)
    if not _is_cancelled(context, run_id):  # what is on screen is older than the run that was stopped
        return idle("idle", "Stopped before the first step. On screen is what was there before.")
    num_steps = _num_steps(context, run_id)
    return idle("idle", f"Stopped after {num_steps} steps.")._replace(viewer=handle(run_id, num_steps, num_steps + 1))


def apply_method(context: Context, target: Any, method: Any) -> list[Any]:
    """After another method was chosen: its drafters, and its own controls in place of the others'.

    Nothing happens for a method that the target does not offer: a browser may still tell the one before a change.
    """
    try:
        context.offered(context.options.target(target), method)
    except ExplorerError:
        return [KEEP] * (1 + len(_groups(context)))
    shown = [gr.update(visible=form.name == method) for form in _groups(context)]
    return [_drafter_update(context, target, method), *shown]


def apply_target(context: Context, target: Any, method: Any) -> list[Any]:
    """After another target was chosen: its methods and presets, its values in the generated controls, and what
    apply_method does for the method that is picked then.
    """
    try:
        preset = context.options.target(target)
    except ExplorerError:
        return [KEEP] * (3 + len(_groups(context)) + len(context.fields))
    methods, presets = offered_methods(context.forms, preset), offered_presets(preset)
    names = [name for _, name in methods]
    chosen = preset.default_preset.get(context.options.device_type, presets[-1][1])
    method = method if method in names else names[-1]
    return [
        gr.update(choices=methods, value=method),
        gr.update(choices=presets, value=chosen),
        *apply_method(context, target, method),
        *apply_preset(context, target, chosen),
    ]


def apply_preset(context: Context, target: Any, preset: Any) -> list[Any]:
    """The generated controls' values under a preset."""
    try:
        chosen, device_type = context.options.target(target), context.options.device_type
        return [gr.update(value=preset_value(chosen, str(preset), item, device_type)) for item in context.fields]
    except ExplorerError:
        return [KEEP] * len(context.fields)


def _groups(context: Context) -> list[MethodForm]:
    """The methods that have a group of controls, in the order of the form."""
    return [form for form in context.forms if form.settings]


def _drafter_update(context: Context, target: Any, method: Any) -> Any:
    """The drafters that the method may use on the target, the target's own picked."""
    drafters = context.options.drafters(context.options.target(target), method)
    choices = [(each.label, each.name) for each in drafters]
    return gr.update(choices=choices, value=drafters[0].name if drafters else None, visible=bool(drafters))


def _show(context: Context, live: Live, event: Event) -> Screen:
    if isinstance(event, Stepped):
        num_steps = context.store.append(live.run_id, event)
        live.num_tokens += len(event.step.emitted)
        limit = live.choices.max_new_tokens
        text = f"Decoding with {live.choices.method.label}: {live.num_tokens} of at most {limit} tokens."
        return Screen(handle(live.run_id, num_steps, num_steps), status("busy", text, live.num_tokens / limit))
    if isinstance(event, Started):
        live.run_id = context.store.open(event.trace, request=live.choices.request())
        screen = busy(f"Decoding with {live.choices.method.label} …")
        picker = own_choice(context, live.run_id, event.trace, interactive=False)
        return screen._replace(viewer=handle(live.run_id), picker=picker)
    if isinstance(event, Finished):
        return _finish(context, live, event.trace)
    if isinstance(event, BaselineProgress):
        live.plain_text = event.text
        text = f"First plain decoding, to compare with: {event.num_tokens} of at most {event.max_new_tokens} tokens."
        return busy(text, event.num_tokens / event.max_new_tokens, is_starting=True, run=live.first_words())
    if isinstance(event, Notice):
        live.notices.append(event.text)
        return Screen()
    text = f"{event.text[:1].upper()}{event.text[1:]} …"
    return busy(text, event.fraction, is_starting=True, run=live.first_words())


def _lines(text: str) -> str:
    """A text of unknown make, its lines kept, nothing invisible in it."""
    return "\n".join(map(visible, text.splitlines()))


def _finish(context: Context, live: Live, trace: Trace) -> Screen:
    if live.run_id:
        context.store.finish(live.run_id, trace)
    else:
        live.run_id = context.store.open(trace, is_done=True, request=live.choices.request())
    notes = [f"Note: {notice}." for notice in live.notices]
    text = " ".join([f"Done: {live.choices.method.label} on {trace.target.name}.", *notes])
    return idle("done", text)._replace(viewer=_next_version(context, live))


def _failed(context: Context, live: Live, text: str, stop: str = "error") -> Screen:
    live.error = text
    context.store.cancel(live.run_id, stop)
    return idle("error", text)._replace(viewer=_next_version(context, live))


def _next_version(context: Context, live: Live) -> Any:
    if not live.run_id:
        return KEEP
    num_steps = _num_steps(context, live.run_id)
    return handle(live.run_id, num_steps, num_steps + 1)


def _num_steps(context: Context, run_id: str) -> int:
    try:
        return len(context.store.get(run_id)[0].steps)
    except TraceError:
        return 0


def _is_cancelled(context: Context, run_id: str) -> bool:
    try:
        return context.store.get(run_id)[0].stop == "cancelled"
    except TraceError:
        return False
