"""The first interrupt is noted, the second one ends the program; handlers come back."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from explorer.training.interrupts import held_back


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_is_noted_and_the_second_obeyed(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with held_back() as interrupt:
        assert not interrupt.is_asked
        os.kill(os.getpid(), number)
        assert interrupt.is_asked
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) == before


def test_other_threads_are_left_alone() -> None:
    asked: list[bool] = []

    def work() -> None:
        with held_back() as interrupt:
            asked.append(interrupt.is_asked)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert asked == [False]
