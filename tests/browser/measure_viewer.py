"""Prints what the viewer costs in a real Chromium: drawing a 60-row step, opening a 40-step trace, streaming 40 steps.

    .venv/bin/python -m tests.browser.measure_viewer

Nothing is asserted: the figures depend on the machine and on what else runs there.
"""

from __future__ import annotations

import os
import statistics

from playwright.sync_api import Page, sync_playwright

from tests.browser.conftest import CHROMIUM_FLAGS
from tests.browser.harness import ViewerServer
from tests.conftest import find_chromium
from tests.support.traces import make_trace

# Scripts, style and layout of each step; what is painted afterwards is the browser's own time.
DRAW_STEPS = """() => {
  const times = [];
  for (let round = 0; round < 3; round += 1) {
    for (let step = 0; step < viewer.store.steps.length; step += 1) {
      const start = performance.now();
      viewer.store.go(step);
      document.querySelector(".dtx").getBoundingClientRect();
      times.push(performance.now() - start);
    }
  }
  return times;
}"""
HOVER_NODES = """() => {
  const times = [];
  for (let node = 0; node < 60; node += 1) {
    const start = performance.now();
    viewer.store.set({hover: node});
    document.querySelector(".dtx").getBoundingClientRect();
    times.push(performance.now() - start);
  }
  return times;
}"""
OPEN_TRACE = """async () => {
  const start = performance.now();
  window.handle = {id: "again"};
  let first = null;
  viewer.store.onChange(() => {
    if (first !== null || !viewer.store.steps.length) return;
    document.querySelector(".dtx").getBoundingClientRect();
    first = performance.now() - start;
  });
  await viewer.refresh();
  document.querySelector(".dtx").getBoundingClientRect();
  return [first, performance.now() - start];
}"""


def main() -> None:
    """Measure on synthetic 60-row traces and print one line per figure."""
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=CHROMIUM_FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        for num_steps in (40, 200):
            server = ViewerServer(make_trace("eagle2", num_steps, 60))
            page.goto(server.url)
            page.wait_for_function("window.viewer.store.done")
            _report(f"draw a 60-row step ({num_steps}-step trace)", page.evaluate(DRAW_STEPS))
            _report("link a hovered node", page.evaluate(HOVER_NODES))
            first, whole = page.evaluate(OPEN_TRACE)
            print(f"open a {num_steps}-step trace, requests included: drawn in {first:.0f} ms, whole in {whole:.0f} ms")
            server.close()
        _stream(page)
        browser.close()


def _report(what: str, times: list[float]) -> None:
    times.sort()
    middle, slow = statistics.median(times), times[int(0.95 * len(times))]
    print(f"{what}: median {middle:.1f} ms, 95 % below {slow:.1f} ms, fastest {times[0]:.1f} ms")


def _stream(page: Page) -> None:
    server = ViewerServer(make_trace("eagle2", 40, 60))
    server.num_steps, server.is_done = 0, False
    page.goto(server.url)
    page.wait_for_function("window.viewer.store.header !== null")
    total = 0.0
    for count in range(1, 41):
        server.num_steps = count
        total += page.evaluate(
            "async () => { const start = performance.now(); await changed(); return performance.now() - start; }"
        )
    print(f"stream 40 steps one by one, requests included: {total:.0f} ms in all")
    server.close()


if __name__ == "__main__":
    main()
