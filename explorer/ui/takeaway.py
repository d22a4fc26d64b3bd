"""The row under the viewer: what is on screen as a file or as a link.

The buttons are static; a press sends the viewer's element an event, and the viewer's own script (assets/viewer/page.js)
asks the server function below, because it knows the run, the step and the colours that are on screen.
"""

from __future__ import annotations

import html
import threading
from typing import Any

import gradio as gr

from explorer.errors import TraceError
from explorer.takeaway import FORMATS, TRACE, Format, Job, run_name
from explorer.ui.payloads import in_words, read_id, read_number, read_object, read_word, to_text
from explorer.ui.store import TraceStore

MAX_EXPORT_BYTES = 32 * 2**20
MAX_AT_ONCE = 2  # a replay of a long run takes seconds of a processor that also decodes
WAIT_SECONDS = 20.0
# Text files, made on the server; a picture is drawn by the browser from the drawing.
FILES = {"trace": TRACE} | {name: kind for name, kind in FORMATS.items() if name != "png"}
BUTTONS = (("", ("trace", "html", "perfetto", "stats")), ("This step", ("svg", "png", "graphml")))
LINK = ("link", "Copy link", "A link to this recorded step, or to the form that makes this run again")
SCRIPT = """
const told = element.querySelector('.takeaway-told');
function tell(text, isError) {
  told.textContent = text;
  told.classList.toggle('is-error', isError);
}
element.addEventListener('click', (event) => {
  const button = event.target.closest('button[data-kind]');
  if (!button || button.disabled) return;
  button.disabled = true;
  tell('Making it \\u2026', false);
  const done = (text, isError) => { button.disabled = false; tell(text, isError); };
  document.querySelector('#viewer').dispatchEvent(
    new CustomEvent('explorer-take', {detail: {kind: button.dataset.kind, tell: done}}));
});
"""

_slots = threading.BoundedSemaphore(MAX_AT_ONCE)


def takeaway_row(**kwargs: Any) -> gr.HTML:
    """The buttons, in a gr.HTML of static text."""
    known = FORMATS | {"trace": TRACE}
    parts = ['<span class="takeaway-title">Take it away</span>']
    for title, kinds in BUTTONS:
        parts += [f'<span class="takeaway-title">{title}</span>'] if title else []
        parts += [_button(kind, known[kind].label, known[kind].help) for kind in kinds]
    parts += [_button(*LINK), '<span class="takeaway-told" role="status" aria-live="polite"></span>']
    shell = f'<div class="takeaway" role="group" aria-label="Take it away">{"".join(parts)}</div>'
    return gr.HTML("", html_template=shell, js_on_load=SCRIPT, apply_default_css=False, **kwargs)


@in_words
def answer_export(store: TraceStore, payload: object) -> str:
    """``{"name", "type", "text"}`` of a file, for ``{"id", "kind": one of FILES, "step": from 1, "scheme", "ghosts"}``.

    Mistakes are answered by ``{"error": sentence}``.
    """
    raw = read_object(payload)
    kind = read_word(raw.get("kind"), "kind", tuple(FILES))
    scheme = read_word(raw.get("scheme", "light"), "scheme", ("light", "dark"))
    step = read_number(raw.get("step", 1), "step")
    trace_id = read_id(raw.get("id"))
    trace, _ = store.get(trace_id)
    stem = trace_id if trace_id in store.library else run_name(trace)
    job = Job(trace, step if trace.steps else None, scheme, raw.get("ghosts") is True)
    name, text = make_file(FILES[kind], stem, job)
    return to_text({"name": name, "type": FILES[kind].media_type, "text": text})


def make_file(kind: Format, stem: str, job: Job) -> tuple[str, str]:
    """(file name, text); raises ExplorerError for a step that is not there, a file too large, a server too busy."""
    if not _slots.acquire(timeout=WAIT_SECONDS):
        raise TraceError("The server is busy making other files: try again in a moment.")
    try:
        name, data = kind.file_name(stem, job), kind.make(job)
    finally:
        _slots.release()
    if len(data) > MAX_EXPORT_BYTES:
        raise TraceError(
            f"This file would have {len(data) // 2**20} MiB, and the page gives at most {MAX_EXPORT_BYTES // 2**20}: "
            "take the trace file and export that on the command line."
        )
    return name, data.decode("utf-8")


def _button(kind: str, label: str, help_text: str) -> str:
    return f'<button type="button" data-kind="{kind}" title="{html.escape(help_text)}">{html.escape(label)}</button>'
