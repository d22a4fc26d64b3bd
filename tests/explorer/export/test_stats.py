"""The figures for scripts: ours, vLLM's beside them, and where the two differ."""

import json
from dataclasses import replace

import pytest

from explorer.codec import encode
from explorer.export.stats import stats_json
from explorer.metrics import compute_stats
from tests.support.traces import make_trace


def read(trace):
    return json.loads(stats_json(trace), parse_constant=pytest.fail)


@pytest.mark.parametrize("method", ["eagle2", "medusa", "lookahead", "autoregressive"])
def test_ours_are_the_traces(method):
    trace = make_trace(method, 9, 24)
    found = read(trace)
    assert {name: found["stats"][name] for name in encode(trace.stats)} == encode(trace.stats)
    assert found["stats"]["mean_accepted_draft_tokens"] == trace.stats.mean_acceptance_length - 1
    run = found["run"]
    assert (run["method"], run["settings"], run["stop"]) == (trace.method, trace.settings, trace.stop)
    assert run["num_prompt_tokens"] == len(trace.prompt.token_ids)
    assert run["num_output_tokens"] == len(trace.output.token_ids)
    written = 1 + sum(len(step.emitted) for step in trace.steps)
    assert run["num_output_tokens"] == written


def test_times_add_up():
    trace = make_trace("eagle2", 9, 24)
    ms = read(trace)["ms"]
    assert ms["decode"] == pytest.approx(ms["draft"] + ms["verify"] + ms["commit"] + ms["other"])
    assert ms["decode"] == pytest.approx(sum(step.ms.total for step in trace.steps))
    assert ms["record"] == pytest.approx(sum(step.ms.record for step in trace.steps))
    speed = 1000 * (len(trace.output.token_ids) - 1) / ms["decode"]
    assert speed == pytest.approx(trace.stats.tokens_per_second)


def test_vllms_counters_agree_with_ours_where_every_step_drafted():
    trace = make_trace("eagle2", 5, 24)
    assert all(step.num_drafted for step in trace.steps)
    stats, counters = read(trace)["stats"], read(trace)["vllm"]["metrics"]
    assert counters["vllm:spec_decode_num_drafts"] == stats["num_steps"]
    assert counters["vllm:spec_decode_num_draft_tokens"] == stats["num_draft_tokens"]
    assert counters["vllm:spec_decode_num_accepted_tokens"] == stats["num_accepted_draft_tokens"]
    bench = read(trace)["vllm"]["bench"]
    assert bench["spec_decode_acceptance_length"] == pytest.approx(stats["mean_acceptance_length"])
    assert bench["spec_decode_acceptance_rate"] == pytest.approx(100 * stats["draft_acceptance_rate"])


def test_a_step_that_drafted_nothing_is_no_draft_of_vllms():
    trace = make_trace("eagle2", 9, 24)
    plain = sum(not step.num_drafted for step in trace.steps)
    assert plain == 1
    stats, counters = read(trace)["stats"], read(trace)["vllm"]["metrics"]
    assert counters["vllm:spec_decode_num_drafts"] == stats["num_steps"] - plain
    length = read(trace)["vllm"]["bench"]["spec_decode_acceptance_length"]
    assert length > stats["mean_acceptance_length"]


def test_positions_are_counted_as_vllm_does():
    """Position i counts the drafts that accepted more than i tokens; they add up to the accepted tokens."""
    trace = make_trace("eagle2", 12, 24)
    counters = read(trace)["vllm"]["metrics"]
    per_position = counters["vllm:spec_decode_num_accepted_tokens_per_pos"]
    histogram = trace.stats.acceptance_histogram
    assert per_position == [sum(histogram[i + 1 :]) for i in range(len(per_position))]
    assert sum(per_position) == counters["vllm:spec_decode_num_accepted_tokens"]
    rates = read(trace)["vllm"]["bench"]["spec_decode_per_position_acceptance_rates"]
    assert rates == [count / counters["vllm:spec_decode_num_drafts"] for count in per_position]


def test_a_cut_step_counts_nowhere_but_as_cut():
    trace = make_trace("eagle2", 9, 24)
    assert trace.steps[-1].is_cut
    without = trace.steps[:-1]
    fewer = replace(trace, steps=without, stats=compute_stats(without, len(trace.output.token_ids), None))
    assert read(trace)["vllm"] == read(fewer)["vllm"]
    assert read(trace)["stats"]["num_cut_steps"] == 1


def test_what_was_not_measured_is_null():
    empty = read(make_trace("eagle2", 0))
    assert empty["stats"]["mean_acceptance_length"] is None and empty["stats"]["mean_accepted_draft_tokens"] is None
    assert empty["vllm"]["bench"]["spec_decode_acceptance_length"] is None
    assert empty["vllm"]["bench"]["spec_decode_per_position_acceptance_rates"] == []
    plain = read(make_trace("autoregressive", 3))
    assert plain["baseline"] is None and plain["run"]["drafter"] is None
    assert plain["vllm"]["bench"]["spec_decode_acceptance_rate"] is None


def test_the_baseline_is_summed_up():
    trace = make_trace("eagle2", 4, 24)
    found = read(trace)["baseline"]
    assert found["num_tokens"] == len(trace.baseline.ms_per_token)
    assert found["decode_ms"] == pytest.approx(sum(trace.baseline.ms_per_token))
    assert found["output_equal"] is True and "ms_per_token" not in found
