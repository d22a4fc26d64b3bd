"""One setting at a time around the defaults, with plain decoding and the cost of passes."""

from __future__ import annotations

from explorer.laboratory import tree
from explorer.laboratory.session import Session
from explorer.runner_events import drain
from tests.support.lab import golden_requests


def test_sweeps_and_passes() -> None:
    settings = {"total_tokens": 6, "depth": 2, "top_k": 3}
    found = drain(tree.run(Session(golden_requests("eagle2", settings=settings), ["Count to ten", "Hello"])))
    plain, *trials = found["trials"]
    assert (plain.sweep, plain.tau, plain.num_rows) == ("plain", 1.0, 1)
    swept = {name: [t.value for t in trials if t.sweep == name] for name in tree.VALUES}
    assert swept == {name: list(map(float, values)) for name, values in tree.VALUES.items()}
    assert all(t.settings["depth"] == 2 and t.settings["top_k"] == 3 for t in trials if t.sweep == "total_tokens")
    assert [(p.num_sequences, p.ms > 0) for p in found["passes"]][:1] == [(1, True)]
