"""One other server's metrics, read for the page when somebody looks: rarely, within limits, beside our own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from explorer.endpoints import fetch_page
from explorer.errors import SettingError
from explorer.server_figures import BETWEEN, SINCE_START, Reading, between, table_of
from explorer.server_metrics import read_page
from explorer.tables import Table

PAUSE_SECONDS = 5.0  # between two readings, however many visitors look


class ServerWatch:
    """Reads the address that the operator gave, and no other. own: this app's metrics page, None to leave it out."""

    def __init__(
        self,
        url: str,
        own: Callable[[], bytes] | None = None,
        fetch: Callable[[str], str] = fetch_page,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.url = url
        self._own, self._fetch, self._clock = own, fetch, clock
        self._lock = threading.Lock()
        self._before: Reading | None = None
        self._last: Reading | None = None
        self._error = ""
        self._looked_at = float("-inf")

    def tables(self) -> list[Table]:
        """Since the server's start, and since the reading before; raises SettingError where it cannot be read."""
        with self._lock:
            if self._clock() - self._looked_at >= PAUSE_SECONDS:
                self._look()
            if self._error or self._last is None:
                raise SettingError(self._error)
            found = [table_of(self._last, SINCE_START)]
            if self._before is not None:
                found.insert(0, table_of(between(self._before, self._last), BETWEEN))
            return found

    def _look(self) -> None:
        self._looked_at = self._clock()
        try:
            reading = read_page(self._fetch(self.url), self.url, self._looked_at)
            self._error = ""
        except SettingError as error:
            self._error = str(error)
            return
        if own := self._read_own():
            reading = Reading(reading.seconds, {**reading.counts, **own.counts})
        self._before, self._last = self._last, reading

    def _read_own(self) -> Reading | None:
        if self._own is None:
            return None
        try:
            return read_page(self._own().decode(), "this app", self._looked_at)
        except SettingError:
            return None  # nothing was drafted here yet
