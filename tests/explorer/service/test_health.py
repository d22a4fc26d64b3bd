"""Health: what is here, loaded and busy, and how ready that makes the server."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from explorer.checkpoints import smollm2
from explorer.config import DEFAULT_TARGET
from explorer.runner_events import DeviceState
from explorer.service.health import Health, is_here
from explorer.service.served_runner import RunLimits, ServedRunner
from explorer.target_presets import TargetPreset
from tests.support.fake_runner import FakeRunner
from tests.support.traces import make_trace

DEFAULT = TargetPreset(DEFAULT_TARGET, "d", DEFAULT_TARGET)


@dataclass
class Device(FakeRunner):
    """A runner in a given state."""

    now: DeviceState = field(default_factory=lambda: DeviceState(False))

    def state(self) -> DeviceState:
        return self.now


def health(now: DeviceState, *targets: TargetPreset) -> Health:
    served = ServedRunner(Device(make_trace(), now=now), RunLimits(1, None, 1))
    return Health(served, targets, lambda: 4)


def test_a_ready_server(tmp_path: Path) -> None:
    report = health(DeviceState(True, True, 2), TargetPreset("mine", "m", str(tmp_path))).report()
    assert report.pop("uptime_s") >= 0
    assert report == {
        "status": "ok",
        "runner": "loaded",
        "device": {"is_busy": True, "num_waiting": 6},
        "targets": [{"name": "mine", "is_here": True}],
    }


@pytest.mark.parametrize(("is_fetched", "is_loaded", "status"), [(False, True, "starting"), (True, False, "starting")])
def test_a_server_that_starts(monkeypatch: pytest.MonkeyPatch, is_fetched: bool, is_loaded: bool, status: str) -> None:
    monkeypatch.setattr(smollm2, "is_fetched", lambda: is_fetched)
    report = health(DeviceState(is_loaded), DEFAULT).report()
    assert (report["status"], report["targets"][0]["is_here"]) == (status, is_fetched)


def test_a_hub_id_is_unknown_and_keeps_nobody_waiting() -> None:
    hub = TargetPreset("h", "h", "someone/large")
    assert is_here(hub) is None
    assert health(DeviceState(True), hub).report()["status"] == "ok"


def test_a_server_that_stops() -> None:
    asked = health(DeviceState(True), TargetPreset("h", "h", "someone/large"))
    asked.runner.stop(0, 0)
    assert asked.report()["status"] == "stopping"
