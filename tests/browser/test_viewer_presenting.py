"""Quiz and presenter mode in a real Chromium: asked before the pass, judged by the record, readable from afar."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from explorer.microsteps import micro_steps
from explorer.quiz import quiz_of
from explorer.trace import Step, Trace
from tests.browser.harness import OpenViewer, at, go
from tests.support.traces import make_trace

pytestmark = pytest.mark.browser

ROW_PX = 24  # least height of a node's row on a projector
TEXT_PX = 14  # least text in the tree there


def wait_for_question(page: Page, trace: Trace, step: int) -> None:
    kinds = [moment.kind for moment in micro_steps(trace, trace.steps[step])]
    page.wait_for_function(f"viewer.store.at === {step} && viewer.store.moment === {kinds.index('verify') - 1}")
    expect(page.locator(".dtx-caption b")).to_have_text("Quiz. ")


def verdict(trace: Trace, step: Step, node: int) -> tuple[bool, str]:
    quiz = quiz_of(trace, step)
    assert quiz is not None
    return quiz.verdicts[quiz.verdict[node]]


def hidden_bars(page: Page) -> set[int]:
    """The steps whose bars over the slider are hidden."""
    return set(
        page.eval_on_selector_all(".dtx-sparkbar.is-hidden", "bars => bars.map((bar) => Number(bar.dataset.bar))")
    )


def walk_to_the_answer(page: Page, trace: Trace, step: Step) -> None:
    """Down from the question: pass and walk come first, and the score waits for the answer."""
    kinds = [moment.kind for moment in micro_steps(trace, step)]
    score = page.locator(".dtx-score").inner_text()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".dtx-moment[aria-current]")).to_have_attribute("data-part", "verify")
    expect(page.locator(".dtx-score")).to_have_text(score)
    for _ in range(kinds.index("next") - kinds.index("verify")):
        page.keyboard.press("ArrowDown")


def test_a_guess_is_asked_for_judged_and_counted(open_viewer: OpenViewer) -> None:
    trace = make_trace("eagle2", 6, 10, hostile=True)
    page, _ = open_viewer(trace)
    page.evaluate("viewer.store.set({fold: false})")
    page.keyboard.press("q")
    wait_for_question(page, trace, 0)
    quiz = quiz_of(trace, trace.steps[0])
    assert quiz is not None
    expect(page.locator(".dtx-caption")).to_contain_text(quiz.question)
    states = page.eval_on_selector_all(".dtx-tree .dtx-node", "nodes => nodes.map((n) => n.getAttribute('class'))")
    assert not any("accepted" in state or "rejected" in state or "is-own" in state for state in states)
    assert page.locator(".dtx-segment.is-current .dtx-token:visible").count() == 0
    assert hidden_bars(page) == set(range(6)), "nor do the bars over the slider tell"
    right = 0
    for number, step in enumerate((trace.steps[0], trace.steps[1], trace.steps[2]), 1):
        guess = 1 if number == 2 else step.path[-1]
        page.locator(f'.dtx-tree [data-node="{guess}"]').click()
        expect(page.locator(".dtx-caption small")).to_contain_text("your guess")
        page.keyboard.press(" ") if number == 1 else walk_to_the_answer(page, trace, step)
        is_right, text = verdict(trace, step, guess)
        right += is_right
        expect(page.locator(".dtx-caption b")).to_have_text(text + " ")
        expect(page.locator(".dtx-score")).to_have_text(f"{right} of {number} right")
        expect(page.locator(".dtx-node.is-guess")).to_have_attribute("data-node", str(guess))
        expect(page.locator(".dtx-tree .is-own.dtx-node")).to_have_count(1)
        expect(page.locator(".dtx-spoken")).to_contain_text(text)
        if number < 3:
            assert hidden_bars(page) == set(range(number, 6))
            page.locator(".dtx-quiz").click()
            wait_for_question(page, trace, number)
    assert trace.steps[3].num_drafted == 0
    page.keyboard.press("q")
    wait_for_question(page, trace, 4)
    page.keyboard.press("q")
    expect(page.locator(".dtx-caption b")).to_have_text("Here it is. ")
    expect(page.locator(".dtx-score")).to_have_text(f"{right} of 3 right")
    page.keyboard.press("Escape")
    assert page.evaluate("viewer.store.quiz") is None
    assert page.evaluate("window.__x") is None


def test_slow_playing_freezes_at_the_question(open_viewer: OpenViewer) -> None:
    trace = make_trace("eagle2", 3, 8)
    page, _ = open_viewer(trace)
    page.keyboard.press("q")
    wait_for_question(page, trace, 0)
    page.evaluate("viewer.store.set({slow: true, speed: 60, moment: 0, playing: true})")
    page.wait_for_function("!viewer.store.playing")
    wait_for_question(page, trace, 0)
    page.locator(".dtx-quiz").click()
    page.evaluate("viewer.store.set({playing: true})")
    page.wait_for_function("!viewer.store.playing && viewer.store.at === 1")
    wait_for_question(page, trace, 1)


def test_a_run_without_drafts_has_no_question(open_viewer: OpenViewer) -> None:
    page, _ = open_viewer(make_trace("autoregressive", 3, 1))
    page.keyboard.press("q")
    page.wait_for_timeout(100)
    assert page.evaluate("[viewer.store.quiz, viewer.store.moment]") == [None, None]


def present(page: Page) -> None:
    page.keyboard.press("p")
    expect(page.locator(".dtx.is-presenting")).to_have_count(1)
    page.wait_for_timeout(100)  # sizes follow the layout


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_presenter_mode_is_large_and_nothing_is_cut_off(open_viewer: OpenViewer, scheme: str) -> None:
    trace = make_trace("eagle2", 4, 60)
    page, _ = open_viewer(trace, color_scheme=scheme)
    present(page)
    for moment in (None, *range(len(micro_steps(trace, trace.steps[0])))):
        page.evaluate("(moment) => viewer.store.set({moment})", moment)
        page.wait_for_timeout(20)
        heights, fonts = page.evaluate(
            """[[...document.querySelectorAll(".dtx-tree .dtx-hit")].map((hit) => hit.getBoundingClientRect().height),
                [...document.querySelectorAll(".dtx-tree .dtx-label")].map((label) =>
                  parseFloat(getComputedStyle(label).fontSize))]"""
        )
        assert min(heights) >= ROW_PX
        assert min(fonts) >= TEXT_PX
        caption = "document.querySelector('.dtx-caption')"
        assert page.evaluate(f"parseFloat(getComputedStyle({caption}).fontSize)") >= 18
        assert page.evaluate(f"{caption}.scrollHeight - {caption}.clientHeight") <= 1
        canvas = "document.querySelector('.dtx-canvas')"
        assert page.evaluate(f"{canvas}.scrollHeight - {canvas}.clientHeight") <= 1
    assert page.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]") == [1280, 720]
    assert page.locator(".dtx-card").is_hidden()
    assert page.locator(".dtx-fact:visible").count() == 2


def test_presenter_mode_folds_what_no_test_reached_until_it_is_opened(open_viewer: OpenViewer) -> None:
    trace = make_trace("eagle2", 4, 30)
    page, _ = open_viewer(trace)
    present(page)
    step = trace.steps[0]
    unreached = page.locator(".dtx-tree .dtx-node.is-unreachable")
    expect(unreached).to_have_count(0)
    assert step.tree.state.count("unreachable") > 0
    page.locator(".dtx-fold").first.click()
    assert unreached.count() > 0
    page.keyboard.press("b")
    page.keyboard.press("b")
    expect(page.locator(".dtx-fold").first).to_be_visible()
    page.keyboard.press("p")
    expect(page.locator(".dtx-card")).to_be_visible()


def test_a_remote_control_moves_by_moments(open_viewer: OpenViewer) -> None:
    page, _ = open_viewer(make_trace("eagle2", 4, 10))
    page.keyboard.press("PageDown")
    page.wait_for_timeout(100)
    assert page.evaluate("viewer.store.moment") is None, "outside presenter mode the page scrolls"
    present(page)
    page.keyboard.press("PageDown")
    page.wait_for_function("viewer.store.moment === 0")
    page.keyboard.press("PageDown")
    page.wait_for_function("viewer.store.moment === 1")
    page.keyboard.press("PageUp")
    page.wait_for_function("viewer.store.moment === 0")
    assert at(page) == 0


def test_the_page_is_told_of_presenter_mode(open_viewer: OpenViewer) -> None:
    page, _ = open_viewer(make_trace("eagle2", 3, 10))
    go(page, 1)
    page.locator(".dtx-present").click()
    page.locator(".dtx-present").click()
    told = page.evaluate("events.filter(([name]) => name === 'present_change')")
    assert told == [["present_change", {"on": True}], ["present_change", {"on": False}]]


@pytest.mark.parametrize("width", [390, 820])
def test_moments_and_quiz_fit_a_small_screen(open_viewer: OpenViewer, width: int) -> None:
    trace = make_trace("eagle2", 3, 20, hostile=True)
    page, _ = open_viewer(trace, width=width, height=800)
    page.keyboard.press("q")
    wait_for_question(page, trace, 0)
    page.wait_for_timeout(50)
    for moment in range(len(micro_steps(trace, trace.steps[0]))):
        page.evaluate("(moment) => viewer.store.set({moment})", moment)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        caption = "document.querySelector('.dtx-caption')"
        assert page.evaluate(f"{caption}.scrollHeight - {caption}.clientHeight") <= 1, moment
    outside = page.evaluate(
        """[...document.querySelectorAll(".dtx-moments button, .dtx-score")].filter((part) => {
          const box = part.getBoundingClientRect();
          return box.width && (box.right > innerWidth + 0.5 || box.left < 0);
        }).length"""
    )
    assert outside == 0
