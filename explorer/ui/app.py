"""The app: its pages over one runner, with the launch settings that keep it offline, private and quiet."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Generator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import gradio as gr

from explorer.config import repo_path
from explorer.prediction import CostReport
from explorer.runner_events import DeviceState, Event, RunRequest, Status
from explorer.service.server_watch import ServerWatch
from explorer.ui.api import build_api
from explorer.ui.context import Context, RunsRequests
from explorer.ui.controls import method_forms
from explorer.ui.options import AppOptions
from explorer.ui.pages.diagnose import add_diagnose_page
from explorer.ui.pages.explore import TITLE, build_explore_page
from explorer.ui.pages.laboratory import add_laboratory_page
from explorer.ui.pages.server import add_server_page
from explorer.ui.store import Library, TraceStore
from explorer.ui.viewer_component import COMPARABLE, answer_insight, answer_view

if TYPE_CHECKING:
    from explorer.runner import Runner

MAX_THREADS = 16
CLOSE_SECONDS = 1.0
UPLOAD_SECONDS = 3600  # how long an uploaded file lies in Gradio's cache


class LazyRunner:
    """The runner, imported on a thread of its own: torch and transformers take seconds that nobody should wait for."""

    def __init__(self) -> None:
        self._runner: Runner | None = None
        self._lock = threading.Lock()

    def warm_up(self, *, needs_default_target: bool) -> None:
        """Begin in the background to import the runner, and to bring the default target if it may be asked for."""

        def warm() -> None:
            runner = self._load()
            if needs_default_target:
                runner.fetch_default_target()

        threading.Thread(target=warm, name="runner-import", daemon=True).start()

    def run(self, request: RunRequest) -> Generator[Event, None, None]:
        """Events of one run, the first one at once."""
        if self._runner is None:
            yield Status("loading the engine")
        yield from self._load().run(request)

    def measure(self, request: RunRequest, methods: Sequence[str]) -> Generator[Status, None, CostReport]:
        """What passes cost here, the first status at once."""
        if self._runner is None:
            yield Status("loading the engine")
        return (yield from self._load().measure(request, methods))

    def state(self) -> DeviceState:
        """What the device does now; asking does not load the engine."""
        return DeviceState(False) if self._runner is None else self._runner.state()

    def _load(self) -> Runner:
        with self._lock:
            if self._runner is None:
                self._runner = make_runner()
            return self._runner


def make_runner() -> Runner:
    """The real runner; importing it brings torch and transformers."""
    from explorer.runner import Runner

    return Runner()


def build_app(
    runner: RunsRequests, options: AppOptions, store: TraceStore | None = None, watch: ServerWatch | None = None
) -> tuple[gr.Blocks, dict[str, Any]]:
    """The page over ``runner``, and the keyword arguments for its ``launch``.

    store: None for one of its own. watch: another server, for a page of its own.
    """
    store = make_store(options) if store is None else store
    context = Context(options, runner, store, method_forms())
    for first in islice(store.library, 1):
        answer_view(store, json.dumps({"id": first.name}))  # made before the first visitor waits for it
        alike = json.dumps(
            {"insight": COMPARABLE, "ids": [first.name]}
        )  # reads what its race needs, in a second or two
        threading.Thread(target=answer_insight, args=(store, alike), name="recordings", daemon=True).start()
    with gr.Blocks(title=TITLE, fill_width=True, analytics_enabled=False, delete_cache=(UPLOAD_SECONDS,) * 2) as demo:
        build_explore_page(context)
        build_api(context)
    add_diagnose_page(demo, context)
    add_laboratory_page(demo, options.laboratory_dir)
    if watch is not None:
        add_server_page(demo, watch)
    demo.queue(max_size=options.max_waiting, default_concurrency_limit=4, api_open=False)
    return demo, launch_settings(options)


def make_store(options: AppOptions) -> TraceStore:
    """The recorded traces, and room for as many runs of visitors as the operator allows."""
    return TraceStore(Library(options.traces_dir), options.max_kept_runs, options.max_kept_mb * 2**20)


def num_queued(page: gr.Blocks) -> int:
    """Events that Gradio's own queue holds: runs beyond those that wait inside the runner."""
    return len(page._queue)


def close_page(page: gr.Blocks) -> None:
    """Stop listening; a connection that an open tab still holds a second later is cut."""

    def cut() -> None:
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # it would print a traceback for each
        page.server.force_exit = True

    timer = threading.Timer(CLOSE_SECONDS, cut)
    timer.start()
    page.close(verbose=False)
    timer.cancel()


def launch_settings(options: AppOptions) -> dict[str, Any]:
    """Arguments of ``Blocks.launch``: no run history in browsers, no stack traces, no files served but our own."""
    return {
        "server_name": options.host,
        "server_port": options.port,
        "share": options.is_shared,
        "quiet": not options.is_shared,  # its advice is for programmers; only it knows its link
        "max_threads": MAX_THREADS,
        "show_error": False,
        "run_history": False,
        "allowed_paths": [],
        "blocked_paths": [str(repo_path())],
        "max_file_size": f"{options.max_upload_mb}mb",
        "enable_monitoring": False,
        "strict_cors": True,
        "footer_links": [],
        "state_session_capacity": 500,
        "theme": page_theme(),
        "css_paths": str(repo_path("explorer", "ui", "page.css")),
    }


def page_theme() -> gr.themes.Base:
    """Gradio's default theme with system fonts only, so that no font is ever fetched."""
    return gr.themes.Default(
        font=["system-ui", "-apple-system", "Segoe UI", "Roboto", "sans-serif"],
        font_mono=["ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "monospace"],
        primary_hue="blue",
        spacing_size="sm",
        radius_size="sm",
        text_size="sm",
    )
