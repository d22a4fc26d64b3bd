"""The second page's texts and figures, with records, without, and with a broken one."""

from __future__ import annotations

import json
from pathlib import Path

import gradio as gr

from explorer.lab_records import EXPERIMENTS, read_records, write_record
from explorer.ui.pages.laboratory import MISSING, PATH, add_laboratory_page, figures, told
from explorer.ui.screen import KEEP
from tests.support.lab import make_record


def test_texts_and_figures_follow_the_records(tmp_path: Path) -> None:
    write_record(make_record("tree", target="<b>${x}</b>"), tmp_path / "tree.json")
    (tmp_path / "batch.json").write_text("{", encoding="utf-8")
    records = read_records(tmp_path)
    said = {name: json.loads(told(name, record)) for name, record in records.items()}
    assert "<b>${x}</b>" in said["tree"]["measured"] and said["tree"]["command"] == "python -m explorer lab tree"
    assert said["batch"]["findings"][0].startswith("batch.json is no record")
    assert said["context"]["findings"] == [MISSING]
    drawn = [update is not KEEP for update in figures(records)]
    assert drawn == [name == "tree" for name in EXPERIMENTS]


def test_the_page_stands_beside_the_first_one(tmp_path: Path) -> None:
    with gr.Blocks() as app:
        gr.HTML("first")
    add_laboratory_page(app, tmp_path)
    config = app.get_config_file()
    assert [page[0] for page in config["pages"]] == ["", PATH]
    assert len(config["page"][""]["components"]) == 1, "the first page carries nothing of the second"
