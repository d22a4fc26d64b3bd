"""The form: what a visitor can choose. A method's own controls are generated from the Settings it describes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gradio as gr

from explorer.config import AUTO, PUBLISHED, Sampling, Setting, describe, setting
from explorer.rules import rule_label
from explorer.target_presets import TargetPreset

COMMON = ("prompt", "method", "target", "drafter", "system", "max_new_tokens", "adaptive")
SAMPLING = describe(Sampling)  # their controls follow the common ones
ADAPTIVE_HELP = (
    "While drafts cost more time than they save, decode plainly, and try again later. Only for methods with a drafter."
)
PRESET_LABELS = {"small": "small (CPU)", PUBLISHED: "as published"}


@dataclass(frozen=True)
class Pace:
    """What a run does where drafting does not pay (explorer.fallback)."""

    adaptive: bool = setting(False, kind="bool", help=ADAPTIVE_HELP)


@dataclass(frozen=True)
class MethodForm:
    """One method as the form shows it. can_rest: whether it may run adaptively."""

    name: str
    label: str
    needs_drafter: bool
    can_rest: bool
    settings: tuple[Setting, ...]


@dataclass(frozen=True)
class Field:
    """One generated control: ``name`` is method.setting."""

    name: str
    method: str
    setting: Setting


def method_forms() -> tuple[MethodForm, ...]:
    """Every registered method in its order; imports torch."""
    from explorer.methods.registry import METHODS

    return tuple(
        MethodForm(method.name, method.label, method.needs_drafter, method.can_rest, describe(method.Settings))
        for method in METHODS.values()
    )


def fields(forms: tuple[MethodForm, ...]) -> Iterator[Field]:
    """The generated controls of all methods in the order of the form."""
    for form in forms:
        for item in form.settings:
            yield Field(f"{form.name}.{item.name}", form.name, item)


def offered_methods(forms: tuple[MethodForm, ...], target: TargetPreset) -> list[tuple[str, str]]:
    """(label, name) of the methods that the target has a drafter for, or that need none."""
    return [(form.label, form.name) for form in forms if not form.needs_drafter or form.name in target.drafters]


def offered_presets(target: TargetPreset) -> list[tuple[str, str]]:
    """(label, name) of the setting presets of a target."""
    names = dict.fromkeys([*target.settings, PUBLISHED])
    return [(PRESET_LABELS.get(name, name), name) for name in names]


def preset_value(target: TargetPreset, preset: str, field: Field, device_type: str) -> Any:
    """What a control stands at under a preset: the target's value, else the method's own."""
    return target.method_settings(field.method, device_type, preset).get(field.setting.name, field.setting.default)


def make_control(shown: Setting, value: Any) -> gr.components.Component:
    """The control for one setting: a slider where both bounds are known, else a number, checkbox, list or text."""
    label = shown.name.replace("_", " ")
    shared: dict[str, Any] = {"label": label, "info": shown.help or None}
    if shown.allow_auto:
        return gr.Textbox(str(value), placeholder=AUTO, max_lines=1, **shared)
    if shown.kind == "bool":
        return gr.Checkbox(bool(value), **shared)
    if shown.kind == "choice":
        choices = [(rule_label(choice), choice) for choice in shown.choices]
        open_choice = [("automatic", "")] if value is None else []
        return gr.Dropdown([*open_choice, *choices], value=value or "", **shared)
    step = shown.step or (1 if shown.kind == "int" else None)
    if shown.min is not None and shown.max is not None:
        return gr.Slider(shown.min, shown.max, value=value, step=step, **shared)
    return gr.Number(value, precision=0 if shown.kind == "int" else None, step=step or 1, **shared)


def setting_text(value: object) -> str | None:
    """A control's value as ``--set`` would write it; None where the visitor left it empty."""
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
