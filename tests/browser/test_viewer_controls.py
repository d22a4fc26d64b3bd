"""The step viewer's controls in a real Chromium: keys, slider, strip, playing, and following a live run."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from explorer.ui.viewer_component import STEPS_AT_ONCE
from tests.browser.harness import OpenViewer, at
from tests.support.traces import make_trace

pytestmark = pytest.mark.browser


def test_keys(open_viewer: OpenViewer) -> None:
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
    press("2")
    expect(page.locator(".dtx-run")).to_be_visible()
    press("1")
    expect(page.locator(".dtx-main")).to_be_visible()
    press("w")
    assert page.evaluate("viewer.store.wide") is True
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


def test_every_key_in_the_help_sheet_is_one_that_acts(open_viewer: OpenViewer) -> None:
    page, _ = open_viewer(make_trace("eagle2", 3, 10))
    shown = page.locator(".dtx-help .dtx-keys dt").all_text_contents()
    assert shown == [
        *("←", "→", "Shift + ← →", "↑ ↓", "Tab, ↑ ↓", "Home", "End", "Space", "s", "[  ]"),
        *("1 … 5", "r", "w", "m", "g", "b", "q", "p", "f", "Esc", "?"),
    ]


def test_space_plays_and_pauses_and_stops_at_the_end(open_viewer: OpenViewer) -> None:
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


def test_keys_are_left_to_a_text_field(open_viewer: OpenViewer) -> None:
    page, _ = open_viewer(make_trace("eagle2", 5, 10))
    page.evaluate("document.body.append(Object.assign(document.createElement('textarea'), {id: 'prompt'}))")
    page.locator("#prompt").fill("")
    page.locator("#prompt").press("m")
    page.locator("#prompt").press("End")
    assert page.locator("#prompt").input_value() == "m"
    assert (at(page), page.evaluate("viewer.store.order")) == (0, "tree")


def test_arrow_keys_walk_the_tree_while_it_has_the_focus(open_viewer: OpenViewer) -> None:
    page, _ = open_viewer(make_trace("eagle2", 3, 16))
    page.locator('.dtx-tree [data-node="0"]').focus()
    page.keyboard.press("ArrowDown")
    focused = page.evaluate("Number(document.activeElement.dataset.node)")
    assert focused != 0
    assert page.evaluate("viewer.store.hover") == focused
    expect(page.locator(".dtx-spoken")).to_contain_text("Sees")
    page.keyboard.press("Enter")
    assert page.evaluate("viewer.store.pin") == focused


def test_scrubber_and_strip_lead_to_a_step(open_viewer: OpenViewer) -> None:
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


def test_a_live_run_is_followed_until_the_reader_moves(open_viewer: OpenViewer) -> None:
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


def test_a_long_run_comes_in_parts_and_stands_where_it_was_asked_to(open_viewer: OpenViewer) -> None:
    page, server = open_viewer(make_trace("eagle2", 2 * STEPS_AT_ONCE + 5, 6))
    page.wait_for_function("viewer.store.done")
    assert server.asked == [0, STEPS_AT_ONCE, 2 * STEPS_AT_ONCE]
    assert page.locator("[data-step]").count() == 2 * STEPS_AT_ONCE + 5
    assert at(page) == 0
    far = STEPS_AT_ONCE + 10
    page.evaluate("(step) => { handle = {id: 'other', step}; changed(); }", far)
    page.wait_for_function("viewer.store.id === 'other' && viewer.store.done")
    assert at(page) == far
    assert server.asked[3:] == [0, far + 1]


def test_an_error_is_said_and_the_next_answer_still_shown(open_viewer: OpenViewer) -> None:
    page, server = open_viewer(make_trace("eagle2", 4, 10), num_steps=0)
    server.error = "This run is no longer kept on the server."
    page.evaluate("changed()")
    expect(page.locator(".dtx-empty")).to_have_text(server.error)
    lost, server.error, server.num_steps = server.error, None, 3
    page.evaluate("changed()")
    expect(page.locator(".dtx-stepcount")).to_have_text("step 3 / 3")
    server.error = lost
    page.evaluate("changed()")
    expect(page.locator(".dtx-caption")).to_have_text(lost)


def test_another_run_replaces_the_one_on_screen_and_none_is_said(open_viewer: OpenViewer) -> None:
    page, server = open_viewer(make_trace("eagle2", 6, 20))
    page.keyboard.press("End")
    page.evaluate("handle = {id: 'other', step: 2}; changed()")
    expect(page.locator(".dtx-stepcount")).to_have_text("step 3 / 6")
    assert page.locator("[data-step]").count() == 6
    assert server.asked == [0, 0]
    page.evaluate("handle = {}; changed()")
    expect(page.locator(".dtx-empty")).to_have_text("No run is open.")
    assert page.locator("[data-step]").count() == 0


def test_reduced_motion_is_respected(open_viewer: OpenViewer) -> None:
    page, _ = open_viewer(make_trace("eagle2", 3, 12), reduced_motion="reduce")
    page.keyboard.press("m")
    assert page.evaluate("document.getAnimations().length") == 0
    assert page.evaluate("getComputedStyle(document.querySelector('.dtx-tree .dtx-node')).transitionDuration") == "0s"
