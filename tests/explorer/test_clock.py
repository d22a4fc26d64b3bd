"""The stopwatch: laps add up, and a CUDA clock waits for the device at every reading."""

from __future__ import annotations

import time

import pytest
import torch

from explorer.clock import Clock


def test_laps_are_milliseconds_and_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([1.0, 5.0, 5.25, 5.75])
    monkeypatch.setattr(time, "perf_counter", lambda: next(readings))
    clock = Clock(torch.device("cpu"))
    clock.start()
    assert clock.lap() == pytest.approx(250)
    assert clock.lap() == pytest.approx(500)


@pytest.mark.parametrize(("device", "waits"), [("cpu", 0), ("cuda", 3)])
def test_every_reading_waits_for_its_device(device: str, waits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[None] = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: calls.append(None))
    clock = Clock(torch.device(device))
    clock.start()
    clock.lap()
    assert len(calls) == waits
