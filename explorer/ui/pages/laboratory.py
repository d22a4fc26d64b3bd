"""A page of the laboratory: every experiment of the laboratory with its recorded result. It needs no model.

Texts travel as JSON and are written with textContent; figures are drawn when the page is opened, so that neither costs
the first page anything.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gradio as gr

from explorer.lab_records import EXPERIMENTS, LabRecord, read_records
from explorer.lab_words import command_of, lab_text, question_of, title_of
from explorer.ui.pages.explore import FIRST_PAGE
from explorer.ui.screen import KEEP, figure_update
from explorer.views.lab_charts import lab_figure

TITLE, PATH = "Laboratory", "laboratory"
INTRO = "What decides whether speculation pays: experiments on real models, each with its recorded result."
HEAD = f"<h1>{TITLE}</h1><p>{INTRO}</p>"
MISSING = "Nothing is recorded here yet: the command below makes it."
SHELL = '<article class="lab-text"></article>'
SCRIPT = """
const article = element.querySelector('.lab-text');
const told = JSON.parse(props.value || '{}');
function add(parent, tag, text, name) {
  if (!text) return;
  const node = document.createElement(tag);
  node.textContent = text;
  if (name) node.className = name;
  parent.append(node);
}
article.textContent = '';
add(article, 'h2', told.title);
add(article, 'p', told.question, 'lab-question');
const list = document.createElement('ul');
for (const finding of told.findings || []) add(list, 'li', finding);
article.append(list);
for (const part of [told.measured, told.limits, told.made]) add(article, 'p', part, 'lab-note');
add(article, 'code', told.command);
"""


def add_laboratory_page(app: gr.Blocks, folder: Path) -> None:
    """Add the page to an app whose first page is built; call outside its context. folder: of the records."""
    records = read_records(folder)
    with app.route(TITLE, f"/{PATH}"):
        gr.Navbar(main_page_name=FIRST_PAGE)
        gr.HTML(HEAD, elem_id="lab-top")
        plots = []
        for name, record in records.items():
            with gr.Column(elem_id=f"lab-{name}", elem_classes="lab-experiment"):
                gr.HTML(told(name, record), html_template=SHELL, js_on_load=SCRIPT, apply_default_css=False)
                plots.append(gr.Plot(visible=False, show_label=False, elem_classes="lab-plot"))

        def draw_laboratory() -> list[Any]:
            return figures(records)

        app.load(draw_laboratory, None, plots, queue=False, api_visibility="private", show_progress="hidden")


def told(name: str, record: LabRecord | str | None) -> str:
    """What stands beside an experiment's figure, as JSON; a record that cannot be read is a sentence."""
    value: dict[str, Any] = {"title": title_of(name), "question": question_of(name), "command": command_of(name)}
    if isinstance(record, LabRecord):
        value |= vars(lab_text(record))
    else:
        value["findings"] = [record or MISSING]
    return json.dumps(value)


def figures(records: dict[str, LabRecord | str | None]) -> list[Any]:
    """An update of each experiment's plot, in their order; what has no record stays without one."""
    found = [records.get(name) for name in EXPERIMENTS]
    return [figure_update(lab_figure(record)) if isinstance(record, LabRecord) else KEEP for record in found]
