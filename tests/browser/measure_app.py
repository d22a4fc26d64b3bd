"""Print how long the page takes in Chromium: a recorded trace on screen after navigation, and a 40-step trace opening.

    .venv/bin/python tests/browser/measure_app.py [--rounds N]

Asserts nothing: other work on the machine decides as much as the page does, so the load average is printed too.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.app_server import AppServer
from tests.browser.conftest import CHROMIUM_FLAGS
from tests.conftest import find_chromium
from tests.support.fake_runner import FakeRunner
from tests.support.page import TINY, make_recordings
from tests.support.traces import make_trace

NUM_STEPS = 40
RECORDINGS = (("first", "First", "eagle2", 12), ("long", "Long", "eagle2", NUM_STEPS))
DRAWN = "document.querySelectorAll('.dtx-tree .dtx-node').length > 1"


def first_trace_seconds(browser: Browser, url: str) -> float:
    """From navigation, with an empty cache, until the recorded tree is drawn."""
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    page = context.new_page()
    start = time.monotonic()
    page.goto(url, wait_until="commit")
    page.wait_for_function(DRAWN)
    seconds = time.monotonic() - start
    context.close()
    return seconds


def open_trace_seconds(page: Page) -> float:
    """From choosing another recorded trace until its tree and its last step are there."""
    page.reload()
    page.wait_for_function(DRAWN)
    page.locator("#picker input").click()
    option = page.get_by_role("option", name="Long")
    option.wait_for()
    start = time.monotonic()
    option.click()
    page.wait_for_function(f"document.querySelector('.dtx-stepcount').textContent.includes('/ {NUM_STEPS}')")
    return time.monotonic() - start


def report(name: str, seconds: list[float]) -> None:
    shown = ", ".join(f"{value:.2f}" for value in seconds)
    print(f"{name}: median {statistics.median(seconds):.2f} s ({shown})")


def main() -> None:
    parser = argparse.ArgumentParser(description="Print the page's opening times.")
    parser.add_argument("--rounds", type=int, default=3)
    rounds = range(parser.parse_args().rounds)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        traces_dir = make_recordings(Path(folder), RECORDINGS)
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=CHROMIUM_FLAGS)
        with AppServer(FakeRunner(make_trace()), (TINY,), traces_dir) as server:
            report("recorded trace on screen", [first_trace_seconds(browser, server.url) for _ in rounds])
            page = browser.new_page()
            page.goto(server.url)
            report(f"trace of {NUM_STEPS} steps opened", [open_trace_seconds(page) for _ in rounds])
        browser.close()
    print("load average:", *(f"{value:.1f}" for value in os.getloadavg()), f"on {os.cpu_count()} CPUs")


if __name__ == "__main__":
    main()
