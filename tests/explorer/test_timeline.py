"""Where output tokens come from: against the record's own paths and times."""

from __future__ import annotations

import pytest

from explorer.timeline import Place, arrivals_ms, chosen_after, num_passes, place_of, plain_arrivals_ms, root_index
from explorer.trace import Trace
from tests.support.recorded import recorded
from tests.support.traces import make_trace

TRACES = [make_trace("eagle2", 9, 30), make_trace("autoregressive", 4), make_trace("lookahead", 7, 20)]


@pytest.mark.parametrize("trace", [*TRACES, recorded("eagle2-maths")], ids=lambda trace: trace.method)
def test_every_token_but_the_last_is_a_row_and_stands_where_the_record_says(trace: Trace) -> None:
    output = trace.output.token_ids
    for index in range(len(output) - 1):
        place = place_of(trace, index)
        assert place is not None
        step = trace.steps[place.step]
        assert step.tree.token[step.path[place.position]] == output[index]
        assert root_index(trace, step) + place.position == index
    assert [place_of(trace, index) for index in (-1, len(output) - 1, len(output))] == [None] * 3


def test_the_row_after_which_a_token_was_chosen_has_it_as_child_or_as_what_the_target_added() -> None:
    trace = TRACES[0]
    for index in range(1, len(trace.output.token_ids)):
        place = chosen_after(trace, index)
        assert place is not None
        step = trace.steps[place.step]
        decided = [*(step.tree.token[row] for row in step.path[1:]), step.next_token]
        assert decided[place.position] == trace.output.token_ids[index]
    assert chosen_after(trace, 0) is None, "the prompt pass chose the first token"
    assert chosen_after(trace, 1) == Place(0, 0)


def test_tokens_arrive_together_at_the_end_of_their_step() -> None:
    trace = TRACES[0]
    passes, times = num_passes(trace), arrivals_ms(trace)
    assert len(passes) == len(times) == len(trace.output.token_ids)
    assert (passes[0], times[0]) == (0, 0.0)
    assert passes[-1] == len(trace.steps)
    assert times[-1] == pytest.approx(sum(step.ms.total for step in trace.steps))
    for step in trace.steps:
        first = root_index(trace, step) + 1
        inside = slice(first, first + len(step.emitted))
        assert set(passes[inside]) == {step.index + 1}
        assert len(set(times[inside])) == 1


def test_plain_arrivals_add_up() -> None:
    assert plain_arrivals_ms([2.0, 3.0, 1.5]) == [0.0, 2.0, 5.0, 6.5]
    assert plain_arrivals_ms([]) == [0.0]
