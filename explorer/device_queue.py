"""One run at a time on the device, first come, first served. Standard library only."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator

POLL_SECONDS = 0.25  # how often a waiting run may notice that it was closed


class DeviceQueue:
    """A lock with a queue. ``threading.Lock`` wakes whoever comes first; here nobody overtakes.

    A ticket belongs to a run, not to a thread: a server may drive one run from many threads, and may drop it anywhere.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._tickets: deque[object] = deque()

    def enter(self, ticket: object) -> Iterator[int]:
        """Queue up; yields the number of runs ahead while there are any, and ends once it is this run's turn."""
        with self._changed:
            self._tickets.append(ticket)
        while True:
            with self._changed:
                ahead = self._tickets.index(ticket)
                if ahead:
                    self._changed.wait(POLL_SECONDS)
            if not ahead:
                return
            yield ahead

    def __len__(self) -> int:
        """How many runs hold a ticket: the one on the device and those behind it."""
        with self._changed:
            return len(self._tickets)

    def leave(self, ticket: object) -> None:
        """Give the device up, or the place in the queue; leaving twice does nothing."""
        with self._changed:
            if ticket in self._tickets:
                self._tickets.remove(ticket)
                self._changed.notify_all()
