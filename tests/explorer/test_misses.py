"""Endings of steps, counted: one of each kind by hand, and sums over real runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from explorer.insight import MISS_CLASSES, miss_class
from explorer.misses import ENDINGS, LABELS, WOULD_HELP, ending_of, misses
from explorer.trace import GhostColumns, Step
from tests.support.recorded import RECORDED, recorded
from tests.support.traces import make_trace


def make_step(**changes: Any) -> Step:
    """root -> 1, 2; 1 -> 3; the walk took 1 and failed at 3."""
    step = make_trace("eagle2", 2, 6).steps[0]
    tree = replace(
        step.tree,
        token=[0, 1, 2, 3, 4, 5],
        parent=[-1, 0, 0, 1, 2, 4],
        role=["root"] + ["draft"] * 5,
    )
    values = {"tree": tree, "path": [0, 1], "next_token": 9, "next_kind": "recovered", "next_draft_rank": None}
    return replace(step, ghosts=GhostColumns(), **(values | changes))


def ghost_below(parent: int) -> GhostColumns:
    return GhostColumns([7], [parent], [0.1], [-3.0], [0.4])


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, "not_drafted"),
        ({"next_draft_rank": 40}, "outranked"),
        ({"next_token": 4}, "elsewhere"),
        ({"next_token": 3}, "sampled"),
        ({"next_token": 7, "ghosts": ghost_below(1)}, "pruned"),
        ({"path": [0, 1, 3], "next_kind": "bonus"}, "leaf"),
        ({"path": [0, 2, 4, 5], "next_kind": "bonus"}, "deepest"),
        ({"path": [0, 2, 4, 5], "next_kind": "bonus", "ghosts": ghost_below(4)}, "deepest"),
        ({"path": [0, 2, 4, 5], "next_kind": "bonus", "ghosts": ghost_below(5)}, "leaf"),
    ],
)
def test_each_kind(changes: dict[str, Any], kind: str) -> None:
    ghosts = changes.pop("ghosts", GhostColumns())
    assert ending_of(replace(make_step(**changes), ghosts=ghosts)) == kind


@pytest.mark.parametrize("name", [name for name in RECORDED if name.startswith("eagle2")])
def test_the_deepest_level_is_the_one_that_the_settings_ask_for(name: str) -> None:
    trace = recorded(name)
    ends = [step for step in trace.steps if not step.is_cut and step.num_drafted and ending_of(step) == "deepest"]
    assert all(len(step.path) - 1 == trace.settings["depth"] + 1 for step in ends)


def test_a_step_without_drafts_is_plain() -> None:
    assert ending_of(make_trace("autoregressive", 2).steps[0]) == "plain"


def test_every_kind_is_told() -> None:
    assert set(ENDINGS) == set(LABELS)
    assert set(WOULD_HELP) == {*ENDINGS, "outranked_near"}
    assert set(MISS_CLASSES) < set(ENDINGS)


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_runs_add_up(name: str) -> None:
    trace = recorded(name)
    found = misses(trace)
    whole = [step for step in trace.steps if not step.is_cut]
    counts = Counter(miss_class(step) for step in whole)
    by_kind = {ending.kind: ending for ending in found.endings}
    assert found.num_steps == sum(ending.count for ending in found.endings) == len(whole)
    assert sum(ending.share for ending in found.endings) == pytest.approx(1)
    assert [ending.count for ending in found.endings] == sorted((e.count for e in found.endings), reverse=True)
    for kind in MISS_CLASSES:
        assert counts[kind] == (by_kind[kind].count if kind in by_kind else 0)
    for ending in found.endings:
        example = trace.steps[ending.example]
        assert ending_of(example) == ending.kind
        others = [step.next_prob or 0 for step in whole if ending_of(step) == ending.kind]
        assert example.next_prob == max(others), "the target was surest there"
        assert ending.example_sentence.endswith(".")
    assert len(found.next_draft_ranks) == counts["outranked"]


def test_what_would_help_depends_on_how_far_down_the_tokens_were() -> None:
    trace, ranks = make_trace("eagle2", 2, 6), (41, 6, 99)
    steps = [make_step(index=i, next_draft_rank=rank, emitted=[1, 9]) for i, rank in enumerate(ranks)]
    assert misses(replace(trace, steps=[*steps, make_step(emitted=[1, 9])])).sentences == [
        "3 of 4 steps (75 %): too low in the drafter's list. What would help: better guesses: most of the tokens were "
        "far down in the drafter's list.",
        "Of 3 tokens too low in the drafter's list, 1 stood among its first 10; the middle one was number 42.",
    ]
    near = misses(replace(trace, steps=[steps[1]]))
    assert "more candidates for a node" in near.sentences[0]
    assert near.next_draft_ranks == [6]


def test_cut_steps_do_not_count_and_no_steps_are_said() -> None:
    trace = make_trace("eagle2", 9, 30)
    assert trace.steps[-1].is_cut
    assert misses(trace).num_steps == 7, "nor does the one that rested"
    empty = misses(replace(trace, steps=[]))
    assert (empty.endings, empty.sentences) == ([], ["No complete step: there is nothing to count."])


def test_rests_are_no_misses_and_are_told_apart() -> None:
    trace = make_trace("eagle2", 8, 20)
    plain = next(step for step in trace.steps if step.plain_reason)
    told = {"fallback": {"tokens": 1.1, "needed": 1.5, "left": 2}}
    rests = [replace(plain, plain_reason="fallback", extra=told)] * 3 + [replace(plain, plain_reason="context_limit")]
    drafted = [step for step in trace.steps if step.num_drafted]
    found = misses(replace(trace, steps=[*drafted, *rests]))
    assert found == replace(misses(replace(trace, steps=drafted)), sentences=found.sentences)
    assert found.sentences[-2:] == [
        "3 plain steps: resting, because speculation cost time or was being compared. No draft was asked for, so none "
        "missed.",
        "1 plain step: the context is nearly full. No draft was asked for, so none missed.",
    ]
