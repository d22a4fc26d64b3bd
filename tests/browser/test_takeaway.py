"""Everything that can be taken away from the page arrives and is what it says; a copied link brings it back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import networkx as nx
import pytest
from playwright.sync_api import Page, expect

from explorer.trace import from_json
from tests.browser.app_server import AppServer
from tests.support.fake_runner import FakeRunner
from tests.support.page import LARGE, TINY, make_recordings
from tests.support.traces import make_trace

pytestmark = pytest.mark.browser

RUN = make_trace("eagle2", 5, 16, hostile=True)
expect.set_options(timeout=60_000)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    """The page over a fake runner."""
    folder = make_recordings(tmp_path_factory.mktemp("traces"))
    with AppServer(FakeRunner(RUN), (TINY, LARGE), folder) as running:
        yield running


def take(page: Page, kind: str, folder: Path) -> Path:
    """Press a button and keep the file under the name that the browser was given."""
    with page.expect_download() as download:
        page.locator(f"#takeaway button[data-kind={kind}]").click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    expect(page.locator(".takeaway-told")).to_have_text(f"Saved {path.name}.")
    return path


def copy_link(page: Page) -> str:
    page.locator("#takeaway button[data-kind=link]").click()
    expect(page.locator(".takeaway-told")).to_have_text("Link copied.")
    link: str = page.evaluate("navigator.clipboard.readText()")
    return link


def open_step(open_page: Callable[..., Page], url: str, **options: object) -> Page:
    page = open_page(url, permissions=["clipboard-read", "clipboard-write"], **options)
    expect(page.locator(".dtx-tree .dtx-node").first).to_be_visible()
    return page


def test_every_file_arrives_and_is_what_its_name_says(
    server: AppServer, open_page: Callable[..., Page], tmp_path: Path
) -> None:
    page = open_step(open_page, f"{server.url}?trace=eagle2-code&step=4", color_scheme="dark")
    expect(page.locator(".dtx-stepcount")).to_have_text("step 4 / 12")
    files = {
        kind: take(page, kind, tmp_path) for kind in ("trace", "html", "perfetto", "stats", "svg", "png", "graphml")
    }
    assert [path.name for path in files.values()] == [
        "eagle2-code.json",
        "eagle2-code.html",
        "eagle2-code.perfetto.json",
        "eagle2-code.stats.json",
        "eagle2-code-step4.svg",
        "eagle2-code-step4.png",
        "eagle2-code-step4.graphml",
    ]
    assert len(from_json(files["trace"].read_text("utf-8")).steps) == 12
    assert json.loads(files["perfetto"].read_text("utf-8"))["traceEvents"]
    assert json.loads(files["stats"].read_text("utf-8"))["stats"]["num_steps"] > 0
    drawing = ElementTree.fromstring(files["svg"].read_text("utf-8"))
    picture = files["png"].read_bytes()
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    width = int.from_bytes(picture[16:20], "big")
    assert width == pytest.approx(2 * float(drawing.attrib["width"]), abs=2)
    assert nx.read_graphml(files["graphml"]).graph["step"] == 4
    replay = open_page(files["html"].as_uri())
    expect(replay.locator(".dtx-stepcount")).to_have_text("step 4 / 12")


def test_a_link_to_a_recorded_step_brings_it_back(server: AppServer, open_page: Callable[..., Page]) -> None:
    page = open_step(open_page, f"{server.url}?trace=medusa-chat&__theme=dark")
    expect(page.locator(".dtx-stepcount")).to_have_text("step 1 / 5")
    page.locator(".dtx").focus()
    page.keyboard.press("End")
    link = copy_link(page)
    assert link == f"{server.url}?trace=medusa-chat&step=5"
    again = open_step(open_page, link)
    expect(again.locator(".dtx-stepcount")).to_have_text("step 5 / 5")


def test_the_first_recording_opens_at_the_step_of_its_link(server: AppServer, open_page: Callable[..., Page]) -> None:
    page = open_step(open_page, f"{server.url}?trace=eagle2-code&step=10")
    expect(page.locator(".dtx-stepcount")).to_have_text("step 10 / 12")
    expect(page).to_have_url(re.compile(r"trace=eagle2-code&step=10"))


def test_a_link_to_a_run_of_ones_own_restores_the_form(server: AppServer, open_page: Callable[..., Page]) -> None:
    page = open_step(open_page, f"{server.url}?set.total_tokens=7&seed=5&max_new_tokens=9&system=Be%20brief")
    expect(page.locator(".status-text")).to_have_text(re.compile("^The form was filled from the link: press Run"))
    page.locator("#prompt textarea").fill("Say <b>hello</b> & 100 %")
    page.locator("#run").click()
    expect(page.locator(".status-text")).to_have_text(re.compile("^Done"))
    assert server.runner.requests[-1].settings["total_tokens"] == "7"
    assert server.runner.requests[-1].sampling.seed == 5
    assert "set.total_tokens" not in page.url, "a run of one's own has no address"
    link = copy_link(page)
    again = open_step(open_page, link)
    expect(again.locator(".status-text")).to_have_text(re.compile("^The form was filled from the link"))
    expect(again.locator("#prompt textarea")).to_have_value("Say <b>hello</b> & 100 %")
    again.get_by_text("Settings", exact=True).click()
    expect(again.locator("#system textarea")).to_have_value("Be brief")
    expect(again.locator("#max-new-tokens input[type=number]")).to_have_value("9")
    assert len(server.runner.requests) == 1, "a link never runs by itself"


def test_a_link_to_another_target_brings_its_methods(server: AppServer, open_page: Callable[..., Page]) -> None:
    page = open_step(open_page, f"{server.url}?prompt=Hi&target=large&method=medusa")
    expect(page.locator("#prompt textarea")).to_have_value("Hi")
    expect(page.locator("#method input:checked")).to_have_value("medusa")
    page.get_by_text("Settings", exact=True).click()
    expect(page.locator("#target input")).to_have_value("Large target")
    expect(page.locator("#drafter input")).to_have_value("a/b")


def test_a_link_that_is_not_allowed_is_one_sentence(server: AppServer, open_page: Callable[..., Page]) -> None:
    page = open_step(open_page, f"{server.url}?prompt=Hi&target=%3Cimg%20src=x%20onerror=window.__x=1%3E")
    expect(page.locator(".status-text")).to_have_text(
        re.compile("^This link cannot be used: this server does not offer")
    )
    expect(page.locator("#prompt textarea")).not_to_have_value("Hi")
    assert page.evaluate("window.__x") is None


def test_a_mistake_is_told_to_the_row(server: AppServer, open_page: Callable[..., Page]) -> None:
    page = open_step(open_page, server.url)
    page.evaluate(
        """() => document.querySelector('#viewer').dispatchEvent(new CustomEvent('explorer-take',
             {detail: {kind: 'nonsense', tell: (text, isError) => { window.told = [text, isError]; }}}))"""
    )
    page.wait_for_function("window.told")
    text, is_error = page.evaluate("window.told")
    assert is_error
    assert "kind is one of" in text


def test_the_row_fits_a_phone(server: AppServer, open_page: Callable[..., Page]) -> None:
    page = open_step(open_page, server.url, width=390, height=800)
    for button in page.locator("#takeaway button").all():
        box = button.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
