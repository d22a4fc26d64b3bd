"""Two runs at one place: which paths both drafted, which one pruned, where the other was inside a path."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from explorer.compare import Comparison, compare_at, shared_steps
from explorer.errors import TraceError
from explorer.trace import GhostColumns, Step, Trace, TreeColumns
from tests.support.recorded import plain, recorded
from tests.support.traces import make_trace


def run(method: str, *steps: tuple[list[int], list[int], list[int], int], ghosts: GhostColumns | None = None) -> Trace:
    """A run of steps (tokens below the root, their parents, accepted rows, next token); the first token is 0."""
    frame = replace(make_trace("eagle2", 1, 4), method=method)
    made, output, prefix = list[Step](), [0], len(frame.prompt.token_ids)
    for index, (tokens, parents, path, following) in enumerate(steps):
        emitted = [*(tokens[row - 1] for row in path), following]
        tree = tree_of([output[-1], *tokens], [-1, *parents], path)
        changes: dict[str, Any] = {"tree": tree, "ghosts": ghosts or GhostColumns(), "path": [0, *path]}
        step = replace(frame.steps[0], index=index, prefix_len=prefix, next_token=following, emitted=emitted, **changes)
        made.append(step)
        output += emitted
        prefix += len(emitted)
    return replace(frame, first_token=0, steps=made, output=replace(frame.output, token_ids=output))


def tree_of(tokens: list[int], parents: list[int], path: list[int]) -> TreeColumns:
    size = len(tokens)
    states = ["root", *("accepted" if row in path else "rejected" for row in range(1, size))]
    blank: Any = [None] * size
    roles = ["root"] + ["draft"] * (size - 1)
    return TreeColumns(tokens, parents, roles, blank, [0.0] * size, blank, blank, blank, states, blank)


# the text is 0 1 2 3 4 5
FIRST = run("eagle2", ([1, 7, 2], [0, 0, 1], [1, 3], 3), ([4, 8], [0, 0], [1], 5))
SECOND = run("medusa", ([1, 6], [0, 0], [1], 2), ([3, 4, 9], [0, 1, 1], [1, 2], 5))


def told(found: Comparison) -> list[str]:
    return [plain(sentence) for sentence in found.sentences]


def test_the_same_root_by_hand() -> None:
    found = compare_at(FIRST, 0, SECOND)
    here, there = found.sides
    assert (found.index, found.num_both) == (0, 1)
    assert (here.step, here.base, here.rows, here.matches) == (0, 0, [1, 2, 3], [1, None, None])
    assert (there.step, there.base, there.rows, there.matches) == (0, 0, [1, 2], [1, None])
    assert [(side.num_accepted, side.num_right) for side in found.sides] == [(2, 2), (1, 1)]
    assert plain(found.question) == "What would Medusa have drafted after ‘def’?"
    assert told(found) == [
        "After ‘def’ both drafted 1 node alike, EAGLE-2 alone 2 and Medusa alone 1.",
        "Of the tokens that followed, EAGLE-2 had drafted the first 2 and Medusa had drafted the first 1.",
    ]


def test_where_the_other_run_was_inside_a_path_its_subtree_is_compared() -> None:
    found = compare_at(FIRST, 1, SECOND)
    there = found.sides[1]
    assert (found.index, there.step, there.base) == (3, 1, 1)
    assert (there.rows, there.matches, found.num_both) == ([2, 3], [1, None], 1)
    assert told(found)[-1] == ("Medusa was inside its step 2 here: compared is what it had drafted below this token.")


def test_what_the_other_run_thought_of_and_pruned() -> None:
    ghosts = GhostColumns([7, 9], [0, 3], [0.1, 0.1], [-3.0, -4.0], [None, None])
    second = run("medusa", ([1, 6], [0, 0], [1], 2), ([3], [0], [1], 4), ghosts=ghosts)
    found = compare_at(FIRST, 0, second)
    assert found.sides[0].pruned_there == [2]
    assert told(found)[-1] == "Medusa had thought of 1 of the nodes that only EAGLE-2 sent, and pruned it."


def test_shared_steps_begin_at_one_token() -> None:
    assert shared_steps(FIRST, SECOND) == [(0, 0)]
    assert shared_steps(FIRST, FIRST) == [(0, 0), (1, 1)]
    eagle, medusa = recorded("eagle2-code"), recorded("medusa-code")
    pairs = shared_steps(eagle, medusa)
    assert pairs
    for one, other in pairs:
        assert eagle.steps[one].prefix_len == medusa.steps[other].prefix_len
        assert eagle.steps[one].tree.token[0] == medusa.steps[other].tree.token[0]


def test_every_recorded_step_can_be_compared() -> None:
    eagle, medusa = recorded("eagle2-code"), recorded("medusa-code")
    for step in eagle.steps:
        found = compare_at(eagle, step.index, medusa)
        here, there = found.sides
        assert here.num_accepted == here.num_right == step.num_accepted, "greedy accepts what is right"
        assert here.rows == list(range(1, len(step.tree)))
        assert found.num_both == sum(match is not None for match in here.matches)
        assert found.num_both == sum(match is not None for match in there.matches)
        for row, match in zip(here.rows, here.matches, strict=True):
            if match is not None:
                assert step.tree.token[row] == medusa.steps[there.step].tree.token[match]


def test_places_that_cannot_be_compared_are_refused_in_words() -> None:
    with pytest.raises(TraceError, match="there is no step 9 in the first run: it has 2"):
        compare_at(FIRST, 9, SECOND)
    other = run("medusa", ([6], [0], [1], 2), ([3], [0], [1], 4))
    with pytest.raises(TraceError, match=r"part at token 2, before this step"):
        compare_at(FIRST, 1, other)
    short = run("medusa", ([1, 2], [0, 1], [1, 2], 3))
    with pytest.raises(TraceError, match="Medusa ended here"):
        compare_at(FIRST, 1, short)
    with pytest.raises(TraceError, match="different prompts"):
        compare_at(recorded("eagle2-code"), 0, recorded("eagle2-chat"))
