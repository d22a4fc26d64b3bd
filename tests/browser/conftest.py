"""One Chromium for all browser tests, and pages that fail the test on any error or any request to another machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

from explorer.trace import Trace
from tests.browser.harness import OpenViewer, ViewerServer

CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
LOCAL_SCHEMES = ("data", "blob", "about", "file")


@pytest.fixture(scope="session")
def browser(chromium_path: str) -> Iterator[Browser]:
    """A headless Chromium that talks to nobody by itself."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=chromium_path, args=CHROMIUM_FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """``open_page(url, width, height, expected_error, **context)``: a page that is watched.

    Foreign requests fail the test at its end, and console errors that do not contain ``expected_error``.
    """
    problems: list[str] = []
    contexts = []

    def watch_request(url: str) -> None:
        if urlsplit(url).scheme not in LOCAL_SCHEMES and urlsplit(url).hostname not in ("127.0.0.1", "localhost"):
            problems.append(f"request to {url}")

    def watch_console(line: ConsoleMessage, expected: str | None) -> None:
        if line.type == "error" and not (expected and expected in line.text):
            problems.append(line.text)

    def open_one(
        url: str, width: int = 1280, height: int = 720, expected_error: str | None = None, **options: object
    ) -> Page:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)  # a busy machine is slow, not wrong
        page.on("pageerror", lambda error: problems.append(f"page error: {error}"))
        page.on("console", lambda line: watch_console(line, expected_error))
        page.on("request", lambda request: watch_request(request.url))
        page.goto(url)
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert problems == []


@pytest.fixture
def open_viewer(open_page: Callable[..., Page]) -> Iterator[OpenViewer]:
    """``open_viewer(trace, num_steps=None, **open_page)``: the bare viewer, a live run where a number is given."""
    servers, pages = [], []

    def open_one(trace: Trace, *, num_steps: int | None = None, **options: object) -> tuple[Page, ViewerServer]:
        server = ViewerServer(trace)
        servers.append(server)
        if num_steps is not None:
            server.num_steps, server.is_done = num_steps, False
        page = open_page(server.url, **options)
        pages.append(page)
        page.wait_for_function("window.viewer.store.header !== null")
        return page, server

    yield open_one
    for page in pages:
        page.context.close()  # before its server: an answer still awaited would fail, and that is a console error
    for server in servers:
        server.close()
