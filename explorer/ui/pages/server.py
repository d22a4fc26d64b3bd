"""A page of what a running server counts of its drafts, beside the runs of this app.

The address is the operator's; visitors can only look. Texts of the other server travel as JSON and are written with
textContent.
"""

from __future__ import annotations

import json
from typing import Any

import gradio as gr

from explorer.errors import SettingError
from explorer.service.server_watch import ServerWatch
from explorer.tables import Table
from explorer.ui.pages.explore import FIRST_PAGE

TITLE, PATH = "Server", "server"
INTRO = "What a running server counts of its drafts, beside the runs here."
HEAD = f"<h1>{TITLE}</h1><p>{INTRO}</p>"
SHELL = '<article class="lab-text server-text"></article>'
SCRIPT = """
const article = element.querySelector('.server-text');
function add(parent, tag, text, name) {
  const node = document.createElement(tag);
  if (text) node.textContent = text;
  if (name) node.className = name;
  parent.append(node);
  return node;
}
function draw() {
  const told = JSON.parse(props.value || '{}');
  article.textContent = '';
  if (told.error) add(article, 'p', told.error, 'lab-question');
  for (const one of told.tables || []) {
    add(article, 'h2', one.title);
    const table = add(add(article, 'div', '', 'wide'), 'table');
    const head = add(table, 'tr');
    for (const cell of one.head) add(head, 'th', cell);
    for (const row of one.rows) {
      const line = add(table, 'tr');
      for (const cell of row) add(line, 'td', cell);
    }
  }
  if (told.note) add(article, 'p', told.note, 'lab-note');
}
draw();
watch('value', draw);
"""


def add_server_page(app: gr.Blocks, watch: ServerWatch) -> None:
    """Add the page to an app whose first page is built; call outside its context."""
    with app.route(TITLE, f"/{PATH}"):
        gr.Navbar(main_page_name=FIRST_PAGE)
        gr.HTML(HEAD, elem_id="lab-top")
        shown = gr.HTML(html_template=SHELL, js_on_load=SCRIPT, apply_default_css=False, elem_id="server-tables")
        again = gr.Button("Read again", size="sm", elem_id="server-again")

        def look_at_server() -> str:
            return told(watch)

        options: dict[str, Any] = {"queue": False, "api_visibility": "private", "show_progress": "hidden"}
        app.load(look_at_server, None, shown, **options)
        again.click(look_at_server, None, shown, **options)


def told(watch: ServerWatch) -> str:
    """The tables as JSON, or the sentence that says why there are none."""
    try:
        tables = watch.tables()
    except SettingError as error:
        return json.dumps({"error": str(error)})
    return json.dumps({"tables": [_plain(table) for table in tables], "note": tables[0].note})


def _plain(table: Table) -> dict[str, Any]:
    return {"title": table.title, "head": table.head, "rows": table.rows}
