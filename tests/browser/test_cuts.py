"""Smaller trees, the mask's columns and words, the node card's bytes and position, in a real Chromium."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from explorer.counterfactual import step_cuts
from explorer.insight import depths
from explorer.mask_words import mask_sentence, visibility_sentences
from tests.browser.harness import OpenViewer, go, show_pane
from tests.support.extras import with_extras
from tests.support.traces import make_trace

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("method", ["eagle2", "medusa", "lookahead"])
def test_smaller_trees_are_those_of_the_answer(open_viewer: OpenViewer, method: str) -> None:
    trace = with_extras(make_trace(method, 8, 24))
    page, _ = open_viewer(trace)
    step = trace.steps[1]
    cuts, level = step_cuts(trace, step), depths(step.tree.parent)
    show_pane(page, 1, "cuts")
    page.wait_for_selector(".dtx-verdict b")
    expect(page.locator(".dtx-tree .is-cut")).to_have_count(0)
    for at, rows in [(len(cuts.depths), 5), (1, 3), (1, len(cuts.order.rows) + 1), (2, 9)]:
        page.locator("[data-cut=levels]").fill(str(at))
        page.locator("[data-cut=rows]").fill(str(rows))
        outcome = cuts.outcomes[cuts.table[at - 1][rows - 1]]
        expect(page.locator(".dtx-verdict")).to_have_text(f"+{outcome.num_accepted + 1} {outcome.sentence}")
        kept = [0, *[row for row in cuts.order.rows if level[row] <= cuts.depths[at - 1]][: rows - 1]]
        bright = page.eval_on_selector_all(
            ".dtx-tree .dtx-node:not(.is-cut, .is-own, .is-window)",
            "all => all.map((node) => Number(node.dataset.node))",
        )
        assert sorted(bright) == sorted(kept)
    said = page.locator(".dtx-cuts").text_content() or ""
    assert all(text in said for text in [cuts.words, *cuts.limits])
    page.evaluate("viewer.store.set({pane: 'mask'})")
    expect(page.locator(".dtx-tree .is-cut")).to_have_count(0)


def test_a_cut_stays_from_step_to_step(open_viewer: OpenViewer) -> None:
    trace = make_trace("eagle2", 8, 24)
    page, _ = open_viewer(trace)
    show_pane(page, 1, "cuts")
    page.locator("[data-cut=rows]").fill("4")
    show_pane(page, 2, "cuts")
    expect(page.locator("[data-cut=rows]")).to_have_value("4")
    expect(page.locator(".dtx-tree .dtx-node:not(.is-cut, .is-own)")).to_have_count(4)


def test_a_column_of_the_mask_shows_who_may_see_it(open_viewer: OpenViewer) -> None:
    trace = make_trace("eagle2", 3, 24)
    page, _ = open_viewer(trace)
    go(page, 1)
    step, row = trace.steps[1], 1
    seen = visibility_sentences(step)
    page.locator(f'.dtx-tick[data-column="{row}"]').hover()
    cells = str(page.locator(".dtx-cell.is-overlay").get_attribute("data-cells")).split()
    below = {row}
    for each, parent in enumerate(step.tree.parent):
        if parent in below:
            below.add(each)
    assert set(cells) == {f"{each},{row}" for each in below}
    lit = page.eval_on_selector_all(".dtx-tree .is-lit", "all => all.map((node) => Number(node.dataset.node))")
    assert set(lit) <= below
    assert row in lit
    expect(page.locator(".dtx-caption")).to_contain_text(seen.texts[seen.index[row]])
    expect(page.locator(".dtx-note")).to_have_text(mask_sentence(trace, step))
    page.locator(".dtx-title").hover()
    expect(page.locator(".dtx-cell.is-overlay")).to_have_attribute("d", "")


def test_the_card_shows_bytes_and_position(open_viewer: OpenViewer) -> None:
    trace = make_trace("eagle2", 3, 24)
    page, _ = open_viewer(trace)
    step = trace.steps[0]
    for row in (0, 1, 5):
        page.evaluate("(pin) => viewer.store.set({pin})", row)
        label = trace.vocab[str(step.tree.token[row])]
        assert label.hex is not None
        shown = page.locator(".dtx-bytes").get_attribute("title")
        assert shown == "bytes " + " ".join(re.findall("..", label.hex.upper()))
        position = step.prefix_len + depths(step.tree.parent)[row]
        expect(page.locator(".dtx-numbers")).to_contain_text(f"position{position}")
