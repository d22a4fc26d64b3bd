"""Several runs on the whole page: recorded ones at once, the visitor's own by the Race button, an uploaded one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from explorer.config import repo_path
from explorer.race import race
from explorer.target_presets import load_targets
from explorer.trace import to_json
from tests.browser.app_server import AppServer
from tests.support.fake_runner import FakeRunner
from tests.support.recorded import recorded
from tests.support.traces import make_trace

pytestmark = pytest.mark.browser
expect.set_options(timeout=60_000)
STEP_MS = 100


@pytest.fixture(scope="module")
def server() -> Iterator[AppServer]:
    """The page on the recorded traces, with a fake runner whose runs take two seconds."""
    runner = FakeRunner(make_trace("eagle2", 20, 12), step_ms=STEP_MS)
    with AppServer(runner, (load_targets()["smollm2"],), repo_path("assets", "traces")) as running:
        yield running


def test_a_stranger_sees_a_race_of_recorded_runs_at_once(server: AppServer, open_page: Callable[..., Page]) -> None:
    page = open_page(f"{server.url}?trace=eagle2-maths", color_scheme="dark")
    expect(page.locator(".dtx-tree .dtx-node").first).to_be_visible()
    page.locator(".dtx").focus()
    page.keyboard.press("r")
    expect(page.locator("[data-lane]")).to_have_count(3)
    found = race([recorded("eagle2-maths"), recorded("medusa-maths")])
    assert page.locator(".dtx-lanename b").all_inner_texts() == [lane.label for lane in found.lanes]
    assert page.locator(".dtx-racecall").inner_text() == " ".join(found.sentences)
    page.keyboard.press("4")
    expect(page.locator(".dtx-smalltree")).to_have_count(2)
    page.keyboard.press("5")
    expect(page.locator(".dtx-gain").first).to_be_visible()
    expect(page.locator(".dtx-diffwords")).to_contain_text("Both write the same 128 tokens.")
    page.keyboard.press("1")
    expect(page.locator(".dtx-tree .dtx-node").first).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_summary_of_seven_lanes_is_whole_on_a_laptop(
    server: AppServer, open_page: Callable[..., Page], scheme: str
) -> None:
    page = open_page(f"{server.url}?trace=eagle2-code&view=race", color_scheme=scheme)
    expect(page.locator("[data-lane]")).to_have_count(7)
    ends = [
        page.locator(part).evaluate("(e) => e.getBoundingClientRect().bottom")
        for part in (".dtx-racecall", ".dtx-racewords")
    ]
    assert ends[0] <= ends[1]


def test_run_race_and_stop_are_in_sight(server: AppServer, open_page: Callable[..., Page]) -> None:
    page = open_page(server.url)
    expect(page.locator(".dtx-tree .dtx-node").first).to_be_visible()
    for name in ("run", "race", "stop"):
        box = page.locator(f"#{name}").bounding_box()
        assert box is not None
        assert box["y"] + box["height"] < 720
        assert box["width"] >= 60


def test_the_race_button_runs_each_and_ends_in_the_race(server: AppServer, open_page: Callable[..., Page]) -> None:
    page = open_page(server.url)
    expect(page.locator(".dtx-tree .dtx-node").first).to_be_visible()
    before = len(server.runner.requests)
    page.locator("#prompt textarea").fill("Race on this")
    page.get_by_text("Race with", exact=True).click()
    page.locator("#rivals").get_by_label("Draft model").uncheck()
    page.locator("#race").click()
    expect(page.locator("#race")).to_be_disabled()
    expect(page.locator(".status-text")).to_have_text(re.compile("^Race, 1 of 2: "))
    expect(page.locator(".status-text")).to_have_text("Raced: EAGLE-2 and Medusa.")
    assert [request.method for request in server.runner.requests[before:]] == ["eagle2", "medusa"]
    expect(page.locator("[data-lane]")).to_have_count(3)
    expect(page.locator('[data-view="race"]')).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".dtx-choice")).to_have_count(1)
    expect(page.locator(".dtx-choice")).to_contain_text("your run")
    expect(page.locator("#race")).to_be_enabled()
    expect(page.locator("#stop")).to_be_disabled()
    assert "trace=" not in page.url, "a visitor's own runs have no public address"


def test_stop_ends_a_race(server: AppServer, open_page: Callable[..., Page], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.runner, "step_ms", 10 * STEP_MS)  # a busy machine's click must meet the first run
    page = open_page(server.url)
    before = len(server.runner.requests)
    page.locator("#prompt textarea").fill("Not for long")
    page.locator("#race").click()
    expect(page.locator(".status-text")).to_have_text(re.compile("^Race, 1 of 3: Decoding with"))
    page.locator("#stop").click()
    expect(page.locator(".status-text")).to_have_text(re.compile("^Stopped after"))
    assert len(server.runner.requests) == before + 1, "the others did not start"
    assert not server.runner.device.locked()
    expect(page.locator("#race")).to_be_enabled()


def test_an_uploaded_trace_can_be_the_other_one(
    server: AppServer, open_page: Callable[..., Page], tmp_path: Path
) -> None:
    trace = recorded("medusa-chat")
    mine = tmp_path / "mine.json"
    mine.write_text(to_json(replace(trace, settings=trace.settings | {"total_tokens": 7})), encoding="utf-8")
    page = open_page(f"{server.url}?trace=eagle2-chat")
    expect(page.locator(".dtx-tree .dtx-node").first).to_be_visible()
    page.locator("input[type=file]").set_input_files(str(mine))
    expect(page.locator(".dtx-title strong")).to_have_text("Medusa")
    page.locator("#picker input").click()
    page.get_by_role("option", name="Chat · EAGLE-2", exact=True).click()
    expect(page.locator(".dtx-title strong")).to_have_text("EAGLE-2")
    page.locator('[data-view="diff"]').click()
    expect(page.locator(".dtx-rival option").first).to_contain_text("Medusa (total_tokens 7) · your run")
    expect(page.locator(".dtx-gain").first).to_be_visible()
