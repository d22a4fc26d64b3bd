"""The first page as laid out; what it does is tested in tests/browser/test_app.py."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import gradio as gr

from explorer.methods.registry import METHODS
from explorer.target_presets import load_targets
from explorer.ui.context import Context
from explorer.ui.pages.explore import build_explore_page, prompt_examples
from tests.support.page import make_context


def test_examples_have_a_label_and_a_text() -> None:
    examples = prompt_examples()
    assert len(examples) >= 6
    assert all(label and text for label, text in examples)


def test_the_page_has_no_plot_for_steps(context: Context) -> None:
    with gr.Blocks() as page:
        build_explore_page(context)
    blocks = list(page.blocks.values())
    plots = [block.elem_id for block in blocks if isinstance(block, gr.Plot)]
    assert plots == ["summary", "cost-plot"], "steps are drawn by the viewer, never by plotly"
    assert not any(isinstance(block, gr.Timer | gr.State) for block in blocks)
    labels = {getattr(block, "label", None) for block in blocks}
    assert {"Prompt", "Method", "Target", "System prompt", "Max new tokens", "total tokens", "depth", "top k"} <= labels


def test_no_prompt_text_enters_a_template(context: Context) -> None:
    with gr.Blocks() as page:
        build_explore_page(context)
    for block in page.blocks.values():
        if isinstance(block, gr.HTML) and block.html_template != "${value}":
            assert "$" not in block.html_template


def test_the_default_target_offers_the_methods_it_has_drafters_for() -> None:
    target = load_targets()["smollm2"]
    context = make_context(Path("/nowhere"))
    context = replace(context, options=replace(context.options, targets=(target,)))
    with gr.Blocks() as page:
        build_explore_page(context)
    method = next(block for block in page.blocks.values() if getattr(block, "elem_id", None) == "method")
    names = [name for _, name in method.choices]
    assert {"autoregressive", "medusa", "eagle2"} <= set(names)
    assert all(name in target.drafters or not METHODS[name].needs_drafter for name in names)
    assert method.value == "eagle2"
