"""What stands beside the tree, in a real Chromium: each method's panel."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from explorer.insight import depths
from explorer.panels.registry import PANELS
from explorer.trace import Trace
from explorer.views.insights import step_insight
from tests.browser.harness import OpenViewer, show_pane
from tests.support.extras import with_extras
from tests.support.recorded import recorded
from tests.support.traces import make_trace

pytestmark = pytest.mark.browser
Painted = dict[str, Any]

PIECES = """() => [...document.querySelectorAll(".dtx-panel .dtx-entry")].map((piece) => [
  piece.querySelector("bdi").title, piece.dataset.nodes, piece.className.match(/ is-([a-z]+)/)[1]])"""


def made(method: str, **options: Any) -> Trace:
    rows = 9 if method in ("draft_model", "jacobi", "prompt_lookup") else 24
    return with_extras(make_trace(method, 8, rows, **options))


def words(page: Page) -> str:
    """The text of the pane that is there."""
    return page.locator(".dtx-panel").filter(visible=True).text_content() or ""


def nodes_of(pieces: list[list[str]]) -> list[list[int]]:
    return [[int(node) for node in piece[1].split()] for piece in pieces if piece[1]]


def medusa_nodes(panel: Painted) -> list[list[int]]:
    return [candidate["rows"] for head in panel["heads"] for candidate in head["candidates"] if candidate["rows"]]


def eagle_nodes(panel: Painted) -> list[list[int]]:
    return [[node["node"]] for level in panel["levels"] for node in level["nodes"]]


def chain_nodes(panel: Painted) -> list[list[int]]:
    return [[row["row"]] for row in panel["rows"]]


def jacobi_nodes(panel: Painted) -> list[list[int]]:
    return [[row] for row in panel["iterations"][-1]["rows"]]


def lookahead_nodes(panel: Painted) -> list[list[int]]:
    tried = [[row] for guess in panel["guesses"] for row in guess["rows"]]
    return [*tried, [0], *([row] for line in panel["window"] for row in line["rows"])]


def copied_nodes(panel: Painted) -> list[list[int]]:
    return [[row] for row in panel["rows"]]


NODES: dict[str, Callable[[Painted], list[list[int]]]] = {
    "medusa": medusa_nodes,
    "eagle1": eagle_nodes,
    "eagle2": eagle_nodes,
    "eagle3": eagle_nodes,
    "draft_model": chain_nodes,
    "jacobi": jacobi_nodes,
    "lookahead": lookahead_nodes,
    "prompt_lookup": copied_nodes,
}


@pytest.mark.parametrize("method", PANELS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_panel_draws_the_nodes_of_its_answer(open_viewer: OpenViewer, method: str, scheme: str) -> None:
    trace = made(method, hostile=scheme == "dark")
    page, _ = open_viewer(trace, color_scheme=scheme)
    page.evaluate("viewer.store.set({ghosts: true})")
    for step in (trace.steps[1], trace.steps[3], trace.steps[2]):
        show_pane(page, step.index, "method")
        panel = step_insight(trace, step.index)["panel"]
        pieces = page.evaluate(PIECES)
        assert nodes_of(pieces) == NODES[method](panel)
        states = step.tree.state + ["ghost"] * len(step.ghosts)
        for text, nodes, state in pieces:
            assert text
            if nodes and method != "jacobi":
                assert state in {states[int(node)] for node in nodes.split()}
    assert page.evaluate("window.__x") is None
    assert page.locator(".dtx-panel img, .dtx-panel script").count() == 0


@pytest.mark.parametrize("method", PANELS)
def test_a_panel_says_the_sentences_of_its_answer(open_viewer: OpenViewer, method: str) -> None:
    trace = made(method)
    page, _ = open_viewer(trace)
    show_pane(page, 2, "method")
    panel = step_insight(trace, 2)["panel"]
    said = words(page)
    for sentence in panel["sentences"]:
        assert sentence in said


def test_pieces_light_the_tree_and_are_lit_by_it(open_viewer: OpenViewer) -> None:
    trace = recorded("medusa-code")
    page, _ = open_viewer(trace)
    show_pane(page, 8, "method")
    step, panel = trace.steps[8], step_insight(trace, 8)["panel"]
    several = next(rows for rows in medusa_nodes(panel) if len(rows) > 1)
    page.locator(f'.dtx-panel [data-nodes="{" ".join(map(str, several))}"]').first.hover()
    lit = page.eval_on_selector_all(".dtx-tree .is-lit", "nodes => nodes.map((node) => Number(node.dataset.node))")
    assert sorted(lit) == several
    assert page.evaluate("viewer.store.hover") is None, "several nodes are lit, none is explained"
    page.locator(".dtx-title").hover()
    expect(page.locator(".dtx-tree .is-lit")).to_have_count(0)
    deep = max(range(len(step.tree)), key=lambda row: depths(step.tree.parent)[row])
    page.evaluate("(hover) => viewer.store.set({hover})", deep)
    path, shown = panel["ranks"][deep], page.locator(".dtx-rank")
    assert [int(re.sub(r"\D.*", "", text)) for text in shown.all_text_contents()] == [rank + 1 for rank in path]
    linked = page.eval_on_selector_all(
        ".dtx-panel .is-linked", "all => all.map((piece) => piece.dataset.nodes.split(' ').map(Number))"
    )
    assert len(linked) == len(path)
    assert any(deep in nodes for nodes in linked)


def test_one_piece_of_one_node_is_explained_and_pinned(open_viewer: OpenViewer) -> None:
    page, _ = open_viewer(made("eagle2"))
    show_pane(page, 1, "method")
    page.locator('.dtx-panel [data-nodes="1"]').hover()
    assert page.evaluate("viewer.store.hover") == 1
    page.locator('.dtx-panel [data-nodes="1"]').click()
    assert page.evaluate("viewer.store.pin") == 1
    level = step_insight(made("eagle2"), 1)["panel"]["levels"][0]
    assert level["sentence"] in words(page)


def test_medusa_marks_what_came(open_viewer: OpenViewer) -> None:
    trace = made("medusa")
    page, _ = open_viewer(trace)
    for step in trace.steps[:3]:
        show_pane(page, step.index, "method")
        heads = step_insight(trace, step.index)["panel"]["heads"]
        came = page.locator(".dtx-head .is-came bdi").evaluate_all("all => all.map((piece) => piece.title)")
        assert came == [trace.vocab[str(head["came_token"])].label for head in heads if head["came_token"] is not None]


def test_jacobis_grid_leads_to_its_passes(open_viewer: OpenViewer) -> None:
    trace = made("jacobi")
    page, _ = open_viewer(trace)
    show_pane(page, 3, "method")
    iterations = step_insight(trace, 3)["panel"]["iterations"]
    for fate in ("fixed", "early", "wrong"):
        drawn = page.locator(f".dtx-grid .is-{fate}").count()
        fates = [
            "fixed" if k < each["num_fixed"] else {None: "unknown", True: "early", False: "wrong"}[came]
            for each in iterations
            for k, came in enumerate(each["came"])
        ]
        assert drawn == fates.count(fate)
    page.locator('[data-leap="1"]').click()
    assert page.evaluate("viewer.store.at") == 1


def test_a_window_cell_lights_its_diagonal(open_viewer: OpenViewer) -> None:
    trace = made("lookahead")
    page, _ = open_viewer(trace)
    show_pane(page, 1, "method")
    diagonal = step_insight(trace, 1)["panel"]["diagonals"][1]
    page.locator(f'.dtx-grid [data-nodes="{diagonal[0]}"]').hover()
    assert page.evaluate("viewer.store.lit") == diagonal


@pytest.mark.parametrize("acceptance", ["greedy", "rejection"])
def test_the_draft_models_place_shows_both_distributions(open_viewer: OpenViewer, acceptance: str) -> None:
    trace = made("draft_model", acceptance=acceptance)
    page, _ = open_viewer(trace)
    show_pane(page, 1, "method")
    rows = step_insight(trace, 1)["panel"]["rows"]
    for row in rows:
        page.evaluate("(pin) => viewer.store.set({pin})", row["row"])
        detail = page.locator(".dtx-detail")
        expect(detail).to_contain_text(row["sentence"])
        assert detail.locator("ol:not(.is-residual) > li").count() == len(row["pairs"])
        assert detail.locator(".is-residual > li").count() == len(row["residual_tops"])
        shared = [pair for pair in row["pairs"] if pair["shared"] is not None]
        assert detail.locator(".dtx-over.is-shared").count() == len(shared)


def test_plain_decoding_has_no_panel_and_no_smaller_tree(open_viewer: OpenViewer) -> None:
    page, _ = open_viewer(make_trace("autoregressive", 4))
    page.evaluate("viewer.store.set({pane: 'method'})")
    expect(page.locator("[data-pane=method], [data-pane=cuts]").filter(visible=True)).to_have_count(0)
    expect(page.locator(".dtx-maskbox")).to_be_visible()


def test_a_step_without_a_draft_says_why(open_viewer: OpenViewer) -> None:
    trace = made("medusa")
    page, _ = open_viewer(trace)
    show_pane(page, 4, "method")
    assert trace.steps[4].plain_reason == "fallback"
    expect(page.locator(".dtx-panel").filter(visible=True)).to_contain_text("A plain pass")


def test_the_pane_takes_the_trees_room_and_gives_it_back(open_viewer: OpenViewer) -> None:
    page, _ = open_viewer(made("medusa"), width=965)
    show_pane(page, 1, "method")
    width = "document.querySelector('.dtx-side').getBoundingClientRect().width"
    before = page.evaluate(width)
    page.keyboard.press("w")
    assert page.evaluate(width) > 1.5 * before
    page.locator(".dtx-wide").click()
    assert page.evaluate(width) == before


@pytest.mark.parametrize("method", PANELS)
@pytest.mark.parametrize(("width", "height"), [(1280, 720), (965, 720), (390, 800)])
def test_nothing_leaves_the_page(open_viewer: OpenViewer, method: str, width: int, height: int) -> None:
    page, _ = open_viewer(made(method, hostile=True), width=width, height=height)
    for pane in ("method", "cuts"):
        show_pane(page, 2, pane)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        if width > 640:
            assert page.evaluate("document.documentElement.scrollHeight") <= height
        wide = page.evaluate(
            "(() => { const box = document.querySelector('.dtx-panel:not([hidden] *)'); "
            "return box.scrollWidth - box.clientWidth; })()"
        )
        assert wide <= 1, "only inner grids scroll sideways"
