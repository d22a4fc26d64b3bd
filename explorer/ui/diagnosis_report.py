"""The diagnosis as tables on the page: a static shell, view JSON as value, every text drawn with textContent.

A row that speaks of a run has a button; it sends ``row_select`` with the run's id and the step.
"""

from __future__ import annotations

from typing import Any

import gradio as gr

SHELL = '<div class="diagnosis"></div>'
SCRIPT = """
const root = element.querySelector('.diagnosis');
function add(parent, tag, name, text) {
  const child = document.createElement(tag);
  if (name) child.className = name;
  if (text !== undefined) child.textContent = text;
  parent.append(child);
  return child;
}
function openCell(row, made) {
  const cell = add(made, 'td', 'diagnosis-place');
  if (row.id === null || row.step === null) return;
  made.className = 'is-opening';
  const button = add(cell, 'button', 'diagnosis-open', '\\u25b8');
  button.type = 'button';
  button.setAttribute('aria-label', 'Open this run at step ' + (row.step + 1));
  button.title = button.getAttribute('aria-label');
  button.dataset.run = row.id;
  button.dataset.step = row.step;
}
function drawTable(parent, table) {
  const part = add(parent, 'section', 'diagnosis-part'), hasPlaces = table.rows.some((row) => row.id !== null);
  add(part, 'h3', '', table.title);
  const made = add(add(part, 'div', 'diagnosis-scroll'), 'table', 'diagnosis-table');
  const head = add(add(made, 'thead'), 'tr'), body = add(made, 'tbody');
  if (hasPlaces) add(head, 'td');
  for (const name of table.head) add(head, 'th', '', name).scope = 'col';
  for (const row of table.rows) {
    const line = add(body, 'tr');
    if (hasPlaces) openCell(row, line);
    for (const cell of row.cells) add(line, 'td', '', cell);
  }
  if (table.note) add(part, 'p', 'diagnosis-note', table.note);
}
function drawVerdicts(parent, verdicts) {
  const part = add(parent, 'section', 'diagnosis-part');
  add(part, 'h3', '', 'What would help');
  const list = add(part, 'dl', 'diagnosis-verdicts');
  for (const verdict of verdicts) {
    add(list, 'dt', '', verdict.label);
    const said = add(list, 'dd', '', verdict.lines[0] || 'No complete pass: there is nothing to advise.');
    if (verdict.lines.length < 2) continue;
    const more = add(said, 'details');
    add(more, 'summary', '', (verdict.lines.length - 1) + ' more');
    for (const line of verdict.lines.slice(1)) add(more, 'p', '', line);
  }
}
function draw() {
  root.replaceChildren();
  let view;
  try { view = JSON.parse(props.value || 'null'); } catch (error) { return; }
  if (!view) return;
  add(root, 'h2', '', view.about);
  const [prompts, spans] = view.ranking;
  drawTable(root, prompts);
  drawVerdicts(root, view.verdicts);
  drawTable(root, spans);
  const more = add(root, 'details', 'diagnosis-all');
  add(more, 'summary', '', 'Every figure as a table');
  drawTable(more, view.overview);
  for (const method of view.methods) {
    const part = add(more, 'details', 'diagnosis-method');
    add(part, 'summary', '', method.label);
    for (const table of method.tables) drawTable(part, table);
  }
}
root.addEventListener('click', (event) => {
  const line = event.target.closest('tr'), button = line && line.querySelector('.diagnosis-open');
  if (!button || String(window.getSelection())) return;
  for (const other of root.querySelectorAll('tr.is-opened')) other.classList.remove('is-opened');
  line.classList.add('is-opened');
  trigger('row_select', {run: button.dataset.run, step: Number(button.dataset.step)});
});
draw();
watch('value', draw);
"""


def diagnosis_report(value: str | None = None, **kwargs: Any) -> gr.HTML:
    """A gr.HTML whose value is the JSON of explorer.views.diagnosis.diagnosis_view."""
    return gr.HTML(value, html_template=SHELL, js_on_load=SCRIPT, apply_default_css=False, **kwargs)
