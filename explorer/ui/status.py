"""The status line: one sentence above the viewer that says what is happening, and how far it is.

Sentences may quote a visitor's prompt or a path, so the text never enters a template: the shell is static and the
script below writes it with textContent.
"""

from __future__ import annotations

import json
from typing import Any

import gradio as gr

KINDS = ("idle", "starting", "busy", "done", "error")

SHELL = (
    '<div class="status-line" data-kind="idle">'
    '<span class="status-mark" aria-hidden="true"></span>'
    '<span class="status-text" role="status" aria-live="polite"></span>'
    '<progress class="status-bar" max="1" hidden></progress></div>'
)
SCRIPT = """
const line = element.querySelector('.status-line');
const text = element.querySelector('.status-text');
const bar = element.querySelector('.status-bar');
function show() {
  let status;
  try { status = JSON.parse(props.value || '{}'); } catch (error) { return; }
  line.dataset.kind = status.kind || 'idle';
  text.setAttribute('role', status.kind === 'error' ? 'alert' : 'status');
  text.textContent = status.text || '';
  bar.hidden = typeof status.fraction !== 'number';
  if (!bar.hidden) bar.value = status.fraction;
}
show();
watch('value', show);
"""


def status_line(value: str | None = None, **kwargs: Any) -> gr.HTML:
    """A gr.HTML whose value is the JSON of ``status`` (no subclass: Gradio writes a .pyi file beside each one)."""
    return gr.HTML(value, html_template=SHELL, js_on_load=SCRIPT, apply_default_css=False, **kwargs)


def status(kind: str, text: str, fraction: float | None = None) -> str:
    """The status line's value; ``kind`` is one of KINDS, ``fraction`` from 0 to 1 draws a bar.

    While it is "starting", the page pales what is on screen: that is still the run before.
    """
    if kind not in KINDS:
        raise ValueError(f"status: kind {kind!r} is not one of {KINDS}")
    value: dict[str, Any] = {"kind": kind, "text": text}
    if fraction is not None:
        value["fraction"] = min(1.0, max(0.0, fraction))
    return json.dumps(value)
