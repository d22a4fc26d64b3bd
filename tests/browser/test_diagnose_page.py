"""The page that diagnoses, in a real Chromium: recorded runs first, own prompts as text, a click opens the worst step.

Every page made by ``open_page`` also fails its test on a console error or a request to another machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from explorer.ui.handlers import QUEUE_FULL
from tests.browser.app_server import AppServer
from tests.support.fake_runner import FakeRunner
from tests.support.page import TINY, make_recordings
from tests.support.traces import make_trace

pytestmark = pytest.mark.browser

HOSTILE_PROMPT = "<img src=x onerror=window.__x=1> ${window.__x=1} {{x}} ` <script>window.__x=1</script>"
expect.set_options(timeout=60_000)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    runner = FakeRunner(make_trace("eagle2", 12, 16, hostile=True), step_ms=250)
    with AppServer(runner, (TINY,), make_recordings(tmp_path_factory.mktemp("traces"))) as running:
        yield running


def rows(page: Page) -> list[str]:
    return page.locator("#report .diagnosis-part").first.locator("tbody tr").all_inner_texts()


def test_recorded_runs_are_ranked_at_once_and_a_click_opens_the_worst_step(
    server: AppServer, open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{server.url}diagnose")
    expect(page.locator("#report h2")).to_have_text("The recorded runs: 2 runs")
    assert len(rows(page)) == 2
    assert server.runner.requests == [], "no model was asked"
    button = page.locator("#report .diagnosis-open").first
    name, step = button.get_attribute("data-run"), int(button.get_attribute("data-step") or "")
    button.click()
    expect(page.locator(".dtx-transport")).to_contain_text(f"step {step + 1} / ")
    expect(page).to_have_url(re.compile(f"/diagnose\\?trace={name}&step={step + 1}$"))
    expect(page.locator("#miss-plot .js-plotly-plot")).to_be_visible()
    expect(page.locator("#reliability-plot .js-plotly-plot")).to_be_visible()
    page.locator("#close-run").click()
    expect(page.locator("#viewer")).to_be_hidden()
    expect(page).to_have_url(re.compile("/diagnose$"))


def test_a_phone_breaks_no_word_of_the_tables(server: AppServer, open_page: Callable[..., Page]) -> None:
    page = open_page(f"{server.url}diagnose", width=390, height=844)
    table = page.locator("#report .diagnosis-scroll table").first
    expect(table).to_be_visible()
    frame = page.locator("#report .diagnosis-scroll").first
    assert frame.evaluate("(e) => e.scrollWidth") >= 760 > frame.evaluate("(e) => e.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_own_prompts_are_ranked_as_text_and_can_be_stopped(server: AppServer, open_page: Callable[..., Page]) -> None:
    page = open_page(f"{server.url}diagnose")
    expect(page.locator("#report h2")).to_have_text("The recorded runs: 2 runs")
    page.locator("#prompts textarea").fill(f"{HOSTILE_PROMPT}\nTwo.\nThree.")
    page.locator("#diagnose").click()
    expect(page.locator("#report h2")).to_have_text(re.compile("Your prompts: [12] of 3 runs"))
    page.locator("#stop").click()
    expect(page.locator(".status-text")).to_contain_text("Stopped.")
    expect(page.locator("#diagnose")).to_be_enabled()
    server.wait_until(lambda: not server.runner.device.locked())
    assert HOSTILE_PROMPT[:40] in rows(page)[0]
    assert page.evaluate("window.__x") is None
    page.locator("#report .diagnosis-open").first.click()
    expect(page.locator(".dtx-transport")).to_contain_text("step ")
    assert page.url.endswith("/diagnose"), "the address says nothing of a visitor's own run"
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


@pytest.mark.parametrize(("path", "button"), [("", "#run"), ("diagnose", "#diagnose")])
def test_a_full_queue_is_said_in_the_status_line(
    server: AppServer, open_page: Callable[..., Page], path: str, button: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = open_page(f"{server.url}{path}", expected_error="503")  # how Gradio says that its queue is full
    expect(page.locator("#report h2" if path else ".dtx-tree .dtx-node").first).to_be_visible()
    page.locator("#prompts textarea" if path else "#prompt textarea").fill("Say hello.")
    monkeypatch.setattr(server.queue, "max_size", 0)
    page.locator(button).click()
    expect(page.locator(".status-text")).to_have_text(QUEUE_FULL)
    expect(page.locator(button)).to_be_enabled()


def test_the_pages_lead_to_each_other(server: AppServer, open_page: Callable[..., Page]) -> None:
    page = open_page(server.url)
    page.get_by_role("link", name="Diagnose").click()
    expect(page.locator("#report h2")).to_be_visible()
    page.get_by_role("link", name="Explore").click()
    expect(page.locator(".dtx-tree .dtx-node").first).to_be_visible()
