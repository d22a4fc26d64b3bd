"""The laboratory in a real Chromium: every experiment with drawn points, reached from the first page and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from explorer.lab_records import EXPERIMENTS, write_record
from tests.browser.app_server import AppServer
from tests.support.fake_runner import FakeRunner
from tests.support.lab import make_record
from tests.support.page import TINY, make_recordings
from tests.support.traces import make_trace

pytestmark = pytest.mark.browser
expect.set_options(timeout=60_000)
HOSTILE_TARGET = "<img src=x onerror=window.__x=1>${window.__x=1}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    folder = tmp_path_factory.mktemp("laboratory")
    for name in EXPERIMENTS:
        write_record(make_record(name, target=HOSTILE_TARGET), folder / f"{name}.json")
    traces: Path = make_recordings(tmp_path_factory.mktemp("traces"))
    with AppServer(FakeRunner(make_trace("eagle2", 6, 12)), (TINY,), traces, laboratory_dir=folder) as running:
        yield running


def test_every_experiment_is_drawn_and_the_pages_lead_to_each_other(
    server: AppServer, open_page: Callable[..., Page]
) -> None:
    page = open_page(server.url)
    page.locator("nav a", has_text="Laboratory").click()
    for name in EXPERIMENTS:
        part = page.locator(f"#lab-{name}")
        expect(part.locator("h2")).to_be_visible()
        expect(part.locator(".js-plotly-plot").locator(".points path, .lines path").first).to_be_attached()
        expect(part.locator("code")).to_have_text(f"python -m explorer lab {name}")
    expect(page.locator("#lab-tree")).to_contain_text(HOSTILE_TARGET)
    assert page.evaluate("window.__x") is None
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    page.locator("nav a", has_text="Explore").click()
    expect(page.locator("#run")).to_be_visible()
