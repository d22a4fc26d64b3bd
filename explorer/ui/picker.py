"""The list of runs above the viewer: the recorded ones, and below them what a visitor made or brought last."""

from __future__ import annotations

from typing import Any

import gradio as gr

from explorer.insight import visible
from explorer.trace import Trace
from explorer.ui.context import Context

MAX_NAME_PROMPT = 40  # characters of a prompt in a run's name
YOUR_RUN, YOUR_FILE = "Your run", "Your file"


def recorded_choices(context: Context) -> list[tuple[str, str]]:
    """(title, name) of every recorded run."""
    return [(item.title or item.name, item.name) for item in context.store.library]


def method_label(context: Context, method: str) -> str:
    """What the page calls a method; a foreign file's own name for one that is not known."""
    return next((form.label for form in context.forms if form.name == method), method)


def own_choice(context: Context, run_id: str, trace: Trace, whose: str = YOUR_RUN, **more: Any) -> dict[str, Any]:
    """The update that lists a visitor's own run, picked; only that visitor's page is sent it. more: of the update."""
    label = method_label(context, trace.method)
    prompt = " ".join(trace.prompt.text.split())
    prompt = prompt if len(prompt) <= MAX_NAME_PROMPT else f"{prompt[: MAX_NAME_PROMPT - 2]} …"
    title = visible(f"{whose}: {label}" + (f" · {prompt}" if prompt else ""))
    return gr.update(choices=[*recorded_choices(context), (title, run_id)], value=run_id, **more)
