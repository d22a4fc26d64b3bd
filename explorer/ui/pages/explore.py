"""The first page: a recorded run is on screen at once, and the form beside it makes a run of the visitor's own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import gradio as gr

from explorer.config import describe, repo_path
from explorer.errors import SettingError
from explorer.ui import costs, handlers, linked_form, opening, racing
from explorer.ui.context import MAX_IN_LINE, RUNS, Context, bind
from explorer.ui.controls import SAMPLING, Pace, make_control, offered_methods, offered_presets, preset_value
from explorer.ui.picker import recorded_choices
from explorer.ui.screen import Screen
from explorer.ui.status import status, status_line
from explorer.ui.takeaway import takeaway_row
from explorer.ui.viewer_component import read_handle, recorded_handle, trace_viewer

TITLE = "Draft Tree Explorer"
FIRST_PAGE = "Explore"  # its name in the row of pages
INTRO = "A drafter guesses a tree; one pass of the target checks it."
WELCOME = "No recorded runs are here yet. Type a prompt and press Run."
COSTS_HINT = (
    "How much more a pass over a whole tree costs than a pass over one token decides whether speculation pays. "
    "Measuring takes some seconds."
)

# On a phone most of the form stands below the viewer: there the button leads to it.
TOGGLE_JS = """() => {
  if (window.innerWidth > 820) document.querySelector('#page').classList.toggle('without-form');
  else document.querySelector('#method').scrollIntoView({block: 'start'});
}"""
# And a run that starts there brings its status line into sight.
SHOW_STATUS_JS = "() => { document.querySelector('#status').scrollIntoView({block: 'nearest'}); }"
# Gradio tells a run that was stopped and one that its queue refused alike; the page remembers which button was pressed.
BEGIN_JS = "() => { window.isRunStopped = false; return []; }"
STOP_JS = "() => { window.isRunStopped = true; return []; }"
HOW_ENDED_JS = f"(viewer) => [viewer, window.isRunStopped ? '{handlers.STOPPED}' : '']"
AFTER_PAINT_JS = (
    "() => new Promise(done => setTimeout(() => done([]), 1000))"  # plotly.js is 4.6 MB: the viewer comes first
)
PRIVATE: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}


@dataclass(frozen=True)
class Form:
    """The components of the form, in the order of ``controls.COMMON``, ``controls.SAMPLING`` and ``Context.fields``."""

    common: list[Any]
    sampling: list[Any]
    preset: gr.Radio
    generated: list[Any]
    groups: list[Any]
    run: gr.Button
    stop: gr.Button
    race: gr.Button
    rivals: gr.CheckboxGroup

    def filled(self) -> list[Any]:
        """What linked_form fills, in its order."""
        return [*self.common, self.preset, *self.sampling, *self.generated, *self.groups]


def prompt_examples() -> list[tuple[str, str]]:
    """(label, text) of the prompts to try; raises SettingError where the file is missing or wrong."""
    path = repo_path("assets", "presets", "prompts.json")
    try:
        return [(entry["label"], entry["text"]) for entry in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SettingError(f"the prompt examples {path} cannot be read: {error!r}") from error


def build_explore_page(context: Context) -> None:
    """Lay the page out and wire it; call inside a Blocks context."""
    gr.Navbar(main_page_name=FIRST_PAGE)
    with gr.Row(elem_id="top"):
        toggle = gr.Button("☰", elem_id="toggle-form", size="sm", min_width=36)
        gr.HTML(f"<h1>{TITLE}</h1><p>{INTRO}</p>", elem_id="title")
        picker = _picker(context)
    with gr.Row(elem_id="page"):
        with gr.Column(elem_id="form"):
            form = _form(context)
        with gr.Column(elem_id="main"):
            first = next(iter(context.store.library), None)
            line = status_line(_first_status(context), elem_id="status")
            viewer = trace_viewer(context, recorded_handle(first.name) if first else None, elem_id="viewer")
            with gr.Row(elem_id="files"):
                takeaway_row(elem_id="takeaway")
                upload = gr.UploadButton("Open a trace file", file_types=[".json", ".gz"], size="sm", min_width=80)
            plot = gr.Plot(visible=False, show_label=False, elem_id="summary")
            _costs(context, form.common[2])
    screen = [viewer, line, form.run, form.stop, plot, picker, form.race]
    _wire_run(context, form, screen)
    _wire_form(context, form)
    _wire_load(context, form, screen)
    _wire_open(context, form, upload, screen)
    toggle.click(None, js=TOGGLE_JS, **PRIVATE)


def _form(context: Context) -> Form:
    target = context.options.targets[0]
    methods, presets = offered_methods(context.forms, target), offered_presets(target)
    chosen = context.first_method(target)
    preset = target.default_preset.get(context.options.device_type, presets[-1][1])
    method = gr.Radio(methods, value=chosen, label="Method", elem_id="method")
    first = next(iter(context.store.library), None)
    prompt = gr.Textbox(
        first.prompt if first else "",
        label="Prompt",
        lines=3,
        max_lines=8,
        placeholder="Ask the target something …",
        elem_id="prompt",
    )
    with gr.Row(elem_id="actions"):
        run = gr.Button("Run", variant="primary", min_width=60, elem_id="run")
        race = gr.Button("Race", min_width=60, elem_id="race")
        stop = gr.Button("Stop", variant="stop", min_width=60, interactive=False, elem_id="stop")
    rivals = _rivals(context, methods, chosen)
    examples = prompt_examples()
    gr.Examples(
        [[text] for _, text in examples],
        [prompt],
        label="Prompts to try",
        example_labels=[title for title, _ in examples],
        api_visibility="private",
        elem_id="examples",
    )
    with gr.Accordion("Settings", open=False, elem_id="settings"):
        labels = [(item.label, item.name) for item in context.options.targets]
        picked = gr.Dropdown(labels, value=target.name, label="Target", elem_id="target")
        names = [(choice.label, choice.name) for choice in context.options.drafters(target, chosen)]
        drafter = gr.Dropdown(
            names, value=names[0][1] if names else None, visible=bool(names), label="Drafter", elem_id="drafter"
        )
        preset_radio = gr.Radio(presets, value=preset, label="Tree size", elem_id="preset")
        generated, groups = _method_controls(context, chosen, preset)
        limit = context.options.max_new_tokens
        count = gr.Slider(1, limit, value=context.first_count, step=1, label="Max new tokens", elem_id="max-new-tokens")
        adaptive = make_control(describe(Pace)[0], False)
        system = gr.Textbox(label="System prompt", lines=2, max_lines=6, placeholder="none", elem_id="system")
    with gr.Accordion("Sampling", open=False, elem_id="sampling"):
        sampling = [make_control(setting, setting.default) for setting in SAMPLING]
    common = [prompt, method, picked, drafter, system, count, adaptive]
    return Form(common, sampling, preset_radio, generated, groups, run, stop, race, rivals)


def _rivals(context: Context, methods: list[tuple[str, str]], chosen: str) -> gr.CheckboxGroup:
    """Who runs on the same prompt when Race is pressed."""
    choices = [(label, name) for label, name in methods if name != chosen]
    ticked = racing.default_rivals(context.forms, [name for _, name in choices], chosen)
    with gr.Accordion("Race with", open=False, elem_id="race-with"):
        return gr.CheckboxGroup(choices, value=ticked, show_label=False, container=False, elem_id="rivals")


def _method_controls(context: Context, chosen: str, preset: str) -> tuple[list[Any], list[Any]]:
    """The generated controls, and one group per method that has any; only the chosen method's group is visible."""
    target, generated, groups = context.options.targets[0], [], []
    for form in context.forms:
        if not form.settings:
            continue
        with gr.Group(visible=form.name == chosen, elem_classes="method-settings") as group:
            for item in context.fields:
                if item.method == form.name:
                    value = preset_value(target, preset, item, context.options.device_type)
                    generated.append(make_control(item.setting, value))
        groups.append(group)
    return generated, groups


