"""The page's outputs as one value: what a handler changes, in the order in which the page lists them."""

from __future__ import annotations

from typing import Any, NamedTuple

import gradio as gr

from explorer.ui.status import FirstWords, status

KEEP = gr.skip()


class Screen(NamedTuple):
    """Updates of the page's outputs, in the order in which the page lists them."""

    viewer: Any = KEEP
    status: Any = KEEP
    run_button: Any = KEEP
    stop_button: Any = KEEP
    plot: Any = KEEP
    picker: Any = KEEP
    race_button: Any = KEEP


def busy(
    text: str, fraction: float | None = None, *, is_starting: bool = False, run: FirstWords | None = None
) -> Screen:
    """A run is on its way: it can be stopped, and nothing else can be begun. Starting: it has no step to show yet."""
    return Screen(
        status=status("starting" if is_starting else "busy", text, fraction, run),
        run_button=gr.update(interactive=False),
        stop_button=gr.update(interactive=True),
        picker=gr.update(interactive=False),
        race_button=gr.update(interactive=False),
    )


def idle(kind: str, text: str) -> Screen:
    """Nothing runs for this visitor; the status line says how it ended."""
    return Screen(
        status=status(kind, text),
        run_button=gr.update(interactive=True),
        stop_button=gr.update(interactive=False),
        picker=gr.update(interactive=True),
        race_button=gr.update(interactive=True),
    )


def figure_update(figure: Any) -> dict[str, Any]:
    """A fresh update each time: Gradio takes it apart."""
    return gr.update(value=figure, visible=True)
