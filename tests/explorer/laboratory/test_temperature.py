"""Every method under rejection at every temperature, Medusa under typical acceptance too."""

from __future__ import annotations

from explorer.laboratory import temperature
from explorer.laboratory.session import Session
from explorer.runner_events import drain
from tests.support.lab import golden_requests


def test_lanes_temperatures_and_seeds() -> None:
    session = Session([*golden_requests("medusa"), *golden_requests("eagle2")], ["Count to ten", "Hello"])
    trials = drain(temperature.run(session))["trials"]
    lanes = {lane: [t.value for t in trials if t.lane == lane] for lane in dict.fromkeys(t.lane for t in trials)}
    every = list(temperature.TEMPERATURES)
    assert lanes == {"Medusa": every, "Medusa, typical": every[1:], "EAGLE-2": every}
    assert [len(trial.taus) for trial in trials if trial.lane == "EAGLE-2"] == [2, 4, 4, 4]
