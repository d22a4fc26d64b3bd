"""The moments of a step: complete, in order, and ending where the record does, for every method and rule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.config import ACCEPTANCES
from explorer.insight import depths
from explorer.microsteps import micro_steps
from explorer.moments import KINDS, MicroStep
from explorer.side_by_side import METHOD_LABELS
from explorer.trace import Step, Trace
from tests.support.recorded import DRAFTED, EQUAL, RECORDED, plain, recorded
from tests.support.traces import make_trace


def replayed(moments: list[MicroStep]) -> dict[int, str]:
    """The states after the last moment, as the viewer would have them."""
    states: dict[int, str] = {}
    for moment in moments:
        for state, nodes in moment.marks:
            states.update(dict.fromkeys(nodes, state))
    return states


def check(trace: Trace, step: Step) -> list[MicroStep]:
    """What holds for every step of every run."""
    moments = micro_steps(trace, step)
    num_rows, own = len(step.tree), len(step.tree) + len(step.ghosts)
    states = replayed(moments)
    assert [states[row] for row in range(num_rows)] == step.tree.state
    assert {states[node] for node in range(num_rows, own)} <= {"ghost"}
    assert states[own] == "own"
    assert len(states) == own + 1, "every node has appeared"
    order = [KINDS.index(moment.kind) for moment in moments]
    assert order == sorted(order)
    appeared = set[int]()
    for moment in moments:
        assert moment.caption.endswith("."), moment.caption
        appeared |= {node for _, nodes in moment.marks for node in nodes}
        assert set(moment.focus) <= appeared, "nothing is lit before it is there"
    assert moments[-1].kept == [(row, step.prefix_len + i) for i, row in enumerate(step.path[: len(step.emitted)])]
    return moments


@pytest.mark.parametrize("acceptance", ACCEPTANCES)
@pytest.mark.parametrize("method", METHOD_LABELS)
def test_every_method_and_rule_ends_where_the_record_does(method: str, acceptance: str) -> None:
    trace = make_trace(method, 8, 30, acceptance=acceptance, hostile=True)
    for step in trace.steps:
        check(trace, step)


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_runs(name: str) -> None:
    trace = recorded(name)
    for step in trace.steps:
        moments = check(trace, step)
        if name not in DRAFTED or not EQUAL[name]:  # chains have one mask, sampled walks a test for each draw
            continue
        levels = max(depths(step.tree.parent + step.ghosts.parent))
        kinds = [moment.kind for moment in moments]
        assert kinds.count("draft") == levels
        assert kinds.count("mask") == max(depths(step.tree.parent)) + 1
        assert kinds.count("prune") == (step.num_pruned > 0)
        walked = step.num_accepted + (step.next_kind == "recovered")
        assert kinds.count("test") == walked, "one for each accepted row that has drafted children"
        masked = [row for moment in moments if moment.kind == "mask" for row in moment.focus]
        assert sorted(masked) == list(range(len(step.tree)))


def test_a_step_of_eagle2_in_words() -> None:
    trace = make_trace("eagle2", 3, 12)
    step = replace(trace.steps[0], num_pruned=len(trace.steps[0].ghosts))
    told = {moment.kind: plain(moment.caption) for moment in micro_steps(trace, step)}
    assert told["start"] == (
        "Step 1 begins with ‘␣this’, the last token of the output; the cache holds the 41 tokens before it."
    )
    assert told["prune"] == (
        "The rerank keeps the 11 nodes with the best scores and prunes 64: the last one kept has 3.3 % along its path, "
        "the first one pruned 3.2 %. They stay in the picture, dotted; the target never sees them."
    )
    assert told["flatten"].endswith("A row's position is the prefix plus its depth, so they share 5: 41 to 45.")
    assert told["mask"].endswith("so it sees the prefix, 4 ancestors and itself. 37 of 144 cells are set.")
    assert told["verify"] == (
        "One pass of the target reads all 12 rows at once, and says after each what it would write next."
    )
    assert told["next"].startswith("Bonus: the path was accepted to its end")
    assert told["commit"] == (
        "The cache keeps rows 0, 1, 3, 8 and 11 at positions 41 to 45; rows 3, 8 and 11 move there, 7 rows dropped. "
        "The output grows by ‘␣slow’, ‘␣=’, ‘␣language’, ‘␣after’ and ‘:’."
    )


def test_the_mask_grows_by_depth_and_a_chains_is_one_triangle() -> None:
    tree = make_trace("eagle2", 3, 12)
    first, second, *_, last = (m for m in micro_steps(tree, tree.steps[0]) if m.kind == "mask")
    assert first.caption == "The mask, row by row: the root sees the 41 prefix tokens and itself."
    assert second.caption == (
        "Depth 1: each of the 2 rows copies its parent's and adds itself, so it sees no sibling, no other branch."
    )
    assert last.caption.startswith("Depth 4: the one row copies its parent's and adds itself")
    chain = make_trace("jacobi", 2, 5)
    (only,) = (m for m in micro_steps(chain, chain.steps[0]) if m.kind == "mask")
    assert only.focus == [0, 1, 2, 3, 4]
    assert only.caption.endswith("itself. 15 of 25 cells are set.")


def test_a_plain_step_says_why_and_has_no_mask() -> None:
    trace = make_trace("medusa", 8, 20)
    step = next(step for step in trace.steps if step.plain_reason)
    moments = micro_steps(trace, step)
    assert [moment.kind for moment in moments] == ["start", "draft", "verify", "next", "commit"]
    assert moments[1].caption == "Nothing is drafted: the method fell back to plain decoding."
    assert moments[2].caption == "One pass of the target reads the root and says what follows."


def test_a_draft_that_is_left_out_whole_says_why() -> None:
    trace = make_trace("eagle2", 8, 20)
    step = next(step for step in trace.steps if step.plain_reason)
    (prune,) = (moment for moment in micro_steps(trace, step) if moment.kind == "prune")
    assert prune.caption.startswith(
        f"None of the {step.num_pruned} nodes is sent: the method fell back to plain decoding."
    )


def test_pruning_for_lack_of_room_is_no_rerank() -> None:
    trace = make_trace("eagle2", 2, 20)
    moments = micro_steps(replace(trace, method="medusa"), trace.steps[0])
    (prune,) = (moment for moment in moments if moment.kind == "prune")
    assert "cannot be sent: the context has no room that deep." in prune.caption
    assert f"The best {len(trace.steps[0].ghosts)} of them stay" in prune.caption


def test_a_cut_path_is_committed_as_far_as_it_was_kept() -> None:
    trace = make_trace("eagle2", 8, 30)
    step = trace.steps[-1]
    assert step.is_cut
    commit = micro_steps(trace, step)[-1]
    assert len(commit.kept) == len(step.emitted)
    assert commit.caption.endswith("The run stops inside this path.")


def test_what_a_rejection_left_gives_the_recovered_token() -> None:
    trace = make_trace("medusa", 12, 30, acceptance="rejection")
    step = next(step for step in trace.steps if step.next_kind == "recovered")
    told = [moment.caption for moment in micro_steps(trace, step) if moment.kind == "next"]
    assert told[0].endswith("It was drawn from what the rejections left of the target's distribution.")


def test_a_cache_of_another_layout_moves_nothing() -> None:
    trace = make_trace("eagle2", 3, 12)
    slots = replace(trace, target=replace(trace.target, cache="slots"))
    assert "at positions 41 to 45, 7 rows dropped." in micro_steps(slots, trace.steps[0])[-1].caption


def test_measured_parts_carry_their_times() -> None:
    trace = recorded("eagle2-code")
    step = trace.steps[3]
    times = {kind: [m.ms for m in micro_steps(trace, step) if m.kind == kind] for kind in KINDS}
    assert times["draft"] == step.ms.draft
    assert times["verify"] == [step.ms.verify]
    assert times["commit"] == [step.ms.commit]
    assert {ms for kind in ("start", "prune", "flatten", "mask", "test", "next") for ms in times[kind]} == {None}
