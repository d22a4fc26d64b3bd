"""Confidence against acceptance: bins by hand, and the verdict only where chance does not explain the distance."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.calibration import NUM_BINS, Calibration, calibrations
from explorer.trace import Trace
from tests.support.recorded import DRAFTED, recorded
from tests.support.traces import make_trace


def made(prob: float, num_accepted: int, num_steps: int) -> list[Calibration]:
    """Steps with one drafted token of probability ``prob``, accepted in so many of them."""
    trace = make_trace("eagle2", 2, 2)
    tree = replace(
        trace.steps[0].tree,
        token=[0, 1],
        parent=[-1, 0],
        role=["root", "draft"],
        draft_prob=[None, prob],
        score=[0.0, -0.5],
    )
    steps = [replace(trace.steps[0], tree=tree, path=[0, 1] if i < num_accepted else [0]) for i in range(num_steps)]
    return calibrations(replace(trace, steps=steps))


def test_bins_by_hand() -> None:
    following, path = made(0.62, 1, 4)
    (bin_,) = following.bins
    assert (bin_.low, bin_.high, bin_.num_nodes) == (0.6, 0.7, 4)
    assert (bin_.confidence, bin_.accepted) == (pytest.approx(0.62), 0.25)
    assert following.error == pytest.approx(0.37)
    assert path.confidence == pytest.approx(0.6065, abs=1e-4), "e to the score"
    assert (path.bins[0].low, path.question) == (0.6, "path")


def test_the_top_bin_holds_certainty() -> None:
    following, _ = made(1.0, 3, 3)
    assert (following.bins[0].low, following.bins[0].high, following.error) == (0.9, 1.0, 0.0)


@pytest.mark.parametrize(
    ("num_accepted", "num_steps", "verdict"),
    [
        (1, 4, "no more apart than chance allows."),
        (100, 400, "it is too sure."),
        (380, 400, "it is not sure enough."),
        (245, 400, "no more apart than chance allows."),
    ],
)
def test_few_nodes_prove_nothing(num_accepted: int, num_steps: int, verdict: str) -> None:
    sentence = made(0.62, num_accepted, num_steps)[0].sentence
    assert sentence.startswith(f"{num_steps} nodes whose parent was accepted: the drafter gave them 62 % on average, ")
    assert sentence.endswith(verdict)


@pytest.mark.parametrize("trace", [recorded(name) for name in DRAFTED], ids=DRAFTED)
def test_recorded_runs_add_up(trace: Trace) -> None:
    following, path = calibrations(trace)
    children = sum(
        parent in step.path and role == "draft"
        for step in trace.steps
        for parent, role in zip(step.tree.parent, step.tree.role, strict=True)
    )
    assert following.num_nodes == sum(bin_.num_nodes for bin_ in following.bins) == children
    assert path.num_nodes == sum(step.num_drafted for step in trace.steps)
    for found in (following, path):
        accepted = sum(step.num_accepted for step in trace.steps)
        assert found.accepted * found.num_nodes == pytest.approx(accepted)
        assert len(found.bins) <= NUM_BINS
        for bin_ in found.bins:
            assert bin_.low - 1e-9 <= bin_.confidence <= bin_.high + 1e-9


def test_guesses_without_probabilities_have_no_calibration() -> None:
    for method in ("lookahead", "jacobi", "prompt_lookup", "autoregressive"):
        assert calibrations(make_trace(method, 4, 8)) == []
