"""The default target's first fetch, on one thread that the start of the app and every waiting run share."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from explorer.checkpoints import smollm2
from explorer.runner_events import Status

POLL_SECONDS = 0.2
WHAT = "fetching the default target"


class TargetFetch:
    """At most one fetch at a time; a failed one may be begun again. Every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._worker: threading.Thread | None = None
        self._status = Status(WHAT)
        self._failure: Exception | None = None

    def begin(self) -> threading.Thread:
        """Fetch in the background unless that is under way; the thread goes on whoever stops waiting for it."""
        with self._lock:
            if self._worker is None or not self._worker.is_alive():
                self._failure, self._status = None, Status(WHAT)
                self._worker = threading.Thread(target=self._fetch, name="fetch-default-target", daemon=True)
                self._worker.start()
            return self._worker

    def wait(self) -> Iterator[Status]:
        """Progress until the target is here, beginning the fetch where nobody has; raises its FetchError."""
        worker, told = self.begin(), None
        while worker.is_alive():
            if self._status is not told:
                told = self._status
                yield told
            worker.join(POLL_SECONDS)
        if self._failure is not None:
            raise self._failure

    def _fetch(self) -> None:
        try:
            smollm2.fetch(self._report)
        except Exception as error:  # noqa: BLE001 - raised again in each run that waits
            self._failure = error

    def _report(self, done: int, total: int, stage: str) -> None:
        self._status = Status(f"{WHAT}: {stage}", done / total if total else None)
