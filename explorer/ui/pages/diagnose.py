"""The page that diagnoses: the recorded runs' ranking is there at once, a visitor's own prompts take its place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gradio as gr

from explorer.errors import LimitError
from explorer.ui import diagnosing
from explorer.ui.context import MAX_IN_LINE, RUNS, Context, bind
from explorer.ui.diagnosing import DiagnoseScreen, RecordedDiagnosis
from explorer.ui.diagnosis_report import diagnosis_report
from explorer.ui.opening import step_index
from explorer.ui.pages.explore import BEGIN_JS, FIRST_PAGE, HOW_ENDED_JS, PRIVATE, STOP_JS
from explorer.ui.status import status, status_line
from explorer.ui.viewer_component import trace_viewer

NAME, PATH = "Diagnose", "diagnose"
INTRO = "Why is acceptance low on these prompts, and what would raise it?"
HELP = (
    "Each prompt is decoded greedily with each ticked method, by the target's own drafters and default trees, plain "
    "decoding first. The verdict needs some prompts: fifty passes or more."
)
PLACEHOLDER = "Write a Python function that reverses a list.\nWhat is the capital of France?"
FIRST_COUNT = 48
FIRST_METHODS = ("eagle2",)
TO_VIEWER_JS = "() => { document.querySelector('#opened').scrollIntoView({block: 'start'}); }"
CLOSE_JS = "() => { window.history.replaceState(null, '', window.location.pathname); return []; }"


@dataclass(frozen=True)
class DiagnoseForm:
    """The form's components; ``values`` are those that a diagnosis is asked with."""

    values: list[Any]
    run: gr.Button
    stop: gr.Button


def add_diagnose_page(demo: gr.Blocks, context: Context) -> None:
    """A page of its own in the app; call outside its Blocks context."""
    with demo.route(NAME, f"/{PATH}"):
        gr.Navbar(main_page_name=FIRST_PAGE)
        build_diagnose_page(context)


def build_diagnose_page(context: Context) -> None:
    """Lay the page out and wire it; call inside the Blocks context of its own route."""
    with gr.Row(elem_id="top"):
        gr.HTML(f"<h1>{NAME}</h1><p>{INTRO}</p>", elem_id="title")
    with gr.Row(elem_id="page"):
        with gr.Column(elem_id="form"):
            form = _form(context)
        with gr.Column(elem_id="main"):
            line = status_line(status("busy", diagnosing.READING), elem_id="status")
            with gr.Column(visible=False, elem_id="opened") as opened:
                close = gr.Button("Close this run", size="sm", min_width=80, elem_id="close-run")
                viewer = trace_viewer(context, page=PATH, elem_id="viewer")
            report = diagnosis_report(elem_id="report")
            misses = gr.Plot(visible=False, show_label=False, elem_id="miss-plot")
            reliability = gr.Plot(visible=False, show_label=False, elem_id="reliability-plot")
    screen = [line, report, misses, reliability, form.run, form.stop, opened, viewer]
    _wire_run(context, form, screen)
    _wire_rows(context, report, close, screen)
    _wire_load(context, screen)


def _form(context: Context) -> DiagnoseForm:
    target = context.options.targets[0]
    methods = diagnosing.drafting_methods(context, target.name)
    names = [name for _, name in methods]
    limit = diagnosing.max_runs(context)
    prompts = gr.Textbox(
        label="Prompts, one a line",
        info=f"Prompts times methods: at most {limit} runs.",
        lines=7,
        max_lines=14,
        placeholder=PLACEHOLDER,
        elem_id="prompts",
    )
    first = [name for name in FIRST_METHODS if name in names] or names[-1:]
    ticked = gr.CheckboxGroup(methods, value=first, label="Methods", elem_id="methods")
    most = context.options.max_new_tokens
    count = gr.Slider(1, most, value=min(FIRST_COUNT, most), step=1, label="Max new tokens", elem_id="max-new-tokens")
    labels = [(item.label, item.name) for item in context.options.targets]
    picked = gr.Dropdown(labels, value=target.name, label="Target", visible=len(labels) > 1, elem_id="target")
    with gr.Row(elem_id="actions"):
        run = gr.Button("Diagnose", variant="primary", min_width=60, elem_id="diagnose")
        stop = gr.Button("Stop", variant="stop", min_width=60, interactive=False, elem_id="stop")
    gr.HTML(f"<p>{HELP}</p>", elem_id="diagnose-help")
    picked.input(
        bind(diagnosing.offer_methods, context), [picked, ticked], ticked, queue=False, preprocess=False, **PRIVATE
    )
    return DiagnoseForm([prompts, ticked, picked, count], run, stop)


def _wire_run(context: Context, form: DiagnoseForm, screen: list[Any]) -> None:
    def run_diagnosis(request: gr.Request, *values: Any) -> Iterator[DiagnoseScreen]:
        try:
            with context.visitors.admit(request.session_hash):
                yield from diagnosing.run_diagnosis(context, *values)
        except LimitError as error:
            yield diagnosing.idle("error", str(error))

    announced = form.run.click(
        bind(diagnosing.announce, context), None, screen, queue=False, trigger_mode="once", js=BEGIN_JS, **PRIVATE
    )
    started = announced.then(
        run_diagnosis,
        form.values,
        screen,
        concurrency_limit=MAX_IN_LINE,
        concurrency_id=RUNS,
        preprocess=False,  # what a browser sends is checked by read_asked, in words
        **PRIVATE,
    )
    ended = [screen[-1], screen[0]]
    started.failure(bind(diagnosing.after_stop, context), ended, screen, queue=False, js=HOW_ENDED_JS, **PRIVATE)
    form.stop.click(bind(diagnosing.announce_stop, context), None, screen, queue=False, js=STOP_JS, **PRIVATE)
    form.stop.click(None, cancels=[started], **PRIVATE)


def _wire_rows(context: Context, report: gr.HTML, close: gr.Button, screen: list[Any]) -> None:
    def open_row(event: gr.EventData) -> DiagnoseScreen:
        asked = event._data if isinstance(event._data, dict) else {}
        return diagnosing.open_row(context, asked.get("run"), asked.get("step"))

    selected = report.row_select(open_row, None, screen, queue=False, **PRIVATE)
    selected.success(None, js=TO_VIEWER_JS, **PRIVATE)
    close.click(lambda: gr.update(visible=False), None, screen[6], queue=False, js=CLOSE_JS, **PRIVATE)


def _wire_load(context: Context, screen: list[Any]) -> None:
    recorded = RecordedDiagnosis(context)

    def show_first(request: gr.Request) -> DiagnoseScreen:
        name, step = request.query_params.get("trace"), request.query_params.get("step", "")
        screen = recorded.first()
        if name not in context.store.library:
            return screen
        opened = diagnosing.open_row(context, name, step_index(step))
        return screen._replace(opened=opened.opened, viewer=opened.viewer)  # the address of a run that was opened here

    # not in the queue: where that is full the page still opens
    first = gr.context.Context.root_block.load(show_first, None, screen, queue=False, **PRIVATE)
    first.then(recorded.rest, screen[0], screen, queue=False, **PRIVATE)
