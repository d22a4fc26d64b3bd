"""The page that shows another server: its tables as JSON, an error as a sentence, nothing that a visitor can name."""

from __future__ import annotations

import json

import gradio as gr

from explorer.service.server_watch import ServerWatch
from explorer.ui.pages.server import PATH, add_server_page, told
from tests.support import server_pages


def test_tables_travel_as_text() -> None:
    page = server_pages.VLLM.replace('"llama"', '"<b>${x}</b>"')
    value = json.loads(told(ServerWatch("http://u/metrics", fetch=lambda _: page)))
    assert value["tables"][0]["rows"][0][:3] == ["vLLM", "<b>${x}</b>, engine 0", "100"]
    assert "tau" in value["note"]
    error = json.loads(told(ServerWatch("http://u/metrics", fetch=lambda _: "nothing")))
    assert "http://u/metrics" in error["error"] and "tables" not in error


def test_the_page_stands_beside_the_first_one_and_takes_nothing_from_visitors() -> None:
    with gr.Blocks() as app:
        gr.HTML("first")
    add_server_page(app, ServerWatch("http://u/metrics", fetch=lambda _: server_pages.VLLM))
    config = app.get_config_file()
    assert [page[0] for page in config["pages"]] == ["", PATH]
    assert config["dependencies"], "it is read when the page opens"
    assert all(not one["inputs"] and one["api_visibility"] == "private" for one in config["dependencies"])
