"""Diagnosing on the page: the recorded runs at once, then a visitor's own prompts, each a run like any other.

Plain functions like those of explorer.ui.handlers. Runs take their turns one by one, so that others come in between;
each is kept under an id of its own, which goes to its own browser only. What has ended is diagnosed while others run.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple

import gradio as gr

from explorer.config import METHOD_NAMES
from explorer.diagnose import PLAIN, Diagnosis, Subject, diagnose
from explorer.errors import ExplorerError, PromptError, SettingError, TraceError
from explorer.insight import plural
from explorer.ui import handlers
from explorer.ui.context import Choices, Context, on_one_target
from explorer.ui.controls import COMMON, offered_methods
from explorer.ui.handlers import Live, play
from explorer.ui.payloads import read_id, read_number
from explorer.ui.screen import KEEP, figure_update
from explorer.ui.status import status
from explorer.views.diagnosis import diagnosis_view, miss_figure, reliability_figure

MAX_RUNS = 16  # of one diagnosis: prompts times methods
MAX_QUOTE = 60  # characters of a prompt in the status line
RECORDED = "The recorded runs"
READING = "Reading the recorded runs …"
NOTHING = "No recorded runs are here yet: diagnose prompts of your own."
HINT = "A click on a row opens that run at the step it speaks of."
STOPPED = "Stopped. The heading below says which runs are diagnosed."


class DiagnoseScreen(NamedTuple):
    """Updates of the page's outputs, in the order in which it lists them."""

    status: Any = KEEP
    report: Any = KEEP
    misses: Any = KEEP
    reliability: Any = KEEP
    run_button: Any = KEEP
    stop_button: Any = KEEP
    opened: Any = KEEP
    viewer: Any = KEEP


@dataclass(frozen=True)
class Read:
    """Runs that are diagnosed: their ids, what diagnose takes, and what they are, in a few words."""

    ids: list[str]
    subjects: list[Subject]
    about: str


class RecordedDiagnosis:
    """The diagnosis of the recorded runs, made for the first visitor who asks and kept for the others."""

    def __init__(self, context: Context) -> None:
        self._library = context.store.library
        self._lock = threading.Lock()
        self._whole: DiagnoseScreen | None = None

    def first(self) -> DiagnoseScreen:
        """At once: that of all if it is there, else that of the first recording, which is quickly read."""
        if self._whole is None and len(self._library) > 1:
            return self._make(1)._replace(status=status("busy", READING))
        return self.whole()

    def whole(self) -> DiagnoseScreen:
        """That of all; a broken file is left out and told."""
        with self._lock:
            if self._whole is None:
                self._whole = self._make(len(self._library))
            return self._whole

    def rest(self, line: Any) -> DiagnoseScreen:
        """That of all, for a page whose status line says that it is being read; nothing for any other."""
        return self.whole() if line == status("busy", READING) else DiagnoseScreen()

    def _make(self, count: int) -> DiagnoseScreen:
        read, failures = Read([], [], ""), list[str]()
        for recording in list(self._library)[:count]:
            try:
                trace = self._library.trace(recording.name)
            except TraceError as error:
                failures.append(f"{recording.title or recording.name} cannot be read: {error}.")
                continue
            if trace.method != PLAIN:
                read.ids.append(recording.name)
                read.subjects.append(Subject(trace, recording.title or recording.name))
        if not read.ids:
            return DiagnoseScreen(status("idle", " ".join([NOTHING, *failures])))
        text = " ".join([HINT, *failures])
        about = f"{RECORDED}: {plural(len(read.ids), 'run')}"
        return shown(Read(read.ids, read.subjects, about))._replace(status=status("idle", text))


