"""The stages of a draft: what appears when, in each method's words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from explorer.drafting import draft_stages, drafted_levels
from explorer.insight import depths
from explorer.trace import Step, Trace
from tests.support.recorded import plain, recorded
from tests.support.traces import make_trace


def first(trace: Trace) -> Step:
    return next(step for step in trace.steps if step.num_drafted)


def captions(trace: Trace, step: Step) -> list[str]:
    return [plain(stage.caption) for stage in draft_stages(trace, step)]


def with_extra(method: str, **extra: Any) -> tuple[Trace, Step]:
    trace = make_trace(method, 3, 5)
    return trace, replace(first(trace), extra=extra)


@pytest.mark.parametrize("method", ["eagle1", "eagle2", "eagle3", "medusa", "draft_model", "unheard_of"])
def test_levels_grow_one_after_the_other(method: str) -> None:
    trace = make_trace("eagle2" if method == "unheard_of" else method, 3, 30)
    step = first(trace)
    stages = draft_stages(replace(trace, method=method), step)
    level = depths(step.tree.parent + step.ghosts.parent)
    assert [sorted({level[node] for node in stage.nodes}) for stage in stages] == [
        [d] for d in range(1, len(stages) + 1)
    ]
    assert sorted(node for stage in stages for node in stage.nodes) == list(range(1, len(level)))
    for stage in stages:
        assert {level[parent] + 1 for parent in stage.parents} == {level[node] for node in stage.nodes}
        assert stage.caption.endswith(".")


def test_levels_are_sorted_by_score_and_leave_windows_out() -> None:
    trace = make_trace("lookahead", 3, 20)
    step = first(trace)
    drafted = [node for level in drafted_levels(step) for node in level.nodes]
    assert sorted(drafted) == [row for row, role in enumerate(step.tree.role) if role == "draft"]
    eagle = first(make_trace("eagle2", 3, 20))
    scores = eagle.tree.score + eagle.ghosts.score
    for level in drafted_levels(eagle):
        assert [scores[node] for node in level.nodes] == sorted((scores[node] for node in level.nodes), reverse=True)


def test_eagle2_counts_what_it_drafted_though_the_record_lists_the_best_only() -> None:
    trace = recorded("eagle2-code-60")
    step = next(step for step in trace.steps if len(drafted_levels(step)) == len(step.ms.draft))
    assert step.num_pruned > len(step.ghosts)
    found, stages = captions(trace, step), draft_stages(trace, step)
    top_k, listed = trace.settings["top_k"], len(stages[1].nodes)
    assert found[0].startswith("Draft pass 1 reads the root and gives what may follow it: ")
    assert f": {top_k * top_k} nodes, the best {listed} in the picture. The surest path ends in " in found[1]
    assert [stage.ms for stage in stages] == step.ms.draft
    unknown = replace(trace, settings={"top_k": "many"})
    assert f": the best {listed} in the picture." in captions(unknown, step)[1]


def test_eagle2_names_the_surest() -> None:
    trace = make_trace("eagle2", 3, 12)
    step = replace(first(trace), num_pruned=len(first(trace).ghosts))
    assert captions(trace, step)[0] == (
        "Draft pass 1 reads the root and gives what may follow it: 8 nodes, the surest ‘␣slow’ with 51 %."
    )
    assert captions(trace, step)[1].endswith("25 nodes. The surest path ends in ‘␣=’ with 16 %.")


def test_medusas_heads_share_one_pass() -> None:
    trace = recorded("medusa-code")
    step = trace.steps[0]
    first_stage, second, *_ = draft_stages(trace, step)
    assert (first_stage.ms, second.ms) == (sum(step.ms.draft), None)
    assert first_stage.caption.endswith(f"Head 1 guesses what follows: {len(first_stage.nodes)} nodes.")
    candidates = len({step.tree.token[row] for row in second.nodes})
    assert "Head 2 guesses 2 tokens ahead without knowing what comes before" in second.caption
    assert f"its {candidates} candidates stand below {len(second.parents)} nodes alike, " in second.caption


def test_a_drafter_that_draws_says_so() -> None:
    trace = make_trace("draft_model", 3, 4)
    step = first(trace)
    assert " the draft model would write " in captions(trace, step)[0]
    assert " the draft model draws " in captions(trace, replace(step, extra={"sampled": True}))[0]
    eagle = make_trace("eagle1", 3, 12)
    assert " draws tokens for depth 1 " in captions(eagle, replace(first(eagle), extra={"sampled": True}))[0]


@pytest.mark.parametrize(
    ("num_carried", "told"),
    [
        (4, "All are what the target said in the last pass."),
        (0, "All are tokens of the prompt, taken at random."),
        (1, "The first is what the target said in the last pass, the rest tokens of the prompt, taken at random."),
        (3, "The first 3 are what the target said"),
        (9, None),
        ("x", None),
    ],
)
def test_jacobi_says_where_its_block_comes_from(num_carried: Any, told: str | None) -> None:
    (text,) = captions(*with_extra("jacobi", num_carried=num_carried))
    assert text.startswith("The block of guesses, 4 long: ")
    assert (told in text) if told else text.count(". ") == 0


def test_prompt_lookup_copies_at_once() -> None:
    (one,) = captions(*with_extra("prompt_lookup", matched=1))
    assert one.startswith("The last token stood in the text before: what followed there is drafted again, ")
    (three,) = captions(*with_extra("prompt_lookup", matched=3))
    assert three.startswith("The last 3 tokens stood in the text before")


def test_lookahead_tries_the_pool_and_takes_the_window_along() -> None:
    trace = make_trace("lookahead", 3, 20)
    step = replace(first(trace), extra={"guess_tokens": [[1, 2], [3, 4]]})
    guesses, window = draft_stages(trace, step)
    assert plain(guesses.caption).startswith("The pool has 2 n-grams that may follow ")
    assert [step.tree.role[row] for row in window.nodes] == ["window"] * 6
    assert window.caption.startswith("The window of 6 rows rides along")


@pytest.mark.parametrize(
    "method", ["eagle1", "eagle2", "eagle3", "medusa", "draft_model", "jacobi", "lookahead", "prompt_lookup"]
)
def test_nothing_drafted_has_no_stage(method: str) -> None:
    trace = make_trace("autoregressive", 2)
    assert draft_stages(replace(trace, method=method), trace.steps[0]) == []
