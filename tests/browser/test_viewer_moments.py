"""The moments of a step in a real Chromium: what is drawn at each is what the marks say, and the last is the record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from explorer.microsteps import micro_steps
from explorer.moments import MicroStep
from explorer.trace import Step, Trace
from tests.browser.harness import OpenViewer, at, go
from tests.support.traces import make_trace

pytestmark = pytest.mark.browser

DRAWN = """() => ({
  nodes: [...document.querySelectorAll(".dtx-tree .dtx-node")].map((node) =>
    [Number(node.dataset.node), node.getAttribute("class").match(/is-([a-z]+)/)[1], node.getAttribute("transform")]),
  rows: [...document.querySelectorAll(".dtx-cell[data-row]")].map((line) => Number(line.dataset.row)),
  cells: [...document.querySelectorAll(".dtx-cell[data-row]")].flatMap((line) =>
    line.dataset.columns.split(" ").map((column) => line.dataset.row + "," + column)),
  lit: [...document.querySelectorAll(".dtx-tree .is-focus")].map((node) => Number(node.dataset.node)),
  kept: [...document.querySelectorAll(".dtx-colhead.is-kept")].map((head) => head.textContent),
  dropped: [...document.querySelectorAll(".dtx-band.is-dropped")].map((band) => Number(band.dataset.row)),
  caption: document.querySelector(".dtx-caption").textContent,
  spoken: document.querySelector(".dtx-spoken").textContent,
  emitted: [...document.querySelectorAll('.dtx-segment.is-current .dtx-token')].filter((token) =>
    getComputedStyle(token).display !== "none").length,
  moment: viewer.store.moment,
})"""
RULES = [
    ("eagle2", "greedy"),
    ("eagle2", "rejection"),
    ("medusa", "typical"),
    ("draft_model", "rejection"),
    ("lookahead", "greedy"),
    ("autoregressive", "greedy"),
]


def show(page: Page, moment: int) -> None:
    page.evaluate("(moment) => viewer.store.set({moment})", moment)
    page.wait_for_function("document.querySelector('.dtx-chips [aria-current] .dtx-ticks .is-past') !== null")


def replayed(moments: list[MicroStep]) -> Iterator[tuple[MicroStep, dict[int, str], set[int]]]:
    """Each moment with the states then and the rows whose mask has been built."""
    states: dict[int, str] = {}
    built: set[int] = set()
    for moment in moments:
        for state, nodes in moment.marks:
            states.update(dict.fromkeys(nodes, state))
        if moment.kind in ("mask", "verify"):
            built |= set(moment.focus)
        yield moment, dict(states), set(built)


def check_moment(drawn: dict[str, Any], step: Step, now: tuple[MicroStep, dict[int, str], set[int]]) -> None:
    moment, states, built = now
    assert {node: state for node, state, _ in drawn["nodes"]} == states, moment.kind
    assert set(drawn["rows"]) == built, moment.kind
    assert set(drawn["lit"]) == set(moment.focus)
    assert moment.caption in drawn["caption"]
    assert drawn["spoken"] == drawn["caption"]
    accepted = sum(states[row] == "accepted" for row in step.path[1:] if row in states)
    is_whole = (len(step.tree) + len(step.ghosts)) in states
    assert drawn["emitted"] == min(accepted + is_whole, len(step.emitted)), "the output grows with the walk"
    if moment.ms is not None:
        assert " ms" in drawn["caption"]


@pytest.mark.parametrize(("method", "acceptance"), RULES)
def test_every_moment_is_drawn_as_marked(open_viewer: OpenViewer, method: str, acceptance: str) -> None:
    trace = make_trace(method, 7, 20, acceptance=acceptance, hostile=method == "eagle2")
    page, _ = open_viewer(trace)
    page.evaluate("viewer.store.set({fold: false})")
    for step in (trace.steps[1], trace.steps[3], trace.steps[-1]):  # step 3 has no draft, the last one is cut
        go(page, step.index)
        places: dict[int, str] = {}
        moments = micro_steps(trace, step)
        for k, now in enumerate(replayed(moments)):
            show(page, 0) if k == 0 else page.keyboard.press("ArrowDown")
            drawn = page.evaluate(DRAWN)
            assert drawn["moment"] == k
            check_moment(drawn, step, now)
            for node, _, place in drawn["nodes"]:
                assert places.setdefault(node, place) == place, "nothing moves"
        assert [state for _, state, _ in sorted(drawn["nodes"])[: len(step.tree)]] == step.tree.state
        assert len(drawn["nodes"]) == len(step.tree) + len(step.ghosts) + 1
        check_commit(drawn, step, moments[-1])
    assert page.evaluate("window.__x") is None


def check_commit(drawn: dict[str, Any], step: Step, commit: MicroStep) -> None:
    assert drawn["kept"] == [f"{position} ← row {row}" for row, position in commit.kept]
    assert set(drawn["dropped"]) == set(range(len(step.tree))) - {row for row, _ in commit.kept}


def closure(trace: Trace, index: int) -> set[str]:
    cells = set()
    for row in range(len(trace.steps[index].tree)):
        seen = row
        while seen >= 0:
            cells.add(f"{row},{seen}")
            seen = trace.steps[index].tree.parent[seen]
    return cells


def test_a_full_tree_fits_its_pane_and_says_what_is_left_out(open_viewer: OpenViewer) -> None:
    trace = make_trace("eagle2", 4, 60)
    page, _ = open_viewer(trace, width=965, height=628)
    for step in trace.steps:
        go(page, step.index)
        moments = micro_steps(trace, step)
        num_mask = [moment.kind for moment in moments].index("verify")
        for k, (_, states, _) in enumerate(replayed(moments)):
            show(page, k)
            drawn = page.evaluate(DRAWN)
            shown = {node: state for node, state, _ in drawn["nodes"]}
            assert shown.items() <= states.items()
            assert {*step.path} & states.keys() <= shown.keys()
            more = page.locator(".dtx-moreswitch")
            left_out = int(more.inner_text().split()[0]) if more.is_visible() else 0
            folds = page.locator(".dtx-more").all_text_contents()
            assert len(states) <= len(shown) + left_out + sum(int(text.split()[0]) for text in folds) <= 125
            if k == num_mask:
                assert set(drawn["cells"]) == closure(trace, step.index)
        assert any(state == "ghost" for state in shown.values()), "pruning can be seen"
        canvas = "document.querySelector('.dtx-canvas')"
        assert page.evaluate(f"{canvas}.scrollHeight - {canvas}.clientHeight") <= 1


def count_insights(page: Page) -> list[str]:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/insight" in request.url else None)
    return asked


def test_keys_move_through_moments_and_over_the_edges_of_steps(open_viewer: OpenViewer) -> None:
    trace = make_trace("eagle2", 4, 12)
    page, _ = open_viewer(trace)
    asked = count_insights(page)
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
    page.wait_for_timeout(100)
    assert asked == [], "whole steps need no insight"
    counts = [len(micro_steps(trace, step)) for step in trace.steps]
    page.keyboard.press("ArrowDown")
    page.wait_for_function("viewer.store.moment === 0")
    page.keyboard.press("ArrowUp")
    page.wait_for_function(f"viewer.store.at === 0 && viewer.store.moment === {counts[0] - 1}")
    page.keyboard.press("ArrowDown")
    page.wait_for_function("viewer.store.at === 1 && viewer.store.moment === 0")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("[viewer.store.at, viewer.store.moment]") == [2, None]
    page.keyboard.press("ArrowUp")
    page.wait_for_function(f"viewer.store.at === 2 && viewer.store.moment === {counts[2] - 1}")
    page.keyboard.press("Escape")
    assert page.evaluate("viewer.store.moment") is None
    assert len(asked) == 3, "each step is asked about once"


def test_arrows_belong_to_the_tree_only_once_the_keyboard_is_in_it(open_viewer: OpenViewer) -> None:
    page, _ = open_viewer(make_trace("eagle2", 3, 12))
    page.locator('.dtx-tree [data-node="1"]').click()
    page.keyboard.press("ArrowDown")
    page.wait_for_function("viewer.store.moment === 0")
    page.locator('.dtx-tree [data-node="0"]').focus()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("viewer.store.moment") == 0, "in the tree the arrows go from node to node"
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowDown")
    page.wait_for_function("viewer.store.moment === 1")


def test_chips_lead_to_each_part_and_through_it(open_viewer: OpenViewer) -> None:
    trace = make_trace("eagle2", 6, 16)
    page, _ = open_viewer(trace)
    go(page, 1)
    kinds = [moment.kind for moment in micro_steps(trace, trace.steps[1])]
    for label, kind in [
        ("mask", "mask"),
        ("draft", "draft"),
        ("walk", "test"),
        ("cache", "commit"),
        ("rows", "flatten"),
    ]:
        page.locator(f'[data-part="{label}"]').click()
        page.wait_for_function(f"viewer.store.moment === {kinds.index(kind)}")
        ticks = page.locator(f'[data-part="{label}"] .dtx-ticks i')
        assert ticks.count() == sum(each == kind for each in kinds)
        expect(page.locator('[data-part][aria-current="step"]')).to_have_attribute("data-part", label)
    page.locator('[data-part="draft"]').click(click_count=1)
    page.locator('[data-part="draft"]').click(click_count=1)
    page.wait_for_function(f"viewer.store.moment === {kinds.index('draft') + 1}")
    expect(page.locator(".dtx-caption b")).to_have_text(f"Draft 2 of {kinds.count('draft')}. ")
    page.locator(".dtx-whole").click()
    assert page.evaluate("viewer.store.moment") is None
    go(page, 3)
    disabled = page.eval_on_selector_all("[data-part]:disabled", "chips => chips.map((chip) => chip.dataset.part)")
    assert disabled == ["rows", "mask", "walk"], "a plain pass has neither tree nor tests"


def test_playing_slowly_goes_through_all_moments_to_the_end(open_viewer: OpenViewer) -> None:
    trace = make_trace("medusa", 2, 6)
    page, _ = open_viewer(trace)
    page.evaluate("seen = []; viewer.store.onChange(() => seen.push(viewer.store.at + '/' + viewer.store.moment))")
    page.keyboard.press("s")
    expect(page.locator(".dtx-slow")).to_have_attribute("aria-pressed", "true")
    page.evaluate("viewer.store.set({speed: 60})")
    page.keyboard.press(" ")
    page.wait_for_function("viewer.store.at === 1 && !viewer.store.playing")
    seen = set(page.evaluate("seen"))
    for step in trace.steps:
        assert {f"{step.index}/{k}" for k in range(len(micro_steps(trace, step)))} <= seen
    page.keyboard.press("s")
    assert page.evaluate("viewer.store.slow") is False


def test_before_its_verdict_a_node_tells_nothing_of_it(open_viewer: OpenViewer) -> None:
    trace = make_trace("eagle2", 3, 16)
    page, _ = open_viewer(trace)
    step = trace.steps[0]
    kinds = [moment.kind for moment in micro_steps(trace, step)]
    show(page, kinds.index("mask"))
    page.evaluate("viewer.store.set({pin: 1})")
    card = page.locator(".dtx-card")
    expect(card).to_contain_text("drafted")
    expect(card).not_to_contain_text("target")
    assert "ccepted" not in page.locator(".dtx-caption").inner_text()
    assert "ejected" not in page.locator(".dtx-caption").inner_text()
    show(page, kinds.index("commit"))
    expect(card).to_contain_text("target prob")


def test_an_insight_that_does_not_come_is_said_and_the_step_stays_whole(open_viewer: OpenViewer) -> None:
    trace = make_trace("eagle2", 3, 12)
    page, _ = open_viewer(trace)
    page.route("**/insight*", lambda route: route.fulfill(json={"error": "This run is no longer kept."}))
    page.keyboard.press("ArrowDown")
    expect(page.locator(".dtx-caption")).to_have_text("This run is no longer kept.")
    assert page.evaluate("viewer.store.moment") is None
    page.unroute("**/insight*")
    page.keyboard.press("ArrowDown")
    page.wait_for_function("viewer.store.moment === 0")
    assert at(page) == 0


def test_a_growing_run_does_not_disturb_the_moment_on_screen(open_viewer: OpenViewer) -> None:
    page, server = open_viewer(make_trace("eagle2", 6, 12), num_steps=2)
    page.keyboard.press("Home")
    show(page, 2)
    asked = count_insights(page)
    server.num_steps = 5
    page.evaluate("changed()")
    page.wait_for_function("viewer.store.steps.length === 5")
    assert page.evaluate("[viewer.store.at, viewer.store.moment]") == [0, 2]
    assert asked == []


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_motion_is_short_or_none(open_viewer: OpenViewer, motion: str) -> None:
    page, _ = open_viewer(make_trace("eagle2", 2, 16), reduced_motion=motion)
    show(page, 0)
    page.evaluate("viewer.store.set({moment: 1})")
    lengths = page.evaluate("document.getAnimations().map((each) => each.effect.getComputedTiming().duration)")
    assert (lengths == []) == (motion == "reduce")
    assert all(length <= 200 for length in lengths)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_drafted_and_plausible_are_told_by_sign_and_colour(open_viewer: OpenViewer, scheme: str) -> None:
    trace = make_trace("medusa", 6, 20, acceptance="typical")
    page, _ = open_viewer(trace, color_scheme=scheme)
    looks = {}
    for step in trace.steps:
        go(page, step.index)
        for k in range(len(micro_steps(trace, step))):
            show(page, k)
            for state in ("drafted", "passing", "accepted"):
                found = page.locator(f".dtx-tree .dtx-node.is-{state}")
                if state not in looks and found.count():
                    looks[state] = found.first.evaluate(
                        """(node) => [node.querySelector('.dtx-glyph').getAttribute('d'),
                             getComputedStyle(node.querySelector('.dtx-pill')).fill,
                             getComputedStyle(node.querySelector('text')).fill]"""
                    )
        if len(looks) == 3:
            break
    assert len({glyph for glyph, _, _ in looks.values()}) == 3, "each has its own sign"
    assert len({tuple(colours) for _, *colours in looks.values()}) == 3
    expect(page.locator('.dtx-legend [data-state="passing"]')).to_be_visible()
