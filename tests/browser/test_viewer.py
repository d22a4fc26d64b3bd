"""The step viewer in a real Chromium, on a bare page: what is drawn equals the record, and every control works."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import networkx as nx
import pytest
from playwright.sync_api import Page, expect

from explorer import insight
from explorer.trace import Step, Trace
from tests.browser.harness import ViewerServer
from tests.support.traces import make_trace
from tests.support.words import HOSTILE

pytestmark = pytest.mark.browser

Viewer = Callable[..., tuple[Page, ViewerServer]]

DRAWN_CELLS = """() => [...document.querySelectorAll(".dtx-cell")].map((cell) => {
  const [x, y] = ["x", "y"].map((name) => Number(cell.getAttribute(name)));
  return [...cell.dataset.cell.split(",").map(Number), x, y];
})"""


@pytest.fixture
def open_viewer(open_page: Callable[..., Page]) -> Iterator[Viewer]:
    servers = []

    def open_one(trace: Trace, *, num_steps: int | None = None, **options: object) -> tuple[Page, ViewerServer]:
        server = ViewerServer(trace)
        servers.append(server)
        if num_steps is not None:
            server.num_steps, server.is_done = num_steps, False
        page = open_page(server.url, **options)
        page.wait_for_function("window.viewer.store.header !== null")
        return page, server

    yield open_one
    for server in servers:
        server.close()


def go(page: Page, step: int) -> None:
    page.evaluate("(step) => viewer.store.go(step)", step)


def at(page: Page) -> int:
    return page.evaluate("viewer.store.at")


def arborescence(step: Step) -> nx.DiGraph:
    return nx.DiGraph([(parent, row) for row, parent in enumerate(step.tree.parent) if parent >= 0] or [])


@pytest.mark.parametrize(
    ("method", "acceptance"),
    [("eagle2", "greedy"), ("eagle2", "rejection"), ("medusa", "greedy"), ("lookahead", "greedy")],
)
def test_every_state_is_drawn_as_recorded(open_viewer: Viewer, method: str, acceptance: str) -> None:
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


def test_mask_is_the_ancestor_closure_in_both_orders(open_viewer: Viewer) -> None:
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


def test_pruned_nodes_come_and_go(open_viewer: Viewer) -> None:
    trace = make_trace("eagle2", 4, 30)
    page, _ = open_viewer(trace)
    page.evaluate("viewer.store.set({fold: false})")
    before = page.eval_on_selector_all(".dtx-tree .dtx-node", "nodes => nodes.map((node) => node.dataset.node)")
    page.keyboard.press("g")
    assert page.locator(".dtx-tree .is-ghost.dtx-node").count() == len(trace.steps[0].ghosts)
    page.keyboard.press("g")
    after = page.eval_on_selector_all(".dtx-tree .dtx-node", "nodes => nodes.map((node) => node.dataset.node)")
    assert after == before


def test_hostile_tokens_are_drawn_as_text(open_viewer: Viewer) -> None:
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


def test_long_token_can_be_read_whole_in_the_card(open_viewer: Viewer) -> None:
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


def test_hover_links_tree_mask_strip_and_caption(open_viewer: Viewer) -> None:
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
    cells = page.eval_on_selector_all(".dtx-cell.is-linked", "cells => cells.map((cell) => cell.dataset.cell)")
    assert set(cells) == {f"{row},{seen}" for seen in chain}
    expect(page.locator(".dtx-strip.is-linking")).to_have_count(1)
    caption = page.locator(".dtx-caption").inner_text()
    assert f"Sees {step.prefix_len} prefix + 3 ancestors + itself; position {step.prefix_len + 3}" in caption
    page.locator(".dtx-title").hover()
    expect(page.locator(".dtx-node.is-linked")).to_have_count(0)
    page.locator(f'.dtx-cell[data-cell="{row},{row}"]').hover()
    expect(page.locator(f'.dtx-node.is-active[data-node="{row}"]')).to_have_count(1)


def test_card_shows_the_record(open_viewer: Viewer) -> None:
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


def test_keys(open_viewer: Viewer) -> None:
    page, _ = open_viewer(make_trace("eagle2", 30, 20))
    press = page.keyboard.press
    for key, expected in [
        ("ArrowRight", 1),
        ("Shift+ArrowRight", 11),
        ("ArrowLeft", 10),
        ("Shift+ArrowLeft", 0),
        ("End", 29),
        ("ArrowRight", 29),
        ("Home", 0),
    ]:
        press(key)
        assert at(page) == expected, key
    press("m")
    assert page.evaluate("viewer.store.order") == "engine"
    press("b")
    assert page.evaluate("viewer.store.fold") is True
    press("]")
    assert page.evaluate("viewer.store.speed") == 2
    press("[")
    assert page.evaluate("viewer.store.speed") == 1
    press("?")
    expect(page.locator(".dtx-help")).to_be_visible()
    press("Escape")
    expect(page.locator(".dtx-help")).to_be_hidden()
    press("f")
    page.wait_for_function("document.fullscreenElement !== null")


def test_every_key_in_the_help_sheet_is_one_that_acts(open_viewer: Viewer) -> None:
    page, _ = open_viewer(make_trace("eagle2", 3, 10))
    shown = page.locator(".dtx-help dt").all_text_contents()
    assert shown == ["←", "→", "Shift + ← →", "Home", "End", "Space", "[  ]", "m", "g", "b", "f", "Esc", "?", "↑ ↓"]


def test_space_plays_and_pauses_and_stops_at_the_end(open_viewer: Viewer) -> None:
    page, _ = open_viewer(make_trace("eagle2", 4, 10))
    page.evaluate("viewer.store.set({speed: 20})")
    page.keyboard.press(" ")
    page.wait_for_function("viewer.store.at === 3 && !viewer.store.playing")
    page.keyboard.press("Home")
    page.evaluate("viewer.store.set({speed: 0.5})")
    page.keyboard.press(" ")
    assert page.evaluate("viewer.store.playing") is True
    page.keyboard.press(" ")
    assert page.evaluate("viewer.store.playing") is False
    assert at(page) == 0


def test_keys_are_left_to_a_text_field(open_viewer: Viewer) -> None:
    page, _ = open_viewer(make_trace("eagle2", 5, 10))
    page.evaluate("document.body.append(Object.assign(document.createElement('textarea'), {id: 'prompt'}))")
    page.locator("#prompt").fill("")
    page.locator("#prompt").press("m")
    page.locator("#prompt").press("End")
    assert page.locator("#prompt").input_value() == "m"
    assert (at(page), page.evaluate("viewer.store.order")) == (0, "tree")


def test_arrow_keys_walk_the_tree_while_it_has_the_focus(open_viewer: Viewer) -> None:
    page, _ = open_viewer(make_trace("eagle2", 3, 16))
    page.locator('.dtx-tree [data-node="0"]').focus()
    page.keyboard.press("ArrowDown")
    focused = page.evaluate("Number(document.activeElement.dataset.node)")
    assert focused != 0
    assert page.evaluate("viewer.store.hover") == focused
    expect(page.locator(".dtx-spoken")).to_contain_text("Sees")
    page.keyboard.press("Enter")
    assert page.evaluate("viewer.store.pin") == focused


def test_scrubber_and_strip_lead_to_a_step(open_viewer: Viewer) -> None:
    trace = make_trace("eagle2", 12, 20)
    page, _ = open_viewer(trace)
    page.locator(".dtx-range").fill("7")
    assert at(page) == 7
    accepted = trace.steps[7].num_accepted
    assert f"step 8 of 12, {accepted} of" in (page.locator(".dtx-range").get_attribute("aria-valuetext") or "")
    page.locator('[data-step="3"] .dtx-token').first.click()
    assert at(page) == 3
    expect(page.locator("[aria-current=step]")).to_have_attribute("data-step", "3")
    assert ["step_select", {"step": 3}] in page.evaluate("events")


def test_strip_holds_the_output_in_order(open_viewer: Viewer) -> None:
    trace = make_trace("eagle2", 9, 20)
    page, _ = open_viewer(trace)
    page.wait_for_selector("[data-step]")
    drawn = page.eval_on_selector_all(
        ".dtx-token:not(.is-prompt)", "tokens => tokens.map((token) => token.textContent)"
    )
    assert drawn == [trace.vocab[str(token)].label for token in trace.output.token_ids]
    owns = page.locator(".dtx-segment[data-step] .dtx-token.is-own").count()
    assert owns == sum(not step.is_cut for step in trace.steps)


def test_facts_are_the_recorded_numbers(open_viewer: Viewer) -> None:
    trace = make_trace("eagle2", 9, 20)
    page, _ = open_viewer(trace)
    mean, facts = trace.stats.mean_acceptance_length, page.locator(".dtx-facts")
    assert mean is not None
    expect(facts.locator("[data-fact=per_pass]")).to_contain_text(f"{mean:.2f}")
    expect(facts.locator("[data-fact=per_pass]")).to_contain_text(f"{mean - 1:.2f} without the target's own")
    expect(facts.locator("[data-fact=speedup]")).to_contain_text(f"{trace.stats.speedup:.2f}×")
    expect(facts.locator("[data-fact=equal]")).to_contain_text("✓ equal")


def test_a_live_run_is_followed_until_the_reader_moves(open_viewer: Viewer) -> None:
    page, server = open_viewer(make_trace("eagle2", 10, 20), num_steps=0)
    expect(page.locator(".dtx-empty")).to_contain_text("Waiting")
    for count in (3, 5):
        server.num_steps = count
        page.evaluate("changed()")
        page.wait_for_function("(count) => viewer.store.at === count - 1", arg=count)
    expect(page.locator(".dtx-live")).to_be_visible()
    page.keyboard.press("ArrowLeft")
    server.num_steps = 8
    page.evaluate("changed()")
    page.wait_for_function("viewer.store.steps.length === 8")
    assert at(page) == 3
    page.keyboard.press("End")
    server.num_steps, server.is_done = 10, True
    page.evaluate("changed()")
    page.wait_for_function("viewer.store.done")
    assert at(page) == 9
    expect(page.locator(".dtx-live")).to_be_hidden()
    assert server.asked == [0, 0, 3, 5, 8], "no step is asked for twice"
    assert page.locator("[data-step]").count() == 10


def test_an_error_is_said_and_the_next_answer_still_shown(open_viewer: Viewer) -> None:
    page, server = open_viewer(make_trace("eagle2", 4, 10), num_steps=0)
    server.error = "This run is no longer kept on the server."
    page.evaluate("changed()")
    expect(page.locator(".dtx-caption")).to_have_text(server.error)
    server.error, server.num_steps = None, 4
    page.evaluate("changed()")
    expect(page.locator(".dtx-stepcount")).to_have_text("step 4 / 4")


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (960, 720), (390, 844)])
def test_nothing_is_cut_off(open_viewer: Viewer, width: int, height: int) -> None:
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
def test_light_and_dark_follow_the_system_and_gradio(open_viewer: Viewer, scheme: str) -> None:
    page, _ = open_viewer(make_trace("eagle2", 3, 12), color_scheme=scheme)
    surface = "getComputedStyle(document.querySelector('.dtx')).backgroundColor"
    light, dark = "rgb(255, 255, 255)", "rgb(20, 23, 28)"
    assert page.evaluate(surface) == (dark if scheme == "dark" else light)
    page.evaluate("document.querySelector('.dtx').removeAttribute('data-scheme')")
    assert page.evaluate(surface) == light
    page.evaluate("document.body.classList.add('dark')")
    assert page.evaluate(surface) == dark


def test_reduced_motion_is_respected(open_viewer: Viewer) -> None:
    page, _ = open_viewer(make_trace("eagle2", 3, 12), reduced_motion="reduce")
    page.keyboard.press("m")
    assert page.evaluate("document.getAnimations().length") == 0
    assert page.evaluate("getComputedStyle(document.querySelector('.dtx-tree .dtx-node')).transitionDuration") == "0s"
