"""How many runs one visitor may have in line: a tab is a visitor, as far as Gradio tells them apart."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from explorer.errors import LimitError
from explorer.insight import plural


class Visitors:
    """Runs by visitor; may be used from any thread."""

    def __init__(self, max_runs: int) -> None:
        self._max_runs = max_runs
        self._num_runs: Counter[str] = Counter()
        self._lock = threading.Lock()

    @contextmanager
    def admit(self, visitor: str | None) -> Iterator[None]:
        """Hold a place while the run waits and runs; raises LimitError beyond the bound. None: nobody in particular."""
        if visitor is None:
            yield
            return
        with self._lock:
            if self._num_runs[visitor] >= self._max_runs:
                runs = plural(self._max_runs, "run")
                raise LimitError(f"You have {runs} waiting or running here already: let one end, or stop it.")
            self._num_runs[visitor] += 1
        try:
            yield
        finally:
            with self._lock:
                self._num_runs[visitor] -= 1
                if not self._num_runs[visitor]:
                    del self._num_runs[visitor]
