"""The rules find what they are named after, in made-up traces and in the recorded ones."""

from __future__ import annotations

import pytest

from explorer.errors import TraceError
from explorer.insight import depths, miss_class
from explorer.lessons.steps import (
    NODE_RULES,
    STEP_RULES,
    depth,
    draws_after,
    find_node,
    find_step,
    num_choices,
    uncommon_row,
)
from explorer.trace import Trace
from tests.support.recorded import recorded
from tests.support.traces import make_trace


def eligible(trace: Trace) -> list[int]:
    return [step.index for step in trace.steps if step.num_drafted and not step.is_cut]


def test_most_accepted_is_the_most() -> None:
    trace = make_trace("eagle2", 20, 16)
    step = find_step(trace, "most_accepted")
    assert step.num_accepted == max(trace.steps[i].num_accepted for i in eligible(trace))


def test_deep_and_wide_are_the_extremes_of_a_run() -> None:
    trace = recorded("eagle2-code")
    deep, wide = find_step(trace, "deepest"), find_step(trace, "widest")
    levels = [depth(trace.steps[i]) for i in eligible(trace)]
    assert (depth(deep), depth(wide)) == (max(levels), min(levels))
    assert num_choices(deep) < num_choices(wide)
    assert len(deep.tree) == len(wide.tree), "one budget, two shapes"


def test_none_accepted_and_second_choice() -> None:
    trace = recorded("eagle2-code")
    assert find_step(trace, "none_accepted").path == [0]
    step = find_step(trace, "second_choice_accepted")
    siblings = [row for row, parent in enumerate(step.tree.parent) if parent == 0]
    best = max(siblings, key=lambda row: step.tree.draft_prob[row] or 0)
    assert step.tree.state[best] == "rejected"
    assert step.tree.state[step.path[1]] == "accepted"


def test_the_pruned_node_that_was_wanted() -> None:
    step = find_step(recorded("eagle2-chat"), "wanted_pruned")
    node = find_node(step, "pruned_wanted")
    ghost = node - len(step.tree)
    assert miss_class(step) == "pruned"
    assert step.ghosts.token[ghost] == step.next_token
    assert step.ghosts.parent[ghost] == step.path[-1]


def test_sampled_rules() -> None:
    tests = draws_after(find_step(recorded("eagle2-chat-sampled"), "rejected_then_accepted"), 0)
    assert [test.accepted for test in tests] == [False] * (len(tests) - 1) + [True]
    step = find_step(recorded("medusa-chat-typical"), "against_argmax")
    assert any((step.tree.target_rank[row] or 0) > 0 for row in step.path[1:])
    favourites = step.tree.target_top[step.tree.parent[uncommon_row(step)]]
    assert favourites[0][0] != step.tree.token[find_node(step, "second_to_target")]
    torn = find_step(recorded("medusa-chat-typical"), "most_torn")
    assert sum((test.prob or 0) >= 0.02 for test in draws_after(torn, 0)) >= 3


def test_nodes_are_where_their_names_say() -> None:
    step = find_step(recorded("eagle2-code"), "most_accepted")
    level = depths(step.tree.parent)
    assert find_node(step, "root") == 0
    assert find_node(step, "own") == len(step.tree) + len(step.ghosts)
    assert find_node(step, "first_accepted") == step.path[1]
    assert find_node(step, "last_accepted") == step.path[-1]
    assert level[find_node(step, "deepest")] == max(level)
    assert step.tree.state[find_node(step, "first_rejected")] == "rejected"


def test_what_is_not_there_is_an_error_in_words() -> None:
    plain = make_trace("autoregressive", 4, 1)
    for rule in STEP_RULES:
        with pytest.raises(TraceError, match="no step of this autoregressive run"):
            find_step(plain, rule)
    with pytest.raises(TraceError, match="no rule is called 'best'"):
        find_step(plain, "best")
    with pytest.raises(TraceError, match="no node is called"):
        find_node(plain.steps[0], "leaf")
    for part in set(NODE_RULES) - {"root", "own"}:
        with pytest.raises(TraceError, match="has no"):
            find_node(plain.steps[0], part)
