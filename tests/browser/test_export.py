"""The exported page, opened from disk in a real Chromium: the same viewer, no network, nothing said on the console."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from explorer import __main__ as command_line
from explorer.trace import write_trace
from explorer.views.insights import run_insight, step_insight
from tests.support.traces import make_trace

pytestmark = pytest.mark.browser

TRACE = make_trace("eagle2", 6, 30, hostile=True)
STATES = "nodes => nodes.map((node) => node.getAttribute('class').match(/is-([a-z]+)/)[1])"
LIGHT, DARK = "rgb(255, 255, 255)", "rgb(20, 23, 28)"


@pytest.fixture
def replay(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    """The page of TRACE, exported at step 3, in a dark offline Chromium; any message or second request fails."""
    write_trace(TRACE, tmp_path / "t.json")
    file = tmp_path / "replay.html"
    line = ["export", str(tmp_path / "t.json"), "--to", "html", "--out", str(file), "--step", "3"]
    assert command_line.main(line) == 0
    messages: list[str] = []
    requests: list[str] = []
    context = browser.new_context(viewport={"width": 1280, "height": 720}, color_scheme="dark", offline=True)
    page = context.new_page()
    page.set_default_timeout(60_000)  # a busy machine is slow, not wrong
    page.on("pageerror", lambda error: messages.append(f"page error: {error}"))
    page.on("console", lambda message: messages.append(f"{message.type}: {message.text}"))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(file.as_uri())
    expect(page.locator(".dtx-stepcount")).to_have_text("step 3 / 6")
    yield page
    context.close()
    assert requests == [file.as_uri()], "the file itself and nothing else"
    assert messages == []


def test_every_step_is_drawn_as_recorded(replay: Page) -> None:
    replay.evaluate("replayViewer.store.set({fold: false})")
    replay.keyboard.press("Home")
    for step in TRACE.steps:
        expect(replay.locator(".dtx-stepcount")).to_have_text(f"step {step.index + 1} / 6")
        drawn = replay.eval_on_selector_all(".dtx-tree .dtx-node", STATES)
        assert Counter(drawn) == Counter(step.tree.state) + Counter(["own"])
        replay.keyboard.press("ArrowRight")
    expect(replay.locator("h1")).to_have_text(TRACE.prompt.text)
    assert replay.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]") == [
        1280,
        720,
    ]


def test_controls_and_address_agree(replay: Page) -> None:
    count = replay.locator(".dtx-stepcount")
    replay.locator(".dtx-prev").click()
    expect(count).to_have_text("step 2 / 6")
    assert replay.evaluate("location.hash") == "#step=2"
    replay.evaluate("location.hash = '#step=5'")
    expect(count).to_have_text("step 5 / 6")
    replay.evaluate("location.hash = '#step=999999'")
    expect(count).to_have_text("step 6 / 6")
    replay.evaluate("location.hash = '#elsewhere'")
    replay.locator(".dtx-next").click()
    expect(count).to_have_text("step 6 / 6")


def test_what_is_said_beside_the_steps_lies_in_the_page(replay: Page) -> None:
    ask = "([kind, ids, step]) => replayViewer && insightInPage(kind, ids ?? [replay.id], step)"
    for step in TRACE.steps:
        answer = replay.evaluate(ask, ["step", None, step.index])
        assert answer["step"] == step.index
        assert answer["micro"] == json.loads(json.dumps(step_insight(TRACE, step.index)["micro"]))
    assert replay.evaluate(ask, ["run", None, 0])["misses"]["num_steps"] == run_insight(TRACE)["misses"]["num_steps"]
    assert len(replay.evaluate(ask, ["race", None, 0])["lanes"]) == 2
    assert replay.evaluate(ask, ["race", ["", "another"], 0]) is None
    tops = json.dumps(step_insight(TRACE, 0)["vocab"])
    known = replay.evaluate("[...replayViewer.store.vocab.keys()]")
    assert set(json.loads(tops)) <= set(known)


def test_hostile_tokens_are_text_in_both_schemes(replay: Page) -> None:
    replay.keyboard.press("g")
    surface = "(part) => getComputedStyle(document.querySelector(part)).backgroundColor"
    for colour in (DARK, LIGHT):
        assert [replay.evaluate(surface, part) for part in (".dtx", "body")] == [colour, colour]
        for step in TRACE.steps:
            replay.evaluate("(step) => replayViewer.store.go(step)", step.index)
        seen = replay.locator(".dtx").inner_text()
        assert "<img src=x onerror=" in seen and "${window.__x=1}" in seen
        assert replay.evaluate("window.__x") is None
        assert replay.locator("img, .dtx script").count() == 0
        replay.locator("#scheme").click()


def test_the_sheet_names_only_the_views_that_are_there(replay: Page) -> None:
    tabs = replay.locator(".dtx-tab[data-view]").filter(visible=True)
    replay.keyboard.press("?")
    keys = " ".join(replay.locator(".dtx-keys dt").all_text_contents()).split()
    assert [key for key in keys if key.isdigit()] == [str(number + 1) for number in range(tabs.count())]


def test_the_address_asks_for_presenter_mode(replay: Page) -> None:
    replay.evaluate("location.hash = '#step=5&present'")
    expect(replay.locator(".dtx-stepcount")).to_have_text("step 5 / 6")
    expect(replay.locator(".dtx.is-presenting")).to_be_visible()
    expect(replay.locator("h1")).to_be_hidden()
    assert replay.evaluate("location.hash") == "#step=5&present"
    assert replay.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]") == [
        1280,
        720,
    ]
    replay.keyboard.press("p")
    assert replay.evaluate("location.hash") == "#step=5"
