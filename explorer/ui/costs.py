"""What passes cost on this machine: measured when a visitor asks, drawn as curves, told in sentences."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Any, NamedTuple

import gradio as gr

from explorer.config import AUTO
from explorer.cost_words import cost_sentence, cost_tables, floor_sentence, verdict_sentence
from explorer.errors import ExplorerError
from explorer.kernel_words import commit_sentence
from explorer.markdown import table
from explorer.prediction import CostReport
from explorer.runner_events import RunRequest, Status
from explorer.ui.context import Context
from explorer.ui.screen import KEEP, figure_update
from explorer.ui.status import status
from explorer.views.cost_chart import cost_figure

UNEXPECTED = "The measurement failed unexpectedly: the server's log says why. The app goes on."
LOG = logging.getLogger(__name__)


class CostScreen(NamedTuple):
    """Updates of the section's outputs, in the order in which the page lists them."""

    button: Any = KEEP
    status: Any = KEEP
    plot: Any = KEEP
    details: Any = KEEP


def measure_costs(context: Context, target: Any) -> Iterator[CostScreen]:
    """Measure passes and drafts for the chosen target, one update per size; ends with the figure and its sentences."""
    try:
        preset = context.options.target(target)
        methods = [form.name for form in context.forms if form.name in preset.drafters]
        yield CostScreen(gr.update(interactive=False), status("busy", "Waiting for the device …"))
        with closing(context.runner.measure(RunRequest(methods[0], target=preset.source), methods)) as work:
            report = yield from _follow(work)
        done, figure = status("done", told(report)), figure_update(cost_figure(report))
        yield CostScreen(gr.update(interactive=True), done, figure, gr.update(value=details(report), visible=True))
    except ExplorerError as error:
        yield CostScreen(gr.update(interactive=True), status("error", str(error)))
    except Exception:  # the page's last boundary
        LOG.exception("measuring costs failed")
        yield CostScreen(gr.update(interactive=True), status("error", UNEXPECTED))


def told(report: CostReport) -> str:
    """The measurement in sentences."""
    fastest = {label: max(trees, key=lambda item: item.tokens_per_second) for label, trees in report.methods.items()}
    verdicts = [verdict_sentence(label, item) for label, item in fastest.items()]
    about = [cost_sentence(report.cost), floor_sentence(report.cost)]
    about += [commit_sentence(report.kernels)] if report.kernels else []
    hint = f"The word {AUTO} as total tokens takes that tree" if verdicts else ""
    return "\n".join(f"{sentence}." for sentence in [*about, *verdicts, hint] if sentence)


def details(report: CostReport) -> str:
    """What the operations with kernels of ours cost, and what other devices promise, as Markdown."""
    lines = []
    for each in cost_tables(report):
        lines += [f"**{each.title}**", "", *table(each.head, each.rows), "", each.note, ""]
    return "\n".join(lines)


def _follow(work: Generator[Status, None, CostReport]) -> Generator[CostScreen, None, CostReport]:
    while True:
        try:
            event = next(work)
        except StopIteration as end:
            report: CostReport = end.value
            return report
        yield CostScreen(status=status("busy", f"{event.text[:1].upper()}{event.text[1:]} …", event.fraction))
