"""The summary figure: what it draws is what the trace says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.trace import Stats, Trace
from explorer.views.charts import summary_figure, time_split
from tests.support.traces import make_trace


@pytest.fixture(scope="module")
def trace() -> Trace:
    return make_trace("eagle2", 12, 20)


def bars(trace: Trace) -> list[tuple[list[str], list[float]]]:
    return [(list(bar.x), list(bar.y)) for bar in summary_figure(trace).data]


def test_both_lanes_and_what_was_accepted(trace: Trace) -> None:
    speed, _, histogram, by_depth = bars(trace)
    assert speed[0] == ["plain decoding", "eagle2"]
    assert trace.baseline is not None
    assert speed[1] == [trace.baseline.tokens_per_second, trace.stats.tokens_per_second]
    assert histogram[1] == trace.stats.acceptance_histogram
    assert sum(histogram[1]) == trace.stats.num_steps
    assert by_depth[1] == trace.stats.acceptance_by_depth
    assert by_depth[0][0] == "1", "depth counts from 1"


def test_the_time_split_is_the_decoding_time_without_recording(trace: Trace) -> None:
    split = time_split(trace)
    assert sum(split.values()) == pytest.approx(sum(step.ms.total for step in trace.steps))
    assert split["verify"] == pytest.approx(sum(step.ms.verify for step in trace.steps))
    names, seconds = bars(trace)[1]
    assert dict(zip(names, seconds, strict=True)) == pytest.approx({name: ms / 1000 for name, ms in split.items()})


def test_the_figure_has_a_height_and_fetches_nothing(trace: Trace) -> None:
    figure = summary_figure(trace)
    assert figure.layout.height > 0
    assert "http" not in figure.to_json()
    assert figure.layout.paper_bgcolor == "rgba(0,0,0,0)", "light and dark are the page's"


def test_a_run_without_steps_or_baseline_still_draws(trace: Trace) -> None:
    empty = replace(trace, steps=[], baseline=None, stats=Stats(0, 0, 0, 0, None, None, [], [], None, None))
    assert bars(empty)[0] == ([], [])


def test_autoregressive_has_one_lane() -> None:
    assert bars(make_trace("autoregressive", 4, 1))[0][0] == ["autoregressive"]
