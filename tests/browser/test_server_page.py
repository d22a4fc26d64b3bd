"""The page of another server's counts, in a real Chromium: its tables appear, are read again, and name no markup."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pytest
from playwright.sync_api import Page, expect

from explorer.service.server_watch import ServerWatch
from tests.browser.app_server import AppServer
from tests.support import server_pages
from tests.support.fake_runner import FakeRunner
from tests.support.page import TINY, make_recordings
from tests.support.traces import make_trace

pytestmark = pytest.mark.browser
expect.set_options(timeout=60_000)
HOSTILE_MODEL = "<img src=x onerror=window.__x=1>"
PAGES = ["nothing", server_pages.VLLM.replace('"llama"', f'"{HOSTILE_MODEL}"')]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    """The first reading fails, later ones are vLLM's page; between two looks ten seconds pass."""
    readings = iter(PAGES)
    watch = ServerWatch("http://u/metrics", fetch=lambda _: next(readings, PAGES[-1]), clock=count(0.0, 10.0).__next__)
    traces = make_recordings(tmp_path_factory.mktemp("traces"))
    with AppServer(FakeRunner(make_trace("eagle2", 6, 12)), (TINY,), traces, watch=watch) as running:
        yield running


def test_an_error_and_then_the_tables_are_written(server: AppServer, open_page: Callable[..., Page]) -> None:
    page = open_page(f"{server.url}server")
    shown = page.locator("#server-tables")
    expect(shown).to_contain_text("http://u/metrics")
    expect(shown.locator("table")).to_have_count(0)
    page.locator("#server-again").click()
    expect(shown.locator("tr", has_text="engine 0").first).to_contain_text(HOSTILE_MODEL)
    assert page.evaluate("window.__x") is None


def test_four_pages_leave_the_list_of_runs_free(server: AppServer, open_page: Callable[..., Page]) -> None:
    page = open_page(server.url)
    expect(page.locator(".dtx-tree .dtx-node").first).to_be_visible()
    picker, link = page.locator("#picker").bounding_box(), page.locator(".nav-holder a").first.bounding_box()
    assert picker is not None and link is not None
    assert picker["x"] + picker["width"] <= link["x"]
