"""The whole page in a real Chromium: first paint without a model, a real run on a tiny target, Stop, hostile text.

Every page made by ``open_page`` also fails its test on a console error or a request to another machine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from explorer.config import repo_path
from explorer.errors import PromptError
from explorer.target_presets import TargetPreset
from explorer.trace import from_json, to_json
from explorer.trace_check import check_trace
from tests.browser.app_server import AppServer
from tests.support.fake_runner import FakeRunner
from tests.support.page import TINY, make_recordings
from tests.support.traces import make_trace
from tests.support.words import HOSTILE

pytestmark = pytest.mark.browser

GOLDENS = repo_path("tests", "goldens")
GOLDEN = TargetPreset(
    "golden", "Tiny golden target", str(GOLDENS / "base_a"), drafters={"eagle2": str(GOLDENS / "eagle_bias")}
)
HOSTILE_PROMPT = "<img src=x onerror=window.__x=1> ${window.__x=1} {{x}} ` </textarea><script>window.__x=1</script>"
STEP_MS = 250  # the whole run takes ten seconds: time enough to stop it
expect.set_options(timeout=60_000)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_recordings(tmp_path_factory.mktemp("traces"))


@pytest.fixture(scope="module")
def real(folder: Path) -> Iterator[AppServer]:
    """The page over the real runner, with a tiny target and its real EAGLE drafter."""
    from explorer.runner import Runner

    with AppServer(Runner(), (GOLDEN,), folder) as server:
        yield server


@pytest.fixture(scope="module")
def generous(folder: Path) -> Iterator[AppServer]:
    """The page over the real runner, with two targets and two drafters for the first of them."""
    from explorer.runner import Runner

    other = TargetPreset("other", "Other target", str(GOLDENS / "base_b"), {"medusa": str(GOLDENS / "medusa_b")})
    more = {("golden", "eagle2"): (str(GOLDENS / "eagle_nobias"),)}
    with AppServer(Runner(), (GOLDEN, other), folder, more_drafters=more) as server:
        yield server


@pytest.fixture(scope="module")
def slow(folder: Path) -> Iterator[AppServer]:
    """The page over a fake runner whose steps take STEP_MS."""
    with AppServer(FakeRunner(make_trace("eagle2", 40, 16), step_ms=STEP_MS), (TINY,), folder) as server:
        yield server


def wait_for_trace(page: Page) -> None:
    expect(page.locator(".dtx-tree .dtx-node").first).to_be_visible()


def say(page: Page, text: str | re.Pattern[str], timeout: float = 60_000) -> None:
    expect(page.locator(".status-text")).to_have_text(text, timeout=timeout)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_first_paint_shows_a_recorded_trace(slow: AppServer, open_page: Callable[..., Page], scheme: str) -> None:
    page = open_page(slow.url, color_scheme=scheme)
    wait_for_trace(page)
    say(page, "Recorded run: “p” EAGLE-2 on SmolLM2-135M-Instruct, a made-up CPU, 2026-01-02.")
    expect(page.locator("#summary .js-plotly-plot")).to_be_visible()
    assert page.evaluate("document.body.classList.contains('dark')") == (scheme == "dark")
    assert slow.runner.requests == [], "no model was asked"


def test_the_query_restores_trace_and_step_and_the_address_follows(
    slow: AppServer, open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{slow.url}?trace=medusa-chat&step=4")
    wait_for_trace(page)
    expect(page.locator(".dtx-transport")).to_contain_text("step 4 / 5")
    expect(page.locator("#picker input")).to_have_value("Chat · Medusa")
    page.locator(".dtx").focus()
    page.keyboard.press("Home")
    expect(page).to_have_url(re.compile(r"trace=medusa-chat&step=1"))


def test_presenter_mode_shows_the_viewer_alone_and_stays_in_the_address(
    slow: AppServer, open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{slow.url}?trace=medusa-chat&step=4&present=1")
    wait_for_trace(page)
    expect(page.locator(".dtx.is-presenting")).to_be_visible()
    expect(page.locator(".dtx-transport")).to_contain_text("step 4 / 5")
    for part in ("#top", "#form", "#status", "#files", "#summary"):
        expect(page.locator(part)).to_be_hidden()
    page.wait_for_function("document.querySelector('.dtx').getBoundingClientRect().width === innerWidth")
    assert page.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]") == [1280, 720]
    page.keyboard.press("ArrowDown")
    expect(page.locator(".dtx-caption b")).to_have_text("Start. ")
    assert "present=1" in page.url
    page.keyboard.press("p")
    expect(page.locator("#form")).to_be_visible()
    assert "present" not in page.url


def test_an_unknown_trace_in_the_address_is_a_message(slow: AppServer, open_page: Callable[..., Page]) -> None:
    page = open_page(f"{slow.url}?trace=../../etc/passwd")
    say(page, re.compile("There is no recorded trace"))
    wait_for_trace(page)


def test_another_recording_and_the_keys(slow: AppServer, open_page: Callable[..., Page]) -> None:
    page = open_page(slow.url)
    wait_for_trace(page)
    page.locator("#picker input").click()
    page.get_by_role("option", name="Chat · Medusa").click()
    expect(page.locator(".dtx-transport")).to_contain_text("step 1 / 5")
    page.locator(".dtx").focus()
    for key, step in (("ArrowRight", 2), ("End", 5), ("ArrowLeft", 4), ("Home", 1)):
        page.keyboard.press(key)
        expect(page.locator(".dtx-transport")).to_contain_text(f"step {step} / 5")
    page.locator("#prompt textarea").fill("abc")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".dtx-transport")).to_contain_text("step 1 / 5")


def test_target_and_drafter_are_picked_among_what_is_offered(
    generous: AppServer, open_page: Callable[..., Page]
) -> None:
    page = open_page(generous.url)
    wait_for_trace(page)
    page.get_by_text("Settings", exact=True).click()
    expect(page.locator("#drafter input")).to_have_value("eagle_bias")
    page.locator("#drafter input").click()
    page.get_by_role("option", name="eagle_nobias").click()
    page.locator("#run").click()
    say(page, re.compile(r"^Done: EAGLE-2 .* does not seem to belong to this target"), timeout=180_000)
    page.locator("#target input").click()
    page.get_by_role("option", name="Other target").click()
    expect(page.locator("#drafter input")).to_have_value("medusa_b")  # the one method that drafts there
    shown = page.locator(".method-settings:visible").first  # its own controls in place of those of the method before
    expect(shown).to_contain_text("static tree of candidate ranks")
    page.locator("#run").click()
    say(page, re.compile(r"^Done: Medusa on base_b"), timeout=180_000)


def test_a_real_run_streams_and_ends(real: AppServer, open_page: Callable[..., Page]) -> None:
    page = open_page(real.url)
    wait_for_trace(page)
    page.locator("#prompt textarea").fill("Count the red cats")
    page.locator("#run").click()
    expect(page.locator("#run")).to_be_disabled()
    say(page, re.compile(r"^Done: EAGLE-2 on "), timeout=180_000)
    expect(page.locator("#run")).to_be_enabled()
    expect(page.locator("#stop")).to_be_disabled()
    expect(page.locator("#summary .js-plotly-plot")).to_be_visible()
    assert "trace=" not in page.url, "a visitor's own run has no public address"
    with page.expect_download() as download:
        page.locator("#takeaway button[data-kind=trace]").click()
    trace = from_json(Path(download.value.path()).read_text(encoding="utf-8"))
    check_trace(trace)
    assert trace.prompt.text == "Count the red cats"
    assert trace.baseline is not None
    assert trace.baseline.output_equal
    expect(page.locator(".dtx-transport")).to_contain_text(f"/ {len(trace.steps)}")


def test_mistakes_are_one_message_and_the_page_goes_on(real: AppServer, open_page: Callable[..., Page]) -> None:
    page = open_page(real.url)
    page.locator("#prompt textarea").fill(" ")
    page.locator("#run").click()
    say(page, re.compile("The prompt is empty"))
    expect(page.locator(".status-text")).to_have_attribute("role", "alert")
    page.locator("#prompt textarea").fill("word " * 3000)
    page.locator("#run").click()
    say(page, re.compile("prompt has .* tokens|context", re.IGNORECASE))
    expect(page.locator("#run")).to_be_enabled()


def test_stop_ends_within_a_step_and_the_device_is_free(slow: AppServer, open_page: Callable[..., Page]) -> None:
    page = open_page(slow.url)
    page.locator("#prompt textarea").fill("Go on for long")
    page.locator("#run").click()
    say(page, re.compile("Decoding with EAGLE-2: "))
    page.locator("#stop").click()
    say(page, re.compile(r"^Stopped after \d+ steps"))
    assert not slow.runner.device.locked()
    expect(page.locator("#run")).to_be_enabled()
    page.locator("#run").click()
    say(page, re.compile("Decoding with EAGLE-2: "))
    page.locator("#stop").click()
    say(page, re.compile(r"^Stopped after \d+ steps"))


def test_a_closed_tab_frees_the_device(slow: AppServer, open_page: Callable[..., Page]) -> None:
    page = open_page(slow.url)
    page.locator("#prompt textarea").fill("Nobody waits for this")
    page.locator("#run").click()
    say(page, re.compile("Decoding with EAGLE-2: "))
    closed = slow.runner.num_closed
    page.close()
    slow.wait_until(lambda: slow.runner.num_closed == closed + 1)
    assert not slow.runner.device.locked()


def test_hostile_text_stays_text(folder: Path, open_page: Callable[..., Page]) -> None:
    runner = FakeRunner(make_trace("eagle2", 6, 16, hostile=True))
    with AppServer(runner, (TINY,), folder) as server:
        page = open_page(server.url)
        page.locator("#prompt textarea").fill(HOSTILE_PROMPT)
        page.locator("#run").click()
        say(page, re.compile("^Done"))
        assert runner.requests[0].prompt == HOSTILE_PROMPT
        page.locator(".dtx").focus()
        for _ in range(6):
            page.keyboard.press("ArrowRight")
        assert page.evaluate("window.__x") is None
        assert page.locator("#viewer img, #viewer script").count() == 0
        runner.error = PromptError(HOSTILE[0] + HOSTILE[1])
        page.locator("#run").click()
        say(page, HOSTILE[0] + HOSTILE[1])
        assert page.evaluate("window.__x") is None


def test_an_uploaded_trace_is_drawn_and_a_broken_one_refused(
    slow: AppServer, open_page: Callable[..., Page], tmp_path: Path
) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(to_json(make_trace("medusa", 7, 9)), encoding="utf-8")
    bad.write_text(json.dumps({"schema": "draft-tree-trace", "schema_version": 99}), encoding="utf-8")
    page = open_page(slow.url)
    wait_for_trace(page)
    upload = page.locator("input[type=file]")
    upload.set_input_files(str(good))
    expect(page.locator(".dtx-transport")).to_contain_text("/ 7")
    upload.set_input_files(str(bad))
    say(page, re.compile("schema_version"))
    expect(page.locator(".dtx-transport")).to_contain_text("/ 7")


def test_phone_width_has_no_sideways_scroll(slow: AppServer, open_page: Callable[..., Page]) -> None:
    page = open_page(slow.url, 390, 844)
    wait_for_trace(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_phone_has_the_prompt_over_the_viewer(slow: AppServer, open_page: Callable[..., Page]) -> None:
    page = open_page(slow.url, 390, 844)
    expect(page.locator(".dtx-tree .dtx-node").first).to_be_visible()
    tops = [page.locator(f"#{part}").bounding_box()["y"] for part in ("prompt", "actions", "viewer", "method")]  # type: ignore[index]
    assert tops == sorted(tops)
    assert tops[2] < 844, "and the viewer begins on the first screen"
    page.locator("#toggle-form").click()
    expect(page.locator("#method")).to_be_in_viewport()
