"""The page of another server in a real Chromium: its counts, read again on a click, whatever its models are called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from explorer.service.server_watch import PAUSE_SECONDS, ServerWatch
from tests.browser.app_server import AppServer
from tests.support import server_pages
from tests.support.fake_runner import FakeRunner
from tests.support.page import TINY, make_recordings
from tests.support.traces import make_trace

pytestmark = pytest.mark.browser
HOSTILE = "<img src=x onerror=window.__x=1>${window.__x=1}"


@dataclass
class Remote:
    """The other server, and its clock."""

    page: str = server_pages.VLLM.replace('"llama"', f'"{HOSTILE}"')
    now: float = 0.0


REMOTE = Remote()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    traces: Path = make_recordings(tmp_path_factory.mktemp("traces"))
    watch = ServerWatch("http://u/metrics", fetch=lambda _: REMOTE.page, clock=lambda: REMOTE.now)
    with AppServer(FakeRunner(make_trace("eagle2", 6, 12)), (TINY,), traces, watch=watch) as running:
        yield running


def test_counts_are_shown_and_read_again(server: AppServer, open_page: Callable[..., Page]) -> None:
    page = open_page(server.url)
    page.locator("nav a", has_text="Server").click()
    tables = page.locator(".server-text table")
    expect(tables).to_have_count(1)
    expect(tables.first).to_contain_text(HOSTILE)
    assert page.evaluate("window.__x") is None
    REMOTE.now += PAUSE_SECONDS
    REMOTE.page = REMOTE.page.replace(" 100.0", " 110.0").replace(" 120.0", " 150.0")
    page.get_by_role("button", name="Read again").click()
    expect(tables).to_have_count(2)
    expect(tables.first).to_contain_text("4.00")
    REMOTE.now += PAUSE_SECONDS
    REMOTE.page = "gone"
    page.get_by_role("button", name="Read again").click()
    expect(tables).to_have_count(0)
    expect(page.locator(".server-text")).to_contain_text("http://u/metrics")


def test_four_pages_leave_the_list_of_runs_free(server: AppServer, open_page: Callable[..., Page]) -> None:
    page = open_page(server.url)
    expect(page.locator(".dtx-tree .dtx-node").first).to_be_visible()
    picker, link = page.locator("#picker").bounding_box(), page.locator(".nav-holder a").first.bounding_box()
    assert picker is not None and link is not None
    assert picker["x"] + picker["width"] <= link["x"]