def _costs(context: Context, target: gr.Dropdown) -> None:
    """The section on what passes cost on this machine."""
    with gr.Accordion("What a pass costs on this machine", open=False, elem_id="costs"):
        line = status_line(status("idle", COSTS_HINT), elem_id="cost-status")
        button = gr.Button("Measure", size="sm", min_width=80, elem_id="measure")
        plot = gr.Plot(visible=False, show_label=False, elem_id="cost-plot")
        details = gr.Markdown(visible=False, elem_id="cost-details")
    outputs = [button, line, plot, details]
    button.click(bind(costs.measure_costs, context), target, outputs, concurrency_limit=MAX_IN_LINE, **PRIVATE)


def _picker(context: Context) -> gr.Dropdown:
    recordings = recorded_choices(context)
    return gr.Dropdown(
        recordings,
        value=recordings[0][1] if recordings else None,
        label="Recorded runs",
        container=False,
        interactive=True,
        elem_id="picker",
    )


def _first_status(context: Context) -> str:
    first = next(iter(context.store.library), None)
    return status("idle", opening.recording_text(context, first) if first else WELCOME)


def _wire_run(context: Context, form: Form, screen: list[Any]) -> None:
    values = [*form.common, *form.sampling, *form.generated]
    run = _wire_start(context, [form.run.click, form.common[0].submit], handlers.run_trace, values, screen)
    race = _wire_start(context, [form.race.click], racing.run_race, [form.rivals, *values], screen)
    race.success(bind(opening.summarise, context), screen[0], screen[4], **PRIVATE)
    for button in (form.run, form.race):
        button.click(None, js=SHOW_STATUS_JS, **PRIVATE)
    form.stop.click(bind(handlers.announce_stop, context), None, screen, queue=False, js=STOP_JS, **PRIVATE)
    form.stop.click(None, cancels=[run, race], **PRIVATE)


