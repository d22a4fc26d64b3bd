"""Jacobi's grid: iterations by positions, fixed at the front, right too early behind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from explorer.panels.jacobi import NUM_ITERATIONS, JacobiPanel, jacobi_panel
from explorer.trace import Trace
from tests.support.traces import make_trace


def made() -> Trace:
    """Two passes over blocks of 3; the text is 0 1 2 3 4 ...; the second pass carried two guesses."""
    trace = make_trace("jacobi", 2, 4)
    prefix = len(trace.prompt.token_ids)
    blocks: list[tuple[list[int], list[int], list[int], dict[str, Any]]] = [
        ([0, 1, 9, 3], [0, 1], [1, 2], {"num_carried": 0}),
        ([2, 3, 4, 8], [0, 1, 2], [3, 4, 5], {"num_carried": 2}),
    ]
    steps, start = [], 0
    for index, (tokens, path, emitted, extra) in enumerate(blocks):
        tree = replace(trace.steps[0].tree, token=tokens, parent=[-1, 0, 1, 2], role=["root"] + ["draft"] * 3)
        changes: dict[str, Any] = {"tree": tree, "path": path, "emitted": emitted, "extra": extra}
        steps.append(replace(trace.steps[0], index=index, prefix_len=prefix + start, **changes))
        start += len(emitted)
    return replace(trace, steps=steps, output=replace(trace.output, token_ids=[0, 1, 2, 3, 4, 5]))


def panel(trace: Trace, index: int) -> JacobiPanel:
    found = jacobi_panel(trace, trace.steps[index])
    assert found is not None
    return found


def test_the_grid_by_hand() -> None:
    first, second = panel(made(), 1).iterations
    assert (first.step, first.start, first.guess_tokens) == (0, 1, [1, 9, 3])
    assert (first.num_carried, first.num_fixed, first.came) == (0, 1, [True, False, True])
    assert (second.start, second.guess_tokens, second.num_fixed) == (3, [3, 4, 8], 2)
    assert second.came == [True, True, False]
    assert second.num_carried == 2
    assert second.rows == [1, 2, 3]


def test_a_guess_that_is_right_behind_a_wrong_one_is_not_lost_but_not_fixed() -> None:
    assert panel(made(), 0).sentences == [
        "This pass fixed 1 of 3 guesses.",
        "1 guess stood right behind a wrong one: not fixed yet, but found again.",
    ]
    assert panel(made(), 1).sentences == ["This pass fixed 2 of 3 guesses."]


def test_beyond_the_output_nothing_is_known() -> None:
    trace = made()
    short = replace(trace, output=replace(trace.output, token_ids=[0, 1, 2]))
    assert panel(short, 1).iterations[1].came == [None, None, None]


def test_the_grid_holds_the_last_passes() -> None:
    trace = make_trace("jacobi", 20, 5)
    steps = [step for step in trace.steps if step.num_drafted]
    found = panel(trace, steps[-1].index)
    assert len(found.iterations) == NUM_ITERATIONS
    assert found.iterations[-1].step == steps[-1].index
    assert all(one.start < other.start for one, other in zip(found.iterations, found.iterations[1:], strict=False))


def test_a_strange_count_is_no_error_and_nothing_guessed_has_no_panel() -> None:
    trace = made()
    for raw, told in ((99, 3), ("x", None), (-1, None)):
        step = replace(trace.steps[0], extra={"num_carried": raw})
        found = jacobi_panel(replace(trace, steps=[step]), step)
        assert found is not None
        assert found.iterations[0].num_carried == told
    plain = make_trace("autoregressive", 2)
    assert jacobi_panel(plain, plain.steps[0]) is None
