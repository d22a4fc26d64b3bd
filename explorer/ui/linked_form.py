"""A link that asks for a run, or a run that comes on screen, fills the form; every part is checked as the form is.

It never starts a run. explorer.ui.links makes such links; people may write them by hand, and anybody may send any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr

from explorer.config import Sampling, resolve
from explorer.errors import ExplorerError, SettingError, TraceError
from explorer.ui.context import Choices, Context
from explorer.ui.controls import COMMON, SAMPLING, Field, MethodForm, offered_methods, offered_presets, preset_value
from explorer.ui.links import SETTING, run_parameters
from explorer.ui.screen import KEEP
from explorer.ui.status import status

SAMPLING_NAMES = tuple(item.name for item in SAMPLING)
MAX_PARAMETERS = 60
MAX_NAME_CHARS = 60
FILLED = "The form was filled from the link: press Run to make this run."
REFUSED = "This link cannot be used:"


@dataclass(frozen=True)
class Filled:
    """Updates of the form's controls in the page's order, and the status line's new value (None: no news)."""

    status: str | None
    controls: list[Any]


@dataclass(frozen=True)
class Asked:
    """A link's checked choices, the values of its settings by name, and a sentence per value that was clamped."""

    choices: Choices
    settings: dict[str, Any]
    notices: list[str]


def fill_form(context: Context, request: gr.Request) -> Filled:
    """What the form is filled with when the page opens; nothing where the address says nothing about a run."""
    query = {str(name): str(value) for name, value in dict(request.query_params).items()}
    if not any(name in (*COMMON, *SAMPLING_NAMES) or name.startswith(SETTING) for name in query):
        return Filled(None, _unchanged(context))
    try:
        return _fill(context, query)
    except ExplorerError as error:
        return Filled(status("error", f"{REFUSED} {error}"), _unchanged(context))


def fill_from_run(context: Context, run_id: str) -> Filled:
    """What would make a run again: method, prompt and settings of a recording, of a visitor's own run or file.

    An unknown id changes nothing. A run that cannot be made here leaves the settings, and the prompt is its own, as far
    as it can be taken.
    """
    try:
        trace, _ = context.store.get(run_id)
    except TraceError:
        return Filled(None, _unchanged(context))
    query = run_parameters(context, trace, context.store.request(run_id))
    prompt = query.get("prompt", "")
    shown = gr.update(value=prompt if len(prompt) <= context.options.max_prompt_chars else "")
    try:
        return Filled(None, [shown, *_fill(context, query).controls[1:]])
    except ExplorerError:
        return Filled(None, [shown, *_unchanged(context)[1:]])


def _unchanged(context: Context) -> list[Any]:
    return [KEEP] * (len(COMMON) + 1 + len(SAMPLING) + len(context.fields) + len(_groups(context)))


def read_query(context: Context, query: Mapping[str, str]) -> Asked:
    """A link's parameters, checked; what is left out stands at its default. Raises SettingError or PromptError."""
    if len(query) > MAX_PARAMETERS or any(len(name) > MAX_NAME_CHARS for name in query):
        raise SettingError(f"it has more than {MAX_PARAMETERS} parameters, or one with a very long name")
    form: dict[str, Any] = dict.fromkeys(COMMON) | {name: query[name] for name in COMMON if name in query}
    form["target"] = query.get("target", context.options.targets[0].name)
    form["method"] = query.get("method", context.first_method(context.options.target(form["target"])))
    form["prompt"] = query.get("prompt", "any")
    form["max_new_tokens"] = _count(query.get("max_new_tokens"), context)
    sampling = {name: query[name] for name in SAMPLING_NAMES if name in query}
    texts = {name.removeprefix(SETTING): text for name, text in query.items() if name.startswith(SETTING)}
    choices = context.checked(form, sampling, texts)
    from explorer.methods.registry import METHODS  # imports torch, which method_forms has done already

    kind: type[Any] = METHODS[choices.method.name].Settings
    settings, notices = resolve(kind, choices.settings)
    notices = resolve(Sampling, sampling)[1] + notices
    return Asked(choices, {name: getattr(settings, name) for name in choices.settings}, notices)


def _fill(context: Context, query: Mapping[str, str]) -> Filled:
    asked = read_query(context, query)
    target, method = asked.choices.target, asked.choices.method
    preset = _preset(context, asked)

    def value_of(item: Field) -> Any:
        if item.method == method.name and item.setting.name in asked.settings:
            return asked.settings[item.setting.name]
        return preset_value(target, preset, item, context.options.device_type)

    controls = [
        *_common(context, query, asked.choices),
        gr.update(choices=offered_presets(target), value=preset),
        *(gr.update(value=_shown(getattr(asked.choices.sampling, item.name))) for item in SAMPLING),
        *(gr.update(value=_shown(value_of(item))) for item in context.fields),
        *(gr.update(visible=form is method) for form in _groups(context)),
    ]
    notes = [f"Note: {notice}." for notice in asked.notices]
    return Filled(status("idle", " ".join([FILLED, *notes])), controls)


def _common(context: Context, query: Mapping[str, str], choices: Choices) -> list[Any]:
    """Updates of the controls of COMMON."""
    drafters = context.options.drafters(choices.target, choices.method.name)
    names = [(drafter.label, drafter.name) for drafter in drafters]
    chosen = next((drafter.name for drafter in drafters if drafter.source == choices.drafter), None)
    return [
        gr.update(value=query["prompt"]) if "prompt" in query else KEEP,
        gr.update(choices=offered_methods(context.forms, choices.target), value=choices.method.name),
        gr.update(value=choices.target.name),
        gr.update(choices=names, value=chosen, visible=bool(names)),
        gr.update(value=choices.system or ""),
        gr.update(value=choices.max_new_tokens),
        gr.update(value=choices.is_adaptive),
    ]


def _preset(context: Context, asked: Asked) -> str:
    """The preset whose values were asked for; the device's own where none or several are."""
    target, device_type = asked.choices.target, context.options.device_type
    usual = target.default_preset.get(device_type, offered_presets(target)[-1][1])
    fields = [item for item in context.fields if item.method == asked.choices.method.name]

    def is_it(name: str) -> bool:
        wanted = ((asked.settings.get(item.setting.name), item) for item in fields)
        return all(preset_value(target, name, item, device_type) == value for value, item in wanted)

    found = [name for _, name in offered_presets(target) if is_it(name)]
    return usual if usual in found or len(found) != 1 else found[0]


def _count(text: str | None, context: Context) -> object:
    """A whole number where it is one; the check of the form says what is wrong with anything else."""
    if text is None:
        return context.first_count
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text


def _shown(value: Any) -> Any:
    """What a control stands at: an empty one where nothing is chosen."""
    return "" if value is None else value


def _groups(context: Context) -> list[MethodForm]:
    return [form for form in context.forms if form.settings]
