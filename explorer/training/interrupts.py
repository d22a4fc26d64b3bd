"""Interrupts that wait for the end of a batch, so that what is saved then is whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupt:
    """Whether somebody asked to stop."""

    def __init__(self) -> None:
        self.is_asked = False

    def ask(self, _number: int, _frame: FrameType | None) -> None:
        """A signal handler: the first time it only notes the wish, the second time it ends the program at once."""
        if self.is_asked:
            raise KeyboardInterrupt
        self.is_asked = True


@contextmanager
def held_back() -> Iterator[Interrupt]:
    """Within it, Ctrl-C and `kill` set ``is_asked`` and nothing else; only the main thread can do that."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return
    before = {number: signal.signal(number, interrupt.ask) for number in SIGNALS}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
