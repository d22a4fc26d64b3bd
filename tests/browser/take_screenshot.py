"""Re-make the README's picture of the page: the first recorded trace at a step where something was accepted.

.venv/bin/python tests/browser/take_screenshot.py [--out FILE] [--step N] [--dark] [--width W --height H]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from playwright.sync_api import sync_playwright

from explorer.config import repo_path
from explorer.target_presets import load_targets
from explorer.ui.store import Library
from tests.browser.app_server import AppServer
from tests.browser.conftest import CHROMIUM_FLAGS
from tests.conftest import find_chromium
from tests.support.fake_runner import FakeRunner
from tests.support.traces import make_trace


def main() -> None:
    parser = argparse.ArgumentParser(description="Take the README's screenshot.")
    parser.add_argument("--out", type=Path, default=repo_path("assets", "screenshots", "page-light.png"))
    parser.add_argument("--step", type=int, help="default: the step that accepted most")
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--height", type=int, default=720)
    args = parser.parse_args()
    folder = repo_path("assets", "traces")
    first = next(iter(Library(folder)))
    steps = Library(folder).trace(first.name).steps
    step = max(range(len(steps)), key=lambda i: steps[i].num_accepted) if args.step is None else args.step
    with AppServer(FakeRunner(make_trace()), (load_targets()["smollm2"],), folder) as server, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=find_chromium(), args=CHROMIUM_FLAGS)
        scheme = "dark" if args.dark else "light"
        page = browser.new_page(viewport={"width": args.width, "height": args.height}, color_scheme=scheme)
        page.goto(f"{server.url}?trace={first.name}&step={step}")
        page.wait_for_selector(".dtx-tree .dtx-node")
        page.wait_for_selector("#summary .js-plotly-plot")
        page.wait_for_timeout(1000)
        args.out.parent.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=str(args.out))
        browser.close()


if __name__ == "__main__":
    main()
