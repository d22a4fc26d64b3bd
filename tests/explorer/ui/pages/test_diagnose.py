"""The page that diagnoses, as laid out; what it does is tested in tests/browser/test_diagnose_page.py."""

from __future__ import annotations

import gradio as gr

from explorer.ui.context import MAX_IN_LINE, RUNS, Context
from explorer.ui.pages.diagnose import PATH, add_diagnose_page


def test_it_is_a_page_of_its_own_in_the_line_of_all_runs(context: Context) -> None:
    with gr.Blocks() as demo:
        gr.Markdown("first page")
    add_diagnose_page(demo, context)
    assert [path for path, *_ in demo.pages] == ["", PATH]
    own = [block for block in demo.blocks.values() if getattr(block, "page", None) == PATH]
    assert {"prompts", "methods", "report", "viewer"} <= {getattr(block, "elem_id", None) for block in own}
    viewer = next(block for block in own if getattr(block, "elem_id", None) == "viewer")
    assert 'data-page="diagnose"' in viewer.html_template and "data-lessons" not in viewer.html_template
    runs = next(fn for fn in demo.fns.values() if fn.name == "run_diagnosis")
    assert (runs.concurrency_id, runs.concurrency_limit) == (RUNS, MAX_IN_LINE)
    assert all(fn.api_visibility == "private" for fn in demo.fns.values())
    methods = next(block for block in own if getattr(block, "elem_id", None) == "methods")
    assert "autoregressive" not in [name for _, name in methods.choices] and methods.value == ["eagle2"]
