"""SIGTERM and Ctrl-C end the server in order: runs finish or are stopped, the page closes, the exit code is 0."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stop_event() -> Iterator[threading.Event]:
    """An event that the first of SIGNALS sets; a second one ends the process at once. Main thread only."""
    event = threading.Event()

    def stop(number: int, _frame: FrameType | None) -> None:
        if event.is_set():
            os._exit(128 + number)
        event.set()

    old = {number: signal.signal(number, stop) for number in SIGNALS}
    try:
        yield event
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
