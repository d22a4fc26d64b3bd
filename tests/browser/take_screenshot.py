"""Re-make the README's pictures of the page, each on recorded traces.

.venv/bin/python tests/browser/take_screenshot.py [--only NAME ...] [--folder DIR] [--width W --height H]
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from playwright.sync_api import Browser, sync_playwright

from explorer.config import repo_path
from explorer.target_presets import load_targets
from explorer.ui.store import Library
from tests.browser.app_server import AppServer
from tests.browser.conftest import CHROMIUM_FLAGS
from tests.conftest import find_chromium
from tests.support.fake_runner import FakeRunner
from tests.support.traces import make_trace

TRACES = repo_path("assets", "traces")


@dataclass(frozen=True)
class Picture:
    """query: after the address, {step} being the first recording's step that accepted most. wait_for: a selector."""

    query: str
    wait_for: str
    scheme: str = "light"


PICTURES = {
    "page-light": Picture("?step={step}", "#summary .js-plotly-plot"),
    "race-dark": Picture("?view=race", ".dtx-lane", scheme="dark"),
    "lesson-light": Picture("?lesson=3&stop=3", ".dtx-lesson-text"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Take the README's screenshots.")
    parser.add_argument("--only", nargs="+", choices=PICTURES, default=list(PICTURES))
    parser.add_argument("--folder", type=Path, default=repo_path("assets", "screenshots"))
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--height", type=int, default=720)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    with AppServer(FakeRunner(make_trace()), (load_targets()["smollm2"],), TRACES) as server, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=find_chromium(), args=CHROMIUM_FLAGS)
        for name in args.only:
            size = (args.width, args.height)
            take(browser, server.url, PICTURES[name], size, args.folder / f"{name}.png")
        browser.close()


def take(browser: Browser, url: str, picture: Picture, size: tuple[int, int], path: Path) -> None:
    """One picture on a page of its own."""
    first = next(iter(Library(TRACES))).name
    steps = Library(TRACES).trace(first).steps
    step = max(range(len(steps)), key=lambda i: steps[i].num_accepted)
    page = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=picture.scheme)
    query = picture.query.format(step=step + 1)
    page.goto(f"{url}{query}&trace={first}" if "lesson" not in query else url + query)
    page.wait_for_selector(picture.wait_for)
    page.wait_for_timeout(2500)
    page.screenshot(path=str(path))
    page.close()


if __name__ == "__main__":
    main()
