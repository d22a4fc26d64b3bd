"""The histogram's numbers: the rejection rule's law is the target's, typical writes what the recorded run wrote."""

from __future__ import annotations

import math

import pytest

from explorer.errors import TraceError
from explorer.lessons.demo import acceptance_demo, distance
from explorer.lessons.steps import find_step
from explorer.trace import Trace
from tests.support.recorded import plain, recorded


@pytest.fixture(scope="module")
def typical() -> Trace:
    return recorded("medusa-chat-typical")


def test_the_rejection_rule_gives_the_targets_own_distribution_at_every_step(typical: Trace) -> None:
    for step in typical.steps:
        demo = acceptance_demo(typical, step)
        assert math.isclose(math.fsum(demo.probs), 1, abs_tol=1e-6)
        assert distance(demo.rejection, demo.probs) < 1e-6  # nine digits a probability


def test_the_typical_rule_writes_what_the_run_wrote_at_every_step(typical: Trace) -> None:
    for step in typical.steps:
        demo = acceptance_demo(typical, step)
        assert demo.tokens[demo.typical] == step.emitted[0]
        always = [float(place == demo.typical) for place in range(len(demo.probs))]
        assert math.isclose(demo.typical_distance, distance(always, demo.probs), abs_tol=1e-6)


def test_the_lessons_place_shows_the_difference(typical: Trace) -> None:
    demo = acceptance_demo(typical, find_step(typical, "most_torn"))
    assert demo.typical_distance > 0.5
    assert demo.expected_distance < 0.02
    assert 0.2 < sum(demo.probs[sibling.index] for sibling in demo.siblings) < 0.95
    assert len(demo.probs) <= 12, "it must fit beside the tree"
    assert "drafted tokens" in demo.sentences[0]
    assert "every time" in plain(demo.sentences[1])


@pytest.mark.parametrize("name", ["eagle2-code", "eagle2-chat-sampled"])
def test_other_runs_do_not_hold_the_numbers(name: str) -> None:
    trace = recorded(name)
    with pytest.raises(TraceError, match="typical run at temperature 1"):
        acceptance_demo(trace, trace.steps[0])
