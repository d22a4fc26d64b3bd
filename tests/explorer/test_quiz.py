"""The quiz of a step: its verdicts agree with the record, whatever node is guessed."""

from __future__ import annotations

import pytest

from explorer.quiz import quiz_of
from explorer.side_by_side import METHOD_LABELS
from explorer.trace import Step
from tests.support.recorded import plain
from tests.support.traces import make_trace


def chain(step: Step, node: int) -> set[int]:
    rows = {node}
    while (node := step.tree.parent[node]) >= 0:
        rows.add(node)
    return rows


@pytest.mark.parametrize("acceptance", ["greedy", "rejection", "typical"])
@pytest.mark.parametrize("method", METHOD_LABELS)
def test_only_the_last_accepted_node_is_right_and_its_branch_is_close(method: str, acceptance: str) -> None:
    trace = make_trace(method, 8, 30, acceptance=acceptance, hostile=True)
    for step in trace.steps:
        quiz = quiz_of(trace, step)
        assert (quiz is None) == (step.num_drafted == 0)
        if quiz is None:
            continue
        end, size = step.path[-1], len(step.tree)
        assert len(quiz.verdict) == size + len(step.ghosts)
        assert len(set(quiz.verdicts)) == len(quiz.verdicts)
        for node, which in enumerate(quiz.verdict):
            is_right, text = quiz.verdicts[which]
            assert text.endswith(".")
            is_draft = node < size and step.tree.role[node] == "draft"
            is_on_branch = is_draft and end > 0 and (node in step.path or end in chain(step, node))
            assert is_right == (node == end), (node, text)
            assert text.startswith("Close: ") == (is_on_branch and node != end), (node, text)


def test_verdicts_name_what_became_of_the_branch() -> None:
    trace = make_trace("eagle2", 12, 30)
    step = max(trace.steps, key=lambda each: len(each.path))
    assert len(step.path) >= 3
    quiz = quiz_of(trace, step)
    assert quiz is not None
    names = {row: f"‘{trace.vocab[str(token)].label}’" for row, token in enumerate(step.tree.token)}
    told = [plain(quiz.verdicts[which][1]) for which in quiz.verdict]
    end, before = step.path[-1], step.path[-2]
    assert told[end] == f"Right: {names[end]} is the last one accepted."
    assert told[before] == f"Close: the right branch, and it goes on; {names[end]} is the last one accepted."
    assert told[0] == f"Not this time: {len(step.path) - 1} drafted tokens accepted, {names[end]} the last."
    other = next(r for r, p in enumerate(step.tree.parent) if p == 0 and r not in step.path)
    assert told[other] == f"Not this branch: after {names[0]} the target goes on with {names[step.path[1]]}."
    assert told[len(step.tree)].endswith("was pruned: the target never sees it.")
    assert f"the {step.num_drafted} drafted tokens" in quiz.question


def test_nothing_accepted_is_an_answer_too() -> None:
    trace = make_trace("eagle2", 30, 20)
    step = next(step for step in trace.steps if step.num_drafted and len(step.path) == 1)
    quiz = quiz_of(trace, step)
    assert quiz is not None
    assert quiz.verdicts[quiz.verdict[0]] == (True, "Right: none of them is accepted.")
    assert quiz.verdicts[quiz.verdict[1]] == (False, "Not this time: none of them is accepted.")


def test_window_rows_are_no_answer() -> None:
    trace = make_trace("lookahead", 4, 12)
    step = next(step for step in trace.steps if "window" in step.tree.role and step.num_drafted)
    quiz = quiz_of(trace, step)
    assert quiz is not None
    assert quiz.verdicts[quiz.verdict[step.tree.role.index("window")]][0] is False
