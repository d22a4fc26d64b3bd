"""The form's controls come from what the methods say about their settings."""

from __future__ import annotations

import gradio as gr
import pytest

from explorer.config import Setting
from explorer.methods.registry import METHODS
from explorer.ui.controls import (
    SAMPLING,
    fields,
    make_control,
    method_forms,
    offered_methods,
    offered_presets,
    preset_value,
    setting_text,
)
from tests.support.page import LARGE, TINY


def test_every_method_and_every_setting_is_in_the_form() -> None:
    forms = method_forms()
    assert [form.name for form in forms] == list(METHODS)
    names = {item.name for item in fields(forms)}
    assert {"medusa.tree", "medusa.total_tokens", "eagle2.total_tokens", "eagle2.depth", "eagle2.top_k"} <= names


@pytest.mark.parametrize(
    ("setting", "value", "kind"),
    [
        (Setting("depth", "int", 5, min=1, max=9), 5, gr.Slider),
        (Setting("rate", "float", 0.5, min=0.0, max=1.0, step=0.1), 0.5, gr.Slider),
        (Setting("rows", "int", 5, min=1), 5, gr.Number),
        (Setting("tree", "choice", "a", choices=("a", "b")), "a", gr.Dropdown),
        (Setting("greedy", "bool", True), True, gr.Checkbox),
        (Setting("gamma", "int", "auto", min=1, max=9, allow_auto=True), "auto", gr.Textbox),
    ],
)
def test_the_kind_of_a_setting_decides_its_control(setting: Setting, value: object, kind: type) -> None:
    with gr.Blocks():
        control = make_control(setting, value)
    assert type(control) is kind
    assert control.value == value
    assert control.label == setting.name
    if kind is gr.Slider:
        assert (control.minimum, control.maximum) == (setting.min, setting.max)


def test_every_real_setting_makes_a_control() -> None:
    with gr.Blocks():
        made = [(item.setting, make_control(item.setting, item.setting.default)) for item in fields(method_forms())]
    assert made
    assert [control.label for _, control in made] == [setting.name.replace("_", " ") for setting, _ in made]
    # A choice that also offers auto holds words.
    assert [str(control.value) for _, control in made] == [str(setting.default) for setting, _ in made]


def test_sampling_makes_controls_that_label_the_lossy_rule() -> None:
    with gr.Blocks():
        made = {setting.name: make_control(setting, setting.default) for setting in SAMPLING}
    assert list(made) == ["temperature", "top_p", "top_k", "seed", "acceptance"]
    assert (made["temperature"].value, made["temperature"].maximum) == (0.0, 2)
    acceptance = made["acceptance"]
    assert acceptance.value == ""
    assert acceptance.choices == [
        ("automatic", ""),
        ("greedy", "greedy"),
        ("rejection", "rejection"),
        ("typical (not distribution-preserving)", "typical"),
    ]


def test_methods_without_a_drafter_here_are_not_offered() -> None:
    free = [form.name for form in method_forms() if not form.needs_drafter]
    assert {"autoregressive", "jacobi", "lookahead", "prompt_lookup"} == set(free)
    for target, drafted in ((TINY, {"eagle2"}), (LARGE, {"medusa", "eagle2"})):
        offered = [name for _, name in offered_methods(method_forms(), target)]
        assert offered == [form.name for form in method_forms() if form.name in {*free, *drafted}]


def test_presets_of_a_target_and_the_published_one() -> None:
    assert [name for _, name in offered_presets(TINY)] == ["small", "paper"]
    assert [name for _, name in offered_presets(LARGE)] == ["paper"]
    depth = next(item for item in fields(method_forms()) if item.name == "eagle2.depth")
    assert preset_value(TINY, "small", depth, "cpu") == 2
    assert preset_value(TINY, "paper", depth, "cpu") == depth.setting.default


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, None), ("", None), (True, "true"), (3, "3"), (3.0, "3"), (0.25, "0.25"), ("auto", "auto")],
)
def test_values_are_written_as_on_the_command_line(value: object, text: str | None) -> None:
    assert setting_text(value) == text