def max_runs(context: Context) -> int:
    """Prompts times methods of one diagnosis: all of them must find room among the runs that the server keeps."""
    return max(1, min(MAX_RUNS, context.options.max_kept_runs // 2))


def drafting_methods(context: Context, target: Any) -> list[tuple[str, str]]:
    """(label, name) of the methods that can be diagnosed on a target; raises SettingError for an unknown one."""
    offered = offered_methods(context.forms, context.options.target(target))
    return [(label, name) for label, name in offered if name != PLAIN]


def offer_methods(context: Context, target: Any, ticked: Any) -> Any:
    """After another target was chosen: what can be diagnosed there, ticks kept where they still can."""
    try:
        methods = drafting_methods(context, target)
    except ExplorerError:
        return KEEP
    names = [name for _, name in methods]
    kept = [name for name in ticked if name in names] if isinstance(ticked, list) else []
    return gr.update(choices=methods, value=kept or names[-1:])


def announce(_context: Context) -> DiagnoseScreen:
    """At once, before the device is free."""
    return _busy(handlers.WAITING)


def announce_stop(_context: Context) -> DiagnoseScreen:
    """At once: a step, or a model that is being loaded, is finished first."""
    return DiagnoseScreen(status("busy", "Stopping …"))


def after_stop(_context: Context, _viewer: Any, how: Any) -> DiagnoseScreen:
    """The generator is closed and the device is free, or the queue took no run: what was shown stays."""
    return idle("idle", STOPPED) if how == handlers.STOPPED else idle("error", handlers.QUEUE_FULL)


def run_diagnosis(context: Context, prompts: Any, methods: Any, target: Any, count: Any) -> Iterator[DiagnoseScreen]:
    """Run every prompt with every method; the diagnosis grows with each run that ends. Ends with a message always."""
    try:
        asked = read_asked(context, prompts, methods, target, count)
    except ExplorerError as error:
        yield idle("error", str(error))
        return
    ids, subjects, failures = list[str](), list[Subject](), list[str]()
    for number, choices in enumerate(asked):
        live = Live(choices)
        with closing(play(context, live)) as screens:
            for screen in screens:
                if isinstance(screen.status, str):
                    yield _progress(json.loads(screen.status), number, len(asked), choices)
        if live.error:
            failures.append(f"“{_quoted(choices.prompt)}” with {choices.method.label}: {live.error}")
            continue
        try:
            trace, _ = context.store.get(live.run_id)
        except TraceError as error:  # a busy server keeps few runs
            failures.append(str(error))
            continue
        ids.append(live.run_id)
        subjects.append(Subject(trace))
        about = f"Your prompts: {len(ids)} of {plural(len(asked), 'run')}"
        yield shown(Read(ids, subjects, about))
    told = list(dict.fromkeys(failures))
    text = f"Diagnosed {plural(len(ids), 'run')}. {HINT}" if ids else ""
    yield idle("error" if told else "done", " ".join(filter(None, [text, *told])))


def read_asked(context: Context, prompts: Any, methods: Any, target: Any, count: Any) -> list[Choices]:
    """One run's choices for each prompt and method, checked as the first page's are, and no more than fit.

    Raises SettingError or PromptError: a browser may send anything.
    """
    names = [name for name in METHOD_NAMES if isinstance(methods, list) and name in methods]
    allowed = [name for _, name in drafting_methods(context, target)]
    if not names or set(names) - set(allowed):
        raise SettingError(f"Tick one or several methods of: {', '.join(allowed)}.")
    limit = max_runs(context)
    if not isinstance(prompts, str) or len(prompts) > limit * (context.options.max_prompt_chars + 1):
        raise PromptError("The prompts must be text, one prompt a line, within this server's limits.")
    lines = list(dict.fromkeys(line.strip() for line in prompts.splitlines() if line.strip()))
    if not lines:
        raise PromptError("There is no prompt: write one or several, one a line.")
    if len(lines) * len(names) > limit:
        raise SettingError(
            f"{plural(len(lines), 'prompt')} with {plural(len(names), 'method')} are {len(lines) * len(names)} runs; "
            f"this server diagnoses at most {limit} at once: take fewer prompts or methods."
        )
    form: dict[str, object] = dict.fromkeys(COMMON) | {"target": target, "max_new_tokens": count}
    asked = [context.checked(form | {"prompt": line, "method": name}, {}, {}) for line in lines for name in names]
    return on_one_target(asked)


def open_row(context: Context, run: Any, step: Any) -> DiagnoseScreen:
    """Show a run of the ranking at a step, for the browser that knows its id; the same row may be opened again."""
    try:
        trace_id, at = read_id(run), read_number(step, "step")
        trace, _ = context.store.get(trace_id)
    except TraceError as error:
        return DiagnoseScreen(status("error", str(error)))
    value = {"id": trace_id, "step": at, "visit": secrets.token_hex(4)}
    if trace_id in context.store.library:
        value["recorded"] = True
    else:
        value |= {"steps": len(trace.steps), "v": len(trace.steps) + 1}
    return DiagnoseScreen(opened=gr.update(visible=True), viewer=json.dumps(value))


def shown(read: Read) -> DiagnoseScreen:
    """The diagnosis of these runs: report and charts."""
    found: Diagnosis = diagnose(read.subjects)
    report = json.dumps(diagnosis_view(found, read.ids, read.about), ensure_ascii=False, allow_nan=False)
    reliability = reliability_figure(found)
    return DiagnoseScreen(
        report=report,
        misses=figure_update(miss_figure(found)),
        reliability=gr.update(visible=False) if reliability is None else figure_update(reliability),
    )


def _progress(said: dict[str, Any], number: int, count: int, choices: Choices) -> DiagnoseScreen:
    """A run's own words as part of the diagnosis; its end is not the end, and its plain decoding no part of the bar."""
    part = {"starting": 0.0, "busy": said.get("fraction") or 0.0}.get(said["kind"], 1.0)
    fraction = (number + part) / count
    return _busy(f"Run {number + 1} of {count}, “{_quoted(choices.prompt)}”: {said['text']}", fraction)


def _quoted(prompt: str) -> str:
    return prompt if len(prompt) <= MAX_QUOTE else f"{prompt[: MAX_QUOTE - 2]} …"


def _busy(text: str, fraction: float | None = None) -> DiagnoseScreen:
    return DiagnoseScreen(
        status("busy", text, fraction),
        run_button=gr.update(interactive=False),
        stop_button=gr.update(interactive=True),
    )


def idle(kind: str, text: str) -> DiagnoseScreen:
    """Nothing runs for this visitor; the status line says how it ended."""
    return DiagnoseScreen(
        status(kind, text),
        run_button=gr.update(interactive=True),
        stop_button=gr.update(interactive=False),
    )
