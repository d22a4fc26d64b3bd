"""Smaller trees of recorded steps: worked out by hand, against the record, and against runs that really had them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from explorer.counterfactual import MAX_CURVES, CutOrder, budget_curves, cut_order, depth_limits, step_cuts
from explorer.engine import DecodeOptions, Decoding
from explorer.insight import depths
from explorer.methods.registry import METHODS
from explorer.side_by_side import METHOD_LABELS
from explorer.target import Target
from explorer.trace import DrawRecord, Step, Trace
from tests.support.recorded import RECORDED, plain, recorded
from tests.support.tiny import tiny_drafter, tiny_target
from tests.support.traces import make_trace

PROMPT = [3, 1, 4, 1, 5]


def accepted(trace: Trace, step: Step, num_rows: int, depth: int | None = None) -> int:
    """Drafted tokens that a cut to ``num_rows`` rows and ``depth`` levels accepts, read from the table."""
    cuts = step_cuts(trace, step)
    line = -1 if depth is None else cuts.depths.index(min(depth, cuts.depths[-1]))
    column = cuts.table[line]
    return cuts.outcomes[column[min(num_rows, len(column)) - 1]].num_accepted


def make_step(trace: Trace, **changes: Any) -> Step:
    """root -> 1, 2; 1 -> 3, 4; 3 -> 5. The walk took 1 and 3; scores fall as 1, 3, 2, 5, 4."""
    tree = replace(
        trace.steps[0].tree,
        token=[0, 1, 2, 3, 4, 5],
        parent=[-1, 0, 0, 1, 1, 3],
        role=["root"] + ["draft"] * 5,
        state=["root", "accepted", "rejected", "accepted", "rejected", "rejected"],
        score=[0.0, -0.1, -0.9, -0.3, -2.0, -1.5],
        target_top=[[(1, 0.9)], [(3, 0.8)], None, [(9, 0.7)], None, None],
    )
    values = {"tree": tree, "path": [0, 1, 3], "next_token": 9, "extra": {}, "draws": []} | changes
    return replace(trace.steps[0], **values)


def test_a_step_of_eagle2_by_hand() -> None:
    trace = make_trace("eagle2", 2, 6)
    step = make_step(trace)
    cuts = step_cuts(trace, step)
    assert cuts.order == CutOrder("score", [1, 3, 2, 5, 4])
    assert cuts.depths == [1, 2, 3]
    told = [[cuts.outcomes[i].num_accepted for i in line] for line in cuts.table]
    assert told == [[0, 1, 1, 1, 1, 1], [0, 1, 2, 2, 2, 2], [0, 1, 2, 2, 2, 2]]
    assert cuts.words == "Rows are kept by the drafter's own score, as the rerank keeps them."
    assert f"the target never saw the {step.num_pruned} pruned nodes" in cuts.limits[0]
    assert "with a depth limit, at least so much" in cuts.limits[1]
    assert [plain(outcome.sentence) for outcome in cuts.outcomes] == [
        "No token accepted. Then the target would have written ‘␣reverse’ itself.",
        "1 token accepted: ‘␣reverse’. Then the target would have written ‘(head’ itself.",
        "2 tokens accepted: ‘␣reverse’ and ‘(head’. As in the run, the target goes on with ‘␣None’.",
    ]


def test_equal_scores_fall_to_the_earlier_row_and_no_child_comes_before_its_parent() -> None:
    trace = make_trace("eagle2", 2, 6)
    step = make_step(trace)
    tied = replace(step.tree, score=[0.0, -0.5, -0.5, -0.49999, -0.5, -0.5])
    assert cut_order(trace, replace(step, tree=tied)).rows == [1, 2, 3, 4, 5]


def test_typical_acceptance_chooses_its_path_anew() -> None:
    trace = make_trace("medusa", 2, 6, acceptance="typical")
    passing = {1: 0.5, 2: 0.6, 3: 0.4}
    draws = [DrawRecord(row, None, prob, True, 0.09) for row, prob in passing.items()]
    draws += [DrawRecord(row, None, 0.01, False, 0.09) for row in (4, 5)]
    step = make_step(trace, draws=draws)
    cuts = step_cuts(trace, step)
    assert cuts.order.rows == [1, 2, 3, 4, 5]
    ends = [cuts.outcomes[i].end for i in cuts.table[-1]]
    assert ends == [0, 1, 2, 3, 3, 3], "with 3 rows the likelier of two short paths is taken"
    assert plain(cuts.outcomes[2].sentence) == (
        "1 token accepted: ‘_list’. What the target would have written then is not in the record."
    )
    assert "would have written ‘(head’ itself" in plain(cuts.outcomes[1].sentence), "its first choice there"


def test_lookahead_keeps_the_ngrams_it_saw_last() -> None:
    trace = make_trace("lookahead", 2, 6)
    step = make_step(trace, extra={"guess_tokens": [[2], [1, 4], [1, 3, 5]]})
    assert cut_order(trace, step) == CutOrder("pool", [1, 3, 5, 4, 2])
    for broken in (None, "x", [[1, "a"]], [[1]]):
        assert cut_order(trace, replace(step, extra={"guess_tokens": broken})).kind == "rows"


def test_window_rows_are_no_budget() -> None:
    trace = make_trace("lookahead", 4, 12)
    step = next(step for step in trace.steps if step.num_drafted)
    assert "window" in step.tree.role
    assert len(cut_order(trace, step).rows) == step.num_drafted
    assert len(step_cuts(trace, step).table[0]) == step.num_drafted + 1


def test_static_trees_are_cut_by_their_preset_where_it_is_known() -> None:
    settings = {"tree": "mc_sim_7b_63", "total_tokens": 24}
    trace = _run(tiny_target(), "medusa", settings, 4)
    step = trace.steps[0]
    order = cut_order(trace, step)
    assert order.kind == "preset"
    level = depths(step.tree.parent)
    assert [level[row] for row in order.rows[:6]] == [1, 2, 1, 2, 1, 3], "[0] [0, 0] [1] [0, 1] [2] [0, 0, 0]"
    unknown = replace(trace, settings=settings | {"tree": "nowhere"})
    assert cut_order(unknown, step) == CutOrder("rows", list(range(1, 24)))
    other = replace(trace, settings=settings | {"tree": "smollm2-63"})
    assert cut_order(other, step).kind == "rows", "another tree's places would be wrong"


@pytest.mark.parametrize("acceptance", ["greedy", "rejection"])
@pytest.mark.parametrize("method", METHOD_LABELS)
def test_the_whole_tree_is_the_record_and_more_is_never_less(method: str, acceptance: str) -> None:
    trace = make_trace(method, 7, 25, acceptance=acceptance)
    for step in trace.steps:
        cuts = step_cuts(trace, step)
        assert cuts.outcomes[cuts.table[-1][-1]].end == step.path[-1]
        counts = [[cuts.outcomes[i].num_accepted for i in line] for line in cuts.table]
        assert all(line[0] == 0 and line == sorted(line) for line in counts)
        assert [line[-1] for line in counts] == [min(depth, step.num_accepted) for depth in cuts.depths]
        above = {row: i for i, row in enumerate(cuts.order.rows)} | {0: -1}
        assert all(above[step.tree.parent[row]] < above[row] for row in cuts.order.rows)


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_runs_keep_their_tau(name: str) -> None:
    trace = recorded(name)
    budgets = budget_curves(trace)
    assert trace.stats.mean_acceptance_length is not None
    assert budgets.curves[-1].tau[-1] == pytest.approx(trace.stats.mean_acceptance_length)
    for curve in budgets.curves:
        assert curve.tau == sorted(curve.tau)
        assert curve.tau[0] == 1
        whole = [step for step in trace.steps if not step.is_cut]
        for num_rows in (2, min(7, len(curve.tau)), len(curve.tau)):
            mean = 1 + sum(accepted(trace, step, num_rows, curve.depth) for step in whole) / len(whole)
            assert curve.tau[num_rows - 1] == pytest.approx(mean)
    assert budgets.curves[-1].exact_rows == len(budgets.curves[-1].tau)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("medusa", {"tree": "mc_sim_7b_63", "total_tokens": 24}),
        ("eagle2", {"total_tokens": 24, "depth": 3, "top_k": 5}),
    ],
)
def test_runs_with_fewer_rows_accept_exactly_that(name: str, changes: dict[str, Any]) -> None:
    """From each prefix of a run, the first step of a run with fewer rows: it is the counterfactual."""
    target = tiny_target()
    trace = _run(target, name, changes, 20)
    found = set()
    for step in _whole(trace):
        for num_rows in (3, 9, 17):
            real = _first_step(target, trace, step, changes | {"total_tokens": num_rows})
            assert len(real.tree) == num_rows
            assert accepted(trace, step, num_rows) == real.num_accepted
            found.add(real.num_accepted)
    assert len(found) > 1, "something was accepted somewhere"


def test_a_shallower_eagle2_accepts_exactly_that_as_far_as_its_rows_were_verified() -> None:
    changes = {"total_tokens": 40, "depth": 3, "top_k": 4}
    target = tiny_target()
    trace = _run(target, "eagle2", changes, 20)
    verified = []
    for step in _whole(trace):
        verified.append(1 + sum(0 < depth <= 2 for depth in depths(step.tree.parent)))
        real = _first_step(target, trace, step, changes | {"depth": 1, "total_tokens": verified[-1]})
        assert accepted(trace, step, verified[-1], 2) == real.num_accepted
    curve = budget_curves(trace).curves[1]
    assert (curve.depth, curve.exact_rows) == (2, min(verified))


def _run(target: Target, name: str, changes: dict[str, Any], num_tokens: int) -> Trace:
    """A greedy run of a tiny target as a trace, whose frame is made up."""
    method = METHODS[name](target, tiny_drafter(name, target), METHODS[name].Settings(**changes))
    decoding = Decoding(target, method, PROMPT, DecodeOptions(num_tokens))
    decoding.prefill()
    steps = list(decoding.steps())
    frame = make_trace(name, 1, 4)
    return replace(
        frame,
        settings=vars(method.settings),
        prompt=replace(frame.prompt, token_ids=PROMPT),
        output=replace(frame.output, token_ids=decoding.output),
        steps=steps,
    )


def _whole(trace: Trace) -> list[Step]:
    return [step for step in trace.steps if not step.is_cut]


def _first_step(target: Target, trace: Trace, step: Step, changes: dict[str, Any]) -> Step:
    """What a run with other settings does first, from the prefix of a step."""
    prefix = [*PROMPT, *trace.output.token_ids[: step.prefix_len - len(PROMPT)]]
    method = METHODS[trace.method]
    again = method(target, tiny_drafter(trace.method, target), method.Settings(**changes))
    decoding = Decoding(target, again, prefix, DecodeOptions(12))
    decoding.prefill()
    real = next(decoding.steps())
    assert real.tree.token[0] == step.tree.token[0]
    return real


def test_depth_limits_are_bounded() -> None:
    assert depth_limits(0) == [0]
    assert depth_limits(3) == [1, 2, 3]
    assert depth_limits(500) == [*range(1, MAX_CURVES), 500]


def test_a_run_of_plain_decoding_has_one_flat_curve_and_a_run_without_steps_none() -> None:
    budgets = budget_curves(make_trace("autoregressive", 5))
    assert [(curve.depth, curve.tau) for curve in budgets.curves] == [(0, [1.0])]
    assert budgets.words == "Nothing was drafted."
    assert budget_curves(replace(make_trace("eagle2", 3), steps=[])).curves == []


def test_what_the_numbers_cannot_know_is_said() -> None:
    eagle = " ".join(budget_curves(recorded("eagle2-code")).limits)
    assert "the target never saw the pruned nodes" in eagle
    assert "the steps would begin at other tokens" in eagle
    assert "lower bound" in eagle
    assert "Nothing is said of time" in eagle
    chain = " ".join(budget_curves(make_trace("jacobi", 5, 6)).limits)
    assert "pruned" not in chain
    assert "lower bound" not in chain, "a shorter chain has no other nodes"
    assert "Guesses grow out of earlier passes" in chain
    assert budget_curves(recorded("eagle2-code")).words == (
        "Rows are kept by the drafter's own score, as the rerank keeps them."
    )
