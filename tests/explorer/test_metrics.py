"""The numbers of a run against examples worked out by hand."""

from dataclasses import replace

import pytest

from explorer.metrics import HeadCount, compute_stats, head_counts, tokens_per_second
from explorer.trace import GhostColumns, Step, StepTimes, TreeColumns
from tests.support.traces import make_trace


def _step(parents, path, emitted=None, roles=None, ms=10.0):
    count = len(parents)
    tree = TreeColumns(
        token=list(range(count)),
        parent=parents,
        role=roles or ["root"] + ["draft"] * (count - 1),
        draft_prob=[None] * count,
        score=[0.0] * count,
        target_prob=[None] * count,
        target_rank=[None] * count,
        accept_prob=[None] * count,
        state=[],
        target_top=[None] * count,
    )
    decided = [*path[1:], 99]
    times = StepTimes(draft=[1.0, 1.0], verify=ms - 3, commit=0.5, other=0.5, record=1000.0)
    kept = decided if emitted is None else decided[:emitted]
    return Step(0, 0, tree, GhostColumns(), 0, [], path, 99, "bonus", None, None, kept, times)


TREE = [-1, 0, 0, 1, 1, 3]  # depths 0 1 1 2 2 3


def test_hand_computed():
    steps = [
        _step(TREE, [0, 1, 3, 5]),  # 3 of 5 drafts; the leaf has no child
        _step(TREE, [0, 1]),  # 1 of 5; its children failed
        _step(TREE, [0]),  # 0 of 5
        _step([-1], [0]),  # nothing drafted: no test at depth 1
    ]
    stats = compute_stats(steps, num_output=1 + 4 + 2 + 1 + 1, baseline_tps=100.0)
    assert (stats.num_steps, stats.num_cut_steps) == (4, 0)
    assert (stats.num_draft_tokens, stats.num_accepted_draft_tokens) == (15, 4)
    assert stats.mean_acceptance_length == 2.0
    assert stats.draft_acceptance_rate == pytest.approx(4 / 15)
    assert stats.acceptance_by_depth == [pytest.approx(2 / 3), 0.5, 1.0]
    assert stats.acceptance_histogram == [2, 1, 0, 1]
    assert stats.tokens_per_second == pytest.approx(8 / 0.040)  # recording left out
    assert stats.speedup == pytest.approx(2.0)


def test_a_leaf_end_is_no_failure():
    stats = compute_stats([_step([-1, 0], [0, 1])], 3, None)
    assert stats.acceptance_by_depth == [1.0] and stats.mean_acceptance_length == 2.0 and stats.speedup is None


def test_window_rows_are_neither_drafted_nor_tried():
    stats = compute_stats([_step([-1, 0, 1], [0], roles=["root", "window", "window"])], 2, None)
    assert stats.num_draft_tokens == 0 and stats.draft_acceptance_rate is None
    assert stats.acceptance_by_depth == [] and stats.acceptance_histogram == [1]


def test_a_cut_last_step_counts_in_time_and_output_only():
    steps = [_step(TREE, [0, 1]), _step(TREE, [0, 1, 3, 5], emitted=2)]
    stats = compute_stats(steps, num_output=1 + 2 + 2, baseline_tps=50.0)
    assert (stats.num_steps, stats.num_cut_steps, stats.num_accepted_draft_tokens) == (1, 1, 1)
    assert stats.mean_acceptance_length == 2.0 and stats.acceptance_histogram == [0, 1]
    assert stats.tokens_per_second == pytest.approx(4 / 0.020) and stats.speedup == pytest.approx(4.0)


def test_only_a_cut_step_leaves_nulls():
    stats = compute_stats([_step(TREE, [0, 1, 3], emitted=1)], 2, 10.0)
    assert stats.num_steps == 0 and stats.mean_acceptance_length is None and stats.acceptance_histogram == []
    assert stats.tokens_per_second == pytest.approx(100.0)


def test_no_steps_leave_nulls():
    stats = compute_stats([], num_output=1, baseline_tps=10.0)
    assert stats.num_steps == 0
    assert (stats.mean_acceptance_length, stats.draft_acceptance_rate) == (None, None)
    assert (stats.tokens_per_second, stats.speedup) == (None, None)
    assert stats.acceptance_by_depth == [] and stats.acceptance_histogram == []
    assert tokens_per_second(5, 0.0) is None


def test_autoregressive_has_exactly_one():
    stats = compute_stats([_step([-1], [0])] * 7, 8, None)
    assert stats.mean_acceptance_length == 1.0 and stats.draft_acceptance_rate is None


@pytest.mark.parametrize("method", ["eagle2", "medusa", "lookahead", "autoregressive"])
def test_identities(method):
    trace = make_trace(method, steps=9)
    stats = compute_stats(trace.steps, len(trace.output.token_ids), 24.0)
    whole = [step for step in trace.steps if not step.is_cut]
    assert stats.mean_acceptance_length == pytest.approx(sum(len(s.emitted) for s in whole) / len(whole))
    assert sum(stats.acceptance_histogram) == stats.num_steps
    assert sum(k * n for k, n in enumerate(stats.acceptance_histogram)) == stats.num_accepted_draft_tokens
    slower = [replace(s, ms=replace(s.ms, record=s.ms.record + 1e6)) for s in trace.steps]
    assert compute_stats(slower, len(trace.output.token_ids), 24.0) == stats


def test_heads_are_counted_against_what_the_output_has_at_their_depth() -> None:
    step = make_trace("medusa", 1, 2).steps[0]
    heads = [[[5, 0.6], [6, 0.1]], [[7, 0.5], [8, 0.2]]]
    steps = [replace(step, prefix_len=10, extra={"heads": heads}), replace(step, prefix_len=12, extra={"heads": heads})]
    assert head_counts(steps, [1, 5, 8, 6], 10) == [HeadCount(2, 1, 2), HeadCount(1, 0, 1)]
    assert head_counts([replace(step, extra={})], [1, 5], 10) == []
