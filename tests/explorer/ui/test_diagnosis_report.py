"""The report's shell holds no template and its script writes text only; tests/browser draws it."""

from __future__ import annotations

import gradio as gr

from explorer.ui.diagnosis_report import diagnosis_report


def test_the_shell_is_static_and_the_script_writes_text() -> None:
    with gr.Blocks():
        report = diagnosis_report('{"about": "${1} {{x}}"}')
    assert "$" not in report.html_template and "{" not in report.html_template
    assert "textContent" in report.js_on_load and "innerHTML" not in report.js_on_load
    assert "row_select" in report.EVENTS or hasattr(report, "row_select"), "a row's click reaches Python"
