"""The status line: text travels as data, never through a template."""

from __future__ import annotations

import json

import gradio as gr
import pytest

from explorer.ui.status import status, status_line


def test_a_status_is_json_with_its_fraction_in_bounds() -> None:
    assert json.loads(status("busy", "loading", 1.7)) == {"kind": "busy", "text": "loading", "fraction": 1.0}
    assert json.loads(status("idle", "ready")) == {"kind": "idle", "text": "ready"}


def test_an_unknown_kind_is_our_own_mistake() -> None:
    with pytest.raises(ValueError, match="kind"):
        status("loud", "x")


def test_the_shell_holds_no_template() -> None:
    with gr.Blocks():
        line = status_line(status("idle", "${1} {{x}}"))
    assert "$" not in line.html_template
    assert "{" not in line.html_template
    assert "textContent" in line.js_on_load
    assert "innerHTML" not in line.js_on_load
