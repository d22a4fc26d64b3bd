"""The synthetic traces obey the record: what they test would otherwise be fiction."""

from __future__ import annotations

import pytest

from explorer.metrics import compute_stats
from explorer.trace import from_json, to_json
from tests.support.traces import make_trace


@pytest.mark.parametrize("method", ["eagle2", "medusa", "lookahead", "draft_model", "autoregressive"])
@pytest.mark.parametrize("acceptance", ["greedy", "rejection"])
@pytest.mark.parametrize("hostile", [False, True], ids=["ordinary", "hostile"])
def test_made_traces_are_valid(method: str, acceptance: str, hostile: bool) -> None:
    trace = make_trace(method, 9, 40, hostile=hostile, acceptance=acceptance)
    assert from_json(to_json(trace)) == trace
    baseline = trace.baseline.tokens_per_second if trace.baseline else None
    assert compute_stats(trace.steps, len(trace.output.token_ids), baseline) == trace.stats


def test_they_hold_the_rare_cases() -> None:
    trace = make_trace("eagle2", 9, 40)
    assert trace.steps[-1].is_cut
    assert any(step.plain_reason for step in trace.steps)
    assert all(len(step.ghosts) for step in trace.steps if step.num_drafted)
    assert any(step.next_kind == kind for step in trace.steps for kind in ("bonus", "recovered"))
