"""A bare page with the step viewer on it, served on 127.0.0.1: the viewer without Gradio.

``ViewerServer`` hands out the first ``num_steps`` steps of a trace, so that a test can let a run grow.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from playwright.sync_api import Page

from explorer.metrics import compute_stats
from explorer.trace import Trace
from explorer.ui.store import Library, TraceStore
from explorer.ui.viewer_component import STEPS_AT_ONCE, answer_insight
from explorer.views.viewer import SHELL, view_payload, viewer_source

PAGE = f"""<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<link rel="icon" href="data:,"><style>body{{margin:0}}</style>{SHELL}<script src="/viewer.js"></script>"""

# The smallest adapter: what any host page has to supply.
ADAPTER = """
window.handle = {id: "t"};
window.events = [];
window.viewer = mountViewer({
  element: document.querySelector(".dtx"),
  scheme: "auto",
  current: () => window.handle,
  load: async (from, step) => (await fetch("/view?from=" + from + "&step=" + (step || 0))).json(),
  insight: async (insight, ids, step) => (await fetch("/insight?" + encodeURIComponent(JSON.stringify(
    { insight, ids: ids.map((id) => id === "t" ? window.runs.t : id), step })))).json(),
  onChange: (callback) => { window.changed = callback; },
  emit: (name, data) => window.events.push([name, data]),
});
"""
# No inline script may run and nothing but this server may be asked: a token that became markup would be stopped loudly
# (Playwright's own polling needs eval).
POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-eval'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:"
)


PANE_IS_THERE = """() => [...document.querySelectorAll(".dtx-panel")].some((pane) =>
  pane.offsetParent && pane.hasChildNodes() && !pane.classList.contains("is-waiting"))"""


class ViewerServer:
    """Serves one trace; ``num_steps`` and ``is_done`` may change while the page is open, ``asked`` lists each from."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.num_steps = len(trace.steps)
        self.is_done = True
        self.error: str | None = None
        self.asked: list[int] = []
        self.store = TraceStore(Library(Path(__file__).parent / "no recordings"), 16)
        self.run_id = self.store.open(trace, is_done=True)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def payload(self, from_step: int, wanted: int) -> str:
        """View JSON of the run as far as it has got, a part at a time as the app answers."""
        self.asked.append(from_step)
        if self.error:
            return json.dumps({"error": self.error})
        steps = self.trace.steps[: self.num_steps]
        num_output = 1 + sum(len(step.emitted) for step in steps)
        baseline = self.trace.baseline.tokens_per_second if self.trace.baseline else None
        values = vars(self.trace) | {"steps": steps, "stats": compute_stats(steps, num_output, baseline)}
        limit = max(STEPS_AT_ONCE, wanted + 1 - from_step)
        return json.dumps(view_payload(Trace(**values), from_step, trace_id="t", is_done=self.is_done, limit=limit))

    def add(self, trace: Trace) -> str:
        """Another run that insights can be asked about; returns its id."""
        return self.store.open(trace, is_done=True)

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()


OpenViewer = Callable[..., tuple[Page, ViewerServer]]  # the fixture open_viewer


def go(page: Page, step: int) -> None:
    """Show a step, counted from 0."""
    page.evaluate("(step) => viewer.store.go(step)", step)


def show_pane(page: Page, step: int, pane: str) -> None:
    """Show a step, nothing folded, with a pane beside its tree, and wait for the pane's answer."""
    go(page, step)
    page.evaluate("(pane) => viewer.store.set({pane, fold: false})", pane)
    page.wait_for_function(PANE_IS_THERE)


def at(page: Page) -> int:
    """The step that is shown, counted from 0."""
    return page.evaluate("viewer.store.at")


def _handler(owner: ViewerServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            address = urlsplit(self.path)
            if address.path == "/":
                self._send("text/html", PAGE)
            elif address.path == "/viewer.js":
                self._send("text/javascript", f"{viewer_source()}window.runs = {{t: '{owner.run_id}'}};{ADAPTER}")
            elif address.path == "/view":
                start, wanted = (int(parse_qs(address.query)[name][0]) for name in ("from", "step"))
                self._send("application/json", owner.payload(start, wanted))
            elif address.path == "/insight":
                self._send("application/json", answer_insight(owner.store, unquote(address.query)))
            else:
                self.send_error(404)

        def _send(self, kind: str, text: str) -> None:
            body = text.encode()
            self.send_response(200)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Security-Policy", POLICY)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: object) -> None:
            """Keep the test output clean."""

    return Handler
