"""A panel for every method that drafts, and none where the record has nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from explorer.codec import encode
from explorer.panels.registry import PANELS, panel_of
from explorer.side_by_side import METHOD_LABELS
from tests.support.recorded import RECORDED, recorded
from tests.support.traces import make_trace

HOSTILE: list[dict[str, Any]] = [
    {"heads": 1, "num_carried": "x", "window_tokens": {}, "guess_tokens": [1], "matched": [], "position": -1},
    {"heads": [[[1]]], "window_tokens": [[1.5]], "guess_tokens": [["a"]], "matched": 10**12, "position": 10**12},
    {"heads": [[]] * 50, "window_tokens": [[]], "guess_tokens": [[]], "added_tokens": [[]], "sampled": "yes"},
]


def test_every_method_that_drafts_has_a_panel() -> None:
    assert PANELS.keys() == METHOD_LABELS.keys() - {"autoregressive"}


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_steps_have_theirs(name: str) -> None:
    trace = recorded(name)
    kinds = {panel.kind for step in trace.steps if (panel := panel_of(trace, step))}
    assert kinds == {"eagle" if trace.method == "eagle2" else trace.method}


@pytest.mark.parametrize("extra", HOSTILE)
@pytest.mark.parametrize("method", PANELS)
def test_a_strange_extra_is_no_error(method: str, extra: dict[str, Any]) -> None:
    trace = make_trace(method, 4, 8, hostile=True)
    for step in trace.steps:
        panel = panel_of(trace, replace(step, extra=extra))
        assert panel is None or panel.kind == ("eagle" if method.startswith("eagle") else method)
        encode(panel)


def test_unknown_methods_have_none() -> None:
    trace = make_trace("autoregressive", 2)
    assert panel_of(trace, trace.steps[0]) is None
    assert panel_of(replace(trace, method="new"), trace.steps[0]) is None
