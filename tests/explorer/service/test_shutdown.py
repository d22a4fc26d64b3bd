"""Signals set the event; handlers are put back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from explorer.service.shutdown import stop_event
from tests.structure.source import ROOT

TWICE = """
import os, signal, sys
from explorer.service.shutdown import stop_event
with stop_event() as stop:
    os.kill(os.getpid(), signal.SIGTERM)
    assert stop.wait(5)
    os.kill(os.getpid(), signal.SIGTERM)
    stop.clear() or stop.wait(5)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_sets_the_event_and_the_old_handler_comes_back(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stop_event() as stop:
        assert not stop.is_set()
        os.kill(os.getpid(), number)
        assert stop.wait(5)
    assert signal.getsignal(number) is before


def test_a_second_signal_ends_the_process() -> None:
    answer = subprocess.run([sys.executable, "-c", TWICE], cwd=ROOT, capture_output=True, check=False, timeout=60)
    assert answer.returncode == 128 + signal.SIGTERM, answer.stderr.decode()
