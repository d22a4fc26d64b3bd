"""The status line: one sentence above the viewer that says what is happening, and how far it is; while a run has no
step yet, below it the run's prompt and what plain decoding has written.

Sentences may quote a visitor's prompt or a path, so the text never enters a template: the shell is static and the
script below writes it with textContent.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

import gradio as gr

KINDS = ("idle", "starting", "busy", "done", "error")

SHELL = (
    '<div class="status-line" data-kind="idle">'
    '<span class="status-mark" aria-hidden="true"></span>'
    '<span class="status-text" role="status" aria-live="polite"></span>'
    '<progress class="status-bar" max="1" hidden></progress></div>'
    '<div class="status-run" hidden><p class="status-prompt"></p><p class="status-output"></p></div>'
)
SCRIPT = """
const line = element.querySelector('.status-line');
const text = element.querySelector('.status-text');
const bar = element.querySelector('.status-bar');
const run = element.querySelector('.status-run');
const [prompt, output] = run.children;
function show() {
  let status;
  try { status = JSON.parse(props.value || '{}'); } catch (error) { return; }
  line.dataset.kind = status.kind || 'idle';
  text.setAttribute('role', status.kind === 'error' ? 'alert' : 'status');
  text.textContent = status.text || '';
  bar.hidden = typeof status.fraction !== 'number';
  if (!bar.hidden) bar.value = status.fraction;
  run.hidden = !status.run;
  prompt.textContent = status.run ? status.run.prompt : '';
  output.textContent = status.run ? status.run.output : '';
  run.scrollTop = run.scrollHeight;
}
show();
watch('value', show);
"""


def status_line(value: str | None = None, **kwargs: Any) -> gr.HTML:
    """A gr.HTML whose value is the JSON of ``status`` (no subclass: Gradio writes a .pyi file beside each one)."""
    return gr.HTML(value, html_template=SHELL, js_on_load=SCRIPT, apply_default_css=False, **kwargs)


@dataclass(frozen=True)
class FirstWords:
    """A run that has no step yet: its prompt, and what plain decoding has written so far."""

    prompt: str
    output: str = ""


def status(kind: str, text: str, fraction: float | None = None, run: FirstWords | None = None) -> str:
    """The status line's value; ``kind`` is one of KINDS, ``fraction`` from 0 to 1 draws a bar.

    While it is "starting", the page pales what is on screen: that is still the run before.
    """
    if kind not in KINDS:
        raise ValueError(f"status: kind {kind!r} is not one of {KINDS}")
    value: dict[str, Any] = {"kind": kind, "text": text}
    if fraction is not None:
        value["fraction"] = min(1.0, max(0.0, fraction))
    if run is not None:
        value["run"] = asdict(run)
    return json.dumps(value)
