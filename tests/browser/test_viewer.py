"""The step viewer in a real Chromium, on a bare page: what is drawn equals the record, and nothing is cut off."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import pytest
from playwright.sync_api import expect

from explorer import insight
from explorer.trace import Step
from tests.browser.harness import OpenViewer, go
from tests.support.traces import make_trace
from tests.support.words import HOSTILE

pytestmark = pytest.mark.browser

DRAWN_CELLS = """() => [...document.querySelectorAll(".dtx-cell[data-row]")].flatMap((line) => {
  const places = line.getAttribute("d").split("M").slice(1).map((part) => part.split("h")[0].split(" ").map(Number));
  return line.dataset.columns.split(" ").map((column, i) => [Number(line.dataset.row), Number(column), ...places[i]]);
})"""


def arborescence(step: Step) -> nx.DiGraph:
    return nx.DiGraph([(parent, row) for row, parent in enumerate(step.tree.parent) if parent >= 0] or [])


@pytest.mark.parametrize(
    ("method", "acceptance"),
    [("eagle2", "greedy"), ("eagle2", "rejection"), ("medusa", "greedy"), ("lookahead", "greedy")],
)
def test_every_state_is_drawn_as_recorded(open_viewer: OpenViewer, method: str, acceptance: str) -> None:
    trace = make_trace(method, 8, 40, acceptance=acceptance)
    page, _ = open_viewer(trace)
    page.evaluate("viewer.store.set({fold: false})")
    for step in trace.steps:
        go(page, step.index)
        drawn = page.eval_on_selector_all(
            ".dtx-tree .dtx-node", "nodes => nodes.map((node) => node.getAttribute('class').match(/is-([a-z]+)/)[1])"
        )
        assert Counter(drawn) == Counter(step.tree.state) + Counter(["own"])
        for state in ("accepted", "rejected", "untried", "unreachable"):
            shown = page.locator(f'.dtx-legend [data-state="{state}"] b').inner_text()
            assert int(shown) == step.tree.state.count(state)


def test_mask_is_the_ancestor_closure_in_both_orders(open_viewer: OpenViewer) -> None:
    trace = make_trace("eagle2", 3, 60)
    page, _ = open_viewer(trace)
    step = trace.steps[1]
    go(page, 1)
    graph = arborescence(step)
    closure = {(row, seen) for row in graph for seen in nx.ancestors(graph, row) | {row}}
    places = []
    for order in ("tree", "engine"):
        page.evaluate("(order) => viewer.store.set({order})", order)
        cells = page.evaluate(DRAWN_CELLS)
        assert {(row, column) for row, column, _, _ in cells} == closure
        assert len(cells) == len(closure)
        lines = {row: y for row, column, _, y in cells if row == column}
        columns = {column: x for row, column, x, _ in cells if row == column}
        assert all(lines[row] == y and columns[column] == x for row, column, x, y in cells)
        assert all(x <= columns[row] for row, _, x, _ in cells), "a mask is lower triangular in either order"
        places.append(sorted(lines, key=lambda row: lines[row]))
    assert places[1] == list(range(len(step.tree)))
    assert places[0] != places[1]
    assert sorted(places[0]) == places[1]


def test_pruned_nodes_come_and_go(open_viewer: OpenViewer) -> None:
    trace = make_trace("eagle2", 4, 30)
    page, _ = open_viewer(trace)
    page.evaluate("viewer.store.set({fold: false})")
    before = page.eval_on_selector_all(".dtx-tree .dtx-node", "nodes => nodes.map((node) => node.dataset.node)")
    page.keyboard.press("g")
    assert page.locator(".dtx-tree .is-ghost.dtx-node").count() == len(trace.steps[0].ghosts)
    page.keyboard.press("g")
    after = page.eval_on_selector_all(".dtx-tree .dtx-node", "nodes => nodes.map((node) => node.dataset.node)")
    assert after == before


def test_hostile_tokens_are_drawn_as_text(open_viewer: OpenViewer) -> None:
    trace = make_trace("eagle2", 6, 40, hostile=True)
    page, _ = open_viewer(trace)
    page.keyboard.press("g")
    page.evaluate("viewer.store.set({fold: false})")
    for step in trace.steps:
        go(page, step.index)
        for node in range(0, len(step.tree), 7):
            page.evaluate("(pin) => viewer.store.set({pin})", node)
    seen = page.locator(".dtx").inner_text()
    assert "<img src=x onerror=" in seen
    assert "${window.__x=1}" in seen
    assert "</svg><script>window.__x=1</script>" in seen
    assert "⟨U+202E⟩evil" in seen
    assert not any(character in seen for character in "\0\u202e\u202c\u200b")
    assert "A" * 200 not in page.locator(".dtx-strip").inner_text(), "a long token is cut in the middle"
    assert page.evaluate("window.__x") is None
    assert page.locator(".dtx img, .dtx script, .dtx b b").count() == 0


def test_long_token_can_be_read_whole_in_the_card(open_viewer: OpenViewer) -> None:
    trace = make_trace("eagle2", 8, 40, hostile=True)
    page, _ = open_viewer(trace)
    long_label = max(HOSTILE, key=len)
    found = [
        (s, t) for s in trace.steps for t in range(len(s.tree)) if trace.vocab[str(s.tree.token[t])].label == long_label
    ]
    step, row = found[0]
    go(page, step.index)
    page.evaluate("(pin) => viewer.store.set({pin})", row)
    assert page.locator(".dtx-long").text_content() == long_label


def test_hover_links_tree_mask_strip_and_caption(open_viewer: OpenViewer) -> None:
    trace = make_trace("eagle2", 5, 24)
    page, _ = open_viewer(trace)
    page.evaluate("viewer.store.set({fold: false})")
    go(page, 2)
    step = trace.steps[2]
    levels = insight.depths(step.tree.parent)
    row = levels.index(3)
    chain = nx.ancestors(arborescence(step), row) | {row}
    page.locator(f'.dtx-tree [data-node="{row}"]').hover()
    linked = page.eval_on_selector_all(".dtx-node.is-linked", "nodes => nodes.map((node) => Number(node.dataset.node))")
    assert set(linked) == chain
    lit = page.locator(".dtx-cell.is-linked[data-row]")
    assert lit.get_attribute("data-row") == str(row)
    assert set(map(int, str(lit.get_attribute("data-columns")).split())) == chain
    expect(page.locator(".dtx-strip.is-linking")).to_have_count(1)
    caption = page.locator(".dtx-caption").inner_text()
    assert f"Sees {step.prefix_len} prefix + 3 ancestors + itself; position {step.prefix_len + 3}" in caption
    page.locator(".dtx-title").hover()
    expect(page.locator(".dtx-node.is-linked")).to_have_count(0)
    page.locator(f'.dtx-band[data-row="{row}"]').hover()
    expect(page.locator(f'.dtx-node.is-active[data-node="{row}"]')).to_have_count(1)


def test_card_shows_the_record(open_viewer: OpenViewer) -> None:
    trace = make_trace("eagle2", 3, 24)
    page, _ = open_viewer(trace)
    step = trace.steps[0]
    page.locator('.dtx-tree [data-node="1"]').click()
    card = page.locator(".dtx-card")
    tree = step.tree
    assert tree.target_rank[1] is not None
    expect(card).to_contain_text(f"rank {tree.target_rank[1] + 1}")
    expect(card).to_contain_text(insight.percent(tree.draft_prob[1]))
    expect(card).to_contain_text(insight.percent(tree.target_prob[1]))
    expect(card).to_contain_text(
        insight.row_sentences(step, trace.vocab).texts[insight.row_sentences(step, trace.vocab).index[1]]
    )
    assert card.locator(".dtx-top li").count() == len(tree.target_top[0] or [])
    assert page.evaluate("events.filter(([name]) => name === 'node_select')") == [
        ["node_select", {"step": 0, "index": 1}]
    ]
    page.keyboard.press("Escape")
    expect(card).to_contain_text(insight.own_token_sentence(step, trace.vocab))


def test_strip_holds_the_output_in_order(open_viewer: OpenViewer) -> None:
    trace = make_trace("eagle2", 9, 20)
    page, _ = open_viewer(trace)
    page.wait_for_selector("[data-step]")
    drawn = page.eval_on_selector_all(
        ".dtx-token:not(.is-prompt)", "tokens => tokens.map((token) => token.textContent)"
    )
    assert drawn == [trace.vocab[str(token)].label for token in trace.output.token_ids]
    owns = page.locator(".dtx-segment[data-step] .dtx-token.is-own").count()
    assert owns == sum(not step.is_cut for step in trace.steps)


def test_facts_are_the_recorded_numbers(open_viewer: OpenViewer) -> None:
    trace = make_trace("eagle2", 9, 20)
    page, _ = open_viewer(trace)
    mean, facts = trace.stats.mean_acceptance_length, page.locator(".dtx-facts")
    assert mean is not None
    expect(facts.locator("[data-fact=per_pass]")).to_contain_text(f"{mean:.2f}")
    expect(facts.locator("[data-fact=per_pass]")).to_contain_text(f"{mean - 1:.2f} without the target's own")
    expect(facts.locator("[data-fact=speedup]")).to_contain_text(f"{trace.stats.speedup:.2f}×")
    expect(facts.locator("[data-fact=equal]")).to_contain_text("✓ equal")


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (960, 720), (390, 844)])
def test_nothing_is_cut_off(open_viewer: OpenViewer, width: int, height: int) -> None:
    page, _ = open_viewer(make_trace("eagle2", 6, 60), width=width, height=height)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    outside = page.evaluate(
        """() => [...document.querySelectorAll(`.dtx-header, .dtx-bar, .dtx-canvas, .dtx-mask, .dtx-card,
          .dtx-caption, .dtx-transport, .dtx-strip`)].filter((part) => {
            const box = part.getBoundingClientRect();
            return box.width < 40 || box.right > innerWidth + 0.5 || (innerWidth > 640 && box.bottom > innerHeight);
          }).map((part) => part.className.baseVal ?? part.className)"""
    )
    assert outside == []
    for node in range(8):
        page.evaluate("(pin) => viewer.store.set({pin})", node)
        card = "document.querySelector('.dtx-card')"
        assert page.evaluate(f"{card}.scrollWidth - {card}.clientWidth") <= 0
        assert page.evaluate(f"{card}.scrollHeight - {card}.clientHeight") <= 1
    if width > 640:
        assert page.evaluate("document.documentElement.scrollHeight") <= height


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_follow_the_system_and_gradio(open_viewer: OpenViewer, scheme: str) -> None:
    page, _ = open_viewer(make_trace("eagle2", 3, 12), color_scheme=scheme)
    surface = "getComputedStyle(document.querySelector('.dtx')).backgroundColor"
    light, dark = "rgb(255, 255, 255)", "rgb(20, 23, 28)"
    assert page.evaluate(surface) == (dark if scheme == "dark" else light)
    page.evaluate("document.querySelector('.dtx').removeAttribute('data-scheme')")
    assert page.evaluate(surface) == light
    page.evaluate("document.body.classList.add('dark')")
    assert page.evaluate(surface) == dark
