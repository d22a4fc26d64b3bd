"""The view of a whole run in a real Chromium: endings, smaller trees and trust are those of the answer."""

from __future__ import annotations

from itertools import pairwise

import pytest
from playwright.sync_api import Page, expect

from explorer.calibration import calibrations
from explorer.counterfactual import budget_curves
from explorer.insight import percent
from explorer.misses import misses
from explorer.plain_steps import is_rest
from explorer.race import speed_sentence
from explorer.trace import Trace
from tests.browser.harness import OpenViewer
from tests.support.recorded import recorded
from tests.support.traces import make_trace

pytestmark = pytest.mark.browser


def open_run(open_viewer: OpenViewer, trace: Trace, **options: object) -> Page:
    page, _ = open_viewer(trace, **options)
    page.keyboard.press("2")
    page.wait_for_selector(".dtx-speedline")
    return page


@pytest.mark.parametrize("name", ["eagle2-code", "medusa-code"])
def test_endings_are_counted_and_lead_to_their_example(open_viewer: OpenViewer, name: str) -> None:
    trace = recorded(name)
    page = open_run(open_viewer, trace)
    found = misses(trace)
    rows = page.locator("[data-ending]")
    assert rows.evaluate_all("all => all.map((row) => row.dataset.ending)") == [each.kind for each in found.endings]
    for each in found.endings:
        row = page.locator(f"[data-ending={each.kind}]")
        for text in (str(each.count), each.label, percent(each.share), each.would_help, f"step {each.example + 1}"):
            expect(row).to_contain_text(text)
        assert each.example_sentence in (row.get_attribute("title") or "")
    widths = rows.evaluate_all("all => all.map((row) => row.querySelector('i').getBoundingClientRect().width)")
    shares = [each.share for each in found.endings]
    assert [width / widths[0] for width in widths] == pytest.approx([share / shares[0] for share in shares], abs=0.02)
    rows.last.click()
    assert page.evaluate("viewer.store.at") == found.endings[-1].example
    expect(page.locator(".dtx-tree")).to_be_visible()


def test_speed_and_sentences(open_viewer: OpenViewer) -> None:
    trace = recorded("eagle2-code")
    page = open_run(open_viewer, trace)
    expect(page.locator(".dtx-speedline")).to_have_text(speed_sentence(trace))
    said = page.locator(".dtx-run").text_content() or ""
    budgets = budget_curves(trace)
    for sentence in (budgets.words, *budgets.limits, *misses(trace).sentences[1:], calibrations(trace)[0].sentence):
        assert sentence in said


def test_a_curve_for_each_depth_and_its_numbers_under_the_pointer(open_viewer: OpenViewer) -> None:
    trace = make_trace("eagle2", 10, 24)
    page = open_run(open_viewer, trace)
    budgets = budget_curves(trace)
    drawn = page.locator(".dtx-curve:not(.is-bound)").evaluate_all("all => all.map((line) => line.dataset.depth)")
    assert sorted(map(int, drawn)) == [curve.depth for curve in budgets.curves]
    assert page.locator(".dtx-curve.is-bound").count() == sum(
        curve.exact_rows < len(curve.tau) for curve in budgets.curves
    )
    tau = budgets.curves[-1].tau
    expect(page.locator(".dtx-said")).to_have_text(f"{tau[-1]:.2f} tokens a pass with {len(tau)} rows")
    box = page.locator(".dtx-chart").first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 10, box["y"] + 50)
    expect(page.locator(".dtx-said")).to_have_text(f"{tau[0]:.2f} tokens a pass with 1 row")


def test_trust_has_a_point_for_each_bin_of_each_question(open_viewer: OpenViewer) -> None:
    trace = recorded("eagle2-code")
    page = open_run(open_viewer, trace)
    for number, answer in enumerate(calibrations(trace)):
        page.locator(".dtx-runpart .dtx-tab").nth(number).click()
        counts = page.locator(".dtx-axis.is-count").all_text_contents()
        assert counts == [str(each.num_nodes) for each in answer.bins]
        places = page.locator(".dtx-bin").evaluate_all("all => all.map((dot) => Number(dot.getAttribute('cy')))")
        accepted = [each.accepted for each in answer.bins]
        assert [y < other for y, other in pairwise(places)] == [one > other for one, other in pairwise(accepted)]
        expect(page.locator(".dtx-trust")).to_contain_text(answer.sentence)


@pytest.mark.parametrize("method", ["autoregressive", "lookahead", "medusa"])
@pytest.mark.parametrize(("width", "scheme"), [(1280, "dark"), (965, "light"), (390, "dark")])
def test_every_method_has_its_run(open_viewer: OpenViewer, method: str, width: int, scheme: str) -> None:
    trace = make_trace(method, 8, 24, hostile=True)
    page = open_run(open_viewer, trace, width=width, height=720, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if width > 640:
        assert page.evaluate("document.documentElement.scrollHeight") <= 720
    outside = page.evaluate(
        """() => [...document.querySelectorAll(".dtx-run, .dtx-runpart, .dtx-caption, .dtx-strip")].filter((part) => {
          const box = part.getBoundingClientRect();
          return box.width < 40 || box.right > innerWidth + 0.5;
        }).map((part) => part.className)"""
    )
    assert outside == []
    assert page.evaluate("window.__x") is None


def test_a_growing_run_is_counted_anew(open_viewer: OpenViewer) -> None:
    trace = make_trace("eagle2", 9, 16)
    page, server = open_viewer(trace, num_steps=0)
    page.keyboard.press("2")
    expect(page.locator(".dtx-run")).to_contain_text("No step")
    server.num_steps, server.is_done = 9, True
    page.evaluate("changed()")
    page.wait_for_function("window.viewer.store.steps.length === 9")
    counted = (
        '[...document.querySelectorAll("[data-ending] > b")].reduce((sum, each) => sum + Number(each.textContent), 0)'
    )
    drafting = sum(not step.is_cut and not is_rest(step) for step in trace.steps)  # rests are told apart
    page.wait_for_function(f"{counted} === {drafting}")
