"""The whole page, served on 127.0.0.1 from this process."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from explorer.config import prepare_environment
from explorer.service.server_watch import ServerWatch
from explorer.target_presets import TargetPreset
from explorer.ui.options import AppOptions

WAIT_SECONDS = 30


class AppServer:
    """A context manager: the page over ``runner``, on a free port; further ``options`` are AppOptions' own.

    watch: another server, for its page.
    """

    def __init__(
        self,
        runner: Any,
        targets: tuple[TargetPreset, ...],
        traces_dir: Path,
        *,
        watch: ServerWatch | None = None,
        **options: Any,
    ) -> None:
        prepare_environment()
        from explorer.ui.app import build_app

        self.runner = runner
        allowed = AppOptions(targets, traces_dir=traces_dir, max_new_tokens=64, **options)
        self._demo, self._launch = build_app(runner, allowed, watch=watch)
        self.url = ""

    @property
    def queue(self) -> Any:
        """Gradio's own queue."""
        return self._demo._queue

    def __enter__(self) -> AppServer:
        _, self.url, _ = self._demo.launch(**self._launch, prevent_thread_lock=True)
        return self

    def __exit__(self, *_error: object) -> None:
        self._demo.close(verbose=False)

    def wait_until(self, is_true: Callable[[], bool]) -> None:
        """Wait for something on the server's side; fails after WAIT_SECONDS."""
        end = time.monotonic() + WAIT_SECONDS
        while not is_true():
            assert time.monotonic() < end, "the server did not get there"
            time.sleep(0.05)