def _wire_start(
    context: Context, triggers: list[Any], handler: Callable[..., Any], inputs: list[Any], screen: list[Any]
) -> Any:
    """What the triggers start: at once the announcement, then ``handler``, and the word that it was stopped."""
    announced = gr.on(
        triggers,
        bind(handlers.announce_run, context),
        None,
        screen,
        queue=False,
        trigger_mode="once",
        js=BEGIN_JS,
        **PRIVATE,
    )

    def start(request: gr.Request, *values: Any) -> Iterator[Screen]:
        yield from handlers.run_for_visitor(context, request, handler, *values)

    start.__name__ = handler.__name__  # Gradio reads the name
    started = announced.then(
        start,
        inputs,
        screen,
        concurrency_limit=MAX_IN_LINE,
        concurrency_id=RUNS,
        preprocess=False,  # as in _wire_form: what a browser sends is checked by Context.choices, in words
        **PRIVATE,
    )
    # A cancelled event counts as failed, and this fires when the run is really over: no late update can follow it.
    ended = [screen[0], screen[1]]  # the script's word takes the place of the second
    stopped = started.failure(
        bind(handlers.after_stop, context), ended, screen, queue=False, js=HOW_ENDED_JS, **PRIVATE
    )
    stopped.then(bind(opening.summarise, context), screen[0], screen[4], **PRIVATE)
    return started


def _wire_form(context: Context, form: Form) -> None:
    _, method, target, drafter, *_ = form.common
    # Gradio's own check of a choice answers 500 where the choices have just changed; the handlers check in words.
    private = PRIVATE | {"queue": False, "preprocess": False}
    own = [drafter, *form.groups]
    method.input(bind(handlers.apply_method, context), [target, method], own, **private)
    outputs = [method, form.preset, *own, *form.generated]
    for changed in (method.change, target.change):
        changed(bind(racing.offer_rivals, context), [target, method, form.rivals], form.rivals, **private)
    target.input(bind(handlers.apply_target, context), [target, method], outputs, **private)
    form.preset.input(bind(handlers.apply_preset, context), [target, form.preset], form.generated, **private)


def _wire_open(context: Context, form: Form, upload: gr.UploadButton, screen: list[Any]) -> None:
    """A recording that is picked, or a file: it comes on screen, and the form says what would make that run again."""
    viewer, plot, picker = screen[0], screen[4], screen[5]

    def shown_with_form(shown: Screen) -> tuple[Any, ...]:
        return (*shown, *linked_form.fill_from_run(context, read_handle(shown.viewer)).controls)

    def open_recording(name: Any) -> tuple[Any, ...]:
        return shown_with_form(opening.open_recording(context, name))

    def open_upload(path: Any) -> tuple[Any, ...]:
        return shown_with_form(opening.open_upload(context, path))

    outputs = [*screen, *form.filled()]
    # preprocess: Gradio's own check of a choice does not know a visitor's own run
    picked = picker.input(open_recording, picker, outputs, queue=False, preprocess=False, **PRIVATE)
    for event in (picked, upload.upload(open_upload, upload, outputs, **PRIVATE)):
        event.then(bind(opening.summarise, context), viewer, plot, **PRIVATE)


def _wire_load(context: Context, form: Form, screen: list[Any]) -> None:
    def restore(request: gr.Request) -> tuple[Any, ...]:
        shown, filled = opening.open_from_query(context, request), linked_form.fill_form(context, request)
        if filled.status is None:
            filled = linked_form.fill_from_run(context, read_handle(shown.viewer))
        return (*(shown if filled.status is None else shown._replace(status=filled.status)), *filled.controls)

    def summarise(request: gr.Request) -> Any:
        return opening.summary_from_query(context, request)

    page = gr.context.Context.root_block
    page.load(restore, None, [*screen, *form.filled()], queue=False, **PRIVATE)
    page.load(summarise, None, screen[4], queue=False, js=AFTER_PAINT_JS, **PRIVATE)
